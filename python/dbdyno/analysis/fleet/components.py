"""Parts of a variance, one inside the other: how much comes with the host, how much with what is repeated on it.

The one-way layout with groups that need not be equally large: means of the groups, all with one vote, against the
spread inside them, whose share in a mean is that of the harmonic mean of the groups' sizes (Thomas and Hultquist 1978).
Exact of groups of equal size under normal noise, close of others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.design import ALPHA

TAILS = (1 - ALPHA / 2, ALPHA / 2)


@dataclass(frozen=True)
class MeanSquare:
    """A variance as it was estimated: from so many degrees of freedom."""

    value: float
    freedom: int

    @classmethod
    def around_mean(cls, values: Floats) -> "MeanSquare":
        """Return that of values, shape (n,), around their mean; 0 with no freedom below 2."""
        freedom = max(0, len(values) - 1)
        return cls(float(np.var(values, ddof=1)) if freedom else 0.0, freedom)

    def deviation(self) -> Estimate:
        """Return it as a standard deviation, with its interval by chi squared."""
        if not self.freedom:
            return Estimate.unknown()
        ends = (self.value * self.freedom / float(special.chdtri(self.freedom, 1 - tail)) for tail in TAILS)
        low, high = map(math.sqrt, ends)
        return Estimate(math.sqrt(self.value), low, high, self.freedom + 1)


@dataclass(frozen=True)
class Groups:
    """Values of several groups: means of the groups against what is inside them."""

    means: Floats  # shape (groups,)
    sizes: Floats  # shape (groups,)
    inside: MeanSquare

    @classmethod
    def of(cls, values: Sequence[Floats]) -> "Groups":
        """Return the layout of groups, each of shape (any number above 0,)."""
        squares = sum(float(np.sum((one - one.mean()) ** 2)) for one in values)
        freedom = sum(len(one) - 1 for one in values)
        inside = MeanSquare(squares / freedom if freedom else 0.0, freedom)
        return cls(np.array([one.mean() for one in values]), np.array([len(one) for one in values], float), inside)

    @property
    def size(self) -> float:
        """The harmonic mean of the groups' sizes."""
        return len(self.sizes) / float(np.sum(1 / self.sizes))

    @property
    def between(self) -> MeanSquare:
        """The mean square of the means, as if each were of ``size`` values."""
        found = MeanSquare.around_mean(self.means)
        return MeanSquare(self.size * found.value, found.freedom)

    def deviation(self) -> Estimate:
        """Return the standard deviation between groups, that of the noise in their means taken out."""
        return component(self.between, self.inside, self.size)


def in_halves(values: Floats) -> Floats:
    """Return the means of the earlier and the later half of values in order of time, shape (2,); of one, itself.

    What lasts longer than one value but not than a half is in the spread between the two as in their mean, where the
    spread between neighbours would pass it over (batch means).
    """
    middle = len(values) // 2
    return np.array([values[:middle].mean(), values[middle:].mean()]) if middle else values


def share_of(between: Estimate, inside: MeanSquare) -> Estimate:
    """Return the share of a component in the variance between two values (the intraclass correlation), 0 to 1.

    The interval is that of the component; ``inside`` is known so much better that it counts as known.
    """
    if not between.bounded or not inside.value > 0:
        return Estimate.unknown(between.n)
    value, low, high = (one**2 / (one**2 + inside.value) for one in (between.value, between.low, between.high))
    return Estimate(value, low, high, between.n)


def component(top: MeanSquare, bottom: MeanSquare, n: float) -> Estimate:
    """Return sqrt((top - bottom) / n) with the interval of Williams and Tukey; never less than 0, unknown if either is.

    Williams 1962; that it holds the truth about as often as it says: Boardman 1974.
    """
    if not top.freedom or not bottom.freedom:
        return Estimate.unknown(top.freedom + 1 if top.freedom else 0)
    ends = []
    for tail in TAILS:
        above = bottom.value * float(special.fdtri(top.freedom, bottom.freedom, tail))
        ends.append(top.freedom * (top.value - above) / (n * float(special.chdtri(top.freedom, 1 - tail))))
    value, low, high = (math.sqrt(max(0.0, one)) for one in ((top.value - bottom.value) / n, *ends))
    return Estimate(value, low, high, top.freedom + 1)
