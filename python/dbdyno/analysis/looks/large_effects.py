"""Large effects: Student's t on the mean of the log ratios, with a bound that chance signs alone rarely reach.

The signed rank sees order and not size: with six blocks its p is 2/64 at best, whether the effect is 20 % or fivefold.
This rule sees size. It is planned beside the signed rank, with a share of the 5 % of its own.

t takes the log ratios for normal. Two equal treatments of which a job slows one trial in every block give log ratios of
nearly one size, each as likely up as down, and t then calls chance signs a difference however strict its level is. So
a value counts as excluded only where ``(sum of d)^2 > m (sum of d^2)`` with m = n - 2, but at least 5, the value taken
off each d: that is ``|t| > sqrt(m (n - 1) / (n - m))``. m blocks that agree while all others show nothing do not
suffice; so six blocks at least must agree, as chance signs do in 2 of 64 studies. Of fewer nothing is said. The more
blocks there are, the larger against the spread an effect must be: lesser ones are the signed rank's to find.

The interval reaches to the estimate that is shown, if that lies outside, and a value between the two is not excluded:
so this interval and that of the signed rank always have a value in common. All functions take ``d`` of shape (..., n)
and ``shown`` of shape (...), the estimate shown, and work on all leading axes at once.
"""

import math

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.exact import TIE
from dbdyno.analysis.statistics.scipy_special import special

AGREEING, SHOWING_NOTHING = 5, 2  # blocks: so many with one sign are no evidence, 2 of 32


def least_multiple(n: int) -> float:
    """Return how many standard errors the mean must lie from a value at least; infinite where n is too small."""
    agreeing = max(AGREEING, n - SHOWING_NOTHING)
    return math.sqrt(agreeing * (n - 1) / (n - agreeing)) if n > AGREEING else math.inf


def interval(d: Floats, shown: Floats, level: float) -> tuple[Floats, Floats]:
    """Return both ends of the interval at ``level``, each of shape (...)."""
    n = d.shape[-1]
    if n <= AGREEING or level <= 0:
        return np.full(shown.shape, -np.inf), np.full(shown.shape, np.inf)
    mean, error = _mean_and_error(d)
    half = max(float(special.stdtrit(n - 1, 1 - level / 2)), least_multiple(n)) * error
    return np.minimum(mean - half, shown), np.maximum(mean + half, shown)


def p_two_sided(d: Floats, shown: Floats) -> Floats:
    """Return the smallest level at which the interval excludes 0, shape (...); 1 where none does."""
    n = d.shape[-1]
    if n <= AGREEING:
        return np.ones(shown.shape)
    mean, error = _mean_and_error(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / error
        far = (t > least_multiple(n)) & (np.abs(mean) > TIE) & (np.sign(mean) == np.sign(shown))
        return np.where(far, 2 * special.stdtr(n - 1, -t), 1.0)


def _mean_and_error(d: Floats) -> tuple[Floats, Floats]:
    return np.asarray(np.mean(d, axis=-1)), np.asarray(np.std(d, axis=-1, ddof=1)) / math.sqrt(d.shape[-1])
