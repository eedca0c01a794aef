"""One function called with many arguments, spread over the processors of hosts, each of which gets more as it finishes.

What a call returns depends on its argument alone, so the calls of a host that is lost are made again on others: each
argument has one result, whichever host it is from.
"""

import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from dbdyno.compute.workers import Returned, Workers
from dbdyno.errors import HostError

_LOOK_AGAIN_SECONDS = 0.2
_SHORT_SECONDS = 0.5  # calls that take less wait at their host before it is free: it idles no moment between two
_MEAN_OF = 8  # calls, about, that say how long the next ones take


@dataclass(frozen=True)
class Done:
    """What a call returned, what it took, and where."""

    text: str
    cpu_s: float
    host: str


@dataclass
class _Call:
    argument: str
    future: "Future[Done]" = field(default_factory=Future)


class Spread:
    """The calls that wait, and those that hosts are at; leaving the context ends them all."""

    def __init__(
        self,
        workers: Workers,
        say: Callable[[str], None] = lambda _: None,
        supply: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``supply`` gives a host that is there again what it needs. Raises ``HostError``."""
        self._workers, self._say, self._supply = workers, say, supply
        self._renewing: dict[str, Future[None]] = {}
        self._tickets = itertools.count()
        self._waiting: deque[_Call] = deque()
        self._at_work: dict[int, tuple[str, _Call]] = {}  # by ticket: the host, and the call
        self._lost: dict[str, str] = {}
        self._usual_s = _SHORT_SECONDS
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, argument: str) -> "Future[Done]":
        """Have the function called; the future has what it returns or raises, ``HostError`` where no host is left."""
        call = _Call(argument)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
            self._waiting.append(call)
            self._hand_out()
        return call.future

    def room(self) -> int:
        """How many more calls are worth submitting now: with them no host runs out of work, and few wait in memory."""
        with self._lock:
            cores = sum(self._workers.cores().values())
            return 2 * cores - len(self._at_work) - len(self._waiting) if cores else 1  # it then says that none is left

    def progress(self) -> list[float]:
        """How far each call is that runs, as was reported last."""
        return list(self._workers.progress().values())

    def hosts(self) -> int:
        """How many there are that are not lost."""
        return len(self._workers.cores())

    def close(self) -> None:
        """End all calls; their futures are then cancelled or never done."""
        self._closing.set()
        if self._thread:
            self._thread.join()
        with self._lock:
            for call in self._waiting:
                call.future.cancel()
            self._waiting.clear()
        self._workers.close()

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                ended_calls = self._workers.returned(_LOOK_AGAIN_SECONDS)
                with self._lock:
                    for returned in ended_calls:
                        self._settle(returned)
                    self._give_up(self._workers.lost())
                    self._take_back()
                    self._hand_out()
            except Exception as error:  # noqa: BLE001  (the asker would wait for ever)
                self._fail(error)

    def _settle(self, returned: Returned) -> None:
        host, call = self._at_work.pop(returned.ticket, ("", None))
        if call is None:
            return  # it was begun again elsewhere, as its host had been given up
        self._usual_s += (returned.cpu_s - self._usual_s) / _MEAN_OF
        if returned.error is None:
            call.future.set_result(Done(returned.text, returned.cpu_s, host))
        else:
            call.future.set_exception(returned.error)

    def _give_up(self, lost: Mapping[str, str]) -> None:
        """What a lost host was at waits again, before all else."""
        for host, why in lost.items():
            if host in self._lost:
                continue
            self._lost[host] = why
            again = [ticket for ticket, (where, _) in self._at_work.items() if where == host]
            self._waiting.extendleft(self._at_work.pop(ticket)[1] for ticket in reversed(again))
            self._say(f"{why}; other hosts repeat its work")

    def _take_back(self) -> None:
        """Have hosts that are there again made ready, beside all else, and take part once they are."""
        for host in self._workers.returned_hosts():
            if host not in self._renewing:
                self._renewing[host] = Future()
                threading.Thread(target=self._renew, args=(host, self._renewing[host]), daemon=True).start()
        for host, done in list(self._renewing.items()):
            if not done.done():
                continue
            del self._renewing[host]
            if error := done.exception():
                self._workers.leave_out(host, str(error))
                self._say(f"{host} can't take part again: {error}")
            elif host in self._workers.returned_hosts():
                self._workers.take_back(host)
                self._lost.pop(host, None)
                self._say(f"{host} is back, and takes part")

    def _renew(self, host: str, done: "Future[None]") -> None:
        try:
            self._workers.renew(host)
            self._supply(host)
            done.set_result(None)
        except Exception as error:  # noqa: BLE001  (said where hosts are taken back)
            done.set_exception(error)

    def _hand_out(self) -> None:
        """Give what waits to hosts that have room for it, those first that have most."""
        cores = self._workers.cores()
        if not cores:
            reasons = "; ".join(self._workers.lost().values())
            self._fail(HostError(f"no host is left: {reasons}"))
            return
        at_work = Counter(host for host, _ in self._at_work.values())
        ahead = 2 if self._usual_s < _SHORT_SECONDS else 1
        while self._waiting:
            host = min(cores, key=lambda name: at_work[name] / cores[name])
            if at_work[host] >= ahead * cores[host]:
                return
            at_work[host] += 1
            ticket, call = next(self._tickets), self._waiting.popleft()
            self._at_work[ticket] = (host, call)
            self._workers.begin(host, ticket, call.argument)

    def _fail(self, error: Exception) -> None:
        """Nothing more comes of any call."""
        with self._lock:
            calls = [*self._waiting, *(call for _, call in self._at_work.values())]
            self._waiting.clear()
            self._at_work.clear()
            for call in calls:
                call.future.set_exception(error)
