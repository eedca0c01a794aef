"""Two groups that share no blocks: estimate, p and interval of the shift between them, by ranks and by means.

All functions take ``x`` of shape (..., m) and ``y`` of shape (..., n), logarithms of a metric, and work on all leading
axes at once. They rest on the differences ``y_j - x_i``, as the signed-rank procedures rest on the Walsh averages, so
that p, interval and estimate can never contradict each other; Welch's test, which is asked as well, is inverted in the
same way, so this holds of all together. They take all m + n values for independent: what changes the host between the
groups, or slowly inside them, they can't know.

Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 4.1 to 4.3.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np

from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import (
    Floats,
    brunner_munzel_p,
    brunner_munzel_p_above,
    brunner_munzel_rejected,
    exact_p,
    exact_p_above,
    exact_p_below,
    exactly_dropped,
    holm_levels,
    log_margin,
    two_means_p_beyond,
    welch_interval,
    welch_p_each,
)
from dbdyno.analysis.verdict.evidence import MARGIN_SHARE, Evidence
from dbdyno.model.design import ALPHA

EXACT_PAIRS = 10_000  # m x n; the exact distribution of more takes seconds, and the normal one is as good


def differences(x: Floats, y: Floats) -> Floats:
    """Return the m n differences ``y_j - x_i`` in ascending order on the last axis."""
    matrix = y[..., None, :] - x[..., :, None]
    return np.sort(matrix.reshape(*matrix.shape[:-2], -1), axis=-1)


@functools.cache
def rank_sum_cdf(m: int, n: int) -> Floats:
    """Return ``P(U <= u)`` for u = 0 .. m n where both groups are alike, U counting the pairs with ``y_j > x_i``.

    The largest of all values is an x or a y: ``m + n`` times the probability of (m, n) is m times that of (m - 1, n)
    and n times that of (m, n - 1) moved by m, for a largest y exceeds all m values of x (Mann and Whitney 1947).
    Beyond ``EXACT_PAIRS`` the normal distribution with the continuity correction stands in.
    """
    cdf = _normal_cdf(m, n) if m * n > EXACT_PAIRS else np.minimum(np.cumsum(_probabilities(m, n)), 1.0)
    cdf.flags.writeable = False
    return cdf


def _probabilities(m: int, n: int) -> Floats:
    row = [np.ones(1) for _ in range(n + 1)]  # of no x at all, and 0 .. n of y
    for i in range(1, m + 1):
        following = [np.ones(1)]
        for j in range(1, n + 1):
            probabilities = np.zeros(i * j + 1)
            probabilities[: (i - 1) * j + 1] += i / (i + j) * row[j]
            probabilities[i:] += j / (i + j) * following[j - 1]
            following.append(probabilities)
        row = following
    return row[n]


def _normal_cdf(m: int, n: int) -> Floats:
    steps = np.arange(m * n + 1)
    deviation = math.sqrt(m * n * (m + n + 1) / 12)
    return np.asarray(special.ndtr((steps + 0.5 - m * n / 2) / deviation))


def smallest_p(m: int, n: int) -> float:
    """Return the smallest two-sided p that so many values can show: all of one group above all of the other."""
    return min(1.0, 2 * float(rank_sum_cdf(m, n)[0]))


def unpaired_evidence(
    x: Floats, y: Floats, margin: float, alpha: float = ALPHA, *, unit: float | Floats = 0.0
) -> Evidence:
    """Return what two groups say of the shift from ``x`` to ``y``: estimate, interval, p, equivalence; shapes (...).

    A difference must hold by the rank sum, which is exact where both groups are alike, by Brunner and Munzel's test,
    which allows for unequal spread, and by Welch's, which does so of three or four values as well; the interval spans
    those of all. Equivalence must hold for the means too.
    ``unit`` is the step of coarse figures as a log ratio, by which the interval is wider at either end.
    """
    m, n = x.shape[-1], y.shape[-1]
    bound = np.broadcast_to(log_margin(margin) - np.asarray(unit, dtype=np.float64), x.shape[:-1])
    matrix = y[..., None, :] - x[..., :, None]
    ascending, cdf = differences(x, y), rank_sum_cdf(m, n)
    by_means = welch_interval(x, y, alpha)
    low, high = _interval_by_order(matrix, ascending, alpha)
    low, high = np.minimum(low, by_means[0]), np.maximum(high, by_means[1])
    p = np.maximum(exact_p(ascending, cdf), brunner_munzel_p(matrix))
    p = np.maximum(p, welch_p_each(x, y))
    by_ranks = np.maximum(exact_p_above(ascending, -bound, cdf), exact_p_below(ascending, bound, cdf))
    unequal = np.maximum(brunner_munzel_p_above(matrix, -bound), brunner_munzel_p_above(-matrix, -bound))
    p_equivalence = np.maximum(np.maximum(by_ranks, unequal), two_means_p_beyond(x, y, bound))
    too_coarse = np.asarray(unit) > MARGIN_SHARE * log_margin(margin)
    value = np.asarray(np.median(ascending, axis=-1))
    return Evidence(value, low - unit, high + unit, p, p, np.where(too_coarse, 1.0, p_equivalence))


def unpaired_family(groups: Sequence[tuple[Floats, Floats]], margin: float, units: Sequence[float] = ()) -> Evidence:
    """Return what pairs of groups of shapes (m,) and (n,) say that are one family; shape (pairs,).

    Each interval is that of the level at which Holm asks its comparison, so that it excludes 0 exactly where the
    difference is called one; ``units`` are the steps of coarse figures.
    """
    steps = units or [0.0] * len(groups)
    at_alpha = [unpaired_evidence(x, y, margin, unit=unit) for (x, y), unit in zip(groups, steps, strict=True)]
    levels = holm_levels([float(pair_evidence.p) for pair_evidence in at_alpha], ALPHA)
    rows = zip(groups, steps, levels, strict=True)
    return Evidence.of_each([unpaired_evidence(x, y, margin, float(level), unit=unit) for (x, y), unit, level in rows])


def _interval_by_order(matrix: Floats, ascending: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the interval that spans that of the rank sum and that of Brunner and Munzel's test."""
    m, n = matrix.shape[-2:]
    k = exactly_dropped(rank_sum_cdf(m, n), alpha)
    if k < 0:
        return np.full(ascending.shape[:-1], -np.inf), np.full(ascending.shape[:-1], np.inf)
    below = np.minimum(brunner_munzel_rejected(matrix, ascending, alpha), k)
    above = np.minimum(brunner_munzel_rejected(-matrix, -ascending[..., ::-1], alpha), k)
    low = np.take_along_axis(ascending, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ascending, ascending.shape[-1] - 1 - above[..., None], axis=-1)[..., 0]
    return low, high
