"""Folders in one tar file in which zeros take no room, whatever holes files have: the same content, the same bytes.

Sparse files are written as GNU tar writes them (PAX format 1.0), so any tar reads the file. What is read may come from
a host that lies. So ``extract`` does not leave it to a library what a member may be: folders and regular files alone,
named and bounded as its caller says, each made anew below a folder that is held open.
"""

import errno
import io
import os
import re
import stat
import tarfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dbdyno.model.printable import short
from dbdyno.system.files import blocks

if TYPE_CHECKING:
    from typing_extensions import Buffer

_GRAIN_BYTES = 4096  # what is all zero of this size, at such an offset, is left out
_READ_BYTES = 1024**2
_BLOCK_BYTES = 512  # of tar
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+%@=,-]{0,127}")  # of a file or a folder; none is hidden
_DEPTH_MAX = 6  # folders below each other, and a file in them
_MEMBERS_MAX = 100_000
_PIECES_MAX = 2**22  # of one sparse file
_HEADER_BYTES_MAX = 64 * 1024  # of what stands before a member beside its own header
FILE_BYTES_MAX = 8 * 1024**4  # holes included
_OTHER_PLACE = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}
_RECORD = re.compile(rb"([0-9]{1,6}) ([^=]{1,256})=")
_NUMBER = re.compile(rb"[0-9]{1,18}")

Piece = tuple[int, int]  # offset and bytes
LimitOf = Callable[[str], "int | None"]  # the name of a file or folder -> bytes that it may have; None: it may not be


def add(packed: tarfile.TarFile, path: Path, name: str, *, plain: bool = False) -> None:
    """Add a file, or a folder with all that is in it, in the order of names.

    ``plain`` leaves out what is not content: owners, modes and times. Raises ``OSError`` where ``extract`` would not
    take something: what is neither a file nor a folder, or has an odd name.
    """
    about, status = packed.gettarinfo(path, name), path.lstat()
    if about is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "it is neither a file nor a folder", str(path))
    if any_limit(name) is None:
        raise OSError(errno.EINVAL, "its name can't be sent to another host", str(path))
    if stat.S_ISREG(status.st_mode):  # its second name, too, is that of a file
        about.type, about.linkname, about.size = tarfile.REGTYPE, "", status.st_size
    if plain:
        about.uid = about.gid = about.mtime = 0
        about.uname = about.gname = ""
        about.mode = _FOLDER_MODE if about.isdir() else _FILE_MODE
    if about.isreg():
        _add_file(packed, about, path)
        return
    packed.addfile(about)
    for entry in sorted(path.iterdir()):
        add(packed, entry, f"{name}/{entry.name}", plain=plain)


def any_limit(name: str) -> int | None:
    """The widest ``LimitOf``: relative names of plain characters, a bounded number of folders below each other."""
    steps = name.split("/")
    return FILE_BYTES_MAX if len(steps) <= _DEPTH_MAX + 1 and all(map(_NAME.fullmatch, steps)) else None


def extract(path: Path, into: Path, limit_of: LimitOf = any_limit) -> None:
    """Unpack such a file into a folder, holes as they are. All of it then belongs to who unpacks it.

    Raises ``OSError``, or ``tarfile.TarError`` where the file is damaged, or holds what ``limit_of`` does not allow, a
    link, a device, a pipe, or a name twice. What was unpacked before it is left in the folder.
    """
    root = os.open(into, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with path.open("rb") as file:
            for number, member in enumerate(_members(file), 1):
                if number > _MEMBERS_MAX:
                    raise _refused(path, f"it holds more than {_MEMBERS_MAX} files and folders")
                _see_that_it_may_be(member, limit_of)
                _make(root, member, file)
    except tarfile.ReadError as error:
        raise _refused(path, str(error)) from None
    except tarfile.HeaderError as error:
        raise _refused(path, f"it is not a tar file, or is cut short: {error}") from None
    finally:
        os.close(root)


@dataclass(frozen=True)
class _Member:
    """A file or a folder as the tar file has it."""

    name: str
    is_folder: bool
    size: int  # of the file, holes included
    places: "array[int]"  # of its pieces: offset and length in turn


def _refused(path: Path, why: str) -> tarfile.ReadError:
    return tarfile.ReadError(f"{path}: {why}")


def _see_that_it_may_be(member: _Member, limit_of: LimitOf) -> None:
    """Raise ``tarfile.ReadError`` where it may not be there, or is too large."""
    most = None if any_limit(member.name) is None else limit_of(member.name)
    if most is None:
        raise tarfile.ReadError(f"{short(member.name, 100)!r} is not allowed in it")
    if member.size > min(most, FILE_BYTES_MAX):
        raise tarfile.ReadError(f"{member.name} has {member.size} bytes, of at most {most}")


def _members(file: IO[bytes]) -> Iterator[_Member]:
    """What is in the file; who asks for the next has read the pieces of the one before."""
    while (header := _read(file, _BLOCK_BYTES)).strip(b"\0"):
        about, more = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape"), {}
        if about.type == tarfile.XHDTYPE:
            if not 0 < about.size <= _HEADER_BYTES_MAX:
                raise tarfile.ReadError("a header is too long")
            more = _records(_read(file, about.size))
            _read(file, -about.size % _BLOCK_BYTES)
            about = tarfile.TarInfo.frombuf(_read(file, _BLOCK_BYTES), "utf-8", "surrogateescape")
        name = more.get("GNU.sparse.name") or more.get("path") or about.name
        if about.type not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE}:
            raise tarfile.ReadError(f"{short(name, 100)!r} is neither a file nor a folder")
        packed = _number(more["size"].encode()) if "size" in more else about.size
        if packed < 0 or (about.isdir() and packed):
            raise tarfile.ReadError(f"{short(name, 100)!r} has an impossible size")
        yield _member(file, name, packed, more, is_folder=about.isdir())
        _read(file, -packed % _BLOCK_BYTES)


def _member(file: IO[bytes], name: str, packed: int, more: dict[str, str], *, is_folder: bool) -> _Member:
    """The member, where its pieces lie having been read. Raises ``tarfile.ReadError`` where they can't lie so."""
    sparse_fields = {
        key.removeprefix("GNU.sparse."): value for key, value in more.items() if key.startswith("GNU.sparse.")
    }
    if not sparse_fields:
        return _Member(name, is_folder, packed, array("q", [] if is_folder else [0, packed]))
    if (
        is_folder
        or sparse_fields.keys() != {"major", "minor", "name", "realsize"}
        or (sparse_fields["major"], sparse_fields["minor"]) != ("1", "0")
    ):
        raise tarfile.ReadError(f"{short(name, 100)!r} is not a sparse file of format 1.0")
    size, (places, taken) = _number(sparse_fields["realsize"].encode()), _places(file, packed)
    end = 0
    for at in range(0, len(places), 2):
        if places[at] < end:
            raise tarfile.ReadError(f"{short(name, 100)!r}: its pieces overlap")
        end = places[at] + places[at + 1]
        taken += places[at + 1]
    if end > size or taken != packed:
        raise tarfile.ReadError(f"{short(name, 100)!r}: its pieces are not as long as it says")
    return _Member(name, is_folder, size, places)


def _places(file: IO[bytes], packed: int) -> "tuple[array[int], int]":
    """Offset and length of each piece in turn, as they stand before the pieces; the bytes that this takes."""
    places, wanted, rest, taken = array("q"), -1, b"", 0
    while len(places) != wanted:
        taken += _BLOCK_BYTES
        if taken > packed:
            raise tarfile.ReadError("the map of a sparse file is cut short")
        *lines, rest = (rest + _read(file, _BLOCK_BYTES)).split(b"\n")
        for line in lines:
            if wanted < 0:
                wanted = 2 * _number(line)
                if wanted > 2 * _PIECES_MAX:
                    raise tarfile.ReadError(f"a sparse file is in more than {_PIECES_MAX} pieces")
            elif len(places) < wanted:
                places.append(_number(line))
        if len(rest) > _BLOCK_BYTES:
            raise tarfile.ReadError("the map of a sparse file's data cannot be read")
    return places, taken


def _records(content: bytes) -> dict[str, str]:
    """What a PAX header says. Raises ``tarfile.ReadError``."""
    records, at = {}, 0
    while at < len(content):
        begin = _RECORD.match(content, at)
        end = at + int(begin[1]) if begin else 0
        if begin is None or not begin.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise tarfile.ReadError("a header can't be read")
        records[begin[2].decode(errors="replace")] = content[begin.end() : end - 1].decode(errors="surrogateescape")
        at = end
    return records


def _number(digits: bytes) -> int:
    if not _NUMBER.fullmatch(digits):
        raise tarfile.ReadError("a number in a header is invalid")
    return int(digits)


def _read(file: IO[bytes], count: int) -> bytes:
    content = file.read(count)
    if len(content) != count:
        raise tarfile.ReadError("it is cut short")
    return content


def _make(root: int, member: _Member, file: IO[bytes]) -> None:
    """Make a file or a folder that is not there, and what lacks above it. Raises ``tarfile.ReadError``, ``OSError``."""
    *above, name = member.name.split("/")
    try:
        folder = _opened(root, above)
        try:
            if member.is_folder:
                os.mkdir(name, 0o755, dir_fd=folder)
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(name, flags, 0o644, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno in _OTHER_PLACE:
            raise tarfile.ReadError(f"{member.name} is there already, or is below a file") from None
        raise
    with io.FileIO(handle, "wb") as target:
        os.ftruncate(handle, member.size)
        for at in range(0, len(member.places), 2):
            target.seek(member.places[at])
            _copy(file, target, member.places[at + 1])


def _opened(root: int, steps: Sequence[str]) -> int:
    """An open folder below another; each step of it is a folder and no link."""
    folder = os.dup(root)
    for step in steps:
        try:
            with suppress(FileExistsError):
                os.mkdir(step, 0o755, dir_fd=folder)
            below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def _copy(source: IO[bytes], target: io.FileIO, count: int) -> None:
    while count:
        piece = memoryview(_read(source, min(count, _READ_BYTES)))
        count -= len(piece)
        while piece:
            piece = piece[target.write(piece) :]


def _add_file(packed: tarfile.TarFile, about: tarfile.TarInfo, path: Path) -> None:
    pieces = list(_pieces(path))
    data_bytes = sum(length for _, length in pieces)
    with path.open("rb") as file:
        if data_bytes == about.size:
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
        about.size = len(where) + data_bytes
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
        room, part = memoryview(buffer), b""
        if self._where:
            part, self._where = self._where[: len(room)], self._where[len(room) :]
        elif self._left:
            offset, length = self._left.pop()
            part = os.pread(self._file.fileno(), min(length, len(room)), offset)
            if part and len(part) < length:
                self._left.append((offset + len(part), length - len(part)))
        room[: len(part)] = part
        return len(part)
