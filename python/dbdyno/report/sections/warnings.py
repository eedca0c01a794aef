"""What changes how far a result is to be trusted, a line each. All of it stands in full in other sections."""

from collections.abc import Iterator, Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.load_checks import generator_lateness_ms
from dbdyno.model.metrics import part_of
from dbdyno.model.wording import count, number
from dbdyno.report.crash import crash_warnings, names_of
from dbdyno.report.document import Abridged, Details, Paragraph, Section, bullets
from dbdyno.report.notes import (
    awake_lines,
    cache_text,
    external_server_lines,
    failures_met,
    families_line,
    filesystem_lines,
    filling_json,
    filling_line,
    host_speed_json,
    host_speed_lines,
    how_it_ended,
    machine_lines,
    not_granted_lines,
    overload_text,
    run_notes,
    settle_lines,
    smart_lines,
    step_lines,
    warm_up_lines,
    warm_up_warning,
)
from dbdyno.report.reasons import overhead_lines, totals_text
from dbdyno.report.sections.client_hosts import limited_lines
from dbdyno.report.sections.interference import interference_summary, others_lines
from dbdyno.report.sections.stability import regime_remarks
from dbdyno.report.sections.stopped import why_it_stopped
from dbdyno.report.sentences import by_interest
from dbdyno.report.source import Source
from dbdyno.store.records import Run

LINES_MAX = 4  # where a reader has ten seconds


def section(source: Source) -> Section:
    """Return the lines, folded on a page, which counts them in its line of trust; in brief the first of many."""
    lines = warnings_of(source)
    left = len(lines) - LINES_MAX
    short = [*lines[:LINES_MAX], *([f"{count(left, 'more warning')} with --details."] if left > 0 else [])]
    folded = (Details("Warnings", bullets(lines), len(lines), id="s-warnings"),) if lines else ()
    shown = Abridged(folded, _warning_paragraphs(lines), _warning_paragraphs(short))
    data = {"pools_filling": filling_json(source.analysis.pools_filling)}
    return Section("warnings", "", (shown,), data=data, opening=True)


def warnings_of(source: Source) -> list[str]:
    """Return every warning of a run once, those that do most harm first."""
    return list(dict.fromkeys([*_of_cuts(source), *warning_lines(source.run, source.analysis)]))


def _of_cuts(source: Source) -> list[str]:
    if source.safety is None:
        return []
    return list(crash_warnings(source.safety, names_of(source.run.design.treatments)))


def _warning_paragraphs(lines: Sequence[str]) -> tuple[Paragraph, ...]:
    return tuple(Paragraph(line, "warning") for line in lines)


def warning_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return the lines, what concerns the whole run first; none where the result can be taken as it stands."""
    return [*_of_the_run(run, analysis), *_of_treatments(run, analysis), *_of_comparisons(analysis)]


def _of_the_run(run: Run, analysis: Analysis) -> Iterator[str]:
    if run.ended != "done":
        yield how_it_ended(run)
    if run.scale:
        yield f"Run at scale {run.scale}: smaller than the study."
    if run.stopped == "budget":
        yield why_it_stopped(run, analysis)
    if run.extended_from is not None:
        yield f"Extended from {count(run.extended_from, 'block')} after its results could be seen."
    if run.failures:
        what = "its attempt does" if len(run.failures) == 1 else "their attempts do"
        yield f"{count(len(run.failures), 'trial')} failed; {what} not count."
    if any(trial.disturbed for row in analysis.blocks.trials.values() for trial in row.values()):
        yield interference_summary(run, analysis)
    yield from not_granted_lines(run, analysis)
    if line := filling_line(run.design, analysis.pools_filling):
        yield line
    yield from warm_up_warning(analysis)
    yield from limited_lines(analysis.client_hosts)


def _of_treatments(run: Run, analysis: Analysis) -> Iterator[str]:
    for row in analysis.treatments:
        yield from filter(None, (overload_text(row), cache_text(row), *regime_remarks(analysis, (row.id,))))
    for treatment in run.design.treatments:
        trials = analysis.blocks.of(treatment.id)
        yield from failures_met(treatment.label, trials)
        if late := generator_lateness_ms(trials):
            yield f"{treatment.label}: the load generator was late by up to {number(late)} ms, which is in its latency."


def _of_comparisons(analysis: Analysis) -> Iterator[str]:
    for comparison in by_interest(analysis.verdicts, analysis):
        verdict = comparison.verdict
        carry_over = verdict.carry_over
        if carry_over is not None and carry_over.seen:
            what = "was removed" if carry_over.taken_out else "may be in the figures"
            yield f"{comparison.name}: carry-over from trial to trial {what}."
        if totals := totals_text(verdict.totals, verdict.blocks):
            yield f"{comparison.name}: {totals[0].lower()}{totals[1:]}"
        if verdict.exaggeration.notable:
            factor = f"{verdict.exaggeration.factor:.1f}"
            yield f"{comparison.name}: with so few blocks the effect may be overstated about {factor} times."


# Notes: deviations from the plan, what the data say about themselves, and what watching them cost.


def notes_section(source: Source) -> Section:
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
    notes = (part_of(trial.observed, layer).get("note") for trial in run.trials for layer in trial.observed)
    return list(dict.fromkeys(note for note in notes if isinstance(note, str)))


def note_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return deviations, what the data say about themselves, and what watching them cost."""
    compared = {id_ for verdict in analysis.verdicts for id_ in (verdict.level_id, verdict.baseline_id)}
    alone = [row for row in analysis.treatments if row.id not in compared]
    behind = [text for row in alone for text in (overload_text(row), cache_text(row)) if text]
    of_the_host = [
        *external_server_lines(run),
        *machine_lines(run),
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
        *step_lines(run.design),
        *warm_up_lines(analysis),
        *behind,
        *run_notes(run, analysis),
        *families,
        *of_the_host,
    ]
