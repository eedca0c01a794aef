"""What a comparison's differences say, however often they were looked at: estimate, interval, p, equivalence, word.

Everything works on arrays: ``d`` has shape (..., n), log ratios with one value per block on the last axis; results have
shape (...). Where several comparisons belong to one study they stand on the last axis of the results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from dbdyno.analysis import always_valid, signed_rank
from dbdyno.analysis.effect import log_margin, relative
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.min_blocks import ALPHA, smallest_p
from dbdyno.analysis.multiplicity import holm
from dbdyno.analysis.sequential import Looks, nominal_level, sequential_p

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AlwaysValid:
    """Looked at after any block, for as long as anyone likes: the always-valid t sequence."""


Rule = Looks | AlwaysValid


class Finding(IntEnum):
    """What can be said of a comparison."""

    UNDECIDED = 0
    HIGHER = 1
    LOWER = 2
    EQUIVALENT = 3


@dataclass(frozen=True)
class Evidence:
    """Figures of one or many comparisons. ``value``, ``low`` and ``high`` are log ratios; infinite ends are unknown."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats  # of no difference, allowing for the looks
    p_now: Floats  # of no difference, as if this look were the only one
    p_equivalence: Floats  # of a difference as large as the margin or larger, allowing for the looks


def evidence(d: Floats, rule: Rule, margin: float, alpha: float = ALPHA) -> Evidence:
    """Return what ``d`` says. The interval has coverage ``1 - alpha`` over all looks together.

    Planned looks: Hodges-Lehmann estimate, exact signed-rank p and interval at the nominal level of the look.
    Always valid: mean and t sequence.
    """
    bound = log_margin(margin)
    if isinstance(rule, AlwaysValid):
        value = np.asarray(np.mean(d, axis=-1))
        low, high = always_valid.interval(d, alpha)
        p = always_valid.p_two_sided(d)
        # Half of the two-sided p is that of one side: the sequence is symmetric.
        above, below = (always_valid.p_two_sided(d, side) / 2 for side in (-bound, bound))
        p_equivalence = np.where(np.abs(value) < bound, np.maximum(above, below), 1.0)
        return Evidence(value, low, high, p, p, p_equivalence)
    n = d.shape[-1]
    averages = signed_rank.walsh_averages(d)
    low, high = signed_rank.interval(averages, n, nominal_level(rule, alpha))
    p_now = signed_rank.p_two_sided(averages, n)
    sides = (signed_rank.p_above(averages, -bound, n), signed_rank.p_below(averages, bound, n))
    return Evidence(
        value=np.asarray(np.median(averages, axis=-1)),
        low=low,
        high=high,
        p=sequential_p(p_now, rule, 2),
        p_now=p_now,
        p_equivalence=sequential_p(np.maximum(*sides), rule, 1),
    )


def evidence_of_each(each: Sequence[Floats], rule: Callable[[int], Rule], margin: float) -> Evidence:
    """Return the figures of many comparisons, shape (comparisons,), that need not have equally many blocks.

    Those that have are computed at once. ``rule`` tells of a number of blocks how often the data were looked at.
    """
    figures = {name: np.empty(len(each)) for name in Evidence.__dataclass_fields__}
    for n in {len(d) for d in each}:
        places = [place for place, d in enumerate(each) if len(d) == n]
        found = evidence(np.stack([each[place] for place in places]), rule(n), margin)
        for name, column in figures.items():
            column[places] = getattr(found, name)
    return Evidence(**figures)


def best_p(n: int, rule: Rule) -> float:
    """Return the smallest p that ``n`` blocks can show under a rule."""
    return 0.0 if isinstance(rule, AlwaysValid) else float(sequential_p(np.array(smallest_p(n)), rule))


def relative_effect(d: Floats, rule: Rule) -> Estimate:
    """Return the relative difference that log ratios of shape (n,) come to, with its interval; unknown of no blocks."""
    if not len(d):
        return Estimate.unknown()
    found = evidence(d, rule, margin=1.0)
    return relative_estimate(float(found.value), float(found.low), float(found.high), len(d))


def relative_estimate(value: float, low: float, high: float, n: int) -> Estimate:
    """Return an estimate of a log ratio as one of a relative difference."""
    return Estimate(relative(value), relative(low) if np.isfinite(low) else low, relative(high), n)


def findings(found: Evidence, margin: float) -> npt.NDArray[np.int64]:
    """Return a ``Finding`` for each comparison; those of one study stand on the last axis and share 5 % by Holm.

    A difference needs both its p and its interval. One whose whole interval lies inside the margin is equivalent: real,
    but smaller than anyone cares for. Equivalence needs a bounded interval, or it would stand beside an unknown one.
    """
    bound = log_margin(margin)
    bounded = np.isfinite(found.low) & np.isfinite(found.high)
    different = (holm(found.p) <= ALPHA) & ((found.low > 0) | (found.high < 0))
    equivalent = (holm(found.p_equivalence) <= ALPHA) & bounded
    inside = (found.low > -bound) & (found.high < bound)
    word = np.where(found.value > 0, Finding.HIGHER, Finding.LOWER)
    word = np.where(different & ~(equivalent & inside), word, Finding.UNDECIDED)
    return np.where(equivalent & (~different | inside), Finding.EQUIVALENT, word)
