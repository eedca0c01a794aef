"""Why a word was chosen, as codes and figures; ``report/reasons.py`` has a sentence for each."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from dbdyno.analysis.lateness import EmulatedCpu, LateDisk
from dbdyno.analysis.statistics import Estimate, Floats, log_margin, relative
from dbdyno.analysis.verdict.evidence import NO_EXAGGERATION, Exaggeration, Relation, Resolution
from dbdyno.model.design import ALPHA
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word
from dbdyno.mysql.durability import CommitRisk, Durability, added_risks

WhichRun = Literal["", "before", "after"]  # of two runs; empty where there is one


@dataclass(frozen=True)
class TwoTreatments:
    """Two treatments that are compared."""

    baseline: str  # label
    level: str  # label
    baseline_id: str
    level_id: str

    @property
    def ids(self) -> frozenset[str]:
        """The two, in no order."""
        return frozenset((self.baseline_id, self.level_id))


@dataclass(frozen=True)
class Secondary(TwoTreatments):
    """One metric in one comparison. Its interval is that of this figure alone, not adjusted for how many there are."""

    metric: str
    effect: Estimate
    p: float  # allowing for the looks, as if nothing else had been judged
    p_adjusted: float  # Benjamini and Hochberg over all of them

    def reverse(self) -> "Secondary":
        """Return the same of the baseline against the level."""
        return replace(
            self,
            baseline=self.level,
            level=self.baseline,
            baseline_id=self.level_id,
            level_id=self.baseline_id,
            effect=self.effect.inverse(),
        )

    @property
    def stands_out(self) -> bool:
        """Whether it is worth a look."""
        return self.p_adjusted <= ALPHA and excludes_zero(self.effect)

    def is_at_odds(self, margin: float) -> bool:
        """Whether it stands out by more than a margin that the study's own metric keeps."""
        return self.stands_out and abs(math.log1p(self.effect.value)) > log_margin(margin)


@dataclass(frozen=True)
class Dropped:
    """A treatment failed again and again."""

    label: str
    run: WhichRun = ""
    of_contrast: bool = False  # whether it is one of several that the figure is made from


@dataclass(frozen=True)
class ZeroFigures:
    """A treatment's metric is 0 in so many blocks, and there is no ratio to 0."""

    label: str
    metric: str
    blocks: int
    run: WhichRun = ""
    of_contrast: bool = False


@dataclass(frozen=True)
class TooFew:
    """There is too little that can be used."""

    usable: int
    needed: int
    unit: Literal["block", "trial"] = "block"
    run: WhichRun = ""


@dataclass(frozen=True)
class LimitedClients:
    """A treatment's load was limited by hosts that offer it, so that its figures are theirs."""

    label: str
    hosts: tuple[str, ...]
    run: WhichRun = ""
    of_contrast: bool = False


@dataclass(frozen=True)
class InNameOnly:
    """The only difference of two treatments is a setting that the host did not grant: they are the same in fact."""

    label: str
    setting: str
    value: str  # as the server, or the kernel, showed it
    run: WhichRun = ""
    why: str = ""  # why the setting changes nothing on the host; empty where it is the server that says so


Obstacle = Dropped | ZeroFigures | LimitedClients | TooFew | InNameOnly


def first(obstacles: Iterable[Obstacle | None]) -> Obstacle | None:
    """Return the first that there is."""
    return next((obstacle for obstacle in obstacles if obstacle is not None), None)


@dataclass(frozen=True)
class CarryOver:
    """What a level leaves for the next trial, beside what the baseline leaves: a relative difference."""

    difference: Estimate
    p: float  # that there is none: Holm over the comparisons
    shift: float  # about what it adds to the comparison as measured, relative
    taken_out: bool = False  # of effect, interval and word

    def reverse(self) -> "CarryOver":
        """Return the same of the baseline against the level."""
        return replace(self, difference=self.difference.inverse(), shift=1 / (1 + self.shift) - 1)

    @property
    def seen(self) -> bool:
        """Whether it is worth a remark beside the verdict."""
        return self.p <= ALPHA


@dataclass(frozen=True)
class UnequalFailures:
    """One treatment spoiled more attempts at a block than the other."""

    label: str
    attempts: int
    other: str  # label
    other_attempts: int


@dataclass(frozen=True)
class EventsTogether:
    """A percentile of the events of all trials together says otherwise than the usual trial's does."""

    percentile: float  # .99
    ratio: Estimate  # of the events together: a relative difference


Cause = CarryOver | UnequalFailures | LateDisk | EmulatedCpu | EventsTogether


class Code(StrEnum):
    """Why a comparison that could be judged got its word."""

    DIFFERENT = "different"
    EVERY_PART = "different in each of the comparisons averaged"
    REAL_BUT_SMALL = "real but smaller than the margin"
    MARGIN_RULED_OUT = "a difference as large as the margin is ruled out"
    TOO_COARSE = "figures too coarse"
    P_OUT_OF_REACH = "too few for any p"
    NO_SPREAD = "no spread"
    NO_INTERVAL = "too few for an interval"
    INTERVAL_INCLUDES_0 = "the interval includes 0"
    P_TOO_LARGE = "p too large"
    MEAN_NOT_INSIDE = "the mean is not surely inside the margin"
    NOT_SURELY_INSIDE = "not surely inside the margin"
    INTERVAL_TOO_WIDE = "the interval includes 0 and reaches beyond the margin"


class Trust(StrEnum):
    """What must be known of a comparison before its word is trusted."""

    INTERFERENCE = "other programs used the host in at least half of its blocks"
    TOTALS = "the sum over all blocks disagrees"
    CARRY_OVER = "carry-over between trials is in the figures, or was removed"
    EXAGGERATED = "with so few blocks the effect may be overstated"
    OTHER_METRICS = "another metric differs although this one does not"
    WITHHELD = "the measured verdict is withheld"


class Lack(StrEnum):
    """What it takes to decide, what concerns the host first; in this order one of several is named."""

    QUIET_HOST = "a quiet host"
    LONGER_WARM_UP = "a longer warm-up"
    STRONGER_LOAD_GENERATOR = "a stronger load generator"
    HIGHER_RATE = "a higher rate"
    A_TREATMENT_THAT_RUNS = "a treatment that runs"
    A_GRANTED_SETTING = "a setting that the host grants"
    REST_BETWEEN_TRIALS = "rest between trials"
    A_REAL_CPU = "a host where KVM works"
    A_DISK_IN_TIME = "an emulated disk that answers in time"
    EQUAL_FAILURES = "failures that affect both sides alike"
    NO_STALLS_IN_TRIALS = "trials that stall alike"
    NO_STALLS = "totals that agree with the typical block"
    FINER_FIGURES = "finer figures"
    A_COMPARISON = "a comparison"
    LESS_NOISE = "less noise"
    MORE_BLOCKS = "more blocks"
    A_WIDER_MARGIN = "a wider margin"


@dataclass(frozen=True)
class NextStep:
    """What is missing for a decision; ``blocks`` is about how many more would decide, 0 if it is something else."""

    lack: Lack
    blocks: int = 0


def hardest(steps: Iterable[NextStep]) -> NextStep | None:
    """Return the step without which the others are of no use: the most blocks, if all that is lacking are blocks."""
    order = list(Lack)
    return min(steps, key=lambda step: (order.index(step.lack), -step.blocks), default=None)


@dataclass(frozen=True)
class PairSafety:
    """How durable two treatments are by the settings that their trials read back."""

    level: Durability
    baseline: Durability

    @property
    def level_risks(self) -> tuple[CommitRisk, ...]:
        """By which settings the level may lose a commit that the baseline keeps."""
        return added_risks(self.level, self.baseline)

    @property
    def baseline_risks(self) -> tuple[CommitRisk, ...]:
        """By which settings the baseline may lose a commit that the level keeps."""
        return added_risks(self.baseline, self.level)


@dataclass(frozen=True)
class Reason:
    """Why a comparison got its word, with what the sentence for it needs."""

    code: Code
    word: Word
    margin: float
    sizes: tuple[int, ...]  # blocks; of two runs, trials of either
    family: int  # comparisons, or treatments of two runs, that share the error
    p_adjusted: float
    p_equivalence: float
    p_best: float  # the smallest adjusted p that could have been reached
    agreeing: tuple[int, int]  # blocks, or pairs of a trial before and one after, with the effect's sign; of how many
    far_off: int  # blocks or trials
    mean: float  # relative difference
    excludes_zero: bool  # the interval
    resolution: Resolution
    exaggeration: Exaggeration = NO_EXAGGERATION
    disturbed: int = 0  # blocks
    needed: int = 0  # blocks, about, to resolve the margin; 0 where it can't be said
    fewest: int = 0  # blocks with which a difference could be shown; 0 where these many can
    lack: NextStep | None = None  # what it takes to decide; of two runs it is not known
    withheld_for: Cause | None = None  # what may have made the word that the ratios measured give
    withheld: Word = Word.UNDECIDED  # that word
    hidden_by: Cause | None = None  # why more blocks may give no word, where these give none either
    blocks_may_help: bool = False  # against that

    @property
    def doubted_for(self) -> Cause | None:
        """What keeps it from the word of the ratios measured, or may keep it from any that more blocks would give."""
        return self.withheld_for or self.hidden_by

    def reverse(self) -> "Reason":
        """Return the same of the baseline against the level."""
        return replace(self, word=self.word.opposite, withheld=self.withheld.opposite, mean=1 / (1 + self.mean) - 1)

    @property
    def two_runs(self) -> bool:
        """Whether two runs were compared, which share no blocks."""
        return len(self.sizes) > 1


def excludes_zero(effect: Estimate) -> bool:
    """Return whether an interval excludes 0."""
    return effect.low > 0 or effect.high < 0


def word_of(relation: Relation, *, more_is_better: bool) -> Word:
    """Return the word for what was found of a metric."""
    match relation:
        case Relation.HIGHER | Relation.LOWER:
            return Word.FASTER if (relation == Relation.HIGHER) == more_is_better else Word.SLOWER
        case Relation.EQUIVALENT:
            return Word.EQUIVALENT
        case Relation.UNDECIDED:
            return Word.UNDECIDED


def reason_of(  # noqa: PLR0913  (what a word rests on)
    relation: Relation,
    effect: Estimate,
    d: Floats,
    metric: Metric,
    *,
    p_mean: float,
    margin: float,
    sizes: tuple[int, ...],
    family: int,
    p_adjusted: float,
    p_equivalence: float,
    p_best: float,
    far_off: int,
    resolution: Resolution,
) -> Reason:
    """Return why a comparison got its word, but for what it takes to decide.

    ``d`` are the log ratios, or the differences of every two trials of two runs; ``p_mean`` is that of a mean beyond
    the margin.
    """
    reason = Reason(
        code=Code.DIFFERENT,
        word=word_of(relation, more_is_better=metric.more_is_better),
        margin=margin,
        sizes=sizes,
        family=family,
        p_adjusted=p_adjusted,
        p_equivalence=p_equivalence,
        p_best=p_best,
        agreeing=(int((np.sign(d) == np.sign(effect.value)).sum()), len(d)),
        far_off=far_off,
        mean=relative(float(np.mean(d))),
        excludes_zero=excludes_zero(effect),
        resolution=resolution,
    )
    return replace(reason, code=_code(reason, relation, effect, spread=bool(np.ptp(d) > 0), mean_is_out=p_mean > ALPHA))


def _code(reason: Reason, relation: Relation, effect: Estimate, *, spread: bool, mean_is_out: bool) -> Code:
    match relation:
        case Relation.HIGHER | Relation.LOWER:
            return Code.DIFFERENT
        case Relation.EQUIVALENT:
            small = reason.excludes_zero and reason.p_adjusted <= ALPHA
            return Code.REAL_BUT_SMALL if small else Code.MARGIN_RULED_OUT
        case Relation.UNDECIDED if reason.resolution.too_coarse(reason.margin) and reason.p_adjusted > ALPHA:
            return Code.TOO_COARSE
        case Relation.UNDECIDED:
            return _code_undecided(reason, effect, spread=spread, mean_is_out=mean_is_out)


def _code_undecided(reason: Reason, effect: Estimate, *, spread: bool, mean_is_out: bool) -> Code:
    bound = log_margin(reason.margin)
    if reason.p_best > ALPHA:
        return Code.P_OUT_OF_REACH
    if not effect.bounded:
        return Code.NO_INTERVAL if spread else Code.NO_SPREAD
    if reason.p_adjusted <= ALPHA:
        return Code.INTERVAL_INCLUDES_0
    if reason.excludes_zero:
        return Code.P_TOO_LARGE
    if relative(-bound) < effect.low and effect.high < relative(bound):
        return Code.MEAN_NOT_INSIDE if mean_is_out else Code.NOT_SURELY_INSIDE
    return Code.INTERVAL_TOO_WIDE
