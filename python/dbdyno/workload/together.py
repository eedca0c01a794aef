"""One load that several hosts offer: started at one moment, by offsets of their clocks measured just before.

Each host runs ``dbdyno-load`` with its share of clients and rate. All connect and warm up; then one moment is named to
each on its own clock. Until the last is done nothing is asked of any host that has a part in it. If one is lost, or its
load fails, all of it ends: what the others did was another load.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from threading import Event
from typing import Any, Self

from dbdyno.errors import HostError, TrialError
from dbdyno.hosts.carried import quiet
from dbdyno.hosts.clock import Offset, apart
from dbdyno.hosts.connect import Connected
from dbdyno.workload.client_host import ClientHost
from dbdyno.workload.merged import Clocks

LEAD_NS_MIN = 200_000_000  # from naming the start to the start
LEAD_ROUND_TRIPS = 5
LEAD_CALLS = 3  # times as long as it takes to start a program on all of them
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Asked:
    """What hosts are to offer together."""

    each: Mapping[str, Mapping[str, Any]]  # host -> what ``client_side`` is asked for there
    limit_seconds: float


@dataclass(frozen=True)
class Offered:
    """What it came to, by the clock of the machine that the server is on."""

    replies: Mapping[str, Mapping[str, Any]]  # host -> the texts of its results
    start_ns: int
    before: Clocks
    after: Clocks

    def to_dict(self) -> dict[str, Any]:
        """As it goes to another machine, by way of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """As it has come."""
        clocks = [
            Clocks(one["at_ns"], {name: Offset(**offset) for name, offset in one["offsets"].items()})
            for one in (given["before"], given["after"])
        ]
        return cls(given["replies"], given["start_ns"], *clocks)


@dataclass(frozen=True)
class Together:
    """Hosts that can offer a load to a server on this machine, or on another host."""

    connected: Connected
    server: str = ""  # the host that the server is on, nothing being asked of it meanwhile either; empty: this machine
    ended: Callable[[], bool] = lambda: False  # whether it is to end before its time
    measuring: Callable[[], AbstractContextManager[object]] = nullcontext  # around the time in which it measures

    def offer(self, asked: Asked) -> Offered:
        """Have the hosts offer a load.

        Raises:
            TrialError: It failed on a host, or one was lost meanwhile.
            HostError: A host was lost before.

        """
        self._see_that_all_are_there(asked.each)
        clients: list[ClientHost] = []
        try:
            clients.extend(self._started(asked))
            start_ns, before = self._wait_for_the_end(clients, asked.limit_seconds)
        finally:
            for client in clients:
                client.end()
        after, _ = self._clocks(asked.each)
        return Offered({client.name: client.result or {} for client in clients}, start_ns, before, after)

    def _see_that_all_are_there(self, names: Collection[str]) -> None:
        """Raise ``HostError`` where a host is gone: without it the load is another one."""
        for name in names:
            if why := self._lost(name):
                inventory = self.connected.inventory.path
                raise HostError(f"{why}; dbdyno hosts up {inventory} once it is back, then go on with --resume")

    def _lost(self, name: str) -> str:
        """Why a host can't go on; empty while it can."""
        if name not in self.connected.lost():
            return ""
        what = "the server's host" if name == self.server else "client host"
        return f"{what} {name} is lost: {self.connected.why_lost().get(name, 'no word from it')}"

    def _started(self, asked: Asked) -> Iterator[ClientHost]:
        """The load on one host after the other, on its way to being ready."""
        news = Event()
        for name, its in asked.each.items():
            yield ClientHost(self.connected.hosts, name, its, news, asked.limit_seconds)

    def _wait_for_the_end(self, clients: Sequence[ClientHost], limit_seconds: float) -> tuple[int, Clocks]:
        """Wait until all are warm, name the start, wait until all are done.

        Returns the start on the clock of the server's machine, and what the hosts' clocks were just before. Raises
        ``TrialError``.
        """
        deadline, names = time.monotonic() + limit_seconds, [client.name for client in clients]
        self._until(clients, lambda client: client.is_ready, deadline)
        before, server_ns = self._clocks(names)
        start_ns = time.monotonic_ns() + server_ns + self._lead_ns(before)
        for client in clients:
            client.start_at(start_ns + before.offsets[client.name].offset_ns)
        with quiet(*names), self.measuring():
            self._until(clients, lambda client: client.is_done, deadline)
        return start_ns, before

    def _until(self, clients: Sequence[ClientHost], reached: Callable[[ClientHost], bool], deadline: float) -> None:
        """Wait until every client has come so far. Raises ``TrialError`` as soon as one can't any more."""
        while True:
            for client in clients:
                if trouble := client.trouble or self._lost(client.name):
                    raise TrialError(trouble)
            if self.ended():
                raise TrialError("the load was ended before its time")
            if trouble := self._lost(self.server):
                raise TrialError(trouble)
            if all(reached(client) for client in clients):
                return
            if time.monotonic() > deadline:
                late = ", ".join(client.name for client in clients if not reached(client))
                raise TrialError(f"the load on {late} was not done in time; it was ended")
            clients[0].wait(_LOOK_SECONDS)

    def _clocks(self, names: Collection[str]) -> tuple[Clocks, int]:
        """What the clocks of hosts are now, beside that of the server's machine, and what that is beside ours, in ns.

        Raises ``HostError`` where one can't be known.
        """
        needed = [*names, *filter(None, [self.server])]
        offsets = self.connected.offsets(needed)
        for name in needed:
            if name not in offsets:
                raise HostError(f"host {name} has no ssh, so its clock can't be compared with others'")
        if not self.server:
            return Clocks(time.monotonic_ns(), {name: offsets[name] for name in names}), 0
        there = offsets[self.server]
        beside = {name: apart(offsets[name], there) for name in names}
        return Clocks(time.monotonic_ns() + there.offset_ns, beside), there.offset_ns

    def _lead_ns(self, clocks: Clocks) -> int:
        """How far from now the start is to be: five round trips, and time for what names it to be started there."""
        for _ in range(2):  # who was asked nothing for a while answers later once
            begun = time.monotonic_ns()
            for name in clocks.offsets:
                self.connected.hosts.start(name, ("true",))
            calls = time.monotonic_ns() - begun
        trips = [LEAD_ROUND_TRIPS * one.round_trip_ns_min for one in clocks.offsets.values()]
        return max(LEAD_NS_MIN, LEAD_CALLS * calls, *trips)
