"""The effect of a level: paired log ratios, their Hodges-Lehmann estimate and its exact interval.

Inside block b, ``d_b = ln(y_level / y_baseline)``. All functions take the ``d_b`` as an array of shape (n,),
one value per block, without unit; ``relative`` turns a log ratio into the relative difference people read.

Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 3.1 to 3.3.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.estimate import Estimate

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An interval and the coverage it really has, at least what was asked unless it is unbounded."""

    low: float
    high: float
    coverage: float


UNBOUNDED = Interval(-math.inf, math.inf, 1.0)


def log_ratios(level: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Return block -> ``ln(level / baseline)``, for the blocks in which both are positive and finite."""
    return {
        block: math.log(level[block] / baseline[block])
        for block in sorted(level.keys() & baseline.keys())
        if _has_logarithm(level[block]) and _has_logarithm(baseline[block])
    }


def _has_logarithm(value: float) -> bool:
    return math.isfinite(value) and value > 0


def relative(log_ratio: float) -> float:
    """Return the relative difference of a log ratio: .0953 -> .1, that is +10 %."""
    return math.expm1(log_ratio)


def walsh_averages(d: Floats) -> Floats:
    """Return the n(n+1)/2 averages ``(d_i + d_j) / 2``, i <= j, in ascending order."""
    first, second = np.triu_indices(len(d))
    return np.sort((d[first] + d[second]) / 2)


def hodges_lehmann(d: Floats) -> float:
    """Return the median of the Walsh averages; NaN of no blocks."""
    return float(np.median(walsh_averages(d))) if len(d) else math.nan


@functools.cache
def signed_rank_cdf(n: int) -> Floats:
    """Return ``P(W+ <= w)`` for w = 0 .. n(n+1)/2 under the null hypothesis, exactly (dyadic) to n = 40.

    Each rank 1 .. n belongs to W+ with probability 1/2: one convolution per rank.
    """
    probability = np.zeros(n * (n + 1) // 2 + 1)
    probability[0] = 1.0
    for rank in range(1, n + 1):
        probability[rank:] = (probability[rank:] + probability[:-rank]) / 2
        probability[:rank] /= 2
    cdf = np.minimum(np.cumsum(probability), 1.0)
    cdf.flags.writeable = False
    return cdf


def signed_rank_interval(d: Floats, confidence: float) -> Interval:
    """Return the exact interval of the location of ``d``: drop the k smallest and k largest Walsh averages.

    k is the largest with ``P(W+ <= k) <= (1 - confidence) / 2``, so the coverage is at least ``confidence``.
    With too few blocks there is no such k and the interval is unbounded (95 %: fewer than 6; 90 %: fewer than 5).
    """
    cdf = signed_rank_cdf(len(d))
    k = int(np.searchsorted(cdf, (1 - confidence) / 2, side="right")) - 1
    if k < 0:
        return UNBOUNDED
    averages = walsh_averages(d)
    return Interval(float(averages[k]), float(averages[-1 - k]), 1 - 2 * float(cdf[k]))


def relative_effect(d: Floats, confidence: float) -> Estimate:
    """Return the effect as a relative difference, ``exp(HL) - 1``, with its exact interval."""
    if not len(d):
        return Estimate.unknown()
    interval = signed_rank_interval(d, confidence)
    high = math.inf if math.isinf(interval.high) else relative(interval.high)
    low = -math.inf if math.isinf(interval.low) else relative(interval.low)
    return Estimate(relative(hodges_lehmann(d)), low, high, len(d))
