"""What ``Workers`` ask of one host: to call a function, some at a time, and to say how far each call is."""

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from dbdyno.hosts.workers import Work
from dbdyno.system.state import state_folder

INPUT = "dbdyno-input:"  # before the name of a file that was sent: each host has a folder of its own for these


_NICE = 5  # what else runs on a host goes first, the ssh by which it is known to be there among it


class Stopped(Exception):  # noqa: N818  (nothing is wrong)
    """A call ends before its time."""


class WorkerSide:
    """One host's calls; any number of threads may call at once, and as many run as there are processors."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._reached: dict[int, float] = {}
        self._stop = threading.Event()
        self._room = threading.Semaphore(cores_here())

    def about(self) -> tuple[int, str]:
        """Processors that may be used here, and the digest of this dbdyno."""
        from dbdyno.hosts.bundle import our_digest

        return cores_here(), our_digest()

    def call(self, ticket: int, given: str) -> tuple[str, float, Exception | None]:
        """Return what the function does, its CPU seconds, and what it raised."""

        def report(reached: float) -> None:
            self._reached[ticket] = reached
            if self._stop.is_set():
                raise Stopped

        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)  # on Linux, of this thread alone
        with self._room:
            began, text = time.thread_time(), ""
            error: Exception | None = None
            try:
                report(0.0)
                text = self._work(given.replace(INPUT, json.dumps(f"{inputs_folder()}/")[1:-1]), report)
            except ValueError as raised:
                error = ValueError(str(raised).replace(f"{inputs_folder()}/", INPUT))
            except Exception as raised:  # noqa: BLE001  (whoever waits for the call is to have it)
                error = raised
            self._reached.pop(ticket, None)
            return text, time.thread_time() - began, error

    def reached(self) -> dict[int, float]:
        """How far each call is."""
        return dict(self._reached)

    def lacking(self, names: Sequence[str]) -> tuple[str, list[str]]:
        """The folder of what was sent, and which of these files are not in it."""
        folder = inputs_folder()
        return str(folder), [name for name in names if not (folder / name).is_file()]

    def stop(self) -> None:
        """End the calls that run, and those that wait."""
        self._stop.set()


def inputs_folder() -> Path:
    """Where the files lie that were sent here, each named by its SHA-256; ``dbdyno hosts down`` removes it."""
    return state_folder() / "inputs"


def parts_folder() -> Path:
    """Where this host keeps its part of each study that runs over hosts, until the machine that began it has it all.

    ``dbdyno hosts down`` removes what studies that were not gone on with have left in it.
    """
    return state_folder() / "fleet"


def cores_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))
