"""What to do, right below the headline."""

from typing import Any

from dbdyno.analysis.advice import Recommended
from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.safety import Choice
from dbdyno.report.advice import advice_text
from dbdyno.report.crash import chosen, crash_advice
from dbdyno.report.document import Paragraph, Section
from dbdyno.report.source import Source


def section(source: Source) -> Section:
    """Return one paragraph, and what it says as values."""
    if source.safety is not None:
        text = crash_advice(source, source.safety)
        data = {"advice": {"text": text, "hold": None, "parts": [], **choice_json(chosen(source, source.safety))}}
    else:
        text = advice_text(source.run, source.analysis)
        data = {"advice": {"text": text, **advice_json(source.analysis)}}
    return Section("advice", "", (Paragraph(text, "advice"),), data=data, opening=True)


def choice_json(choice: Choice) -> dict[str, Any]:
    """Return what is recommended where cuts count as well, by the ids of treatments."""
    return {
        "take": list(choice.take),
        "safe_and_slower": list(choice.slower),
        "faster": [one.id for one in choice.faster],
    }


def advice_json(analysis: Analysis) -> dict[str, Any]:
    """Return what is recommended, by the ids of treatments, or why nothing is."""
    advice = analysis.advice
    return {"hold": advice.hold.name if advice.hold else None, "parts": [_part(one) for one in advice.parts]}


def _part(one: Recommended) -> dict[str, Any]:
    safety = one.safety
    return {
        "loads": [dict(load) for load in one.loads],
        "action": one.choice.kind,
        "take": list(one.choice.take),
        "as_good": list(one.choice.as_good),
        "slower": list(one.slower),
        "lacks": one.step.lack.name if one.step else None,
        "blocks_lacking": (one.step.blocks or None) if one.step else None,
        "durable": safety.durable if safety else None,
        "less_durable_than": list(safety.safer) if safety else [],
    }
