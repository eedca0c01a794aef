"""Files of a run folder: read without following a link, written whole or not at all."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from dbdyno.errors import UserError
from dbdyno.system.files import content_of, link_error, regular

MIB = 1024**2
LIMIT_BYTES = 16 * MIB  # of a part that is JSON or TOML; a trial's has some ten thousand
EVENTS_LIMIT_BYTES = 64 * MIB
TRIALS_LIMIT_BYTES = 64 * MIB  # of the files of all trials that are JSON
_NO_FAULT_OF_THE_FILE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW


class DamageError(UserError):
    """A file of a run folder is not as it was written."""


def damaged(path: Path, why: str, remedy: str = "put it back from a copy of the folder") -> DamageError:
    """What is said of a damaged file."""
    return DamageError(f"{path}: is damaged: {why}; {remedy}")


def why_wrong(error: Exception) -> str:
    """Why a file could not be read, in plain words."""
    return getattr(error, "strerror", None) or str(error)


def unread(path: Path, error: Exception, remedy: str) -> UserError:
    """What is said of a file that could not be read: that it is damaged, unless only its reader lacks something."""
    if isinstance(error, OSError) and error.errno in _NO_FAULT_OF_THE_FILE:
        return UserError(f"{path}: can't be read: {error.strerror}")
    return damaged(path, why_wrong(error), remedy)


def opened(root: Path, part: str) -> int:
    """Open a regular file below a run folder for reading. Raises ``OSError`` where a step of ``part`` is a link."""
    *folders, name = part.split("/")
    handle, path = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), str(root)
    for step in folders:
        path = f"{path}/{step}"
        handle = _step(handle, step, path, _READ | os.O_DIRECTORY)
    path = f"{path}/{name}"
    return regular(_step(handle, name, path, _READ), path)


def _step(folder: int, name: str, path: str, flags: int) -> int:
    """Open ``name`` in an open folder, which is closed."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if (place := Path(path)).is_symlink():
            raise link_error(place) from None
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(folder)


def read_part(root: Path, part: str, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """All of a file below a run folder. Raises ``OSError``."""
    return content_of(opened(root, part), f"{root}/{part}", limit_bytes)


def sum_of(handle: int) -> str:
    """The SHA-256 of an open file, in hexadecimal digits; its place is that of its beginning afterwards."""
    digest = hashlib.sha256()
    os.lseek(handle, 0, os.SEEK_SET)
    while piece := os.read(handle, MIB):
        digest.update(piece)
    os.lseek(handle, 0, os.SEEK_SET)
    return digest.hexdigest()


def see_that_it_is_as_written(sha256: str, recorded: object) -> None:
    """Raise ``ValueError`` where a SHA-256 is another than the one that was recorded, if one was."""
    if recorded not in {None, sha256}:
        raise ValueError("it has been changed since it was written: its SHA-256 is another than the event log's")


def sums_of(root: Path, parts: list[str]) -> dict[str, str]:
    """Name -> SHA-256 of files below a run folder. Raises ``OSError``."""
    sums = {}
    for part in parts:
        handle = opened(root, part)
        try:
            sums[PurePosixPath(part).name] = sum_of(handle)
        finally:
            os.close(handle)
    return sums


# Files that are on the disk when the call returns, whole or not at all.


@contextmanager
def whole_or_not_at_all(path: Path, suffix: str = ".part") -> Iterator[int]:
    """An open new file that takes its name, on the disk, when the context ends well; else nothing of it is left.

    Meanwhile its name has the ``suffix``; what else had that name is gone. No link is followed. An ``OSError`` names
    ``path``.
    """
    partial = path.with_name(path.name + suffix)
    try:
        partial.unlink(missing_ok=True)  # of one that was killed
        handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            yield handle
            os.fsync(handle)
        finally:
            os.close(handle)
        partial.rename(path)
        sync(path.parent)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def write_synced(path: Path, content: bytes) -> None:
    """Write a file. Raises ``OSError``."""
    with whole_or_not_at_all(path) as handle:
        write_all(handle, content)


def write_all(handle: int, content: bytes) -> None:
    """Write everything: the kernel may take less at once, as where the disk is nearly full. Raises ``OSError``."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def append_line(handle: int, line: bytes) -> None:
    """Add a line to an open log, on disk when this returns; where that fails the log is as it was.

    Raises ``OSError``, as where a disk is full: no later line is glued to half of this one.
    """
    before = os.fstat(handle).st_size
    try:
        write_all(handle, line)
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, before)
        raise


def sync(path: Path) -> None:
    """Have the kernel put a file or a folder on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
