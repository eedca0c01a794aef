"""``Workers`` over Ray: an actor for each host, with a thread for each call; nothing is tried again by Ray itself."""

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dbdyno.errors import HostError
from dbdyno.hosts.bundle import our_digest
from dbdyno.hosts.worker_side import WorkerSide
from dbdyno.hosts.workers import Returned, Work, Workers
from dbdyno.model.printable import short

if TYPE_CHECKING:
    from concurrent.futures import Future

_BEGIN_SECONDS = 120.0  # for a host to start Python and to read its own dbdyno
_DIFFERS = "{}: dbdyno there differs from this one; dbdyno hosts up puts it there"
_REPORT_SECONDS = 1.0  # between two questions how far a host's calls are

Lost = Callable[[], Mapping[str, str]]
_Result: TypeAlias = "Future[tuple[str, float, Exception | None]]"
_Arrived: TypeAlias = tuple[str, object, int, _Result]


class Actors(Protocol):
    """Hosts on which an object can be made."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts."""

    def actor(self, host: str, made: type, /, *given: object, threads_per_core: int) -> Any:  # noqa: ANN401  (Ray's)
        """Make it. Raises ``HostError``."""


class RayWorkers(Workers):
    """The hosts of a cluster; ``lost`` has those that are known by ssh to be gone, which Ray learns much later."""

    def __init__(self, hosts: Actors, work: Work, lost: Lost = dict) -> None:
        import ray

        self._ray, self._gone, self._hosts, self._work = ray, lost, hosts, work
        self._lost: dict[str, str] = {}
        self._away: set[str] = set()  # lost as ssh knows, which also knows when they are there again
        self._arrived: queue.SimpleQueue[_Arrived] = queue.SimpleQueue()
        self._reached: dict[str, dict[int, float]] = {}
        self._asked: dict[str, Any] = {}  # how far its calls are, until the answer is there
        self._received_at = time.monotonic()
        self._actors: dict[str, Any] = {}
        self._cores: dict[str, int] = {}
        for name in hosts.names:
            try:
                self._actors[name] = hosts.actor(name, WorkerSide, work, threads_per_core=2)
            except HostError as error:
                self._lost[name] = str(error)
        self._see_who_is_there()

    def cores(self) -> Mapping[str, int]:
        """As the contract says."""
        return {name: count for name, count in self._cores.items() if name not in self._lost}

    def begin(self, host: str, ticket: int, given: str) -> None:
        """As the contract says."""
        actor = self._actors[host]
        future = actor.call.remote(ticket, given).future()
        future.add_done_callback(lambda done: self._arrived.put((host, actor, ticket, done)))

    def returned(self, seconds: float) -> list[Returned]:
        """As the contract says."""
        found = []
        try:
            found.append(self._arrived.get(timeout=seconds))
            while True:
                found.append(self._arrived.get_nowait())
        except queue.Empty:
            return [one for arrived in found if (one := self._result(*arrived))]

    def lost(self) -> Mapping[str, str]:
        """As the contract says."""
        for host, why in self._gone().items():
            self.leave_out(host, why)
            self._away.add(host)
        return self._lost

    def there_again(self) -> list[str]:
        """As the contract says."""
        return sorted(self._away - self._gone().keys())

    def renew(self, host: str) -> None:
        """As the contract says: with an actor of its own; what the one of before still does there is ended."""
        if before := self._actors.pop(host, None):
            self._ray.kill(before, no_restart=True)
        actor = self._hosts.actor(host, WorkerSide, self._work, threads_per_core=2)
        try:
            cores, digest = self._ray.get(actor.about.remote(), timeout=_BEGIN_SECONDS)
        except self._ray.exceptions.RayError as error:
            raise HostError(self._why(host, error)) from None
        if digest != our_digest():
            raise HostError(_DIFFERS.format(host))
        self._actors[host], self._cores = actor, {**self._cores, host: cores}

    def take_back(self, host: str) -> None:
        """As the contract says."""
        self._away.discard(host)
        self._lost = {name: why for name, why in self._lost.items() if name != host}

    def leave_out(self, host: str, why: str) -> None:
        """As the contract says."""
        self._lost.setdefault(host, why)
        self._away.discard(host)
        self._reached.pop(host, None)

    def lacking(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """As the contract says."""
        try:
            folder, lacking = self._ray.get(self._actors[host].lacking.remote(list(names)), timeout=_BEGIN_SECONDS)
        except self._ray.exceptions.RayError as error:
            raise HostError(self._why(host, error)) from None
        return str(folder), list(lacking)

    def reached(self) -> Mapping[int, float]:
        """As the contract says; asked for once a second, and never waited for."""
        due = time.monotonic() > self._received_at + _REPORT_SECONDS
        self._received_at = time.monotonic() if due else self._received_at
        for host in self.cores():
            asked = self._asked.get(host)
            if asked is not None and asked.done():
                self._reached[host] = {} if asked.exception() else asked.result()
                del self._asked[host]
            if due and host not in self._asked:
                self._asked[host] = self._actors[host].reached.remote().future()
        return {ticket: far for host in self.cores() for ticket, far in self._reached.get(host, {}).items()}

    def close(self) -> None:
        """As the contract says: the processes on the hosts are ended."""
        for actor in self._actors.values():
            self._ray.kill(actor, no_restart=True)

    def _result(self, host: str, actor: object, ticket: int, done: _Result) -> Returned | None:
        """What a call came to, unless its host is lost, or was meanwhile."""
        if host in self._lost or actor is not self._actors.get(host):
            return None
        try:
            return Returned(ticket, host, *done.result())
        except self._ray.exceptions.RayError as error:
            self.leave_out(host, self._why(host, error))
            return None

    def _see_who_is_there(self) -> None:
        """Wait for all hosts. Raises ``HostError`` where one has another dbdyno: its results might be others."""
        asked = {name: actor.about.remote() for name, actor in self._actors.items()}
        self._ray.wait(list(asked.values()), num_returns=len(asked), timeout=_BEGIN_SECONDS) if asked else None
        ours, differing = our_digest(), []
        for name, reference in asked.items():
            try:
                self._cores[name], digest = self._ray.get(reference, timeout=0)
            except self._ray.exceptions.RayError as error:
                self.leave_out(name, self._why(name, error))
                continue
            differing += [name] if digest != ours else []
        if differing:
            self.close()
            raise HostError(_DIFFERS.format(", ".join(differing)))

    def _why(self, host: str, error: Exception) -> str:
        if isinstance(error, self._ray.exceptions.GetTimeoutError):
            return f"{host}: no answer in {_BEGIN_SECONDS:g} s"
        if "No module named 'dbdyno" in str(error):
            return f"{host}: dbdyno is not there; dbdyno hosts up puts it where ssh is given"
        return f"{host}: is lost: {short(str(error))}"
