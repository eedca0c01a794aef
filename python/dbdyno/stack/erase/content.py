"""Reading a disk: whether a stretch of it is blank, and a sum by which a change is found."""

import hashlib
import mmap
import os
import threading
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from dbdyno.errors import HostError
from dbdyno.stack.erase.places import MIB, PAGE, Stretch, known_places, places

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
        found = self._readers.map(self._first_data_in, stretches)
        return next((offset for offset in found if offset is not None), None)

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
        self.each = "".join(f"{one & 0xFFFF:0{SUM_HEX_DIGITS}x}" for one in sums)
        packed = b"".join(one.to_bytes(4, "little") for one in [*known, *sums])
        self.all = hashlib.blake2b(packed, digest_size=16).hexdigest()

    def differing(self, each: str) -> list[Stretch]:
        """The places whose sum is not the one that was kept."""
        width = SUM_HEX_DIGITS
        return [
            place
            for number, place in enumerate(self._places)
            if each[number * width : (number + 1) * width] != self.each[number * width : (number + 1) * width]
        ]
