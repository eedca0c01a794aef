"""The verdicts of the planned comparisons, with what each rests on."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.verdict.finding import Finding, Totals
from dbdyno.report.document import Block, Item, List, Paragraph, Section
from dbdyno.report.reasons import reason_code, reason_text
from dbdyno.report.remarks import remarks
from dbdyno.report.sentences import NO_VERDICT, by_interest, evidence, verdict_sentence
from dbdyno.report.source import Source, effect_values, fields, marked, p_values
from dbdyno.report.why import explanation


def section(source: Source) -> Section:
    """Return a sentence for each planned comparison, and why it came out so."""
    analysis = source.analysis
    ordered = [one.verdict for one in by_interest(analysis.verdicts, analysis)]
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
        "trust": [one.name for one in verdict.trust],
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
        **{f"{side}_risks": [f"{one.gap} {one.value}".strip() for one in gaps] for side, gaps in risks.items()},
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
    found = verdict.carry_over
    if found is None:
        return None
    measured = verdict.as_measured
    return {
        **effect_values(found.difference, "difference"),
        **fields(found, "p shift seen taken_out"),
        "as_measured": effect_values(measured) if measured else None,
    }
