"""What is concluded of one comparison: the word, the effect, the interval it is drawn from, and what is missing.

Whatever speaks of a comparison reads its ``Finding``: tables, factors, letters, advice, headline, lists, exit codes.
How a word is chosen, in this order:

1. *not comparable*: fewer than 2 usable blocks, a treatment that failed again and again and was
   dropped, or one whose client hosts were the limit.
2. *faster* / *slower*: the p of no difference, allowing for the looks and Holm-adjusted over the study's comparisons,
   is <= .05 and the interval excludes 0; which of the two words follows from whether more of the metric is better.
   Except that where the interval also lies wholly inside the margin and the equivalence test holds, the word is
   *equivalent* and the reason says that the difference is real but smaller than the margin.
3. *equivalent*: both one-sided tests against the margin hold at 5 %, for the usual block and for the mean, allowing
   for the looks and Holm-adjusted, and the interval is known.
4. *undecided*: anything else.

A word must hold for the log ratios as measured and for each *alternative*: without carry-over, with the attempts that
one treatment spoiled at their worst. So of the p the largest counts, and the interval shown spans those of all. It is
the interval at the level at which Holm's procedure tests the comparison: it excludes 0 just where a difference may be
claimed, and no reader sees one far from 0 beside "undecided".

Two families, each corrected by Holm on its own: the differences (guarding against a wrong *faster* or *slower* anywhere
in the study) and the equivalences (guarding against a wrong *equivalent*). Either mistake happens in at most 5 % of
studies. They are kept apart because they answer different questions: of any one comparison at most one of the two null
hypotheses, "no difference" and "at least the margin", can be true.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from dbdyno.analysis import statistics as mean
from dbdyno.analysis.lateness import EmulatedCpu, LateDisk
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.planned_looks import smallest_p
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import (
    Bools,
    Estimate,
    Floats,
    blocks_to_resolve,
    holm,
    holm_levels,
    log_margin,
    relative,
    robust_sd,
)
from dbdyno.analysis.verdict.evidence import (
    FINE_ENOUGH,
    NO_EXAGGERATION,
    AlwaysValid,
    Evidence,
    Exaggeration,
    Relation,
    Resolution,
    Rule,
    evidence,
    evidence_of_each,
    exaggeration,
    relations,
    relative_estimate,
)
from dbdyno.analysis.verdict.reasons import (
    CarryOver,
    Cause,
    Code,
    Dropped,
    EventsTogether,
    InNameOnly,
    Lack,
    LimitedClients,
    NextStep,
    Obstacle,
    PairSafety,
    Reason,
    Secondary,
    TooFew,
    Trust,
    TwoTreatments,
    UnequalFailures,
    ZeroFigures,
    reason_of,
    word_of,
)
from dbdyno.model.design import ALPHA, MIN_BLOCKS, Comparison, Design
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word

# How long the same work takes in all: the ratio of totals, beside the usual block's.
#
# A treatment that stalls in one block of twenty for ten times as long is in the usual block as fast as any other. Who
# waits for the work waits for all of it. Of a rate the total is the time for equal work in every block, so that the
# ratio is that of harmonic means; of a latency, a time or a cost it is the sum.


FAR = 4.0  # standard deviations, as the middle half of the blocks gives them: farther off is no noise


@dataclass(frozen=True)
class Totals:
    """The level's total against the baseline's: .45 for 45 % more time, or more of a metric of which less is better."""

    effect: Estimate  # with a t interval, which knows only of stalls that were seen
    apart: bool  # from the usual block, by more than half the margin and more than noise
    far_off: int  # blocks
    of_time: bool  # whether it is time for the same work; else the sum of the metric

    def contradict(self, word: Word, margin: float) -> bool:
        """Return whether the totals say otherwise than a word on the usual block, as a few stalls make it."""
        if not self.apart or word.is_open:
            return False
        cost = self.effect.value  # of the level: more is worse
        if word is Word.EQUIVALENT:
            return not relative(-log_margin(margin)) <= cost <= margin
        return cost >= 0 if word is Word.FASTER else cost <= 0


UNKNOWN = Totals(Estimate.unknown(), apart=False, far_off=0, of_time=False)


def totals(figures: Mapping[int, tuple[float, float]], usual: float, margin: float, *, more_is_better: bool) -> Totals:
    """Return the totals of blocks whose figures are (level, baseline), all positive; ``usual`` is the log ratio shown.

    The standard error is that of the ratio of two means (linearised), blocks being independent.
    """
    n = len(figures)
    if n < 2:  # noqa: PLR2004
        return UNKNOWN
    logs = np.log(np.asarray(list(figures.values())).T) * (-1 if more_is_better else 1)
    d = logs[0] - logs[1]
    largest = logs.max(axis=1)
    level, baseline = np.exp(logs - largest[:, None])  # each divided by its largest, so that nothing overflows
    value = float(largest[0] - largest[1] + np.log(level.mean() / baseline.mean()))
    error = float(np.std(level / level.mean() - baseline / baseline.mean(), ddof=1)) / math.sqrt(n)
    half = float(special.stdtrit(n - 1, 1 - ALPHA / 2)) * error if n >= MIN_BLOCKS else math.inf
    usual_cost = -usual if more_is_better else usual
    low = relative(value - half) if math.isfinite(half) else -math.inf
    return Totals(
        effect=Estimate(relative(value), low, relative(value + half), n),
        apart=abs(value - usual_cost) > max(log_margin(margin) / 2, robust_sd(d) / math.sqrt(n)),
        far_off=int(np.sum(far_off(d))),
        of_time=more_is_better,
    )


def far_off(d: Floats) -> Bools:
    """Return which log ratios, shape (n,), are so far from the middle one as no noise like that of the others is."""
    return np.asarray(np.abs(d - np.median(d)) > np.maximum(FAR * robust_sd(d), 1e-9))


def excluded_share(n: int) -> float:
    """Return how frequent stalls ``n`` blocks without one exclude, with 95 %: the rule of three, 3 of n."""
    return 3 / n


MIN_USABLE_BLOCKS = 2
MANY_BLOCKS = 1000  # no study has more


@dataclass(frozen=True)
class Finding(TwoTreatments):
    """All that is concluded of a comparison. Differences are relative: .03 for +3 %."""

    metric: str
    effect: Estimate  # with the interval that the word is drawn from
    verdict: Word
    blocks: int
    reason: Reason | Obstacle
    by_block: tuple[tuple[int, float], ...]  # (block, relative difference)
    p: float = math.nan  # of no difference, as if this were the only look and the only comparison
    p_alone: float = math.nan  # allowing for the looks, as if this were the only comparison
    p_adjusted: float = math.nan  # allowing for the looks, Holm over the study's differences
    p_equivalence: float = math.nan  # two one-sided tests, allowing for the looks, Holm over the study's equivalences
    blocks_needed: int | None = None  # in all, about, to resolve the margin; None where that can't be said
    lost: bool = False  # no further block can change it: a treatment was dropped, or has a 0
    lack: NextStep | None = None  # what it takes to decide; None where it is decided
    exaggeration: Exaggeration = NO_EXAGGERATION  # of one that was called different
    totals: Totals = UNKNOWN
    resolution: Resolution = FINE_ENOUGH
    carry_over: CarryOver | None = None  # None: it can't be estimated
    as_measured: Estimate | None = None  # the effect with the carry-over in it, where that was taken out
    disturbed: int = 0  # blocks in which others used the host too much beside a trial of it
    safety: PairSafety | None = None  # how durable both are by their settings; None: no server, or not of treatments
    secondary: tuple[Secondary, ...] = ()  # other metrics of the same two

    @property
    def withheld_for(self) -> Cause | None:
        """Why a word that the ratios measured would give is not given."""
        return self.reason.withheld_for if isinstance(self.reason, Reason) else None

    @property
    def doubted_for(self) -> Cause | None:
        """What keeps it from the word of the ratios measured, or may keep it from any that more blocks would give."""
        return self.reason.doubted_for if isinstance(self.reason, Reason) else None

    @property
    def mostly_disturbed(self) -> bool:
        """Whether the spread seen is as much that of others as the treatments' own: in half of the blocks or more."""
        return mostly(self.disturbed, self.blocks)

    @property
    def totals_disagree(self) -> bool:
        """Whether the sum over all blocks says otherwise than the word, as a few stalls make it."""
        return self.totals.contradict(self.verdict, self.reason.margin if isinstance(self.reason, Reason) else 0.0)

    @property
    def trust(self) -> tuple[Trust, ...]:
        """What speaks against taking the word as it stands; nothing where it can be."""
        holds = {
            Trust.INTERFERENCE: self.mostly_disturbed,
            Trust.TOTALS: self.totals_disagree,
            Trust.CARRY_OVER: self.carry_over is not None and self.carry_over.seen,
            Trust.EXAGGERATED: self.exaggeration.notable,
            Trust.OTHER_METRICS: bool(self.at_odds),
            Trust.WITHHELD: self.withheld_for is not None,
        }
        return tuple(doubt for doubt, is_so in holds.items() if is_so)

    @property
    def at_odds(self) -> tuple[Secondary, ...]:
        """Other metrics that differ beyond the margin, where the study's own does not."""
        margin = self.reason.margin if isinstance(self.reason, Reason) else 0.0
        return tuple(
            secondary
            for secondary in self.secondary
            if self.verdict is Word.EQUIVALENT and secondary.is_at_odds(margin)
        )

    @property
    def winner(self) -> str | None:
        """The id of the faster of the two; None where no difference is claimed."""
        if not self.verdict.is_different:
            return None
        return self.level_id if self.verdict is Word.FASTER else self.baseline_id


def reverse(finding: Finding) -> Finding:
    """Return what the same finding says of the baseline against the level."""
    reason, safety = finding.reason, finding.safety
    return replace(
        finding,
        baseline=finding.level,
        level=finding.baseline,
        baseline_id=finding.level_id,
        level_id=finding.baseline_id,
        effect=finding.effect.inverse(),
        verdict=finding.verdict.opposite,
        reason=reason.reverse() if isinstance(reason, Reason) else reason,
        by_block=tuple((block, 1 / (1 + ratio) - 1) for block, ratio in finding.by_block),
        totals=replace(finding.totals, effect=finding.totals.effect.inverse()),
        carry_over=finding.carry_over.reverse() if finding.carry_over else None,
        as_measured=finding.as_measured.inverse() if finding.as_measured else None,
        safety=PairSafety(level=safety.baseline, baseline=safety.level) if safety else None,
        secondary=tuple(secondary.reverse() for secondary in finding.secondary),
    )


def either_way(findings: Iterable[Finding]) -> dict[tuple[str, str], Finding]:
    """Return the findings by the ids of level and baseline, each also as what it says the other way round."""
    as_found = {(finding.level_id, finding.baseline_id): finding for finding in findings}
    return {(baseline, level): reverse(finding) for (level, baseline), finding in as_found.items()} | as_found


_P_OF_DIFFERENCE = ("p", "p_alone", "p_adjusted")


def adopt_common_word(mean: Finding, parts: Sequence[Finding]) -> Finding:
    """Return the finding on a mean of comparisons, with the word that all of them have if that is a difference.

    If the intervals of all parts hold, so does their mean: what differs in every part differs on average. The interval
    is no wider than the mean of theirs, and no p larger than the largest of theirs.
    """
    words = {part.verdict for part in parts}
    if len(words) != 1 or not parts[0].verdict.is_different or mean.verdict == parts[0].verdict:
        return mean
    if not isinstance(mean.reason, Reason) or not all(part.effect.bounded for part in parts):
        return mean
    low = math.expm1(math.fsum(math.log1p(part.effect.low) for part in parts) / len(parts))
    high = math.expm1(math.fsum(math.log1p(part.effect.high) for part in parts) / len(parts))
    ends = max(mean.effect.low, low), min(mean.effect.high, high)
    low, high = ends if ends[0] <= ends[1] else (low, high)
    word = parts[0].verdict
    p = {name: min(getattr(mean, name), max(getattr(part, name) for part in parts)) for name in _P_OF_DIFFERENCE}
    return replace(
        mean,
        effect=replace(mean.effect, low=low, high=high),
        verdict=word,
        reason=replace(
            mean.reason,
            code=Code.EVERY_PART,
            word=word,
            lack=None,
            withheld_for=None,
            hidden_by=None,
            p_adjusted=p["p_adjusted"],
            excludes_zero=True,
        ),
        lack=None,
        **p,
    )


def doubt_as_parts(whole: Finding, parts: Sequence[tuple[float, Finding]]) -> Finding:
    """Return the finding on a weighted sum of comparisons, in doubt where each of these is.

    ``parts`` are weights above 0 and findings. A sum scatters less than its parts, so it may get a word that none of
    them has. But what may account for every part may account for their sum: then neither a word is given, nor a number
    of blocks that would bring one. The interval and p are no surer than those of the parts.

    What a sum may owe to any other cause is asked of the sum itself as well. Not so what all events together say of a
    percentile, as events of several treatments have no percentile together: there one part in doubt is enough.
    """
    causes = [part.doubted_for for _, part in parts if part.verdict is Word.UNDECIDED]
    stalls = [cause for cause in causes if isinstance(cause, EventsTogether)]
    cause = hardest_cause(stalls or causes)
    if cause is None or (not stalls and (len(causes) < len(parts) or None in causes)):
        return whole
    if not isinstance(whole.reason, Reason) or whole.doubted_for:
        return whole
    lack, given = NextStep(_LACK_OF_CAUSE[type(cause)]), not whole.verdict.is_open
    ends = (
        math.fsum(weight * math.log1p(getattr(part.effect, end)) for weight, part in parts)
        if all(part.effect.bounded for _, part in parts)
        else sign * math.inf
        for end, sign in (("low", -1.0), ("high", 1.0))
    )
    low, high = (relative(end) if math.isfinite(end) else end for end in ends)
    p = {
        name: max(getattr(finding, name) for finding in (whole, *(part for _, part in parts)))
        for name in (*_P_OF_DIFFERENCE, "p_equivalence")
    }
    reason = replace(
        whole.reason,
        word=Word.UNDECIDED,
        withheld_for=cause if given else None,
        withheld=whole.verdict if given else Word.UNDECIDED,
        hidden_by=None if given else cause,
        lack=lack,
        p_adjusted=p["p_adjusted"],
        p_equivalence=p["p_equivalence"],
        exaggeration=NO_EXAGGERATION,
    )
    return replace(
        whole,
        effect=replace(whole.effect, low=min(whole.effect.low, low), high=max(whole.effect.high, high)),
        verdict=Word.UNDECIDED,
        reason=reason,
        lack=lack,
        blocks_needed=None,
        exaggeration=NO_EXAGGERATION,
        **p,
    )


def hardest_cause(causes: Iterable[Cause | None]) -> Cause | None:
    """Return the cause whose remedy comes first in the order of ``Lack``; None where there is none."""
    order = list(Lack)
    known = (cause for cause in causes if cause is not None)
    return min(known, key=lambda cause: order.index(_LACK_OF_CAUSE[type(cause)]), default=None)


def mostly(disturbed: int, blocks: int) -> bool:
    """Return whether so many disturbed blocks are half of all or more: from their spread nothing can be planned."""
    return 0 < blocks <= 2 * disturbed


class Alternative(Protocol):
    """Another reading of what was measured, for which a word must hold as well."""

    @property
    def cause(self) -> Cause:
        """What may have made the word that the measured ratios give."""

    def evidence(self, rule: Rule, margin: float, alpha: float, unit: float) -> Evidence:
        """Return its figures, each of shape (), as ``evidence`` does of the ratios measured."""


@dataclass(frozen=True)
class OtherRatios:
    """Log ratios as they might have been, of the blocks measured in order and then of any that may be missing."""

    d: Floats  # shape (any number of blocks,)
    cause: Cause

    def evidence(self, rule: Rule, margin: float, alpha: float, unit: float) -> Evidence:
        """``rule`` is that of the blocks measured: what is added to them has not been looked at more often."""
        return evidence(self.d, rule, margin, alpha, unit=unit)


@dataclass(frozen=True)
class Paired(TwoTreatments):
    """A comparison and its log ratios by block; ``obstacle`` says why it cannot be judged, if so."""

    log_ratios: dict[int, float]
    obstacle: Obstacle | None = None
    figures: dict[int, tuple[float, float]] = field(default_factory=dict)  # of level and baseline, where there are two
    resolution: Resolution = FINE_ENOUGH
    carry_over: CarryOver | None = None
    without_carry_over: Floats | None = None  # by block in the same order; None: it can't be estimated or is not asked
    alternatives: tuple[Alternative, ...] = ()  # beside that without carry-over
    disturbed: int = 0  # blocks with a trial beside which others used the host too much
    safety: PairSafety | None = None

    @classmethod
    def of(
        cls, design: Design, pair: Comparison, log_ratios: dict[int, float], obstacle: Obstacle | None = None
    ) -> "Paired":
        """Return two treatments of a design, compared by what is no metric of a trial."""
        labels = design.labels
        ends = labels[pair.baseline], labels[pair.level], pair.baseline, pair.level
        return cls(*ends, log_ratios, obstacle)

    @property
    def is_corrected(self) -> bool:
        """Whether the estimate is that without carry-over: it is clear."""
        return self.without_carry_over is not None and self.carry_over is not None and self.carry_over.taken_out

    @property
    def d(self) -> Floats:
        """The log ratios that the estimate is made from, shape (blocks,)."""
        return self.without_carry_over if self.is_corrected and self.without_carry_over is not None else self.measured

    @property
    def measured(self) -> Floats:
        """The log ratios measured, shape (blocks,)."""
        return np.fromiter(self.log_ratios.values(), dtype=np.float64, count=len(self.log_ratios))


def judge(
    pairs: Sequence[Paired],
    metric: Metric,
    margin: float,
    rule: Callable[[int], Rule] = Looks.single,
    is_feasible: Callable[[int], bool] = lambda more: more <= MANY_BLOCKS,
) -> list[Finding]:
    """Return one finding per comparison, in the order given; all of them are one family.

    ``rule`` says, of a number of usable blocks, how often the data were looked at; without it, once. ``is_feasible``
    says whether so many more blocks are worth proposing.
    """
    obstacles = [_obstacle(pair) for pair in pairs]
    tested = [pair for pair, obstacle in zip(pairs, obstacles, strict=True) if obstacle is None]
    judged = iter(_Family(tested, metric, margin, rule, is_feasible).findings() if tested else ())
    return [
        next(judged) if obstacle is None else _without_figures(pair, metric, obstacle)
        for pair, obstacle in zip(pairs, obstacles, strict=True)
    ]


def _obstacle(pair: Paired) -> Obstacle | None:
    if pair.obstacle is None and len(pair.log_ratios) < MIN_USABLE_BLOCKS:
        return TooFew(len(pair.log_ratios), MIN_USABLE_BLOCKS)
    return pair.obstacle


def _without_figures(pair: Paired, metric: Metric, reason: Reason | Obstacle) -> Finding:
    """Return the finding as far as it needs no test."""
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
        lack=None if isinstance(reason, Reason) else _lack_of_obstacle(reason, len(pair.log_ratios)),
        resolution=pair.resolution,
        carry_over=pair.carry_over,
        disturbed=pair.disturbed,
        safety=pair.safety,
    )


class _Family:
    """Comparisons that share the 5 %, none of which has an obstacle."""

    def __init__(
        self,
        pairs: Sequence[Paired],
        metric: Metric,
        margin: float,
        rule: Callable[[int], Rule],
        is_feasible: Callable[[int], bool],
    ) -> None:
        self.pairs, self.metric, self.margin, self.rule, self.is_feasible = pairs, metric, margin, rule, is_feasible
        p = evidence_of_pairs(pairs, margin, rule).combined.p
        self.levels = holm_levels(p, ALPHA)
        of_pairs = evidence_of_pairs(pairs, margin, rule, self.levels.tolist())
        self.measured, self.combined, self.each = of_pairs.measured, of_pairs.combined, of_pairs.each

    def findings(self) -> Iterator[Finding]:
        """Yield the finding of each comparison."""
        p_adjusted, p_equivalence = holm(self.combined.p), holm(self.combined.p_equivalence)
        words = relations(self.combined, self.margin)
        rules = _rules_of(self.pairs, self.rule)
        for i, pair in enumerate(self.pairs):
            d, relation, rule = pair.d, Relation(words[i]), rules[i]
            ours, n = self.combined.at(i), len(d)
            effect = relative_estimate(float(ours.value), float(ours.low), float(ours.high), n)
            as_measured = self.measured.at(i)
            needed = _blocks_needed(pair, self.margin, len(self.pairs))
            best = 0.0 if isinstance(rule, AlwaysValid) else smallest_p(n)
            p_best = float(holm([*self.combined.p[:i], best, *self.combined.p[i + 1 :]])[i])
            bare_reason = reason_of(
                *(relation, effect, d, self.metric),
                p_mean=float(mean.mean_p_beyond(d, log_margin(self.margin))),
                margin=self.margin,
                sizes=(n,),
                family=len(self.pairs),
                p_adjusted=float(p_adjusted[i]),
                p_equivalence=float(p_equivalence[i]),
                p_best=p_best,
                far_off=int(far_off(d).sum()),
                resolution=pair.resolution,
            )
            withheld, would_be = self._withheld_word(i, relation)
            different = relation in {Relation.HIGHER, Relation.LOWER}
            is_open = relation is Relation.UNDECIDED and withheld is None
            hidden_by, blocks_may_help = self._hidden_by(i) if is_open else (None, False)
            reason = replace(
                bare_reason,
                exaggeration=exaggeration(d, float(ours.value), rule, len(self.pairs))
                if different
                else NO_EXAGGERATION,
                disturbed=pair.disturbed,
                needed=needed or 0,
                fewest=MIN_BLOCKS if p_best > ALPHA or n < MIN_BLOCKS else 0,
                withheld_for=withheld,
                withheld=word_of(would_be, more_is_better=self.metric.more_is_better),
                hidden_by=hidden_by,
                blocks_may_help=blocks_may_help,
            )
            reason = replace(
                reason, lack=_lack(reason, n, self.is_feasible) if relation is Relation.UNDECIDED else None
            )
            yield replace(
                _without_figures(pair, self.metric, reason),
                effect=effect,
                p=float(ours.p_now),
                p_alone=float(ours.p),
                p_adjusted=reason.p_adjusted,
                p_equivalence=reason.p_equivalence,
                blocks_needed=None if reason.doubted_for else needed,
                lack=reason.lack,
                exaggeration=reason.exaggeration,
                totals=totals(
                    pair.figures, math.log1p(effect.value), self.margin, more_is_better=self.metric.more_is_better
                ),
                as_measured=relative_estimate(
                    float(as_measured.value), float(as_measured.low), float(as_measured.high), n
                )
                if pair.is_corrected
                else None,
            )

    def _withheld_word(self, place: int, relation: Relation) -> tuple[Cause | None, Relation]:
        """Return why the word that the ratios measured give is not given, and which that is; None where one is given.

        What is equivalent as measured, and different by every reading, is called different, and nothing is withheld.
        """
        if not self.each[place] or relation is not Relation.UNDECIDED:
            return None, relation
        rest = [self.combined.at(other_place) for other_place in range(len(self.pairs))]

        def word(figures: Evidence) -> Relation:
            family = Evidence.of_each([*rest[:place], figures, *rest[place + 1 :]])
            return Relation(relations(family, self.margin)[place])

        measured = self.measured.at(place)
        would_be = word(measured)
        if would_be is Relation.UNDECIDED:
            return None, relation
        causes = [self.pairs[place].carry_over] if self.pairs[place].without_carry_over is not None else []
        every = [*causes, *(alternative.cause for alternative in self.pairs[place].alternatives)]
        for cause, figures in zip(every, self.each[place], strict=True):
            if word(both(measured, figures)) is not would_be:
                return cause, would_be
        return next((cause for cause in every if cause is not None), None), would_be

    def _hidden_by(self, place: int) -> tuple[Cause | None, bool]:
        """Return the first cause for which it can't be said how many more blocks give a word, and if any number may.

        More blocks narrow the intervals around what was measured and around each alternative. What lies between these
        centers stays, and the boundary that all of them keep away from, 0 or the margin, is as far as their nearest:
        where that is less than the margin, an estimate from the noise alone says nothing; where there is none, no
        interval becomes narrow enough.
        """
        alternatives = self.pairs[place].alternatives
        figures = self.each[place][len(self.each[place]) - len(alternatives) :]  # after that without carry-over
        causes = [alternative.cause for alternative in alternatives]
        bound = log_margin(self.margin)
        for kind in dict.fromkeys(type(cause) for cause in causes if isinstance(cause, LateDisk | EmulatedCpu)):
            of_kind = [
                (alternative.cause, float(found.value))
                for alternative, found in zip(alternatives, figures, strict=True)
                if isinstance(alternative.cause, kind)
            ]
            centers = [float(self.measured.at(place).value), *(center for _, center in of_kind)]
            low, high = min(centers), max(centers)
            distance = max(low, -high, bound - max(-low, high))
            if distance < bound:
                return of_kind[0][0], distance > 0
        return None, False


@dataclass(frozen=True)
class EvidenceOfPairs:
    """What comparisons show, shape (comparisons,): as measured, for every alternative together, and for each."""

    measured: Evidence
    combined: Evidence
    each: list[list[Evidence]]  # of each comparison: without carry-over where that is asked, then its alternatives


def evidence_of_pairs(
    pairs: Sequence[Paired], margin: float, rule: Callable[[int], Rule], levels: Sequence[float] = ()
) -> EvidenceOfPairs:
    """Return what comparisons without an obstacle show; their intervals have coverage 1 - level, .95 by default."""
    alphas, units = list(levels) or [ALPHA] * len(pairs), [pair.resolution.log_width for pair in pairs]
    measured = evidence_of_each([pair.measured for pair in pairs], rule, margin, units, alphas)
    each: list[list[Evidence]] = [[] for _ in pairs]
    without_carry_over = [(place, pair.without_carry_over) for place, pair in enumerate(pairs)]
    places = [place for place, without in without_carry_over if without is not None]
    if places:
        ratios = [without for _, without in without_carry_over if without is not None]
        units_asked, alphas_asked = ([values[place] for place in places] for values in (units, alphas))
        corrected = evidence_of_each(ratios, rule, margin, units_asked, alphas_asked)
        for row, place in enumerate(places):
            each[place].append(corrected.at(row))
    combined = []
    for place, pair in enumerate(pairs):
        if pair.alternatives:
            (now,) = _rules_of([pair], rule)
            each[place] += [
                alternative.evidence(now, margin, alphas[place], units[place]) for alternative in pair.alternatives
            ]
        whole = measured.at(place)
        for figures in each[place]:
            whole = both(whole, figures)
        combined.append(replace(whole, value=each[place][0].value) if pair.is_corrected else whole)
    return EvidenceOfPairs(measured, Evidence.of_each(combined), each)


def _rules_of(pairs: Sequence[Paired], rule: Callable[[int], Rule]) -> list[Rule]:
    """Return each comparison's rule of so many blocks, with the growth of the differences that it shows."""
    rules: dict[int, Rule] = {}  # by place
    for n in {len(pair.log_ratios) for pair in pairs}:
        places, now = [place for place, pair in enumerate(pairs) if len(pair.log_ratios) == n], rule(n)
        if isinstance(now, Looks):
            looks_of_rows = now.of(np.stack([pairs[place].measured for place in places]))
            rules |= {places[row]: looks for looks, rows in looks_of_rows for row in np.flatnonzero(rows)}
        else:
            rules |= dict.fromkeys(places, now)
    return [rules[place] for place in range(len(pairs))]


def both(first: Evidence, second: Evidence) -> Evidence:
    """Return what can be said only if both say it; estimates are those of ``first``.

    Where they lie on either side of 0 neither speaks against no difference, however sure each is.
    """
    opposite = np.sign(first.value) * np.sign(second.value) < 0
    return replace(
        first,
        low=np.minimum(first.low, second.low),
        high=np.maximum(first.high, second.high),
        p=np.where(opposite, 1.0, np.maximum(first.p, second.p)),
        p_now=np.where(opposite, 1.0, np.maximum(first.p_now, second.p_now)),
        p_equivalence=np.maximum(first.p_equivalence, second.p_equivalence),
    )


def _blocks_needed(pair: Paired, margin: float, comparisons: int) -> int | None:
    """Return about how many blocks resolve the margin, where these suffice: enough of them, and most of them quiet."""
    if len(pair.d) < MIN_BLOCKS or mostly(pair.disturbed, len(pair.d)):
        return None
    return blocks_to_resolve(pair.d, margin, comparisons)


def _lack_of_obstacle(obstacle: Obstacle, blocks: int) -> NextStep:
    match obstacle:
        case Dropped() | ZeroFigures():
            return NextStep(Lack.A_TREATMENT_THAT_RUNS)
        case InNameOnly():
            return NextStep(Lack.A_GRANTED_SETTING)
        case LimitedClients():
            return NextStep(Lack.STRONGER_LOAD_GENERATOR)
        case TooFew():
            return NextStep(Lack.MORE_BLOCKS, MIN_BLOCKS - blocks)


_LACK_OF_CAUSE: dict[type[Cause], Lack] = {
    CarryOver: Lack.REST_BETWEEN_TRIALS,
    UnequalFailures: Lack.EQUAL_FAILURES,
    LateDisk: Lack.A_DISK_IN_TIME,
    EmulatedCpu: Lack.A_REAL_CPU,
    EventsTogether: Lack.NO_STALLS_IN_TRIALS,
}


def _lack(reason: Reason, blocks: int, is_feasible: Callable[[int], bool]) -> NextStep:
    """Return what it takes to decide, where nothing is decided.

    What the design could not have shown on the quietest host comes first: no remedy on the host would have helped.
    """
    if cause := reason.doubted_for:
        return NextStep(_LACK_OF_CAUSE[type(cause)])
    if reason.fewest:
        blocks_wanted = reason.fewest if reason.excludes_zero else max(reason.fewest, reason.needed)
        return NextStep(Lack.MORE_BLOCKS, blocks_wanted - blocks)
    if mostly(reason.disturbed, blocks):
        return NextStep(Lack.QUIET_HOST)
    if reason.resolution.too_coarse(reason.margin):
        return NextStep(Lack.FINER_FIGURES)
    more = reason.needed - blocks
    if not is_feasible(more):
        return NextStep(Lack.LESS_NOISE, more)
    return NextStep(Lack.MORE_BLOCKS, more) if more > 0 else NextStep(Lack.A_WIDER_MARGIN)


def _word(reason: Reason | Obstacle) -> Word:
    return reason.word if isinstance(reason, Reason) else Word.NOT_COMPARABLE
