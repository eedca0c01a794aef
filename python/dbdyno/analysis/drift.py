"""Drift over the run: did the host get slower or faster while we measured? A note, never a correction."""

import math
from collections.abc import Sequence

import numpy as np

from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.trend import trend

MIN_TRIALS = 12  # below this the interval of a slope is too wide to tell anything


def drift_over_run(places: Sequence[int], treatments: Sequence[str], values: Sequence[float]) -> Estimate:
    """Return the relative change of a metric from the first trial to the last, treatments taken out.

    ``places`` are positions in the run order, ascending, ``values`` the metric. A straight line through ln(value), with
    a level of its own for each treatment; its 95 % interval allows for noise that neighbouring trials share.
    """
    usable = [i for i, value in enumerate(values) if math.isfinite(value) and value > 0]
    if len(usable) < MIN_TRIALS:
        return Estimate.unknown(len(usable))
    order = np.asarray([places[i] for i in usable], dtype=np.int64)
    _, groups = np.unique([treatments[i] for i in usable], return_inverse=True)
    slope = trend(order, groups.astype(np.int64), np.log([values[i] for i in usable]))
    if not slope.known:
        return slope
    length = float(order[-1] - order[0])
    value, low, high = (math.expm1(length * end) for end in (slope.value, slope.low, slope.high))
    return Estimate(value, low, high, slope.n)
