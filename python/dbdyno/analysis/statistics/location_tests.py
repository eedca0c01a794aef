"""Exact tests by counting: the statistic is how many of a sample's values lie on one side of a location.

``shifts`` are the values in ascending order on the last axis, shape (..., N): Walsh averages, or differences of two
groups. ``cdf`` is the distribution of the count where there is nothing to find, for counts of 0 .. N.
"""

import functools
import math

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics.estimate import Floats, Ints
from dbdyno.analysis.statistics.scipy_special import special

TIE = 1e-12  # log ratios closer than this are equal, whatever rounding did to their last bits


def exact_p_above(shifts: Floats, value: npt.ArrayLike, cdf: Floats) -> Floats:
    """Return the one-sided p of "the location lies above ``value``", shape (...); one that equals it counts against."""
    return _tail(np.sum(shifts > np.asarray(value)[..., None] + TIE, axis=-1), cdf)


def exact_p_below(shifts: Floats, value: npt.ArrayLike, cdf: Floats) -> Floats:
    """Return the one-sided p of "the location lies below ``value``", shape (...)."""
    return _tail(np.sum(shifts < np.asarray(value)[..., None] - TIE, axis=-1), cdf)


def _tail(on_the_side: Ints, cdf: Floats) -> Floats:
    return np.asarray(cdf[len(cdf) - 1 - on_the_side])


def exact_p(shifts: Floats, cdf: Floats) -> Floats:
    """Return the two-sided p of "the location is not 0", shape (...): twice the smaller one-sided one."""
    return np.asarray(np.minimum(1.0, 2 * np.minimum(exact_p_above(shifts, 0.0, cdf), exact_p_below(shifts, 0.0, cdf))))


def exactly_dropped(cdf: Floats, alpha: float) -> int:
    """Return how many of the smallest and of the largest values lie outside the interval; -1: it is unbounded.

    That is the largest k with ``cdf[k] <= alpha / 2``, so the coverage is at least ``1 - alpha``.
    """
    return int(np.searchsorted(cdf, alpha / 2, side="right")) - 1


# The signed-rank procedures: estimate, exact p and exact interval of paired differences, from one set of averages.
#
# All functions take log ratios ``d`` of shape (..., n), one value per block on the last axis, and work on all leading
# axes at once. They rest on the Walsh averages ``(d_i + d_j) / 2``, i <= j, so that p, interval and estimate can never
# contradict each other: the interval excludes a value exactly where the test rejects it.
#
# Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 3.1 to 3.3.


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


def signed_rank_interval(averages: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the exact interval, each of shape (...); infinite where n is too small for ``alpha``."""
    k = exactly_dropped(signed_rank_cdf(n), alpha)
    if k < 0:
        return np.full(averages.shape[:-1], -np.inf), np.full(averages.shape[:-1], np.inf)
    return averages[..., k], averages[..., -1 - k]


# Welch's test: the means of two groups that may spread unequally and need not be equally many.
#
# The rank sum and Brunner and Munzel's test rest on how values are ordered, and of three or four values there are too
# few orders to see that they spread more than the twenty of another group: alone they find a shift that is not there in
# 10 to 20 % of such comparisons. Welch's test gives either group a variance of its own (Welch 1947).
#
# Groups have shapes (..., n) and (..., m), results (...).


def welch_freedom(a: Floats, b: Floats, n: int, m: int) -> Floats:
    """Return Welch's degrees of freedom of two means with squared errors ``a`` and ``b`` from n and m values."""
    return np.asarray((a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1)))


def welch_p_each(first: Floats, second: Floats) -> Floats:
    """Return the p of "the means are equal"; that of fewer than 2 values in a group is 1.

    Without any spread it is 1 where the means are the same and 0 where they are not.
    """
    if min(first.shape[-1], second.shape[-1]) < 2:  # noqa: PLR2004
        return np.ones(first.shape[:-1])
    difference, error, degrees = _welch_difference(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(degrees, -np.abs(difference) / error)
    return np.where(error > 0, p, np.where(difference == 0, 1.0, 0.0))


def welch_interval(first: Floats, second: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the ``1 - alpha`` interval of the second mean less the first; infinite below 2 values."""
    if min(first.shape[-1], second.shape[-1]) < 2:  # noqa: PLR2004
        return np.full(first.shape[:-1], -np.inf), np.full(first.shape[:-1], np.inf)
    difference, error, degrees = _welch_difference(first, second)
    reach = np.where(error > 0, special.stdtrit(np.where(error > 0, degrees, 1.0), 1 - alpha / 2) * error, 0.0)
    return difference - reach, difference + reach


def welch_p(first: Floats, second: Floats) -> float:
    """Return the p of two groups of shape (n,) and (m,): what many would judge by; NaN below two values each."""
    return math.nan if min(len(first), len(second)) < 2 else float(welch_p_each(first, second))  # noqa: PLR2004


def _welch_difference(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the difference of the means, its standard error and the degrees of freedom."""
    n, m = first.shape[-1], second.shape[-1]
    a, b = np.asarray(np.var(first, axis=-1, ddof=1)) / n, np.asarray(np.var(second, axis=-1, ddof=1)) / m
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = welch_freedom(a, b, n, m)
    return np.asarray(np.mean(second, axis=-1) - np.mean(first, axis=-1)), np.asarray(np.sqrt(a + b)), degrees


# Whether the mean lies inside the margin: what the usual block can't show of blocks that are far off.
#
# The signed-rank procedures are about the usual block. A treatment that stalls in one block of ten is like another one
# in nine, and its user waits all the same. So *equivalent* asks the mean of the log ratios, too: two one-sided t tests
# (Schuirmann 1987). Both tests must hold, so that whatever either of them guards against stays guarded against.


def mean_p_beyond(d: Floats, bound: float | Floats) -> Floats:
    """Return the p of "the mean is as far from 0 as ``bound`` or farther", shape (...) of ``d``, shape (..., n).

    That of fewer than 2 values, or of a bound that is not above 0, is 1.
    """
    n = d.shape[-1]
    if n < 2:  # noqa: PLR2004
        return np.ones(d.shape[:-1])
    room = np.asarray(bound - np.abs(np.mean(d, axis=-1)))
    return _p_of_room(room, np.asarray(np.std(d, axis=-1, ddof=1)) / np.sqrt(n), n - 1)


def two_means_p_beyond(first: Floats, second: Floats, bound: float | Floats) -> Floats:
    """Return the p of "the means of two groups differ by ``bound`` or more", variances unequal (Welch 1947).

    The groups have shapes (..., n) and (..., m), the result (...); that of fewer than 2 values in a group is 1.
    """
    n, m = first.shape[-1], second.shape[-1]
    room = np.asarray(bound - np.abs(np.mean(second, axis=-1) - np.mean(first, axis=-1)))
    if min(n, m) < 2:  # noqa: PLR2004
        return np.ones(room.shape)
    a, b = np.var(first, axis=-1, ddof=1) / n, np.var(second, axis=-1, ddof=1) / m
    with np.errstate(divide="ignore", invalid="ignore"):
        of_both = welch_freedom(a, b, n, m)
    return _p_of_room(room, np.asarray(np.sqrt(a + b)), of_both)


def _p_of_room(room: Floats, error: Floats, degrees: float | Floats) -> Floats:
    """Return the p of "the truth is beyond the bound", of how far the mean is from it and its standard error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = special.stdtr(degrees, -room / error)
    return np.where(error > 0, p, np.where(room > 0, 0.0, 1.0))


# Brunner and Munzel's test: two groups that may spread unequally and need not be equally many.
#
# The rank sum takes both groups for alike but for a shift. Where the smaller group spreads three times as far as the
# larger, it finds a shift that is not there in 12 to 17 % of simulated comparisons of 40 and 10 values. Here each
# value's share of the other group that it exceeds (its *placement*) counts, with a variance of its own for either
# group, as in Welch's test (Brunner and Munzel 2000).
#
# Arguments ``each`` are the differences ``y_j - x_i``, shape (..., m, n).


def brunner_munzel_p_above(differences: Floats, shift: float | Floats) -> Floats:
    """Return the one-sided p of "y lies more than ``shift`` above x"; shapes (...). Of a single value it is 1."""
    m, n = differences.shape[-2:]
    if min(m, n) < 2:  # noqa: PLR2004
        return np.ones(differences.shape[:-2])
    shifted = differences - np.asarray(shift)[..., None, None]
    wins = (shifted > TIE) + 0.5 * (np.abs(shifted) <= TIE)
    of_x, of_y = wins.mean(axis=-1), wins.mean(axis=-2)
    a, b = np.var(of_x, axis=-1, ddof=1) / m, np.var(of_y, axis=-1, ddof=1) / n
    apart = wins.mean(axis=(-2, -1)) - 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        p = special.stdtr(welch_freedom(a, b, m, n), -apart / np.sqrt(a + b))
    # Without any spread one group lies wholly above the other, or all are the same.
    return np.where(a + b > 0, p, np.where(apart > 0, 0.0, 1.0))


def brunner_munzel_p(differences: Floats) -> Floats:
    """Return the two-sided p of "there is a shift", shape (...)."""
    above, below = brunner_munzel_p_above(differences, 0.0), brunner_munzel_p_above(-differences, 0.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(above, below)))


def brunner_munzel_rejected(differences: Floats, ascending: Floats, alpha: float) -> Ints:
    """Return how many of the smallest differences lie outside the interval of ``1 - alpha``, shape (...).

    ``ascending`` are the same differences in ascending order, shape (..., m n). The test is asked between one
    difference and the next, by bisection from the middle one.
    """
    low = np.zeros(ascending.shape[:-1], dtype=np.int64)
    high = np.full(low.shape, ascending.shape[-1] // 2)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        sides = np.take_along_axis(ascending, np.stack((np.maximum(middle - 1, 0), middle), axis=-1), axis=-1)
        outside = brunner_munzel_p_above(differences, sides.mean(axis=-1)) <= alpha / 2
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return low


# Corrections for many tests: Holm for verdicts, Benjamini and Hochberg for screening.


def holm(p: npt.ArrayLike) -> Floats:
    """Return the Holm-adjusted p, those of one family on the last axis: at most ``alpha`` for any wrong rejection.

    Holm 1979: the i-th smallest of m is multiplied by m - i + 1, made monotone, cut at 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1, kind="stable")
    factors = np.arange(values.shape[-1], 0, -1) if values.ndim else np.ones(())
    raised = np.maximum.accumulate(np.take_along_axis(values, order, axis=-1) * factors, axis=-1)
    return _restore_order(np.minimum(raised, 1.0), order)


def holm_levels(p: npt.ArrayLike, alpha: float) -> Floats:
    """Return the level at which to show each interval of a family, so that it excludes 0 exactly where Holm rejects.

    Those of one family are on the last axis, as of ``holm``; results have the same shape. Of m, the i-th smallest p
    that is rejected was held against ``alpha / (m - i + 1)``. All that are not rejected were held, in effect, against
    the level at which the procedure stopped: that of the first rank not rejected. Equal p have the level of the first
    of their ranks, which is the strictest, so that their order says nothing. Each interval covers at least
    ``1 - alpha``; that all of a family cover at once is not promised, of those that were rejected.
    """
    values = np.asarray(p, dtype=np.float64)
    m, smaller = values.shape[-1], np.sum(values[..., None, :] < values[..., :, None], axis=-1)
    rejected = holm(values) <= alpha
    stopped = np.sum(rejected, axis=-1, keepdims=True)  # how many came before the first that is not rejected
    return np.asarray(alpha / (m - np.where(rejected, smaller, stopped)), dtype=np.float64)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Return the p adjusted to bound the share of wrong ones among those called different.

    Benjamini and Hochberg 1995: the i-th smallest of m is multiplied by m / i, made monotone from above, cut at 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1, kind="stable")
    m = values.shape[-1]
    scaled = np.take_along_axis(values, order, axis=-1) * m / np.arange(1, m + 1)
    lowered = np.flip(np.minimum.accumulate(np.flip(scaled, axis=-1), axis=-1), axis=-1)
    return _restore_order(np.minimum(lowered, 1.0), order)


def _restore_order(adjusted: Floats, order: Ints) -> Floats:
    placed = np.empty_like(adjusted)
    np.put_along_axis(placed, order, adjusted, axis=-1)
    return placed
