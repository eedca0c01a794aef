"""Percentiles of latency of a treatment, from the full histograms of its trials together."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.looks import Looks, always_valid_multiplier, always_valid_p, nominal_level, sequential_p
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import TIE, Estimate, Floats, Ints, log_margin
from dbdyno.analysis.verdict.evidence import MARGIN_SHARE, AlwaysValid, Evidence, Rule, relative_estimate
from dbdyno.analysis.verdict.reasons import EventsTogether
from dbdyno.model.design import ALPHA, Design
from dbdyno.store.latencies import Latencies

Integers = npt.NDArray[np.int64]

ABOVE_MIN = 10  # events that must stand above a percentile: of fewer it is little more than the largest few
PARTS = 1_000_000  # percentiles are whole parts of a million, so that a rank is exact
_TAILS = (8, 6, 5, 4, 3, 2.5, 2, 1.5, 1)  # of each power of ten: what is left above
PERCENTILES: Final = (
    *(percent * 10_000 for percent in (1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90)),
    *(PARTS - round(tail * power) for power in (10_000, 1_000, 100, 10) for tail in _TAILS),
)  # 1 to 99.999 %


@dataclass(frozen=True)
class PercentilePoint:
    """A percentile, in percent, and the latency that so large a share of the events does not exceed."""

    percentile: float
    latency_ms: Estimate  # of the trials together; ``n`` is their number


@dataclass(frozen=True)
class PercentileCurve:
    """The percentiles of one treatment, ascending, as far as enough events stand above."""

    treatment: str
    events: int
    trials: int  # whose histograms are known
    without: int  # trials that count too, and whose histograms are unknown
    points: tuple[PercentilePoint, ...]
    largest_ms: float  # of all latencies


def percentile_curves(
    design: Design, blocks: UsableBlocks, latencies: Mapping[str, Latencies]
) -> list[PercentileCurve]:
    """Return a curve for each treatment of which any counted trial has a histogram, in the order of the study."""
    curves = []
    for treatment in design.treatments:
        trials = blocks.of(treatment.id)
        histograms = [latencies[trial.id] for trial in trials if trial.id in latencies]
        if histograms:
            events = sum(int(histogram.count.sum()) for histogram in histograms)
            largest_ns = max(float(histogram.latency_ns[-1]) for histogram in histograms)
            without = len(trials) - len(histograms)
            curve = PercentileCurve(
                treatment.id, events, len(histograms), without, percentiles(histograms), largest_ns / 1e6
            )
            curves.append(curve)
    return curves


def percentiles(trials: Sequence[Latencies]) -> tuple[PercentilePoint, ...]:
    """Return the percentiles of all events of these trials that at least ``ABOVE_MIN`` of them stand above.

    The interval is from leaving out one trial after the other (the jackknife: Efron and Tibshirani, An Introduction to
    the Bootstrap, 1993, chapter 11), in logarithms, with Student's t of one less than the trials: events of a trial
    share its state, so trials are what is independent. Unbounded of a single trial.
    """
    values, counts = on_common_values(trials)
    together = np.sum(counts, axis=0)
    events = int(together.sum())
    shown = np.array([parts for parts in PERCENTILES if events - _rank(parts, events) >= ABOVE_MIN], np.int64)
    at = _values_at(values, together, shown)
    without_one = [_values_at(values, together - own_counts, shown) for own_counts in counts] if len(counts) > 1 else []
    bounds = _bounds(at, without_one)
    return tuple(
        PercentilePoint(parts / (PARTS / 100), Estimate(value / 1e6, low / 1e6, high / 1e6, len(trials)))
        for parts, value, (low, high) in zip(shown.tolist(), at.tolist(), bounds, strict=True)
    )


def on_common_values(trials: Sequence[Latencies]) -> tuple[npt.NDArray[np.float64], Integers]:
    """Return all latencies that any trial met, ascending, and how often each trial met each: (trials, latencies)."""
    values, place = np.unique(np.concatenate([trial.latency_ns for trial in trials]), return_inverse=True)
    ends = np.cumsum([len(trial.latency_ns) for trial in trials])[:-1]
    counts = [
        np.bincount(where, trial.count, len(values)).astype(np.int64)
        for where, trial in zip(np.split(place, ends), trials, strict=True)
    ]
    return values, np.array(counts)


def _rank(parts: int, events: int) -> int:
    """Return which event, counted from the least, is the percentile: so large a share, rounded up."""
    return -(-parts * events // PARTS)


def _values_at(values: npt.NDArray[np.float64], counts: Integers, shown: Integers) -> npt.NDArray[np.float64]:
    sums = np.cumsum(counts)
    ranks = [_rank(parts, int(sums[-1])) for parts in shown.tolist()]
    return values[np.searchsorted(sums, ranks)]


def _bounds(at: npt.NDArray[np.float64], without_one: Sequence[npt.NDArray[np.float64]]) -> list[tuple[float, float]]:
    """Return the ends of the intervals around ``at``; unbounded where the spread is unknown, or a latency is 0."""
    n = len(without_one)
    if not n or np.any(at <= 0) or np.any(np.array(without_one) <= 0):
        return [(-math.inf, math.inf)] * len(at)
    logs = np.log(without_one)
    error = np.sqrt((n - 1) / n * ((logs - logs.mean(axis=0)) ** 2).sum(axis=0))
    reach = float(special.stdtrit(n - 1, 1 - ALPHA / 2)) * error
    with np.errstate(over="ignore"):
        low, high = at * np.exp(-reach), at * np.exp(reach)
    return list(zip(low.tolist(), high.tolist(), strict=True))


# A percentile of latency, compared by all events of the blocks together instead of trial by trial.
#
# Where a treatment stalls in a third of its trials, its usual trial has no stall and its events have: their 99th
# percentile is that of the stalls. So the word on a percentile must hold for the merged histograms as well.
#
# **Interval.** That a latency is a treatment's percentile means that a trial's events at or below it, less their due
# share of its events (its *excess*), are 0 on average over blocks. For a latency of each of the two treatments, the
# excesses of a block are a pair, and Hotelling's T^2 of these pairs says whether both averages may be 0. A ratio is in
# the interval where any two latencies that have it are not refused: the test is inverted, the common level profiled
# out, so T is compared with Student's t of one less than the blocks (Woodruff 1952 for one percentile; Hansen, Heaton
# and Yaron 1996 for the profile). No density is estimated: the jackknife, which needs one, covers 78 % where stalls
# decide. Few trials with stalls make the averages skewed, so Hall's transformation (1992) of T is taken where it is
# lower.
#
# **p** of no difference is that of the two latencies least refused on the other side of a ratio of 1, so it and the
# interval agree. Beside it, treatments are swapped inside blocks and the merged percentiles compared again: exact where
# both treatments are the same. The larger p holds, and the interval reaches to 1 where the swaps refuse nothing. With
# up to 12 blocks all swaps are made, with more those of a group of 2,048, which is exact too (Hemerik and Goeman 2018);
# where none of these comes out as far apart, how much smaller than 1 in 2,048 the p of all is can't be told, and the p
# of the interval holds.


SWAPPED_BLOCKS = 11  # as powers of two of the swaps: the first block stays, for what is swapped in all is the same
CELLS_MAX = 300  # latencies of a treatment that are looked at; of more, some that are spread evenly
FAR = 1e-9  # p beyond which latencies are not looked at
_RIDGE, _LEAST_VARIANCE = 1e-9, 1e-16  # relative; of shares of a trial's events
_GOLDEN = 1237  # odd, so that its multiples visit all numbers of 11 bits


def merged_percentile_evidence(  # noqa: PLR0913, PLR0917
    level: Sequence[Latencies],
    baseline: Sequence[Latencies],
    percentile: float,
    rule: Rule,
    margin: float,
    alpha: float = ALPHA,
    *,
    unit: float = 0.0,
) -> Evidence:
    """Return what the events of all blocks together say of a percentile (.99): shape (), log ratios to the baseline.

    ``level`` and ``baseline`` have one histogram for each block, in the same order; ``rule``, ``alpha`` and ``unit``
    are as of ``evidence``. Nothing is known of a single block, of latencies of 0, and where fewer than ``ABOVE_MIN``
    events of a treatment stand above its percentile.
    """
    n, parts = len(level), round(percentile * PARTS)
    values, counts = on_common_values([*level, *baseline])
    events = counts.sum(axis=1)
    above = [float(of_one.sum()) * (PARTS - parts) / PARTS for of_one in np.split(events, 2)]
    if n < 2 or values[0] <= 0 or min(above) < ABOVE_MIN:  # noqa: PLR2004
        return _nothing()
    excess = (np.cumsum(counts, axis=1) - events[:, None] * (parts / PARTS)) / float(events.mean())
    sides = excess[:n], excess[n:]
    logs = np.log(values)
    at = [int(np.argmax(side.sum(axis=0) >= -_RIDGE)) for side in sides]
    value = float(logs[at[0]] - logs[at[1]])
    pairs = _Pairs.of(*(_Cells.of(side, logs, where) for side, where in zip(sides, at, strict=True)))
    bound = log_margin(margin) - unit
    t = pairs.least(above=0.0) if value < 0 else pairs.least(below=0.0)
    t_beyond = min(pairs.least(above=bound), pairs.least(below=-bound)) if abs(value) < bound else 0.0
    if isinstance(rule, AlwaysValid):
        low, high = pairs.within(always_valid_multiplier(n, alpha))
        p, p_beyond = (_always_valid_p(statistic, n) for statistic in (t, t_beyond))
        p_now, p_equivalence = p, p_beyond / 2 if t_beyond else 1.0
    else:
        nominal = nominal_level(rule, alpha)
        low, high = pairs.within(float(special.stdtrit(n - 1, 1 - nominal / 2)) if nominal else np.inf)
        swapped = p_of_swaps(*sides, logs)
        swapped = 0.0 if n - 1 > SWAPPED_BLOCKS and swapped * len(swaps(n)) <= 1 else swapped
        p_now = max(2 * float(special.stdtr(n - 1, -t)), swapped)
        low, high = (min(low, 0.0), max(high, 0.0)) if swapped > nominal else (low, high)
        p = float(sequential_p(np.array(min(1.0, p_now)), rule, 2))
        p_beyond = float(special.stdtr(n - 1, -t_beyond)) if t_beyond else 1.0
        p_equivalence = float(sequential_p(np.array(p_beyond), rule, 1))
    if unit > MARGIN_SHARE * log_margin(margin):
        p_equivalence = 1.0
    figures = (value, low - unit, high + unit, p, min(1.0, p_now), p_equivalence)
    return Evidence(*(np.asarray(figure, np.float64) for figure in figures))


@dataclass(frozen=True)
class MergedHistograms:
    """Both treatments' histograms by block, as another reading of a comparison whose metric is a percentile."""

    level: Sequence[Latencies]
    baseline: Sequence[Latencies]
    percentile: float  # .99

    @property
    def cause(self) -> EventsTogether:
        """What may have made the word that the trials' own percentiles give."""
        figures = self.evidence(Looks.single(len(self.level)), 1.0, ALPHA, 0.0)
        ratio = relative_estimate(float(figures.value), float(figures.low), float(figures.high), len(self.level))
        return EventsTogether(self.percentile, ratio)

    def evidence(self, rule: Rule, margin: float, alpha: float, unit: float) -> Evidence:
        """Return its figures as ``merged_percentile_evidence`` does."""
        return merged_percentile_evidence(self.level, self.baseline, self.percentile, rule, margin, alpha, unit=unit)


def histograms_in(
    blocks: UsableBlocks, treatments: Sequence[str], block_numbers: Iterable[int], latencies: Mapping[str, Latencies]
) -> list[list[Latencies]] | None:
    """Return the histograms of each treatment's trials in these blocks; ``None`` where any trial's is unknown.

    To leave out just the blocks without one would be to compare other blocks than the trials' own percentiles do.
    """
    rows = [blocks.trials[block] for block in block_numbers]
    by_treatment = [[latencies.get(row[treatment].id) for row in rows] for treatment in treatments]
    histograms = [[histogram for histogram in of_treatment if histogram is not None] for of_treatment in by_treatment]
    return histograms if rows and all(len(of_treatment) == len(rows) for of_treatment in histograms) else None


def _nothing() -> Evidence:
    return Evidence(*(np.asarray(figure) for figure in (np.nan, -np.inf, np.inf, 1.0, 1.0, 1.0)))


def _always_valid_p(t: float, n: int) -> float:
    """Return the always-valid p of a t statistic: that of ``n`` values which have it."""
    base = np.arange(n) - (n - 1) / 2
    d = base / base.std(ddof=1) + min(t, 1e6) / np.sqrt(n)
    return float(always_valid_p(d))


@dataclass(frozen=True)
class _Cells:
    """Latencies that may be a treatment's percentile; the last is where the excess of all blocks leaves 0 behind."""

    excess: Floats  # (blocks, cells)
    last: Floats  # (blocks, 1): of the last
    room: tuple[float, float]  # average excess just before the last, and at it: there it may be anything between
    low: Floats  # (cells + 1,): logarithm of the least latency that a cell stands for
    high: Floats

    @classmethod
    def of(cls, excess: Floats, logs: Floats, at: int) -> "_Cells":
        n = len(excess)
        error = np.sqrt(excess.var(axis=0, ddof=1) / n + _LEAST_VARIANCE)
        near = np.flatnonzero(np.abs(excess.mean(axis=0)) <= error * -float(special.stdtrit(n - 1, FAR)))
        every = -(-len(near) // CELLS_MAX) if len(near) else 1
        cells = near[::every]
        # Of the latencies left out between two cells nothing is known, so each stands for all up to both.
        before = cells if every == 1 else np.maximum(cells - every, 0)
        after = np.minimum(cells + every, len(logs) - 1)
        ends = (np.append(logs[before], logs[at]), np.append(logs[after], logs[at]))
        average = excess.mean(axis=0)
        room = (float(average[at - 1]) if at else -np.inf, float(average[at]))
        return cls(excess[:, cells], excess[:, [at]], room, *ends)


@dataclass(frozen=True)
class _Pairs:
    """Every two latencies, one of each treatment: t of both being the percentiles, and the log ratios they have."""

    t: Floats  # (cells of the level, cells of the baseline)
    low: Floats
    high: Floats

    @classmethod
    def of(cls, level: _Cells, baseline: _Cells) -> "_Pairs":
        t = np.zeros((len(level.low), len(baseline.low)))
        t[:-1, :-1] = _t_of_pairs(level.excess, baseline.excess)
        t[-1:, :-1] = _t_of_pairs(level.last, baseline.excess, level.room)
        t[:-1, -1:] = _t_of_pairs(baseline.last, level.excess, baseline.room).T
        return cls(t, level.low[:, None] - baseline.high, level.high[:, None] - baseline.low)

    def least(self, *, above: float = -np.inf, below: float = np.inf) -> float:
        """Return the least t of all that have a ratio of at least ``above`` and at most ``below``."""
        return float(np.min(self.t, where=(self.high >= above) & (self.low <= below), initial=np.inf))

    def within(self, t: float) -> tuple[float, float]:
        """Return the ends of the ratios that are not refused."""
        if not np.isfinite(t):
            return -np.inf, np.inf
        inside = self.t <= t
        return float(self.low[inside].min()), float(self.high[inside].max())


def _t_of_pairs(first: Floats, second: Floats, room: tuple[float, float] | None = None) -> Floats:
    """Return the root of T^2 of the average excesses of two cells both being 0: (cells, cells).

    T is the t of the weighted sum of both that has the largest; ``a`` and ``b`` are its weights, and its skewness is
    corrected for. The first average may be anything in ``room``, where that is given: what refuses least is taken.
    """
    n, x, y = len(first), first.mean(axis=0)[:, None], second.mean(axis=0)
    off_first, off_second = first - first.mean(axis=0), second - y
    v, w = (
        (off_mean**2).sum(axis=0) / (n - 1) * (1 + _RIDGE) + _LEAST_VARIANCE for off_mean in (off_first, off_second)
    )
    v = v[:, None]
    covariance = off_first.T @ off_second / (n - 1)
    if room is not None:
        x = np.clip(y * covariance / w, *room)
    determinant = v * w - covariance**2
    a, b = (x * w - y * covariance) / determinant, (y * v - x * covariance) / determinant
    quadratic = np.maximum(a * x + b * y, 0.0)
    third = a**3 * (off_first**3).mean(axis=0)[:, None] + b**3 * (off_second**3).mean(axis=0)
    third += 3 * a * b * (a * ((off_first**2).T @ off_second) + b * (off_first.T @ off_second**2)) / n
    skewness = third / np.maximum(quadratic, np.finfo(float).tiny) ** 1.5
    return _allowing_for_skewness(np.sqrt(n * quadratic), skewness, n)


def _allowing_for_skewness(t: Floats, skewness: Floats, n: int) -> Floats:
    """Return Hall's transformation of t where it is lower: few values far off on one side widen the tail there.

    A skewness within one standard error of 0, that of normal values, is none.
    """
    beyond = np.maximum(np.abs(np.nan_to_num(skewness)) - np.sqrt(6 / n), 0.0)
    a = np.copysign(np.minimum(beyond / np.sqrt(n), 1.0), skewness)
    return np.asarray(np.maximum(np.minimum(t, t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6), 0.0))


def p_of_swaps(level: Floats, baseline: Floats, logs: Floats) -> float:
    """Return the share of swaps inside blocks after which merged percentiles lie as far apart as they do, or farther.

    ``level`` and ``baseline`` are excesses of the shape (blocks, latencies), ``logs`` the logarithms of the latencies.
    """
    half = (level.sum(axis=0) + baseline.sum(axis=0)) / 2
    differences = np.ascontiguousarray((level - baseline).T) / 2
    signs = swaps(len(level))
    apart = np.abs(_crossing(half, differences, signs, logs) - _crossing(half, differences, -signs, logs))
    return float(np.mean(apart >= apart[0] - TIE))


@functools.cache
def swaps(blocks: int) -> Floats:
    """Return whether (-1) or not (1) each block is swapped: (swaps, blocks), the first swapping none.

    They are all products of ``SWAPPED_BLOCKS`` of them (with fewer blocks of one less than these), so they are a group:
    block b is swapped where the numbers of the swap and of the block have an odd number of bits in common.
    """
    free = min(blocks - 1, SWAPPED_BLOCKS)
    size = 2**free
    powers = [1 << place for place in range(free)]
    multiples = (_GOLDEN * number % size for number in range(1, size))
    more = [number for number in multiples if number.bit_count() > 1][: max(0, blocks - 1 - free)]
    numbers: Ints = np.array([0, *powers, *more])
    common = np.bitwise_and(np.arange(size)[:, None], np.resize(numbers, blocks)).astype(np.int64)
    return np.asarray(np.where(np.bitwise_count(common) % 2 == 1, -1.0, 1.0))


def _crossing(half: Floats, differences: Floats, signs: Floats, logs: Floats) -> Floats:
    """Return the merged percentile of each swap, a logarithm, between two latencies in proportion: (swaps,)."""
    low, high = np.zeros(len(signs), np.intp), np.full(len(signs), len(half) - 1)
    while np.any(low < high):
        middle = (low + high) // 2
        reached = _excess_at(half, differences, signs, middle) >= 0
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    before = np.maximum(high - 1, 0)
    at, less = (_excess_at(half, differences, signs, where) for where in (high, before))
    share = np.where(at > less, at / np.where(at > less, at - less, 1.0), 0.0)
    return np.asarray(logs[high] - np.clip(share, 0.0, 1.0) * (logs[high] - logs[before]))


def _excess_at(half: Floats, differences: Floats, signs: Floats, where: Ints) -> Floats:
    return np.asarray(half[where] + np.einsum("ij,ij->i", signs, differences[where]))
