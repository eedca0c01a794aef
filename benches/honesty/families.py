"""Many families of comparisons at once, each interval at the level at which it is shown: ``judge``, vectorised."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benches.honesty.noise import Floats
from dbdyno.analysis.statistics import holm_levels
from dbdyno.analysis.verdict.evidence import Evidence, Rule, evidence
from dbdyno.model.design import ALPHA


def evidence_of_families(d: Floats, rule: Rule, margin: float) -> Evidence:
    """Return what many families of comparisons say, shape (..., comparisons) of ``d``, shape (..., comparisons, n).

    Each interval is at the level at which Holm's procedure tests its comparison, as it is shown.
    """
    return at_levels(lambda alpha: evidence(d, rule, margin, alpha))


def at_levels(of_level: Callable[[float], Evidence]) -> Evidence:
    """Return the figures of families whose intervals are each at their level by Holm; ``of_level`` gives all at one."""
    first = of_level(ALPHA)
    levels = holm_levels(first.p, ALPHA)
    low, high = first.low.copy(), first.high.copy()
    for level in np.unique(levels[levels < ALPHA]):
        these, one = levels == level, of_level(float(level))
        low[these], high[these] = one.low[these], one.high[these]
    return replace(first, low=low, high=high)
