"""Before the blocks of a study on several hosts: all that can start from the same prepared data have the same bytes.

An image is prepared on one host. It goes from host to host, each that has it sending it on to one other at a time, and
is proved by its SHA-256 where it arrives: the one that its first host told, which no host may tell otherwise later. A
host whose image depends on something else, or that could not take it in, prepares its own; each trial says with which
bytes it began.
"""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeVar

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts.contract import LieError
from dbdyno.model.printable import short
from dbdyno.model.wording import listed
from dbdyno.run.fleet.asking import messages
from dbdyno.run.fleet.image_tasks import HostImage
from dbdyno.run.fleet.message import OF_IMAGES, Beats, Failed, Gone, ImagesAnswer, Into, Message, Say
from dbdyno.run.fleet.part import HostAccess
from dbdyno.run.fleet.request import Request, Requests
from dbdyno.study.units import format_bytes

_AT_ONCE = 16  # hosts
_MAKERS = 2  # hosts that are asked for an image, one after the other
_TRIES = 2  # to send an image to a host
_PACKED_MAX = 4  # times the room that a disk has for data, at most, are in them where it packs what is written
_RECORD_BYTES = 16 * 1024**2  # that an image has beside its data, at most
_SAY_SECONDS = 10.0  # between two words on how far it is
# What an image depends on, in the words of its users.
_WORDS = {"data": "server", "dbdyno": "dbdyno", "kernel": "kernel", "programs": "dbdyno-load or mkfs",
          "server": "server", "user": "user that servers run as"}  # fmt: skip
T = TypeVar("T")
HostAnswers = Mapping[str, "Sequence[HostImage] | DbdynoError"]


@dataclass
class Sharing:
    """The images of one run, and the hosts that need them."""

    access: HostAccess
    requests: Requests
    say: Callable[[str], None]
    used: frozenset[str]  # the SHA-256 of what trials of this run began with already
    images_max: int  # that a host can need
    data_bytes: int  # that one of them has, as far as the plan shows
    silent_seconds: float  # that a host may say nothing, while it prepares data as well
    idle_seconds: float  # that it may say nothing but that it goes on
    liars: dict[str, str] = field(default_factory=dict)  # host -> what it did
    images: dict[str, dict[str, HostImage]] = field(default_factory=dict)  # key -> host -> what it has of it
    _running: set[tuple[str, str]] = field(default_factory=set)  # host, and what its program is called
    _stopped: bool = False

    def share(self, hosts: Sequence[str]) -> frozenset[str]:
        """Have one image on all hosts that can start from it; the hosts that now have all that they need."""
        answers = self._at_once({name: partial(self._do, self.requests("images", name)) for name in hosts})
        for name, answer in answers.items():
            if isinstance(answer, DbdynoError):
                self.say(f"{answer}; {self._what_then(name)}")
                continue
            for image in answer:  # in the order of the study, not of the answers
                each = self.images[image.key]
                each[name] = each.pop(name)
        self._say_differences(answers)
        self._prepare()
        for key in self.images:
            self._spread(key)
        there = {name for name, answer in answers.items() if not isinstance(answer, DbdynoError)} - self.liars.keys()
        lacking = {name for each in self.images.values() for name, image in each.items() if not image.sha256}
        return frozenset(there - lacking)

    def _note(self, request: Request, images: Sequence[HostImage]) -> None:
        """Note what a host has after a task. Raises ``LieError`` where that is not what it had, made or took."""
        host, is_listing = request.host, request.task == "images"
        if len({image.key for image in images}) != len(images) or len(images) > self.images_max:
            raise LieError(f"{host}: named {len(images)} images of prepared data, and the study has fewer")
        for image in images:
            before = self.images.get(image.key, {}).get(host)
            if not is_listing and before is None:
                raise LieError(f"{host}: named prepared data that it did not need before: {short(image.about)}")
            expected = request.image_sha256 if image.key == request.image else before.sha256 if before else ""
            if expected and image.sha256 not in {"", expected}:
                why = f"reported {image.sha256[:12]} as the SHA-256 of its prepared data, and {expected[:12]} before"
                raise LieError(f"{host}: {why}: {short(image.about)}")
        for image in images:
            self.images.setdefault(image.key, {})[host] = image

    def _what_then(self, host: str) -> str:
        return "it no longer takes part" if host in self.liars else f"{host} prepares its own data"

    def _say_differences(self, answers: HostAnswers) -> None:
        """Say which hosts can't start from the bytes of the first, and what differs."""
        images_by_host = {name: images for name, images in answers.items() if not isinstance(images, DbdynoError)}
        first = next(iter(images_by_host), "")
        for name, images in images_by_host.items():
            pairs = zip(images_by_host[first], images, strict=False)  # the same study asks for them in the same order
            apart = {_WORDS.get(what, short(what, 40)) for own, other in pairs for what in _differences(own, other)}
            if apart:
                differences = listed(sorted(apart))
                self.say(f"{name}: can't use the prepared data of {first}: its {differences} differs")

    def _prepare(self) -> None:
        """Have each image that no host has made on one that needs it; several hosts are at it at once.

        Where that fails another host is asked; what fails there, too, is left to the trials, which say why.
        """
        failed: dict[str, list[str]] = {}

        def make(name: str, keys: Sequence[str]) -> None:
            for key in keys:
                try:
                    self._do(self.requests("prepare", name, image=key))
                except DbdynoError as error:
                    self.say(str(error))
                    failed.setdefault(key, []).append(name)

        for _ in range(_MAKERS):
            makes: dict[str, list[str]] = {}
            for key, each in self.images.items():
                hosts = [name for name in each if name not in failed.get(key, ()) and name not in self.liars]
                if hosts and not any(image.sha256 for image in each.values()):
                    maker = min(hosts, key=lambda name: len(makes.get(name, ())))
                    makes.setdefault(maker, []).append(key)
            self._at_once({name: partial(make, name, keys) for name, keys in makes.items()})

    def _spread(self, key: str) -> None:
        """Send an image from those that have it to those that don't, until all have it or can't."""
        each = self.images[key]
        having = {name: image for name, image in each.items() if image.sha256 and name not in self.liars}
        if not having:
            return
        sha256 = self._chosen([image.sha256 for image in having.values()])
        have = [name for name, image in having.items() if image.sha256 == sha256]
        for name in having.keys() - set(have):
            about = short(having[name].about)
            self.say(f"{name}: has a different copy of the prepared data than {have[0]}, and takes that one: {about}")
        want, tries = [name for name in each if name not in have and name not in self.liars], Counter[str]()
        while want and have:
            pairs = list(zip(have, want, strict=False))
            sent = self._at_once({to: partial(self._send, key, of, to) for of, to in pairs})
            for of, to in pairs:
                want.remove(to)
                if not isinstance(error := sent[to], DbdynoError):
                    have.append(to)
                    continue
                tries[to] += 1
                gone = self.access.lost().keys() | self.liars.keys()
                again = tries[to] < _TRIES and (to not in gone if of in self.liars else not {of, to} & gone)
                self.say(f"{error}; {'it is sent again' if again else self._what_then(to)}")
                want += [to] if again else []
            have = [name for name in (*have[1:], have[0]) if name not in self.access.lost() and name not in self.liars]

    def _chosen(self, there: Sequence[str]) -> str:
        """Which of several contents all are to have: what trials of this run began with, else what most have."""
        counted = Counter(there)
        return max(counted, key=lambda sha256: (sha256 in self.used, counted[sha256]))

    def _send(self, key: str, source: str, target: str) -> None:
        """Send an image from one host to another. Raises ``HostError``."""
        image, said_at = self.images[key][source], monotonic()
        size = format_bytes(image.bytes)
        self.say(f"{target}: copies prepared data from {source}: {short(image.about)} ({size})")

        def reached(done: int, total: int) -> None:
            nonlocal said_at
            if self._stopped:
                raise HostError(f"{target}: did not get its prepared data")
            if monotonic() - said_at > _SAY_SECONDS:
                said_at = monotonic()
                self.say(f"{target}: {100 * done // max(1, total)} % of {size} of prepared data has arrived")

        def copy(into: str) -> None:
            bytes_max = max(_PACKED_MAX * image.bytes, self.data_bytes) + _RECORD_BYTES
            try:
                self.access.hosts.copy(source, image.path, target, into, bytes_max, reached)
            except LieError as error:
                self._lied(source if str(error).startswith(f"{source}: ") else target, error)
                raise HostError(str(error)) from None

        take_request = self.requests("take", target, image=key, image_sha256=image.sha256, image_bytes=image.bytes)
        self._do(take_request, copy)
        if self.images[key][target].sha256 != image.sha256:
            raise HostError(f"{target}: does not have the prepared data that it was sent")

    def _lied(self, host: str, error: LieError) -> None:
        self.liars.setdefault(host, str(error).removeprefix(f"{host}: "))

    def _do(self, request: Request, copy: Callable[[str], None] = lambda _: None) -> list[HostImage]:
        """Have a host do a task; which images it has then, which is noted. Raises ``DbdynoError``."""
        try:
            images = self._answer(request, copy)
            self._note(request, images)
        except LieError as error:
            self._lied(request.host, error)
            raise
        return images

    def _answer(self, request: Request, copy: Callable[[str], None]) -> list[HostImage]:
        with self._started(request) as received:
            for message in received:
                match message:
                    case Say():
                        self.say(f"{request.host}: {message.say}")
                    case Beats():
                        pass
                    case Into():
                        copy(message.into)
                    case Failed():
                        raise HostError(f"{request.host}: {message.error}")
                    case ImagesAnswer():
                        return message.facts.images
                    case Gone():
                        raise HostError(f"{request.host}: {message.why}")
        raise HostError(f"{request.host}: it ended without an answer")

    @contextmanager
    def _started(self, request: Request) -> Iterator[Iterator[Message]]:
        """What a host's program says; it has ended when this is left, the host put back."""
        hosts, host, access = self.access.hosts, request.host, self.access
        process = hosts.start(host, access.argv, stdin=request.to_json(), environment=access.environment_of(host))
        self._running.add((host, process))
        silent, idle = self.silent_seconds, self.idle_seconds
        received = messages(hosts, host, process, OF_IMAGES, silent_seconds=silent, idle_seconds=idle)
        try:
            yield received
        except BaseException:
            with suppress(DbdynoError):
                hosts.signal(host, process, signal.SIGTERM)
            raise
        finally:
            with suppress(DbdynoError):
                for _ in received:
                    pass
            self._running.discard((host, process))

    def _at_once(self, calls: Mapping[str, Callable[[], T]]) -> dict[str, "T | DbdynoError"]:
        """Call all at once; what each returns, or why it doesn't. An interruption ends what runs on the hosts first."""

        def tried(call: Callable[[], T]) -> "T | DbdynoError":
            try:
                return call()
            except DbdynoError as error:
                return error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            futures = {name: pool.submit(tried, call) for name, call in calls.items()}
            try:
                return {name: future.result() for name, future in futures.items()}
            except BaseException:
                self._stop()
                raise

    def _stop(self) -> None:
        self._stopped = True
        for host, process in list(self._running):
            with suppress(DbdynoError):
                self.access.hosts.signal(host, process, signal.SIGTERM)


def _differences(image: HostImage, other: HostImage) -> list[str]:
    return [what for what, value in image.depends_on.items() if other.depends_on.get(what) != value]
