"""What a comparison's differences say, however often they were looked at: estimate, interval, p, equivalence, word.

Everything works on arrays: ``d`` has shape (..., n), log ratios with one value per block on the last axis; results have
shape (...). Where several comparisons belong to one study they stand on the last axis of the results.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.blocks import UsableBlocks
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
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import (
    Estimate,
    Floats,
    Ints,
    exact_p,
    exact_p_above,
    exact_p_below,
    holm,
    log_margin,
    mean_p_beyond,
    relative,
    signed_rank_cdf,
    signed_rank_interval,
    walsh_averages,
)
from dbdyno.model.design import ALPHA
from dbdyno.model.metrics import FigureStep, step_stated, value_of

# How coarse a metric's figures are: whole milliseconds, counts, ticks of a clock, buckets of a histogram.
#
# A figure in whole units lies up to half a unit from what was measured, in all trials alike: repeating does
# not help. So an interval becomes one unit wider at either end, and where the unit is a large part of the margin
# nothing can be called equivalent. A percentile from buckets that are each a part w of their value wide is as coarse as
# w in the logarithm, whatever the value: no common step is seen in such figures, so their source states it
# (``model.metrics.steps_of``). Of what is stated and what is found in the figures the coarser holds.


FINE = 0.001  # of the figures: a smaller step changes nothing that is printed
SAME_MIN, DISTINCT_MIN = 6, 5  # figures that are all the same; different ones, of which a common factor is no chance
MARGIN_SHARE = 0.5  # of the margin, that the unit may be where two are called equivalent
NOTABLE_OF_MARGIN = 0.1  # of the margin
_ROUNDING = 1e-9
_DECIMALS = 9
RATES = ("iops", "_per_second")  # how names of rates end
EXACT = frozenset({"achieved_ratio"})  # 1 where the rate was kept; no program's rounding


@dataclass(frozen=True)
class Resolution:
    """The step between one figure and the next, in the metric's unit or that of the time it was made from.

    Where the figures are buckets as wide as a part of their value, the step is that part, and ``relative``.
    """

    step: float = 0.0
    unit: str = ""
    log_width: float = 0.0  # of the step, as a part of the figures compared
    relative: bool = False

    @property
    def coarse(self) -> bool:
        """Whether the figures have a step that is worth allowing for."""
        return self.log_width > 0

    def too_coarse(self, margin: float) -> bool:
        """Whether the step is too large a part of the margin to call anything equivalent."""
        return self.log_width > MARGIN_SHARE * log_margin(margin)

    def notable(self, margin: float) -> bool:
        """Whether the step is large enough beside the margin to be said."""
        return self.log_width >= NOTABLE_OF_MARGIN * log_margin(margin)


FINE_ENOUGH = Resolution()


def step_of(values: Iterable[float]) -> float:
    """Return the largest step of which all values are multiples; 0 where there is none worth speaking of.

    Whole numbers have a step of 1, or what they have in common where there are enough of them; values with decimals
    that of the last.
    """
    positive = [value for value in values if math.isfinite(value) and value > 0]
    distinct = set(positive)
    if not positive or (len(distinct) == 1 and len(positive) < SAME_MIN):
        return 0.0
    finest = FINE * float(np.median(positive))
    for decimals in range(_DECIMALS):
        if 10.0**-decimals < finest:
            break
        scaled = [value * 10**decimals for value in distinct]
        whole = [round(value) for value in scaled]
        if all(abs(a - b) <= _ROUNDING * max(1.0, a) for a, b in zip(scaled, whole, strict=True)):
            common = math.gcd(*whole) if len(distinct) >= DISTINCT_MIN else 1
            return common * 10.0**-decimals
    return 0.0


def resolutions(blocks: UsableBlocks, metric: str, unit: str = "") -> dict[str, Resolution]:
    """Return by treatment how coarse its figures are: by their own step, or by that of the seconds they are made from.

    ``log_width`` is half a step's: two treatments that are compared have one whole step between them.
    """
    values_by_treatment = _by_treatment(blocks, metric)
    step = 0.0 if metric in EXACT else step_of(value for values in values_by_treatment.values() for value in values)
    seconds = _by_treatment(blocks, "seconds_real") if metric.endswith(RATES) else {}
    of_time = _step_of_time(seconds)
    by_treatment = {}
    for treatment, values in values_by_treatment.items():
        stated, stated_of_time = (_coarsest_stated(blocks, treatment, name) for name in (metric, "seconds_real"))
        by_value = resolution_of(values, FigureStep(max(step, stated.absolute), stated.relative), unit)
        time = FigureStep(max(of_time, stated_of_time.absolute), stated_of_time.relative)
        by_time = resolution_of(seconds.get(treatment, []), time, "s")
        by_treatment[treatment] = max(by_value, by_time, key=lambda resolution: resolution.log_width)
    return by_treatment


def resolution_of(values: Sequence[float], step: FigureStep, unit: str = "") -> Resolution:
    """Return how coarse one treatment's figures are: a bucket's value that was rounded as well is off by both."""
    if not len(values):
        return FINE_ENOUGH
    rounding, bucket = half_width(step.absolute, values), step.relative / 2
    if bucket > rounding:
        return Resolution(step.relative, unit, bucket + rounding, relative=True)
    return Resolution(step.absolute, unit, rounding + bucket)


def _coarsest_stated(blocks: UsableBlocks, treatment: str, metric: str) -> FigureStep:
    """Return the coarsest of what the sources of a treatment's figures state; nothing where none does."""
    stated = [step_stated(trial.load, metric) for trial in blocks.of(treatment)]
    return FigureStep(
        max((step.absolute for step in stated), default=0.0), max((s.relative for s in stated), default=0.0)
    )


def combined(weighted: Iterable[tuple[float, Resolution]]) -> Resolution:
    """Return the resolution of a weighted sum of logarithms, of each term's weight and resolution."""
    terms = [(abs(weight), resolution) for weight, resolution in weighted if resolution.coarse]
    if not terms:
        return FINE_ENOUGH
    coarsest = max((resolution for _, resolution in terms), key=lambda resolution: resolution.log_width)
    width = math.fsum(weight * resolution.log_width for weight, resolution in terms)
    return replace(coarsest, log_width=width) if width >= FINE else FINE_ENOUGH


def _by_treatment(blocks: UsableBlocks, metric: str) -> dict[str, list[float]]:
    values_by_treatment: dict[str, list[float]] = {}
    for row in blocks.trials.values():
        for treatment, trial in row.items():
            value = value_of(trial.metrics, metric)
            if value > 0:
                values_by_treatment.setdefault(treatment, []).append(value)
    return values_by_treatment


def _step_of_time(seconds: Mapping[str, list[float]]) -> float:
    """Return the step of the time that rates are made from; time that never varies was set, not measured."""
    every = [value for values in seconds.values() for value in values]
    return step_of(every) if len(set(every)) > 1 else 0.0


def half_width(step: float, values: Sequence[float]) -> float:
    """Return half a step as a part of the usual value, as a log ratio."""
    return step / 2 / float(np.median(values)) if step and len(values) else 0.0


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
    def of_each(cls, comparisons: Sequence["Evidence"]) -> "Evidence":
        """Return the figures of many comparisons, those of each being numbers, as one; shape (comparisons,)."""
        return cls(
            *(np.array([getattr(comparison, field.name) for comparison in comparisons]) for field in fields(cls))
        )

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
    figures = _always_valid(d, bound, alphas) if isinstance(rule, AlwaysValid) else _at_looks(d, rule, bound, alphas)
    too_coarse = step > MARGIN_SHARE * log_margin(margin)
    return replace(
        figures,
        low=figures.low - step,
        high=figures.high + step,
        p_equivalence=np.where(too_coarse, 1.0, figures.p_equivalence),
    )


def _always_valid(d: Floats, bound: Floats, alphas: Floats) -> Evidence:
    value = np.asarray(np.mean(d, axis=-1))
    low, high = (np.empty(value.shape) for _ in range(2))
    for alpha in np.unique(alphas):
        at_level = alphas == alpha
        low[at_level], high[at_level] = always_valid_interval(d[at_level], float(alpha))
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
    for looks, rows in rule.of(d):
        of_mean, (ranks_have, mean_has) = replace(looks, first=FIRST_DECIDING), looks.shares
        for alpha in np.unique(alphas[rows]):
            at = rows & (alphas == alpha)
            ends = (
                signed_rank_interval(averages[at], n, nominal_level(looks, ranks_have * float(alpha))),
                large_effect_interval(d[at], value[at], nominal_level(of_mean, mean_has * float(alpha))),
            )
            low[at], high[at] = np.maximum(ends[0][0], ends[1][0]), np.minimum(ends[0][1], ends[1][1])
        p[rows] = _smaller(
            sequential_p(p_ranks[rows], looks) / ranks_have, sequential_p(p_mean[rows], of_mean) / mean_has
        )
        p_equivalence[rows] = sequential_p(p_beyond[rows], replace(looks, first=FIRST_EQUIVALENT), 1)
    if n < FIRST_EQUIVALENT and not rule.once:
        p_equivalence = np.ones(p.shape)
    # A single look shares alpha out between the two otherwise, by which its p could be the larger one by a little.
    p_now = np.minimum(p, _smaller(p_ranks / RANKS_OF_ONE_LOOK, p_mean / (1 - RANKS_OF_ONE_LOOK)))
    return Evidence(value, low, high, p, p_now, p_equivalence)


def _smaller(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.minimum(1.0, np.minimum(first, second)))


def evidence_of_each(
    ratios: Sequence[Floats],
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
    steps = np.asarray(units, dtype=np.float64) if units else np.zeros(len(ratios))
    levels = np.asarray(alphas, dtype=np.float64) if alphas else np.full(len(ratios), ALPHA)
    for n in {len(d) for d in ratios}:
        places = [place for place, d in enumerate(ratios) if len(d) == n]
        stacked = np.stack([ratios[place] for place in places])
        of_size = evidence(stacked, rule(n), margin, levels[places], unit=steps[places])
        figures |= {place: of_size.at(row) for row, place in enumerate(places)}
    return Evidence.of_each([figures[place] for place in range(len(ratios))])


def relative_effect(d: Floats, rule: Rule) -> Estimate:
    """Return the relative difference that log ratios of shape (n,) come to, with its interval; unknown of no blocks."""
    if not len(d):
        return Estimate.unknown()
    figures = evidence(d, rule, margin=1.0)
    return relative_estimate(float(figures.value), float(figures.low), float(figures.high), len(d))


def relative_estimate(value: float, low: float, high: float, n: int) -> Estimate:
    """Return an estimate of a log ratio as one of a relative difference."""
    return Estimate(relative(value), relative(low) if np.isfinite(low) else low, relative(high), n)


def relations(figures: Evidence, margin: float) -> Ints:
    """Return a ``Relation`` for each comparison; those of one study stand on the last axis and share 5 % by Holm.

    A difference needs both its p and its interval. One whose whole interval lies inside the margin is equivalent: real,
    but smaller than anyone cares for. Equivalence needs a bounded interval, or it would stand beside an unknown one.
    """
    bound = log_margin(margin)
    bounded = np.isfinite(figures.low) & np.isfinite(figures.high)
    different = (holm(figures.p) <= ALPHA) & ((figures.low > 0) | (figures.high < 0))
    equivalent = (holm(figures.p_equivalence) <= ALPHA) & bounded
    inside = (figures.low > -bound) & (figures.high < bound)
    word = np.where(figures.value > 0, Relation.HIGHER, Relation.LOWER)
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
