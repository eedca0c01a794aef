"""What the kernel tells of the whole host, and how fast the host is by itself beside each trial."""

import hashlib
import os
import re
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, Self

from dbdyno.errors import DbdynoError
from dbdyno.host.storage import mounted_at
from dbdyno.probe.sampler import ProbeSource
from dbdyno.stack.layer import StackContext
from dbdyno.system.state import state_folder

# Sources that read files of the kernel's, which are opened once.


class KernelFileSource(ProbeSource):
    """The files named, open until ``close``: all of them, or none. Raises ``OSError``."""

    bytes_max: ClassVar[int] = 4096  # that are read of each

    def __init__(self, *paths: str | Path) -> None:
        self._files: list[int] = []
        with ExitStack() as opened:
            for path in paths:
                self._files.append(os.open(path, os.O_RDONLY))
                opened.callback(os.close, self._files[-1])
            self._opened = opened.pop_all()

    def read(self) -> Sequence[bytes]:
        """The text of each. Raises ``OSError`` where what it is about has ended."""
        return [os.pread(file, self.bytes_max, 0) for file in self._files]

    def close(self) -> None:
        """Close the files."""
        self._opened.close()


# CPU time of the pollers that keep processors awake, from /proc/PID/stat: time in which nothing else had work.


_TICKS = os.sysconf("SC_CLK_TCK")


class AwakeSource(KernelFileSource):
    """The pollers' process, all its threads. Raises ``OSError`` where there is none."""

    name = "awake"

    def __init__(self, pid: int) -> None:
        super().__init__(f"/proc/{pid}/stat")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """CPU seconds since its start."""
        return {"cpu_seconds": poller_ticks(raw[0]) / _TICKS}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds since its start, and percent of one core."""
        used = after["cpu_seconds"] - before["cpu_seconds"]
        return {**after, "%cpu": 100 * used / seconds}


def poller_ticks(stat: bytes) -> float:
    """Clock ticks that a process has used, by its ``stat``. Raises ``OSError`` of one that has ended."""
    fields = stat.rpartition(b")")[2].split()
    if fields[0] in b"ZX":
        raise ProcessLookupError("the pollers have ended")
    return float(fields[11]) + float(fields[12])


# The host's CPU by state, from the first line of /proc/stat (proc(5)), in percent of all cores.


_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_POLLERS = "pollers"


class HostCpuSource(KernelFileSource):
    """CPU time of the whole host; what pollers use that keep it awake counts as idle, as it would be without them."""

    name = "host_cpu"
    of_host = True

    def __init__(self, pollers: int | None = None) -> None:
        super().__init__("/proc/stat", *([f"/proc/{pollers}/stat"] if pollers else []))

    @classmethod
    def from_context(cls, context: StackContext) -> Self:
        """With the pollers that keep processors awake."""
        return cls(context.pollers)

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Clock ticks per state since boot."""
        numbers = raw[0].split(b"\n", 1)[0].split()[1:]
        ticks = {state: float(number) for state, number in zip(_STATES, numbers, strict=False)}
        return ticks | {_POLLERS: poller_ticks(raw[1])} if len(raw) > 1 else ticks

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Percent of the interval's ticks per state; all 0 where no tick passed."""
        delta = {state: max(0.0, after[state] - before[state]) for state in after}
        # Their nice value is the weakest, so that the kernel counts their time there.
        polled = min(delta.pop(_POLLERS, 0.0), delta["nice"])
        delta |= {"nice": delta["nice"] - polled, "idle": delta["idle"] + polled}
        total = sum(delta.values()) or 1.0
        percent = {f"%{state}": 100 * ticks / total for state, ticks in delta.items()}
        percent["%user"] += percent.pop("%nice")
        percent["%system"] += percent.pop("%irq") + percent.pop("%softirq")
        return percent


# How much of the time tasks of the host waited for CPU, I/O or memory: /proc/pressure (accounting/psi.rst).


_KINDS = ("some", "full")
# The host as a whole has no "full" of the CPU: some task always has it.
PRESSURES = (("cpu", "some"), ("io", "some"), ("io", "full"), ("memory", "some"), ("memory", "full"))


class PressureSource(KernelFileSource):
    """Pressure stall information of the whole host. Raises ``OSError`` where the kernel does not report it."""

    name = "pressure"
    of_host = True

    def __init__(self, *, pollers: bool = False) -> None:
        # A poller that waits is a task that waits for the CPU, and while one runs not all tasks wait ("full").
        self._pressures = tuple(
            (resource, kind) for resource, kind in PRESSURES if not pollers or (resource != "cpu" and kind == "some")
        )
        super().__init__(*(f"/proc/pressure/{resource}" for resource in dict(self._pressures)))
        try:
            self.read()  # some kernels have the files and refuse to be read
        except OSError:
            self.close()
            raise

    @classmethod
    def from_context(cls, context: StackContext) -> Self:
        """Without what pollers falsify, where they keep processors awake."""
        return cls(pollers=context.pollers is not None)

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Seconds stalled since boot, as ``io_some`` and so on."""
        seconds = {}
        for resource, text in zip(dict(self._pressures), raw, strict=True):
            for kind, line in zip(_KINDS, text.splitlines(), strict=False):
                seconds[f"{resource}_{kind}"] = int(line[line.rindex(b"=") + 1 :]) / 1e6
        return {f"{resource}_{kind}": seconds[f"{resource}_{kind}"] for resource, kind in self._pressures}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Percent of the interval in which some, or all, tasks that had work waited."""
        return {f"%{name}": min(100.0, 100 * (after[name] - before[name]) / seconds) for name in after}


# Pages of the page cache that wait to be written, and what keeps writers waiting for them: /proc/vmstat.


PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
_PAGES = ("nr_dirty", "nr_writeback", "nr_dirty_background_threshold", "nr_dirty_threshold")  # as they stand
_WRITTEN = ("nr_dirtied", "nr_written")  # pages since boot
_EVENTS = ("pgmajfault", "allocstall", "nr_throttled_written")  # since boot; the second by zone of memory
_NAMES = "|".join((*_PAGES, *_WRITTEN, *_EVENTS))
_LINE = re.compile(rf"^({_NAMES})(?:_(?:dma|dma32|normal|highmem|movable|device))? (\d+)$", re.MULTILINE)


class WritebackSource(KernelFileSource):
    """The host's page cache, in the kernel's own counters. Raises ``OSError`` where /proc/vmstat can't be read."""

    name = "writeback"
    of_host = True
    bytes_max = 64 * 1024

    def __init__(self) -> None:
        super().__init__("/proc/vmstat")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Pages and events under the kernel's names; what this kernel does not count is left out."""
        counts: dict[str, float] = {}
        for name, value in _LINE.findall(raw[0].decode("ascii")):
            counts[name] = counts.get(name, 0.0) + int(value)
        return counts

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Pages as MB, or MB per second; events per second."""
        rates = {name: (after[name] - before[name]) / seconds for name in (*_WRITTEN, *_EVENTS) if name in after}
        return {
            **{f"{name}_MB": after[name] * PAGE_MB for name in _PAGES if name in after},
            **{f"{name}_MB/s": rates[name] * PAGE_MB for name in _WRITTEN if name in rates},
            **{f"{name}/s": rates[name] for name in _EVENTS if name in rates},
        }


# How fast the host is by itself, just before a trial's load and just after it: fixed work that no treatment touches.
#
# Hosts differ from minute to minute: neighbours, heat, a disk that fills. Trials of one block meet it differently,
# and what they meet is in their ratio. So the same small pieces of work are timed beside each trial, while its server
# idles: what the trial measures can then be compared for what the host was worth at that moment.
#
# Nothing is run while the load is measured, so it costs the measured run nothing: some 40 ms of one core before and
# after. Cannot: see what lasts for less than a trial, nor neighbours that come between its two ends.


WORK_BYTES, PIECES = 1 << 20, 8  # SHA-256 of 1 MiB takes some 1 to 4 ms; the median of so many
WRITE_BYTES, FLUSHES = 4096, 3
IN_MEMORY = {"tmpfs", "ramfs"}


def host_speed(context: StackContext) -> dict[str, float]:
    """Return what fixed work takes now, in nanoseconds, medians over its pieces.

    ``work_wall_ns`` and ``work_cpu_ns`` of hashing 1 MiB, by the clock and in CPU time; ``flush_ns`` of writing 4 KiB
    and syncing them, where the state folder lies on another device than the data of the trial; else it is not there.
    """
    figures = _work()
    flush_ns = _flush(context)
    return figures | ({"flush_ns": flush_ns} if flush_ns else {})


def before_and_after(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the mean of what was timed at both ends of a trial, of what is known of both."""
    return {name: (before[name] + after[name]) / 2 for name in before if name in after}


def _work() -> dict[str, float]:
    piece = bytes(WORK_BYTES)
    walls, processor = [], []
    for _ in range(PIECES):
        wall, cpu = time.monotonic_ns(), time.thread_time_ns()
        hashlib.sha256(piece).digest()
        processor.append(time.thread_time_ns() - cpu)
        walls.append(time.monotonic_ns() - wall)
    return {"work_wall_ns": statistics.median(walls), "work_cpu_ns": statistics.median(processor)}


def _flush(context: StackContext) -> float:
    """Return what a durable write takes on a disk that is not under test; 0 where there is none."""
    try:
        folder = state_folder()
        in_memory = mounted_at(folder).kind in IN_MEMORY
        if in_memory or context.directory is None or folder.stat().st_dev == context.directory.stat().st_dev:
            return 0.0
        return _timed_flush(folder)
    except (OSError, DbdynoError):
        return 0.0


def _timed_flush(folder: Path) -> float:
    handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)  # it has no name, so nothing is left of it
    try:
        times_ns = []
        for place in range(FLUSHES):
            began = time.monotonic_ns()
            os.pwrite(handle, os.urandom(WRITE_BYTES), place * WRITE_BYTES)
            os.fdatasync(handle)
            times_ns.append(time.monotonic_ns() - began)
        return statistics.median(times_ns)
    finally:
        os.close(handle)
