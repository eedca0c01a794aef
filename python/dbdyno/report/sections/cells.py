"""The table by cell: a row for each circumstance, a column for each level compared; seconds, seconds per 1,000, ratios.

This is the shape of tables that are posted: load and clients downwards, disks or schedulers across.
"""

import math
from collections.abc import Callable

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.reported import times_as_fast, times_as_fast_estimated
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.treatment import level_label
from dbdyno.model.wording import number
from dbdyno.report.document import Paragraph, Section, Table
from dbdyno.report.source import Source

NOTE = "Means over trials; how many times as fast a level is, with its 95 % interval, is from the ratios inside blocks."
_Value = Callable[[TreatmentSummary], float]

LEVELS_MAX = 3  # with seconds as well as seconds per 1,000; of more there is one of them
TIME_BOUND = 1.05  # loads whose longest trial is no more than so many times the shortest were bounded by time


def section(source: Source) -> Section | None:
    """Return the table, where every comparison is of the same factor and there are several cells."""
    table = cells(source.analysis)
    return Section("cells", "By cell", (table, Paragraph(NOTE, "soft"))) if table else None


def cells(analysis: Analysis) -> Table | None:
    """Return the table; None where the comparisons differ in several factors, or all stand in one cell."""
    summaries = {row.id: row for row in analysis.treatments}
    factor = _compared_factor(analysis.verdicts, summaries)
    if not factor:
        return None
    levels = list(dict.fromkeys(row.levels[factor] for row in analysis.treatments))
    grouped: dict[str, dict[str, TreatmentSummary]] = {}
    for row in analysis.treatments:
        grouped.setdefault(_cell(row, factor), {})[row.levels[factor]] = row
    if len(grouped) < 2:  # noqa: PLR2004 - one cell is the table of results
        return None
    baselines = {summaries[verdict.baseline_id].levels[factor] for verdict in analysis.verdicts}
    others = [level for level in levels if level not in baselines or len(baselines) > 1]
    columns = _figures(analysis, len(levels))
    of = {verdict.level_id: verdict for verdict in analysis.verdicts}
    headings = ("", *(f"{level} {unit}" for unit, _ in columns for level in levels))
    rows = []
    for name, found in grouped.items():
        figures = [number(value(found[level])) if level in found else "-" for _, value in columns for level in levels]
        times = [_times(of.get(found[level].id), analysis) if level in found else "-" for level in others]
        rows.append((name, *figures, *times))
    return Table("By cell", (*headings, *(f"{level}: times as fast" for level in others)), tuple(rows))


def _compared_factor(verdicts: list[Finding], summaries: dict[str, TreatmentSummary]) -> str:
    """Return the one factor in which every planned comparison differs; empty if they differ in others or several."""
    differ = [
        {
            name
            for name, level in summaries[verdict.level_id].levels.items()
            if summaries[verdict.baseline_id].levels.get(name) != level
        }
        for verdict in verdicts
    ]
    found = set().union(*differ)
    everywhere = all(found <= row.levels.keys() for row in summaries.values())
    return found.pop() if len(found) == 1 and everywhere else ""


def _cell(row: TreatmentSummary, factor: str) -> str:
    return " / ".join(level_label(*each) for each in row.levels.items() if each[0] != factor)


def _figures(analysis: Analysis, levels: int) -> list[tuple[str, _Value]]:
    """Return what is shown of each treatment: unit and value."""
    seconds = [row.seconds_real_mean for row in analysis.treatments if math.isfinite(row.seconds_real_mean)]
    found: list[tuple[str, _Value]] = []
    if seconds and max(seconds) > TIME_BOUND * min(seconds):
        found.append(("s", lambda row: row.seconds_real_mean))
    if analysis.metric.name == "queries_per_second":
        found.append(("s/1,000", lambda row: 1000 / row.queries_per_second if row.queries_per_second > 0 else math.nan))
    else:
        found.append((analysis.metric.heading, lambda row: row.metric_mean))
    return found if levels <= LEVELS_MAX else found[:1]


def _times(verdict: Finding | None, analysis: Analysis) -> str:
    if verdict is None or not verdict.effect.known:
        return "-"
    middle = times_as_fast_estimated(verdict.effect, analysis.metric)
    if not verdict.effect.bounded:
        return number(middle)
    low, high = times_as_fast(verdict.effect, analysis.metric)
    return f"{number(middle)} ({number(low)} to {number(high)})"
