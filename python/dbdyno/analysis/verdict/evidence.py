"""What a comparison's differences say, however often they were looked at: estimate, interval, p, equivalence, word.

Everything works on arrays: ``d`` has shape (..., n), log ratios with one value per block on the last axis; results have
shape (...). Where several comparisons belong to one study they stand on the last axis of the results.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.looks import (
    Looks,
    always_valid_interval,
    always_valid_multiplier,
    always_valid_p,
    large_effect_interval,
    large_effect_p,
    nominal_level,
    sequential_p,
)
from dbdyno.analysis.planned_looks import FIRST_DECIDING, FIRST_EQUIVALENT, RANKS_OF_ONE_LOOK
from dbdyno.analysis.statistics.estimate import Estimate, Floats, Ints, log_margin, relative
from dbdyno.analysis.statistics.location_tests import (
    exact_p,
    exact_p_above,
    exact_p_below,
    mean_p_beyond,
    signed_rank_cdf,
    signed_rank_interval,
    walsh_averages,
)
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.verdict.resolution import MARGIN_SHARE
from dbdyno.model.design import ALPHA


@dataclass(frozen=True)
class AlwaysValid:
    """Looked at after any block, for as long as anyone likes: the always-valid t sequence."""


Rule = Looks | AlwaysValid


class Relation(IntEnum):
    """What can be said of a comparison."""

    UNDECIDED = 0
    HIGHER = 1
    LOWER = 2
    EQUIVALENT = 3

    @property
    def text(self) -> str:
        """What programs read where the question is the metric's own level: higher, lower, equivalent, not shown."""
        return "not shown" if self is Relation.UNDECIDED else self.name.lower()


@dataclass(frozen=True)
class Evidence:
    """Figures of one or many comparisons. ``value``, ``low`` and ``high`` are log ratios; infinite ends are unknown."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats  # of no difference, allowing for the looks
    p_now: Floats  # of no difference, as if this look were the only one
    p_equivalence: Floats  # of a difference as large as the margin or larger, allowing for the looks

    @classmethod
    def of_each(cls, found: Sequence["Evidence"]) -> "Evidence":
        """Return the figures of many comparisons, those of each being numbers, as one; shape (comparisons,)."""
        return cls(*(np.array([getattr(one, field.name) for one in found]) for field in fields(cls)))

    def at(self, place: int) -> "Evidence":
        """Return those of one of many comparisons."""
        return Evidence(*(np.asarray(getattr(self, field.name)[place]) for field in fields(self)))


def evidence(
    d: Floats, rule: Rule, margin: float, alpha: npt.ArrayLike = ALPHA, *, unit: npt.ArrayLike = 0.0
) -> Evidence:
    """Return what ``d`` says. The interval has coverage ``1 - alpha``, shape (...), over all looks together.

    Planned looks: the Hodges-Lehmann estimate; two rules, the signed rank and the mean of a large effect, each with a
    share of ``alpha`` and its nominal level at the look: the interval is what both intervals have in common, p the
    smaller one of both, each divided by its share, so that p is at most ``alpha`` where the interval excludes 0.
    Equivalence asks the usual block and the mean. Always valid: mean and t sequence. Where measuring may end by what is
    seen, nothing is equivalent before ``FIRST_EQUIVALENT`` blocks. Where figures are coarse, ``unit`` is the step
    between them as a log ratio, shape (...): the interval is wider by it at either end and the margin narrower.
    """
    step = np.asarray(unit, dtype=np.float64)
    bound = np.broadcast_to(log_margin(margin) - step, d.shape[:-1])
    alphas = np.broadcast_to(np.asarray(alpha, dtype=np.float64), d.shape[:-1])
    found = _always_valid(d, bound, alphas) if isinstance(rule, AlwaysValid) else _at_looks(d, rule, bound, alphas)
    too_coarse = step > MARGIN_SHARE * log_margin(margin)
    return replace(
        found,
        low=found.low - step,
        high=found.high + step,
        p_equivalence=np.where(too_coarse, 1.0, found.p_equivalence),
    )


def _always_valid(d: Floats, bound: Floats, alphas: Floats) -> Evidence:
    value = np.asarray(np.mean(d, axis=-1))
    low, high = (np.empty(value.shape) for _ in range(2))
    for alpha in np.unique(alphas):
        those = alphas == alpha
        low[those], high[those] = always_valid_interval(d[those], float(alpha))
    p = always_valid_p(d)
    # Half of the two-sided p is that of one side: the sequence is symmetric.
    above, below = (always_valid_p(d, side) / 2 for side in (-bound, bound))
    inside = (np.abs(value) < bound) & (d.shape[-1] >= FIRST_EQUIVALENT)
    return Evidence(value, low, high, p, p, np.where(inside, np.maximum(above, below), 1.0))


def _at_looks(d: Floats, rule: Looks, bound: Floats, alphas: Floats) -> Evidence:
    n = d.shape[-1]
    averages, cdf = walsh_averages(d), signed_rank_cdf(n)
    value = np.asarray(np.median(averages, axis=-1))
    p_ranks, p_mean = exact_p(averages, cdf), large_effect_p(d, value)
    sides = exact_p_above(averages, -bound, cdf), exact_p_below(averages, bound, cdf)
    p_beyond = np.maximum(np.maximum(*sides), mean_p_beyond(d, bound))
    low, high, p, p_equivalence = (np.empty(d.shape[:-1]) for _ in range(4))
    for looks, those in rule.of(d):
        of_mean, (ranks_have, mean_has) = replace(looks, first=FIRST_DECIDING), looks.shares
        for alpha in np.unique(alphas[those]):
            at = those & (alphas == alpha)
            ends = (
                signed_rank_interval(averages[at], n, nominal_level(looks, ranks_have * float(alpha))),
                large_effect_interval(d[at], value[at], nominal_level(of_mean, mean_has * float(alpha))),
            )
            low[at], high[at] = np.maximum(ends[0][0], ends[1][0]), np.minimum(ends[0][1], ends[1][1])
        p[those] = _smaller(
            sequential_p(p_ranks[those], looks) / ranks_have, sequential_p(p_mean[those], of_mean) / mean_has
        )
        p_equivalence[those] = sequential_p(p_beyond[those], replace(looks, first=FIRST_EQUIVALENT), 1)
    if n < FIRST_EQUIVALENT and not rule.once:
        p_equivalence = np.ones(p.shape)
    # A single look shares alpha out between the two otherwise, by which its p could be the larger one by a little.
    p_now = np.minimum(p, _smaller(p_ranks / RANKS_OF_ONE_LOOK, p_mean / (1 - RANKS_OF_ONE_LOOK)))
    return Evidence(value, low, high, p, p_now, p_equivalence)


def _smaller(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.minimum(1.0, np.minimum(one, other)))


def evidence_of_each(
    each: Sequence[Floats],
    rule: Callable[[int], Rule],
    margin: float,
    units: Sequence[float] = (),
    alphas: Sequence[float] = (),
) -> Evidence:
    """Return the figures of many comparisons, shape (comparisons,), that need not have equally many blocks.

    Those that have are computed at once. ``rule`` says of a number of blocks how often the data were looked at;
    ``units`` are the steps of coarse figures, and ``alphas`` the levels of the intervals, see ``evidence``.
    """
    figures: dict[int, Evidence] = {}  # by place
    steps = np.asarray(units, dtype=np.float64) if units else np.zeros(len(each))
    levels = np.asarray(alphas, dtype=np.float64) if alphas else np.full(len(each), ALPHA)
    for n in {len(d) for d in each}:
        places = [place for place, d in enumerate(each) if len(d) == n]
        stacked = np.stack([each[place] for place in places])
        found = evidence(stacked, rule(n), margin, levels[places], unit=steps[places])
        figures |= {place: found.at(row) for row, place in enumerate(places)}
    return Evidence.of_each([figures[place] for place in range(len(each))])


def relative_effect(d: Floats, rule: Rule, unit: float = 0.0) -> Estimate:
    """Return the relative difference that log ratios of shape (n,) come to, with its interval; unknown of no blocks."""
    if not len(d):
        return Estimate.unknown()
    found = evidence(d, rule, margin=1.0, unit=unit)
    return relative_estimate(float(found.value), float(found.low), float(found.high), len(d))


def relative_estimate(value: float, low: float, high: float, n: int) -> Estimate:
    """Return an estimate of a log ratio as one of a relative difference."""
    return Estimate(relative(value), relative(low) if np.isfinite(low) else low, relative(high), n)


def relations(found: Evidence, margin: float) -> Ints:
    """Return a ``Relation`` for each comparison; those of one study stand on the last axis and share 5 % by Holm.

    A difference needs both its p and its interval. One whose whole interval lies inside the margin is equivalent: real,
    but smaller than anyone cares for. Equivalence needs a bounded interval, or it would stand beside an unknown one.
    """
    bound = log_margin(margin)
    bounded = np.isfinite(found.low) & np.isfinite(found.high)
    different = (holm(found.p) <= ALPHA) & ((found.low > 0) | (found.high < 0))
    equivalent = (holm(found.p_equivalence) <= ALPHA) & bounded
    inside = (found.low > -bound) & (found.high < bound)
    word = np.where(found.value > 0, Relation.HIGHER, Relation.LOWER)
    word = np.where(different & ~(equivalent & inside), word, Relation.UNDECIDED)
    return np.where(equivalent & (~different | inside), Relation.EQUIVALENT, word)


# How much too far out an effect is that was called different: the winner's curse.
#
# Where few studies would find an effect, those that do have met it by chance larger than it is. The factor is that of
# studies like this one, were the true effect the one seen: the mean of what those show that call it different, against
# what is true (Gelman and Carlin 2014, their type M error). If the true effect is smaller, the factor is larger.


NOTABLE = 1.1


@dataclass(frozen=True)
class Exaggeration:
    """Of studies like this one: the share that calls an effect of this size different, and what those show of it."""

    power: float = math.nan
    factor: float = 1.0

    @property
    def notable(self) -> bool:
        """Whether it is large enough to be said."""
        return self.factor >= NOTABLE


NO_EXAGGERATION = Exaggeration()


def exaggeration(d: Floats, value: float, rule: Rule, comparisons: int) -> Exaggeration:
    """Return that of an estimate from log ratios of shape (n,), called different at this look of its rule.

    ``comparisons`` share the error; the standard error is that of the mean.
    """
    n, alpha = len(d), ALPHA / comparisons
    error = float(np.std(d, ddof=1)) / math.sqrt(n)
    if isinstance(rule, AlwaysValid):
        bound = always_valid_multiplier(n, alpha)
    else:
        bound = -float(special.ndtri(nominal_level(rule, alpha) / 2))
    if not (error > 0 and math.isfinite(bound)):
        return NO_EXAGGERATION
    return of_signal(abs(value) / error, bound)


def of_signal(signal: float, bound: float) -> Exaggeration:
    """Return that of an effect of so many standard errors, called different from ``bound`` standard errors on."""
    above, below = float(special.ndtr(signal - bound)), float(special.ndtr(-signal - bound))
    if not (signal > 0 and above > 0):
        return NO_EXAGGERATION
    beyond = signal * (above - below) + _normal(bound - signal) + _normal(bound + signal)
    return Exaggeration(above + below, beyond / (above + below) / signal)


def _normal(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
