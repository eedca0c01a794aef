"""What a treatment comes to by itself: the geometric mean, which is to ratios what the mean is to differences."""

import math
from collections.abc import Iterable

import numpy as np

from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.scipy_special import special


def geometric_mean(values: Iterable[float], alpha: float) -> Estimate:
    """Return that of values, with the t interval of their logarithms; unbounded of one, unknown where any is 0 or less.

    Nothing is known of none, either.
    """
    given = np.array(list(values), dtype=np.float64)
    if not len(given) or np.any(given <= 0):
        return Estimate.unknown(len(given))
    logs = np.log(given)
    value, freedom = float(np.mean(logs)), len(logs) - 1
    if freedom < 1:
        return Estimate(math.exp(value), -math.inf, math.inf, len(logs))
    reach = float(special.stdtrit(freedom, 1 - alpha / 2)) * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    with np.errstate(over="ignore"):
        return Estimate(math.exp(value), float(np.exp(value - reach)), float(np.exp(value + reach)), len(logs))
