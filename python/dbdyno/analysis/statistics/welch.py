"""Welch's test: the means of two groups that may spread unequally and need not be equally many.

The rank sum and Brunner and Munzel's test rest on how values are ordered, and of three or four values there are too few
orders to see that they spread more than the twenty of another group: alone they find a shift that is not there in 10 to
20 % of such comparisons. Welch's test gives either group a variance of its own (Welch 1947).

Groups have shapes (..., n) and (..., m), results (...).
"""

import math

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.scipy_special import special


def freedom(a: Floats, b: Floats, n: int, m: int) -> Floats:
    """Return Welch's degrees of freedom of two means with squared errors ``a`` and ``b`` from n and m values."""
    return np.asarray((a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1)))


def p_two_sided(first: Floats, second: Floats) -> Floats:
    """Return the p of "the means are equal"; that of fewer than 2 values in a group is 1.

    Without any spread it is 1 where the means are the same and 0 where they are not.
    """
    if min(first.shape[-1], second.shape[-1]) < 2:  # noqa: PLR2004
        return np.ones(first.shape[:-1])
    difference, error, degrees = _difference(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(degrees, -np.abs(difference) / error)
    return np.where(error > 0, p, np.where(difference == 0, 1.0, 0.0))


def interval(first: Floats, second: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the ``1 - alpha`` interval of the second mean less the first; infinite below 2 values."""
    if min(first.shape[-1], second.shape[-1]) < 2:  # noqa: PLR2004
        return np.full(first.shape[:-1], -np.inf), np.full(first.shape[:-1], np.inf)
    difference, error, degrees = _difference(first, second)
    reach = np.where(error > 0, special.stdtrit(np.where(error > 0, degrees, 1.0), 1 - alpha / 2) * error, 0.0)
    return difference - reach, difference + reach


def welch_p(first: Floats, second: Floats) -> float:
    """Return the p of two groups of shape (n,) and (m,): what many would judge by; NaN below two values each."""
    return math.nan if min(len(first), len(second)) < 2 else float(p_two_sided(first, second))  # noqa: PLR2004


def _difference(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the difference of the means, its standard error and the degrees of freedom."""
    n, m = first.shape[-1], second.shape[-1]
    a, b = np.asarray(np.var(first, axis=-1, ddof=1)) / n, np.asarray(np.var(second, axis=-1, ddof=1)) / m
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = freedom(a, b, n, m)
    return np.asarray(np.mean(second, axis=-1) - np.mean(first, axis=-1)), np.asarray(np.sqrt(a + b)), degrees
