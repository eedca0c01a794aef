"""Whether a run folder can be written to: it is ours, no other user can change it, no link in it leads elsewhere."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import UserError

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
    """Raise ``UserError`` where a run folder or what lies in it could have us write elsewhere. Raises ``OSError``.

    Reading is another matter: who writes a report only reads, never through a link, and may read anybody's folder.
    """
    remedy = "name a folder of your own, or have its owner run dbdyno"
    for place in dict.fromkeys([path.lstat(), path.stat()]):
        if place.st_uid not in {os.geteuid(), _ROOT}:
            raise UserError(f"{path} belongs to another user (uid {place.st_uid}), who could change it; {remedy}")
    if path.stat().st_mode & stat.S_IWOTH:
        raise UserError(f"{path} can be written by everybody; chmod o-w it, or {remedy}")
    above = path.resolve().parent
    mode = above.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise UserError(f"{above} can be written by everybody, so {path} can be replaced; chmod o-w it, or {remedy}")
    for entry in _entries(path):
        if entry.is_symlink():
            raise UserError(f"{entry.path} is a link; dbdyno writes to no run folder that holds one: remove it")
        found = entry.stat(follow_symlinks=False)
        if found.st_uid not in {os.geteuid(), _ROOT}:
            raise UserError(f"{entry.path} belongs to another user (uid {found.st_uid}); {remedy}")
    trials = path / "trials"
    if os.path.lexists(trials) and not trials.is_dir():
        raise UserError(f"{trials} is no folder; put it back from a copy, or remove it")


def _entries(path: Path) -> "Iterator[os.DirEntry[str]]":
    """What lies in a run folder, in its ``trials`` and in each trial's folder."""
    folders = [str(path)]
    for depth in range(3):
        below = []
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False) and (depth or entry.name == "trials"):
                        below.append(entry.path)
        folders = below
