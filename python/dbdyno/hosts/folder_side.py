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
_ENTRIES_MAX = 200_000  # of one folder
_PIECES_MAX = 2_000_000
_NAME_MAX = 1000  # characters of a path below the folder, and of a link
_SIZE_MAX = 8 * 1024**4  # of a file, holes included
_LEFT_BYTES = 256 * 1024**2  # room that is left on the disk of who takes a folder in
_KINDS = (str, int, int, int, int, int, str)


def why_not_carried(entries: object, pieces: object = ()) -> str:
    """Say why no folder can be made of what a host says is in one of its own; empty where it can. The host may lie.

    Names and links stay inside the folder, each below folders that were named before it; no file runs with others'
    rights; pieces lie one after the other inside the files.
    """
    if not isinstance(entries, list) or not entries or len(entries) > _ENTRIES_MAX:
        return f"it is no list of 1 to {_ENTRIES_MAX} files and folders"
    sizes = dict[str, int]()
    folders = set[str]()
    for place, entry in enumerate(entries):
        if not isinstance(entry, tuple) or tuple(map(type, entry)) != _KINDS:
            return "it holds an entry that is none"
        name, mode, _, _, _, size, link = entry
        if name in folders or name in sizes or not (name == "." if place == 0 else _is_below(name, folders)):
            return f"it holds the name {name[:_NAME_MAX]!r}"
        if stat.S_ISDIR(mode):
            folders.add(name)
        elif place == 0:
            return "it is no folder"
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
        return "runs with others' rights"
    if not 0 <= size <= _SIZE_MAX:
        return f"has {size} bytes"
    if stat.S_ISLNK(mode) != bool(link) or link.startswith("/") or ".." in link.split("/") or len(link) > _NAME_MAX:
        return "is a link that leads out of the folder"
    return ""


def _why_no_pieces(sizes: dict[str, int], pieces: object) -> str:
    """Say why pieces are none of files of these sizes; empty where they are."""
    if not isinstance(pieces, list | tuple) or len(pieces) > _PIECES_MAX:
        return f"it is no list of {_PIECES_MAX} pieces at most"
    reached = dict[str, int]()
    for piece in pieces:
        if not isinstance(piece, tuple) or tuple(map(type, piece)) != (str, int, int):
            return "it holds a piece that is none"
        name, offset, length = piece
        is_inside = 0 < length <= PIECE_BYTES and reached.get(name, 0) <= offset <= sizes.get(name, 0) - length
        if not is_inside:
            return f"it holds a piece of {name[:_NAME_MAX]!r} that is none of it"
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

        Nothing is made where that one was removed meanwhile, as by what puts a host back, nor where the entries can't
        be: they come from another host.
        """
        target = Path(path)
        if why := why_not_carried(entries):
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
        try:
            plain = zlib.decompressobj().decompress(content[1:], PIECE_BYTES) if content[:1] == _PACKED else content[1:]
        except zlib.error:
            raise OSError(errno.EINVAL, "the piece can't be unpacked", name) from None
        if name not in making.sizes or not 0 <= offset <= making.sizes[name] - len(plain):
            raise OSError(errno.EINVAL, "the piece is none of the folder", name)
        making.bytes_left -= len(plain)  # by several threads: none of which adds anything
        if making.bytes_left < 0:
            raise OSError(errno.EFBIG, "more has come than was said", name)
        handle = os.open(making.path / name, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            left = memoryview(plain)
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
        shutil.rmtree(self._folders.pop(token).path, ignore_errors=True)


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
