"""Samples over time as they come from a run folder, made ready to be judged or drawn."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics.arrays import Floats, median

Columns = Mapping[str, npt.NDArray[np.generic]]  # column -> samples, "t_s" being the end of each interval in seconds

SAMPLES_MAX = 600
COUNTED_MIN = 100  # mean events in a sample: chance makes fewer look ragged


@dataclass(frozen=True)
class Rates:
    """Rates in intervals of about equal length, shape (n,) each: the end of each in seconds, and the rate in it."""

    end_s: Floats
    rate: Floats


def floats(column: npt.NDArray[np.generic]) -> Floats:
    """Return a column as float64."""
    return np.asarray(column, dtype=np.float64)


def at_middles(ends: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return samples at the middle of their intervals, in order of time, without a short remainder as the last.

    An interval starts where the one before ends, the first at 0. What was counted in a fraction of an interval is too
    noisy to stand beside whole ones: a last one shorter than half of the median is left out.
    """
    order, middles = middles_of(ends)
    return middles, values[order]


def middles_of(ends: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return of which samples, in order of time, and where the middles of their intervals are, as ``at_middles``."""
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    lengths = np.diff(ends, prepend=0.0)
    middles = ends - lengths / 2
    if len(ends) and lengths[-1] < median(lengths) / 2:
        return order[:-1], middles[:-1]
    return order, middles


def gathered(ends: Floats, lengths: Floats, rates: Floats) -> Rates:
    """Put neighbouring intervals together until they are few enough and each counts enough; all have shape (n,)."""
    counts = rates * lengths
    if not counts.sum() > 0:
        return Rates(np.empty(0), np.empty(0))
    each = max(len(rates) / SAMPLES_MAX, COUNTED_MIN * len(rates) / float(counts.sum()))
    each = min(len(rates), max(1, math.ceil(each - 0.01)))  # a little short is not worth twice the length
    whole = len(rates) // each
    count, seconds = (values[: whole * each].reshape(whole, each).sum(axis=1) for values in (counts, lengths))
    return Rates(ends[each - 1 : whole * each : each], count / seconds)
