"""``Workers`` where all hosts are this machine: threads, as what is called lets go of Python meanwhile."""

import queue
import threading
from collections.abc import Mapping, Sequence
from time import monotonic

from dbdyno.hosts.worker_side import WorkerSide, cores_here
from dbdyno.hosts.workers import Returned, Work, Workers

_END_SECONDS = 10.0  # for all threads to see that they are to end


class LocalWorkers(Workers):
    """Names for this machine, each with all of its processors. Its threads don't hold up an end of dbdyno."""

    def __init__(self, work: Work, names: Sequence[str] = ("",)) -> None:
        self._sides = {name: WorkerSide(work) for name in names}
        self._lost: dict[str, str] = {}
        self._asked: dict[str, queue.SimpleQueue[tuple[int, str] | None]] = {}
        self._threads: list[threading.Thread] = []
        self._returned: queue.SimpleQueue[Returned] = queue.SimpleQueue()

    def cores(self) -> Mapping[str, int]:
        """As the contract says."""
        return dict.fromkeys(self._sides.keys() - self._lost.keys(), cores_here())

    def begin(self, host: str, ticket: int, given: str) -> None:
        """As the contract says."""
        if host not in self._asked:
            self._asked[host] = queue.SimpleQueue()
            for _ in range(cores_here()):
                self._threads.append(threading.Thread(target=self._serve, args=(host,), daemon=True))
                self._threads[-1].start()
        self._asked[host].put((ticket, given))

    def returned(self, seconds: float) -> list[Returned]:
        """As the contract says."""
        found = []
        try:
            found.append(self._returned.get(timeout=seconds))
            while True:
                found.append(self._returned.get_nowait())
        except queue.Empty:
            return found

    def lost(self) -> Mapping[str, str]:
        """Those alone that were left out."""
        return self._lost

    def leave_out(self, host: str, why: str) -> None:
        """As the contract says; its calls end by themselves, and nobody hears of them."""
        self._lost[host] = why

    def lacking(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """As the contract says."""
        return self._sides[host].lacking(names)

    def reached(self) -> Mapping[int, float]:
        """As the contract says."""
        return {ticket: far for host in self.cores() for ticket, far in self._sides[host].reached().items()}

    def close(self) -> None:
        """As the contract says."""
        for side in self._sides.values():
            side.stop()
        for _ in self._threads:
            for asked in self._asked.values():
                asked.put(None)
        deadline = monotonic() + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _serve(self, host: str) -> None:
        while one := self._asked[host].get():
            ticket, given = one
            self._returned.put(Returned(ticket, host, *self._sides[host].call(ticket, given)))
