"""The signed-rank procedures: estimate, exact p and exact interval of paired differences, from one set of averages.

All functions take log ratios ``d`` of shape (..., n), one value per block on the last axis, and work on all leading
axes at once. They rest on the Walsh averages ``(d_i + d_j) / 2``, i <= j, so that p, interval and estimate can never
contradict each other: the interval excludes a value exactly where the test rejects it.

Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 3.1 to 3.3.
"""

import functools

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.exact import dropped


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


def interval(averages: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the exact interval, each of shape (...); infinite where n is too small for ``alpha``."""
    k = dropped(signed_rank_cdf(n), alpha)
    if k < 0:
        return np.full(averages.shape[:-1], -np.inf), np.full(averages.shape[:-1], np.inf)
    return averages[..., k], averages[..., -1 - k]
