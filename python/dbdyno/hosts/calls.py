"""Calls of one function on the processors of hosts: each agent makes them in threads, and has the files they read."""

import queue
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.compute.workers import Returned, Work, Workers, take_arrived
from dbdyno.errors import HostError, UserError
from dbdyno.hosts.connections import Connections
from dbdyno.hosts.contract import Hosts, on_each
from dbdyno.hosts.frames import Called, Cores, HowFar, Inputs, Nothing, read_answer
from dbdyno.hosts.ssh import Answer, Channel
from dbdyno.model.printable import short
from dbdyno.study.units import format_bytes
from dbdyno.system.files import file_sha256

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


# Files that calls on other hosts read: sent to each once, and known there by their content.


def input_name(path: Path) -> str:
    """The name of a file on all hosts: its SHA-256, and the ending that tells its kind. Raises ``UserError``."""
    try:
        digest = file_sha256(path)
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None
    return digest + (path.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", path.suffix) else "")


def send(hosts: Hosts, workers: Workers, files: Mapping[str, Path], say: Callable[[str], None]) -> None:
    """Have files on all hosts under their names of ``input_name``; a host that can't take them is left out."""

    def sent(host: str) -> None:
        try:
            send_to(host, hosts, workers, files, say)
        except HostError as error:
            workers.leave_out(host, str(error))

    if files:
        on_each(workers.cores(), sent)


def send_to(host: str, hosts: Hosts, workers: Workers, files: Mapping[str, Path], say: Callable[[str], None]) -> None:
    """Have on one host what it lacks of them. Raises ``HostError``."""
    folder, lacking = workers.missing_inputs(host, sorted(files)) if files else ("", [])
    if lacking:
        say(f"{host}: sending {format_bytes(sum(files[name].stat().st_size for name in lacking))}")
    for name in lacking:
        if not name.startswith(hosts.put(host, files[name], f"{folder}/{name}")):
            raise HostError(f"{host}: {files[name]} arrived damaged, or changed meanwhile")
