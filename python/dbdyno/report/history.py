"""Runs of a study through time, in words and rows: what changed when, how much, and what differs there."""

import math
from collections.abc import Iterator
from typing import Any

from dbdyno.analysis.blocks import RefusedError
from dbdyno.analysis.history import MIN_RUNS, ChangeInTime, Course, RunHistory
from dbdyno.analysis.lateness import EmulatedCpu, LateDisk
from dbdyno.analysis.two_runs import HostShift, Interference, OtherHost
from dbdyno.analysis.verdict.reasons import UnequalFailures
from dbdyno.model.word import Word
from dbdyno.model.wording import capital, count, listed, margin_text, number, percent, percent_range
from dbdyno.report.charts import history as chart
from dbdyno.report.comparison import OTHER_HOST
from dbdyno.report.document import Block, Document, Paragraph, Section, Table, bullets
from dbdyno.report.reasons import cause_text, reason_text, resolution_text
from dbdyno.report.source import effect_values

_HOST = "nothing that dbdyno knows of differs between these two runs: the host changed, or what dbdyno does not record"
_NAMED = 3  # differences beside a change
_NOTES = (
    (
        "A run is one value: the mean of its blocks. A change is what the last three runs or more show against all"
        " since the change before, by how far runs lie apart, asked anew after each run; of histories without a change,"
        " at most 5 % ever name one. Its interval is that of this change alone."
    ),
    (
        "Runs are not interleaved in time: a change includes what the host did. To judge a change by itself, make it a"
        " factor of one study, or name a treatment that should not change by --control."
    ),
)


def document(history: RunHistory, since: int = 0) -> Document:
    """Return the report; changes since the run at the place ``since`` are listed."""
    late = {course.label: [change for change in course.changes if change.after >= since] for course in history.courses}
    changes = [(course, change) for course in history.courses for change in late[course.label]]
    headline = headline_of(history, late, since)
    drawn = chart.chart(history)
    opening: tuple[Block, ...] = (Paragraph(headline, "headline"), *([drawn] if drawn else []))
    sections = (
        Section("headline", "", opening, data={"headline": headline}, opening=True),
        Section("changes", "Changes", bullets([_sentence(history, course, change) for course, change in changes])),
        Section("courses", "Treatments", (_table(history),)),
        Section("yardstick", "How far runs lie apart", bullets([_yardstick(course) for course in history.courses])),
        Section("notes", "Notes", bullets([*_lacking(history), *_NOTES])),
    )
    return Document("History", (), sections, _values(history, late, since))


def headline_of(history: RunHistory, late: dict[str, list[ChangeInTime]], since: int) -> str:
    """Return in one paragraph what changed, or that nothing did."""
    runs = f"{count(len(history.names), 'run')} from {_day(history, 0)} to {_day(history, len(history.names) - 1)}"
    moved = [f"{label} {_brief(history, changes[-1])}" for label, changes in late.items() if changes]
    still = [label for label, changes in late.items() if not changes and label not in history.alone]
    from_ = f" since {history.names[since]}" if since else ""
    parts = [f"{'; '.join(moved)}."] if moved else []
    if still:
        parts.append(f"No change named{from_} of {listed(still, 4)}.")
    if history.alone:
        parts.append(f"Too few runs to name a change of {listed(history.alone, 4)}.")
    return f"{runs}: {' '.join(parts)}"


def place_of(history: RunHistory, since: str | None) -> int:
    """Return the place of the run that a name, a folder or a date stands for: the first not before it.

    Raises ``RefusedError`` where there is none.
    """
    if since is None:
        return 0
    if since in history.names:
        return history.names.index(since)
    is_date = since[:4].isdecimal() and since[4:5] == "-"
    for place, time in enumerate(history.times):
        if is_date and time >= since:
            return place
    raise RefusedError("no such run", name=since, known=history.names)


def _brief(history: RunHistory, change: ChangeInTime) -> str:
    size = percent(abs(change.effect.value), sign=False)
    word = {Word.FASTER: f"{size} faster", Word.SLOWER: f"{size} slower"}.get(change.word, f"moved by {size}")
    within = f", within {margin_text(history.margin)}" if change.word is Word.EQUIVALENT else ""
    doubt = ", which is undecided" if change.word is Word.UNDECIDED else ""
    unknown = "" if change.distinctions or doubt else ", where nothing known differs"
    return f"{word} since {history.names[change.after]}{within}{doubt}{unknown}"


def _sentence(history: RunHistory, course: Course, change: ChangeInTime) -> str:
    interval = percent_range(change.effect.low, change.effect.high) if change.effect.bounded else "unknown"
    words = f"{percent(change.effect.value)} {history.metric.words}"
    between = f"between {history.names[change.before]} and {history.names[change.after]}"
    named = f"named with {history.names[change.found]}"
    what = (
        f"Known to differ there: {listed(list(change.distinctions), _NAMED)}."
        if change.distinctions
        else f"{_HOST[0].upper()}{_HOST[1:]}."
    )
    doubt = f"{capital(why)}. " if (why := _doubt(history, change)) else ""
    return f"{course.label}: {change.word}, {words} (95 % interval {interval}) {between}, {named}. {doubt}{what}"


def _doubt(history: RunHistory, change: ChangeInTime) -> str:
    """Return why a change has not the word that its figures give; empty where it has."""
    measured = f"as measured it is {change.measured}, but"
    match change.withheld_for:
        case Interference() as met:
            of_runs = f"{met.disturbed:,} of {count(met.trials, 'trial')} of the runs {met.run} it"
            return f"{measured} interference met {of_runs}"
        case HostShift():
            return f"{measured} another treatment, in which nothing is known to differ, changed then too"
        case OtherHost():
            return f"{measured} {OTHER_HOST}"
        case UnequalFailures() | LateDisk() | EmulatedCpu() as cause:
            return f"{measured} {cause_text(cause)}"
        case _:
            return resolution_text(change.resolution, history.margin) if change.word is Word.UNDECIDED else ""


def _table(history: RunHistory) -> Table:
    rows = []
    for course in history.courses:
        ends = [*(change.after for change in course.changes), len(history.names)]
        begin = course.points[0].run if course.points else 0
        for level, end in zip(course.levels, ends, strict=False):
            shown = f"{history.names[begin]} to {history.names[end - 1]}"
            interval = f"{number(level.low)} to {number(level.high)}" if level.bounded else "unknown"
            rows.append((course.label, shown, str(level.n), number(level.value), interval))
            begin = end
    heading = f"times {history.control}" if history.control else history.metric.heading
    return Table("Levels between changes", ("treatment", "runs", "number", heading, "95 % interval"), tuple(rows))


def _yardstick(course: Course) -> str:
    inside = (
        f", of which the noise inside runs explains {_sd(course.inside_sd)}" if math.isfinite(course.inside_sd) else ""
    )
    pairs = (
        f"{count(course.pairs, 'pair')} of runs in a row that nothing distinguishes (A/A): {_sd(course.pairs_sd)}"
        if course.pairs
        else "no two runs in a row are known to be the same (A/A), so the host's part is unknown"
    )
    return f"{course.label}: {_sd(course.run_sd)} from run to run (standard deviation){inside}; {pairs}."


def _sd(value: float) -> str:
    return percent(value, sign=False) if math.isfinite(value) else "unknown"


def _lacking(history: RunHistory) -> Iterator[str]:
    if history.alone:
        yield (
            f"{listed(history.alone, 4)}: of fewer than {MIN_RUNS} runs there is no spread to hold a change against;"
            " run the study more often, or compare two runs (dbdyno compare)."
        )
    for course in history.courses:
        for place, obstacle in course.without_figures:
            yield f"{history.names[place]} is left out: {reason_text(obstacle)}."


def _day(history: RunHistory, place: int) -> str:
    return history.times[place][:10] or history.names[place]


def _values(history: RunHistory, late: dict[str, list[ChangeInTime]], since: int) -> dict[str, Any]:
    """Return all of it for programs; ``verdicts`` are the changes since ``since``, as of a run or a comparison."""
    names = history.names
    return {
        "metric": history.metric.name,
        "more_is_better": history.metric.more_is_better,
        "margin": history.margin,
        "control": history.control,
        "since": names[since],
        "runs": [{"name": name, "began": time} for name, time in zip(names, history.times, strict=True)],
        "verdicts": [
            {
                "level": f"{course.label} since {names[change.after]}",
                "baseline": "before",
                "verdict": change.word,
                **effect_values(change.effect),
                "reason": _doubt(history, change) or f"named with {names[change.found]}",
                "treatment": course.label,
                "last_before": names[change.before],
                "first_after": names[change.after],
                "named_with": names[change.found],
                "p": change.p,
                "distinctions": list(change.distinctions),
            }
            for course in history.courses
            for change in late[course.label]
        ],
        "treatments": [
            {
                "label": course.label,
                "points": [
                    {
                        "run": names[point.run],
                        "value": math.exp(point.value),
                        "error": point.error,
                        "blocks": point.blocks,
                        "values": [math.exp(log) for log in point.logs],
                    }
                    for point in course.points
                ],
                "levels": [effect_values(level, "value") for level in course.levels],
                "changes": len(course.changes),
                "run_sd": course.run_sd,
                "inside_sd": course.inside_sd,
                "pairs_sd": course.pairs_sd,
                "pairs": course.pairs,
            }
            for course in history.courses
        ],
    }
