"""Reading files that others may have made: regular files only, and no more than a limit."""

import errno
import os
import stat
from pathlib import Path

MIB = 1024**2
TEXT_LIMIT_BYTES = MIB  # of a file that a person writes
SCRIPT_LIMIT_BYTES = 16 * MIB  # of SQL, which a program may have written


def read_regular(path: Path, limit_bytes: int, *, follow: bool = True) -> bytes:
    """All of a file. Raises ``OSError`` where it is none, is larger, or is a link that is not to be followed."""
    return content_of(open_regular(path, os.O_RDONLY, follow=follow), path, limit_bytes)


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Open a regular file without waiting for it. Raises ``OSError`` where it is none, or a link not to be followed."""
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    try:
        return regular(os.open(path, flags, 0o644), path)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and path.is_symlink():
            raise link_error(path) from None
        if error.errno == errno.ENXIO:  # a pipe that no process reads, or a socket
            raise OSError(errno.EINVAL, "it is no regular file", str(path)) from None
        raise


def content_of(handle: int, path: Path | str, limit_bytes: int) -> bytes:
    """All of an open file, which is closed; ``path`` is what errors call it. Raises ``OSError`` as above."""
    with os.fdopen(handle, "rb", buffering=0) as file:
        # Room for all of the limit would be made for every file; one of /proc says that it has 0 bytes.
        content = file.read(min(os.fstat(handle).st_size, limit_bytes) + 1)
        while len(content) <= limit_bytes and (more := file.read(min(limit_bytes + 1 - len(content), MIB))):
            content += more
    if len(content) > limit_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {limit_bytes // MIB} MiB", str(path))
    return content


def link_error(path: Path) -> OSError:
    """What is raised where a link is not to be followed."""
    return OSError(errno.ELOOP, "it is a link, and links are not followed here", str(path))


def regular(handle: int, path: Path | str) -> int:
    """The handle of an open file; closed where it is of no regular one. Raises ``OSError`` then."""
    try:
        see_that_it_is_regular(handle, path)
    except OSError:
        os.close(handle)
        raise
    return handle


def see_that_it_is_regular(handle: int, path: Path | str) -> None:
    """Raise ``OSError`` where an open file is a folder, a device, a pipe or a socket."""
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


def read_text(path: Path, limit_bytes: int = TEXT_LIMIT_BYTES) -> str:
    """A text file of a person's own, without a byte order mark. Raises ``OSError`` or ``UnicodeDecodeError``."""
    return read_regular(path, limit_bytes).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
