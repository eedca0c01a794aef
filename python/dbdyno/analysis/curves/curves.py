"""A metric by the level of a factor that is an amount, a curve for each combination of the other factors."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.curves.plateau import Plateau, plateau
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.geometric_mean import geometric_mean
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.figures import Figures, common_blocks
from dbdyno.analysis.verdict.finding import Finding, either_way
from dbdyno.model.design import ALPHA, Factor
from dbdyno.model.metrics import METRICS, Metric
from dbdyno.model.quantity import Quantity, quantity_of
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run

LEVELS_MIN = 3  # two are a comparison
OFFERED = {"clients", "rate"}  # factors that say how much load is offered, of the section "workload"
RATE, LATENCY = "queries_per_second", "latency_ms_p99"  # what a stepped load is looked at by


@dataclass(frozen=True)
class Point:
    """A treatment on a curve."""

    treatment: str  # id
    level: str
    amount: float  # of the level, in the factor's unit
    value: Estimate  # geometric mean over its blocks with the t interval of the logarithms, of one look alone


@dataclass(frozen=True)
class Curve:
    """A metric at each level, where the other factors have the levels ``at``; ``points`` by ascending amount."""

    at: dict[str, str]
    points: tuple[Point, ...]
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
    found, design = [], run.design
    for factor in design.factors:
        amounts = quantity_of(factor.levels)
        if amounts is None or len(factor.levels) < LEVELS_MIN:
            continue
        for metric in _metrics(factor, primary):
            measured = _Measured(Figures(run, blocks, metric.name), metric, rule, _intervals_shown(findings, metric))
            lines = tuple(measured.lines(design.treatments, factor, amounts))
            if lines:
                ours = metric.name == primary.name
                found.append(Curves(factor.name, amounts.unit, metric, _is_offered(factor), ours, lines))
    return found


def _is_offered(factor: Factor) -> bool:
    return factor.section == "workload" and factor.name in OFFERED


def _metrics(factor: Factor, primary: Metric) -> Iterator[Metric]:
    yield primary
    if _is_offered(factor):
        yield from (METRICS[name] for name in (RATE, LATENCY) if name != primary.name)


@dataclass(frozen=True)
class _Measured:
    """One metric of the treatments of a run."""

    figures: Figures
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
            known = [level for level in ids if values[level]]
            if len(known) < LEVELS_MIN:
                continue
            shown = {level: map(math.exp, self.figures.measured_logs[ids[level]].values()) for level in known}
            points = (Point(ids[level], level, amount[level], geometric_mean(shown[level], ALPHA)) for level in known)
            common = common_blocks(values[level] for level in known)
            logs = _array([values[level] for level in known], common)
            corrected = self.figures.logs_without_carry_over
            found = plateau(
                logs,
                self.rule,
                more_is_better=self.metric.more_is_better,
                without_carry_over=_array([corrected[ids[level]] for level in known], common) if corrected else None,
                shown=self._ends_shown([ids[level] for level in known]),
            )
            yield Curve(dict(at), tuple(points), found, len(logs))

    def _ends_shown(self, ids: Sequence[str]) -> tuple[Floats, Floats] | None:
        """Return the ends shown of each level against each other, shape (levels, levels); None where none are."""
        if self.shown is None:
            return None
        unknown = (-math.inf, math.inf)
        ends = [[(0.0, 0.0) if one == of else self.shown.get((one, of), unknown) for of in ids] for one in ids]
        low, high = np.moveaxis(np.array(ends, dtype=np.float64), -1, 0)
        return low, high


def _intervals_shown(findings: Sequence[Finding], metric: Metric) -> dict[tuple[str, str], tuple[float, float]] | None:
    """Return the bounded intervals that are shown; None of a metric that nothing is found of."""
    found = either_way(one for one in findings if one.metric == metric.name)
    effects = {pair: one.effect for pair, one in found.items() if one.effect.bounded}
    return {pair: (math.log1p(one.low), math.log1p(one.high)) for pair, one in effects.items()} if found else None


def _array(values: Sequence[Mapping[int, float]], blocks: Sequence[int]) -> Floats:
    """Return the logarithms of blocks that all have, shape (blocks, levels)."""
    return np.array([[one[block] for one in values] for block in blocks], dtype=np.float64).reshape(-1, len(values))
