"""The tables of results: by treatment, by cell, by tool, and the attempts that failed."""

import math
from collections.abc import Callable
from dataclasses import asdict
from statistics import fmean
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.reported import times_as_fast, times_as_fast_estimated
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import level_label
from dbdyno.model.metrics import LATENCIES, METRICS, value_of
from dbdyno.model.wording import UNKNOWN, number
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Table, bullets
from dbdyno.report.sentences import LETTERS_HEADING, effect_text, has_letters, ties_text
from dbdyno.report.source import Source, effect_values, fields

# The table in the shape people post: time, rate and effect of each treatment.


RATES = ("queries_per_second", "events_per_second", "rows_per_second")
_OWN_COLUMN = ("seconds_real", "latency_ms_p99")  # which the table has anyhow


def results_section(source: Source) -> Section:
    """Return a row for each treatment."""
    analysis = source.analysis
    words = analysis.metric.words
    note = (
        "min, avg and max are over the trials; latencies and CPU are means over trials. The effect is the difference in"
        f" {words} from the baseline, inside blocks, as the verdict on both has it."
    )
    letters: tuple[Block, ...] = (
        (Paragraph(line, "soft"),) if (line := ties_text(analysis.ties, "treatments", words)) else ()
    )
    data = {"treatments": [treatment_json(row, analysis) for row in analysis.treatments]}
    return Section("results", "Results", (results(analysis), Abridged((Paragraph(note, "soft"),)), *letters), data=data)


def client_text(real: float, user: float, sys: float) -> str:
    """Return ``"2.03/0.011/0.000"``, with as many digits as ``time`` prints; ``"unknown"`` if none is known."""
    values = ((real, 2), (user, 3), (sys, 3))
    if not any(math.isfinite(value) for value, _ in values):
        return UNKNOWN
    return "/".join(f"{value:,.{digits}f}" if math.isfinite(value) else "-" for value, digits in values)


def results(analysis: Analysis) -> Table:
    """Return a row for each treatment; the rate is what verdicts are about, else that of queries."""
    name, metric, lettered = _rate(analysis), analysis.metric, has_letters(analysis)
    known = METRICS | {metric.name: metric}
    headings = (
        *("treatment", "trials", "min s", "avg s", "max s", "client real/user/sys s"),
        *([known[name].heading] if name else []),
        *("p99 ms", "effect (95 % interval)"),
        *([LETTERS_HEADING] if lettered else []),
    )
    rows = tuple(
        (
            f"{row.label} (dropped)" if row.dropped else row.label,
            str(row.n),
            *map(number, (row.seconds_real_min, row.seconds_real_mean, row.seconds_real_max)),
            client_text(row.seconds_real_mean, row.seconds_user, row.seconds_sys),
            *([number(getattr(row, name) if name in RATES else row.metric_mean)] if name else []),
            number(row.latency_ms["latency_ms_p99"]),
            effect_text(row.effect, is_baseline=row.is_baseline),
            *([analysis.ties.letters.get(row.id) or "-"] if lettered else []),
        )
        for row in analysis.treatments
    )
    return Table(f"Time, {metric.words} and effect of each treatment", headings, rows, "results", marked=True)


def _rate(analysis: Analysis) -> str:
    """Return what stands in the column of rates; empty where the load had no queries and the metric its own column."""
    name = analysis.metric.name
    if name in RATES:
        return name
    if any(math.isfinite(row.queries_per_second) for row in analysis.treatments):
        return RATES[0]
    return "" if name in _OWN_COLUMN else name


def treatment_json(row: TreatmentSummary, analysis: Analysis) -> dict[str, Any]:
    """Return a row of the table as values; those that are unknown are not finite yet."""
    return {
        **fields(row, "id label levels"),
        "baseline": row.is_baseline,
        "dropped": row.dropped,
        "trials": row.n,
        "failures": row.failures,
        **fields(row, "seconds_real_min seconds_real_mean seconds_real_max seconds_user seconds_sys metric_mean"),
        "metric_geometric_mean": effect_values(row.metric, "value"),
        **fields(row, "queries_per_second events_per_second rows_per_second"),
        **row.latency_ms,
        **fields(row, "client_cpu_us_per_query server_cpu_us_per_query errors reconnects"),
        "overload": asdict(row.overload) if row.overload else None,
        **effect_values(row.effect),
        "letters": analysis.ties.letters.get(row.id, ""),
    }


# The table by cell: a row for each circumstance, a column for each level compared; seconds, seconds per 1,000, ratios.
#
# This is the shape of tables that are posted: load and clients downwards, disks or schedulers across.


NOTE = "Means over trials; how many times as fast a level is, with its 95 % interval, is from the ratios inside blocks."
_Value = Callable[[TreatmentSummary], float]

LEVELS_MAX = 3  # with seconds as well as seconds per 1,000; of more there is one of them
TIME_BOUND = 1.05  # loads whose longest trial is no more than so many times the shortest were bounded by time


def cells_section(source: Source) -> Section | None:
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
    for name, by_level in grouped.items():
        figures = [
            number(value(by_level[level])) if level in by_level else "-" for _, value in columns for level in levels
        ]
        times = [_times(of.get(by_level[level].id), analysis) if level in by_level else "-" for level in others]
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
    factors = set().union(*differ)
    everywhere = all(factors <= row.levels.keys() for row in summaries.values())
    return factors.pop() if len(factors) == 1 and everywhere else ""


def _cell(row: TreatmentSummary, factor: str) -> str:
    return " / ".join(level_label(*each) for each in row.levels.items() if each[0] != factor)


def _figures(analysis: Analysis, levels: int) -> list[tuple[str, _Value]]:
    """Return what is shown of each treatment: unit and value."""
    seconds = [row.seconds_real_mean for row in analysis.treatments if math.isfinite(row.seconds_real_mean)]
    figures: list[tuple[str, _Value]] = []
    if seconds and max(seconds) > TIME_BOUND * min(seconds):
        figures.append(("s", lambda row: row.seconds_real_mean))
    if analysis.metric.name == "queries_per_second":
        figures.append(
            ("s/1,000", lambda row: 1000 / row.queries_per_second if row.queries_per_second > 0 else math.nan)
        )
    else:
        figures.append((analysis.metric.heading, lambda row: row.metric_mean))
    return figures if levels <= LEVELS_MAX else figures[:1]


def _times(verdict: Finding | None, analysis: Analysis) -> str:
    if verdict is None or not verdict.effect.known:
        return "-"
    middle = times_as_fast_estimated(verdict.effect, analysis.metric)
    if not verdict.effect.bounded:
        return number(middle)
    low, high = times_as_fast(verdict.effect, analysis.metric)
    return f"{number(middle)} ({number(low)} to {number(high)})"


# All that a program not of dbdyno reported, as means over the trials of each treatment.


# What only such programs report; a run that has one of them gets the table.
OF_PROGRAMS = (
    "megabytes_per_second",
    "iops",
    "write_megabytes_per_second",
    "rewrite_megabytes_per_second",
    "read_megabytes_per_second",
    "seeks_per_second",
    "file_creates_per_second",
    "file_stats_per_second",
    "file_deletes_per_second",
    "figure_more",
    "figure_less",
)


def tool_figures_section(source: Source) -> Section:
    """Return what a program not of dbdyno reported, if one was run."""
    analysis = source.analysis
    by_treatment = means(analysis)
    data = {"figures": [{"treatment": id_, "metrics": metrics} for id_, metrics in by_treatment.items()] or None}
    if not by_treatment:
        return Section("figures", "Figures", data=data)
    names = [name for name in (*OF_PROGRAMS, *LATENCIES) if any(name in metrics for metrics in by_treatment.values())]
    known = METRICS | {analysis.metric.name: analysis.metric}
    rows = (
        (row.label, *(number(by_treatment.get(row.id, {}).get(name, math.nan)) for name in names))
        for row in analysis.treatments
    )
    headings = ("treatment", *(known[name].heading for name in names))
    table = Table("What the program reported for each treatment", headings, tuple(rows))
    note = Abridged((Paragraph("Figures that the program reported: means over the trials of each treatment.", "soft"),))
    return Section("figures", "Figures", (note, table), data=data)


def means(analysis: Analysis) -> dict[str, dict[str, float]]:
    """Return treatment -> metric -> mean of the trials that have it; empty where the load was dbdyno's own."""
    by_treatment: dict[str, dict[str, float]] = {}
    for row in analysis.treatments:
        trials = analysis.blocks.of(row.id)
        for name in (*OF_PROGRAMS, *LATENCIES):
            known = [value for trial in trials if math.isfinite(value := value_of(trial.metrics, name))]
            if known:
                by_treatment.setdefault(row.id, {})[name] = fmean(known)
    return by_treatment if any(set(OF_PROGRAMS) & set(metrics) for metrics in by_treatment.values()) else {}


# Trials that failed: what, where, why.


def failures_section(source: Source) -> Section:
    """Return a line for each of them: what, where, why."""
    failures, labels = source.run.failures, source.run.design.labels
    lines = [
        f"{failure.id} ({labels.get(failure.treatment, failure.treatment)}, block {failure.block},"
        f" attempt {failure.attempt}): {failure.cause}"
        for failure in failures
    ]
    values = [{"trial": failure.id, **fields(failure, "treatment block attempt cause")} for failure in failures]
    return Section("failures", "Failed trials", bullets(lines), data={"failures": values})
