"""Files: read though others may have made them, sealed line by line, sparse, on a full disk, open to others."""

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

# Reading files that others may have made: regular files only, and no more than a limit.


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
            raise OSError(errno.EINVAL, "it is not a regular file", str(path)) from None
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
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_text(path: Path, limit_bytes: int = TEXT_LIMIT_BYTES) -> str:
    """A text file of a person's own, without a byte order mark. Raises ``OSError`` or ``UnicodeDecodeError``."""
    return read_regular(path, limit_bytes).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


# JSON objects on one line with a checksum of their own, so that a line that was changed is known from a whole one.


SEAL = re.compile(rb', "sum": "([0-9a-f]{8})"\}')


def sealed(fields: Mapping[str, object]) -> bytes:
    """Return the object as a line, with its checksum as the last field and its line end."""
    body = json.dumps(fields).encode()[:-1]
    return body + b', "sum": "%08x"}\n' % zlib.crc32(body)


def is_sealed(line: bytes) -> bool:
    """Return whether a line, without its end, is as ``sealed`` wrote it."""
    end = SEAL.search(line, max(0, len(line) - 20))
    return bool(end and end.end() == len(line) and zlib.crc32(line[: end.start()]) == int(end[1], 16))


def file_sha256(path: Path) -> str:
    """Identity of a file's content, wherever it lies. Raises ``OSError``."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Sparse files: what they hold beside zeros.


def blocks(path: Path, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The blocks of a file that are not all zeros, each with its offset; holes are skipped unread."""
    handle = os.open(path, os.O_RDONLY)
    try:
        yield from open_blocks(handle, block_bytes)
    finally:
        os.close(handle)


def open_blocks(handle: int, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The same of an open file."""
    zeros = bytes(block_bytes)
    size, at = os.fstat(handle).st_size, 0
    while at < size:
        try:
            data = os.lseek(handle, at, os.SEEK_DATA)
        except OSError:  # ENXIO: only a hole is left
            return
        at = max(at, data - data % block_bytes)
        block = os.pread(handle, block_bytes, at)
        if block != zeros[: len(block)]:
            yield at, block
        at += block_bytes


# Full disks: how they are known, and the one sentence that is said of them.


FULL = {errno.ENOSPC, errno.EDQUOT}
GO_ON = ", then go on with --resume"
LEFT_BYTES_MIN = 256 * 1024  # with less than this, a program that failed may have failed for it


def is_full(error: OSError) -> bool:
    """Whether a write failed because the filesystem, or the user's share of it, is full."""
    return error.errno in FULL


def why_not_written(error: OSError, place: object = "", then: str = "") -> str:
    """What kept a file from being written; where that is room, the remedy, and what to do ``then``."""
    prefix = f"{error.filename or place}: " if error.filename or place else ""
    remedy = f"; make room on its filesystem{then}" if is_full(error) else ""
    return f"{prefix}{error.strerror or error}{remedy}"


def first_full(folders: Iterable[Path]) -> Path | None:
    """The first of these folders whose filesystem has no room left for this process."""
    for folder in folders:
        with suppress(OSError):
            if shutil.disk_usage(folder).free < LEFT_BYTES_MIN:
                return folder
    return None


# Whether another user of this machine could change what a path leads to: what it says may be run with our rights.


_ROOT = 0
_LINKS_MAX = 40  # as the kernel (path_resolution(7))
_GROUP_OR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def trusted_users() -> frozenset[int]:
    """Return the users whose files may decide what runs with our rights: this one, root, and the caller of sudo."""
    sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == _ROOT else ""
    return frozenset({os.geteuid(), _ROOT, *([int(sudo)] if sudo.isascii() and sudo.isdecimal() else [])})


def why_open_to_others(path: Path) -> str:
    """Say why another user could change or replace a file or folder, with the remedy; empty where only root could.

    Every folder and link on the way counts, as who may write to a folder may replace what is in it. Raises ``OSError``.
    """
    for place in _places(path):
        status = place.lstat()
        if status.st_uid not in trusted_users():
            return f"{place} belongs to another user (uid {status.st_uid}); have it in a place of your own"
        if stat.S_ISDIR(status.st_mode) and _lets_others_replace(status):
            return f"{place} can be written by others, who could replace what is in it; chmod go-w {place}"
        if stat.S_ISREG(status.st_mode) and others_write(status):
            return f"{place} can be written by others; chmod go-w {place}"
    return ""


def _lets_others_replace(folder: os.stat_result) -> bool:
    """Whether others may rename what is in a folder."""
    return others_write(folder) and not folder.st_mode & stat.S_ISVTX


def others_write(status: os.stat_result) -> bool:
    """Whether others may write. A group with the number of its only user is that user's own (umask 002)."""
    return bool(status.st_mode & (stat.S_IWOTH if status.st_gid == status.st_uid else _GROUP_OR_OTHERS))


def _places(path: Path) -> Iterator[Path]:
    """Every folder and link that the kernel passes on the way to a path, and what it comes to."""
    here, links = Path("/"), 0
    left = list(path.absolute().parts[1:])
    yield here
    while left:
        part = left.pop(0)
        if part == "..":
            here = here.parent
            continue
        place = here / part
        yield place
        if not place.is_symlink():
            here = place
            continue
        links += 1
        if links > _LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = place.readlink()
        if target.is_absolute():
            here = Path("/")
        left = [*(word for word in target.parts if word != "/"), *left]


# A file that is not there, and one that was meant.


LOOKED_AT_MAX = 1000  # entries of a folder
NEAR_MIN = 0.75  # of the letters are the same


def near_file(path: Path) -> str:
    """``". Did you mean X?"`` with the file of its folder that is called nearly so, or nothing where there is none."""
    try:
        with os.scandir(path.parent) as entries:
            siblings = [
                Path(entry.path) for entry in islice(entries, LOOKED_AT_MAX) if entry.name.endswith(path.suffix)
            ]
    except OSError:
        return ""
    # The ending, which all have, makes none of them more alike.
    stems = {sibling.stem: sibling for sibling in siblings}
    near = get_close_matches(path.stem, stems, n=1, cutoff=NEAR_MIN)
    return f". Did you mean {stems[near[0]]}?" if near else ""
