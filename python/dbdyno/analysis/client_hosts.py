"""Loads that other hosts offered together: what each did, whether they started as one, and which of them was the limit.

A client host is the limit where it can't do what it is asked for: then a figure is its own, not the server's.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.model.design import Design
from dbdyno.model.metrics import known_values, value_of
from dbdyno.store.records import Trial

CPU_MOST = 0.8  # of a core, by the busiest thread of the load
WAIT_MOST = 0.05  # of the time, in which that thread could have run and others did
# What was due starts later than both in 1 % of events. A virtual machine that is free wakes up to .5 ms late.
LATE_MS, LATE_OF_P50 = 1.0, 0.1
INTERFACE_MOST = 0.8  # of the network interface's speed
MOVES = 0.1  # of the 99th percentile: a host that moves it by more is named

Limit = Literal["processor", "run queue", "late starts", "network interface"]


@dataclass(frozen=True)
class Limited:
    """Why a host was the limit: medians over the trials in which it was."""

    by: Limit
    value: float  # share of a core, of the time, of the interface; milliseconds of late starts
    trials: int
    of: int


@dataclass(frozen=True)
class ClientHostShare:
    """One host's part of a treatment's load: medians over trials, NaN for what is unknown."""

    name: str
    clients: int
    events_per_second: float
    queries_per_second: float
    latency_ms_p99: float
    moved: float  # by how much the 99th percentile of all is above that of all others, relative
    started_within_us: float  # of the agreed moment, at the worst of all trials; the clock's bound is in it
    clock_bound_us: float
    rtt_ms_min: float
    rtt_ms_median: float
    retransmits: int  # over all trials
    limits: tuple[Limited, ...]

    @property
    def moves_the_tail(self) -> bool:
        """Whether the 99th percentile of all is as much this host's as the server's."""
        return abs(self.moved) > MOVES


@dataclass(frozen=True)
class LoadFromHosts:
    """The load of one treatment."""

    id: str
    label: str
    trials: int
    hosts: tuple[ClientHostShare, ...]

    @property
    def started_within_us(self) -> float:
        """How far from the agreed moment any host started in any trial."""
        return max(host.started_within_us for host in self.hosts)


def loads_from_hosts(design: Design, blocks: UsableBlocks) -> list[LoadFromHosts]:
    """Return the treatments whose load came from other hosts."""
    loads = []
    for treatment in design.treatments:
        trials = [trial for trial in blocks.of(treatment.id) if trial.load.get("client_hosts")]
        if trials:
            names = [str(host["host"]) for host in trials[0].load["client_hosts"] or ()]
            hosts = tuple(_host(name, trials) for name in names)
            loads.append(LoadFromHosts(treatment.id, treatment.label, len(trials), hosts))
    return loads


def limiting_hosts(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the hosts that were the limit in more than half of a treatment's trials."""
    named = [str(host["host"]) for trial in trials[:1] for host in trial.load.get("client_hosts") or ()]
    return tuple(name for name in named if any(limit.of < 2 * limit.trials for limit in _limits(name, trials)))


def _host(name: str, trials: Sequence[Trial]) -> ClientHostShare:
    figures = [host_figures for trial in trials if (host_figures := _host_figures(trial, name))]
    starts = [
        abs(value_of(host_figures, "start_off_us")) + value_of(host_figures, "clock_bound_us")
        for host_figures in figures
    ]
    return ClientHostShare(
        name=name,
        clients=round(_median(figures, "clients")),
        events_per_second=_median(figures, "events_per_second"),
        queries_per_second=_median(figures, "queries_per_second"),
        latency_ms_p99=_median(figures, "latency_ms_p99"),
        moved=_tail_shift(trials, name),
        started_within_us=max(starts, default=math.nan),
        clock_bound_us=max((value_of(host_figures, "clock_bound_us") for host_figures in figures), default=math.nan),
        rtt_ms_min=_median(figures, "rtt_ms_min"),
        rtt_ms_median=_median(figures, "rtt_ms_median"),
        retransmits=round(math.fsum(known_values(figures, "retransmits"))),
        limits=tuple(limit for limit in _limits(name, trials) if limit.of < 2 * limit.trials),
    )


def _tail_shift(trials: Sequence[Trial], name: str) -> float:
    """Return the median over trials of what this host adds to the 99th percentile of all."""
    changes = []
    for trial in trials:
        of_all = value_of(trial.load.get("latency_ns") or {}, "p99") / 1e6
        of_others = value_of(_host_figures(trial, name), "latency_ms_p99_of_others")
        if of_others > 0 and math.isfinite(of_all):
            changes.append(of_all / of_others - 1)
    return statistics.median(changes) if changes else math.nan


def _limits(name: str, trials: Sequence[Trial]) -> list[Limited]:
    """Return each way in which the host was the limit of any trial."""
    limits = []
    for by, (value_in, is_limit) in _RULES.items():
        over = [value for trial in trials if is_limit(value := value_in(_host_figures(trial, name)), trial)]
        if over:
            limits.append(Limited(by, statistics.median(over), len(over), len(trials)))
    return limits


def _is_late(value: float, trial: Trial) -> bool:
    p50_ms = value_of(trial.load.get("latency_ns") or {}, "p50") / 1e6
    return value > max(LATE_MS, LATE_OF_P50 * p50_ms) if math.isfinite(p50_ms) else value > LATE_MS


def _figure(name: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda figures: value_of(figures, name)


def _beyond(most: float) -> Callable[[float, Trial], bool]:
    return lambda value, _: value > most


_RULES: dict[Limit, tuple[Callable[[Mapping[str, Any]], float], Callable[[float, Trial], bool]]] = {
    "processor": (_figure("thread_cpu_share"), _beyond(CPU_MOST)),
    "run queue": (_figure("thread_wait_share"), _beyond(WAIT_MOST)),
    "late starts": (_figure("start_lateness_ms_p99"), _is_late),
    "network interface": (_figure("interface_share"), _beyond(INTERFACE_MOST)),
}


def _host_figures(trial: Trial, name: str) -> Mapping[str, Any]:
    """Return a host's figures of a trial; nothing where it took no part."""
    hosts = trial.load.get("client_hosts") or ()
    return next((host for host in hosts if host.get("host") == name), {})


def _median(figures: Sequence[Mapping[str, Any]], name: str) -> float:
    values = known_values(figures, name)
    return statistics.median(values) if values else math.nan
