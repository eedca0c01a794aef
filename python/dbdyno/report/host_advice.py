"""What a measured host is good for, and what to change: rules from figures to sentences."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.analysis.quick import OTHERS_MAX, STOLEN_MAX, UNKNOWN, HostMeasurement
from dbdyno.model.wording import number, percent

# A SELECT by key takes some 50 to 100 us on a server whose data are in memory: a round trip that takes longer than
# that at its p99 is most of what is measured. Elsewhere it fell from 723 to 86 us where processors were kept awake.
WAKE_UP_US_MAX = 150.0
# A sleep may end 50 us late by the slack of timers alone (prctl(2), PR_SET_TIMERSLACK); awake, p99 was 99 us.
TIMER_LATE_US_MAX = 200.0
# Through the vDSO reading the clock takes 20 to 50 ns, by a system call several hundred (vdso(7)); a server reads it
# some ten times a statement.
CLOCK_READ_NS_MAX = 200.0
# What a drive's own answer takes: the path to an emulated one must be shorter (docs/disk.md).
SATA_READ_US, NVME_READ_US, NVME_IOPS = 90.0, 50.0, 100_000.0
# A server, its client and an emulated disk want one each, and a fourth is left for the probes and the kernel.
CORES_ENOUGH, CORES_MIN = 4, 2
MEMORY_BYTES_MIN = 2 * 1024**3  # of the demo: a disk of 1 GiB in memory, server, and page cache
MEMORY_BYTES_PER_SECOND_MIN = 2e9  # one memory channel of twenty years ago; less is emulated or starved

GOOD, WITH_CARE, NO, NOT_KNOWN = "good", "with care", "no", "unknown"


@dataclass(frozen=True)
class HostAdvice:
    """Something to change, why, and the command or line of a study that does it."""

    what: str
    why: str
    command: str


@dataclass(frozen=True)
class Fitness:
    """A kind of study, whether this host is good for it, and what speaks against it."""

    study: str
    fit: str  # GOOD, WITH_CARE, NO, NOT_KNOWN
    why: str = ""


def advice(host: HostMeasurement) -> list[HostAdvice]:
    """Return what to change, what matters most first; nothing of what is unknown."""
    return [*_others(host), *_wake_ups(host), *_clock(host), *_memory(host), *_processors(host)]


def _wake_ups(host: HostMeasurement) -> Iterator[HostAdvice]:
    slow = [
        *([f"a wake-up takes {_us(host.wake_up_us_p99)} (p99)"] if host.wake_up_us_p99 > WAKE_UP_US_MAX else []),
        *(
            [f"timers are late by {_us(host.timer_late_us_p99)} (p99)"]
            if host.timer_late_us_p99 > TIMER_LATE_US_MAX
            else []
        ),
    ]
    if not slow:
        return
    cause = (
        "other programs use the processors; stop those first"
        if host.busy_share > OTHERS_MAX
        else "halted processors wake up late"
    )
    why = f"{' and '.join(slow)}: {cause}"
    if host.can_be_awake:
        yield HostAdvice("keep processors awake", why, "in the study: [host] awake = true")
    else:
        lacking = host.why_not_awake or "this host offers no way to"
        yield HostAdvice("keep processors awake", f"{why}; {lacking}", host.awake_remedy or "use another host")


def _others(host: HostMeasurement) -> Iterator[HostAdvice]:
    if host.stolen_share > STOLEN_MAX:
        why = f"the hypervisor took {percent(host.stolen_share, sign=False)} of the processors' time"
        yield HostAdvice("use a machine with processors of its own, or a quieter hour", why, "vmstat 1 (column st)")
    if host.busy_share > OTHERS_MAX:
        used = percent(host.busy_share, sign=False)
        why = f"they use {used} of the processors' time, which distorts all figures here"
        yield HostAdvice("stop other programs and run doctor again", why, "top (the busiest comes first)")


def _clock(host: HostMeasurement) -> Iterator[HostAdvice]:
    if not host.clock_read_ns > CLOCK_READ_NS_MAX:
        return
    better = next((source for source in ("tsc", "kvm-clock", "arch_sys_counter") if source in host.clock_sources), None)
    why = f"reading the clock ({host.clock_source}) takes {number(host.clock_read_ns)} ns: it is a system call"
    place = "/sys/devices/system/clocksource/clocksource0"
    if better and better != host.clock_source:
        yield HostAdvice(f"use the clock source {better}", why, f"echo {better} | sudo tee {place}/current_clocksource")
    else:
        yield HostAdvice("look for a faster clock source", why, f"cat {place}/available_clocksource")


def _memory(host: HostMeasurement) -> Iterator[HostAdvice]:
    if host.swap_bytes > 0:
        why = "the kernel may swap out the server's memory, which delays queries"
        yield HostAdvice("switch swap off while you measure", why, "sudo swapoff -a (afterwards: sudo swapon -a)")
    if host.memory_bytes < MEMORY_BYTES_MIN:
        why = f"there is {number(host.memory_bytes / 1024**3)} GiB of memory, and emulated disks are kept in it"
        yield HostAdvice("make emulated disks and buffer pools small", why, 'in the study: [stack] size = "512MiB"')
    if host.memory_bytes_per_second < MEMORY_BYTES_PER_SECOND_MIN:
        why = (
            f"one thread copies {number(host.memory_bytes_per_second / 1e9)} GB/s; one memory channel gives more than 2"
        )
        yield HostAdvice(
            "find out what slows memory down, such as an emulated processor",
            why,
            "lscpu (Model name, Hypervisor vendor)",
        )


def _processors(host: HostMeasurement) -> Iterator[HostAdvice]:
    if "powersave" in host.governor or "ondemand" in host.governor:
        why = f"the frequency governor is {host.governor}: processors begin slow"
        yield HostAdvice("run processors at full speed", why, "sudo cpupower frequency-set -g performance")
    if host.cores < CORES_MIN:
        why = "server, client and emulated disk take turns on one processor"
        yield HostAdvice("use a machine with more processors", why, "nproc")
    elif host.cores < CORES_ENOUGH:
        why = f"server, client and emulated disk share {host.cores} processors"
        line = 'in the study: [stack] server_cpus = "0" and client_cpus = "0"'
        yield HostAdvice("for short statements, keep server and client on one processor", why, line)


def fitness(host: HostMeasurement) -> list[Fitness]:
    """Return each kind of study and how far this host is good for it."""
    return [
        _judge("hard disks and SATA SSDs, emulated", _disk(host, SATA_READ_US, 0.0)),
        _judge("NVMe drives, emulated", _disk(host, NVME_READ_US, NVME_IOPS)),
        _judge("durable commits and writes, effects over 10 %", _quiet(host)),
        _judge("short statements, p99 latency, effects under 10 %", [*_quiet(host), *_quick(host)]),
        _judge("16 clients and more", _wide(host)),
    ]


@dataclass(frozen=True)
class _Doubt:
    """Something against a kind of study; ``known`` is false where it could not be measured."""

    why: str
    rules_out: bool = False
    known: bool = True


def _judge(study: str, doubts: list[_Doubt]) -> Fitness:
    against = [doubt.why for doubt in doubts if doubt.known]
    if any(doubt.rules_out for doubt in doubts):
        return Fitness(study, NO, "; ".join(against))
    if against:
        return Fitness(study, WITH_CARE, "; ".join(against))
    if doubts:
        return Fitness(study, NOT_KNOWN, "; ".join(doubt.why for doubt in doubts))
    return Fitness(study, GOOD)


def _disk(host: HostMeasurement, read_us: float, iops: float) -> list[_Doubt]:
    if math.isnan(host.disk_us_p50):
        return [_Doubt(host.no_disk or "not measured", known=False)]
    doubts = []
    if host.disk_us_p50 > read_us:
        way = f"the path to an emulated disk takes {_us(host.disk_us_p50)}, a read on such a drive {_us(read_us)}"
        doubts.append(_Doubt(way, rules_out=host.disk_us_p50 > 2 * read_us))
    if host.disk_iops < iops:
        doubts.append(_Doubt(f"the path does {number(host.disk_iops)} IOPS, such drives {number(iops)} or more"))
    return doubts


def _quiet(host: HostMeasurement) -> list[_Doubt]:
    doubts = []
    if math.isnan(host.stolen_share):
        doubts.append(_Doubt("stolen time is unknown", known=False))
    elif host.stolen_share > STOLEN_MAX:
        doubts.append(
            _Doubt(
                f"the hypervisor took {percent(host.stolen_share, sign=False)} of the time (steal)",
                rules_out=host.stolen_share > 10 * STOLEN_MAX,
            )
        )
    if host.busy_share > OTHERS_MAX:
        doubts.append(_Doubt("other programs use the processors"))
    return doubts


def _quick(host: HostMeasurement) -> list[_Doubt]:
    if math.isnan(host.wake_up_us_p99):
        return [_Doubt("wake-ups were not measured", known=False)]
    doubts = []
    if host.wake_up_us_p99 > WAKE_UP_US_MAX:
        remedy = " ([host] awake = true may help)" if host.can_be_awake else ""
        doubts.append(_Doubt(f"a wake-up takes {_us(host.wake_up_us_p99)} (p99){remedy}"))
    if host.clock_read_ns > CLOCK_READ_NS_MAX:
        doubts.append(_Doubt(f"reading the clock takes {number(host.clock_read_ns)} ns"))
    if host.cores < CORES_MIN:
        doubts.append(_Doubt("server, client and disk share one processor"))
    return doubts


def _wide(host: HostMeasurement) -> list[_Doubt]:
    if host.cores >= CORES_ENOUGH:
        return _quiet(host)
    why = f"server, client and disk share {_processors_text(host.cores)}: at high rates they slow each other down"
    return [_Doubt(why, rules_out=host.cores < CORES_MIN), *_quiet(host)]


def figure_lines(host: HostMeasurement) -> list[tuple[str, str]]:
    """Return name and value of each figure, unknown ones as such."""
    disk = f"median {_us(host.disk_us_p50)}, p99 {_us(host.disk_us_p99)}, {_number(host.disk_iops)} IOPS by 16 readers"
    return [
        ("wake-up, round trip", f"median {_us(host.wake_up_us_p50)}, p99 {_us(host.wake_up_us_p99)}"),
        ("1 ms sleep, late by", f"median {_us(host.timer_late_us_p50)}, p99 {_us(host.timer_late_us_p99)}"),
        ("clock source", f"{host.clock_source}, {_number(host.clock_read_ns)} ns to read"),
        ("memory copy, one thread", f"{_number(host.memory_bytes_per_second / 1e9)} GB/s"),
        ("CPU stolen (steal)", _share(host.stolen_share)),
        ("CPU of other programs", _share(host.busy_share)),
        ("emulated disk, 4K read", f"not measured: {host.no_disk}" if host.no_disk else disk),
    ]


def _number(value: float) -> str:
    return UNKNOWN if math.isnan(value) else number(value)


def _us(value: float) -> str:
    return UNKNOWN if math.isnan(value) else f"{number(value)} us"


def _share(value: float) -> str:
    return UNKNOWN if math.isnan(value) else percent(value, sign=False)


def _processors_text(cores: int) -> str:
    return "one processor" if cores == 1 else f"{cores} processors"
