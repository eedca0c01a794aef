"""Steadiness: which of two treatments is steadier, and by how much each one's rate varies."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.steadiness import MARGIN, SECONDS_MIN, TreatmentSteadiness
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.word import Word
from dbdyno.model.wording import margin_text, number, percent
from dbdyno.report.document import Item, List, Paragraph, Section, Strong, Table, Text, plain
from dbdyno.report.reasons import reason_text
from dbdyno.report.sentences import figures_text
from dbdyno.report.source import Source, effect_values, fields

HEADINGS = ("treatment", "variation, mean (min to max)", "median second", "slowest 5 % of seconds", "slowest / median")
NOTE = (
    "Variation is the standard deviation of the rate from second to second as a part of its mean: 5 % is steady, 50 %"
    " is jagged. It says nothing about speed."
)
_WORDS = {Word.FASTER: "steadier", Word.SLOWER: "less steady", Word.EQUIVALENT: "as steady"}


def section(source: Source) -> Section:
    """Return which treatments are steadier than which, and each one's variation."""
    analysis = source.analysis
    found, data = analysis.steadiness, {"steadiness": steadiness_json(analysis)}
    if found is None:
        return Section("steadiness", "Steadiness", data=data)
    items = tuple(Item(steadiness_sentence(verdict)) for verdict in found.verdicts)
    rows = tuple(_row(each) for each in sorted(found.treatments, key=lambda each: each.variation.value))
    blocks = (List(items, "verdicts"), Table("Steadiness", HEADINGS, rows), Paragraph(NOTE, "soft"))
    return Section("steadiness", "Steadiness", blocks, data=data)


def steadiness_sentence(verdict: Finding) -> Text:
    """Return the sentence of a planned comparison."""
    figures = f": {figures_text(verdict, 'variation of the rate')}."
    word = Strong(_WORDS.get(verdict.verdict, verdict.verdict), verdict.verdict)
    match verdict.verdict:
        case Word.FASTER | Word.SLOWER:
            return (f"{verdict.level} is ", word, f" than {verdict.baseline}{figures}")
        case Word.EQUIVALENT:
            return (f"{verdict.level} is ", word, f" as {verdict.baseline} within {margin_text(MARGIN)}{figures}")
        case Word.UNDECIDED:
            return (f"Whether {verdict.level} is steadier than {verdict.baseline} is ", word, figures)
        case Word.NOT_COMPARABLE:
            counting = f", counting trials of {SECONDS_MIN} s or more: {reason_text(verdict.reason)}."
            return (f"{verdict.level} is ", word, f" with {verdict.baseline}{counting}")


def _row(each: TreatmentSteadiness) -> tuple[str, ...]:
    return (
        each.label,
        f"{_part(each.variation.value)} ({_part(each.variation.low)} to {_part(each.variation.high)})",
        f"{number(each.median)} {each.unit}",
        f"{number(each.slow)} {each.unit}",
        _part(each.slow / each.median) if each.median > 0 else "-",
    )


def _part(value: float) -> str:
    return percent(value, sign=False)


def steadiness_json(analysis: Analysis) -> dict[str, Any] | None:
    """Return all of it, as the JSON report has it."""
    found = analysis.steadiness
    if found is None:
        return None
    return {
        "margin": MARGIN,
        "treatments": [
            {
                "treatment_id": each.treatment,
                "treatment": each.label,
                "unit": each.unit,
                "variation": each.variation.value,
                "variation_min": each.variation.low,
                "variation_max": each.variation.high,
                **fields(each, "median slow"),
            }
            for each in found.treatments
        ],
        "verdicts": [
            {
                **fields(verdict, "baseline_id level_id"),
                **effect_values(verdict.effect),
                "p": verdict.p_adjusted,
                "verdict": _WORDS.get(verdict.verdict, verdict.verdict),
                "sentence": plain(steadiness_sentence(verdict)),
            }
            for verdict in found.verdicts
        ],
    }
