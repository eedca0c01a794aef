"""A load that other hosts offer together: started at one moment, counted while all of them were at it, merged.

Each host runs ``dbdyno-load`` with its share of clients and rate. All connect and warm up; then one moment is named to
each on its own clock, by offsets measured just before. Until the last is done nothing is asked of any host. If one is
lost, or its load fails, all of it ends and the trial has failed: what the others did was another load.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.connect import Connected
from dbdyno.hosts.quiet import quiet
from dbdyno.servers.address import Address
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.workload.client_figures import Clocks, client_figures
from dbdyno.workload.client_host import ClientHost
from dbdyno.workload.generator import INTERVAL_MS, Generated
from dbdyno.workload.load import Load
from dbdyno.workload.merged import Part, merged, part_of
from dbdyno.workload.time_limit import limit_seconds

LEAD_NS_MIN = 200_000_000  # from naming the start to the start
LEAD_ROUND_TRIPS = 5
LEAD_CALLS = 3  # times as long as it takes to start a program on all of them
USER = "dbdyno_load"
_LOOK_SECONDS = 0.2
_FILES = ("json", "series", "hlog")


@dataclass(frozen=True)
class FromHosts:
    """The load of one treatment, from client hosts; its data are prepared and checked from this machine."""

    load: Generated[Any]
    connected: Connected

    @property
    def tool(self) -> None:
        """No program but dbdyno's own."""

    def program(self) -> Path:
        """The load generator."""
        return self.load.program()

    def refused(self) -> str:
        """What the load generator has against the load."""
        return self.load.refused()

    def prepare(self, context: StackContext) -> None:
        """Make the data, from this machine. Raises ``TrialError``."""
        self.load.prepare(context)

    def check(self, context: StackContext) -> dict[str, str]:
        """What the tables are. Raises ``TrialError``."""
        return self.load.check(context)

    def run(self, context: StackContext, seed: int, folder: Path) -> Load:
        """Offer the load from all hosts; what each wrote goes to ``folder/clients/HOST``.

        Raises:
            TrialError: It failed on a host, or one was lost meanwhile.
            HostError: A host was lost before.

        """
        self._see_that_all_are_there()
        address = admitted(context.server, self.load.schema)
        clients: list[ClientHost] = []
        try:
            clients.extend(self._started(address, seed))
            start_ns, before = self._wait_for_the_end(clients)
        except TrialError as error:
            ended = how_it_ended(context.server)
            raise TrialError(f"{error}; {ended}" if ended else str(error)) from None
        finally:
            for client in clients:
                client.end()
        after = self._clocks(self.connected.offsets())
        parts = [_kept(client, folder) for client in clients]
        load = merged(parts, start_ns)
        load.result["client_hosts"] = client_figures(parts, before, after, start_ns)
        return load

    @property
    def _names(self) -> list[str]:
        return list(self.load.section.clients_from)

    def _see_that_all_are_there(self) -> None:
        """Raise ``HostError`` where a host is gone: without it the load is another one."""
        for name in self._names:
            if why := self._lost(name):
                inventory = self.connected.inventory.path
                raise HostError(f"{why}; dbdyno hosts up {inventory} once it is back, then go on with --resume")

    def _lost(self, name: str) -> str:
        """Why a host can't go on; empty while it can."""
        if name not in self.connected.lost():
            return ""
        return f"client host {name} is lost: {self.connected.why_lost().get(name, 'no word from it')}"

    def _started(self, address: Address, seed: int) -> Iterator[ClientHost]:
        """The load on one host after the other, on its way to being ready."""
        news = Event()
        for number, name in enumerate(self._names):
            asked = asked_of(self.load, address, seed, (number, len(self._names)))
            yield ClientHost(self.connected.hosts, name, asked, news)

    def _wait_for_the_end(self, clients: Sequence[ClientHost]) -> tuple[int, Clocks]:
        """Wait until all are warm, name the start, wait until all are done.

        Returns the start on this machine's clock and what the hosts' clocks were just before. Raises ``TrialError``.
        """
        deadline = time.monotonic() + limit_seconds(self.load.section)
        self._until(clients, lambda client: client.is_ready, deadline)
        before = self._clocks(self.connected.offsets())
        start_ns = time.monotonic_ns() + self._lead_ns(before)
        for client in clients:
            client.start_at(start_ns + before.offsets[client.name].offset_ns)
        with quiet(*self._names):
            self._until(clients, lambda client: client.is_done, deadline)
        return start_ns, before

    def _until(self, clients: Sequence[ClientHost], reached: Callable[[ClientHost], bool], deadline: float) -> None:
        """Wait until every client has come so far. Raises ``TrialError`` as soon as one can't any more."""
        while True:
            for client in clients:
                if trouble := client.trouble or self._lost(client.name):
                    raise TrialError(trouble)
            if all(reached(client) for client in clients):
                return
            if time.monotonic() > deadline:
                late = ", ".join(client.name for client in clients if not reached(client))
                raise TrialError(f"the load on {late} was not done in time; it was ended")
            clients[0].wait(_LOOK_SECONDS)

    def _clocks(self, offsets: Mapping[str, Offset]) -> Clocks:
        """What the clocks of the client hosts are now. Raises ``HostError`` where one can't be known."""
        for name in self._names:
            if name not in offsets:
                raise HostError(f"client host {name} has no ssh, so its clock can't be compared with this machine's")
        return Clocks(time.monotonic_ns(), {name: offsets[name] for name in self._names})

    def _lead_ns(self, clocks: Clocks) -> int:
        """How far from now the start is to be: five round trips, and time for what names it to be started there."""
        for _ in range(2):  # who was asked nothing for a while answers later once
            begun = time.monotonic_ns()
            for name in self._names:
                self.connected.hosts.start(name, ("true",))
            calls = time.monotonic_ns() - begun
        trips = [LEAD_ROUND_TRIPS * one.round_trip_ns_min for one in clocks.offsets.values()]
        return max(LEAD_NS_MIN, LEAD_CALLS * calls, *trips)


def asked_of(load: Generated[Any], address: Address, seed: int, share: tuple[int, int]) -> dict[str, Any]:
    """What ``client_side`` is asked for; ``share`` is the number of the host, from 0, and how many there are."""
    number, of = share
    files = {"ssl-ca": address.tls.ca, "ssl-cert": address.tls.cert, "ssl-key": address.tls.key}
    known = replace(address, tls=replace(address.tls, ca=None, cert=None, key=None))
    return {
        "argv": ["dbdyno-load", *load.run_argv(known, seed), f"--share={number + 1}/{of}"],
        "environment": {"LC_ALL": "C", **address.environment()},
        "files": {flag: Path(path).read_text(encoding="utf-8") for flag, path in files.items() if path},
    }


def admitted(endpoint: Endpoint, schema: str) -> Address:
    """How client hosts reach the server and log in; on one of dbdyno's own by an account that is made now.

    It goes with the trial's data. Raises ``TrialError``.
    """
    remote = endpoint.remote
    assert remote is not None  # noqa: S101  (a rule of the study format, and what raises the server)
    if endpoint.process is None:
        return remote
    password = secrets.token_urlsafe(32)
    endpoint.control.admit(USER, password, schema)
    return replace(remote, user=USER, password=password)


def _kept(client: ClientHost, folder: Path) -> Part:
    """What a host came to; its files are kept as they are."""
    assert client.result is not None  # noqa: S101  (it is done, without trouble)
    own = folder / "clients" / client.name
    own.mkdir(parents=True, exist_ok=True)
    for name, ending in zip(_FILES, ("load.json", "load.csv", "latency.hlog"), strict=True):
        (own / ending).write_text(client.result[name], encoding="utf-8")
    return part_of(client.name, client.result, INTERVAL_MS * 1_000_000)
