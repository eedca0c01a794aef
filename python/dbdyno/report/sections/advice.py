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
        "faster": [treatment.id for treatment in choice.faster],
    }


def advice_json(analysis: Analysis) -> dict[str, Any]:
    """Return what is recommended, by the ids of treatments, or why nothing is."""
    advice = analysis.advice
    return {"hold": advice.hold.name if advice.hold else None, "parts": [_part(part) for part in advice.parts]}


def _part(part: Recommended) -> dict[str, Any]:
    safety = part.safety
    return {
        "loads": [dict(load) for load in part.loads],
        "action": part.choice.kind,
        "take": list(part.choice.take),
        "as_good": list(part.choice.as_good),
        "slower": list(part.slower),
        "lacks": part.step.lack.name if part.step else None,
        "blocks_lacking": (part.step.blocks or None) if part.step else None,
        "durable": safety.durable if safety else None,
        "less_durable_than": list(safety.safer) if safety else [],
    }
