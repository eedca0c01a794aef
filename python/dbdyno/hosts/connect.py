"""The hosts of an inventory that is up, held for as long as a study runs over them."""

import queue
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import HostError, UserError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.connections import Connections, ReadyHost, Rejoining, reach_ready
from dbdyno.hosts.contract import GuardedWork, Hosts, all_of, check_not_measured, on_each
from dbdyno.hosts.frames import Called, Cores, HowFar, Inputs, Nothing, read_answer
from dbdyno.hosts.inventory import Inventory, read_inventory
from dbdyno.hosts.look import this_machine
from dbdyno.hosts.reboot import Reboots
from dbdyno.hosts.ssh import ANSWER_SECONDS, Answer, Channel
from dbdyno.hosts.workers import Returned, Work, Workers, take_arrived
from dbdyno.model.printable import short

if TYPE_CHECKING:
    from concurrent.futures import Future

_REPORT_SECONDS = 1.0  # between two questions how far a host's calls are
_SAID_MAX = 4000  # characters of an error


class HostWorkers(Workers):
    """Hosts whose agents make the calls, in threads; ``lost`` has those that are known to be gone."""

    def __init__(
        self, connections: Connections, names: Sequence[str], work: Work, lost: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._connections, self._gone, self._names = connections, lost, names
        self._work = f"{work.__module__}:{work.__qualname__}"
        self._lost: dict[str, str] = {}
        self._away: set[str] = set()  # whose connection is lost, and may be there again
        self._arrived: queue.SimpleQueue[tuple[str, Channel, int, Future[Answer]]] = queue.SimpleQueue()
        self._channels: dict[str, Channel] = {}
        self._cores: dict[str, int] = {}
        self._far: dict[str, Mapping[int, float]] = {}
        self._pending_reports: dict[str, Future[Answer]] = {}  # how far its calls are, until the answer is there
        self._reports_requested_at = time.monotonic()
        for name in names:
            try:
                self.renew(name)
            except HostError as error:
                self._lost[name] = str(error)

    def cores(self) -> Mapping[str, int]:
        """As the contract says."""
        return {name: count for name, count in self._cores.items() if name not in self._lost}

    def begin(self, host: str, ticket: int, argument: str) -> None:
        """As the contract says."""
        channel = self._channels[host]
        question = {"do": "call", "work": self._work, "ticket": ticket, "given": argument}
        try:
            future = channel.submit(question)
        except HostError as error:
            self.leave_out(host, str(error))
            return
        future.add_done_callback(lambda done: self._arrived.put((host, channel, ticket, done)))

    def returned(self, seconds: float) -> list[Returned]:
        """As the contract says."""
        arrived = take_arrived(self._arrived, seconds)
        return [returned for each in arrived if (returned := self._result(*each))]

    def lost(self) -> Mapping[str, str]:
        """As the contract says."""
        for host, why in self._gone().items():
            if host in self._names:
                self.leave_out(host, why)
                self._away.add(host)
        return self._lost

    def returned_hosts(self) -> list[str]:
        """As the contract says."""
        return sorted(self._away - self._gone().keys())

    def renew(self, host: str) -> None:
        """As the contract says: over the connection that there is now."""
        channel = self._connections.channel(host)
        self._cores[host] = channel.ask({"do": "cores"}, Cores).cores
        self._channels[host] = channel

    def take_back(self, host: str) -> None:
        """As the contract says."""
        self._away.discard(host)
        self._lost = {name: why for name, why in self._lost.items() if name != host}

    def leave_out(self, host: str, why: str) -> None:
        """As the contract says."""
        self._lost.setdefault(host, why)
        self._away.discard(host)

    def missing_inputs(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """As the contract says."""
        inputs = self._channels[host].ask({"do": "lacking", "names": list(names)}, Inputs)
        return inputs.folder, [name for name in names if name in inputs.lacking]

    def progress(self) -> Mapping[int, float]:
        """As the contract says; asked for once a second, and never waited for."""
        is_due = time.monotonic() > self._reports_requested_at + _REPORT_SECONDS
        self._reports_requested_at = time.monotonic() if is_due else self._reports_requested_at
        for host in self.cores():
            with suppress(HostError):
                if host in self._pending_reports and self._pending_reports[host].done():
                    report = read_answer(host, self._pending_reports.pop(host).result().frame.content, HowFar)
                    self._far[host] = {int(ticket): far for ticket, far in report.reached.items() if ticket.isdigit()}
                if is_due and host not in self._pending_reports:
                    self._pending_reports[host] = self._channels[host].submit({"do": "reached", "work": self._work})
        return {ticket: far for host in self.cores() for ticket, far in self._far.get(host, {}).items()}

    def close(self) -> None:
        """As the contract says: the agents end the calls that run."""
        for host in self.cores():
            with suppress(HostError):
                self._channels[host].ask({"do": "end_calls", "work": self._work}, Nothing)

    def _result(self, host: str, channel: Channel, ticket: int, done: "Future[Answer]") -> Returned | None:
        """What a call came to, unless its host is lost, or was meanwhile."""
        if host in self._lost or channel is not self._channels.get(host):
            return None
        try:
            frame = done.result().frame
            outcome = read_answer(host, frame.content, Called)
            text = frame.body.decode()
        except UnicodeDecodeError:
            self.leave_out(host, f"{host}: its call returned no text")
            return None
        except HostError as error:
            self.leave_out(host, str(error))  # where its connection was lost and is there again, it takes part again
            return None
        if not outcome.error:
            return Returned(ticket, host, text, outcome.cpu_s)
        kind = ValueError if outcome.error == ValueError.__name__ else RuntimeError
        return Returned(ticket, host, "", outcome.cpu_s, kind(short(text, _SAID_MAX)))


class SshHosts(Hosts):
    """Hosts by the connections that are kept to their agents."""

    def __init__(self, connections: Connections, names: Collection[str], work: Mapping[str, GuardedWork]) -> None:
        """``work`` is by what the work of each is known: that of a host that was lost and is back is another."""
        super().__init__(tuple(names), work)
        self._connections = connections

    def _ask(self, host: str, what: str, *arguments: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        seconds = ANSWER_SECONDS + sum(
            argument for argument in arguments if isinstance(argument, float)
        )  # that it is asked to wait
        channel = self._connections.channel(host)
        try:
            return channel.ask_side(what, arguments, seconds)
        except HostError:
            if why := self._connections.lost().get(host):
                raise HostError(f"{host}: is lost: {why.removeprefix(f'{host}: ')}") from None
            raise

    def alive(self) -> frozenset[str]:
        """As the contract says."""
        check_not_measured("who is there")
        return frozenset(self._names) - self._connections.lost().keys()

    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]] = dict) -> Workers:
        """As the contract says."""
        return HostWorkers(self._connections, self._names, work, lost)


class Connected:
    """Hosts to work on, and what is known of their connections: which are lost, and their clocks."""

    def __init__(  # noqa: PLR0913, PLR0917  (what is known of them)
        self,
        hosts: Hosts,
        inventory: Inventory,
        connections: Connections,
        arrived: Mapping[str, str] | None = None,
        why_not_back: Callable[[], Mapping[str, str]] = dict,
        machines: Mapping[str, str] | None = None,
    ) -> None:
        """``arrived`` says at which address of each host ssh arrives, ``machines`` which machine it is."""
        self.hosts, self.inventory = hosts, inventory
        self._connections, self._arrived = connections, arrived or {}
        self.why_not_back = why_not_back  # of hosts that are lost, and were tried again
        self.reboots = Reboots(inventory, connections, machines or {})

    def address(self, host: str) -> str:
        """As the other hosts reach it."""
        return self.inventory.hosts[host].address or self._arrived.get(host, "")

    def offsets(self, hosts: Collection[str] | None = None) -> dict[str, Offset]:
        """CLOCK_MONOTONIC of each host less the one here, measured now; of all of these that are not lost.

        Raises ``HostError`` where one is lost meanwhile.
        """
        names = self.inventory.hosts if hosts is None else hosts
        return {name: clock_offsets["monotonic"] for name, clock_offsets in self._connections.offsets(names).items()}

    def lost(self) -> frozenset[str]:
        """The hosts that can't be worked on any more, known within 5 s, until they are back. Asks nothing of any."""
        return frozenset(self.why_lost())

    def why_lost(self) -> Mapping[str, str]:
        """The same, with a sentence for each."""
        return self._connections.lost()


@contextmanager
def connected(inventory: Path) -> Iterator[Connected]:
    """Connect to all hosts of a file, which must be up. What was started there has ended once this is left.

    Raises:
        UserError: The file has mistakes, or its hosts are not up.
        HostError: A host can't be reached, or has another dbdyno; or, at the end, it could not be put back.

    """
    read = read_inventory(inventory)
    if clusters.read_cluster(read.cluster.name) is None:
        raise UserError(f"{inventory}: its hosts are not up; run dbdyno hosts up {inventory}")
    with ExitStack() as stack:
        there = _reach_all(read, stack)
        connections = Connections({name: host.channel for name, host in there.items()})
        stack.callback(connections.close)
        work = connections.hold(there)
        hosts = SshHosts(connections, there, work)
        is_here = this_machine() in {host.machine for host in there.values()}
        with Rejoining(read, connections, work, measured_here=is_here) as rejoining:
            arrived = {name: host.address for name, host in there.items()}
            machines = {name: host.machine for name, host in there.items()}
            yield Connected(hosts, read, connections, arrived, rejoining.why_not, machines)
        connections.release()


def _reach_all(inventory: Inventory, stack: ExitStack) -> dict[str, ReadyHost]:
    """The agent of each host. Raises ``HostError``."""
    outcomes = on_each(inventory.hosts, lambda name: reach_ready(inventory, name, inventory.hosts[name]))
    for outcome in outcomes.values():
        if isinstance(outcome, ReadyHost):
            stack.callback(outcome.channel.close)
    return all_of(outcomes)
