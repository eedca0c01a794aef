"""A metric by the level of a factor that is an amount, a curve for each combination of the other factors."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.looks import always_valid_interval, nominal_level
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import Bools, Estimate, Floats, geometric_mean
from dbdyno.analysis.verdict.evidence import AlwaysValid, Rule
from dbdyno.analysis.verdict.figures import MetricFigures, common_blocks
from dbdyno.analysis.verdict.finding import Finding, either_way
from dbdyno.model.design import ALPHA, Factor, Treatment
from dbdyno.model.metrics import METRICS, Metric
from dbdyno.model.quantity import Quantity, quantity_of
from dbdyno.store.records import Run

# Where a curve is as good as it gets: the levels that the best one improves upon by less than a share.
#
# The first of them is the *knee*: below it more brings the share or more, from it on less. The last is where a curve
# that gets worse again leaves its best: the knee of a latency that rises with the load. Both are levels of the study,
# so their intervals are levels too, and may be one alone.
#
# The intervals are those of multiple comparisons with the best (Hsu 1984, "Constrained simultaneous confidence
# intervals for multiple comparisons with the best", Annals of Statistics 12, with a control each as in Edwards and Hsu
# 1983), by Bonferroni's bound in place of Dunnett's, as levels need not spread equally. Let b be the level that is
# truly best. With probability ``1 - alpha`` the intervals of ``b - j`` cover the truth for all K - 1 other levels j, if
# each is one of ``1 - alpha / (K - 1)``. Where they do, b is among the levels that none is shown to be better than, and
# of each of these follows which levels surely are, and which may be, within the share of it. The ends over all of these
# cover the first and the last level together. Which level looks best is not used, so choosing it costs nothing.
#
# A bootstrap over blocks would be simpler and is wrong: where several levels are just short of the share, its
# percentiles leave out the true knee in 16 to 44 % of simulated studies of 6 to 30 blocks, these intervals in 3 %
# (docs/statistics/curves.md).


SHARE = 0.05  # of the level's figure that more must bring to be worth anything


@dataclass(frozen=True)
class Turn:
    """A level, by its place among the ascending levels, and the first and the last that it may be."""

    at: int
    low: int
    high: int


@dataclass(frozen=True)
class Plateau:
    """The first and the last level within ``SHARE`` of the best one; together they hold with 95 %."""

    first: Turn
    last: Turn
    levels: int
    flat: bool  # whether every level is shown to be within the share of the best
    dips: tuple[int, ...] = ()  # places of levels between first and last that are shown not to be

    @property
    def knee(self) -> Turn | None:
        """From where on more brings less than the share; None where that is the first level, or may be the last."""
        return self.first if self.first.at > 0 and self.first.high < self.levels - 1 else None

    @property
    def leaves(self) -> Turn | None:
        """Beyond which level the curve is worse than its best by the share; None where that is not shown."""
        return self.last if self.last.high < self.levels - 1 else None

    @property
    def turn(self) -> Turn | None:
        """The knee, or else the level beyond which the curve leaves its best."""
        return self.knee or self.leaves

    @property
    def rising(self) -> bool:
        """Whether the last level is shown to bring the share or more over every other."""
        return self.first.low == self.levels - 1


def plateau(
    logs: Floats,
    rule: Callable[[int], Rule],
    *,
    more_is_better: bool,
    without_carry_over: Floats | None = None,
    shown: tuple[Floats, Floats] | None = None,
) -> Plateau | None:
    """Return the plateau of logarithms, shape (blocks, levels), levels ascending; None of fewer than two blocks.

    ``without_carry_over`` are the same less what the trial before left, where that is known; ``shown`` are the ends of
    the intervals that are shown of each level against each other, log ratios of shape (levels, levels). The intervals
    span them all, so that a knee says no more of two levels than their finding does.
    """
    blocks, levels = logs.shape
    if blocks < 2 or levels < 2:  # noqa: PLR2004
        return None
    good = logs if more_is_better else -logs
    low, high = _intervals(_level_differences(good), rule(blocks), ALPHA / (levels - 1))
    if without_carry_over is not None:
        corrected = without_carry_over if more_is_better else -without_carry_over
        others = _intervals(_level_differences(corrected), rule(blocks), ALPHA / (levels - 1))
        low, high = np.minimum(low, others[0]), np.maximum(high, others[1])
    if shown is not None:
        of_findings = shown if more_is_better else (-shown[1], -shown[0])
        low, high = np.minimum(low, of_findings[0]), np.maximum(high, of_findings[1])
    bound = np.log1p(SHARE)
    may_be_best = np.all(high >= 0, axis=1)
    surely, maybe = (high <= bound)[may_be_best], (low <= bound)[may_be_best]
    mean = good.mean(axis=0)
    within = mean >= mean.max() - bound
    first = Turn(_first(within), min(map(_first, maybe)), max(map(_first, surely)))
    last = Turn(_last(within), min(map(_last, surely)), max(map(_last, maybe)))
    worse = ~np.any(maybe, axis=0)
    dips = tuple(place for place in range(first.high + 1, last.low) if worse[place])
    return Plateau(first, last, levels, flat=bool(np.all(surely)), dips=dips)


def _level_differences(good: Floats) -> Floats:
    """Return the differences of every two levels, shape (better, other, blocks)."""
    return np.moveaxis(good[:, :, None] - good[:, None, :], 0, -1)


def _intervals(d: Floats, rule: Rule, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends for differences of shape (levels, levels, blocks); a level's own with itself is 0."""
    n, itself = d.shape[-1], np.eye(len(d), dtype=np.bool_)
    if isinstance(rule, AlwaysValid):
        low, high = always_valid_interval(d, alpha)
    else:
        mean, error = d.mean(axis=-1), d.std(axis=-1, ddof=1) / np.sqrt(n)
        level = nominal_level(rule, alpha)
        half = special.stdtrit(n - 1, 1 - level / 2) * error if level > 0 else np.full(mean.shape, np.inf)
        low, high = mean - half, mean + half
    return np.where(itself, 0.0, low), np.where(itself, 0.0, high)


def _first(mask: Bools) -> int:
    return int(np.argmax(mask))


def _last(mask: Bools) -> int:
    return len(mask) - 1 - int(np.argmax(mask[::-1]))


LEVELS_MIN = 3  # two are a comparison
OFFERED = {"clients", "rate"}  # factors that say how much load is offered, of the section "workload"
RATE, LATENCY = "queries_per_second", "latency_ms_p99"  # what a stepped load is looked at by


@dataclass(frozen=True)
class CurvePoint:
    """A treatment on a curve."""

    treatment: str  # id
    level: str
    amount: float  # of the level, in the factor's unit
    value: Estimate  # geometric mean over its blocks with the t interval of the logarithms, of one look alone


@dataclass(frozen=True)
class Curve:
    """A metric at each level, where the other factors have the levels ``at``; ``points`` by ascending amount."""

    at: dict[str, str]
    points: tuple[CurvePoint, ...]
    plateau: Plateau | None  # None: unknown, of fewer than two blocks that have all levels
    blocks: int  # that have all levels


@dataclass(frozen=True)
class Curves:
    """The curves of one metric by one factor."""

    factor: str
    unit: str  # of its amounts: "", "B", "s", "%"
    metric: Metric
    offered: bool  # whether the factor is how much load is offered
    primary: bool  # whether the metric is the study's
    lines: tuple[Curve, ...]


def curves(
    run: Run, blocks: UsableBlocks, primary: Metric, rule: Callable[[int], Rule], findings: Sequence[Finding]
) -> list[Curves]:
    """Return the curves of each factor that has three amounts or more: of the study's metric, then of a load's own.

    ``findings`` are those of every two treatments, of the study's metric.
    """
    all_curves, design = [], run.design
    for factor in design.factors:
        amounts = quantity_of(factor.levels)
        if amounts is None or len(factor.levels) < LEVELS_MIN:
            continue
        for metric in _metrics(factor, primary):
            measured = _Measured(
                MetricFigures(run, blocks, metric.name), metric, rule, _intervals_shown(findings, metric)
            )
            lines = tuple(measured.lines(design.treatments, factor, amounts))
            if lines:
                ours = metric.name == primary.name
                all_curves.append(Curves(factor.name, amounts.unit, metric, _is_offered(factor), ours, lines))
    return all_curves


def _is_offered(factor: Factor) -> bool:
    return factor.section == "workload" and factor.name in OFFERED


def _metrics(factor: Factor, primary: Metric) -> Iterator[Metric]:
    yield primary
    if _is_offered(factor):
        yield from (METRICS[name] for name in (RATE, LATENCY) if name != primary.name)


@dataclass(frozen=True)
class _Measured:
    """One metric of the treatments of a run."""

    figures: MetricFigures
    metric: Metric
    rule: Callable[[int], Rule]
    shown: Mapping[tuple[str, str], tuple[float, float]] | None  # (level, baseline) -> both ends as log ratios

    def lines(self, treatments: Sequence[Treatment], factor: Factor, amounts: Quantity) -> Iterator[Curve]:
        """Yield a curve for each combination of the other factors in which three levels or more are known."""
        amount = dict(zip(factor.levels, amounts.values, strict=True))
        groups: dict[tuple[tuple[str, str], ...], dict[str, Treatment]] = {}
        for treatment in treatments:
            at = tuple((name, level) for name, level in treatment.levels.items() if name != factor.name)
            if (level := treatment.levels.get(factor.name, "")) in amount:
                groups.setdefault(at, {})[level] = treatment
        for at, by_level in groups.items():
            ids = {level: by_level[level].id for level in sorted(by_level, key=amount.__getitem__)}
            values = {level: self.figures.logs[id_] for level, id_ in ids.items()}
            known_levels = [level for level in ids if values[level]]
            if len(known_levels) < LEVELS_MIN:
                continue
            measured = {level: map(math.exp, self.figures.measured_logs[ids[level]].values()) for level in known_levels}
            points = (
                CurvePoint(ids[level], level, amount[level], geometric_mean(measured[level], ALPHA))
                for level in known_levels
            )
            common = common_blocks(values[level] for level in known_levels)
            logs = _array([values[level] for level in known_levels], common)
            corrected = self.figures.logs_without_carry_over
            level_plateau = plateau(
                logs,
                self.rule,
                more_is_better=self.metric.more_is_better,
                without_carry_over=_array([corrected[ids[level]] for level in known_levels], common)
                if corrected
                else None,
                shown=self._ends_shown([ids[level] for level in known_levels]),
            )
            yield Curve(dict(at), tuple(points), level_plateau, len(logs))

    def _ends_shown(self, ids: Sequence[str]) -> tuple[Floats, Floats] | None:
        """Return the ends shown of each level against each other, shape (levels, levels); None where none are."""
        if self.shown is None:
            return None
        unknown = (-math.inf, math.inf)
        ends = [
            [
                (0.0, 0.0) if level_id == baseline_id else self.shown.get((level_id, baseline_id), unknown)
                for baseline_id in ids
            ]
            for level_id in ids
        ]
        low, high = np.moveaxis(np.array(ends, dtype=np.float64), -1, 0)
        return low, high


def _intervals_shown(findings: Sequence[Finding], metric: Metric) -> dict[tuple[str, str], tuple[float, float]] | None:
    """Return the bounded intervals that are shown; None of a metric that nothing is found of."""
    by_pair = either_way(finding for finding in findings if finding.metric == metric.name)
    effects = {pair: finding.effect for pair, finding in by_pair.items() if finding.effect.bounded}
    return (
        {pair: (math.log1p(effect.low), math.log1p(effect.high)) for pair, effect in effects.items()}
        if by_pair
        else None
    )


def _array(values: Sequence[Mapping[int, float]], blocks: Sequence[int]) -> Floats:
    """Return the logarithms of blocks that all have, shape (blocks, levels)."""
    return np.array([[by_block[block] for by_block in values] for block in blocks], dtype=np.float64).reshape(
        -1, len(values)
    )
