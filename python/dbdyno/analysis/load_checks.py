"""What a treatment's load met that changes how its figures are to be read: overload, errors, full caches, warm-ups.

How late an emulated disk answered is in ``lateness``, whether others disturbed the host in ``probe.interference``.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.over_time import Columns, floats
from dbdyno.analysis.statistics import Floats
from dbdyno.model.design import Design
from dbdyno.model.disks import disks_of
from dbdyno.model.metrics import or_zero, value_of
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
    return or_zero(value_of(mapping, key))


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
    reported = [disk.get("fast_cache") for disk in disks_of(trial.device)]
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
