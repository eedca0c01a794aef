"""The signed-rank procedures: estimate, exact p and exact interval of paired differences, from one set of averages.

All functions take log ratios ``d`` of shape (..., n), one value per block on the last axis, and work on all leading
axes at once. They rest on the Walsh averages ``(d_i + d_j) / 2``, i <= j, so that p, interval and estimate can never
contradict each other: the interval excludes a value exactly where the test rejects it.

Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 3.1 to 3.3.
"""

import functools

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics.arrays import Floats, Ints

TIE = 1e-12  # log ratios closer than this are equal, whatever rounding did to their last bits


def walsh_averages(d: Floats) -> Floats:
    """Return the n(n+1)/2 averages ``(d_i + d_j) / 2``, i <= j, in ascending order on the last axis."""
    first, second = np.triu_indices(d.shape[-1])
    return np.sort((d[..., first] + d[..., second]) / 2, axis=-1)


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


def p_above(averages: Floats, value: npt.ArrayLike, n: int) -> Floats:
    """Return the exact one-sided p of "the location lies above ``value``", shape (...), as that of ``value``.

    The number of Walsh averages above a value t is the signed-rank statistic of ``d - t``; one that equals t counts
    against.
    """
    return _tail(np.sum(averages > np.asarray(value)[..., None] + TIE, axis=-1), n)


def p_below(averages: Floats, value: npt.ArrayLike, n: int) -> Floats:
    """Return the exact one-sided p of "the location lies below ``value``", shape (...)."""
    return _tail(np.sum(averages < np.asarray(value)[..., None] - TIE, axis=-1), n)


def _tail(on_the_side: Ints, n: int) -> Floats:
    cdf = signed_rank_cdf(n)
    return np.asarray(cdf[len(cdf) - 1 - on_the_side])


def p_two_sided(averages: Floats, n: int) -> Floats:
    """Return the exact two-sided p of "the location is not 0", shape (...): twice the smaller one-sided one."""
    return np.asarray(np.minimum(1.0, 2 * np.minimum(p_above(averages, 0.0, n), p_below(averages, 0.0, n))))


def dropped_averages(n: int, alpha: float) -> int:
    """Return how many of the smallest and of the largest averages lie outside the interval; -1: it is unbounded.

    That is the largest k with ``P(W+ <= k) <= alpha / 2``, so the coverage is at least ``1 - alpha``.
    """
    return int(np.searchsorted(signed_rank_cdf(n), alpha / 2, side="right")) - 1


def interval(averages: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the exact interval, each of shape (...); infinite where n is too small for ``alpha``."""
    k = dropped_averages(n, alpha)
    if k < 0:
        return np.full(averages.shape[:-1], -np.inf), np.full(averages.shape[:-1], np.inf)
    return averages[..., k], averages[..., -1 - k]


def coverage(n: int, alpha: float) -> float:
    """Return what the interval really covers; 1 where it is unbounded."""
    k = dropped_averages(n, alpha)
    return 1.0 if k < 0 else 1 - 2 * float(signed_rank_cdf(n)[k])
