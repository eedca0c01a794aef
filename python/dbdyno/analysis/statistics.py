"""Estimates with their uncertainty, and the tests, intervals and corrections that they come from."""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.scipy_special import special
from dbdyno.model.design import ALPHA, Design


@dataclass(frozen=True)
class Estimate:
    """A value, its interval, and how many independent observations carry it.

    An interval that the data cannot give is ``-inf`` to ``inf``; a value that they cannot give is NaN.
    """

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def unknown(cls, n: int = 0) -> "Estimate":
        """Return the estimate of which nothing can be said."""
        return cls(math.nan, -math.inf, math.inf, n)

    def inverse(self) -> "Estimate":
        """Return the same of the other side, where this is a relative difference: +100 % becomes -50 %."""
        value, high, low = (1 / (1 + end) - 1 if end > -1 else math.inf for end in (self.value, self.low, self.high))
        return Estimate(value, low, high if math.isfinite(self.low) else math.inf, self.n) if self.known else self

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        """Whether both ends of the interval are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def ends(self) -> tuple[float, float]:
        """What a drawing spans: the ends of a bounded interval, else the value twice."""
        return (self.low, self.high) if self.bounded else (self.value, self.value)


# Arrays by what they hold.


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def median(values: npt.ArrayLike) -> float:
    """Return the median of one or more numbers, none of them NaN: as numpy's, which for few takes longer."""
    numbers = np.asarray(values, dtype=np.float64)
    low, high = (len(numbers) - 1) // 2, len(numbers) // 2
    ordered = np.partition(numbers, (low, high))
    return float((ordered[low] + ordered[high]) / 2)


# The effect of a level: log ratios inside blocks, and the relative difference people read.
#
# Inside block b, ``d_b = ln(y_level / y_baseline)``: twice as fast and half as fast are equally far from 0.


_LARGEST = 709.0  # e to the power of more overflows


def log_ratios(level: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Return block -> ``ln(level / baseline)``, for the blocks in which both are positive and finite."""
    above, below = logarithms(level), logarithms(baseline)
    return {block: above[block] - below[block] for block in sorted(above.keys() & below.keys())}


def logarithms(values: Mapping[int, float]) -> dict[int, float]:
    """Return block -> ln(value), for the blocks in which it is positive and finite."""
    return {block: math.log(value) for block, value in values.items() if math.isfinite(value) and value > 0}


def relative(log_ratio: float) -> float:
    """Return the relative difference of a log ratio: .0953 -> .1, that is +10 %; infinite beyond what a float holds."""
    return math.expm1(log_ratio) if log_ratio < _LARGEST else math.inf


def log_margin(margin: float) -> float:
    """Return the half-width of the margin as a log ratio; ``margin`` is .03 for 3 %.

    The margin is symmetric on the log scale: as a relative difference, 3 % reaches from -2.9 % to +3 %.
    """
    return math.log1p(margin)


# What a treatment comes to by itself: the geometric mean, which is to ratios what the mean is to differences.


def geometric_mean(values: Iterable[float], alpha: float) -> Estimate:
    """Return that of values, with the t interval of their logarithms; unbounded of one, unknown where any is 0 or less.

    Nothing is known of none, either.
    """
    numbers = np.array(list(values), dtype=np.float64)
    if not len(numbers) or np.any(numbers <= 0):
        return Estimate.unknown(len(numbers))
    logs = np.log(numbers)
    value, freedom = float(np.mean(logs)), len(logs) - 1
    if freedom < 1:
        return Estimate(math.exp(value), -math.inf, math.inf, len(logs))
    reach = float(special.stdtrit(freedom, 1 - alpha / 2)) * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    with np.errstate(over="ignore"):
        return Estimate(math.exp(value), float(np.exp(value - reach)), float(np.exp(value + reach)), len(logs))


# How many blocks it takes to resolve a difference, from the spread seen so far.


POWER = 0.80
SIGMA_CONFIDENCE = 0.80
# More blocks are run where they cost what the run has cost, a few times over: a study of six may well need another 100.
TIMES_MORE, FEW_MORE, MORE_MAX = 4, 100, 200


def sigma_upper_bound(d: Floats) -> float:
    """Return the one-sided upper bound of the standard deviation of ``d``: s sqrt((n-1) / chi2_{1-c, n-1}).

    c is ``SIGMA_CONFIDENCE``: planning from s itself falls short half the time (Browne 1995). Infinite below 2 blocks.
    """
    freedom = len(d) - 1
    if freedom < 1:
        return math.inf
    quantile = float(special.chdtri(freedom, SIGMA_CONFIDENCE))  # chdtri takes the upper tail's area
    return float(np.std(d, ddof=1)) * math.sqrt(freedom / quantile)


def blocks_to_resolve(d: Floats, difference: float, comparisons: int = 1) -> int | None:
    """Return about how many blocks detect ``difference`` (.03 for 3 %) with 80 % power, or None if nothing can be said.

    n = ((z_{1-alpha/2} + z_{power}) sigma / ln(1 + difference))^2, alpha shared out among the comparisons.
    """
    sigma = sigma_upper_bound(d)
    if not math.isfinite(sigma) or difference <= 0:
        return None
    z = NormalDist().inv_cdf
    reach = z(1 - ALPHA / max(comparisons, 1) / 2) + z(POWER)
    return math.ceil((reach * sigma / math.log1p(difference)) ** 2)


def blocks_to_reach(d: Floats, half_width: float) -> int | None:
    """Return about how many blocks give an interval of ``half_width`` (.02 for 2 %), or None if nothing can be said.

    n = (z_{1-alpha/2} sigma / ln(1 + half_width))^2.
    """
    sigma = sigma_upper_bound(d)
    if not math.isfinite(sigma) or half_width <= 0:
        return None
    return math.ceil((NormalDist().inv_cdf(1 - ALPHA / 2) * sigma / math.log1p(half_width)) ** 2)


def is_feasible(more: int, design: Design) -> bool:
    """Return whether so many more blocks than a run has are worth proposing, rather than less noise.

    A study of few blocks may need several times as many; hundreds of blocks, or many times what was planned, nobody
    runs: then longer trials, or a quieter host, are the way.
    """
    most = MORE_MAX if design.until == "open" else max(TIMES_MORE * design.blocks, FEW_MORE)  # open: until decided
    return more <= min(MORE_MAX, most)


# Exact tests by counting: the statistic is how many of a sample's values lie on one side of a location.
#
# ``shifts`` are the values in ascending order on the last axis, shape (..., N): Walsh averages, or differences of two
# groups. ``cdf`` is the distribution of the count where there is nothing to find, for counts of 0 .. N.


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


# The noise of a series whose neighbours are alike, and whether two parts of it differ by more than that noise.


MATTERS = 0.03  # of the level; a smaller shift does not matter
STANDARD_ERRORS = 4.0  # of the steepest step in noise, so that few steady series show one; by simulation
BATCH = 5  # samples
_RHO_MAX = 0.97
NORMAL_MAD = 0.6745  # the median absolute deviation of a standard normal


def robust_sd(values: Floats) -> float:
    """Return the standard deviation of values, shape (n,), by their middle half."""
    return median(np.abs(values - median(values))) / NORMAL_MAD


def long_run_variance(residuals: Floats, unknowns: int = 1) -> float:
    """Return n times the variance of the mean of n values; ``residuals``, shape (n,), are around ``unknowns`` levels.

    That of AR(1) noise, or of AR(1) noise in means of 5 where that is more: of noise of two kinds, one of which is
    shared by neighbours and one not, single samples show only the latter.
    """
    whole = len(residuals) // BATCH
    means = residuals[: whole * BATCH].reshape(whole, BATCH).mean(axis=1)
    return max(_of_ar1(residuals, unknowns), BATCH * _of_ar1(means, unknowns))


def _of_ar1(residuals: Floats, unknowns: int) -> float:
    """Return ``s^2 / (1 - rho)^2``: rho is the first autocorrelation, s^2 what neighbours leave unexplained.

    rho is corrected for what fitting takes away from it, about ``(unknowns + (2 + unknowns) rho) / n`` (Kendall 1954).
    """
    n = len(residuals)
    squares = float(residuals @ residuals)
    if n < unknowns + 5 or squares == 0:
        return squares / max(1, n - unknowns)
    rho = float(residuals[1:] @ residuals[:-1]) / squares
    rho = min(_RHO_MAX, max(0.0, (n * rho + unknowns) / (n - 2 - unknowns)))
    innovations = residuals[1:] - rho * residuals[:-1]
    return float(innovations @ innovations) / (n - unknowns) / (1 - rho) ** 2


def stands_apart(first: Floats, second: Floats, residuals: Floats, unknowns: int = 1) -> bool:
    """Return whether two neighbouring parts differ by more than noise, that of ``residuals``, would make them."""
    length = len(first) * len(second) / (len(first) + len(second))
    apart = float(first.mean() - second.mean())
    return apart**2 * length > STANDARD_ERRORS**2 * long_run_variance(residuals, unknowns)


def curve(values: Floats) -> Floats:
    """Return the parabola with the least squares through the values, shape (n,)."""
    places = np.linspace(-1, 1, len(values))
    slope = float(places @ values) / float(places @ places)
    bend = places**2 - float(np.mean(places**2))
    return float(values.mean()) + slope * places + bend * (float(bend @ values) / float(bend @ bend))


# Noise that remembers: covariances of series whose far neighbours are alike, for a trend among such noise.
#
# AR(1) noise forgets: what two values have in common halves every so many places. Hosts don't: a neighbour, a disk that
# fills and heat last for minutes as for hours. Here are fractional noise (Hosking 1981; d below 1/2, stationary),
# fractional walks (Mandelbrot and Van Ness 1968; H = d - 1/2), and walks beside noise that is each value's own.


FRACTIONAL = (0.1, 0.2, 0.3, 0.4, 0.47)  # d
WALKS = (0.1, 0.25, 0.4, 0.5, 0.65)  # H
OWN_NOISE = (1.0, 3.0, 10.0)  # variance beside a walk's, in that of its steps


def covariances(places: Ints) -> tuple[Floats, Floats]:
    """Return those of stationary noise and of walks, shape (kinds, n, n), for values at ascending ``places``."""
    since = (places - places[0] + 1).astype(np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    fractional = [_autocovariance(d, int(apart.max(initial=0)))[apart] for d in FRACTIONAL]
    walks = [_walk(since, apart, exponent) for exponent in WALKS]
    noisy_walks = [_walk(since, apart, 0.5) + variance * np.eye(len(places)) for variance in OWN_NOISE]
    return np.stack(fractional), np.stack([*walks, *noisy_walks])


def _autocovariance(d: float, longest: int) -> Floats:
    """Return that of fractional noise at lags 0 .. longest: 1, and each (k-1+d) / (k-d) of the last."""
    lags = np.arange(1, longest + 1)
    return np.concatenate(([1.0], np.cumprod((lags - 1 + d) / (lags - d))))


def _walk(since: Floats, apart: Ints, exponent: float) -> Floats:
    power = 2 * exponent
    return np.asarray((since[:, None] ** power + since[None, :] ** power - apart.astype(np.float64) ** power) / 2)


# A straight trend in values whose neighbours are alike: its interval must not take them for independent.
#
# Model: ``y_i = level of its group + slope * place_i + noise``. The noise may forget, AR(1), what two values have in
# common being ``rho`` to the power of how many places lie between them; it may have a long memory, or be a walk
# (``long_memory``). Which is unknown, and of few values it is estimated badly, so it is not estimated: the slope's
# distribution (Student's t around generalised least squares, for each kind of noise) is averaged over all kinds, each
# weighed by how well it explains the values. The three families have the same weight beforehand. Source: Zellner and
# Tiao 1964, with a flat prior.


SPARE_MIN = 8  # values beyond one per unknown; of fewer the interval says nothing
_RHO = np.linspace(-0.9, 0.95, 38)
MOST = 120  # values; neighbours of more are put together
_BISECTIONS = 60
_REACH = 1000  # standard errors; where the search for an end of the interval begins


def trend(places: Ints, groups: Ints, values: Floats, level: float = 0.95, *, long_memory: bool = True) -> Estimate:
    """Return the slope per place with its interval; all arguments have shape (n,), places ascend.

    ``groups`` are numbers from 0: values of a group share a level. Unknown where the values are too few.
    Without ``long_memory`` the noise is AR(1): a straight line is then never taken for a walk.
    """
    n, unknowns = len(values), int(groups.max(initial=-1)) + 2
    if n < unknowns + SPARE_MIN:
        return Estimate.unknown(n)
    if n > MOST:
        places, groups, values = _pool_neighbours(places, groups, values)
        unknowns = 2
    x = np.zeros((len(values), unknowns))
    x[np.arange(len(values)), groups] = 1
    x[:, -1] = places - places.mean()
    y = values - values.mean()
    remembering = (_fit_covariance(covariance, x, y) for covariance in (covariances(places) if long_memory else ()))
    weights, slopes, errors = _join_families((_fit_ar1(places, x, y), *remembering))
    freedom = len(values) - unknowns
    value, low, high = (_quantile(weights, slopes, errors, freedom, p) for p in (0.5, (1 - level) / 2, (1 + level) / 2))
    return Estimate(value, low, high, n)


def _pool_neighbours(places: Ints, groups: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return at most ``MOST`` values: the groups' levels are taken out, and neighbours' means stand for them."""
    levels = np.bincount(groups, values) / np.bincount(groups)
    parts = np.array_split(np.arange(len(values)), MOST)
    residuals = values - levels[groups]
    means = np.array([residuals[part].mean() for part in parts])
    # In parts as long as each other; places between trials that are missing are too few to matter here.
    middle = np.array([round(float(places[part].mean())) for part in parts], dtype=np.int64)
    return middle, np.zeros(MOST, dtype=np.int64), means


_Family = tuple[Floats, Floats, Floats]  # log weight, slope and the slope's standard error, of each kind of noise


def _join_families(families: tuple[_Family, ...]) -> _Family:
    """Return weights that add up to 1, slopes and standard errors of all kinds; each family begins with the same."""
    logs = np.concatenate([log_weight - np.log(len(log_weight)) for log_weight, _, _ in families])
    weights = np.exp(logs - logs.max())
    slopes, errors = (np.concatenate([family[part] for family in families]) for part in (1, 2))
    return weights / weights.sum(), slopes, errors


def _fit_ar1(places: Ints, x: Floats, y: Floats) -> _Family:
    """Return what each rho of AR(1) noise makes of the values.

    Subtracting ``rho^gap`` times the value before makes the noise of all values independent, and dividing by what is
    left of it makes it equal.
    """
    unknowns = x.shape[1]
    correlation = _RHO[:, None] ** np.diff(places)
    deviation = np.sqrt(1 - correlation**2)
    white_y = np.concatenate((np.full((len(_RHO), 1), y[0]), (y[1:] - correlation * y[:-1]) / deviation), axis=1)
    first = np.broadcast_to(x[0], (len(_RHO), 1, unknowns))
    white_x = np.concatenate((first, (x[1:] - correlation[..., None] * x[:-1]) / deviation[..., None]), axis=1)
    return _fit_independent(white_x, white_y, np.log(deviation).sum(axis=1))


def _fit_covariance(covariance: Floats, x: Floats, y: Floats) -> _Family:
    """Return what noise of each covariance, shape (kinds, n, n), makes of the values."""
    roots = np.linalg.cholesky(covariance)
    columns = np.concatenate((x, y[:, None]), axis=1)
    white = np.linalg.solve(roots, np.broadcast_to(columns, (len(roots), *columns.shape)))
    size = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return _fit_independent(white[..., :-1], white[..., -1], size)


def _fit_independent(white_x: Floats, white_y: Floats, log_size: Floats) -> _Family:
    """Return the fit to values whose noise has been made independent, for each kind of noise.

    ``log_size`` is half the logarithm of the covariance's determinant. The weight is the likelihood with levels, slope
    and variance integrated out.
    """
    n, unknowns = white_x.shape[1:]
    inner = white_x.transpose(0, 2, 1) @ white_x
    coefficients = np.linalg.solve(inner, white_x.transpose(0, 2, 1) @ white_y[..., None])
    squares = np.sum((white_y - (white_x @ coefficients)[..., 0]) ** 2, axis=1)
    # Of an exact line: rounding, no noise.
    squares = np.maximum(squares, np.maximum(1e-24 * np.sum(white_y**2, axis=1), 1e-300))
    log_weight: Floats = -log_size - np.linalg.slogdet(inner)[1] / 2 - (n - unknowns) / 2 * np.log(squares)
    errors: Floats = np.sqrt(squares / (n - unknowns) * np.linalg.inv(inner)[:, -1, -1])
    slopes = np.asarray(coefficients[:, -1, 0], dtype=np.float64)
    return log_weight, slopes, errors


def _quantile(weights: Floats, slopes: Floats, errors: Floats, freedom: int, p: float) -> float:
    low, high = float(np.min(slopes - _REACH * errors)), float(np.max(slopes + _REACH * errors))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if float(weights @ special.stdtr(freedom, (middle - slopes) / errors)) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
