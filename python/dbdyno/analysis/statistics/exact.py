"""Exact tests by counting: the statistic is how many of a sample's values lie on one side of a location.

``found`` are the values in ascending order on the last axis, shape (..., N): Walsh averages, or differences of two
groups. ``cdf`` is the distribution of the count where there is nothing to find, for counts of 0 .. N.
"""

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics.arrays import Floats, Ints

TIE = 1e-12  # log ratios closer than this are equal, whatever rounding did to their last bits


def p_above(found: Floats, value: npt.ArrayLike, cdf: Floats) -> Floats:
    """Return the one-sided p of "the location lies above ``value``", shape (...); one that equals it counts against."""
    return _tail(np.sum(found > np.asarray(value)[..., None] + TIE, axis=-1), cdf)


def p_below(found: Floats, value: npt.ArrayLike, cdf: Floats) -> Floats:
    """Return the one-sided p of "the location lies below ``value``", shape (...)."""
    return _tail(np.sum(found < np.asarray(value)[..., None] - TIE, axis=-1), cdf)


def _tail(on_the_side: Ints, cdf: Floats) -> Floats:
    return np.asarray(cdf[len(cdf) - 1 - on_the_side])


def p_two_sided(found: Floats, cdf: Floats) -> Floats:
    """Return the two-sided p of "the location is not 0", shape (...): twice the smaller one-sided one."""
    return np.asarray(np.minimum(1.0, 2 * np.minimum(p_above(found, 0.0, cdf), p_below(found, 0.0, cdf))))


def dropped(cdf: Floats, alpha: float) -> int:
    """Return how many of the smallest and of the largest values lie outside the interval; -1: it is unbounded.

    That is the largest k with ``cdf[k] <= alpha / 2``, so the coverage is at least ``1 - alpha``.
    """
    return int(np.searchsorted(cdf, alpha / 2, side="right")) - 1
