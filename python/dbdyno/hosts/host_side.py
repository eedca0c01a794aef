"""What ``Hosts`` asks for, done on the host itself. Nothing but Python's own library: it may be sent anywhere."""

import errno
import fcntl
import hashlib
import os
import secrets
import select
import shutil
import signal as signals
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

CHUNK_BYTES = 1024**2  # of a file, or of what a program wrote, in one answer
OUTPUT_BYTES_MAX = 1024**3  # that a program writes to each of its streams, from its beginning to its end
_LOOK_AGAIN_SECONDS = 0.01
_LOOK_AGAIN_MAX_SECONDS = 2.0  # once it has been silent for a while: it may be measuring; its end is seen at once
PIECE_BYTES = 1024**2

Entry = tuple[str, int, int, int, int, int, str]  # path below the folder, mode, user, group, changed (ns), bytes, link
Piece = tuple[str, int, int]  # path below the folder, offset, bytes
_ENTRIES_MAX = 200_000  # of one folder
_PIECES_MAX = 2_000_000
_NAME_MAX = 1000  # characters of a path below the folder, and of a link
_SIZE_MAX = 8 * 1024**4  # of a file, holes included
_LEFT_BYTES = 256 * 1024**2  # room that is left on the disk of who takes a folder in
_KINDS = (str, int, int, int, int, int, str)


# Folders on their way from one host to another.


def why_not_copied(entries: object, pieces: object = ()) -> str:
    """Say why no folder can be made of what a host says is in one of its own; empty where it can. The host may lie.

    Names and links stay inside the folder, each below folders that were named before it; no file runs with others'
    rights; pieces lie one after the other inside the files.
    """
    if not isinstance(entries, list) or not entries or len(entries) > _ENTRIES_MAX:
        return f"it is not a list of 1 to {_ENTRIES_MAX} files and folders"
    sizes = dict[str, int]()
    folders = set[str]()
    for place, entry in enumerate(entries):
        if not isinstance(entry, tuple) or tuple(map(type, entry)) != _KINDS:
            return "it holds an invalid entry"
        name, mode, _, _, _, size, link = entry
        if name in folders or name in sizes or not (name == "." if place == 0 else _is_below(name, folders)):
            return f"it holds the invalid name {name[:_NAME_MAX]!r}"
        if stat.S_ISDIR(mode):
            folders.add(name)
        elif place == 0:
            return "it is not a folder"
        else:
            sizes[name] = size if stat.S_ISREG(mode) else 0
        if why := _why_no_entry(mode, size, link):
            return f"{name}: {why}"
    return _why_no_pieces(sizes, pieces)


def _is_below(name: str, folders: set[str]) -> bool:
    """Whether a name is that of something in one of the folders."""
    folder, _, last = name.rpartition("/")
    is_name = last not in {"", ".", ".."} and "\0" not in name and len(name) <= _NAME_MAX
    return is_name and (folder in folders if folder else not name.startswith("/"))


def _why_no_entry(mode: int, size: int, link: str) -> str:
    """Say why a file, folder or link can't be one of ours; empty where it can."""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        return "is neither a file, a folder nor a symbolic link"
    if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
        return "has a set-user-ID or set-group-ID bit"
    if not 0 <= size <= _SIZE_MAX:
        return f"has {size} bytes"
    if stat.S_ISLNK(mode) != bool(link) or link.startswith("/") or ".." in link.split("/") or len(link) > _NAME_MAX:
        return "is a link that leads out of the folder"
    return ""


def _why_no_pieces(sizes: dict[str, int], pieces: object) -> str:
    """Say why pieces are none of files of these sizes; empty where they are."""
    if not isinstance(pieces, list | tuple) or len(pieces) > _PIECES_MAX:
        return f"it is not a list of at most {_PIECES_MAX} pieces"
    reached = dict[str, int]()
    for piece in pieces:
        if not isinstance(piece, tuple) or tuple(map(type, piece)) != (str, int, int):
            return "it holds an invalid piece"
        name, offset, length = piece
        is_inside = 0 < length <= PIECE_BYTES and reached.get(name, 0) <= offset <= sizes.get(name, 0) - length
        if not is_inside:
            return f"it holds a piece of {name[:_NAME_MAX]!r} outside of that file"
        reached[name] = offset + length
    return ""


class _Making:
    """A folder that is being made: where, what is to be in it, and how many bytes may still come."""

    def __init__(self, path: Path, entries: "list[Entry]", bytes_left: int) -> None:
        self.path, self.entries, self.bytes_left = path, entries, bytes_left
        self.sizes = {name: size for name, mode, _, _, _, size, _ in entries if stat.S_ISREG(mode)}


class FolderSide:
    """One host's folders: files, folders and symbolic links, of which holes stay holes and owners and modes are kept.

    Owners are set where the user is root; else all is that user's.
    """

    def __init__(self) -> None:
        self._folders: dict[str, _Making] = {}

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder; the folder itself first, as "."."""
        root = Path(path)
        if not root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return [_entry(place, root) for place in (root, *sorted(root.rglob("*")))]

    def pieces(self, path: str) -> list[Piece]:
        """The bytes of its files, holes left out."""
        files = [name for name, mode, *_ in self.entries(path) if stat.S_ISREG(mode)]
        return [(name, offset, length) for name in files for offset, length in _data(Path(path) / name)]

    def piece(self, path: str, name: str, offset: int, length: int) -> bytes:
        """One of them."""
        handle = os.open(Path(path) / name, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            return os.pread(handle, length, offset)
        finally:
            os.close(handle)

    def begin_folder(self, path: str, entries: list[Entry], needed_bytes: int) -> str:
        """Begin to make a folder in one that is there, where there is room; returns its name until ``finish_folder``.

        Nothing is made where that one was removed meanwhile, as by what puts a host back, nor where the entries can't
        be: they come from another host.
        """
        target = Path(path)
        if why := why_not_copied(entries):
            raise OSError(errno.EINVAL, why, path)
        free = shutil.disk_usage(target.parent).free
        if free < needed_bytes + _LEFT_BYTES:
            raise OSError(errno.ENOSPC, f"{needed_bytes} bytes are needed, {free} are free", path)
        token = secrets.token_hex(6)
        made = target.with_name(f".{target.name}.{token}")
        self._folders[token] = _Making(made, entries, needed_bytes)
        made.mkdir(mode=0o700)
        for name, mode, *_, size, link in entries[1:]:
            if stat.S_ISDIR(mode):
                (made / name).mkdir(mode=0o700)
            elif stat.S_ISLNK(mode):
                (made / name).symlink_to(link)
            else:
                handle = os.open(made / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                os.ftruncate(handle, size)
                os.close(handle)
        return token

    def write_piece(self, token: str, name: str, offset: int, content: bytes) -> None:
        """Write a piece, on disk when this returns: no backlog of writes is left to what comes after."""
        making = self._folders[token]
        if name not in making.sizes or not 0 <= offset <= making.sizes[name] - len(content):
            raise OSError(errno.EINVAL, "the piece does not belong to the folder", name)
        making.bytes_left -= len(content)  # by several threads: none of which adds anything
        if making.bytes_left < 0:
            raise OSError(errno.EFBIG, "more bytes arrived than were announced", name)
        handle = os.open(making.path / name, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            left = memoryview(content)
            while left:
                written = os.pwrite(handle, left, offset)
                left, offset = left[written:], offset + written
            os.fdatasync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)

    def finish_folder(self, token: str, path: str) -> None:
        """Let it count, under its own name, with the owners, modes and times that it was begun with."""
        made, entries = self._folders[token].path, self._folders[token].entries
        for name, mode, user, group, changed_ns, _, _ in reversed(entries):
            place = made / name
            if os.geteuid() == 0:
                os.chown(place, user, group, follow_symlinks=False)
            if not stat.S_ISLNK(mode):
                place.chmod(stat.S_IMODE(mode))
            os.utime(place, ns=(changed_ns, changed_ns), follow_symlinks=False)
        if _compared(self.entries(str(made))) != _compared(entries):
            raise OSError(errno.EIO, "the copy differs from the source", path)
        made.rename(path)
        del self._folders[token]

    def abandon_folder(self, token: str) -> None:
        """Remove what there is of it."""
        shutil.rmtree(self._folders.pop(token).path, ignore_errors=True)


def _entry(path: Path, root: Path) -> Entry:
    status = path.lstat()
    mode, link = status.st_mode, ""
    if stat.S_ISLNK(mode):
        link = str(path.readlink())
    elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "is neither a file, a folder nor a symbolic link", str(path))
    size = status.st_size if stat.S_ISREG(mode) else 0
    return str(path.relative_to(root)), mode, status.st_uid, status.st_gid, status.st_mtime_ns, size, link


def _compared(entries: list[Entry]) -> list[tuple[object, ...]]:
    """All but times, which a filesystem may round, and owners where nobody else's can be set."""
    return [
        (name, mode, *((user, group) if os.geteuid() == 0 else ()), size, link)
        for name, mode, user, group, _, size, link in entries
    ]


def _data(path: Path) -> list[tuple[int, int]]:
    """Offsets and lengths of a file's data, each piece inside one of the stretches of ``PIECE_BYTES``."""
    extents, at = list[tuple[int, int]](), 0
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        while True:
            at = os.lseek(handle, at, os.SEEK_DATA)
            hole = os.lseek(handle, at, os.SEEK_HOLE)
            while at < hole:
                end = min(hole, at - at % PIECE_BYTES + PIECE_BYTES)
                extents.append((at, end - at))
                at = end
    except OSError as error:
        if error.errno != errno.ENXIO:  # the end: only a hole is left
            raise
        return extents
    finally:
        os.close(handle)


# Files and programs.


def output_file(name: str) -> int:
    """Return a file in memory for what a program writes, which takes ``OUTPUT_BYTES_MAX`` and no more.

    It has that size from the beginning and can't grow, so a write beyond it fails, whoever reads it when; what was not
    written is a hole, and takes no memory.
    """
    file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, OUTPUT_BYTES_MAX)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return file


@dataclass
class _Program:
    """A program, and the files in memory that it writes to: no pipe that fills up, and nothing on a disk."""

    process: "subprocess.Popen[bytes]"
    files: tuple[int, ...]
    read: list[int] = field(default_factory=lambda: [0, 0])  # bytes of both that have been handed out
    code: int | None = None  # by which it has ended, all having been handed out

    lock: threading.Lock = field(default_factory=threading.Lock)  # around the files, which several threads use

    def news(self) -> list[tuple[bool, bytes]]:
        """What was written since the last time; whether to standard error, and the bytes."""
        chunks = []
        with self.lock:
            for place, file in enumerate(self.files):
                written = os.lseek(file, 0, os.SEEK_CUR)  # the program has the same place in the file
                content = os.pread(file, min(CHUNK_BYTES, written - self.read[place]), self.read[place])
                self.read[place] += len(content)
                if content:
                    chunks.append((bool(place), content))
        return chunks

    def forget_if_over(self) -> None:
        """Give back the memory once it has ended, where nothing is left to be handed out."""
        with self.lock:
            code = self.process.poll()
            places = [os.lseek(file, 0, os.SEEK_CUR) for file in self.files]
            if code is None or places != self.read:
                return
            for file in self.files:
                os.close(file)
            self.code, self.files, self.read = code, (), []

    def forget(self) -> None:
        """Wait for its end, and give back the memory, whatever was not handed out."""
        code = self.process.wait()
        with self.lock:
            for file in self.files:
                os.close(file)
            self.code, self.files, self.read = code, (), []

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(self.process.pid)
            try:
                waiting = select.poll()
                waiting.register(handle, select.POLLIN)
                waiting.poll(seconds * 1000)
            finally:
                os.close(handle)


class HostSide(FolderSide):
    """One host's files, folders and programs."""

    def __init__(self) -> None:
        super().__init__()
        self._programs: dict[str, _Program] = {}
        self._arriving: dict[str, Path] = {}

    def begin(self, path: str) -> str:
        """Begin to write a file in a folder that is there; returns what it is called until ``finish``.

        Where that folder was removed meanwhile, as by what puts a host back, nothing would remove a new one.
        """
        name = secrets.token_hex(6)
        target = Path(path)
        self._arriving[name] = target.with_name(f".{target.name}.{name}")
        os.close(os.open(self._arriving[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return name

    def append(self, name: str, content: bytes) -> None:
        """Write more of it."""
        with self._arriving[name].open("ab") as file:
            file.write(content)

    def finish(self, name: str, path: str) -> str:
        """Let it count, under its own name; returns the SHA-256 of what was read back."""
        arrived = self._arriving.pop(name)
        with arrived.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        arrived.replace(path)
        return digest

    def content(self, path: str, offset: int) -> bytes:
        """Part of a file, from an offset on; nothing at its end."""
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)

    def start(self, argv: Sequence[str], stdin: bytes, environment: Mapping[str, str], while_there: str = "") -> str:
        """Start a program in a session of its own; it dies with this process. Our Python is first in its PATH.

        Nothing is started where the folder ``while_there`` is gone: a question that a network has held up may arrive
        after this host was put back, which begins with removing that folder.
        """
        self._refuse_gone(while_there)
        for program in list(self._programs.values()):
            program.forget_if_over()  # nobody may ever ask
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        bound = [*(("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()), *argv]
        files = (output_file("stdout"), output_file("stderr"))
        input_file = os.memfd_create("stdin")
        os.write(input_file, stdin)
        os.lseek(input_file, 0, os.SEEK_SET)
        try:
            process = subprocess.Popen(
                bound,
                stdin=input_file,
                stdout=files[0],
                stderr=files[1],
                env={**os.environ, "PATH": path, **environment},
                start_new_session=True,
            )
        finally:
            os.close(input_file)
        name = secrets.token_hex(6)
        self._programs[name] = _Program(process, files)
        try:
            self._refuse_gone(while_there)  # who ends all programs may have looked just before this one was there
        except OSError:
            self.signal(name, signals.SIGKILL)
            raise
        return name

    def _refuse_gone(self, folder: str) -> None:
        if folder and not Path(folder).is_dir():
            raise FileNotFoundError(errno.ENOENT, "this host was restored because its connection was lost", folder)

    def read(self, name: str, wait_seconds: float) -> tuple[list[tuple[bool, bytes]], int | None]:
        """What a program wrote since the last time, and its exit code once it has ended and all is handed out."""
        program, pause_seconds = self._programs[name], _LOOK_AGAIN_SECONDS
        deadline = time.monotonic() + wait_seconds
        while program.code is None:
            code = program.process.poll()  # before the look: what was written until then is seen by it
            news = program.news()
            if not news and code is not None:
                program.forget_if_over()
            if news or code is not None or time.monotonic() > deadline:
                return news, None if news else code
            program.wait(pause_seconds)
            pause_seconds = min(pause_seconds * 1.1, _LOOK_AGAIN_MAX_SECONDS)
        return [], program.code

    def signal(self, name: str, number: int) -> bool:
        """Send a signal to a program's session; whether it was still there."""
        program = self._programs[name]
        if program.process.poll() is not None:
            return False
        with suppress(ProcessLookupError):
            os.killpg(program.process.pid, number)
            return True
        return False

    def close(self) -> None:
        """End every program."""
        for name, program in self._programs.items():
            self.signal(name, signals.SIGKILL)
            program.forget()
        self._programs.clear()
