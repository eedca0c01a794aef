"""Verdicts, every pair, secondary metrics, the table of comparisons, and where an event's time goes."""

from dataclasses import replace
from itertools import groupby
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation import PARTS
from dbdyno.analysis.verdict.finding import Finding, Totals
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.model.metrics import METRICS
from dbdyno.model.wording import count, p_value, percent, percent_range
from dbdyno.report.document import Abridged, Block, Cell, Details, Item, List, Paragraph, Section, Table, bullets
from dbdyno.report.notes import remarks
from dbdyno.report.reasons import duration, reason_code, reason_text
from dbdyno.report.sentences import (
    NO_VERDICT,
    Versus,
    anchor_of,
    by_interest,
    effect_text,
    evidence,
    in_order,
    verdict_sentence,
)
from dbdyno.report.source import Source, effect_values, fields, marked, p_values
from dbdyno.report.why import PART_NAMES, explanation, short_reason, why_json

# The verdicts of the planned comparisons, with what each rests on.


def verdicts_section(source: Source) -> Section:
    """Return a sentence for each planned comparison, and why it came out so."""
    analysis = source.analysis
    ordered = [comparison.verdict for comparison in by_interest(analysis.verdicts, analysis)]
    items = tuple(verdict_item(verdict, analysis) for verdict in ordered)
    shown: Block = List(items, "verdicts") if items else Paragraph(NO_VERDICT)
    data = {"verdicts": [verdict_json(verdict, analysis) for verdict in analysis.verdicts]}
    return Section("verdicts", marked("Verdicts", source.run), (shown,), data=data)


def verdict_item(verdict: Finding, analysis: Analysis) -> Item:
    """Return a verdict with its evidence, its explanation and what must be known beside it."""
    return Item(
        verdict_sentence(verdict, analysis),
        tuple(filter(None, [evidence(verdict)])),
        tuple(remarks(verdict, analysis)),
        tuple(filter(None, [explanation(verdict, analysis)])),
        id=anchor_of(verdict),
    )


def verdict_json(verdict: Finding, analysis: Analysis) -> dict[str, Any]:
    """Return a verdict as values; those that are unknown are not finite yet."""
    return {
        **fields(verdict, "metric baseline level"),
        **effect_values(verdict.effect),
        **p_values(verdict),
        "verdict": verdict.verdict,
        "blocks": verdict.blocks,
        "reason": reason_text(verdict.reason),
        "reason_code": reason_code(verdict.reason),
        "baseline_id": verdict.baseline_id,
        "level_id": verdict.level_id,
        "totals": _totals(verdict.totals),
        "exaggeration": verdict.exaggeration.factor,
        "resolution": None if verdict.resolution.relative else verdict.resolution.step or None,
        "remarks": remarks(verdict, analysis),
        "carry_over": carry_over_json(verdict),
        "withheld": verdict.withheld_for is not None,
        "lacks": verdict.lack.lack.name if verdict.lack else None,
        "blocks_lacking": (verdict.lack.blocks or None) if verdict.lack else None,
        "trust": [trust.name for trust in verdict.trust],
        "safety": _safety(verdict),
    }


def _safety(finding: Finding) -> dict[str, Any] | None:
    """Return by which settings either side may lose a commit that the other keeps; None where none were read back."""
    if finding.safety is None:
        return None
    risks = {"level": finding.safety.level_risks, "baseline": finding.safety.baseline_risks}
    return {
        "level_durable": finding.safety.level.durable,
        "baseline_durable": finding.safety.baseline.durable,
        **{f"{side}_risks": [f"{risk.gap} {risk.value}".strip() for risk in gaps] for side, gaps in risks.items()},
    }


def _totals(totals: Totals) -> dict[str, Any]:
    return {
        "of": "time for the same work" if totals.of_time else "sum of the metric",
        **effect_values(totals.effect),
        "apart": totals.apart,
        "blocks_far_off": totals.far_off,
    }


def carry_over_json(verdict: Finding) -> dict[str, Any] | None:
    """Return the figures; ``None`` where carry-over can't be known."""
    carry_over = verdict.carry_over
    if carry_over is None:
        return None
    measured = verdict.as_measured
    return {
        **effect_values(carry_over.difference, "difference"),
        **fields(carry_over, "p shift seen taken_out"),
        "as_measured": effect_values(measured) if measured else None,
    }


# Verdicts of every pair: a question that was put only after the figures could be seen.


def every_pair_section(source: Source) -> Section:
    """Return the verdicts; none where they were not asked for."""
    analysis = source.analysis
    items = tuple(verdict_item(verdict, analysis) for verdict in analysis.every_pair)
    verdicts = Details("Verdicts", (List(items, "verdicts"),), len(items), open=True)
    values = [{**verdict_json(verdict, analysis), "planned": False} for verdict in analysis.every_pair]
    shown = (verdicts,) if items else ()
    note = (
        f"Not planned: these {count(len(items), 'verdict')} were asked for after the run. Holm's correction goes over"
        " all of them, apart from the planned ones, which are above."
    )
    return Section("every-pair", "Every pair, not planned", shown, note if items else "", {"every_pair": values})


# Secondary metrics: hints, in words that no reader can take for verdicts.


NAMED_MAX = 4  # comparisons in which nothing stands out, one by one


def secondary_section(source: Source) -> Section:
    """Return a table of every figure on a page, elsewhere those that stand out."""
    analysis = source.analysis
    heading, data = "Secondary metrics (exploratory): hints, not verdicts", {"screened": secondary_json(analysis)}
    if not analysis.secondary:
        return Section("screened", heading, data=data)
    note = (
        "Other metrics of the planned comparisons. What stands out is in bold."
        f" {secondary_note(analysis)} Each interval (95 %) is that of its figure alone."
    )
    full = (Paragraph(note, "soft"), _table(analysis))
    return Section("screened", heading, (Abridged(full, bullets(secondary_lines(analysis))),), data=data)


def secondary_lines(analysis: Analysis) -> list[str]:
    """Return a line per comparison in which something stands out, and what the whole rests on."""
    by_comparison = [list(group) for _, group in groupby(analysis.secondary, key=_comparison)]
    lines = [_line(group) for group in by_comparison if any(secondary.stands_out for secondary in group)]
    quiet = [against_text(group[0]) for group in by_comparison if not any(secondary.stands_out for secondary in group)]
    if quiet:
        where = "; ".join(quiet) if len(quiet) <= NAMED_MAX else f"{len(quiet)} comparisons"
        lines.append(f"Nothing stands out in {where}.")
    return [*lines, secondary_note(analysis)] if lines else []


def secondary_note(analysis: Analysis) -> str:
    """Return what was looked at and how far to trust it."""
    metrics = list(dict.fromkeys(secondary.metric for secondary in analysis.secondary))
    figures = (
        f"{count(len(analysis.secondary), 'figure')} {'was' if len(analysis.secondary) == 1 else 'were'} looked at"
    )
    return (
        f"{figures}: {', '.join(METRICS[name].words for name in metrics)}. About 1 in 20 of those that stand out"
        " may be chance (Benjamini and Hochberg at 5 %)."
    )


def _comparison(secondary: Secondary) -> tuple[str, str]:
    return secondary.baseline_id, secondary.level_id


def against_text(secondary: Secondary) -> str:
    """Return ``"the level against the baseline"``."""
    return f"{secondary.level} against {secondary.baseline}"


def _line(group: list[Secondary]) -> str:
    also = ", ".join(
        f"{METRICS[secondary.metric].words} {_figures(secondary)}" for secondary in group if secondary.stands_out
    )
    return f"{against_text(group[0])}, also: {also}."


def _figures(secondary: Secondary) -> str:
    interval = f"{percent_range(secondary.effect.low, secondary.effect.high)}, " if secondary.effect.bounded else ""
    return f"{percent(secondary.effect.value)} (exploratory; {interval}{p_value(secondary.p_adjusted)})"


def _table(analysis: Analysis) -> Table:
    """Return one row per comparison, its cells by metric, empty where there is no figure."""
    names = list(dict.fromkeys(secondary.metric for secondary in analysis.secondary))
    rows: list[tuple[str | Cell, ...]] = []
    for _, group in groupby(analysis.secondary, key=_comparison):
        of = {secondary.metric: secondary for secondary in group}
        rows.append(
            (against_text(next(iter(of.values()))), *(effect_cell(of[name]) if name in of else "" for name in names))
        )
    headings = ("secondary metrics", *(METRICS[name].words for name in names))
    return Table("Other metrics of the planned comparisons", headings, tuple(rows))


def effect_cell(secondary: Secondary) -> Cell:
    """Return how much the level differs in a metric, its interval below."""
    interval = (
        percent_range(secondary.effect.low, secondary.effect.high) if secondary.effect.bounded else "interval unknown"
    )
    return Cell(percent(secondary.effect.value), interval, secondary.stands_out)


def secondary_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Return all of them, as the JSON report has them."""
    return [
        {
            **fields(secondary, "metric baseline level baseline_id level_id"),
            **effect_values(secondary.effect),
            "p": secondary.p_adjusted,
            "p_unadjusted": secondary.p,
            "stands_out": secondary.stands_out,
            "blocks": secondary.effect.n,
        }
        for secondary in analysis.secondary
    ]


# The table of comparisons: one row each, the most interesting first.


ROWS_MAX = 8  # where a reader has ten seconds


def comparisons_section(source: Source) -> Section:
    """Return the table; a report in brief has the first rows of a long one."""
    whole = comparisons(source.analysis, marked("comparison", source.run))
    if not whole.rows:
        return Section("comparisons", "")
    left = len(whole.rows) - ROWS_MAX
    more = (Paragraph(f"{count(left, 'more comparison')} with --details.", "soft"),) if left > 0 else ()
    short: tuple[Block, ...] = (replace(whole, rows=whole.rows[:ROWS_MAX]), *more)
    if source.safety is not None:  # whose table has the speed of each
        short = ()
    return Section("comparisons", "", (Abridged((whole,), (whole,), short),), opening=True)


def comparisons(analysis: Analysis, what: str = "comparison") -> Table:
    """Return one row per planned comparison, which is ``what`` they are called; the effect is one of the metric."""
    headings = (what, "verdict", f"{analysis.metric.heading} (95 % interval)", "p", "because")
    rows = tuple(_row(comparison, analysis) for comparison in in_order(analysis))
    return Table("Comparisons", headings, rows, words=(1, 4))


def _row(comparison: Versus, analysis: Analysis) -> tuple[str | Cell, ...]:
    verdict = comparison.verdict
    p = p_value(verdict.p_adjusted).removeprefix("p ").removeprefix("= ")
    word = Cell(verdict.verdict, tone=verdict.verdict)
    return (comparison.name, word, effect_text(verdict.effect), p, short_reason(verdict, analysis))


# Where an event's time goes in each treatment, as bars with their figures.


SEEN = 1e-3  # of the longest bar: what is less in all treatments is left out
NOTE = (
    "Means over trials, per query (per event if an event is several queries); parts add up to the mean latency. Server"
    " CPU and reads are counted for each; flushes and other writes are the time during which one was in flight while"
    " the query was, so they are at most what is waited for. Waits that were not measured: other locks, waiting for"
    " a processor, network, the client."
)


def time_parts_section(source: Source) -> Section:
    """Return a bar for each treatment whose time is known."""
    analysis = source.analysis
    shown: tuple[Block, ...] = ()
    if analysis.why.treatments:
        shown = (time_table(analysis), Abridged((Paragraph(NOTE, "soft"),)))
    return Section("time", "Time by part", shown, data={"why": why_json(analysis)})


def time_table(analysis: Analysis) -> Table:
    """Return one row per treatment whose time is known; a part that is next to nothing in all has no column."""
    treatments = analysis.why.treatments
    longest = max(treatment.figures["latency_ms"] for treatment in treatments)
    parts = [
        name for name in PARTS if any(treatment.figures.get(name, 0.0) >= SEEN * longest for treatment in treatments)
    ]
    rows = []
    for treatment in treatments:
        known = (duration(treatment.figures[name]) if name in treatment.figures else "unknown" for name in parts)
        rows.append((treatment.label, duration(treatment.figures["latency_ms"]), *known))
    return Table(
        "Time of a query, by part",
        ("treatment", "mean latency", *(PART_NAMES[name] for name in parts)),
        tuple(rows),
        parts=tuple(name.removesuffix("_ms") for name in parts),
        shares=tuple(
            tuple(100 * treatment.figures.get(name, 0.0) / longest for name in parts) for treatment in treatments
        ),
    )
