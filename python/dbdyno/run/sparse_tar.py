"""Folders in one tar file in which zeros take no room, whatever holes files have: the same content, the same bytes.

Sparse files are written as GNU tar writes them (PAX format 1.0), so any tar reads the file. Python's own module reads
that, and does not write it.
"""

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dbdyno.run.sparse import blocks

if TYPE_CHECKING:
    from typing_extensions import Buffer

_GRAIN_BYTES = 4096  # what is all zero of this size, at such an offset, is left out
_READ_BYTES = 1024**2
_BLOCK_BYTES = 512  # of tar
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600

Piece = tuple[int, int]  # offset and bytes


def add(packed: tarfile.TarFile, path: Path, name: str, *, plain: bool = False) -> None:
    """Add a file, a symbolic link, or a folder with all that is in it, in the order of names.

    ``plain`` leaves out what is not content: owners, modes and times.
    """
    about = packed.gettarinfo(path, name)
    if plain:
        about.uid = about.gid = about.mtime = 0
        about.uname = about.gname = ""
        about.mode = _FOLDER_MODE if about.isdir() else _FILE_MODE
    if about.isreg():
        _add_file(packed, about, path)
        return
    packed.addfile(about)
    for one in sorted(path.iterdir()) if about.isdir() else ():
        add(packed, one, f"{name}/{one.name}", plain=plain)


def extract(path: Path, into: Path) -> None:
    """Unpack such a file into a folder, holes as they are; owners where the user is root, else all is that user's.

    Raises ``OSError``, or ``tarfile.TarError`` where the file is damaged or names a place outside.
    """
    with tarfile.open(path) as packed:
        packed.extractall(into, filter=_kept, numeric_owner=True)  # noqa: S202  (the filter refuses other places)


def _kept(member: tarfile.TarInfo, into: str) -> tarfile.TarInfo:
    found = tarfile.data_filter(member, into)
    return found.replace(uid=member.uid, gid=member.gid, deep=False) if os.geteuid() == 0 else found


def _add_file(packed: tarfile.TarFile, about: tarfile.TarInfo, path: Path) -> None:
    pieces = list(_pieces(path))
    held = sum(length for _, length in pieces)
    with path.open("rb") as file:
        if held == about.size:
            packed.addfile(about, file)
            return
        ends = [] if pieces and sum(pieces[-1]) == about.size else [(about.size, 0)]  # else GNU tar would cut it off
        numbers = [len(pieces) + len(ends), *(number for piece in (*pieces, *ends) for number in piece)]
        where = "".join(f"{number}\n" for number in numbers).encode()
        where += bytes(-len(where) % _BLOCK_BYTES)
        about.pax_headers = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": about.name,
            "GNU.sparse.realsize": str(about.size),
        }
        about.size = len(where) + held
        packed.addfile(about, io.BufferedReader(_Packed(file, pieces, where), _READ_BYTES))


def _pieces(path: Path) -> Iterator[Piece]:
    """Where a file has anything but zeros."""
    begin = end = 0
    for offset, block in blocks(path, _GRAIN_BYTES):
        if offset != end:
            if end > begin:
                yield begin, end - begin
            begin = offset
        end = offset + len(block)
    if end > begin:
        yield begin, end - begin


class _Packed(io.RawIOBase):
    """What is packed of a sparse file: where its pieces lie, and these."""

    def __init__(self, file: IO[bytes], pieces: Sequence[Piece], where: bytes) -> None:
        super().__init__()
        self._file, self._left, self._where = file, list(reversed(pieces)), where

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "Buffer", /) -> int:
        """Read some of it; 0 at the end."""
        room, found = memoryview(buffer), b""
        if self._where:
            found, self._where = self._where[: len(room)], self._where[len(room) :]
        elif self._left:
            offset, length = self._left.pop()
            found = os.pread(self._file.fileno(), min(length, len(room)), offset)
            if found and len(found) < length:
                self._left.append((offset + len(found), length - len(found)))
        room[: len(found)] = found
        return len(found)
