"""The server while the load runs: CPU, memory and I/O of its and the load's processes, and its own counters."""

import contextlib
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dbdyno.probe.host import KernelFileSource
from dbdyno.probe.sampler import ProbeSource
from dbdyno.servers.contract import Server, ServerError, Status

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
COUNTERS = ("user_seconds", "system_seconds", "resident_bytes", "read_bytes", "write_bytes")


class ServerProcessSource(KernelFileSource):
    """One process, all its threads. Raises ``OSError`` where there is none or it is not for us to see."""

    name = "server_process"

    def __init__(self, pid: int) -> None:
        super().__init__(f"/proc/{pid}/stat", f"/proc/{pid}/io")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """CPU seconds, resident bytes, and device bytes since its start. Raises ``OSError`` once it has ended."""
        return counters_of(raw)

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds since its start, percent of one core, resident MB, and MB/s."""
        return as_columns(before, after, seconds)


def counters_of(raw: Sequence[bytes], *, with_waited: bool = False) -> dict[str, float]:
    """CPU seconds, resident bytes, and bytes to and from devices since a process's start.

    The bytes include those of children it has waited for; ``with_waited`` adds their CPU too. Raises ``OSError``
    of a process that has ended.
    """
    fields = raw[0].rpartition(b")")[2].split()
    if fields[0] in b"ZX":
        raise ProcessLookupError("the process has ended")
    user, system, waited_user, waited_system = map(int, fields[11:15])
    io = raw[1].split()
    return {
        "user_seconds": (user + waited_user * with_waited) / _TICKS,
        "system_seconds": (system + waited_system * with_waited) / _TICKS,
        "resident_bytes": float(int(fields[21]) * _PAGE_BYTES),
        "read_bytes": float(io[9]),
        "write_bytes": float(io[11]),
    }


def as_columns(before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
    """CPU seconds since its start, percent of one core, resident MB, and MB/s."""

    def rate(name: str, scale: float) -> float:
        return (after[name] - before[name]) * scale / seconds

    return {
        "cpu_seconds": after["user_seconds"] + after["system_seconds"],
        "%usr": rate("user_seconds", 100),
        "%system": rate("system_seconds", 100),
        "rss_MB": after["resident_bytes"] / 1e6,
        "rMB/s": rate("read_bytes", 1e-6),
        "wMB/s": rate("write_bytes", 1e-6),
    }


# CPU, memory and I/O of what offers the load: every process that the calling thread starts, with all that descend.


_LOOK_EVERY = 10  # samples; what was started since then is found, and its counters miss nothing


class ClientProcessSource(ProbeSource):
    """Children that this thread starts from now on; their sum never goes back.

    CPU and bytes of a child move to the parent that waits for it, so what a short-lived process used is not lost.
    """

    name = "client_process"
    of_host = True

    def __init__(self) -> None:
        self._children = f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children"
        self._not_ours = set(_numbers(self._children))  # the server, the emulated disk
        self._members: dict[int, ServerProcessSource] = {}
        self._roots: set[int] = set()
        self._until_look = 0
        self._last: dict[int, dict[str, float]] = {}  # of each root that was seen in the reading before
        self._ended = dict.fromkeys(COUNTERS, 0.0)
        self._reported = dict(self._ended)

    def read(self) -> dict[int, Sequence[bytes]]:
        """The files' text of each process that is there."""
        if self._until_look <= 0 or not self._members:
            self._look()
        self._until_look -= 1
        texts = {}
        for pid, files in list(self._members.items()):
            try:
                texts[pid] = files.read()
            except OSError:
                self._forget(pid)
        return texts

    def counters(self, raw: dict[int, Sequence[bytes]]) -> dict[str, float]:
        """Seconds and bytes of all of them so far; all 0 before the first is started."""
        living = {}
        for pid, text in raw.items():
            with suppress(OSError):  # it has ended, and its parent has not waited for it yet
                living[pid] = counters_of(text, with_waited=True)
        for pid in self._last.keys() - living.keys():
            for name, value in self._last[pid].items():
                self._ended[name] += value
        self._last = {pid: counters for pid, counters in living.items() if pid in self._roots}
        totals = {name: sum((counters[name] for counters in living.values()), self._ended[name]) for name in COUNTERS}
        self._reported = {name: max(value, self._reported[name]) for name, value in totals.items()}
        self._reported["resident_bytes"] = sum(counters["resident_bytes"] for counters in living.values())
        return dict(self._reported)

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds so far, percent of one core, resident MB, and MB/s."""
        return as_columns(before, after, seconds)

    def close(self) -> None:
        """Close the files of whatever still runs."""
        for pid in list(self._members):
            self._forget(pid)

    def _look(self) -> None:
        """Find who is there now."""
        self._until_look = _LOOK_EVERY
        ahead = [pid for pid in _numbers(self._children) if pid not in self._not_ours]
        self._roots |= set(ahead)
        while ahead:
            pid = ahead.pop()
            if pid not in self._members:
                try:
                    self._members[pid] = ServerProcessSource(pid)
                except OSError:
                    continue  # it has just ended, or is not for us to see
            ahead += _children_of(pid)

    def _forget(self, pid: int) -> None:
        self._members.pop(pid).close()
        self._until_look = 0


def _children_of(pid: int) -> list[int]:
    try:
        return [child for task in Path(f"/proc/{pid}/task").iterdir() for child in _numbers(f"{task}/children")]
    except OSError:
        return []


def _numbers(path: str) -> list[int]:
    return [int(word) for word in Path(path).read_bytes().split()]


# The server's own counters, over a connection of the probe's own: one question a sample.


class ServerStatusSource(ProbeSource):
    """Status of one server. A counter that this server lacks is left out.

    With the server's ``pid`` it also measures what its queries cost the server.
    """

    name = "server_status"

    def __init__(self, server: Server, pid: int | None = None) -> None:
        try:
            self._status = server.status()
            self._thread = _thread_file(self._status, pid) if pid else None
        except ServerError as error:
            raise ConnectionError(str(error)) from error
        self._thread_seconds_before = self._thread_seconds()

    def read(self) -> str:
        """The counters and gauges as they stand, as the server sends them."""
        try:
            return self._status.text()
        except ServerError as error:
            raise ConnectionError(str(error)) from error

    def counters(self, raw: str) -> dict[str, float]:
        """The same by name."""
        try:
            return self._status.numbers(raw)
        except ServerError as error:
            raise ConnectionError(str(error)) from error

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Counters per second, gauges as they stand."""
        rates = {
            f"{name}/s": (after[name] - before[name]) / seconds
            for name in self._status.counters
            if name in after and name in before
        }
        return rates | {name: after[name] for name in self._status.gauges if name in after}

    def outside_seconds(self) -> float:
        """CPU of the server's thread that answers; 0 where that can't be read."""
        return max(0.0, self._thread_seconds() - self._thread_seconds_before)

    def close(self) -> None:
        """End the connection."""
        self._status.close()
        if self._thread is not None:
            os.close(self._thread)

    def _thread_seconds(self) -> float:
        """Seconds that the thread has run (Documentation/scheduler/sched-stats.rst)."""
        if self._thread is None:
            return 0.0
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(os.pread(self._thread, 128, 0).split()[0]) / 1e9
        return 0.0


def _thread_file(status: Status, pid: int) -> int | None:
    thread = status.thread()
    with contextlib.suppress(OSError):
        return os.open(f"/proc/{pid}/task/{thread}/schedstat", os.O_RDONLY) if thread is not None else None
    return None
