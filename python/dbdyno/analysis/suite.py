"""The findings of a suite by load and by what each load is compared in, those that lost most first."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbdyno.analysis.statistics import holm
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import ALPHA, Design
from dbdyno.model.word import Word


@dataclass(frozen=True)
class SuiteCell:
    """A load's comparison."""

    finding: Finding
    differs_alone: bool  # it is undecided in the family of all loads, and different in that of its own load

    def loss(self, *, more_is_better: bool) -> float:
        """Return how much worse the level is, as a log ratio: .1 for about 10 %; -inf where it is unknown."""
        if not self.finding.effect.known:
            return -math.inf
        ratio = math.log1p(self.finding.effect.value)
        return -ratio if more_is_better else ratio


@dataclass(frozen=True)
class SuiteLoad:
    """A load with its comparisons, by column; None where one was not planned."""

    name: str
    group: str
    cells: tuple[SuiteCell | None, ...]

    def largest_loss(self, *, more_is_better: bool) -> float:
        """Return the loss of the comparison that lost most."""
        losses = [cell.loss(more_is_better=more_is_better) for cell in self.cells if cell]
        return max(losses, default=-math.inf)


@dataclass(frozen=True)
class SuiteFindings:
    """All loads of a suite; a column is a level against its baseline."""

    columns: tuple[tuple[str, str], ...]  # labels of level and baseline, without the load's
    loads: tuple[SuiteLoad, ...]  # by group; groups, and the loads of each, by their largest loss; steps in order

    def groups(self) -> list[tuple[str, list[SuiteLoad]]]:
        """Return the groups in order with their loads."""
        names = dict.fromkeys(load.group for load in self.loads)
        return [(name, [load for load in self.loads if load.group == name]) for name in names]

    def cells_in(self, place: int) -> list[tuple[str, SuiteCell]]:
        """Return the loads that have a comparison in a column, with it."""
        return [(load.name, cell) for load in self.loads if (cell := load.cells[place]) is not None]


def suite_findings(design: Design, findings: Sequence[Finding], *, more_is_better: bool) -> SuiteFindings | None:
    """Return the findings of a suite; None of a study that is none, has no finding, or compares one with itself.

    The word of each holds for the family of all comparisons. Each load's own are a family beside it, by Holm as well.
    """
    factor = design.factor_of_loads
    if factor is None or design.aa is not None or not findings:
        return None
    treatments = {treatment.id: treatment for treatment in design.treatments}
    by_load: dict[str, dict[tuple[str, str], Finding]] = {name: {} for name in factor.levels}
    for finding in findings:
        load = treatments[finding.level_id].levels[factor.name]
        level, baseline = (
            treatments[id_].label_without(factor.name) for id_ in (finding.level_id, finding.baseline_id)
        )
        by_load[load][level, baseline] = finding
    columns = tuple(dict.fromkeys(column for row in by_load.values() for column in row))
    loads = []
    for name, row in by_load.items():
        cells = dict(zip(row, _cells(row.values()), strict=True))
        loads.append(SuiteLoad(name, (factor.groups or {}).get(name, ""), tuple(cells.get(key) for key in columns)))
    return SuiteFindings(columns, tuple(_in_order(loads, factor.chains(), more_is_better=more_is_better)))


def _cells(findings: Iterable[Finding]) -> list[SuiteCell]:
    """Return the comparisons of one load, each with what its own family says of it."""
    ours = list(findings)
    known = [finding for finding in ours if math.isfinite(finding.p_alone)]
    adjusted = dict(zip(map(id, known), holm([finding.p_alone for finding in known]).tolist(), strict=True))
    return [
        SuiteCell(
            finding,
            differs_alone=finding.verdict is Word.UNDECIDED
            and finding.withheld_for is None
            and adjusted.get(id(finding), 1.0) <= ALPHA,
        )
        for finding in ours
    ]


def _in_order(loads: Sequence[SuiteLoad], chains: Sequence[Sequence[str]], *, more_is_better: bool) -> list[SuiteLoad]:
    """Return the loads by group, and in it by their largest loss; those that go on from one another stay in order."""
    worst = {load.name: load.largest_loss(more_is_better=more_is_better) for load in loads}
    of_group: dict[str, float] = {}
    for load in loads:
        of_group[load.group] = max(of_group.get(load.group, -math.inf), worst[load.name])
    steps = {name: chain for chain in chains for name in chain}

    def key(load: SuiteLoad) -> tuple[float, str, float, str, int]:
        chain = steps.get(load.name, [load.name])
        return (
            *(-of_group[load.group], load.group),
            *(-max(worst[name] for name in chain), chain[0], chain.index(load.name)),
        )

    return sorted(loads, key=key)
