"""Prepared data: made once per server, engine, filesystem and data, and the same bytes for every trial.

Each kind of stack has images of its own; what can be kept is kept from run to run (``image_cache``).
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dbdyno import __version__
from dbdyno.errors import TrialError, UserError
from dbdyno.model.quantity import size_bytes
from dbdyno.run.guest import prepare_in_guest
from dbdyno.run.ports import HOST, Ports
from dbdyno.servers.user import server_user
from dbdyno.stack.erase import Erasing
from dbdyno.stack.kinds.kind import Raising, StackKind
from dbdyno.stack.layer import Image, KeptImage, raised
from dbdyno.stack.layers.server import DATA
from dbdyno.stack.space import bytes_on_disk
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo_log import Journal
from dbdyno.store.parts import sync
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.system.files import blocks, file_sha256
from dbdyno.system.state import make_state_folder, new_token, state_folder

# Prepared data that outlives its run: kept in the state folder by key, whole or not at all, within a limit.
#
# An image is a folder named by its key: ``image.json``, which says what it is and the SHA-256 of all beside it, and
# either ``content`` (a disk's blocks, a sparse file; ``content-2`` of a second) or ``tree`` (files). It is made under
# another name, synced, and renamed; what is found changed is never used. Only a run that holds the lock of the state
# folder writes here.


LIMIT_VARIABLE = "DBDYNO_IMAGES_MAX"
LIMIT_BYTES, LIMIT_SHARE = 20 * 1024**3, 0.1  # unless the user says otherwise: so much, but no more of the free space
RECORD, PARTIAL = "image.json", ".part-"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class CachedImage:
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


def kept_images() -> list[CachedImage]:
    """Every whole image, the one used last first."""
    images = [kept for path in images_folder().glob("[!.]*") if (kept := _read(path))]
    return sorted(images, key=lambda image: -image.used_at)


def limit_bytes() -> int:
    """What all images together may take. Raises ``UserError`` where the user's own limit is none."""
    limit_text = os.environ.get(LIMIT_VARIABLE)
    if limit_text is None:
        free = shutil.disk_usage(make_state_folder()).free + sum(image.bytes for image in kept_images())
        return min(LIMIT_BYTES, round(LIMIT_SHARE * free))
    try:
        return size_bytes(limit_text) if limit_text != "0" else 0
    except ValueError as error:
        raise UserError(f"{LIMIT_VARIABLE}: {error}") from None


def known(key: str) -> CachedImage | None:
    """The image of a key, as its record has it; it was not looked at."""
    return _read(images_folder() / key)


def find(key: str) -> CachedImage | None:
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
            raise TrialError("the prepared data arrived damaged")
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
    checksum = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name == RECORD and path.parent == folder:
            continue
        regular = path.is_file() and not path.is_symlink()
        what = path.stat().st_size if regular else str(path.readlink()) if path.is_symlink() else None
        checksum.update(json.dumps([str(path.relative_to(folder)), what]).encode())
        if regular:
            for offset, block in blocks(path, _BLOCK_BYTES):
                checksum.update(offset.to_bytes(8, "little"))
                checksum.update(block)
    return checksum.hexdigest()


def _read(path: Path) -> CachedImage | None:
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        return CachedImage(path, str(record["about"]), str(record["sha256"]), float(record["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_room(needed: int, using: set[str]) -> None:
    """Remove what was used longest ago until ``needed`` bytes fit, but nothing that this run is ``using``.

    Raises ``TrialError`` where they don't.
    """
    limit = limit_bytes()
    if needed > limit:
        raise TrialError(
            f"the image takes {format_bytes(needed)}, more than all images may take ({format_bytes(limit)}; "
            f"{LIMIT_VARIABLE})"
        )
    kept = kept_images()
    taken = sum(image.bytes for image in kept)
    for image in reversed(kept):
        if taken + needed <= limit:
            return
        if image.key not in using:
            taken -= image.bytes
            remove(image.path)
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


class Images:
    """The images of one run; a context that ends their disks and removes their folders.

    Of ``specs`` that share an image the first one makes it. ``fresh`` uses no kept one.
    """

    def __init__(  # noqa: PLR0913  (what images are made of)
        self,
        journal: Journal,
        erase: Erasing,
        say: Callable[[str], None],
        *,
        specs: Sequence[TrialSpec] = (),
        fresh: bool = False,
        ports: Ports = HOST,
    ) -> None:
        self._specs = specs  # of the run; the first of those that share an image says how it is made
        self._journal, self._erase, self._say, self._fresh, self._ports = journal, erase, say, fresh, ports
        self._made: dict[str, Image] = {}
        self._using: set[str] = set()  # kept images
        self._sha256: dict[str, str] = {}  # of those that are kept, by what they were made by
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def of(self, spec: TrialSpec) -> Image:
        """The image of a treatment, made or loaded at first need. Raises ``TrialError`` or ``HostError``."""
        kind = self._ports.kinds[spec.stack.kind]
        key = kind.image_key(spec)
        made = self._made.get(key)
        if made and made.is_gone():
            self._say("an emulated disk has ended by itself; its data is loaded or prepared anew")
            del self._made[key]
        if key not in self._made:
            self._made[key] = self._make(self._maker(spec, key), kind, key)
        return self._made[key]

    def name_of(self, spec: TrialSpec) -> str:
        """What a trial is said to have begun with; empty where nothing was prepared."""
        key = self._key_of(spec)
        return hashlib.sha256(key.encode()).hexdigest()[:12] if isinstance(self._made.get(key), KeptImage) else ""

    def sha256_of(self, spec: TrialSpec) -> str:
        """The SHA-256 of these bytes; empty where they are not kept."""
        return self._sha256.get(self._key_of(spec), "")

    def _key_of(self, spec: TrialSpec) -> str:
        return self._ports.kinds[spec.stack.kind].image_key(spec)

    def _maker(self, spec: TrialSpec, key: str) -> TrialSpec:
        alike = (candidate for candidate in self._specs if candidate.stack.kind == spec.stack.kind)
        return next((candidate for candidate in alike if self._key_of(candidate) == key), spec)

    def _make(self, spec: TrialSpec, kind: StackKind[Any], key: str) -> Image:
        with ExitStack() as undoing:
            image: Image = undoing.enter_context(kind.new_image(spec, self._journal))
            if isinstance(image, KeptImage):
                image = self._filled(spec, kind, image, key)
            self._closing.push(undoing.pop_all())
        return image

    def _filled(self, spec: TrialSpec, kind: StackKind[Any], image: KeptImage, planned: str) -> KeptImage:
        key = kept_key(depends_on(spec, planned, self._ports))
        kept = self._kept(key) if image.outlives_run else None
        self._using.add(key)
        if kept:
            image = image.loaded(kept.path)
        else:
            self._prepare(spec, kind, image, key)
            kept = known(key) if image.outlives_run else None
        self._sha256[planned] = kept.sha256 if kept else ""
        image.finish()
        return image

    def _kept(self, key: str) -> CachedImage | None:
        """The kept image of a key, unless it is damaged or none is wanted."""
        try:
            kept = None if self._fresh else find(key)
        except (TrialError, OSError) as error:
            self._say(str(error))
            return None
        if kept:
            self._say(f"using prepared data: {kept.about} (dbdyno images)")
        return kept

    def _prepare(self, spec: TrialSpec, kind: StackKind[Any], image: KeptImage, key: str) -> None:
        """Make the data of an image, and keep it for later runs if there is room."""
        about = about_image(spec, kind)
        self._say(f"preparing data: {about}")
        began = self._ports.monotonic()
        prepare = self._ports.workload_of(spec).prepare
        if kind.IN_GUEST:
            prepare_in_guest(spec, image, self._journal, self._say)
            self._keep_if_possible(image, key, about, self._ports.monotonic() - began)
            return
        with self._ports.scratch(self._journal) as ground:
            raising = Raising(ground.scratch / "prepare.log", prepare, erase=self._erase, install=True)
            with raised(kind.stack(spec, image, raising).layers, ground) as context:
                prepare(context)
        self._keep_if_possible(image, key, about, self._ports.monotonic() - began)

    def _keep_if_possible(self, image: KeptImage, key: str, about: str, seconds: float) -> None:
        if not image.outlives_run:
            return
        try:
            self._keep(image, key, about, seconds)
        except (TrialError, OSError) as error:
            self._say(f"the prepared data is not kept for later runs: {error}")

    def _keep(self, image: KeptImage, key: str, about: str, seconds: float) -> None:
        make_room(image.kept_bytes(), self._using)
        with adding(key, about, seconds, self._journal) as part:
            image.save(part)


@dataclass(frozen=True)
class Wanted:
    """An image that a plan needs."""

    spec: TrialSpec  # by which it is made
    key: str  # by which it is kept
    about: str
    depends_on: dict[str, Any]


def wanted_images(specs: Sequence[TrialSpec], ports: Ports) -> list[Wanted]:
    """The images of these treatments that can be kept, in order; of treatments that share one, by the first."""
    wanted = dict[str, Wanted]()
    for spec in specs:
        kind = ports.kinds[spec.stack.kind]
        if kind.IS_RAISED:
            on = depends_on(spec, kind.image_key(spec), ports)
            wanted.setdefault(kept_key(on), Wanted(spec, kept_key(on), about_image(spec, kind), on))
    return list(wanted.values())


def depends_on(spec: TrialSpec, planned: str, ports: Ports) -> dict[str, Any]:
    """What an image depends on: beside what it is ``planned`` by, what must not change between two runs or hosts."""
    kind = ports.kinds[spec.stack.kind]
    programs = [ports.workload_of(spec).program(), *map(Path, kind.image_programs(spec))]
    user = server_user()
    return {
        "data": [planned, DATA],
        "dbdyno": __version__,
        "kernel": platform.release(),
        "programs": [file_sha256(path) for path in programs],
        "server": kind.server_build(spec),
        "user": [user.pw_uid, user.pw_gid] if user else [],
    }


def kept_key(on: dict[str, Any]) -> str:
    """What an image that depends on this is kept by."""
    return hashlib.sha256(json.dumps(on).encode()).hexdigest()


def about_image(spec: TrialSpec, kind: StackKind[Any]) -> str:
    """An image in a few words."""
    server = [spec.stack.server, spec.stack.engine] if spec.has_server else []
    return ", ".join([*server, kind.image_place(spec), spec.workload.kind])
