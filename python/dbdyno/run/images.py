"""Prepared data: made once per server, engine, filesystem and data, and the same bytes for every trial.

Each kind of stack has images of its own; what can be kept is kept from run to run (``image_cache``).
"""

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from dbdyno import __version__
from dbdyno.errors import TrialError
from dbdyno.plan.identity import file_sha256
from dbdyno.run import image_cache
from dbdyno.run.ports import HOST, Ports
from dbdyno.stack.erase.guard import Erasing
from dbdyno.stack.image import Image, KeptImage
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

    def _filled(self, spec: TrialSpec, kind: StackKind[Any], image: KeptImage, key: str) -> KeptImage:
        key = kept_key(kind, spec, self._ports.workload_of(spec).program(), key)
        kept = self._kept(key)
        self._using.add(key)
        if kept:
            image = image.loaded(kept)
        else:
            self._prepare(spec, kind, image, key)
        image.finish()
        return image

    def _kept(self, key: str) -> Path | None:
        """The kept image of a key, unless it is damaged or none is wanted."""
        try:
            kept = None if self._fresh else image_cache.find(key)
        except (TrialError, OSError) as error:
            self._say(str(error))
            return None
        if kept:
            self._say(f"using prepared data: {kept.about} (dbdyno images)")
        return kept.path if kept else None

    def _prepare(self, spec: TrialSpec, kind: StackKind[Any], image: KeptImage, key: str) -> None:
        """Make the data of an image, and keep it for later runs if there is room."""
        about = _about(spec, kind)
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


def kept_key(kind: StackKind[Any], spec: TrialSpec, program: Path, key: str) -> str:
    """What an image is kept by: also what must not change between two runs, though it can't within one."""
    hashes = [file_sha256(path) for path in (program, *map(Path, kind.image_programs(spec)))]
    what = [key, DATA, __version__, platform.release(), hashes, *kind.server_build(spec)]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _about(spec: TrialSpec, kind: StackKind[Any]) -> str:
    server = [spec.stack.server, spec.stack.engine] if spec.has_server else []
    return ", ".join([*server, kind.image_place(spec), spec.workload.kind])
