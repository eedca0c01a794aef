"""The tables of results: by treatment, cell and tool, attempts that failed, and percentiles of latency."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.percentiles import ABOVE_MIN, PercentileCurve
from dbdyno.analysis.reported import times_as_fast, times_as_fast_estimated
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import level_label
from dbdyno.model.metrics import LATENCIES, METRICS, PERCENTILES, part_of, value_of
from dbdyno.model.wording import UNKNOWN, count, number
from dbdyno.report.charts import percentiles
from dbdyno.report.document import Abridged, Block, Cell, Details, Paragraph, Section, Table, bullets
from dbdyno.report.sentences import LETTERS_HEADING, effect_text, has_letters, ties_text
from dbdyno.report.source import Source, effect_values, fields, figure
from dbdyno.store.records import Trial

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


# Percentiles of latency of each treatment, of whole events and of each kind of statement in them.


EVENT = "event"  # what a client does at a time: a statement, a transaction, a block of a script
TABLED = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
_PERCENTILES = {end: METRICS[f"latency_ms_{end}"].heading for end in PERCENTILES}
_OF_EVENTS = (
    "Percentiles of all events of a treatment's usable trials together, each from when it was due. A percentile is left"
    f" out (-) where fewer than {ABOVE_MIN} events stand above it. Elsewhere in this report a percentile is the mean"
    " over trials of each trial's own."
)
_INTERVALS = " Bands and intervals are of 95 %, from how much single trials move the curve."
_OF_KINDS = (
    "Percentiles are from the full histogram of each trial and given as means over trials; max is the largest of all"
    " trials. An event's latency runs from when it was due; a statement's from the reply before it, and that of the"
    " first of an event from when the event was due."
)


def latencies_section(source: Source) -> Section | None:
    """Return the curves and the table, of loads of dbdyno's own: other programs' figures are a section of their own."""
    analysis = source.analysis
    curves = percentiles.shown(analysis)
    rows = [(row, latencies) for row in analysis.treatments for latencies in latencies_of(analysis.blocks.of(row.id))]
    if not rows and not curves:
        return None
    data = {
        "latencies": [{"treatment": row.id, **latencies} for row, latencies in rows],
        "percentiles": [_values(curve) for curve in curves],
    }
    # Where the whole histogram of events is known, their percentiles stand in its table alone.
    known = {curve.treatment for curve in curves}
    others = [(row.label, latencies) for row, latencies in rows if latencies["of"] != EVENT or row.id not in known]
    blocks = (*_of_events(curves, source), *_of_kinds(others))
    return Section("latencies", "Latencies", blocks, data=data)


def _of_events(curves: Sequence[PercentileCurve], source: Source) -> tuple[Block, ...]:
    if not curves:
        return ()
    labels, note = source.run.design.labels, _OF_EVENTS + _lacking(curves)
    return (
        Abridged(
            (
                percentiles.chart(curves, source.run.design),
                Paragraph(note + _INTERVALS, "soft"),
                Details("Percentiles in figures", (_table(curves, labels, _with_interval),)),
            ),
            (_table(curves, labels, lambda estimate: number(estimate.value)), Paragraph(note, "soft")),
        ),
    )


def _lacking(curves: Sequence[PercentileCurve]) -> str:
    """Return of how many trials the histograms are unknown, where they are of any."""
    lacking = sum(curve.without for curve in curves)
    return f" Of {count(lacking, 'trial')} the histogram is unknown." if lacking else ""


def _table(
    curves: Sequence[PercentileCurve], labels: Mapping[str, str], cell: Callable[[Estimate], str | Cell]
) -> Table:
    rows = []
    for curve in curves:
        at = {point.percentile: cell(point.latency_ms) for point in curve.points}
        figures = (at.get(percent, "-") for percent in TABLED)
        rows.append((labels[curve.treatment], f"{curve.events:,}", *figures, number(curve.largest_ms)))
    headings = ("treatment", "events", *(f"p{percent:g} ms" for percent in TABLED), "max ms")
    return Table("Percentiles of latency of events", headings, tuple(rows))


def _with_interval(estimate: Estimate) -> Cell:
    return Cell(
        number(estimate.value), f"{number(estimate.low)} to {number(estimate.high)}" if estimate.bounded else ""
    )


def _values(curve: PercentileCurve) -> dict[str, Any]:
    points = [{"percentile": at.percentile, **effect_values(at.latency_ms, "latency_ms")} for at in curve.points]
    counted = {"events": curve.events, "trials": curve.trials, "trials_without": curve.without}
    return {"treatment": curve.treatment, **counted, "latency_ms_max": curve.largest_ms, "points": points}


def _of_kinds(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Block, ...]:
    if not rows:
        return ()
    headings = ("treatment", "of", "number", *_PERCENTILES.values(), "max ms")
    cells = tuple(
        (label, str(latencies["of"]), f"{latencies['count']:,}", *_percentile_texts(latencies))
        for label, latencies in rows
    )
    table, note = Table(_summary(rows), headings, cells), Paragraph(_OF_KINDS, "soft")
    return (Abridged((Details(_summary(rows), (table, note)),), (table, note)),)


def _summary(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    events = any(latencies["of"] == EVENT for _, latencies in rows)
    return f"Percentiles of {'events and of ' if events else ''}each kind of statement"


def latencies_of(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    """Yield name, number and latencies (ms) of events and, where an event has several kinds, of each statement."""
    kinds = dict.fromkeys(name for trial in trials for name in part_of(trial.load, "operations"))
    events = [part_of(trial.load, "latency_ns") for trial in trials]
    parts = {name: [part_of(trial.load, "operations", name) for trial in trials] for name in kinds}
    for name, summaries in {EVENT: events, **(parts if len(parts) > 1 else {})}.items():
        counted = [summary for summary in summaries if figure(summary, "count")]
        if counted:
            yield {"of": name, "count": int(sum(summary["count"] for summary in counted)), **_milliseconds(counted)}


def _milliseconds(summaries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    latencies = {}
    for name in _PERCENTILES:
        known = [value for summary in summaries if (value := figure(summary, name)) is not None]
        latencies[f"latency_ms_{name}"] = fmean(known) / 1e6 if known else math.nan
    largest = (figure(summary, "max") for summary in summaries)
    return {
        **latencies,
        "latency_ms_max": max((value / 1e6 for value in largest if value is not None), default=math.nan),
    }


def _percentile_texts(latencies: Mapping[str, Any]) -> Iterator[str]:
    for name in (*_PERCENTILES, "max"):
        yield number(latencies[f"latency_ms_{name}"])
