"""Workers: one function called on several hosts at once, whatever carries the calls: ssh, or threads here."""

import json
import os
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar, cast

from dbdyno.errors import HostError
from dbdyno.system.state import make_state_folder, state_folder

T = TypeVar("T")
INPUT = "dbdyno-input:"  # before the name of a file that was sent: each host has a folder of its own for these
_NICE = 5  # what else runs on a host goes first, the ssh by which it is known to be there among it
_END_SECONDS = 10.0  # for all threads here to see that they are to end
# Given a JSON text, it returns a text that depends on nothing else; now and then it calls the callable with how far it
# is, in a measure of its own, and what that raises ends it. On other hosts it is found by its module and name.
Work = Callable[[str, Callable[[float], None]], str]


@dataclass(frozen=True)
class Returned:
    """A call that has ended: with a text, or with what it raised."""

    ticket: int
    host: str
    text: str
    cpu_s: float
    error: Exception | None = None


class Workers(ABC):
    """Hosts that call a function. What a lost host was at must be begun on another; it may come back."""

    @abstractmethod
    def cores(self) -> Mapping[str, int]:
        """The hosts that are not lost, and how many calls each has processors for."""

    @abstractmethod
    def begin(self, host: str, ticket: int, argument: str) -> None:
        """Have a host call the function, beside or after those that it is at; ``returned`` has the ticket."""

    @abstractmethod
    def returned(self, seconds: float) -> list[Returned]:
        """The calls that have ended since the last time; where none has, one is waited for as long as said."""

    @abstractmethod
    def lost(self) -> Mapping[str, str]:
        """The hosts that are lost by now, and why; of these no call returns any more."""

    @abstractmethod
    def leave_out(self, host: str, why: str) -> None:
        """Count a host as lost."""

    @abstractmethod
    def missing_inputs(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """The folder of inputs there, and which of these files are not in it. Raises ``HostError``."""

    def returned_hosts(self) -> list[str]:
        """The hosts that were lost and can be made ready to take part again; none where there are no such hosts."""
        return []

    def renew(self, host: str) -> None:
        """Make such a host ready, but for the files it needs; waits for it, in any thread. Raises ``HostError``."""
        raise HostError(f"{host}: was lost, and is not taken back")

    def take_back(self, host: str) -> None:
        """Have it take part: from now on it is not lost."""
        raise HostError(f"{host}: was lost, and is not taken back")

    @abstractmethod
    def progress(self) -> Mapping[int, float]:
        """How far each call is that runs, by its ticket, as was reported last."""

    @abstractmethod
    def close(self) -> None:
        """End every call, and wait until it has ended where that is known."""


def take_arrived(arrived: "queue.SimpleQueue[T]", seconds: float) -> list[T]:
    """All that is in a queue; where nothing is, one is waited for as long as said."""
    arrivals = list[T]()
    try:
        arrivals.append(arrived.get(timeout=seconds))
        while True:
            arrivals.append(arrived.get_nowait())
    except queue.Empty:
        return arrivals


# One host's side: what workers ask of it.


class Stopped(Exception):  # noqa: N818  (nothing is wrong)
    """A call ends before its time."""


def lower_priority() -> None:
    """Let what else runs on this host go first: for the calling thread only, on Linux."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def work_named(name: str) -> Work:
    """The function of a module of dbdyno's own, by ``module:name``."""
    module, _, function = name.partition(":")
    return cast("Work", getattr(import_module(module), function))


class WorkerSide:
    """One host's calls; any number of threads may call at once, and as many run as there are processors."""

    def __init__(self, work: Work, inputs: Path | None = None) -> None:
        self._work, self._inputs = work, inputs or inputs_folder()
        self._reached: dict[int, float] = {}
        self._stop = threading.Event()
        self._room = threading.Semaphore(cores_here())

    def call(
        self, ticket: int, argument: str, is_wanted: Callable[[], bool] = lambda: True
    ) -> tuple[str, float, Exception | None]:
        """Return what the function does, its CPU seconds, and what it raised; it ends once it is not wanted."""

        def report(reached: float) -> None:
            self._reached[ticket] = reached
            if self._stop.is_set() or not is_wanted():
                raise Stopped

        with self._room:
            began, text = time.thread_time(), ""
            error: Exception | None = None
            try:
                report(0.0)
                text = self._work(argument.replace(INPUT, json.dumps(f"{self._inputs}/")[1:-1]), report)
            except ValueError as raised:
                error = ValueError(str(raised).replace(f"{self._inputs}/", INPUT))
            except Exception as raised:  # noqa: BLE001  (the asker must get an answer)
                error = raised
            self._reached.pop(ticket, None)
            return text, time.thread_time() - began, error

    def progress(self) -> dict[int, float]:
        """How far each call is."""
        return dict(self._reached)

    def stop(self) -> None:
        """End the calls that run, and those that wait."""
        self._stop.set()


def inputs_folder() -> Path:
    """The folder of files that were sent here, each named by its SHA-256; ``dbdyno hosts down`` removes it."""
    return state_folder() / "inputs"


def missing_inputs_here(names: Sequence[str]) -> tuple[str, list[str]]:
    """Make the folder of inputs; return it, and which of these files it lacks."""
    make_state_folder()
    folder = inputs_folder()
    folder.mkdir(exist_ok=True)
    return str(folder), [name for name in names if not (folder / name).is_file()]


def cores_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


# Hosts that are this machine: threads, as what is called lets go of Python meanwhile.


class LocalWorkers(Workers):
    """Names for this machine, each with all of its processors. Its threads don't hold up an end of dbdyno."""

    def __init__(self, work: Work, names: Sequence[str] = ("",)) -> None:
        self._sides = {name: WorkerSide(work) for name in names}
        self._lost: dict[str, str] = {}
        self._task_queues: dict[str, queue.SimpleQueue[tuple[int, str] | None]] = {}
        self._threads: list[threading.Thread] = []
        self._returned: queue.SimpleQueue[Returned] = queue.SimpleQueue()

    def cores(self) -> Mapping[str, int]:
        """As the contract says."""
        return dict.fromkeys(self._sides.keys() - self._lost.keys(), cores_here())

    def begin(self, host: str, ticket: int, argument: str) -> None:
        """As the contract says."""
        if host not in self._task_queues:
            self._task_queues[host] = queue.SimpleQueue()
            for _ in range(cores_here()):
                self._threads.append(threading.Thread(target=self._serve, args=(host,), daemon=True))
                self._threads[-1].start()
        self._task_queues[host].put((ticket, argument))

    def returned(self, seconds: float) -> list[Returned]:
        """As the contract says."""
        return take_arrived(self._returned, seconds)

    def lost(self) -> Mapping[str, str]:
        """Those alone that were left out."""
        return self._lost

    def leave_out(self, host: str, why: str) -> None:
        """As the contract says; its calls end by themselves, and nobody hears of them."""
        self._lost[host] = why

    def missing_inputs(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """As the contract says."""
        return missing_inputs_here(names)

    def progress(self) -> Mapping[int, float]:
        """As the contract says."""
        return {ticket: far for host in self.cores() for ticket, far in self._sides[host].progress().items()}

    def close(self) -> None:
        """As the contract says."""
        for side in self._sides.values():
            side.stop()
        for _ in self._threads:
            for task_queue in self._task_queues.values():
                task_queue.put(None)
        deadline = time.monotonic() + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _serve(self, host: str) -> None:
        lower_priority()
        while task := self._task_queues[host].get():
            ticket, argument = task
            self._returned.put(Returned(ticket, host, *self._sides[host].call(ticket, argument)))
