"""All filesystems by name."""

from dbdyno.filesystems.btrfs import BTRFS
from dbdyno.filesystems.ext import EXT2, EXT3, EXT4
from dbdyno.filesystems.kind import Kind
from dbdyno.filesystems.tmpfs import TMPFS
from dbdyno.filesystems.xfs import XFS

KINDS: dict[str, Kind] = {kind.name: kind for kind in (EXT2, EXT3, EXT4, XFS, BTRFS, TMPFS)}
IN_MEMORY = TMPFS.name  # which stands on no device
