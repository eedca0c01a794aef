"""Where along the versions of a study its loads changed, in a line for each step, a table, and values."""

from typing import Any

from dbdyno.analysis.change_points import Along, Step
from dbdyno.analysis.versions import AlongVersions
from dbdyno.model.wording import count, listed, number, percent, percent_range
from dbdyno.report.document import Abridged, Cell, Paragraph, Section, Table, bullets
from dbdyno.report.source import Source, effect_values, marked

LEFT_OUT_MAX = 8  # loads that are named; JSON has them all
_HEADING = "Which version changed it?"
_NOTE = (
    "Relative to the first version; intervals (95 %) hold together for all loads and steps. They are a family of their"
    " own, beside the verdicts: with 95 % every step that is named is one, however many loads there are. Among {tests}"
    " in each of {loads} the largest t that chance makes, versions being permuted inside blocks, is {critical}."
)


def section(source: Source) -> Section | None:
    """Return the steps; nothing where the study has no three versions, or its words are withheld."""
    along = source.analysis.versions
    if along is None:
        return None
    steps = lines(along)
    names = [name for name, load in zip(along.names, along.changes.loads, strict=True) if not load.steps]
    still = f"No step was found in {count(len(names), 'load')}." if names and len(along.names) > 1 else ""
    said = [*steps, *([still] if still else [])] if steps else ["No step was found along the versions."]
    if along.left_out:
        said.append(f"Verdicts in doubt, so no step is named: {listed(along.left_out, LEFT_OUT_MAX)}.")
    note = _NOTE.format(
        tests=count(along.changes.tests, "difference"),
        loads=count(len(along.names), "load"),
        critical=number(along.changes.critical),
    )
    shown = Abridged((*bullets(said), _table(along), Paragraph(note, "soft")), bullets(said))
    heading = marked(_HEADING, source.run)
    return Section("along-versions", heading, (shown,), data={"along_versions": _values(along)})


def lines(along: AlongVersions) -> list[str]:
    """Return a sentence for each step, by load."""
    return [
        _sentence(along, name, step)
        for name, load in zip(along.names, along.changes.loads, strict=True)
        for step in load.steps
    ]


def _sentence(along: AlongVersions, name: str, step: Step) -> str:
    first, last = along.levels[step.first], along.levels[step.last]
    certain = "" if step.last == step.first + 1 else f" (for certain between {first} and {last})"
    interval = f" (95 % interval {percent_range(step.effect.low, step.effect.high)})" if step.effect.bounded else ""
    place = f"from {along.levels[step.at]} to {along.levels[step.at + 1]}{certain}"
    return f"{name}{': ' if name else ''}{step.word}, {percent(step.effect.value)}{interval} {place}."


def _table(along: AlongVersions) -> Table:
    headings = ("load", *along.levels)
    rows = tuple((name or "all", *_cells(load)) for name, load in zip(along.names, along.changes.loads, strict=True))
    return Table("Relative to the first version", headings, rows)


def _cells(load: Along) -> list[str | Cell]:
    return [
        Cell(
            percent(level.value),
            percent_range(level.low, level.high) if level.bounded else "interval unknown",
            any(step.at + 1 == place for step in load.steps),
        )
        for place, level in enumerate(load.levels)
    ]


def _values(along: AlongVersions) -> dict[str, Any]:
    return {
        "factor": along.factor,
        "levels": list(along.levels),
        "critical_t": along.changes.critical,
        "left_out": list(along.left_out),
        "loads": [
            {
                "name": name,
                "blocks": load.blocks,
                "levels": [effect_values(level) for level in load.levels],
                "steps": [
                    {
                        "between": [along.levels[step.first], along.levels[step.last]],
                        "from": along.levels[step.at],
                        "to": along.levels[step.at + 1],
                        **effect_values(step.effect),
                        "verdict": step.word,
                        "p": step.p,
                    }
                    for step in load.steps
                ],
            }
            for name, load in zip(along.names, along.changes.loads, strict=True)
        ],
    }
