"""The effect of a level: log ratios inside blocks, and the relative difference people read.

Inside block b, ``d_b = ln(y_level / y_baseline)``: twice as fast and half as fast are equally far from 0.
"""

import math
from collections.abc import Mapping

_LARGEST = 709.0  # e to the power of more overflows


def log_ratios(level: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Return block -> ``ln(level / baseline)``, for the blocks in which both are positive and finite."""
    above, below = logarithms(level), logarithms(baseline)
    return {block: above[block] - below[block] for block in sorted(above.keys() & below.keys())}


def logarithms(values: Mapping[int, float]) -> dict[int, float]:
    """Return block -> ln(value), for the blocks in which it is positive and finite."""
    return {block: math.log(value) for block, value in values.items() if math.isfinite(value) and value > 0}


def relative(log_ratio: float) -> float:
    """Return the relative difference of a log ratio: .0953 -> .1, that is +10 %; infinite beyond what a float holds."""
    return math.expm1(log_ratio) if log_ratio < _LARGEST else math.inf


def log_margin(margin: float) -> float:
    """Return the half-width of the margin as a log ratio; ``margin`` is .03 for 3 %.

    The margin is symmetric on the log scale: as a relative difference, 3 % reaches from -2.9 % to +3 %.
    """
    return math.log1p(margin)
