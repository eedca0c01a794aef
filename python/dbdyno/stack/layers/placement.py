"""Where processes run and how their I/O ranks: processors and I/O class, read back from every thread."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.tools import run_tool
from dbdyno.study.cpus import cpu_list, cpu_numbers

ATTEMPTS = 5


@dataclass(frozen=True)
class Placement:
    """What the server is started under; it counts its processors when it starts."""

    cpus: str | None = None
    ionice: str | None = None  # "best-effort:0"

    def around(self, argv: list[str]) -> list[str]:
        """The command line that runs ``argv`` there; its threads inherit both."""
        if self.ionice:
            name, _, level = self.ionice.partition(":")
            argv = ["ionice", "--class", name, *(["--classdata", level] if level else []), "--", *argv]
        if self.cpus:
            argv = ["taskset", "--cpu-list", self.cpus, *argv]
        return argv

    def observed(self, pid: int) -> dict[str, str]:
        """Processors and I/O class of a process. Raises ``TrialError`` where a thread of it has others."""
        found: dict[str, str] = {}
        if self.cpus:
            found["cpus"] = _agreed("server_cpus", cpu_list(cpu_numbers(self.cpus)), _cpus_of(pid))
        if self.ionice:
            found["ionice"] = _agreed("server.ionice", self.ionice, _classes_of(pid))
        return found


def _agreed(what: str, asked: str, threads: dict[str, str]) -> str:
    for thread, took in threads.items():
        if took != asked:
            raise TrialError(f"{what}: asked for {asked}, thread {thread} of the server has {took}")
    return asked


def _threads(pid: int) -> list[str]:
    return sorted(entry.name for entry in Path(f"/proc/{pid}/task").iterdir())


def _cpus_of(pid: int) -> dict[str, str]:
    found = {}
    for thread in _threads(pid):
        try:
            found[thread] = cpu_list(os.sched_getaffinity(int(thread)))
        except ProcessLookupError:  # a thread may end at any moment
            continue
    return found


def _classes_of(pid: int) -> dict[str, str]:
    """Of each thread: ``best-effort:4``, ``idle``. Raises ``TrialError``."""
    for attempt in range(1, ATTEMPTS + 1):
        threads = _threads(pid)
        try:
            said = run_tool(["ionice", "--pid", *threads]).splitlines()
        except TrialError:  # a thread may end at any moment
            if attempt == ATTEMPTS:
                raise
            continue
        parts = [line.partition(": prio ") for line in said]
        classes = [name if name in {"idle", "none"} else f"{name}:{level}" for name, _, level in parts]
        return dict(zip(threads, classes, strict=True))
    raise AssertionError


@contextmanager
def pinned(cpus: str | None) -> Iterator[dict[str, str]]:
    """Keep this thread, and the programs it starts meanwhile, on some processors; what was read back is yielded."""
    if cpus is None:
        yield {}
        return
    before, asked = os.sched_getaffinity(0), cpu_numbers(cpus)
    try:
        os.sched_setaffinity(0, asked)
    except OSError as error:
        raise HostError(f"client_cpus: {cpus}: {error.strerror}; this host has {cpu_list(before)}") from None
    try:
        took = os.sched_getaffinity(0)
        if took != asked:
            raise TrialError(f"client_cpus: asked for {cpu_list(asked)}, the kernel took {cpu_list(took)}")
        yield {"cpus": cpu_list(took)}
    finally:
        os.sched_setaffinity(0, before)
