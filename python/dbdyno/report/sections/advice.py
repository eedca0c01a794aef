"""What to do, right below the headline."""

from typing import Any

from dbdyno.analysis.advice.advise import Recommended
from dbdyno.analysis.analyse import Analysis
from dbdyno.report.advice import advice_text
from dbdyno.report.document import Paragraph, Section
from dbdyno.report.findings import Findings


def section(findings: Findings) -> Section:
    """Return one paragraph, and what it says as values."""
    text = advice_text(findings.run, findings.analysis)
    data = {"advice": {"text": text, **advice_json(findings.analysis)}}
    return Section("advice", "", (Paragraph(text, "advice"),), data=data, opening=True)


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
