"""Published tables, each figure and claim with the treatments of this plan that it is held against."""

from collections.abc import Mapping, Sequence

from dbdyno.model.design import Comparison
from dbdyno.model.treatment import Treatment
from dbdyno.store.reported import ReportedClaim, ReportedRow, ReportedTable
from dbdyno.study.labels import level_label
from dbdyno.study.reported import ClaimSection, ReportedSection, RowSection
from dbdyno.study.reported_rules import fitting, pairs
from dbdyno.study.study import Study


def reported_tables(study: Study, treatments: Sequence[Treatment], metric: str) -> list[ReportedTable]:
    """The study's published tables; ``metric`` is that of its verdicts, which a table is in unless it says another."""
    return [_table(study, table, treatments, metric) for table in study.reported]


def _table(study: Study, table: ReportedSection, treatments: Sequence[Treatment], metric: str) -> ReportedTable:
    return ReportedTable(
        source=table.source,
        setup=table.setup,
        metric=table.metric or metric,
        unit=table.unit,
        rows=[_row(study, row, treatments) for row in table.rows],
        claims=[_claim(study, claim, treatments) for claim in table.claims],
        differs_because=table.differs_because,
    )


def _row(study: Study, row: RowSection, treatments: Sequence[Treatment]) -> ReportedRow:
    found = fitting(study, row.levels)
    order = [factor.name for factor in study.factors]
    names = sorted(row.levels, key=lambda name: order.index(name) if name in order else len(order))
    wanted = Treatment("", {name: level_label(row.levels[name]) for name in names})
    treatment = _of(treatments, found[0]) if found else wanted
    return ReportedRow(treatment.label, row.as_, treatment.id, float(row.value), _float(row.min), _float(row.max))


def _claim(study: Study, claim: ClaimSection, treatments: Sequence[Treatment]) -> ReportedClaim:
    found = [
        Comparison(_of(treatments, baseline).id, _of(treatments, treatment).id)
        for treatment, baseline in pairs(study, claim)
    ]
    limits = _float(claim.times_min), _float(claim.times_max)
    return ReportedClaim(claim.text, found, claim.treatment is not None, claim.direction, *limits)


def _of(treatments: Sequence[Treatment], levels: Mapping[str, str]) -> Treatment:
    return next(treatment for treatment in treatments if treatment.levels == levels)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
