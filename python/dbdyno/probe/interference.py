"""What others did to the host while the load ran: CPU of processes that are none of ours, stolen time, I/O, pressure.

Ours is dbdyno with all that it started. Kernel threads count for neither: those of the loop device, FUSE and the
filesystem work for the load itself. Sources: /proc/stat, /proc/PID/stat, /proc/PID/io, /proc/pressure (proc(5)), sysfs.
"""

import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dbdyno.host.storage import disks_under
from dbdyno.probe.host import PressureSource
from dbdyno.probe.sampler import ProbeSource, Sampler, Series
from dbdyno.stack.layer import StackContext
from dbdyno.store.records import Disturbance
from dbdyno.system.interrupt import now_ns

# How much others disturbed a trial, and whether that is more than results can bear.
#
# The limits know the host's time and nothing of the trial's result: a slow trial is no more likely to be beyond them
# than a fast one. docs/statistics/failures.md says why they are what they are.


# Shares of the time of all cores; the constants allow for clock ticks of 10 ms and for one message in a log.
STOLEN_SHARE_MAX, FOREIGN_CPU_SHARE_MAX, ALLOWED_CPU_SECONDS = 0.02, 0.05, 0.1
FOREIGN_IO_BYTES_PER_SECOND_MAX, ALLOWED_IO_BYTES = 1e6, 4e6
SHOWN, SHOWN_CORES_MIN = 5, 0.01  # busiest processes by name
_PRESSURE, _SECONDS = "pressure_", "_seconds"


def interference(
    series: Series, window_ns: tuple[float, float], *, cores: int, others: dict[str, float]
) -> Disturbance:
    """Figures of the measured window, and in ``beyond`` which of them are beyond their limit; empty without samples.

    ``others`` are the cores that each foreign process, by name, used.
    """
    if not series.t_ns:
        return {}
    seconds = (window_ns[1] - window_ns[0]) / 1e9
    used = {name: max(0.0, series.at(name, window_ns[1]) - series.at(name, window_ns[0])) for name in series.columns}
    foreign_cpu = max(used["foreign_cpu_seconds"], used.get("hidden_cpu_seconds", 0.0))
    foreign_io = _foreign_io(used)
    all_cores = seconds * cores
    limits = {
        "stolen": STOLEN_SHARE_MAX + ALLOWED_CPU_SECONDS / all_cores,
        "foreign_cpu": FOREIGN_CPU_SHARE_MAX + ALLOWED_CPU_SECONDS / all_cores,
        "foreign_io": FOREIGN_IO_BYTES_PER_SECOND_MAX + ALLOWED_IO_BYTES / seconds,
    }
    figures = {
        "stolen": used["stolen_seconds"] / all_cores,
        "foreign_cpu": foreign_cpu / all_cores,
        "foreign_io": None if foreign_io is None else foreign_io / seconds,
    }
    return {
        "beyond": [name for name, value in figures.items() if value is not None and value > limits[name]],
        "stolen": figures["stolen"] or 0.0,
        "foreign_cpu": figures["foreign_cpu"] or 0.0,
        "foreign_io": figures["foreign_io"],
        "limits": limits,
        "cores": cores,
        "others": {name: used for name, used in list(others.items())[:SHOWN] if used >= SHOWN_CORES_MIN},
        "pressure": {
            name.removeprefix(_PRESSURE).removesuffix(_SECONDS): value / seconds
            for name, value in used.items()
            if name.startswith(_PRESSURE)
        },
    }


def _foreign_io(used: dict[str, float]) -> float | None:
    """Bytes that others moved on the disks below the data; ``None`` where there is no disk or it can't be read.

    What the disk moved beyond the server's own counters includes the filesystem's journal; what other processes moved
    may have gone to other disks. Only what is in both is surely foreign.
    """
    if "foreign_io_bytes" not in used:
        return None
    return min(used["foreign_io_bytes"], max(0.0, used["disk_bytes"] - used["ours_io_bytes"]))


_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
_SECTOR_BYTES = 512
_INTERVAL_NS = 2_000_000_000
_SHARE_OF_A_CORE = 1 / 500  # that looking at all processes may cost


@dataclass(frozen=True)
class ProcessStat:
    """One line of /proc/PID/stat."""

    pid: int
    name: str
    parent: int
    kernel: bool
    started: int  # clock ticks since boot: with the number, which process this is
    own_seconds: float  # CPU it used itself
    seconds: float  # the same, with that of children it has waited for
    user_seconds: float  # of the latter, outside the kernel


def parse_stat(pid: int, line: bytes) -> ProcessStat:
    """A process from its ``stat``; its name may hold anything, brackets too."""
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    user, system, children_user, children_system = (int(number) for number in fields[11:15])
    return ProcessStat(
        pid=pid,
        name=head.partition(b"(")[2].decode(errors="replace"),
        parent=int(fields[1]),
        kernel=bool(int(fields[6]) & _KERNEL_THREAD),
        started=int(fields[19]),
        own_seconds=(user + system) / _TICKS,
        seconds=(user + system + children_user + children_system) / _TICKS,
        user_seconds=(user + children_user) / _TICKS,
    )


def processes(without: frozenset[int] = frozenset()) -> list[ProcessStat]:
    """Every process that can be seen, but those with the numbers given."""
    stats = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (pid := int(entry.name)) not in without:
            with suppress(OSError, IndexError):  # it has just ended
                stats.append(parse_stat(pid, _read(f"/proc/{pid}/stat")))
    return stats


def _read(path: str) -> bytes:
    """A short file of /proc; several hundred are read at a time, so nothing is done that costs more than that."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 4096)
    finally:
        os.close(handle)


def family(everyone: list[ProcessStat], roots: set[int]) -> set[int]:
    """The processes of ``roots`` and all that descend from them."""
    children: dict[int, list[int]] = {}
    for process in everyone:
        children.setdefault(process.parent, []).append(process.pid)
    members, ahead = set(), list(roots)
    while ahead:
        pid = ahead.pop()
        if pid not in members:
            members.add(pid)
            ahead += children.get(pid, [])
    return members


class BackgroundLoadSource(ProbeSource):
    """All processes of the host; ``ours`` are roots of ours beside this process itself, ``disks`` those below the data.

    CPU time moves from a child to the parent that waits for it, so the sum over all foreign processes never loses what
    a short-lived one used.
    """

    name = "foreign"

    def __init__(self, ours: set[int], disks: list[str], *, pollers: bool = False) -> None:
        self._roots, self._disks = {os.getpid(), *ours}, disks
        self._stat = os.open("/proc/stat", os.O_RDONLY)
        self._pressure: PressureSource | None = None
        with suppress(OSError):  # not every kernel has it
            self._pressure = PressureSource(pollers=pollers)
        self._times_ns: list[int] = []  # of the first and the latest sample
        self._before: dict[tuple[int, int], float] = {}  # process -> its own seconds at the sample before
        self._used: defaultdict[str, float] = defaultdict(float)  # by name, since the first sample
        self._pids: defaultdict[str, set[int]] = defaultdict(set)  # by name, of those that used any
        self.cores = os.cpu_count() or 1
        # Most processes are kernel threads. They are read this once: a number comes back only when all have been used.
        self.kernel_threads = frozenset(process.pid for process in processes() if process.kernel)
        began = time.perf_counter_ns()
        processes(self.kernel_threads)
        self.interval_ns = max(_INTERVAL_NS, round((time.perf_counter_ns() - began) / _SHARE_OF_A_CORE))

    def read(self) -> dict[str, float]:
        """Cumulative seconds and bytes; the columns depend on what this host shows."""
        at_ns, everyone = now_ns(), processes(self.kernel_threads)
        ours = family(everyone, self._roots)
        others = [process for process in everyone if not process.kernel and process.pid not in ours]
        self._name(at_ns, others)
        total = math.fsum(process.seconds for process in others)
        counters = {"foreign_cpu_seconds": total, **self._host(everyone, ours)}
        return counters | self._stalls() | self._io(others, ours)

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """The counters as they stand at the interval's end."""
        return {name: value for name, value in after.items() if name in before}

    def shares(self) -> dict[str, float]:
        """Processes that are none of ours by name, in cores, busiest first; what ended between samples is not named.

        Where one of a name used CPU, its pid is given: ``"mypy (pid 812)"``; else how many: ``"cc (9 of them)"``.
        """
        seconds = (self._times_ns[-1] - self._times_ns[0]) / 1e9 if self._times_ns else 0.0
        ordered = sorted(self._used.items(), key=lambda name_and_seconds: -name_and_seconds[1])
        return {self._process_title(name): used / seconds for name, used in ordered} if seconds else {}

    def _process_title(self, name: str) -> str:
        pids = self._pids[name]
        if not pids:
            return name
        return f"{name} (pid {next(iter(pids))})" if len(pids) == 1 else f"{name} ({len(pids)} of them)"

    def _name(self, at_ns: int, others: list[ProcessStat]) -> None:
        """Add to each name what its processes have used since the sample before."""
        for process in others if self._times_ns else ():
            used = process.own_seconds - self._before.get((process.pid, process.started), 0.0)
            self._used[process.name] += used
            if used > 0:
                self._pids[process.name].add(process.pid)
        self._before = {(process.pid, process.started): process.own_seconds for process in others}
        self._times_ns = [*self._times_ns[:1], at_ns]

    def close(self) -> None:
        """Close the counter files."""
        os.close(self._stat)
        if self._pressure:
            self._pressure.close()

    def _host(self, everyone: list[ProcessStat], ours: set[int]) -> dict[str, float]:
        """Stolen time, and, in a container that hides other processes, user time that was none of ours.

        Not all time: there the kernel threads that work for us are hidden too, and these have no user time.
        """
        ticks = [int(number) for number in os.pread(self._stat, 256, 0).split(b"\n", 1)[0].split()[1:]]
        counters: dict[str, float] = {"stolen_seconds": ticks[7] / _TICKS}
        if not self.kernel_threads:
            own = sum(process.user_seconds for process in everyone if process.pid in ours)
            counters["hidden_cpu_seconds"] = (ticks[0] + ticks[1]) / _TICKS - own
        return counters

    def _stalls(self) -> dict[str, float]:
        """Seconds for which some or all tasks of the host waited for a resource; nothing where none is counted."""
        if self._pressure is None:
            return {}
        stalled = self._pressure.counters(self._pressure.read())
        return {f"pressure_{name}_seconds": seconds for name, seconds in stalled.items()}

    def _io(self, others: list[ProcessStat], ours: set[int]) -> dict[str, float]:
        """Bytes to and from the disks below the data, by all, by ours and by others; nothing where there are none."""
        if not self._disks:
            return {}
        counters = {
            "disk_bytes": float(sum(_disk_bytes(name) for name in self._disks)),
            "ours_io_bytes": float(sum(_io_bytes(pid) or 0 for pid in ours)),
        }
        if os.geteuid() == 0:  # only root may read others' counters
            counters["foreign_io_bytes"] = float(sum(_io_bytes(process.pid) or 0 for process in others))
        return counters


def _disk_bytes(name: str) -> int:
    fields = (Path("/sys/class/block") / name / "stat").read_bytes().split()
    return (int(fields[2]) + int(fields[6])) * _SECTOR_BYTES


def _io_bytes(pid: int) -> int | None:
    """What a process and the children it has waited for caused to be read from and written to disks."""
    try:
        fields = _read(f"/proc/{pid}/io").split()
        return int(fields[fields.index(b"read_bytes:") + 1]) + int(fields[fields.index(b"write_bytes:") + 1])
    except (OSError, ValueError, IndexError):
        return None


def disks_below(context: StackContext) -> list[str]:
    """Kernel names of the disks that the data stand on; none below an emulated disk or in memory."""
    named = [name for disk in context.disks.values() for name in disks_below(disk)]
    if context.device:
        return [*([] if context.device.disposable else disks_under(context.device.path)), *named]
    return disks_under(context.directory) if context.directory else []


class BackgroundLoad:
    """What others did beside the load: known once they are no longer watched."""

    def __init__(self, source: BackgroundLoadSource) -> None:
        self._source, self.sampler = source, Sampler([source], source.interval_ns)

    @property
    def series(self) -> Series:
        """What was counted, and what the counting cost."""
        return self.sampler.series[self._source.name]

    def known(self) -> dict[str, Series]:
        """The series by its name; nothing where others could not be distinguished from the server."""
        return {self._source.name: self.series} if self.series.t_ns else {}

    def within(self, window_ns: tuple[int, int]) -> Disturbance:
        """How much that disturbed the measured window."""
        return interference(self.series, window_ns, cores=self._source.cores, others=self._source.shares())


@contextmanager
def watching_background(context: StackContext, disks: list[str]) -> Iterator[BackgroundLoad]:
    """Watch all that is none of ours for as long as the context lasts.

    Nothing is watched where a server's process is not known: on this host it would count as background load.
    """
    server = context.endpoint.pid if context.endpoint else None
    ours = {pid for pid in (server, *context.journal.processes()) if pid}
    load = BackgroundLoad(BackgroundLoadSource(ours, disks, pollers=context.pollers is not None))
    if context.endpoint and context.endpoint.pid is None and not context.endpoint.in_machine:
        yield load
        return
    load.sampler.start()
    try:
        yield load
    finally:
        load.sampler.stop()
