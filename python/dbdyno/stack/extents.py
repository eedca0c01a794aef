"""Where a file's bytes lie on the device below its filesystem."""

import fcntl
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from dbdyno.stack.space import FS_IOC_FIEMAP

# linux/fiemap.h: struct fiemap, then room for its extents: logical, physical, length, 2 reserved, flags, 3 reserved.
_HEADER, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQQQIIII")
_EXTENTS_AT_ONCE = 512
_LAST = 1
_NOWHERE = 2 | 4 | 8 | 0x80 | 0x200  # unknown, not allocated yet, encoded; encrypted; inside metadata

Range = tuple[int, int]  # first byte on the device, first byte after


def ranges_of(files: Iterable[Path]) -> list[Range]:
    """Where the files lie, ascending and joined; nothing of what has no place yet, or where that can't be known."""
    joined: list[Range] = []
    for first, after in sorted(extent for path in files for extent in _extents(path)):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(after, joined[-1][1]))
        else:
            joined.append((first, after))
    return joined


def _extents(path: Path) -> list[Range]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # the server has removed it this moment
        return []
    try:
        return _asked(handle)
    except OSError:  # FUSE has no extents
        return []
    finally:
        os.close(handle)


def _asked(handle: int) -> list[Range]:
    found: list[Range] = []
    start = 0
    while True:
        room = bytes(_EXTENTS_AT_ONCE * _EXTENT.size)
        asked = bytearray(_HEADER.pack(start, 2**64 - 1 - start, 0, 0, _EXTENTS_AT_ONCE, 0) + room)
        fcntl.ioctl(handle, FS_IOC_FIEMAP, asked)
        mapped = _HEADER.unpack_from(asked)[3]
        for number in range(mapped):
            logical, physical, length, *_, flags, _, _, _ = _EXTENT.unpack_from(
                asked, _HEADER.size + number * _EXTENT.size
            )
            start = logical + length
            if not flags & _NOWHERE:
                found.append((physical, physical + length))
            if flags & _LAST:
                return found
        if not mapped:
            return found
