"""Two runs against each other: what each treatment did before and after something changed.

The trials of two runs share no blocks, so nothing takes out what changed on the host between the runs. The figures are
those of two independent groups (``unpaired``), and cover only the noise inside the runs. A treatment that the change
can't have touched, a *control*, tells of the host: what a treatment gained against its control inside the blocks of
each run is compared instead, and a change of the host that touches both alike is out of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.blocks import UsableBlocks, usable_blocks
from dbdyno.analysis.drift import drift_over_run
from dbdyno.analysis.effect import log_margin, log_ratios
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.evidence import Evidence, Finding, findings, relative_estimate
from dbdyno.analysis.matching import control_among, matched_treatments
from dbdyno.analysis.metrics import Metric, metric_of, value_of
from dbdyno.analysis.min_blocks import ALPHA
from dbdyno.analysis.multiplicity import holm
from dbdyno.analysis.unpaired import differences, smallest_p, unpaired_evidence
from dbdyno.analysis.verdict import Word
from dbdyno.analysis.wording import count, margin_text, p_value
from dbdyno.errors import UserError
from dbdyno.store.records import Run, Treatment

Floats = npt.NDArray[np.float64]

MIN_TRIALS = 2  # of either run


@dataclass(frozen=True)
class Change:
    """What became of one treatment; differences are relative, after against before: .03 for +3 %."""

    before: str  # label
    after: str
    effect: Estimate
    trials: tuple[int, int]
    means: tuple[float, float]  # of the metric; NaN where it is of a ratio to the control
    p: float
    p_adjusted: float  # Holm over the treatments
    p_equivalence: float  # the same
    verdict: Word
    reason: str


@dataclass(frozen=True)
class Compared:
    """Everything that is said of two runs, but what they differ in."""

    metric: Metric
    margin: float
    changes: list[Change]  # of every matched treatment but the control
    control: Change | None
    against_control: list[Change]  # of the same treatments as ``changes``, each as a ratio to the control
    matched: list[tuple[Treatment, Treatment]]
    only_before: list[str]  # labels
    only_after: list[str]
    drifts: tuple[Estimate, Estimate]


@dataclass(frozen=True)
class _Group:
    """The values of one treatment or ratio in both runs, as logarithms; ``obstacle`` says why they can't be judged."""

    before: str
    after: str
    x: Floats
    y: Floats
    means: tuple[float, float]
    obstacle: str = ""


@dataclass(frozen=True)
class _Side:
    """One of the two runs, with what counts of it."""

    run: Run
    blocks: UsableBlocks
    name: str  # "before", "after"

    @classmethod
    def of(cls, run: Run, name: str) -> "_Side":
        return cls(run, usable_blocks(run), name)

    def values(self, treatment: Treatment) -> Floats:
        found = self.blocks.values(treatment.id, self.run.design.metric).values()
        return np.asarray([value for value in found if math.isfinite(value) and value > 0])

    def ratios(self, treatment: Treatment, control: Treatment) -> Floats:
        """Log ratios to the control, one for each block."""
        level, against = (self.blocks.values(one.id, self.run.design.metric) for one in (treatment, control))
        return np.asarray(list(log_ratios(level, against).values()))

    def obstacle(self, treatment: Treatment, usable: int) -> str:
        if treatment.id in self.blocks.dropped:
            return f"{treatment.label} failed again and again {self.name} and was dropped"
        if zeros := self.blocks.without_ratio(treatment.id, self.run.design.metric):
            blocks = count(zeros, "block")
            return f"{self.run.design.metric} of {treatment.label} is 0 in {blocks} {self.name}; there is no ratio to 0"
        if usable < MIN_TRIALS:
            return f"{count(usable, 'usable trial')} {self.name}, at least {MIN_TRIALS} are needed"
        return ""

    def drift(self) -> Estimate:
        used = {trial.id for row in self.blocks.trials.values() for trial in row.values()}
        trials = [(place, trial) for place, trial in enumerate(self.run.trials) if trial.id in used]
        return drift_over_run(
            [place for place, _ in trials],
            [trial.treatment for _, trial in trials],
            [value_of(trial.metrics, self.run.design.metric) for _, trial in trials],
        )


def compare(
    before: Run, after: Run, *, margin: float | None = None, names: Sequence[str] = (), control: str | None = None
) -> Compared:
    """Return what changed from one run to the other.

    ``names`` are ``"old label=new label"`` for treatments that are called differently; ``control`` is the label of one
    that should not have changed. Without a ``margin`` both runs must have the same.

    Raises:
        UserError: The runs can't be compared, or a label is unknown.

    """
    _see_that_they_compare(before, after)
    width = _margin(before, after, margin)
    matched = matched_treatments(before, after, names)
    chosen = control_among(matched, control)
    sides = _Side.of(before, "before"), _Side.of(after, "after")
    judged = [pair for pair in matched if pair != chosen]
    primary = metric_of(after.design)
    return Compared(
        metric=primary,
        margin=width,
        changes=_changes([_group(sides, pair) for pair in judged], primary, width),
        control=_changes([_group(sides, chosen)], primary, width)[0] if chosen else None,
        against_control=_changes([_ratio(sides, pair, chosen) for pair in judged], primary, width) if chosen else [],
        matched=matched,
        only_before=[one.label for one in before.design.treatments if one not in [old for old, _ in matched]],
        only_after=[one.label for one in after.design.treatments if one not in [new for _, new in matched]],
        drifts=(sides[0].drift(), sides[1].drift()),
    )


def _see_that_they_compare(before: Run, after: Run) -> None:
    metrics = before.design.metric, after.design.metric
    if metrics[0] != metrics[1]:
        raise UserError(
            f"the runs are judged by different metrics, {metrics[0]} and {metrics[1]}, so there is no change"
        )
    for name in ("kind", "load"):
        loads = [run.study.get("workload", {}).get(name) for run in (before, after)]
        if loads[0] != loads[1] and all(isinstance(load, str) for load in loads):
            raise UserError(
                f"the runs are of different loads, {name} {loads[0]} and {name} {loads[1]}; compare like with like"
            )


def _margin(before: Run, after: Run, given: float | None) -> float:
    margins = before.design.margin, after.design.margin
    if given is None and margins[0] != margins[1]:
        both = " and ".join(margin_text(margin) for margin in margins)
        raise UserError(f"the runs have different margins, {both}; say which one to judge by: --margin 3%")
    return margins[0] if given is None else given


def _group(sides: tuple[_Side, _Side], pair: tuple[Treatment, Treatment]) -> _Group:
    values = [side.values(one) for side, one in zip(sides, pair, strict=True)]
    obstacles = [side.obstacle(one, len(y)) for side, one, y in zip(sides, pair, values, strict=True)]
    means = [float(np.mean(one)) if len(one) else math.nan for one in values]
    x, y = (np.log(one) for one in values)
    return _Group(pair[0].label, pair[1].label, x, y, (means[0], means[1]), next(filter(None, obstacles), ""))


def _ratio(
    sides: tuple[_Side, _Side], pair: tuple[Treatment, Treatment], control: tuple[Treatment, Treatment]
) -> _Group:
    x, y = (side.ratios(one, against) for side, one, against in zip(sides, pair, control, strict=True))
    each = [(pair, x, y), (control, x, y)]
    obstacles = [side.obstacle(two[i], len((a, b)[i])) for two, a, b in each for i, side in enumerate(sides)]
    nothing = (math.nan, math.nan)
    return _Group(pair[0].label, pair[1].label, x, y, nothing, next(filter(None, obstacles), ""))


def _changes(groups: Sequence[_Group], primary: Metric, margin: float) -> list[Change]:
    """Judge groups that are one family."""
    tested = [group for group in groups if not group.obstacle]
    each = [unpaired_evidence(group.x, group.y, margin) for group in tested]
    judged: dict[int, _Judged] = {}
    if tested:
        family = Evidence(*(np.array([getattr(one, name) for one in each]) for name in Evidence.__dataclass_fields__))
        words, p, p_equivalence = findings(family, margin), holm(family.p), holm(family.p_equivalence)
        for i, group in enumerate(tested):
            ends = float(each[i].value), float(each[i].low), float(each[i].high)
            effect = relative_estimate(*ends, len(group.x) + len(group.y))
            figures = float(each[i].p), float(p[i]), float(p_equivalence[i])
            judged[id(group)] = _Judged(group, effect, *figures, Finding(words[i]), margin, len(tested))
    return [_change(group, judged.get(id(group)), primary) for group in groups]


@dataclass(frozen=True)
class _Judged:
    group: _Group
    effect: Estimate
    p: float
    p_adjusted: float
    p_equivalence: float
    finding: Finding
    margin: float
    treatments: int

    @property
    def over(self) -> str:
        return f"over {count(self.treatments, 'treatment')}"

    @property
    def excludes_zero(self) -> bool:
        return self.effect.low > 0 or self.effect.high < 0


def _change(group: _Group, judged: _Judged | None, primary: Metric) -> Change:
    word, reason = _word(judged, primary) if judged else ("not comparable", group.obstacle)
    return Change(
        before=group.before,
        after=group.after,
        effect=judged.effect if judged else Estimate.unknown(),
        trials=(len(group.x), len(group.y)),
        means=group.means,
        p=judged.p if judged else math.nan,
        p_adjusted=judged.p_adjusted if judged else math.nan,
        p_equivalence=judged.p_equivalence if judged else math.nan,
        verdict=word,
        reason=reason,
    )


def _word(judged: _Judged, primary: Metric) -> tuple[Word, str]:
    margin = margin_text(judged.margin)
    match judged.finding:
        case Finding.HIGHER | Finding.LOWER:
            higher = judged.finding == Finding.HIGHER
            word: Word = "faster" if higher == primary.more_is_better else "slower"
            return (
                word,
                f"{_pairs(judged, word)} ({p_value(judged.p_adjusted)} {judged.over}), and the interval excludes 0",
            )
        case Finding.EQUIVALENT if judged.excludes_zero and judged.p_adjusted <= ALPHA:
            return (
                "equivalent",
                f"there is a difference ({p_value(judged.p_adjusted)}), smaller than the margin of {margin}",
            )
        case Finding.EQUIVALENT:
            ruled_out = f"({p_value(judged.p_equivalence)} {judged.over})"
            return "equivalent", f"a difference as large as the margin of {margin} is ruled out {ruled_out}"
        case Finding.UNDECIDED:
            return "undecided", _reason_undecided(judged)


def _pairs(judged: _Judged, word: Word) -> str:
    found = differences(judged.group.x, judged.group.y)
    same_sign = int((np.sign(found) == np.sign(judged.effect.value)).sum())
    return f"{word} in {same_sign:,} of the {len(found):,} pairs of a trial before and one after"


def _reason_undecided(judged: _Judged) -> str:
    m, n = len(judged.group.x), len(judged.group.y)
    margin, bound = margin_text(judged.margin), log_margin(judged.margin)
    best = min(1.0, smallest_p(m, n) * judged.treatments)
    if best > ALPHA:
        return f"{m} and {n} trials can at best reach p = {best:.3f} {judged.over}"
    if judged.p_adjusted <= ALPHA:
        return f"{p_value(judged.p_adjusted)} {judged.over}, but the interval includes 0"
    if judged.excludes_zero:
        return f"the interval excludes 0, but {p_value(judged.p_adjusted)} {judged.over} is more than {ALPHA:g}"
    if -bound < math.log1p(judged.effect.low) and math.log1p(judged.effect.high) < bound:
        return f"the interval lies inside the margin of {margin}, but not surely enough {judged.over}"
    return f"the interval includes 0 and reaches beyond the margin of {margin}"
