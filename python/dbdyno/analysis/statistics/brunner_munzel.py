"""Brunner and Munzel's test: two groups that may spread unequally and need not be equally many.

The rank sum takes both groups for alike but for a shift. Where the smaller group spreads three times as far as the
larger, it finds a shift that is not there in 12 to 17 % of simulated comparisons of 40 and 10 values. Here each value's
share of the other group that it exceeds (its *placement*) counts, with a variance of its own for either group, as in
Welch's test (Brunner and Munzel 2000).

Arguments ``each`` are the differences ``y_j - x_i``, shape (..., m, n).
"""

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats, Ints
from dbdyno.analysis.statistics.exact import TIE
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.statistics.welch import freedom


def p_above(each: Floats, shift: float | Floats) -> Floats:
    """Return the one-sided p of "y lies more than ``shift`` above x"; shapes (...). Of a single value it is 1."""
    m, n = each.shape[-2:]
    if min(m, n) < 2:  # noqa: PLR2004
        return np.ones(each.shape[:-2])
    left = each - np.asarray(shift)[..., None, None]
    wins = (left > TIE) + 0.5 * (np.abs(left) <= TIE)
    of_x, of_y = wins.mean(axis=-1), wins.mean(axis=-2)
    a, b = np.var(of_x, axis=-1, ddof=1) / m, np.var(of_y, axis=-1, ddof=1) / n
    apart = wins.mean(axis=(-2, -1)) - 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        p = special.stdtr(freedom(a, b, m, n), -apart / np.sqrt(a + b))
    # Without any spread one group lies wholly above the other, or all are the same.
    return np.where(a + b > 0, p, np.where(apart > 0, 0.0, 1.0))


def p_two_sided(each: Floats) -> Floats:
    """Return the two-sided p of "there is a shift", shape (...)."""
    above, below = p_above(each, 0.0), p_above(-each, 0.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(above, below)))


def rejected(each: Floats, found: Floats, alpha: float) -> Ints:
    """Return how many of the smallest differences lie outside the interval of ``1 - alpha``, shape (...).

    ``found`` are the same differences in ascending order, shape (..., m n). The test is asked between one difference
    and the next, by bisection from the middle one.
    """
    low = np.zeros(found.shape[:-1], dtype=np.int64)
    high = np.full(low.shape, found.shape[-1] // 2)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        sides = np.take_along_axis(found, np.stack((np.maximum(middle - 1, 0), middle), axis=-1), axis=-1)
        outside = p_above(each, sides.mean(axis=-1)) <= alpha / 2
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return low
