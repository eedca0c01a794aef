"""What decides how far to trust a trial: its load, its durability, and the lateness of the emulated disk."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.over_time import Columns, floats
from dbdyno.analysis.statistics import Floats, log_margin
from dbdyno.model.design import Design
from dbdyno.model.metrics import PERCENTILES, Metric, part_of, value_of
from dbdyno.model.results import FastCache
from dbdyno.mysql.settings import PAGES_READ, POOL_FREE, POOL_TOTAL, QUESTIONS
from dbdyno.store.records import Trial

# What the load met that changes how its figures are to be read: a server that fell behind its rate, and errors.


BEHIND = 0.99  # of the offered rate; below it, and with that much waiting, the server did not keep up
WAITING_MIN = 10  # events; of a few, one that was late proves nothing
LATE = 0.1  # of the 99th percentile of latency: what the load generator itself may add to it


@dataclass(frozen=True)
class Overload:
    """An open loop that a treatment did not keep up with: means over the trials in which it fell behind."""

    offered_per_second: float
    achieved_per_second: float
    backlog_max: int  # events that waited, at the worst moment of any trial
    trials: int  # that fell behind
    of: int


def overload(trials: Sequence[Trial]) -> Overload | None:
    """Return what a treatment could not do, or ``None`` where it kept up or its loop was closed.

    A trial fell behind where less than 99 % of the rate was achieved while at least 1 % of all events, and 10, waited
    at once: the second keeps out a short Poisson run that by chance was offered less than its rate.
    """
    behind = [trial for trial in trials if _fell_behind(trial)]
    if not behind:
        return None
    offered = [_number(trial.load["loop"], "rate") for trial in behind]
    achieved = [_number(trial.load, "achieved_per_second") for trial in behind]
    return Overload(
        offered_per_second=math.fsum(offered) / len(offered),
        achieved_per_second=math.fsum(achieved) / len(achieved),
        backlog_max=max(round(_number(trial.load, "backlog_max")) for trial in behind),
        trials=len(behind),
        of=len(trials),
    )


def _fell_behind(trial: Trial) -> bool:
    if not isinstance(trial.load.get("loop"), Mapping):
        return False
    many = max(WAITING_MIN, (1 - BEHIND) * _number(trial.load, "offered"))
    return _number(trial.load, "backlog_max") >= many and value_of(trial.metrics, "achieved_ratio") < BEHIND


def shows_capacity(trials: Sequence[Trial]) -> bool:
    """Return whether the rates are the most that could be done, not what the load asked for.

    An offered rate is a choice of the study's, unless the treatment fell behind it in every trial; so is what clients
    that pause come to.
    """
    return all(_is_all_it_can(trial) for trial in trials)


def _is_all_it_can(trial: Trial) -> bool:
    loop = trial.load.get("loop")
    if not isinstance(loop, Mapping):
        return True
    if loop.get("kind") == "open":
        return _fell_behind(trial)
    return not _number(loop, "think_seconds")


def generator_lateness_ms(trials: Sequence[Trial]) -> float | None:
    """Return how late 99 % of events were started though a client was free, if that is much of their latency.

    Mean over the trials. It is the load generator's doing, as it lacks CPU, not the server's.
    """
    late = [_number(trial.load.get("start_lateness_ns") or {}, "p99") / 1e6 for trial in trials]
    p99 = [value_of(trial.metrics, "latency_ms_p99") for trial in trials]
    if not late or not math.fsum(late) > LATE * math.fsum(p99):
        return None
    return math.fsum(late) / len(late)


@dataclass(frozen=True)
class ErrorsMet:
    """Errors that a treatment's trials met and ignored; one that must not be ignored fails its trial."""

    counts: tuple[tuple[int, int, str], ...]  # how often, code, the server's message; the most frequent first
    trials: int
    kind: str = ""  # of the load

    @property
    def total(self) -> int:
        """All of them."""
        return sum(number for number, _, _ in self.counts)


def errors_met(trials: Sequence[Trial]) -> ErrorsMet | None:
    """Return the errors over all statements and trials; ``None`` where there were none."""
    counts: Counter[int] = Counter()
    messages: dict[int, str] = {}
    for error in (error for trial in trials for error in trial.load.get("errors", [])):
        code = round(_number(error, "code"))
        counts[code] += round(_number(error, "count"))
        messages.setdefault(code, str(error.get("message", "")))
    if not counts:
        return None
    kind = next((str(trial.load.get("kind", "")) for trial in trials if trial.load.get("errors")), "")
    return ErrorsMet(tuple((number, code, messages[code]) for code, number in counts.most_common()), len(trials), kind)


def reconnects_met(trials: Sequence[Trial]) -> int:
    """Return how many lost connections were replaced: not those that end with the sessions of a replayed log."""
    lossy = (trial.load for trial in trials if trial.load.get("kind") != "replay-log")
    return sum(round(_number(load, "reconnects")) for load in lossy)


def _number(mapping: Mapping[str, Any], key: str) -> float:
    """Return a figure that may be missing from the run folder of an older dbdyno, or unknown: then 0."""
    return _known(value_of(mapping, key))


# Whether an emulated drive's fast cache ran out under the load, which changes the rate in the midst of a trial.


@dataclass(frozen=True)
class CacheRanOut:
    """The fast cache of a treatment's drive, and when it ran out."""

    bytes: float
    drive_bytes: float  # what the drive has, of which a small disk may have a part; NaN if not known
    after_s: float  # since measuring began, the median over the trials in which it ran out; negative: in the warm-up
    trials: int  # in which it ran out
    of: int


def cache_ran_out(trials: Sequence[Trial]) -> CacheRanOut | None:
    """Return when the fast cache of a treatment's drive ran out; ``None`` if it has none, or in no trial did."""
    caches = [cache for trial in trials if (cache := _cache(trial))]
    ran_out = [after_s for cache in caches if math.isfinite(after_s := value_of(cache, "ran_out_s"))]
    if not ran_out:
        return None
    return CacheRanOut(
        bytes=value_of(caches[0], "bytes"),
        drive_bytes=value_of(caches[0], "drive_bytes"),
        after_s=median(ran_out),
        trials=len(ran_out),
        of=len(trials),
    )


def _cache(trial: Trial) -> FastCache | None:
    """Return what the disk reported of its cache; of several that of the one whose cache ran out first."""
    reported = [disk.get("fast_cache") for disk in _disks(trial.device)]
    caches = [cache for cache in reported if cache]
    return min(caches, key=lambda cache: _or_never(value_of(cache, "ran_out_s")), default=None)


def _or_never(after_s: float) -> float:
    return after_s if math.isfinite(after_s) else math.inf


# Whether the buffer pool was still being filled while a treatment was measured: then its rate is that of a warm-up.
#
# A pool that fills reads pages into room that was free, so that ever fewer are left to be read. One that is warm reads
# next to nothing; one that is smaller than what is worked on reads as much at the end as at the start, and each page in
# place of another one. Neither is still filling, and nor is a pool that takes up pages which the load itself made.


SAMPLES_MIN = 9  # three to a third of a trial
PAGES_MIN = 30  # read in the first third
PER_QUERY_MIN = 0.005  # pages: less is next to nothing even on a hard disk, where 0.005 take 40 us
FALLEN_TO, FALLEN_TO_UNSEEN = 0.9, 0.75  # of the first third's reads; where it was not read how much was free
STANDARD_ERRORS, STANDARD_ERRORS_UNSEEN = 3.0, 4.0  # by which reads must have fallen, as counts of a Poisson process
GROWN_MIN, GROWN_OF_READ = 0.02, 0.25  # of the pool, and of the pages read, that went into free room

Status = Mapping[str, Mapping[str, Columns]]  # trial id -> probe -> column -> samples


@dataclass(frozen=True)
class Filling:
    """What one trial, or several in the mean, read in the first and in the last third of the measured time."""

    first_per_query: float  # pages
    last_per_query: float
    free_at_the_end: float  # share of the pool; NaN where it was not read back


@dataclass(frozen=True)
class PoolFilling:
    """A treatment whose pool was still being filled: means over the trials in which it was."""

    id: str
    found: Filling
    trials: int
    of: int


def pools_filling(design: Design, blocks: UsableBlocks, watched: Status) -> list[PoolFilling]:
    """Return the treatments of which more than half of the trials that were watched were still filling their pool."""
    pools = []
    for treatment in design.treatments:
        fillings = [
            filling(status, value_of(trial.metrics, "seconds_real"))
            for trial in blocks.of(treatment.id)
            if (status := watched.get(trial.id, {}).get("server_status"))
        ]
        fills = [fill for fill in fillings if fill]
        if 2 * len(fills) > len(fillings):
            pools.append(PoolFilling(treatment.id, _mean(fills), len(fills), len(fillings)))
    return pools


def filling(status: Columns, seconds: float) -> Filling | None:
    """Return what a trial read while its pool filled; ``None`` where it did not, or where that can't be said.

    ``status`` has the server's counters per second and gauges over time, ``seconds`` is how long was measured.
    """
    if not {"t_s", PAGES_READ, QUESTIONS} <= status.keys() or not seconds > 0:
        return None
    ends = floats(status["t_s"])
    lengths = np.diff(ends, prepend=np.nan)
    inside = (ends > 0) & (ends <= seconds) & np.isfinite(lengths)
    if inside.sum() < SAMPLES_MIN:
        return None
    third = np.minimum(2, (3 * ends[inside] / seconds).astype(np.int64))
    pages, queries = ((floats(status[name]) * lengths)[inside] for name in (PAGES_READ, QUESTIONS))
    free, total = (floats(status[name])[inside] if name in status else np.array([]) for name in (POOL_FREE, POOL_TOTAL))
    of_first, of_last = _in_third(0, third, pages, queries), _in_third(2, third, pages, queries)
    gauged = bool(len(free) and len(total) and np.isfinite(free).all() and total[-1] > 0)
    if not _fell(of_first, of_last, gauged=gauged) or (gauged and not _grew(free, total, float(np.nansum(pages)))):
        return None
    free_share = float(free[-1] / total[-1]) if gauged else math.nan
    return Filling(of_first[0] / of_first[1], of_last[0] / of_last[1], free_share)


def _in_third(part: int, third: np.ndarray[tuple[int], np.dtype[np.int64]], *counts: Floats) -> list[float]:
    return [float(np.nansum(samples[third == part])) for samples in counts]


def _fell(first: Sequence[float], last: Sequence[float], *, gauged: bool) -> bool:
    """Return whether fewer pages a query were read at the end than at first, beyond chance; each (pages, queries)."""
    if first[0] < PAGES_MIN or min(first[1], last[1]) <= 0 or first[0] / first[1] < PER_QUERY_MIN:
        return False
    rates = first[0] / first[1], last[0] / last[1]
    error = math.sqrt(first[0] / first[1] ** 2 + last[0] / last[1] ** 2)
    limit, errors = (FALLEN_TO, STANDARD_ERRORS) if gauged else (FALLEN_TO_UNSEEN, STANDARD_ERRORS_UNSEEN)
    return rates[1] <= limit * rates[0] and rates[0] - rates[1] >= errors * error


def _grew(free: Floats, total: Floats, pages_read: float) -> bool:
    """Return whether what was read went into room that was free."""
    grown = float(free[0] - free[-1])
    return grown >= GROWN_MIN * total[-1] and grown >= GROWN_OF_READ * pages_read


def _mean(fills: Sequence[Filling]) -> Filling:
    def mean(values: Sequence[float]) -> float:
        return math.fsum(values) / len(values)

    return Filling(
        mean([fill.first_per_query for fill in fills]),
        mean([fill.last_per_query for fill in fills]),
        mean([fill.free_at_the_end for fill in fills]),
    )


# Warm-ups that were to last until the rate was steady: what they took, and how many reached their bound instead.


FEW = 0.1  # of the trials


@dataclass(frozen=True)
class WarmUps:
    """The warm-ups of some trials, in seconds."""

    median: float
    shortest: float
    longest: float
    not_steady: int  # trials that reached the bound and were measured without a steady rate
    of: int

    @property
    def often_not_steady(self) -> bool:
        """Whether that was so in more than a few."""
        return self.not_steady > max(1, FEW * self.of)


def warm_ups(trials: Iterable[Trial]) -> WarmUps | None:
    """Return what they took, or ``None`` where no trial warmed up until steady."""
    until = [trial for trial in trials if isinstance(trial.load.get("warmup_steady"), bool)]
    if not until:
        return None
    seconds = [trial.seconds.get("warm-up", 0.0) for trial in until]
    missed = sum(not trial.load["warmup_steady"] for trial in until)
    return WarmUps(statistics.median(seconds), min(seconds), max(seconds), missed, len(until))


# How late an emulated disk answered, and how much of a comparison that may account for.
#
# An emulated disk is a program: on a busy host its answers come later than the drive's would. How much a figure would
# be better without that is not known, but bounded from above, twice:
#
# - by the requests. Of the time that a request took, T, a part L was not the drive's. Whatever waits for nothing but
#   requests would take 1 - L/T of its time.
# - by the clock. So many requests a second, each late by L, are late for at most rate x L of all time, if no two are
#   late at once: cutting these moments out of the run shortens it by no more than they last. This one tells a load that
#   hardly asks the disk from one that does nothing else.
#
# The smaller of the two is the *share*, s. Where each of two treatments may be faster by anything from nothing to
# -ln(1 - s), a comparison's log ratio may be off by as much, in either direction: what both have in common need not
# cancel out, as one may wait for the disk and the other for something else.


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
    disks = [found for disk in _disks(trial.device) if (found := _requests(disk))]
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
        off_ns = late_ns + max(0.0, _known(path_ns - way["taken"]))
    took_ns = math.fsum(one * mean for one, mean in known) / number + _known(way["before"])
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
    late_us = requests.tails_us[tail] + max(0.0, _known(each) - 1.0) * requests.late_us
    return _bounded(_ratio(late_us / 1e3, value_of(trial.metrics, f"latency_ms_{which}")))


def _in_flight(trial: Trial) -> float:
    """Return how many events are under way at a time, by Little's law; 1 where it is not known."""
    found = value_of(trial.metrics, "latency_ms_mean") / 1e3 * value_of(trial.metrics, "events_per_second")
    return found if found > 0 else 1.0


def _seconds(trial: Trial) -> float:
    """Return for how long the disk counted: warm-up and measured run; NaN where that is not known."""
    clock = part_of(trial.load, "clock")
    before_ns = _known(value_of(clock, "connect_ns")) + _known(value_of(clock, "warmup_ns"))
    return before_ns / 1e9 + value_of(trial.metrics, "seconds_real")


def _nearer(one: float, other: float) -> float:
    """Return what is nearer to 0 of two bounds with one sign; the one that is known where the other is not."""
    known = [bound for bound in (one, other) if math.isfinite(bound)]
    return min(known, key=abs, default=0.0)


def _ratio(part: float, whole: float) -> float:
    """Return a part of a whole; NaN where that is none."""
    return part / whole if whole > 0 else math.nan


def _known(value: float) -> float:
    """Return a figure, and 0 for one that is not known."""
    return value if math.isfinite(value) else 0.0


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
    return _reach(_gains_in_time(sides, metric))


def _reach(gains: Sequence[Floats]) -> float:
    """Return by how much a ratio may be off, mean over the trials of each side: .3 for 30 %."""
    ends = (math.fsum(float(np.mean(np.maximum(0.0, sign * gain))) for gain in gains) for sign in (1, -1))
    return math.expm1(max(ends))


def late_disk(sides: Sequence[Side], metric: Metric, margin: float) -> LateDisk | None:
    """Return why a word on a contrast must hold for ``ratios_without_lateness`` as well.

    ``None`` where lateness is within the margin of what is compared.
    """
    reach = lateness_share(sides, metric)
    if reach is None or math.log1p(reach) <= log_margin(margin):
        return None
    known = [(side.label, found) for side in sides if (found := lateness(side.trials, metric))]
    label, worst = max(known, key=lambda side: abs(side[1].share))
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
    if guest.get("accelerator") != "tcg":
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
    cores += _known(value_of(by_guest, "foreign_cpu")) * cpus
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
    reach = _reach(_gains_of_cpu(sides, metric))
    if math.log1p(reach) <= log_margin(margin):
        return None
    shares = [(float(np.mean([cpu_share(trial, metric) for trial in side.trials])), side.label) for side in sides]
    share, label = max(shares)
    return EmulatedCpu(label, share, reach)


def _disks(device: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the figures of each disk: several devices have theirs side by side."""
    each, named = device.get("disks"), device.get("named")
    yield from (one for one in each if isinstance(one, Mapping)) if isinstance(each, list) else (device,)
    yield from (one for one in named.values() if isinstance(one, Mapping)) if isinstance(named, Mapping) else ()
