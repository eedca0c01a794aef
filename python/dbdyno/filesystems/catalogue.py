"""All filesystems by name."""

from dbdyno.filesystems.btrfs import BTRFS
from dbdyno.filesystems.ext import EXT2, EXT3, EXT4
from dbdyno.filesystems.kind import Kind
from dbdyno.filesystems.tmpfs import TMPFS
from dbdyno.filesystems.xfs import XFS
from dbdyno.filesystems.zfs import ZFS

KINDS: dict[str, Kind] = {kind.name: kind for kind in (EXT2, EXT3, EXT4, XFS, BTRFS, ZFS, TMPFS)}
BY_FUSE = ZFS.name  # which no mount of the kernel's makes
IN_MEMORY = TMPFS.name  # which stands on no device
