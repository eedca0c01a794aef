"""Prepared data on a host under test, before its blocks: which it needs and has, making it, taking in another host's.

What is sent is read where it is kept; only a host that makes or takes in something has work to do.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.plan.plan import Plan
from dbdyno.run.fleet.request import Request
from dbdyno.run.host_program import Send
from dbdyno.run.images import CachedImage, Images, Wanted, arriving, find, known, wanted_images
from dbdyno.run.ports import Ports
from dbdyno.stack.erase.guard import Erasing
from dbdyno.stack.undo.log import Journal
from dbdyno.system.interrupt import Interrupted, interruptible

TASKS = frozenset({"images", "prepare", "take"})
_LOOK_AGAIN_SECONDS = 0.05


@dataclass(frozen=True)
class HostImage:
    """An image that a host needs, as the host says it."""

    key: str
    about: str
    depends_on: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""  # empty: it is not there
    path: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class ImageTask:
    """One of ``TASKS``, on this host."""

    request: Request
    plan: Plan
    erase: frozenset[str]
    send: Send
    ports: Ports

    def do(self) -> list[HostImage]:
        """Do it; what the host then has of what it needs. Nothing where a signal ended it."""
        wanted = wanted_images(self.plan.makers(), self.ports)
        journal = Journal(f"data of a study on several hosts, as {self.request.host}")
        try:
            with suppress(Interrupted), interruptible(self._say):
                if self.request.task == "images":
                    return [self._kept_image(image) for image in wanted]
                if self.request.task == "prepare":
                    self._prepare(journal, wanted)
                else:
                    self._take(journal, {image.key for image in wanted})
                return [_host_image(image, known(image.key)) for image in wanted]
        finally:
            journal.close()
        return []

    def _say(self, text: str) -> None:
        self.send({"say": text})

    def _kept_image(self, image: Wanted) -> HostImage:
        """What is kept, proved to be whole; nothing where kept data are not wanted."""
        try:
            return _host_image(image, None if self.request.fresh_images else find(image.key))
        except (TrialError, OSError) as error:
            self._say(str(error))
            return _host_image(image, None)

    def _prepare(self, journal: Journal, wanted: list[Wanted]) -> None:
        """Make an image, of which only what is kept stays."""
        spec = next(image.spec for image in wanted if image.key == self.request.image)
        fresh, specs = self.request.fresh_images, self.plan.makers()
        with Images(journal, Erasing(self.erase), self._say, specs=specs, fresh=fresh, ports=self.ports) as images:
            images.of(spec)

    def _take(self, journal: Journal, using: set[str]) -> None:
        """Have an image copied here."""
        request = self.request
        with arriving(request.image, request.image_sha256, request.image_bytes, using, journal) as into:
            self.send({"into": str(into)})
            while not into.exists():  # it comes whole or not at all
                time.sleep(_LOOK_AGAIN_SECONDS)


def _host_image(image: Wanted, kept: CachedImage | None) -> HostImage:
    if kept is None:
        return HostImage(image.key, image.about, image.depends_on)
    return HostImage(image.key, image.about, image.depends_on, kept.sha256, str(kept.path), kept.bytes)
