"""Whether a run folder may be written to, or obeyed: it is ours, nobody else can change it, no link leads away."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import UserError
from dbdyno.system.files import others_write, trusted_users

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = 0


def make_folder(path: Path) -> None:
    """Make a run folder and what lacks above it, writable by no others whatever the umask. Raises ``OSError``."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o755)
    path.mkdir(mode=0o755, exist_ok=True)


def see_that_it_is_ours(path: Path) -> None:
    """Raise ``UserError`` where a run folder or anything in it is another user's to change. Raises ``OSError``.

    It is asked before a run folder is written to, and before what it holds is mounted or run with our rights: its study
    names programs, its kept states hold filesystems. Reading is another matter: who writes a report only reads, never
    through a link, and may read anybody's folder.
    """
    remedy = "name a folder of your own, or have its owner run dbdyno"
    trusted = trusted_users()
    for place in dict.fromkeys([path.lstat(), path.stat()]):
        if place.st_uid not in trusted:
            raise UserError(f"{path} belongs to another user (uid {place.st_uid}), who could change it; {remedy}")
    _see_that_no_other_writes(path, path.stat(), remedy)
    above = path.resolve().parent
    mode = above.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise UserError(f"{above} can be written by everybody, so {path} can be replaced; chmod o-w it, or {remedy}")
    for entry in _entries(path):
        if entry.is_symlink():
            raise UserError(f"{entry.path} is a link; dbdyno writes to no run folder that holds one: remove it")
        found = entry.stat(follow_symlinks=False)
        if found.st_uid not in trusted:
            raise UserError(f"{entry.path} belongs to another user (uid {found.st_uid}); {remedy}")
        _see_that_no_other_writes(Path(entry.path), found, remedy)
    trials = path / "trials"
    if os.path.lexists(trials) and not trials.is_dir():
        raise UserError(f"{trials} is no folder; put it back from a copy, or remove it")


def _see_that_no_other_writes(path: Path, found: os.stat_result, remedy: str) -> None:
    """Raise ``UserError`` where everybody may write to a file or a folder, or, where we are root, another group."""
    if found.st_mode & stat.S_IWOTH:
        raise UserError(f"{path} can be written by everybody; chmod o-w it, or {remedy}")
    if os.geteuid() == _ROOT and others_write(found):
        raise UserError(f"{path} can be written by the group {found.st_gid}; chmod g-w it, or {remedy}")


def _entries(path: Path) -> "Iterator[os.DirEntry[str]]":
    """Everything below a run folder, a folder before what lies in it."""
    folders = [str(path)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
