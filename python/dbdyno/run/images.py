"""Prepared data: made once per server, engine, filesystem and data, and the same bytes for every trial.

Each kind of stack has images of its own; what can be kept is kept from run to run (``image_cache``).
"""

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dbdyno import __version__
from dbdyno.errors import TrialError
from dbdyno.model.wording import count
from dbdyno.plan.identity import file_sha256
from dbdyno.plan.plan import Plan
from dbdyno.run import image_cache
from dbdyno.run.ports import HOST, Ports
from dbdyno.servers.user import server_user
from dbdyno.stack.erase.guard import Erasing
from dbdyno.stack.image import Image, KeptImage
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising, StackKind
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.server import DATA
from dbdyno.stack.undo.log import Journal
from dbdyno.study.schema import TrialSpec


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
        alike = (one for one in self._specs if one.stack.kind == spec.stack.kind)
        return next((one for one in alike if self._key_of(one) == key), spec)

    def _make(self, spec: TrialSpec, kind: StackKind[Any], key: str) -> Image:
        with ExitStack() as undoing:
            image: Image = undoing.enter_context(kind.new_image(spec, self._journal))
            if isinstance(image, KeptImage):
                image = self._filled(spec, kind, image, key)
            self._closing.push(undoing.pop_all())
        return image

    def _filled(self, spec: TrialSpec, kind: StackKind[Any], image: KeptImage, planned: str) -> KeptImage:
        key = kept_key(depends_on(spec, planned, self._ports))
        kept = self._kept(key)
        self._using.add(key)
        if kept:
            image = image.loaded(kept.path)
        else:
            self._prepare(spec, kind, image, key)
            kept = image_cache.known(key)
        self._sha256[planned] = kept.sha256 if kept else ""
        image.finish()
        return image

    def _kept(self, key: str) -> image_cache.Kept | None:
        """The kept image of a key, unless it is damaged or none is wanted."""
        try:
            kept = None if self._fresh else image_cache.find(key)
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
        with self._ports.scratch(self._journal) as ground:
            raising = Raising(ground.scratch / "prepare.log", prepare, erase=self._erase, install=True)
            with raised(kind.stack(spec, image, raising).layers, ground) as context:
                prepare(context)
        try:
            self._keep(image, key, about, self._ports.monotonic() - began)
        except (TrialError, OSError) as error:
            self._say(f"the prepared data is not kept for later runs: {error}")

    def _keep(self, image: KeptImage, key: str, about: str, seconds: float) -> None:
        image_cache.make_room(image.kept_bytes(), self._using)
        with image_cache.adding(key, about, seconds, self._journal) as part:
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
    found = dict[str, Wanted]()
    for spec in specs:
        kind = ports.kinds[spec.stack.kind]
        if kind.IS_RAISED:
            on = depends_on(spec, kind.image_key(spec), ports)
            found.setdefault(kept_key(on), Wanted(spec, kept_key(on), about_image(spec, kind), on))
    return list(found.values())


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


# How many images a plan needs: treatments of the same key share one.


def planned_images(plan: Plan) -> list[list[str]]:
    """Return the treatments by the image that they begin with, in the plan's order; none of an external server."""
    found: dict[str, list[str]] = {}
    for id_, spec in plan.specs.items():
        kind = KINDS[spec.stack.kind]
        if kind.IS_RAISED:
            found.setdefault(f"{spec.stack.kind} {kind.planned_key(spec)}", []).append(id_)
    return list(found.values())


def prepared_lines(plan: Plan) -> list[str]:
    """Return ``["", "prepared data: 2 images: t1, t3; t2, t4"]``; nothing where nothing is prepared."""
    images = planned_images(plan)
    if len(images) == 1:
        return ["", "prepared data: 1 image for all treatments"]
    each = "; ".join(", ".join(treatments) for treatments in images)
    return ["", f"prepared data: {count(len(images), 'image')}: {each}"] if images else []
