"""What was read back from the kernel and the server, per treatment: what differs first, then what is the same."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.printable import one_line
from dbdyno.report.document import Abridged, Block, Details, Paragraph, Section, Table
from dbdyno.report.source import Source

VALUE_MAX = 160  # characters
UNOBSERVED = "not read back"
SIMULATED_NOTE = "As the simulator had it in each trial, what the study does not say included."
NOTE = "Read back from the kernel and the server in each trial, not copied from the study."


def section(source: Source) -> Section | None:
    """Return what differs between treatments and what is the same for all; a page alone has the room for it."""
    analysis = source.analysis
    found = settings(analysis)
    if not found:
        return None
    headings = ("setting", *(row.label for row in analysis.treatments if row.n))
    differing = tuple((name, *values) for name, values in found.items() if len(set(values)) > 1)
    same = tuple((name, values[0]) for name, values in found.items() if len(set(values)) == 1)
    shown: list[Block] = [Paragraph(SIMULATED_NOTE if source.run.is_simulated else NOTE, "soft")]
    if differing:
        table = Table("Settings that differ between treatments", headings, differing, "settings")
        shown.append(Details("What differs between treatments", (table,), len(differing), open=True))
    if same:
        table = Table("Settings that are the same for all treatments", (), same)
        shown.append(Details("What is the same for all", (table,), len(same)))
    return Section("observed", "What was observed", (Abridged(tuple(shown)),))


def settings(analysis: Analysis) -> dict[str, list[str]]:
    """Return what usable trials read back of each treatment, by name; a value that changed shows all it had."""
    seen: dict[str, dict[str, list[str]]] = {}
    for treatment in analysis.treatments:
        for trial in analysis.blocks.of(treatment.id):
            for name, value in flattened(trial.observed).items():
                values = seen.setdefault(name, {}).setdefault(treatment.id, [])
                if value not in values:
                    values.append(value)
    return {
        name: [" then ".join(values.get(row.id, [UNOBSERVED])) for row in analysis.treatments if row.n]
        for name, values in sorted(seen.items())
    }


def flattened(value: Any, prefix: str = "") -> dict[str, str]:  # noqa: ANN401 - whatever JSON can hold
    """Return nested mappings as ``{"queue.scheduler": "none"}``, every value as a short text."""
    if not isinstance(value, dict):
        return {prefix: _text(value)}
    flat: dict[str, str] = {}
    for key in sorted(value, key=str):
        flat |= flattened(value[key], f"{prefix}.{key}" if prefix else str(key))
    return flat


def _text(value: object) -> str:
    match value:
        case True | False:
            return "yes" if value else "no"
        case None:
            return "none"
        case float():
            text = f"{value:.6g}"
        case list() | tuple():
            text = ", ".join(_text(item) for item in value)
        case _:
            text = str(value)
    text = one_line(text)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"
