"""Files that are on the disk when the call returns, whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
