"""How many blocks it takes to resolve a difference, from the spread seen so far."""

import math
from statistics import NormalDist

import numpy as np

from dbdyno.analysis.statistics.estimate import Floats
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.design import ALPHA, Design

POWER = 0.80
SIGMA_CONFIDENCE = 0.80
# More blocks are run where they cost what the run has cost, a few times over: a study of six may well need another 100.
TIMES_MORE, FEW_MORE, MORE_MAX = 4, 100, 200


def sigma_upper_bound(d: Floats, confidence: float = SIGMA_CONFIDENCE) -> float:
    """Return the one-sided upper bound of the standard deviation of ``d``: s sqrt((n-1) / chi2_{1-confidence, n-1}).

    Planning from s itself falls short half the time (Browne 1995). Infinite below 2 blocks.
    """
    freedom = len(d) - 1
    if freedom < 1:
        return math.inf
    quantile = float(special.chdtri(freedom, confidence))  # chdtri takes the upper tail's area
    return float(np.std(d, ddof=1)) * math.sqrt(freedom / quantile)


def blocks_to_resolve(d: Floats, difference: float, comparisons: int = 1) -> int | None:
    """Return about how many blocks detect ``difference`` (.03 for 3 %) with 80 % power, or None if nothing can be said.

    n = ((z_{1-alpha/2} + z_{power}) sigma / ln(1 + difference))^2, alpha shared out among the comparisons.
    """
    sigma = sigma_upper_bound(d)
    if not math.isfinite(sigma) or difference <= 0:
        return None
    z = NormalDist().inv_cdf
    reach = z(1 - ALPHA / max(comparisons, 1) / 2) + z(POWER)
    return math.ceil((reach * sigma / math.log1p(difference)) ** 2)


def blocks_to_reach(d: Floats, half_width: float) -> int | None:
    """Return about how many blocks give an interval of ``half_width`` (.02 for 2 %), or None if nothing can be said.

    n = (z_{1-alpha/2} sigma / ln(1 + half_width))^2.
    """
    sigma = sigma_upper_bound(d)
    if not math.isfinite(sigma) or half_width <= 0:
        return None
    return math.ceil((NormalDist().inv_cdf(1 - ALPHA / 2) * sigma / math.log1p(half_width)) ** 2)


def is_feasible(more: int, design: Design) -> bool:
    """Return whether so many more blocks than a run has are worth proposing, rather than less noise.

    A study of few blocks may need several times as many; hundreds of blocks, or many times what was planned, nobody
    runs: then longer trials, or a quieter host, are the way.
    """
    most = MORE_MAX if design.until == "open" else max(TIMES_MORE * design.blocks, FEW_MORE)  # open: until decided
    return more <= min(MORE_MAX, most)
