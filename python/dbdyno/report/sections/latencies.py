"""Percentiles of latency of each treatment, of whole events and of each kind of statement in them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from dbdyno.model.wording import number
from dbdyno.report.document import Abridged, Details, Paragraph, Section, Table
from dbdyno.report.findings import Findings
from dbdyno.report.recorded import figure, part
from dbdyno.store.records import Trial

EVENT = "event"  # what a client does at a time: a statement, a transaction, a block of a script
_PERCENTILES = {"p50": "p50 ms", "p95": "p95 ms", "p99": "p99 ms", "p999": "p99.9 ms"}
_NOTE = (
    "Percentiles are from the full histogram of each trial and given as means over trials; max is the largest of all"
    " trials. An event's latency runs from when it was due; a statement's from the reply before it, and that of the"
    " first of an event from when the event was due."
)


def section(findings: Findings) -> Section | None:
    """Return the table, of loads of dbdyno's own: other programs' figures are a section of their own."""
    analysis = findings.analysis
    rows = [(row, found) for row in analysis.treatments for found in latencies_of(analysis.blocks.of(row.id))]
    if not rows:
        return None
    headings = ("treatment", "of", "number", *_PERCENTILES.values(), "max ms")
    cells = tuple((row.label, str(found["of"]), f"{found['count']:,}", *_times(found)) for row, found in rows)
    table = Table("Percentiles of latency, of events and of each kind of statement", headings, cells)
    note = Paragraph(_NOTE, "soft")
    data = {"latencies": [{"treatment": row.id, **found} for row, found in rows]}
    block = Abridged((Details("Percentiles of events and of each kind of statement", (table, note)),), (table, note))
    return Section("latencies", "Latencies", (block,), data=data)


def latencies_of(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    """Yield name, number and latencies (ms) of events and, where an event has several kinds, of each statement."""
    kinds = dict.fromkeys(name for trial in trials for name in part(trial.load, "operations"))
    events = [part(trial.load, "latency_ns") for trial in trials]
    parts = {name: [part(part(trial.load, "operations"), name) for trial in trials] for name in kinds}
    for name, summaries in {EVENT: events, **(parts if len(parts) > 1 else {})}.items():
        counted = [one for one in summaries if figure(one, "count")]
        if counted:
            yield {"of": name, "count": int(sum(one["count"] for one in counted)), **_milliseconds(counted)}


def _milliseconds(summaries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found = {}
    for name in _PERCENTILES:
        known = [value for one in summaries if (value := figure(one, name)) is not None]
        found[f"latency_ms_{name}"] = fmean(known) / 1e6 if known else math.nan
    largest = (figure(one, "max") for one in summaries)
    return {**found, "latency_ms_max": max((value / 1e6 for value in largest if value is not None), default=math.nan)}


def _times(found: Mapping[str, Any]) -> Iterator[str]:
    for name in (*_PERCENTILES, "max"):
        yield number(found[f"latency_ms_{name}"])
