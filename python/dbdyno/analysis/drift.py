"""Drift over the run: did the host get slower or faster while we measured? A note, never a correction."""

import math
from collections.abc import Sequence

import numpy as np

from dbdyno.analysis.estimate import Estimate

MIN_TRIALS = 12  # below this the interval of a slope is too wide to tell anything
_Z95 = 1.959964


def drift_over_run(places: Sequence[int], treatments: Sequence[str], values: Sequence[float]) -> Estimate:
    """Return the relative change of a metric from the first trial to the last, treatments taken out.

    ``places`` are positions in the run order, ``values`` the metric. What is left of ln(value) after subtracting its
    treatment's mean is fitted by the Theil-Sen slope (median of pairwise slopes) with Sen's 95 % interval (Sen 1968).
    """
    usable = [i for i, value in enumerate(values) if math.isfinite(value) and value > 0]
    if len(usable) < MIN_TRIALS:
        return Estimate.unknown(len(usable))
    order = np.asarray([places[i] for i in usable], dtype=np.float64)
    rest = np.log([values[i] for i in usable])
    names = np.asarray([treatments[i] for i in usable])
    for name in sorted(set(names.tolist())):
        rest[names == name] -= rest[names == name].mean()
    first, second = np.triu_indices(len(order), k=1)
    slopes = np.sort((rest[second] - rest[first]) / (order[second] - order[first]))
    n, length = len(order), float(order.max() - order.min())
    half = _Z95 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2
    low = max(0, math.floor(len(slopes) / 2 - half))
    high = min(len(slopes) - 1, math.ceil(len(slopes) / 2 + half))
    change = [math.expm1(length * float(slope)) for slope in (np.median(slopes), slopes[low], slopes[high])]
    return Estimate(change[0], change[1], change[2], n)
