"""Prepared data: made once per server, engine, filesystem and data, and the same bytes for every trial.

An emulated disk keeps it in memory, as a snapshot of its blocks; elsewhere it is a folder that is copied.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from dbdyno.layers import device_layer, layers
from dbdyno.plan.identity import image_key
from dbdyno.servers.installation import find_server
from dbdyno.stack.data import Image, Tree
from dbdyno.stack.device import PREPARED
from dbdyno.stack.emulated_disk import running_disk
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import raised
from dbdyno.stack.scratch import scratch
from dbdyno.stack.undo import RemoveTree
from dbdyno.state import make_traversable, new_token, scratch_path
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of


class Images:
    """The images of one run; a context that ends their disks and removes their folders."""

    def __init__(self, journal: Journal, erase: frozenset[str], say: Callable[[str], None]) -> None:
        self._journal, self._erase, self._say = journal, erase, say
        self._made: dict[str, Image] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def of(self, spec: TrialSpec) -> Image:
        """The image of a treatment, prepared at first need. Raises ``TrialError`` or ``HostError``."""
        key = image_key(spec, find_server(spec.stack.server).identity)
        made = self._made.get(key)
        if made and made.disk and made.disk.process.poll() is not None:
            self._say("an emulated disk has ended by itself; its data is prepared anew")
            del self._made[key]
        if key not in self._made:
            self._say(f"preparing data: {spec.stack.server}, {spec.stack.engine}, {spec.stack.filesystem or 'here'}")
            self._made[key] = self._prepare(spec)
        return self._made[key]

    def _prepare(self, spec: TrialSpec) -> Image:
        stack = spec.stack
        with ExitStack() as undoing:
            if stack.on_emulated_disk and stack.size is not None:
                disk = undoing.enter_context(running_disk(self._journal, model=stack.device, size=stack.size))
                image = Image(disk, None)
            else:
                folder = scratch_path(new_token())
                undoing.enter_context(self._journal.undoing(RemoveTree(str(folder))))
                make_traversable(folder)
                image = Image(None, Tree(folder / "image"))
            device = device_layer(spec, image, seed=0, erase=self._erase, blank=True)
            with scratch(self._journal) as ground:
                log = ground.scratch / "prepare.log"
                with raised(layers(spec, image, device, log=log, install=True), ground) as stand:
                    assert stand.endpoint is not None and stand.directory is not None  # noqa: S101, PT018
                    workload_of(spec).prepare(stand.endpoint)
            if image.disk:
                image.disk.ask("snapshot", name=PREPARED)
            self._closing.push(undoing.pop_all())
        return image
