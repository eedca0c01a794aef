"""How full a filesystem is, and in how many pieces the data lies on it."""

import fcntl
import os
import shutil
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from dbdyno.store.records import Space

# linux/fiemap.h: start, length, flags, extents mapped, room for extents, reserved. Without room, it only counts.
_FIEMAP = struct.Struct("=QQIIII")
FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC = 1  # what is not yet written has no place yet
_BLOCK_BYTES = 512  # the unit of st_blocks
SMALL_BYTES = 1024**2  # a smaller file is seldom in more than one piece, and says nothing


def bytes_on_disk(folder: Path) -> int:
    """What all in a folder takes."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * _BLOCK_BYTES


def fragmentation(directory: Path) -> Space:
    """Extents of the data files of 1 MiB and more; what a filesystem does not report is ``None``.

    ``extents_per_GiB`` is of the bytes that take room on the device; one extent each would be the least there can be.
    """
    files, extents, occupied = 0, 0, 0
    known = True
    for handle in _data_files(directory):
        files += 1
        occupied += os.fstat(handle).st_blocks * _BLOCK_BYTES
        try:
            request = _FIEMAP.pack(0, 2**64 - 1, FIEMAP_FLAG_SYNC, 0, 0, 0)
            extents += _FIEMAP.unpack(fcntl.ioctl(handle, FS_IOC_FIEMAP, request))[3]
        except OSError:  # tmpfs and FUSE have no extents
            known = False
    if not known or not occupied:
        return {"files": files, "extents": None, "extents_per_GiB": None}
    return {"files": files, "extents": extents, "extents_per_GiB": round(extents / occupied * 1024**3, 1)}


def _data_files(directory: Path) -> Iterator[int]:
    """An open handle of each; the folder is the server's user's, who may put anything into it at any time."""
    for path in sorted(directory.rglob("*")):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # gone by now, or a link, or a socket
            continue
        try:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode) and status.st_size >= SMALL_BYTES:
                yield handle
        finally:
            os.close(handle)


def after_load(directory: Path) -> Space:
    """What a trial keeps of the filesystem below its data."""
    usage = shutil.disk_usage(directory)
    return {"size_bytes": usage.total, "free_bytes": usage.free, **fragmentation(directory)}


# Where a file's bytes lie on the device below its filesystem.


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
        return _read_ranges(handle)
    except OSError:  # FUSE has no extents
        return []
    finally:
        os.close(handle)


def _read_ranges(handle: int) -> list[Range]:
    ranges: list[Range] = []
    start = 0
    while True:
        room = bytes(_EXTENTS_AT_ONCE * _EXTENT.size)
        request = bytearray(_HEADER.pack(start, 2**64 - 1 - start, 0, 0, _EXTENTS_AT_ONCE, 0) + room)
        fcntl.ioctl(handle, FS_IOC_FIEMAP, request)
        mapped = _HEADER.unpack_from(request)[3]
        for number in range(mapped):
            logical, physical, length, *_, flags, _, _, _ = _EXTENT.unpack_from(
                request, _HEADER.size + number * _EXTENT.size
            )
            start = logical + length
            if not flags & _NOWHERE:
                ranges.append((physical, physical + length))
            if flags & _LAST:
                return ranges
        if not mapped:
            return ranges
