"""The ssh connections that are kept while a study runs over hosts: by them a lost host is noticed, without Ray.

A beat is an empty line, which the agent answers. A host is lost once its connection ends, or it answers no beat for
``LOST_SECONDS`` during which this process itself was awake: one that was stopped takes nobody for lost.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.answers import Beaten, Facts, Guarding, LeftBehind, PutBack, RayStarted, Watched
from dbdyno.hosts.bring_up import node_of, start_question
from dbdyno.hosts.bundle import our_digest
from dbdyno.hosts.carried import Guarded, is_anything_measured
from dbdyno.hosts.channel import ANSWER_SECONDS, Channel
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.node import START_SECONDS
from dbdyno.hosts.reach import offsets, reach
from dbdyno.hosts.with_ray import RayHosts

T = TypeVar("T")
HERE = "this machine"  # where Ray's head is; no host has such a name
LOST_SECONDS = 4.0
_LOOK_SECONDS = 0.25
_BEAT_SECONDS = 1.0


class _Line:
    """One host's connection: beats and questions by turns."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.turn = threading.Lock()
        self.why = ""  # it is lost; empty while it is not
        self._asked = False  # a beat, that is still to be answered
        self._next_beat = 0.0
        self._silent_seconds = 0.0

    def beat(self, passed_seconds: float) -> None:
        """Send a beat where it is time for one; take the answer where it has come."""
        now = time.monotonic()
        try:
            if self.channel.has_more():
                self.channel.answer(Beaten, _BEAT_SECONDS)  # where nothing was asked, it is its last word: an error
                if not self._asked:
                    raise HostError(f"{self.channel.name}: has answered what was not asked")  # noqa: TRY301  (as above)
                self._asked = False
            if not self._asked and now >= self._next_beat:
                self.channel.send(b"\n", _BEAT_SECONDS)
                self._asked, self._next_beat, self._silent_seconds = True, now + _BEAT_SECONDS, 0.0
            elif self._asked:
                self._silent_seconds += passed_seconds
        except HostError as error:
            self.why = str(error)
        if self._silent_seconds > LOST_SECONDS:
            self.why = f"{self.channel.name}: has not answered for {self._silent_seconds:.0f} s"

    def answered(self) -> None:
        """Take the answer to a beat that was asked for, so that the next one is to a question. Raises ``HostError``."""
        if self._asked:
            self.channel.answer(Beaten, LOST_SECONDS)
            self._asked = False


class Kept:
    """Connections to agents, watched by a thread; leaving the context ends both."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._lines = {name: _Line(channel) for name, channel in channels.items()}
        self._ending, self._closing = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="hosts", daemon=True)
        self._thread.start()

    def lost(self) -> dict[str, str]:
        """The hosts that are lost, and why each is; one stays so until it is reached ``again``."""
        return {name: line.why for name, line in self._lines.items() if line.why}

    def let_go(self, host: str) -> None:
        """End the connection to a host that is lost, as far as it still stands."""
        self._lines[host].channel.close()

    def again(self, host: str, channel: Channel) -> None:
        """Have a host that was lost watched by another connection. Raises ``HostError`` once all of them are closed."""
        with self._closing:
            if self._ending.is_set():
                raise HostError(f"{host}: it was back only when all had ended")
            self._lines[host] = _Line(channel)

    def ask(self, host: str, question: Mapping[str, Any], kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """Ask an agent. Raises ``HostError`` where the host is lost, or what it answers is an error."""
        line = self._lines[host]
        with line.turn:
            self._refuse_lost(line)
            line.answered()
            return line.channel.ask(question, kind, seconds)

    def offsets(self, hosts: Collection[str] | None = None) -> dict[str, dict[str, Offset]]:
        """Host -> clock -> how far it is from ours, of all (or of these) that are not lost, one after the other."""
        found = {}
        for name, line in self._lines.items():
            if hosts is not None and name not in hosts:
                continue
            with line.turn:
                if not line.why:
                    line.answered()
                    found[name] = offsets(line.channel)
        return found

    def release(self) -> None:
        """Have each host that is not lost put back, and wait for it. Raises ``HostError`` with what could not be."""

        def do(host: str) -> str:
            try:
                said = self.ask(host, {"do": "release"}, PutBack)
            except HostError as error:
                return str(error)
            return "" if said.whole else f"{host}: {'; '.join(said.sentences())}"

        with ThreadPoolExecutor(len(self._lines) or 1) as pool:
            problems = [one for one in pool.map(do, self._lines.keys() - self.lost().keys()) if one]
        if problems:
            raise HostError("\n".join([*problems, "dbdyno restore --hosts puts back what is left"]))

    def close(self) -> None:
        """End the watch and the connections, upon which hosts put themselves back."""
        with self._closing:
            self._ending.set()
        self._thread.join()
        for line in self._lines.values():
            line.channel.close()

    def _refuse_lost(self, line: _Line) -> None:
        if line.why:
            raise HostError(line.why)

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._ending.wait(_LOOK_SECONDS):
            now = time.monotonic()
            passed, before = min(now - before, 2 * _LOOK_SECONDS), now
            for line in list(self._lines.values()):
                if not line.why and line.turn.acquire(blocking=False):  # else it is being asked something
                    try:
                        line.beat(passed)
                    finally:
                        line.turn.release()


# What makes a host one to work on: it is reached, has this very dbdyno, is put back, and runs a node of Ray.


class Ask(Protocol):
    """Ask one host, as ``Channel.ask`` does."""

    def __call__(self, question: Mapping[str, Any], kind: type[T], /) -> T:
        """Return its answer, of that kind. Raises ``HostError``."""


@dataclass(frozen=True)
class Reached:
    """A host with this very dbdyno on it."""

    channel: Channel
    address: str  # at which ssh arrives there
    machine: str  # see ``facts``


def reached(inventory: Inventory, name: str, host: HostSection) -> Reached:
    """The agent of a host that has ssh. Raises ``HostError``, also where the dbdyno there is not this one."""
    channel = reach(inventory, name, host, None)
    try:
        return _as_it_is(channel, host, inventory.path)
    except BaseException:
        channel.close()
        raise


def _as_it_is(channel: Channel, host: HostSection, inventory: Path) -> Reached:
    facts = channel.ask({"do": "facts", "ray_folder": host.ray_folder}, Facts)
    if facts.digest != our_digest():
        raise HostError(f"{channel.name}: another dbdyno is there; dbdyno hosts up {inventory} puts this one there")
    return Reached(channel, facts.ssh_to, facts.machine)


def held(ask: Ask) -> tuple[Guarded, str]:
    """Have a host watch its Ray, and be put back once its connection ends; what its work is known by, Ray's folder.

    Raises ``HostError``.
    """
    watched, guarding = ask({"do": "watch"}, Watched), ask({"do": "guard"}, Guarding)
    return Guarded(guarding.token, guarding.folder), watched.ray.folder


# Lost hosts are tried again for as long as a study or a sweep goes on over the others, each by a thread of its own.
#
# A host is worked on again once ssh reaches it, the same dbdyno is there, what it was at has been put back, and it has
# a node of Ray, which is started where there is none. Nothing is asked of any other host for it. Where this machine is
# one of the hosts, no attempt is begun while anything is measured.


PAUSE_SECONDS, PAUSE_MAX_SECONDS = 5.0, 60.0  # before the first attempt, and at most; each is twice the one before
_TRY_SECONDS = 0.25
_END_SECONDS = 2.0  # an attempt that takes longer to end is left to itself: it changes nothing any more


class Rejoining:
    """Tries again what is lost, from entering to leaving."""

    def __init__(self, inventory: Inventory, kept: Kept, hosts: RayHosts, *, measured_here: bool) -> None:
        self._inventory, self._kept, self._hosts = inventory, kept, hosts
        self._measured_here = measured_here
        self._why: dict[str, str] = {}  # it is not back yet, by the last attempt
        self._pauses: dict[str, float] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        self._start("hosts", self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        until = time.monotonic() + _END_SECONDS
        for thread in list(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def why_not(self) -> Mapping[str, str]:
        """Why hosts that are lost are not back yet, of those that were tried."""
        return dict(self._why)

    def _start(self, name: str, do: Callable[..., None], *given: str) -> None:
        self._threads[name] = threading.Thread(target=do, args=given, name=f"{name} again", daemon=True)
        self._threads[name].start()

    def _watch(self) -> None:
        """Have each host that is lost tried; none any more once Ray's head is lost, as there is no cluster then."""
        while not self._ending.wait(_TRY_SECONDS):
            lost = self._kept.lost()
            if HERE in lost:
                return
            for name in lost:
                if name not in self._threads or not self._threads[name].is_alive():
                    self._start(name, self._until_back, name)

    def _until_back(self, name: str) -> None:
        """Try at growing intervals, also from one loss of the host to the next."""
        while name in self._kept.lost():
            pause = self._pauses.get(name, PAUSE_SECONDS)
            if self._ending.wait(pause):
                return
            self._pauses[name] = min(2 * pause, PAUSE_MAX_SECONDS)
            while self._measured_here and is_anything_measured():
                if self._ending.wait(_TRY_SECONDS):
                    return
            try:
                self._try(name)
            except DbdynoError as error:
                self._why[name] = str(error)
            else:
                self._why.pop(name, None)

    def _try(self, name: str) -> None:
        """Have a host worked on again. Raises ``DbdynoError`` where that can't be yet, nothing being changed here."""
        self._kept.let_go(name)  # where the old connection still stands, the host begins to put itself back
        found = reached(self._inventory, name, self._inventory.hosts[name])
        try:
            self._see_that_it_is_put_back(name, found.channel)
            self._see_that_ray_is_there(name, found)
            work, folder = held(found.channel.ask)
            self._hosts.again(name, work, folder)
            self._kept.again(name, found.channel)
        except BaseException:
            found.channel.close()
            raise

    def _see_that_it_is_put_back(self, name: str, channel: Channel) -> None:
        """Undo what killed programs left. Raises ``HostError`` while the guard of before is at it."""
        question = {"do": "restore", "token": self._hosts.work_of(name).token}
        said = channel.ask(question, LeftBehind, 2 * ANSWER_SECONDS)
        if not said.over:
            raise HostError(f"{name}: is being put back")
        if not said.whole:
            raise HostError(f"{name}: {'; '.join(said.sentences())}; dbdyno restore --hosts {self._inventory.path}")

    def _see_that_ray_is_there(self, name: str, found: Reached) -> None:
        """Start its node as ``up`` does, where there is none. Raises ``DbdynoError``."""
        with clusters.only_one(self._inventory.cluster.name):
            cluster = clusters.known(self._inventory.cluster.name)
            if cluster is None:
                raise HostError(f"{name}: its cluster was brought down")
            node = node_of(cluster, self._inventory, name, self._inventory.hosts[name].address or found.address)
            found.channel.ask(start_question(node, cluster.token), RayStarted, 2 * START_SECONDS)
