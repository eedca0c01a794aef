"""Reading a disk: whether a stretch of it is blank, and a sum by which a change is found."""

import hashlib
import json
import mmap
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise, takewhile
from typing import Any, Self

from dbdyno.errors import HostError
from dbdyno.system.files import is_sealed, sealed

# Where a disk is looked at before it may be erased.


PAGE = 4096  # bytes
MIB = 1024**2
# ceil(ln(1e-4) / ln(0.99)): so many places drawn at random all miss 1 % of a disk with a chance of at most 1 in 10,000.
SAMPLES = 917
WHOLE_BYTES_MAX = 1024 * MIB  # read whole: on a hard disk that takes no longer than the samples
# Of each end: partition tables, RAID and LVM metadata, the headers of LUKS with all their room, pool labels.
END_BYTES = 16 * MIB
_STARTS = (0, MIB)  # where a filesystem begins: with the disk, or in the first partition of a lost table
_EXT_BLOCK_BYTES = (1024, 2048, 4096)
_BTRFS_MIRRORS = (64 * MIB, 256 * 1024 * MIB)  # btrfs_sb_offset: 16 KiB << (12 * n), n = 1, 2
_XFS_GROUPS = 4  # of a disk below 4 TiB; each begins with a copy of the superblock

Stretch = tuple[int, int]  # offset and length, in bytes


def places(size: int, seed: bytes) -> list[Stretch]:
    """``SAMPLES`` stretches between the first and the last page: all of a small disk, else a page of each part.

    The same for the same size and seed, on any machine.
    """
    end = size - PAGE
    edges = [PAGE + (end - PAGE) * number // SAMPLES // PAGE * PAGE for number in range(SAMPLES)] + [end]
    parts = [(start, stop - start) for start, stop in pairwise(edges) if stop > start]
    if size <= WHOLE_BYTES_MAX:
        return parts
    return [(start + _drawn(seed, start, length // PAGE) * PAGE, PAGE) for start, length in parts]


def known_places(size: int) -> list[Stretch]:
    """Where superblocks, tables and their copies lie, between the first and the last page; none twice."""
    if size <= WHOLE_BYTES_MAX:
        return []  # all of it is among ``places``
    inside = {place for place in _copies(size) if END_BYTES <= place < size - END_BYTES - PAGE}
    return [
        (PAGE, END_BYTES - PAGE),
        *((place, PAGE) for place in sorted(inside)),
        (size - END_BYTES, END_BYTES - PAGE),
    ]


def _copies(size: int) -> Iterator[int]:
    """The pages of superblocks' copies."""
    for start in _STARTS:
        for block in _EXT_BLOCK_BYTES:
            group = 8 * block * block  # its block bitmap is one block (fs/ext4: blocks per group)
            yield from (start + number * group for number in _sparse_groups(size // group))
        yield from (start + mirror for mirror in _BTRFS_MIRRORS)
    blocks = size // PAGE
    yield from (number * -(-blocks // _XFS_GROUPS) * PAGE for number in range(1, _XFS_GROUPS))


def _sparse_groups(groups: int) -> Iterator[int]:
    """The groups with a copy of ext's superblock: powers of 3, 5 and 7, and 1 (``sparse_super``)."""
    for base in (3, 5, 7):
        yield from takewhile(lambda number: number <= groups, (base**power for power in count()))


def _drawn(seed: bytes, start: int, choices: int) -> int:
    number = hashlib.blake2b(seed + start.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(number, "little") % choices


_ZEROS, _ONES = bytes(MIB), b"\xff" * MIB  # what discarded space reads as, by the kind of flash
READS_AT_ONCE = 16  # a disk answers many at once sooner than one after another
SUM_HEX_DIGITS = 4  # of a place, as it is kept; the sum over all of them is long


class Content:
    """The content of an open disk; a context that ends its readers, and leaves the disk open."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.size = os.lseek(handle, 0, os.SEEK_END)
        self._of_thread = threading.local()
        self._readers = ThreadPoolExecutor(READS_AT_ONCE, "disk reader", self._begin)
        self._begin()

    def _begin(self) -> None:
        self._of_thread.buffer = mmap.mmap(-1, MIB)  # direct I/O needs memory that begins with a page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.shutdown(cancel_futures=True)

    def read(self, offset: int, length: int) -> bytes:
        """At most 1 MiB of it. Raises ``HostError`` where it can't be read."""
        buffer = self._of_thread.buffer
        try:
            with memoryview(buffer)[:length] as target:
                done = os.preadv(self._handle, [target], offset)
        except OSError as error:
            raise HostError(f"it can't be read at offset {offset}: {error.strerror}") from None
        if done != length:
            raise HostError(f"it can't be read at offset {offset}: it ends there")
        content: bytes = buffer[:length]
        return content

    def chunks(self, stretch: Stretch) -> Iterator[tuple[int, bytes]]:
        """A stretch in pieces of at most 1 MiB, each with its offset."""
        offset, length = stretch
        for start in range(offset, offset + length, MIB):
            yield start, self.read(start, min(MIB, offset + length - start))

    def first_data(self, stretches: Iterable[Stretch]) -> int | None:
        """The offset of the first page that is not blank; ``None`` where all are."""
        offsets = self._readers.map(self._first_data_in, stretches)
        return next((offset for offset in offsets if offset is not None), None)

    def _first_data_in(self, stretch: Stretch) -> int | None:
        for start, piece in self.chunks(stretch):
            if not is_blank(piece):
                pages = range(0, len(piece), PAGE)
                return start + next(at for at in pages if not is_blank(piece[at : at + PAGE]))
        return None

    def sums_of(self, stretches: Iterable[Stretch]) -> list[int]:
        """A CRC-32 of each stretch."""
        return list(self._readers.map(self._sum_of, stretches))

    def _sum_of(self, stretch: Stretch) -> int:
        value = 0
        for _, piece in self.chunks(stretch):
            value = zlib.crc32(piece, value)
        return value


def is_blank(piece: bytes) -> bool:
    """Whether each page of a piece is all zeros, or all ones."""
    if piece == _ZEROS[: len(piece)] or piece == _ONES[: len(piece)]:
        return True
    pages = [piece[at : at + PAGE] for at in range(0, len(piece), PAGE)]
    return len(pages) > 1 and all(is_blank(page) for page in pages)


class Sums:
    """The sums of what lies between the first and the last page of a disk, at the places that a seed gives."""

    def __init__(self, content: Content, seed: bytes) -> None:
        self.seed = seed
        self._places = places(content.size, seed)
        sums = content.sums_of(self._places)
        known = content.sums_of(known_places(content.size))
        self.each = "".join(f"{checksum & 0xFFFF:0{SUM_HEX_DIGITS}x}" for checksum in sums)
        packed = b"".join(checksum.to_bytes(4, "little") for checksum in [*known, *sums])
        self.all = hashlib.blake2b(packed, digest_size=16).hexdigest()

    def differing(self, sums: str) -> list[Stretch]:
        """The places whose sum is not the one that was kept."""
        width = SUM_HEX_DIGITS
        return [
            place
            for number, place in enumerate(self._places)
            if sums[number * width : (number + 1) * width] != self.each[number * width : (number + 1) * width]
        ]


# The mark that a trial leaves on a real disk: what lies here was written by dbdyno and may be erased.
#
# It fills the first and the last page, where every filesystem, partition table or raw content begins or ends, and holds
# sums of what lies between; so it counts only on this disk, and only as long as nothing else has been written to it.


Fields = Mapping[str, Any]
_WHAT = "a trial's disk, may be erased"
_SEED_BYTES = 16


def page_of(fields: Fields) -> bytes:
    """A page with these fields and their checksum: lower case and digits, which no signature of a filesystem is of."""
    page = sealed({"dbdyno": _WHAT, **fields})
    assert len(page) <= PAGE  # noqa: S101  (what is in it has a fixed length)
    return page.ljust(PAGE)


def fields_of(page: bytes) -> Fields | None:
    """The fields of a page that is such a one and whole; else ``None``."""
    line, _, rest = page.partition(b"\n")
    if not is_sealed(line) or rest.strip(b" "):
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):  # any program can make a checksum
        return None
    if not isinstance(fields, dict) or fields.pop("dbdyno", None) != _WHAT:
        return None
    del fields["sum"]
    return fields


def at_the_end(content: Content) -> Fields | None:
    """The fields of the last page, if it is one of these."""
    return fields_of(content.read(content.size - PAGE, PAGE))


def mark_of(content: Content, serial: str) -> Fields | None:
    """The fields of the mark on a disk, if it bears one that was left on this very disk; else ``None``."""
    fields = fields_of(content.read(0, PAGE))
    bound = _bound(content, serial)
    if fields is None or "all" not in fields or fields != at_the_end(content) or fields["disk"] != bound:
        return None
    return fields


def sums_of(content: Content, mark: Fields) -> Sums:
    """The sums at the places of a mark, as they are now."""
    return Sums(content, bytes.fromhex(mark["seed"]))


def begin_mark(handle: int, content: Content, ours: str) -> None:
    """Say on the last page that what the filesystem with this UUID held is being given up."""
    _write(handle, content.size - PAGE, page_of({"uuid": ours}))


def leave_mark(handle: int, content: Content, serial: str, ours: str) -> None:
    """Mark a disk for what it holds now; ``handle`` may be written to, ``content`` is read around the page cache.

    The last page first, so that a mark that is whole at both ends is finished.
    """
    os.fsync(handle)
    sums = Sums(content, os.urandom(_SEED_BYTES))
    fields = {
        "disk": _bound(content, serial),
        "uuid": ours,
        "seed": sums.seed.hex(),
        "all": sums.all,
        "each": sums.each,
    }
    _write(handle, content.size - PAGE, page_of(fields))
    _write(handle, 0, page_of(fields))


def _bound(content: Content, serial: str) -> str:
    return hashlib.blake2b(f"{content.size} {serial}".encode(), digest_size=16).hexdigest()


def _write(handle: int, offset: int, page: bytes) -> None:
    os.pwrite(handle, page, offset)
    os.fsync(handle)
