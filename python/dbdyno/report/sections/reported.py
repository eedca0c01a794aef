"""What others published beside what was measured here: a table, what agrees in words, and the study's own reasons."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.reported import (
    Agreement,
    Checked,
    PublishedBeside,
    PublishedComparison,
    PublishedFigure,
    times_as_fast,
    times_as_fast_estimated,
)
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.wording import UNKNOWN, capital, count, number, percent
from dbdyno.report.document import Block, Item, List, Paragraph, Section, Table
from dbdyno.report.sentences import effect_text
from dbdyno.report.source import Source, effect_values
from dbdyno.store.reported import STEADY, ReportedRow

NOT_HERE = "not in this run"

_OF_FIGURES: dict[Agreement, str] = {
    "agrees": "agrees",
    "other size": "same direction, other size",
    "contradicts": "contradicts: the other direction",
    "equivalent here": "they show a difference; here it is equivalent",
    "different here": "they show none; here there is a difference",
    "undecided here": "undecided here",
    "not comparable here": "can't be compared here",
    "not measured here": NOT_HERE,
}
_OF_CLAIMS: dict[Agreement, str] = {
    **_OF_FIGURES,
    "other size": "another size here",
    "equivalent here": "they named a winner; here it is equivalent",
    "different here": "they saw no difference; here there is one",
}
_IN_SHORT: dict[Agreement, str] = {
    "agrees": "as here",
    "other size": "in the same direction, of another size",
    "contradicts": "in the other direction",
    "equivalent here": "equivalent here",
    "different here": "none there, one here",
    "undecided here": "undecided here",
    "not comparable here": "not comparable here",
}


def section(source: Source) -> Section:
    """Return each published table beside what was measured, its claims, and why they may differ."""
    analysis = source.analysis
    shown = tuple(block for each in analysis.beside for block in _shown(each))
    return Section("reported", "Reported and measured here", shown, data={"reported": reported_json(analysis)})


def _shown(each: PublishedBeside) -> Iterator[Block]:
    for line in filter(None, (f"Reported by {each.table.source}.", each.table.setup)):
        yield Paragraph(line, "soft")
    if each.figures:
        yield _table(each)
        if line := summary_line(each):
            yield Paragraph(line)
    if each.claims:
        claims = tuple(Item(claim_line(claim, each)) for claim in each.claims)
        yield List(claims, heading="What was concluded there")
    if each.table.differs_because and not each.all_agree:
        yield Paragraph(each.table.differs_because)


def _table(beside: PublishedBeside) -> Table:
    """Return a row for each figure, or for each comparison that it is in."""
    unit = f" {beside.table.unit}" if beside.table.unit else ""
    baselines = [comparison.baseline for figure in beside.figures for comparison in figure.against]
    start = ("treatment", "called there", f"reported{unit}", f"here, {beside.metric.heading} (min to max)")
    compared = ("against", "reported", "here (95 % interval)", "in words") if baselines else ()
    rows: list[tuple[str, ...]] = []
    for figure in beside.figures:
        own = (figure.row.label, figure.row.called, _published_text(figure.row), _measured_text(figure))
        alone = ("baseline" if figure.row in baselines else "", "", "", "") if baselines else ()
        rows += [(*own, *_comparison_cells(figure.row, comparison)) for comparison in figure.against] or [
            (*own, *alone)
        ]
    return Table("Reported and measured here", (*start, *compared), tuple(rows))


def _published_text(row: ReportedRow) -> str:
    between = f" ({number(row.min)} to {number(row.max)})" if row.min is not None and row.max is not None else ""
    return f"{number(row.value)}{between}"


def _measured_text(figure: PublishedFigure) -> str:
    if not figure.row.treatment:
        return NOT_HERE
    measured = figure.measured
    if not measured.known:
        return UNKNOWN
    between = f" ({number(measured.low)} to {number(measured.high)})" if measured.n > 1 else ""
    return f"{number(measured.value)}{between}"


def _comparison_cells(row: ReportedRow, comparison: PublishedComparison) -> tuple[str, str, str, str]:
    words = _OF_FIGURES[comparison.agreement]
    if comparison.agreement == "undecided here" and _inside(comparison.published, comparison.verdict.effect):
        words += "; theirs is inside our interval"
    return (
        _apart(row, comparison.baseline),
        percent(comparison.published),
        effect_text(comparison.verdict.effect),
        words,
    )


def _inside(value: float, effect: Estimate) -> bool:
    return effect.bounded and effect.low <= value <= effect.high


def _apart(row: ReportedRow, baseline: ReportedRow) -> str:
    """Return what the baseline has otherwise: "hdd-7200", not the whole label once more."""
    own = row.label.split(" / ")
    return " / ".join(part for part in baseline.label.split(" / ") if part not in own)


def claim_line(claim: Checked, beside: PublishedBeside) -> str:
    """Return a claim and what became of it: in how many comparisons it holds, and where it does not."""
    quoted = f'"{claim.claim.text}"'
    if not claim.claim.checked:
        return f"{quoted} Not checked."
    if not claim.outcomes:
        return f"{quoted} This run does not measure it."
    counts, of = claim.counts, len(claim.outcomes)
    if len(counts) == 1:
        (agreement,) = counts
        where = "" if of == 1 else f" in all {of} comparisons"
        return f"{quoted} {capital(_OF_CLAIMS[agreement])}{where}{_figures(claim, beside)}."
    outcomes = [f"{_OF_CLAIMS[agreement]} in {number_} of {of}" for agreement, number_ in counts.most_common()]
    others = [verdict.level for verdict, agreement in claim.outcomes if agreement != "agrees"]
    named = f" Not so: {', '.join(others)}." if "agrees" in counts else ""
    return f"{quoted} {capital('; '.join(outcomes))}{_figures(claim, beside)}.{named}"


def _figures(claim: Checked, beside: PublishedBeside) -> str:
    """Return how many times as fast the level is here: of one comparison its interval, of several their estimates."""
    known = [verdict for verdict, _ in claim.outcomes if verdict.effect.bounded]
    if not known or claim.claim.direction in STEADY:
        return ""
    if len(claim.outcomes) == 1:
        (low, high), verdict = times_as_fast(known[0].effect, beside.metric), known[0]
        return f": {verdict.level} is {number(low)} to {number(high)} times as fast as {verdict.baseline}"
    times = sorted(times_as_fast_estimated(verdict.effect, beside.metric) for verdict in known)
    return f": {number(times[0])} to {number(times[-1])} times as fast"


def summary_line(beside: PublishedBeside) -> str:
    """Return how many of the table's comparisons came out how; empty where there is none."""
    met = [comparison.agreement for figure in beside.figures for comparison in figure.against]
    if not met:
        return ""
    counts = [f"{met.count(agreement)} {words}" for agreement, words in _IN_SHORT.items() if agreement in met]
    return f"{count(len(met), 'reported difference')}: {', '.join(counts)}."


def reported_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the published tables and claims, as the JSON report has them."""
    return [
        {
            **asdict(beside.table),
            "rows": [
                {
                    **asdict(figure.row),
                    "treatment": figure.row.treatment or None,
                    "here": figure.measured.value,
                    "here_min": figure.measured.low,
                    "here_max": figure.measured.high,
                    "against": [_comparison_json(comparison) for comparison in figure.against],
                }
                for figure in beside.figures
            ],
            "claims": [
                {
                    **asdict(claim.claim),
                    "outcomes": [
                        {"level_id": verdict.level_id, "baseline_id": verdict.baseline_id, "agreement": agreement}
                        for verdict, agreement in claim.outcomes
                    ],
                    "sentence": claim_line(claim, beside),
                }
                for claim in beside.claims
            ],
        }
        for beside in analysis.beside
    ]


def _comparison_json(comparison: PublishedComparison) -> dict[str, Any]:
    return {
        "baseline_id": comparison.verdict.baseline_id,
        "reported": comparison.published,
        **effect_values(comparison.verdict.effect),
        "verdict": comparison.verdict.verdict,
        "agreement": comparison.agreement,
    }
