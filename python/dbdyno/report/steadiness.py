"""Steadiness as reports tell it: which of two treatments is steadier, and by how much each one's rate varies."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.metrics import number
from dbdyno.analysis.steadiness import MARGIN, SECONDS_MIN
from dbdyno.analysis.verdict import Verdict
from dbdyno.analysis.wording import count, margin_text, p_value, percent, percent_range
from dbdyno.report.sentences import Sentence

HEADING = "Steadiness"
NOTE = (
    "Variation is the standard deviation of the rate from second to second as a part of its mean: 5 % is steady, 50 %"
    " is jagged. It says nothing about speed."
)
_WORDS = {"faster": "steadier", "slower": "less steady", "equivalent": "as steady"}


def steadiness_sentences(analysis: Analysis) -> list[Sentence]:
    """Return a sentence for each planned comparison."""
    return [_sentence(verdict) for verdict in analysis.steadiness.verdicts] if analysis.steadiness else []


def _sentence(verdict: Verdict) -> Sentence:
    effect = verdict.effect
    figures = (
        f": {percent(effect.value)} variation of the rate (95 % interval {percent_range(effect.low, effect.high)},"
        f" {count(verdict.blocks, 'block')}, {p_value(verdict.p_adjusted)})."
    )
    match verdict.verdict:
        case "faster" | "slower":
            return Sentence(verdict.level, " is ", _WORDS[verdict.verdict], f" than {verdict.baseline}{figures}")
        case "equivalent":
            rest = f" as {verdict.baseline} within {margin_text(MARGIN)}{figures}"
            return Sentence(verdict.level, " is ", _WORDS[verdict.verdict], rest)
        case "undecided":
            subject = f"Whether {verdict.level} is steadier than {verdict.baseline}"
            return Sentence(subject, " is ", verdict.verdict, figures)
        case "not comparable":
            rest = f" with {verdict.baseline}, counting trials of {SECONDS_MIN} s or more: {verdict.reason}."
            return Sentence(verdict.level, " is ", verdict.verdict, rest)


def steadiness_headings() -> tuple[str, ...]:
    """Return the headings of the table."""
    return ("level", "variation, mean (min to max)", "median second", "slowest 5 % of seconds", "slowest / median")


def steadiness_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return a row for each treatment that has series, the steadiest first."""
    found = analysis.steadiness.treatments if analysis.steadiness else []
    return [
        (
            each.label,
            f"{_part(each.variation.value)} ({_part(each.variation.low)} to {_part(each.variation.high)})",
            f"{number(each.median)} {each.unit}",
            f"{number(each.slow)} {each.unit}",
            _part(each.slow / each.median) if each.median > 0 else "-",
        )
        for each in sorted(found, key=lambda each: each.variation.value)
    ]


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
                "median": each.median,
                "slow": each.slow,
            }
            for each in found.treatments
        ],
        "verdicts": [
            {
                "baseline_id": verdict.baseline_id,
                "level_id": verdict.level_id,
                "effect": verdict.effect.value,
                "low": verdict.effect.low,
                "high": verdict.effect.high,
                "p": verdict.p_adjusted,
                "verdict": _WORDS.get(verdict.verdict, verdict.verdict),
                "sentence": str(_sentence(verdict)),
            }
            for verdict in found.verdicts
        ],
    }
