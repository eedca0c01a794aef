"""Percentiles of latency of a treatment, from the full histograms of its trials together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.scipy_special import special
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
class Point:
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
    points: tuple[Point, ...]
    largest_ms: float  # of all latencies


def percentile_curves(
    design: Design, blocks: UsableBlocks, latencies: Mapping[str, Latencies]
) -> list[PercentileCurve]:
    """Return a curve for each treatment of which any counted trial has a histogram, in the order of the study."""
    found = []
    for treatment in design.treatments:
        trials = blocks.of(treatment.id)
        known = [latencies[trial.id] for trial in trials if trial.id in latencies]
        if known:
            events = sum(int(one.count.sum()) for one in known)
            largest_ns = max(float(one.latency_ns[-1]) for one in known)
            without = len(trials) - len(known)
            curve = PercentileCurve(treatment.id, events, len(known), without, percentiles(known), largest_ns / 1e6)
            found.append(curve)
    return found


def percentiles(trials: Sequence[Latencies]) -> tuple[Point, ...]:
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
    without_one = [_values_at(values, together - one, shown) for one in counts] if len(counts) > 1 else []
    bounds = _bounds(at, without_one)
    return tuple(
        Point(parts / (PARTS / 100), Estimate(value / 1e6, low / 1e6, high / 1e6, len(trials)))
        for parts, value, (low, high) in zip(shown.tolist(), at.tolist(), bounds, strict=True)
    )


def on_common_values(trials: Sequence[Latencies]) -> tuple[npt.NDArray[np.float64], Integers]:
    """Return all latencies that any trial met, ascending, and how often each trial met each: (trials, latencies)."""
    values, place = np.unique(np.concatenate([one.latency_ns for one in trials]), return_inverse=True)
    ends = np.cumsum([len(one.latency_ns) for one in trials])[:-1]
    counts = [
        np.bincount(where, one.count, len(values)).astype(np.int64)
        for where, one in zip(np.split(place, ends), trials, strict=True)
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
