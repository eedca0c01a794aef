"""Where a disk is looked at before it may be erased."""

import hashlib
from collections.abc import Iterator
from itertools import count, pairwise, takewhile

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
