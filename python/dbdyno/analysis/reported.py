"""Published figures and claims held against what a run measured: what agrees, what doesn't. Rules only, no opinion.

All comparisons are judged in the metric of the table, by the rules of ``verdict/finding.py``: the planned ones as one
family, and those that only a claim asks for as another.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics import Estimate, log_margin, log_ratios
from dbdyno.analysis.steadiness import Steadiness
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.finding import Finding, Paired, judge
from dbdyno.analysis.verdict.pairs import obstacle
from dbdyno.analysis.verdict.reasons import first
from dbdyno.model.design import Comparison
from dbdyno.model.metrics import REPORTED_METRICS, SECONDS_PER_1000, Metric
from dbdyno.model.word import Word
from dbdyno.store.records import Run
from dbdyno.store.reported import STEADY, ReportedClaim, ReportedRow, ReportedTable

Agreement = Literal[
    "agrees",
    "other size",  # the same direction
    "contradicts",
    "equivalent here",  # they show a difference
    "different here",  # they show none
    "undecided here",
    "not comparable here",
    "not measured here",
]


Verdicts = dict[tuple[str, str], Finding]  # by the ids of baseline and level


@dataclass(frozen=True)
class PublishedComparison:
    """A published difference beside ours. Differences are relative, in the table's metric: .03 for +3 %."""

    baseline: ReportedRow
    published: float
    verdict: Finding
    agreement: Agreement


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure, ours of the same treatment, and what both differ from."""

    row: ReportedRow
    measured: Estimate  # mean over trials; the least and the greatest of them, not an interval
    against: tuple[PublishedComparison, ...]


@dataclass(frozen=True)
class Checked:
    """A claim and what became of it in each comparison that it is about."""

    claim: ReportedClaim
    outcomes: tuple[tuple[Finding, Agreement], ...]

    @property
    def counts(self) -> Counter[Agreement]:
        """How often each outcome is there."""
        return Counter(agreement for _, agreement in self.outcomes)


@dataclass(frozen=True)
class PublishedBeside:
    """A published table beside this run."""

    table: ReportedTable
    metric: Metric
    figures: list[PublishedFigure]
    claims: list[Checked]

    @property
    def all_agree(self) -> bool:
        """Whether nothing that was compared came out otherwise; a study's reasons for differences then say nothing."""
        agreements = [comparison.agreement for figure in self.figures for comparison in figure.against]
        agreements += [agreement for claim in self.claims for _, agreement in claim.outcomes]
        return all(agreement in {"agrees", "not measured here"} for agreement in agreements)


def beside(
    run: Run, blocks: UsableBlocks, rule: Callable[[int], Rule], steadiness: Steadiness | None = None
) -> list[PublishedBeside]:
    """Return each published table of the run beside its figures; claims of steadiness are held against its verdicts."""
    steady = steadiness.verdicts if steadiness else []
    by_pair = {(verdict.baseline_id, verdict.level_id): verdict for verdict in steady}
    return [_beside(run, table, blocks, rule, by_pair) for table in run.reported]


def values_of(blocks: UsableBlocks, treatment: str, name: str) -> dict[int, float]:
    """Return block -> a treatment's value in a table's metric."""
    if name != SECONDS_PER_1000:
        return blocks.values(treatment, name)
    rates = blocks.values(treatment, "queries_per_second")
    return {block: 1000 / rate if rate > 0 else math.nan for block, rate in rates.items()}


def _beside(
    run: Run, table: ReportedTable, blocks: UsableBlocks, rule: Callable[[int], Rule], steady: Verdicts
) -> PublishedBeside:
    of = REPORTED_METRICS[table.metric]
    planned = list(run.design.comparisons)
    claimed = [pair for claim in table.claims for pair in claim.pairs]
    further = list(dict.fromkeys((comparison.baseline, comparison.level) for comparison in claimed))
    planned_pairs = {(comparison.baseline, comparison.level) for comparison in planned}
    families = planned, [Comparison(*pair) for pair in further if pair not in planned_pairs]
    judged = {
        (verdict.baseline_id, verdict.level_id): verdict
        for family in families
        for verdict in judge(_pair_figures(run, blocks, family, table.metric), of, run.design.margin, rule)
    }
    return PublishedBeside(
        table=table,
        metric=of,
        figures=[_figure(row, table, blocks, judged, run) for row in table.rows],
        claims=[
            _check_claim(claim, steady if claim.direction in STEADY else judged, run.design.margin, of)
            for claim in table.claims
        ],
    )


def _pair_figures(run: Run, blocks: UsableBlocks, comparisons: list[Comparison], name: str) -> list[Paired]:
    labels = run.design.labels
    of_trials = "queries_per_second" if name == SECONDS_PER_1000 else name
    pairs = []
    for comparison in comparisons:
        ends = (comparison.baseline, comparison.level)
        below, above = (values_of(blocks, id_, name) for id_ in ends)
        obstacles = (obstacle(id_, labels[id_], blocks, of_trials) for id_ in ends)
        pairs.append(Paired.of(run.design, comparison, log_ratios(above, below), first(obstacles)))
    return pairs


def _figure(
    row: ReportedRow, table: ReportedTable, blocks: UsableBlocks, judged: Verdicts, run: Run
) -> PublishedFigure:
    values = [value for value in values_of(blocks, row.treatment, table.metric).values() if math.isfinite(value)]
    measured = Estimate(float(np.mean(values)), min(values), max(values), len(values)) if values else Estimate.unknown()
    against = []
    for baseline in table.rows:
        verdict = judged.get((baseline.treatment, row.treatment)) if row.treatment else None
        planned = any(
            (comparison.baseline, comparison.level) == (baseline.treatment, row.treatment)
            for comparison in run.design.comparisons
        )
        if verdict is not None and planned:
            published = row.value / baseline.value - 1
            agreement = of_difference(published, verdict, run.design.margin)
            against.append(PublishedComparison(baseline, published, verdict, agreement))
    return PublishedFigure(row, measured, tuple(against))


def of_difference(published: float, verdict: Finding, margin: float) -> Agreement:
    """Return how a published relative difference goes with ours.

    A published one inside the margin is taken for none: whoever published it gave no interval.
    """
    if verdict.verdict == Word.NOT_COMPARABLE:
        return "not comparable here"
    if verdict.verdict == Word.UNDECIDED:
        return "undecided here"
    none = abs(math.log1p(published)) <= log_margin(margin)
    if verdict.verdict == Word.EQUIVALENT:
        return "agrees" if none else "equivalent here"
    if verdict.effect.low <= published <= verdict.effect.high:
        return "agrees"
    if none:
        return "different here"
    return "other size" if (published > 0) == (verdict.effect.value > 0) else "contradicts"


def _check_claim(claim: ReportedClaim, judged: Verdicts, margin: float, of: Metric) -> Checked:
    pairs = [(pair.baseline, pair.level) for pair in claim.pairs]
    verdicts = [judged[pair] for pair in pairs if pair in judged]
    return Checked(claim, tuple((verdict, of_claim(claim, verdict, margin, of)) for verdict in verdicts))


def of_claim(claim: ReportedClaim, verdict: Finding, margin: float, of: Metric) -> Agreement:
    """Return how a claim goes with a verdict: first its direction, then its size."""
    if verdict.verdict == Word.NOT_COMPARABLE:
        return "not comparable here"
    claimed = (STEADY.get(claim.direction) or Word(claim.direction)) if claim.direction else None
    if claimed is not None and verdict.verdict != claimed:
        if verdict.verdict == Word.UNDECIDED:
            return "undecided here"
        if verdict.verdict == Word.EQUIVALENT:
            return "equivalent here"
        return "different here" if claimed == Word.EQUIVALENT else "contradicts"
    return _size(claim, verdict, margin, of)


def _size(claim: ReportedClaim, verdict: Finding, margin: float, of: Metric) -> Agreement:
    """Return whether the times as fast that are claimed are among those that the data allow; the margin is given in."""
    low, high = times_as_fast(verdict.effect, of)
    slack = math.exp(log_margin(margin))
    least = 0.0 if claim.times_min is None else claim.times_min / slack
    most = math.inf if claim.times_max is None else claim.times_max * slack
    if least <= low and high <= most:
        return "agrees"
    if verdict.verdict == Word.UNDECIDED:
        return "undecided here"
    if low <= most and least <= high:
        return "agrees" if least <= times_as_fast_estimated(verdict.effect, of) <= most else "other size"
    return "other size"


def times_as_fast(effect: Estimate, of: Metric) -> tuple[float, float]:
    """Return the interval of an effect as times as fast: 2 where there are twice the queries or half the seconds."""
    low, high = max(0.0, 1 + effect.low), 1 + effect.high
    if of.more_is_better:
        return low, high
    return 1 / high if high > 0 else math.inf, 1 / low if low > 0 else math.inf


def times_as_fast_estimated(effect: Estimate, of: Metric) -> float:
    """Return the same of the estimate itself."""
    ratio = 1 + effect.value
    return ratio if of.more_is_better else (1 / ratio if ratio > 0 else math.inf)
