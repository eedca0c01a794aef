"""Prepared data that outlives its run: kept in the state folder by key, whole or not at all, within a limit.

An image is a folder named by its key: ``image.json``, which says what it is and the SHA-256 of all beside it, and
either ``content`` (a disk's blocks, a sparse file; ``content-2`` of a second) or ``tree`` (files). It is made under
another name, synced, and renamed; what is found changed is never used. Only a run that holds the lock of the state
folder writes here.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError, UserError
from dbdyno.model.quantity import size_bytes
from dbdyno.stack.space import bytes_on_disk
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import RemoveTree
from dbdyno.store.synced import sync
from dbdyno.study.units import format_bytes
from dbdyno.system.files import blocks
from dbdyno.system.state import make_state_folder, new_token, state_folder

LIMIT_VARIABLE = "DBDYNO_IMAGES_MAX"
LIMIT_BYTES, LIMIT_SHARE = 20 * 1024**3, 0.1  # unless the user says otherwise: so much, but no more of the free space
RECORD, PARTIAL = "image.json", ".part-"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Kept:
    """An image in the cache."""

    path: Path
    about: str
    sha256: str
    seconds: float  # that preparing it took

    @property
    def key(self) -> str:
        """What it is found by."""
        return self.path.name

    @property
    def bytes(self) -> int:
        """Room it takes on disk."""
        return bytes_on_disk(self.path)

    @property
    def used_at(self) -> float:
        """When it was last used, in seconds since 1970."""
        return (self.path / RECORD).stat().st_mtime

    def shown(self) -> dict[str, Any]:
        """All of it, as ``dbdyno images --json`` has it."""
        return {"key": self.key, "about": self.about, "bytes": self.bytes, "prepared_in_seconds": self.seconds,
                "used_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.used_at))}  # fmt: skip


def images_folder() -> Path:
    """Where the images lie."""
    return state_folder() / "images"


def kept_images() -> list[Kept]:
    """Every whole image, the one used last first."""
    found = [kept for path in images_folder().glob("[!.]*") if (kept := _read(path))]
    return sorted(found, key=lambda one: -one.used_at)


def limit_bytes() -> int:
    """What all images together may take. Raises ``UserError`` where the user's own limit is none."""
    given = os.environ.get(LIMIT_VARIABLE)
    if given is None:
        free = shutil.disk_usage(make_state_folder()).free + sum(one.bytes for one in kept_images())
        return min(LIMIT_BYTES, round(LIMIT_SHARE * free))
    try:
        return size_bytes(given) if given != "0" else 0
    except ValueError as error:
        raise UserError(f"{LIMIT_VARIABLE}: {error}") from None


def known(key: str) -> Kept | None:
    """The image of a key, as its record has it; it was not looked at."""
    return _read(images_folder() / key)


def find(key: str) -> Kept | None:
    """The image of a key, used just now; ``None`` where there is none. Removes a damaged one, with ``TrialError``."""
    kept = known(key)
    if kept is None:
        return None
    if digest(kept.path) != kept.sha256:
        remove(kept.path)
        raise TrialError(f"the image {key[:12]} was damaged; it is removed and prepared anew")
    os.utime(kept.path / RECORD)
    return kept


@contextmanager
def adding(key: str, about: str, seconds: float, journal: Journal) -> Iterator[Path]:
    """A folder to put an image into; at the end it is in the cache, instead of what was there. Make room first."""
    with _new_part(journal) as part:
        yield part
        record = {"about": about, "sha256": digest(part), "seconds": round(seconds, 3)}
        (part / RECORD).write_text(json.dumps(record), encoding="utf-8")
        _count(part, key)


@contextmanager
def arriving(key: str, sha256: str, needed_bytes: int, using: set[str], journal: Journal) -> Iterator[Path]:
    """Room for an image of another host: where it is to be copied to. At the end it is in the cache, as of ``adding``.

    Raises ``TrialError`` where there is no room, or where what has arrived is not the one of this SHA-256.
    """
    make_room(needed_bytes, using)
    with _new_part(journal) as part:
        yield part / key
        arrived = _read(part / key)
        if arrived is None or not sha256 == arrived.sha256 == digest(arrived.path):
            raise TrialError("the prepared data did not arrive as it was sent")
        _count(arrived.path, key)


@contextmanager
def _new_part(journal: Journal) -> Iterator[Path]:
    part = images_folder() / f"{PARTIAL}{new_token()}"
    with journal.undoing(RemoveTree(str(part))):
        _sweep(but=part)
        part.mkdir(parents=True, mode=0o700)
        yield part


def _count(part: Path, key: str) -> None:
    """From now on a whole image counts, in the place of that of its key which was there."""
    _sync_all(part)
    with contextlib.suppress(FileNotFoundError):
        remove(images_folder() / key)
    part.rename(images_folder() / key)
    sync(images_folder())


def remove(path: Path) -> None:
    """Remove an image: at once it is no longer found, whatever interrupts the rest."""
    away = images_folder() / f"{PARTIAL}{new_token()}"
    path.rename(away)
    shutil.rmtree(away)


def digest(folder: Path) -> str:
    """SHA-256 over names and bytes of all in a folder but its record; zeros count as holes, as a copy may make them."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name == RECORD and path.parent == folder:
            continue
        regular = path.is_file() and not path.is_symlink()
        what = path.stat().st_size if regular else str(path.readlink()) if path.is_symlink() else None
        found.update(json.dumps([str(path.relative_to(folder)), what]).encode())
        if regular:
            for offset, block in blocks(path, _BLOCK_BYTES):
                found.update(offset.to_bytes(8, "little"))
                found.update(block)
    return found.hexdigest()


def _read(path: Path) -> Kept | None:
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        return Kept(path, str(record["about"]), str(record["sha256"]), float(record["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_room(needed: int, using: set[str]) -> None:
    """Remove what was used longest ago until ``needed`` bytes fit, but nothing that this run is ``using``.

    Raises ``TrialError`` where they don't.
    """
    limit = limit_bytes()
    if needed > limit:
        raise TrialError(
            f"the image takes {format_bytes(needed)}, more than all may ({format_bytes(limit)}; {LIMIT_VARIABLE})"
        )
    kept = kept_images()
    taken = sum(one.bytes for one in kept)
    for one in reversed(kept):
        if taken + needed <= limit:
            return
        if one.key not in using:
            taken -= one.bytes
            remove(one.path)
    if taken + needed > limit:
        raise TrialError(f"the images in use leave no room for {format_bytes(needed)} more ({LIMIT_VARIABLE})")


def _sweep(but: Path) -> None:
    """Remove what a killed dbdyno left half-made, and images whose record is none."""
    for path in images_folder().glob("*") if images_folder().is_dir() else ():
        if path != but and (path.name.startswith(PARTIAL) or _read(path) is None):
            shutil.rmtree(path, ignore_errors=True)


def _sync_all(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        if not path.is_symlink():
            sync(path)
