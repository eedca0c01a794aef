"""Two runs against each other: what each treatment did before and after something changed.

The trials of two runs share no blocks, so nothing takes out what changed on the host between the runs. The figures are
those of two independent groups (``unpaired``), and cover only the noise inside the runs. A treatment that the change
can't have touched, a *control*, shows what the host did: what a treatment gained against its control inside the blocks
of each run is compared instead, and a change of the host that touches both alike is out of it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks, usable_blocks
from dbdyno.analysis.client_hosts import limiting_hosts
from dbdyno.analysis.over_time.drift import drift_of
from dbdyno.analysis.refused import RefusedError
from dbdyno.analysis.server_defaults import ServerDefaults, defaults_of_two_runs
from dbdyno.analysis.statistics import mean
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import log_margin, log_ratios
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.two_runs.matching import control_among, matched_treatments
from dbdyno.analysis.two_runs.unpaired import differences, smallest_p, unpaired_family
from dbdyno.analysis.verdict.evidence import Relation, relations, relative_estimate
from dbdyno.analysis.verdict.reasons import (
    Dropped,
    LimitedClients,
    Obstacle,
    Reason,
    TooFew,
    WhichRun,
    ZeroFigures,
    first,
    reason_of,
)
from dbdyno.analysis.verdict.resolution import FINE_ENOUGH, Resolution, combined, resolutions
from dbdyno.analysis.verdict.totals import far_off
from dbdyno.model.metrics import Metric, metric_of
from dbdyno.model.treatment import Treatment
from dbdyno.model.word import Word
from dbdyno.store.records import Run

MIN_TRIALS = 2  # of either run


@dataclass(frozen=True)
class Change:
    """What became of one treatment; differences are relative, after against before: .03 for +3 %."""

    before: str  # label
    after: str
    effect: Estimate
    trials: tuple[int, int]
    means: tuple[float, float]  # of the metric; NaN where it is of a ratio to the control
    verdict: Word
    reason: Reason | Obstacle
    p: float = math.nan
    p_adjusted: float = math.nan  # Holm over the treatments
    p_equivalence: float = math.nan  # the same


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
    server_defaults: list[ServerDefaults] = field(default_factory=list)


@dataclass(frozen=True)
class _Group:
    """The values of one treatment or ratio in both runs, as logarithms; ``obstacle`` says why they can't be judged."""

    before: str
    after: str
    x: Floats
    y: Floats
    means: tuple[float, float]
    obstacle: Obstacle | None = None
    resolution: Resolution = FINE_ENOUGH


@dataclass(frozen=True)
class _Side:
    """One of the two runs, with what counts of it."""

    run: Run
    blocks: UsableBlocks
    name: WhichRun
    resolutions: dict[str, Resolution]  # by treatment

    @classmethod
    def of(cls, run: Run, name: WhichRun) -> "_Side":
        blocks, about = usable_blocks(run), metric_of(run.design)
        return cls(run, blocks, name, resolutions(blocks, about.name, about.unit))

    def values(self, treatment: Treatment) -> Floats:
        found = self.blocks.values(treatment.id, self.run.design.metric).values()
        return np.asarray([value for value in found if math.isfinite(value) and value > 0])

    def ratios(self, treatment: Treatment, control: Treatment) -> Floats:
        """Log ratios to the control, one for each block."""
        level, against = (self.blocks.values(one.id, self.run.design.metric) for one in (treatment, control))
        return np.asarray(list(log_ratios(level, against).values()))

    def obstacle(self, treatment: Treatment, usable: int) -> Obstacle | None:
        if treatment.id in self.blocks.dropped:
            return Dropped(treatment.label, self.name)
        if zeros := self.blocks.without_ratio(treatment.id, self.run.design.metric):
            return ZeroFigures(treatment.label, self.run.design.metric, zeros, self.name)
        if limiting := limiting_hosts(self.blocks.of(treatment.id)):
            return LimitedClients(treatment.label, limiting, self.name)
        return TooFew(usable, MIN_TRIALS, "trial", self.name) if usable < MIN_TRIALS else None


def compare(
    before: Run, after: Run, *, margin: float | None = None, names: Sequence[str] = (), control: str | None = None
) -> Compared:
    """Return what changed from one run to the other.

    ``names`` are ``"old label=new label"`` for treatments that are called differently; ``control`` is the label of one
    that should not have changed. Without a ``margin`` both runs must have the same.

    Raises:
        RefusedError: The runs can't be compared, or a label is unknown.

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
        drifts=(drift_of(before, sides[0].blocks), drift_of(after, sides[1].blocks)),
        server_defaults=defaults_of_two_runs(before, after, matched),
    )


def _see_that_they_compare(before: Run, after: Run) -> None:
    metrics = before.design.metric, after.design.metric
    if metrics[0] != metrics[1]:
        raise RefusedError("other metric", before=metrics[0], after=metrics[1])
    for name in ("kind", "load"):
        loads = [run.study.get("workload", {}).get(name) for run in (before, after)]
        if loads[0] != loads[1] and all(isinstance(load, str) for load in loads):
            raise RefusedError("other load", name=name, before=loads[0], after=loads[1])


def _margin(before: Run, after: Run, given: float | None) -> float:
    margins = before.design.margin, after.design.margin
    if given is None and margins[0] != margins[1]:
        raise RefusedError("other margin", before=margins[0], after=margins[1])
    return margins[0] if given is None else given


def _group(sides: tuple[_Side, _Side], pair: tuple[Treatment, Treatment]) -> _Group:
    values = [side.values(one) for side, one in zip(sides, pair, strict=True)]
    obstacles = [side.obstacle(one, len(y)) for side, one, y in zip(sides, pair, values, strict=True)]
    means = [float(np.mean(one)) if len(one) else math.nan for one in values]
    x, y = (np.log(one) for one in values)
    coarse = _resolution(sides, pair)
    return _Group(pair[0].label, pair[1].label, x, y, (means[0], means[1]), first(obstacles), coarse)


def _resolution(sides: tuple[_Side, _Side], *pairs: tuple[Treatment, Treatment]) -> Resolution:
    both = ((side, one) for pair in pairs for side, one in zip(sides, pair, strict=True))
    return combined((1.0, side.resolutions.get(one.id, FINE_ENOUGH)) for side, one in both)


def _ratio(
    sides: tuple[_Side, _Side], pair: tuple[Treatment, Treatment], control: tuple[Treatment, Treatment]
) -> _Group:
    x, y = (side.ratios(one, against) for side, one, against in zip(sides, pair, control, strict=True))
    each = [(pair, x, y), (control, x, y)]
    obstacles = [side.obstacle(two[i], len((a, b)[i])) for two, a, b in each for i, side in enumerate(sides)]
    nothing = (math.nan, math.nan)
    coarse = _resolution(sides, pair, control)
    return _Group(pair[0].label, pair[1].label, x, y, nothing, first(obstacles), coarse)


def _changes(groups: Sequence[_Group], primary: Metric, margin: float) -> list[Change]:
    """Judge groups that are one family."""
    judged = iter(_judged([group for group in groups if not group.obstacle], primary, margin))
    return [_without_figures(group, group.obstacle) if group.obstacle else next(judged) for group in groups]


def _without_figures(group: _Group, reason: Reason | Obstacle) -> Change:
    return Change(
        before=group.before,
        after=group.after,
        effect=Estimate.unknown(),
        trials=(len(group.x), len(group.y)),
        means=group.means,
        verdict=reason.word if isinstance(reason, Reason) else Word.NOT_COMPARABLE,
        reason=reason,
    )


def _judged(groups: Sequence[_Group], primary: Metric, margin: float) -> Iterator[Change]:
    if not groups:
        return
    units = [group.resolution.log_width for group in groups]
    family = unpaired_family([(group.x, group.y) for group in groups], margin, units)
    words, p, p_equivalence = relations(family, margin), holm(family.p), holm(family.p_equivalence)
    for i, group in enumerate(groups):
        x, y = group.x, group.y
        effect = relative_estimate(float(family.value[i]), float(family.low[i]), float(family.high[i]), len(x) + len(y))
        reason = reason_of(
            *(Relation(words[i]), effect, differences(x, y), primary),
            p_mean=float(mean.p_beyond_of_two(x, y, log_margin(margin))),
            margin=margin,
            sizes=(len(x), len(y)),
            family=len(groups),
            p_adjusted=float(p[i]),
            p_equivalence=float(p_equivalence[i]),
            p_best=min(1.0, smallest_p(len(x), len(y)) * len(groups)),
            far_off=int(far_off(x).sum() + far_off(y).sum()),
            resolution=group.resolution,
        )
        yield replace(
            _without_figures(group, reason),
            effect=effect,
            p=float(family.p[i]),
            p_adjusted=reason.p_adjusted,
            p_equivalence=reason.p_equivalence,
        )
