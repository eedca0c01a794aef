"""Folders of one host on their way to another. Nothing but Python's own library: it may be sent anywhere."""

import errno
import os
import secrets
import shutil
import stat
import zlib
from pathlib import Path

PIECE_BYTES = 4 * 1024**2
_SAMPLE_BYTES = 64 * 1024  # of a piece, by which is seen whether packing gains anything
_GAINS = 0.8  # of its length, that a packed sample takes at most
_PLAIN, _PACKED = b"-", b"z"

Entry = tuple[str, int, int, int, int, int, str]  # path below the folder, mode, user, group, changed (ns), bytes, link
Piece = tuple[str, int, int]  # path below the folder, offset, bytes


class FolderSide:
    """One host's folders: files, folders and symbolic links, of which holes stay holes and owners and modes are kept.

    Owners are set where the user is root; else all is that user's.
    """

    def __init__(self) -> None:
        self._folders: dict[str, Path] = {}

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder; the folder itself first, as "."."""
        root = Path(path)
        if not root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return [_entry(one, root) for one in (root, *sorted(root.rglob("*")))]

    def pieces(self, path: str) -> list[Piece]:
        """The bytes of its files, holes left out."""
        files = [name for name, mode, *_ in self.entries(path) if stat.S_ISREG(mode)]
        return [(name, offset, length) for name in files for offset, length in _data(Path(path) / name)]

    def piece(self, path: str, name: str, offset: int, length: int) -> bytes:
        """One of them; deflated, where that gains anything."""
        handle = os.open(Path(path) / name, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            content = os.pread(handle, length, offset)
        finally:
            os.close(handle)
        sample = content[:_SAMPLE_BYTES]
        if len(zlib.compress(sample, 1)) > _GAINS * len(sample):
            return _PLAIN + content
        return _PACKED + zlib.compress(content, 1)

    def begin_folder(self, path: str, entries: list[Entry], needed_bytes: int) -> str:
        """Begin to make a folder in one that is there, where there is room; returns its name until ``finish_folder``.

        Where that one was removed meanwhile, as by what puts a host back, nothing is made.
        """
        target = Path(path)
        free = shutil.disk_usage(target.parent).free
        if free < needed_bytes:
            raise OSError(errno.ENOSPC, f"{needed_bytes} bytes are needed, {free} are free", path)
        token = secrets.token_hex(6)
        made = self._folders[token] = target.with_name(f".{target.name}.{token}")
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
        plain = zlib.decompress(content[1:]) if content[:1] == _PACKED else content[1:]
        handle = os.open(self._folders[token] / name, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            left = memoryview(plain)
            while left:
                written = os.pwrite(handle, left, offset)
                left, offset = left[written:], offset + written
            os.fdatasync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)

    def finish_folder(self, token: str, path: str, entries: list[Entry]) -> None:
        """Let it count, under its own name, with the owners, modes and times of ``entries``."""
        made = self._folders[token]
        for name, mode, user, group, changed_ns, _, _ in reversed(entries):
            one = made / name
            if os.geteuid() == 0:
                os.chown(one, user, group, follow_symlinks=False)
            if not stat.S_ISLNK(mode):
                one.chmod(stat.S_IMODE(mode))
            os.utime(one, ns=(changed_ns, changed_ns), follow_symlinks=False)
        if _compared(self.entries(str(made))) != _compared(entries):
            raise OSError(errno.EIO, "what has arrived is not what was sent", path)
        made.rename(path)
        del self._folders[token]

    def abandon_folder(self, token: str) -> None:
        """Remove what there is of it."""
        shutil.rmtree(self._folders.pop(token), ignore_errors=True)


def _entry(path: Path, root: Path) -> Entry:
    found = path.lstat()
    mode, link = found.st_mode, ""
    if stat.S_ISLNK(mode):
        link = str(path.readlink())
    elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "is neither a file, a folder nor a symbolic link", str(path))
    size = found.st_size if stat.S_ISREG(mode) else 0
    return str(path.relative_to(root)), mode, found.st_uid, found.st_gid, found.st_mtime_ns, size, link


def _compared(entries: list[Entry]) -> list[tuple[object, ...]]:
    """All but times, which a filesystem may round, and owners where nobody else's can be set."""
    return [
        (name, mode, *((user, group) if os.geteuid() == 0 else ()), size, link)
        for name, mode, user, group, _, size, link in entries
    ]


def _data(path: Path) -> list[tuple[int, int]]:
    """Offsets and lengths of a file's data, each piece inside one of the stretches of ``PIECE_BYTES``."""
    found, at = list[tuple[int, int]](), 0
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        while True:
            at = os.lseek(handle, at, os.SEEK_DATA)
            hole = os.lseek(handle, at, os.SEEK_HOLE)
            while at < hole:
                end = min(hole, at - at % PIECE_BYTES + PIECE_BYTES)
                found.append((at, end - at))
                at = end
    except OSError as error:
        if error.errno != errno.ENXIO:  # the end: only a hole is left
            raise
        return found
    finally:
        os.close(handle)
