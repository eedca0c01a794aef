"""Percentiles of latency of each treatment, of whole events and of each kind of statement in them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from dbdyno.analysis.percentiles import ABOVE_MIN, PercentileCurve
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.model.metrics import METRICS, PERCENTILES
from dbdyno.model.wording import count, number
from dbdyno.report.charts import percentiles
from dbdyno.report.document import Abridged, Block, Cell, Details, Paragraph, Section, Table
from dbdyno.report.source import Source, effect_values, figure, part
from dbdyno.store.records import Trial

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


def section(source: Source) -> Section | None:
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
        (label, str(latencies["of"]), f"{latencies['count']:,}", *_times(latencies)) for label, latencies in rows
    )
    table, note = Table(_summary(rows), headings, cells), Paragraph(_OF_KINDS, "soft")
    return (Abridged((Details(_summary(rows), (table, note)),), (table, note)),)


def _summary(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    events = any(latencies["of"] == EVENT for _, latencies in rows)
    return f"Percentiles of {'events and of ' if events else ''}each kind of statement"


def latencies_of(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    """Yield name, number and latencies (ms) of events and, where an event has several kinds, of each statement."""
    kinds = dict.fromkeys(name for trial in trials for name in part(trial.load, "operations"))
    events = [part(trial.load, "latency_ns") for trial in trials]
    parts = {name: [part(part(trial.load, "operations"), name) for trial in trials] for name in kinds}
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


def _times(latencies: Mapping[str, Any]) -> Iterator[str]:
    for name in (*_PERCENTILES, "max"):
        yield number(latencies[f"latency_ms_{name}"])
