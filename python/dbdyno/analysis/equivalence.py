"""Equivalence: two one-sided tests that the effect is inside the margin.

The margin m is symmetric on the log scale, +-ln(1 + m): a level 3 % faster and a baseline 3 % faster are the same
distance away. As a relative difference, 3 % therefore reaches from -2.9 % to +3 %.
"""

import math

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.effect import Interval, signed_rank_cdf, signed_rank_interval, walsh_averages

Floats = npt.NDArray[np.float64]

TOST_CONFIDENCE = 0.90  # two one-sided tests at 5 % each (Schuirmann 1987)


def log_margin(margin: float) -> float:
    """Return the half-width of the margin as a log ratio; ``margin`` is .03 for 3 %."""
    return math.log1p(margin)


def tost_interval(d: Floats) -> Interval:
    """Return the 90 % interval of the log ratio that the equivalence test rests on."""
    return signed_rank_interval(d, TOST_CONFIDENCE)


def tost_p(d: Floats, margin: float) -> float:
    """Return the p of "the effect lies inside the margin", the larger of two exact one-sided signed-rank tests.

    The number of Walsh averages above a value t is the signed-rank statistic of ``d - t``. Hence p <= .05 exactly where
    the 90 % interval lies strictly inside +-ln(1 + margin); the p is what Holm needs. 1 of no blocks.
    """
    if not len(d):
        return 1.0
    bound = log_margin(margin)
    averages = walsh_averages(d)
    cdf = signed_rank_cdf(len(d))
    above_low = int((averages > -bound).sum())
    below_high = int((averages < bound).sum())
    return float(cdf[len(averages) - min(above_low, below_high)])
