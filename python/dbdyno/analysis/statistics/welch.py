"""Welch's test: what many would judge two fixed groups by. Shown beside our own verdicts, never behind one."""

import math

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.scipy_special import special


def freedom(a: Floats, b: Floats, n: int, m: int) -> Floats:
    """Return Welch's degrees of freedom of two means with squared errors ``a`` and ``b`` from n and m values."""
    return np.asarray((a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1)))


def welch_p(first: Floats, second: Floats) -> float:
    """Return the two-sided p of "the means are equal", variances unequal (Welch 1947); NaN below two values each."""
    n, m = len(first), len(second)
    if min(n, m) < 2:  # noqa: PLR2004
        return math.nan
    a, b = np.asarray(np.var(first, ddof=1)) / n, np.asarray(np.var(second, ddof=1)) / m
    difference = float(np.mean(second) - np.mean(first))
    if a + b == 0:
        return 1.0 if difference == 0 else 0.0
    return 2 * float(special.stdtr(freedom(a, b, n, m), -abs(difference) / np.sqrt(a + b)))
