"""From paired differences to one of five words, and the reason for it.

How a word is chosen, in this order:

1. *not comparable*: fewer than 2 usable blocks, a treatment that failed again and again and was
   dropped, or one whose client hosts were the limit.
2. *faster* / *slower*: the exact signed-rank p, allowing for the looks and Holm-adjusted over the study's comparisons,
   is <= .05 and the interval excludes 0; which of the two words follows from whether more of the metric is better.
   Except that where the interval also lies wholly inside the margin and the equivalence test holds, the word is
   *equivalent* and the reason says that the difference is real but smaller than the margin.
3. *equivalent*: both one-sided tests against the margin hold at 5 %, for the usual block and for the mean, allowing
   for the looks and Holm-adjusted, and the interval is known.
4. *undecided*: anything else; also where the word would be another one without carry-over, or had attempts that one
   treatment spoiled come out at their worst (see ``doubts``).

Two families, each corrected by Holm on its own: the differences (guarding against a wrong *faster* or *slower* anywhere
in the study) and the equivalences (guarding against a wrong *equivalent*). Either mistake happens in at most 5 % of
studies. They are kept apart because they answer different questions: of any one comparison at most one of the two null
hypotheses, "no difference" and "at least the margin", can be true.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dbdyno.analysis.looks.alpha_spending import Looks, nominal_level
from dbdyno.analysis.looks.min_blocks import blocks_needed
from dbdyno.analysis.statistics import mean
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import log_margin, relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.statistics.sample_size import blocks_to_resolve
from dbdyno.analysis.statistics.signed_rank import coverage
from dbdyno.analysis.verdict.doubts import Doubt, cause_to_withhold
from dbdyno.analysis.verdict.evidence import (
    AlwaysValid,
    Relation,
    Rule,
    best_p,
    evidence_of_each,
    relations,
    relative_effect,
    relative_estimate,
)
from dbdyno.analysis.verdict.exaggeration import NO_EXAGGERATION, Exaggeration, exaggeration
from dbdyno.analysis.verdict.reasons import (
    CarryOver,
    Cause,
    Next,
    Obstacle,
    Reason,
    TooFew,
    TwoTreatments,
    reason_of,
)
from dbdyno.analysis.verdict.resolution import FINE_ENOUGH, Resolution
from dbdyno.analysis.verdict.totals import UNKNOWN, Totals, far_off, totals
from dbdyno.model.design import ALPHA, MIN_BLOCKS, Comparison, Design
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word

MIN_USABLE_BLOCKS = 2
MORE_BLOCKS_MAX = 40
MANY_BLOCKS = 1000  # no study has more


@dataclass(frozen=True)
class Finding(TwoTreatments):
    """A comparison, what was estimated, and the word drawn from it. Differences are relative: .03 for +3 %."""

    metric: str
    effect: Estimate
    verdict: Word
    blocks: int
    reason: Reason | Obstacle
    by_block: tuple[tuple[int, float], ...]  # (block, relative difference)
    p: float = math.nan  # exact signed-rank, as if this were the only look and the only comparison
    p_adjusted: float = math.nan  # allowing for the looks, Holm over the study's differences
    coverage: float = math.nan  # of the interval at this look alone: .95 of a fixed design, more after others
    p_equivalence: float = math.nan  # two one-sided tests, allowing for the looks, Holm over the study's equivalences
    blocks_needed: int | None = None  # in all, about, to resolve the margin; None where that can't be said
    lost: bool = False  # no further block can change it: a treatment was dropped, or has a 0
    exaggeration: Exaggeration = NO_EXAGGERATION  # of one that was called different
    totals: Totals = UNKNOWN
    resolution: Resolution = FINE_ENOUGH
    carry_over: CarryOver | None = None  # None: it can't be estimated
    as_measured: Estimate | None = None  # the effect with the carry-over in it, where that was taken out
    disturbed: int = 0  # blocks in which others used the host too much beside a trial of it

    @property
    def withheld_for(self) -> Cause | None:
        """Why a word that the ratios measured would give is not given."""
        return self.reason.withheld_for if isinstance(self.reason, Reason) else None

    @property
    def mostly_disturbed(self) -> bool:
        """Whether the spread seen is as much that of others as the treatments' own: in half of the blocks or more."""
        return mostly(self.disturbed, self.blocks)


def mostly(disturbed: int, blocks: int) -> bool:
    """Return whether so many disturbed blocks are half of all or more: from their spread nothing can be planned."""
    return 0 < blocks <= 2 * disturbed


@dataclass(frozen=True)
class Paired(TwoTreatments):
    """A planned comparison and its log ratios by block; ``obstacle`` says why it cannot be judged, if so.

    ``instead`` are the log ratios to judge by where those measured are known to mislead, by block in the same order;
    ``doubts`` are those for which a word must hold as well.
    """

    log_ratios: dict[int, float]
    obstacle: Obstacle | None = None
    figures: dict[int, tuple[float, float]] = field(default_factory=dict)  # of level and baseline, where there are two
    resolution: Resolution = FINE_ENOUGH
    instead: Floats | None = None
    doubts: tuple[Doubt, ...] = ()
    carry_over: CarryOver | None = None
    disturbed: int = 0  # blocks with a trial beside which others used the host too much

    @classmethod
    def of(
        cls, design: Design, pair: Comparison, log_ratios: dict[int, float], obstacle: Obstacle | None = None
    ) -> "Paired":
        """Return two treatments of a design, compared by what is no metric of a trial."""
        labels = design.labels
        ends = labels[pair.baseline], labels[pair.level], pair.baseline, pair.level
        return cls(*ends, log_ratios, obstacle)

    @property
    def d(self) -> Floats:
        """The log ratios to judge by, shape (blocks,)."""
        return self.measured if self.instead is None else self.instead

    @property
    def measured(self) -> Floats:
        """The log ratios measured, shape (blocks,)."""
        return np.fromiter(self.log_ratios.values(), dtype=np.float64, count=len(self.log_ratios))


def judge(
    pairs: list[Paired], metric: Metric, margin: float, rule: Callable[[int], Rule] = Looks.single
) -> list[Finding]:
    """Return one verdict per planned comparison, in the order given; all of them are one family.

    ``rule`` says, of a number of usable blocks, how often the data were looked at; without it, once.
    """
    obstacles = [_obstacle(pair) for pair in pairs]
    tested = [pair for pair, obstacle in zip(pairs, obstacles, strict=True) if obstacle is None]
    judged = iter(_judged(tested, metric, margin, rule))
    return [
        next(judged) if obstacle is None else _without_figures(pair, metric, obstacle)
        for pair, obstacle in zip(pairs, obstacles, strict=True)
    ]


def _obstacle(pair: Paired) -> Obstacle | None:
    if pair.obstacle is None and len(pair.log_ratios) < MIN_USABLE_BLOCKS:
        return TooFew(len(pair.log_ratios), MIN_USABLE_BLOCKS)
    return pair.obstacle


def _without_figures(pair: Paired, metric: Metric, reason: Reason | Obstacle) -> Finding:
    """Return the verdict on a comparison as far as it needs no test."""
    return Finding(
        metric=metric.name,
        baseline=pair.baseline,
        level=pair.level,
        baseline_id=pair.baseline_id,
        level_id=pair.level_id,
        effect=Estimate.unknown(len(pair.log_ratios)),
        verdict=_word(reason),
        blocks=len(pair.log_ratios),
        reason=reason,
        by_block=tuple((block, relative(d)) for block, d in sorted(pair.log_ratios.items())),
        lost=pair.obstacle is not None,
        resolution=pair.resolution,
        carry_over=pair.carry_over,
        disturbed=pair.disturbed,
    )


def _judged(pairs: list[Paired], metric: Metric, margin: float, rule: Callable[[int], Rule]) -> Iterator[Finding]:
    """Yield the verdict on each comparison of a family."""
    if not pairs:
        return
    rules = [_as_seen(rule(len(pair.d)), pair) for pair in pairs]
    family = evidence_of_each([pair.d for pair in pairs], rule, margin, [pair.resolution.log_width for pair in pairs])
    best = [best_p(len(pair.d), one) for pair, one in zip(pairs, rules, strict=True)]
    p_adjusted, p_equivalence = holm(family.p), holm(family.p_equivalence)
    words = relations(family, margin)
    for i, pair in enumerate(pairs):
        d, relation, unit, now = pair.d, Relation(words[i]), pair.resolution.log_width, rules[i]
        value, n = float(family.value[i]), len(d)
        effect = relative_estimate(value, float(family.low[i]), float(family.high[i]), n)
        found = reason_of(
            *(relation, effect, d, metric),
            p_mean=float(mean.p_beyond(d, log_margin(margin))),
            margin=margin,
            sizes=(n,),
            family=len(pairs),
            p_adjusted=float(p_adjusted[i]),
            p_equivalence=float(p_equivalence[i]),
            p_best=float(holm([*family.p[:i], best[i], *family.p[i + 1 :]])[i]),
            far_off=int(far_off(d).sum()),
            resolution=pair.resolution,
        )
        needed = _needed(pair, margin, len(pairs))
        different = relation in {Relation.HIGHER, Relation.LOWER}
        reason = replace(
            found,
            exaggeration=exaggeration(d, value, now, len(pairs)) if different else NO_EXAGGERATION,
            disturbed=pair.disturbed,
            needed=needed or 0,
            fewest=(_fewest(n, len(pairs), rule) or 0) if best[i] * len(pairs) > ALPHA else 0,
            next=_next(pair, needed or 0),
            withheld_for=cause_to_withhold(family, i, pair.doubts, now, margin, unit),
        )
        yield replace(
            _without_figures(pair, metric, reason),
            effect=effect,
            p=float(family.p_now[i]),
            p_adjusted=reason.p_adjusted,
            p_equivalence=reason.p_equivalence,
            coverage=_coverage(n, now),
            blocks_needed=needed,
            exaggeration=reason.exaggeration,
            totals=totals(pair.figures, math.log1p(effect.value), margin, more_is_better=metric.more_is_better),
            as_measured=None if pair.instead is None else relative_effect(pair.measured, now, unit),
        )


def _as_seen(rule: Rule, pair: Paired) -> Rule:
    return rule.of(pair.d)[0][0] if isinstance(rule, Looks) else rule


def _needed(pair: Paired, margin: float, comparisons: int) -> int | None:
    """Return about how many blocks resolve the margin, where these suffice: enough of them, and most of them quiet."""
    if len(pair.d) < MIN_BLOCKS or mostly(pair.disturbed, len(pair.d)):
        return None
    return blocks_to_resolve(pair.d, margin, comparisons)


def _fewest(n: int, comparisons: int, rule: Callable[[int], Rule]) -> int | None:
    """Return with how many blocks, ``n`` or more, the smallest p there can be passes Holm over the comparisons."""
    start = max(n, blocks_needed(comparisons))
    more = range(start, start + MORE_BLOCKS_MAX)
    return next((blocks for blocks in more if best_p(blocks, rule(blocks)) * comparisons <= ALPHA), None)


def _next(pair: Paired, needed: int) -> Next:
    """Return what it would take to decide: a quiet host, more blocks, or nothing that can be planned."""
    n = len(pair.d)
    if mostly(pair.disturbed, n):
        return Next.END_INTERFERENCE
    if needed - n > MANY_BLOCKS:
        return Next.LESS_NOISE
    return Next.MORE_BLOCKS if needed > n else Next.TOO_CLOSE


def _coverage(n: int, rule: Rule) -> float:
    return 1 - ALPHA if isinstance(rule, AlwaysValid) else coverage(n, nominal_level(rule, ALPHA))


def _word(reason: Reason | Obstacle) -> Word:
    if not isinstance(reason, Reason):
        return Word.NOT_COMPARABLE
    return Word.UNDECIDED if reason.withheld_for else reason.word
