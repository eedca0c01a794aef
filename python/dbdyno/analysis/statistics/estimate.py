"""An estimate: a value that never travels without its uncertainty."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics.scipy_special import special
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


def sigma_upper_bound(d: Floats, confidence: float = SIGMA_CONFIDENCE) -> float:
    """Return the one-sided upper bound of the standard deviation of ``d``: s sqrt((n-1) / chi2_{1-confidence, n-1}).

    Planning from s itself falls short half the time (Browne 1995). Infinite below 2 blocks.
    """
    freedom = len(d) - 1
    if freedom < 1:
        return math.inf
    quantile = float(special.chdtri(freedom, confidence))  # chdtri takes the upper tail's area
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
