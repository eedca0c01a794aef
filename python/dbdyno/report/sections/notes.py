"""Notes: deviations from the plan, what the data say about themselves, and what watching them cost."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.report.document import Section, bullets
from dbdyno.report.notes import (
    awake_lines,
    external_server_lines,
    families_line,
    filesystem_lines,
    host_speed_json,
    host_speed_lines,
    run_notes,
    settle_lines,
    smart_lines,
    warm_up_lines,
)
from dbdyno.report.overhead import overhead_lines
from dbdyno.report.remarks import cache_text, overload_text
from dbdyno.report.sections.interference import others_lines
from dbdyno.report.source import Source, part
from dbdyno.store.records import Run


def section(source: Source) -> Section:
    """Return a line for each note."""
    lines = note_lines(source.run, source.analysis)
    return Section(
        "notes",
        "Notes",
        bullets(lines),
        data={"notes": lines, "host_speed": host_speed_json(source.analysis.host_speed)},
    )


def layer_lines(run: Run) -> list[str]:
    """Return what the layers of the trials say of themselves that bears on all figures, each once."""
    notes = (part(trial.observed, layer).get("note") for trial in run.trials for layer in trial.observed)
    return list(dict.fromkeys(note for note in notes if isinstance(note, str)))


def note_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return deviations, what the data say about themselves, and what watching them cost."""
    compared = {id_ for verdict in analysis.verdicts for id_ in (verdict.level_id, verdict.baseline_id)}
    alone = [row for row in analysis.treatments if row.id not in compared]
    behind = [text for row in alone for text in (overload_text(row), cache_text(row)) if text]
    of_the_host = [
        *external_server_lines(run),
        *layer_lines(run),
        *filesystem_lines(run),
        *others_lines(run, analysis),
        *smart_lines(run),
        *overhead_lines(run),
        *host_speed_lines(analysis.host_speed),
        *awake_lines(run),
    ]
    families = [line] if (line := families_line(analysis)) else []
    return [
        *run.notes,
        *settle_lines(run.design),
        *warm_up_lines(analysis),
        *behind,
        *run_notes(run, analysis),
        *families,
        *of_the_host,
    ]
