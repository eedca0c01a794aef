"""How late an emulated disk answered, how slow an emulated CPU is, and how much of a comparison that may account for.

An emulated disk is a program: on a busy host its answers come later than the drive's would. How much a figure would
be better without that is not known, but bounded from above, twice:

- by the requests. Of the time that a request took, T, a part L was not the drive's. Whatever waits for nothing but
  requests would take 1 - L/T of its time.
- by the clock. So many requests a second, each late by L, are late for at most rate x L of all time, if no two are
  late at once: cutting these moments out of the run shortens it by no more than they last. This one tells a load that
  hardly asks the disk from one that does nothing else.

The smaller of the two is the *share*, s. Where each of two treatments may be faster by anything from nothing to
-ln(1 - s), a comparison's log ratio may be off by as much, in either direction: what both have in common need not
cancel out, as one may wait for the disk and the other for something else. So in a contrast of several treatments their
shares add up, each with its weight.

But one treatment that is measured twice, as a control of two runs is, sends the same statements to the same server, and
waits for the same part f of what is late. What its own change may be off by is f times the difference of both shares,
with f between 0 and 1: where the disk was as late before as after, nothing. So a control costs a comparison against it
no more than the lateness that changed between the runs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbdyno.analysis.load_checks import shows_capacity
from dbdyno.analysis.statistics import Estimate, Floats, log_margin
from dbdyno.model.disks import disks_of
from dbdyno.model.metrics import PERCENTILES, Metric, or_zero, part_of, value_of
from dbdyno.model.word import Word
from dbdyno.store.records import Trial

SHARE_MAX = 0.99  # a figure is no less than a hundredth of itself, whatever is taken out of it
_KINDS = ("read", "write", "flush")  # of requests; nobody waits for a discard
_UNITS = {"1/s", "1/min", "MB/s"}  # of rates: as the time goes down, they go up
# Of a latency's percentile: the part of all events that lie above, and which percentile of lateness goes with it: the
# next that is no less.
_TAILS = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}  # as far as every disk reports them
_PERCENTILES = {
    end: (round(1 - share, 9), next(tail for tail, least in _TAILS.items() if least >= share))
    for end, share in {**PERCENTILES, "max": 1.0}.items()
}
_OF_REQUESTS = ("device_ms_mean", "device_ms_p99", "flush_ms_mean", "write_wait_ms_mean")


@dataclass(frozen=True)
class Lateness:
    """What requests of one trial, or of a treatment's, met; microseconds are means over requests."""

    late_us: float  # longer than the drive would have taken; less than 0 where the disk was early
    request_us: float  # that a request took, from when the block layer handed it on; NaN where unknown
    share: float  # of the time that the figure stands for, at most; negative where the disk was early


@dataclass(frozen=True)
class LateDisk:
    """An emulated disk whose lateness may account for more than the margin of what is compared."""

    label: str  # of the treatment whose figure it bears on most
    late_us: float
    request_us: float
    share: float  # of the time that this treatment's figure stands for, at most
    reach: float  # by so much the ratio of the two may be off: .3 for 30 %


def lateness(trials: Sequence[Trial], metric: Metric) -> Lateness | None:
    """Return what a treatment's requests met, means over its trials; ``None`` where no disk says how late it was."""
    each = [found for trial in trials if (found := lateness_of(trial, metric))]
    if not each:
        return None
    rows = np.array([(one.late_us, one.request_us, one.share) for one in each])
    return Lateness(*map(float, rows.mean(axis=0)))


def lateness_of(trial: Trial, metric: Metric) -> Lateness | None:
    """Return what the requests of a trial met; ``None`` where its disk does not say how late it was."""
    if not trial.device:
        return None
    disks = [found for disk in disks_of(trial.device) if (found := _requests(disk))]
    asked = math.fsum(one.number for one in disks)
    if not asked:
        return None
    late_us = math.fsum(one.number * one.late_us for one in disks) / asked
    request_us = math.fsum(one.number * one.took_us for one in disks) / asked
    tails = {name: max(one.tails_us.get(name, math.nan) for one in disks) for _, name in _PERCENTILES.values()}
    requests = _Requests(asked, late_us, request_us, tails)
    return Lateness(late_us, request_us, _share(trial, metric, requests))


@dataclass(frozen=True)
class _Requests:
    """Those of one disk, or of all a trial's: how many, by how much late, how long they took, and the tail."""

    number: float
    late_us: float
    took_us: float
    tails_us: Mapping[str, float]  # percentile -> by so much late


def _requests(disk: Mapping[str, Any]) -> _Requests | None:
    kinds = [part_of(disk, "service_ns", kind) for kind in _KINDS]
    counted = [(value_of(kind, "count"), value_of(kind, "mean")) for kind in kinds]
    known = [(number, mean) for number, mean in counted if number > 0 and math.isfinite(mean)]
    number, answered_ns = math.fsum(one for one, _ in known), part_of(disk, "lateness_ns")
    late_ns = value_of(answered_ns, "mean")
    if not number or not math.isfinite(late_ns):
        return None
    way = {name: value_of(part_of(disk, f"path_{name}_ns"), "mean") for name in ("before", "taken", "left", "early")}
    path_ns = value_of(disk, "path_ns")
    if math.isfinite(way["left"]) and math.isfinite(way["early"]):
        off_ns = way["left"] - way["early"]
    else:  # lateness leaves out what of the way could not be made up for
        off_ns = late_ns + max(0.0, or_zero(path_ns - way["taken"]))
    took_ns = math.fsum(one * mean for one, mean in known) / number + or_zero(way["before"])
    tails = {name: (value_of(answered_ns, name) + off_ns - late_ns) / 1e3 for _, name in _PERCENTILES.values()}
    return _Requests(number, off_ns / 1e3, took_ns / 1e3, tails)


def _share(trial: Trial, metric: Metric, requests: _Requests) -> float:
    """Return the part of what a figure stands for that lateness may account for; 0 of figures that are no times."""
    rate = _ratio(requests.number, _seconds(trial))
    of_requests, of_time = _ratio(requests.late_us, requests.took_us), requests.late_us * rate / 1e6
    name, _, end = metric.name.rpartition("_")
    if metric.name in _OF_REQUESTS:
        late_us = requests.tails_us["p99"] if end == "p99" else requests.late_us
        return _bounded(_ratio(late_us / 1e3, value_of(trial.metrics, metric.name)))
    if name == "latency_ms":
        of_mean = _nearer(of_requests, of_time / min(1.0, _in_flight(trial)))
        return _share_of_latency(trial, end, requests, of_mean)
    is_rate = metric.unit in _UNITS
    if is_rate and _is_offered(trial):
        return 0.0
    is_time = is_rate or metric.name == "seconds_real" or metric.name.startswith("figure_")
    return _bounded(_nearer(of_requests, of_time)) if is_time else 0.0


def _is_offered(trial: Trial) -> bool:
    """Return whether a trial's rate is that at which its events came, which no disk changes."""
    return part_of(trial.load, "loop").get("kind") == "open" and not shows_capacity([trial])


def _share_of_latency(trial: Trial, which: str, requests: _Requests, of_mean: float) -> float:
    """Return the part of a latency; ``of_mean`` is that of the mean.

    A percentile meets one request at that percentile of lateness and all others of its event at the mean. Where fewer
    events than lie above it can have met any request, it meets none; several may share one, as a group of commits does.
    """
    if which not in _PERCENTILES:
        return _bounded(of_mean)
    above, tail = _PERCENTILES[which]
    each = _ratio(_ratio(requests.number, _seconds(trial)), value_of(trial.metrics, "events_per_second"))
    if each * max(1.0, _in_flight(trial)) < above:
        return 0.0
    late_us = requests.tails_us[tail] + max(0.0, or_zero(each) - 1.0) * requests.late_us
    return _bounded(_ratio(late_us / 1e3, value_of(trial.metrics, f"latency_ms_{which}")))


def _in_flight(trial: Trial) -> float:
    """Return how many events are under way at a time, by Little's law; 1 where it is not known."""
    found = value_of(trial.metrics, "latency_ms_mean") / 1e3 * value_of(trial.metrics, "events_per_second")
    return found if found > 0 else 1.0


def _seconds(trial: Trial) -> float:
    """Return for how long the disk counted: warm-up and measured run; NaN where that is not known."""
    clock = part_of(trial.load, "clock")
    before_ns = or_zero(value_of(clock, "connect_ns")) + or_zero(value_of(clock, "warmup_ns"))
    return before_ns / 1e9 + value_of(trial.metrics, "seconds_real")


def _nearer(one: float, other: float) -> float:
    """Return what is nearer to 0 of two bounds with one sign; the one that is known where the other is not."""
    known = [bound for bound in (one, other) if math.isfinite(bound)]
    return min(known, key=abs, default=0.0)


def _ratio(part: float, whole: float) -> float:
    """Return a part of a whole; NaN where that is none."""
    return part / whole if whole > 0 else math.nan


def _bounded(share: float) -> float:
    return min(share, SHARE_MAX) if math.isfinite(share) else 0.0


def log_gains(trials: Sequence[Trial], metric: Metric) -> Floats:
    """Return by how much the log of each trial's figure would change at most had the disk been in time.

    Shape (trials,); 0 where the disk does not say.
    """
    found = (lateness_of(trial, metric) for trial in trials)
    times = np.array([math.log1p(-one.share) if one else 0.0 for one in found])
    return -times if metric.more_is_better else times


@dataclass(frozen=True)
class Side:
    """A treatment of a contrast, which is a weighted sum of logarithms: a level has 1, its baseline -1."""

    label: str
    weight: float
    trials: Sequence[Trial]  # one of each block of the contrast, in order; of two runs, all of its run
    unchanged: str = ""  # a name that it shares with its other measurement, where no change touched the treatment


def ratios_without_lateness(d: Floats, sides: Sequence[Side], metric: Metric) -> tuple[Floats, Floats]:
    """Return the lowest and the highest log ratios that there may have been had the disk been in time.

    ``d`` are those measured, shape (blocks,).
    """
    return _without(d, _gains_in_time(sides, metric))


def _gains_in_time(sides: Sequence[Side], metric: Metric) -> list[Floats]:
    return [side.weight * log_gains(side.trials, metric) for side in sides]


def _without(d: Floats, gains: Iterable[Floats]) -> tuple[Floats, Floats]:
    """Return the extremes of log ratios where each figure may be off by anything from nothing to its weighted gain."""
    low, high = d, d
    for gain in gains:
        low, high = low + np.minimum(0.0, gain), high + np.maximum(0.0, gain)
    return low, high


def lateness_share(sides: Sequence[Side], metric: Metric) -> float | None:
    """Return by how much a ratio may be off for the lateness of its disks, mean over the blocks: .3 for 30 %.

    ``None`` where no disk says how late it was.
    """
    if all(lateness(side.trials, metric) is None for side in sides):
        return None
    return _reach(sides, _gains_in_time(sides, metric))


def _reach(sides: Sequence[Side], gains: Sequence[Floats]) -> float:
    """Return by how much a ratio may be off, mean over the trials of each side: .3 for 30 %.

    Of a treatment that no change touched it is the difference of its two measurements.
    """
    ends = []
    for sign in (1.0, -1.0):
        alone, shared = 0.0, dict[str, float]()
        for gain, side in zip(gains, sides, strict=True):
            if side.unchanged:
                shared[side.unchanged] = shared.get(side.unchanged, 0.0) + sign * float(np.mean(gain))
            else:
                alone += float(np.mean(np.maximum(0.0, sign * gain)))
        ends.append(alone + math.fsum(max(0.0, gain) for gain in shared.values()))
    return math.expm1(max(ends))


def late_disk(sides: Sequence[Side], metric: Metric, margin: float) -> LateDisk | None:
    """Return why a word on a contrast must hold for ``ratios_without_lateness`` as well.

    ``None`` where lateness is within the margin of what is compared.
    """
    reach = lateness_share(sides, metric)
    if reach is None or math.log1p(reach) <= log_margin(margin):
        return None
    known = [(side.label, found) for side in sides if (found := lateness(side.trials, metric))]
    label, worst = max(known, key=lambda found: abs(found[1].share))
    return LateDisk(label, worst.late_us, worst.request_us, worst.share, reach)


def is_late(found: Lateness | None, margin: float) -> bool:
    """Return whether a disk's lateness bears on a figure by more than a margin."""
    return found is not None and abs(math.log1p(-found.share)) > log_margin(margin)


# How much of a comparison an emulated CPU may account for.
#
# Where QEMU translates each instruction, work of the CPU takes 10 to 20 times as long, and one kernel's more than
# another's: nothing tells how much. So a word must hold whatever the CPU's part of either figure would have been. That
# part is bounded from above: CPU time of server, client and all others in the guest, divided by the events in flight,
# and the time in which any task waited for a processor. Unknown is taken for all of it.


@dataclass(frozen=True)
class EmulatedCpu:
    """A CPU that QEMU emulates, which may account for more than the margin of what is compared."""

    label: str  # of the treatment in which it has the larger part
    share: float  # of the time that this treatment's figure stands for, at most
    reach: float  # by so much the ratio of the two may be off: .3 for 30 %


def cpu_share(trial: Trial, metric: Metric) -> float:
    """Return the part of a figure that an emulated CPU may account for, at most; 0 where the CPU is none."""
    guest = part_of(trial.observed, "guest")
    if not trial.has_emulated_cpu:
        return 0.0
    name = metric.name
    if (metric.unit in _UNITS and _is_offered(trial)) or name in _OF_REQUESTS:
        return 0.0
    if name in {"server_cpu_us_per_query", "client_cpu_us_per_query", "seconds_user", "seconds_sys"}:
        return SHARE_MAX
    if not (metric.unit in _UNITS or name.startswith(("latency_ms_", "figure_")) or name == "seconds_real"):
        return 0.0
    cpus = value_of(guest, "cpus")
    per_query_us = sum(value_of(trial.metrics, f"{whose}_cpu_us_per_query") for whose in ("server", "client"))
    cores = per_query_us * value_of(trial.metrics, "queries_per_second") / 1e6
    by_guest = part_of(trial.disturbance, "in_guest")
    cores += or_zero(value_of(by_guest, "foreign_cpu")) * cpus
    waiting = value_of(by_guest, "cpu_some")
    waiting = waiting if math.isfinite(waiting) else _ratio(cores, cpus)
    share = cores / max(1.0, _in_flight(trial)) + waiting
    return min(share, SHARE_MAX) if math.isfinite(share) else SHARE_MAX


def ratios_without_cpu(d: Floats, sides: Sequence[Side], metric: Metric) -> tuple[Floats, Floats]:
    """Return the extremes of ``d`` had the CPU taken no time in any of them; shapes as ``ratios_without_lateness``."""
    return _without(d, _gains_of_cpu(sides, metric))


def _gains_of_cpu(sides: Sequence[Side], metric: Metric) -> list[Floats]:
    sign = -1.0 if metric.more_is_better else 1.0
    logs = (np.array([math.log1p(-cpu_share(trial, metric)) for trial in side.trials]) for side in sides)
    return [sign * side.weight * log for side, log in zip(sides, logs, strict=True)]


def emulated_cpu(sides: Sequence[Side], metric: Metric, margin: float) -> EmulatedCpu | None:
    """Return why a word on a contrast must hold for ``ratios_without_cpu`` as well.

    ``None`` where the CPU is within the margin of what is compared, and where there are no trials yet.
    """
    if not all(side.trials for side in sides):
        return None
    reach = _reach(sides, _gains_of_cpu(sides, metric))
    if math.log1p(reach) <= log_margin(margin):
        return None
    shares = [(float(np.mean([cpu_share(trial, metric) for trial in side.trials])), side.label) for side in sides]
    share, label = max(shares)
    return EmulatedCpu(label, share, reach)


def not_of_the_drive(sides: Sequence[Side], metric: Metric, margin: float) -> list[LateDisk | EmulatedCpu]:
    """Return what else than the drive may account for more than the margin of a contrast, what reaches farther first.

    Whatever compares treatments asks here: pairs, means, rankings, two runs, and runs through time.
    """
    causes = late_disk(sides, metric, margin), emulated_cpu(sides, metric, margin)
    return sorted((cause for cause in causes if cause), key=lambda cause: -cause.reach)


Causes = Sequence[LateDisk | EmulatedCpu]


def that_explains(causes: Causes, effect: Estimate, word: Word) -> LateDisk | EmulatedCpu | None:
    """Return the first cause whose reach leads from an interval to 0, or beyond the margin where both are alike.

    This is asked where no blocks are shared, of two runs and of runs through time, for an effect's interval as a
    relative difference.
    """
    nearest = max(math.log1p(effect.low), -math.log1p(effect.high)) if word.is_different else 0.0
    return next((cause for cause in causes if math.log1p(cause.reach) >= nearest), None)
