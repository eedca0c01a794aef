"""A load that client hosts offer together: each host's part, from its start to its result.

The host may lie. So what it says is bounded, and is one of the two things that ``client_side.py`` says, or ends the
load.
"""

import json
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from signal import SIGKILL
from threading import Event, Thread
from typing import Any, Self

from dbdyno.errors import DbdynoError, HostError, TrialError
from dbdyno.hosts.connect import Connected
from dbdyno.hosts.contract import Hosts, LieError, Lines, quiet
from dbdyno.hosts.host_side import OUTPUT_BYTES_MAX
from dbdyno.model.printable import joined_lines, short
from dbdyno.servers.contract import Address
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.store.documents import json_object, value_of
from dbdyno.system.child import exit_words
from dbdyno.system.clock import Offset, offset_between
from dbdyno.workload.client_side import RESULTS
from dbdyno.workload.generator import INTERVAL_MS, SAID_MAX, Generated
from dbdyno.workload.load import FILES, LoadResult, limit_seconds, read_load

_ARGV = ("python", "-m", "dbdyno.workload.client_side")
_SAID_MAX = 2000  # characters
_LINES_MAX = 1000  # that it says
# Its last line holds rows and histograms of each tenth of a second.
_BYTES, _BYTES_PER_SECOND, _BYTES_MAX = 64 * 1024**2, 40_000, OUTPUT_BYTES_MAX
_START = re.compile(r"/proc/[0-9]{1,10}/fd/[0-9]{1,10}")


@dataclass(frozen=True)
class _Ready:
    """The load is warm, and waits for the time of its start, which is to be written to ``start``."""

    ready_ns: int
    start: str

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that is no file of a process."""
        if not _START.fullmatch(self.start):
            raise ValueError("start is not a file of a process")


@dataclass(frozen=True)
class _Result:
    """What the load came to."""

    code: int
    said: str
    json: str
    series: str
    hlog: str


class ClientHostLoad:
    """A load on one host. ``news`` is set at each step: ready, and done."""

    def __init__(self, hosts: Hosts, name: str, request: Mapping[str, Any], news: Event, limit_seconds: float) -> None:
        """``limit_seconds`` is what the load may take at most."""
        self.name = name
        self._bytes_max = min(_BYTES_MAX, _BYTES + round(_BYTES_PER_SECOND * limit_seconds))
        self.start_path = ""  # where the time of the start belongs, once the load is ready
        self.result: dict[str, Any] | None = None  # what it came to
        self.trouble = ""  # why it has ended otherwise
        self._hosts, self._news, self._ended = hosts, news, False
        self._process = hosts.start(name, _ARGV, stdin=json.dumps(request).encode())
        # Its question is asked long before the measured window and answered after it.
        Thread(target=self._listen, name=f"load of {name}", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether it waits for the start."""
        return bool(self.start_path)

    @property
    def is_done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.result is not None or bool(self.trouble)

    def start_at(self, time_ns: int) -> None:
        """Name the start on that host's CLOCK_MONOTONIC. Raises ``HostError``."""
        self._hosts.start(self.name, ("tee", self.start_path), stdin=f"{time_ns}\n".encode())

    def wait(self, seconds: float) -> None:
        """Wait for news of any client of the same load, at most so long."""
        self._news.wait(seconds)
        self._news.clear()

    def end(self) -> None:
        """End it, if it still runs and can be reached."""
        if not self._ended:
            with suppress(DbdynoError):
                self._hosts.signal(self.name, self._process, SIGKILL)

    def _listen(self) -> None:
        """Take in what is said there until the end."""
        lines = Lines(self._hosts, self.name, self._process, self._bytes_max, _LINES_MAX, self._bytes_max)
        try:
            for line in lines.read():
                self._take(line)
            self._ended = True
            if lines.code and not self.is_done:
                self.trouble = f"{self.name}: the load ended before its time: {lines.why_ended()}"
        except DbdynoError as error:
            self.trouble = self.trouble or f"{self.name}: {short(str(error).removeprefix(f'{self.name}: '), _SAID_MAX)}"
        finally:
            self.trouble = self.trouble or ("" if self.result else f"{self.name}: sent nothing any more")
            self._news.set()

    def _take(self, line: bytes) -> None:
        """Take in what it says. Raises ``LieError`` where that is nothing that it can say now."""
        try:
            reply = json_object(line, escapes_max=self._bytes_max)
            if "start" in reply and not self.start_path:
                self.start_path = value_of(_Ready, reply).start
                self._news.set()
                return
            result = value_of(_Result, reply)
        except ValueError as error:
            raise LieError(f"{self.name}: what it said is nothing of a load ({short(str(error))})") from None
        if self.is_done:
            raise LieError(f"{self.name}: it said twice what its load came to")
        if result.code == 0:
            self.result = asdict(result)
            return
        why = (
            joined_lines(result.said).removeprefix("dbdyno-load: ") or f"dbdyno-load ended ({exit_words(result.code)})"
        )
        self.trouble = f"{self.name}: {short(why, _SAID_MAX)}"


# One load that several hosts offer: started at one moment, by offsets of their clocks measured just before.
#
# Each host runs ``dbdyno-load`` with its share of clients and rate. All connect and warm up; then one moment is named
# to each on its own clock. Until the last is done nothing is asked of any host that has a part in it. If one is lost,
# or its load fails, all of it ends: what the others did was another load.


LEAD_NS_MIN = 200_000_000  # from naming the start to the start
LEAD_ROUND_TRIPS = 5
LEAD_CALLS = 3  # times as long as it takes to start a program on all of them
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class ClientClocks:
    """The hosts' CLOCK_MONOTONIC less this machine's, at one moment of the latter."""

    at_ns: int
    offsets: Mapping[str, Offset]


@dataclass(frozen=True)
class JointLoadRequest:
    """What hosts are to offer together."""

    each: Mapping[str, Mapping[str, Any]]  # host -> what ``client_side`` is asked for there
    limit_seconds: float


@dataclass(frozen=True)
class JointLoad:
    """What it came to, by the clock of the machine that the server is on."""

    replies: Mapping[str, Mapping[str, Any]]  # host -> the texts of its results
    start_ns: int
    before: ClientClocks
    after: ClientClocks

    def to_dict(self) -> dict[str, Any]:
        """As it goes to another machine, by way of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """As it has come."""
        clocks = [
            ClientClocks(clocks["at_ns"], {name: Offset(**offset) for name, offset in clocks["offsets"].items()})
            for clocks in (stored["before"], stored["after"])
        ]
        return cls(stored["replies"], stored["start_ns"], *clocks)


@dataclass(frozen=True)
class Together:
    """Hosts that can offer a load to a server on this machine, or on another host."""

    connected: Connected
    server: str = ""  # the host that the server is on, nothing being asked of it meanwhile either; empty: this machine
    ended: Callable[[], bool] = lambda: False  # whether it is to end before its time
    measuring: Callable[[], AbstractContextManager[object]] = nullcontext  # around the time in which it measures

    def offer(self, request: JointLoadRequest) -> JointLoad:
        """Have the hosts offer a load.

        Raises:
            TrialError: It failed on a host, or one was lost meanwhile.
            HostError: A host was lost before.

        """
        self._see_that_all_are_there(request.each)
        clients: list[ClientHostLoad] = []
        try:
            clients.extend(self._start_loads(request))
            start_ns, before = self._wait_for_the_end(clients, request.limit_seconds)
        finally:
            for client in clients:
                client.end()
        after, _ = self._clocks(request.each)
        return JointLoad({client.name: client.result or {} for client in clients}, start_ns, before, after)

    def _see_that_all_are_there(self, names: Collection[str]) -> None:
        """Raise ``HostError`` where a host is gone: without it the load is another one."""
        for name in names:
            if why := self._why_lost(name):
                inventory = self.connected.inventory.path
                raise HostError(f"{why}; dbdyno hosts up {inventory} once it is back, then go on with --resume")

    def _why_lost(self, name: str) -> str:
        """Why a host can't go on; empty while it can."""
        if name not in self.connected.lost():
            return ""
        role = "the server's host" if name == self.server else "client host"
        return f"{role} {name} is lost: {self.connected.why_lost().get(name, 'no word from it')}"

    def _start_loads(self, request: JointLoadRequest) -> Iterator[ClientHostLoad]:
        """The load on one host after the other, on its way to being ready."""
        news = Event()
        for name, its in request.each.items():
            yield ClientHostLoad(self.connected.hosts, name, its, news, request.limit_seconds)

    def _wait_for_the_end(self, clients: Sequence[ClientHostLoad], limit_seconds: float) -> tuple[int, ClientClocks]:
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

    def _until(
        self, clients: Sequence[ClientHostLoad], reached: Callable[[ClientHostLoad], bool], deadline: float
    ) -> None:
        """Wait until every client has come so far. Raises ``TrialError`` as soon as one can't any more."""
        while True:
            for client in clients:
                if trouble := client.trouble or self._why_lost(client.name):
                    raise TrialError(trouble)
            if self.ended():
                raise TrialError("the load was ended before its time")
            if trouble := self._why_lost(self.server):
                raise TrialError(trouble)
            if all(reached(client) for client in clients):
                return
            if time.monotonic() > deadline:
                late = ", ".join(client.name for client in clients if not reached(client))
                raise TrialError(f"the load on {late} was not done in time; it was ended")
            clients[0].wait(_LOOK_SECONDS)

    def _clocks(self, names: Collection[str]) -> tuple[ClientClocks, int]:
        """What the clocks of hosts are now, beside that of the server's machine, and what that is beside ours, in ns.

        Raises ``HostError`` where one can't be known.
        """
        needed = [*names, *filter(None, [self.server])]
        offsets = self.connected.offsets(needed)
        for name in needed:
            if name not in offsets:
                raise HostError(f"host {name} has no ssh, so its clock can't be compared with others'")
        if not self.server:
            return ClientClocks(time.monotonic_ns(), {name: offsets[name] for name in names}), 0
        server_offset = offsets[self.server]
        beside = {name: offset_between(offsets[name], server_offset) for name in names}
        return ClientClocks(time.monotonic_ns() + server_offset.offset_ns, beside), server_offset.offset_ns

    def _lead_ns(self, clocks: ClientClocks) -> int:
        """How far from now the start is to be: five round trips, and time for what names it to be started there."""
        for _ in range(2):  # who was asked nothing for a while answers later once
            begun = time.monotonic_ns()
            for name in clocks.offsets:
                self.connected.hosts.start(name, ("true",))
            calls = time.monotonic_ns() - begun
        trips = [LEAD_ROUND_TRIPS * offset.round_trip_ns_min for offset in clocks.offsets.values()]
        return max(LEAD_NS_MIN, LEAD_CALLS * calls, *trips)


# A load that other hosts offer together: each with its share, an account of its own on the server, all merged.


USER = "dbdyno_load"


@dataclass(frozen=True)
class FromHosts:
    """The load of one treatment, from client hosts; its data are prepared and checked from this machine."""

    load: Generated[Any]
    offer: Callable[[JointLoadRequest], JointLoad]  # has the hosts do it, as ``Together.offer``

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

    def check(self, context: StackContext) -> dict[str, Any]:
        """What the tables are. Raises ``TrialError``."""
        return self.load.check(context)

    def run(self, context: StackContext, seed: int, folder: Path) -> LoadResult:
        """Offer the load from all hosts; what each wrote goes to ``folder/clients/HOST``.

        Raises:
            TrialError: It failed on a host, or one was lost meanwhile.
            HostError: A host was lost before.

        """
        address, names = admitted(context.server, self.load.schema), self.load.section.clients_from
        shares = enumerate(names)
        requests = {name: asked_of(self.load, address, seed, (number, len(names))) for number, name in shares}
        try:
            offered = self.offer(JointLoadRequest(requests, limit_seconds(self.load.section)))
        except TrialError as error:
            ended = how_it_ended(context.server)
            raise TrialError(f"{error}; {ended}" if ended else str(error)) from None
        return merged(self.program(), offered, names, folder)


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


def merged(program: Path, offered: JointLoad, names: Sequence[str], folder: Path) -> LoadResult:
    """One load of all hosts, whose files lie as those of a load from one; each host's lie in ``folder/clients/HOST``.

    Raises ``TrialError`` where the files of a host are not whole, or no interval is whole on all.
    """
    folders = [folder / "clients" / name for name in names]
    for own in folders:
        own.mkdir(parents=True, exist_ok=True)
        for text, file in zip(RESULTS, FILES, strict=True):
            (own / file).write_text(offered.replies[own.name][text], encoding="utf-8")
    clocks = folder / "clients" / "clocks.json"
    clocks.write_text(json.dumps({"before": asdict(offered.before), "after": asdict(offered.after)}), encoding="utf-8")
    flags = [f"--interval={INTERVAL_MS}ms", f"--start={offered.start_ns}", f"--clocks={clocks}", f"--into={folder}"]
    done = subprocess.run([program, "merge", *flags, *folders], capture_output=True, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().removeprefix("dbdyno-load: ")
        raise TrialError(short(message, SAID_MAX) or f"dbdyno-load: exit {done.returncode}")
    return read_load(*(folder / file for file in FILES))
