"""Whether another user of this machine could change what a path leads to: what it says may be run with our rights."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

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
        found = place.lstat()
        if found.st_uid not in trusted_users():
            return f"{place} belongs to another user (uid {found.st_uid}); have it in a place of your own"
        if stat.S_ISDIR(found.st_mode) and _lets_others_replace(found):
            return f"{place} can be written by others, who could replace what is in it; chmod go-w {place}"
        if stat.S_ISREG(found.st_mode) and others_write(found):
            return f"{place} can be written by others; chmod go-w {place}"
    return ""


def _lets_others_replace(folder: os.stat_result) -> bool:
    """Whether others may rename what is in a folder."""
    return others_write(folder) and not folder.st_mode & stat.S_ISVTX


def others_write(found: os.stat_result) -> bool:
    """Whether others may write. A group with the number of its only user is that user's own (umask 002)."""
    return bool(found.st_mode & (stat.S_IWOTH if found.st_gid == found.st_uid else _GROUP_OR_OTHERS))


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
