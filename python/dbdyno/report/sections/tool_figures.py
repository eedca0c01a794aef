"""All that a program not of dbdyno reported, as means over the trials of each treatment."""

import math
from statistics import fmean

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.metrics import METRICS, value_of
from dbdyno.model.wording import number
from dbdyno.report.document import Abridged, Paragraph, Section, Table
from dbdyno.report.source import Source

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
LATENCIES = (
    "latency_ms_mean",
    "latency_ms_p50",
    "latency_ms_p95",
    "latency_ms_p99",
    "latency_ms_p999",
    "latency_ms_max",
)


def section(source: Source) -> Section:
    """Return what a program not of dbdyno reported, if one was run."""
    analysis = source.analysis
    found = means(analysis)
    data = {"figures": [{"treatment": id_, "metrics": each} for id_, each in found.items()] or None}
    if not found:
        return Section("figures", "Figures", data=data)
    names = [name for name in (*OF_PROGRAMS, *LATENCIES) if any(name in each for each in found.values())]
    known = METRICS | {analysis.metric.name: analysis.metric}
    rows = (
        (row.label, *(number(found.get(row.id, {}).get(name, math.nan)) for name in names))
        for row in analysis.treatments
    )
    headings = ("treatment", *(known[name].heading for name in names))
    table = Table("What the program reported for each treatment", headings, tuple(rows))
    note = Abridged((Paragraph("What the program reported, as means over the trials of each treatment.", "soft"),))
    return Section("figures", "Figures", (note, table), data=data)


def means(analysis: Analysis) -> dict[str, dict[str, float]]:
    """Return treatment -> metric -> mean of the trials that have it; empty where the load was dbdyno's own."""
    found: dict[str, dict[str, float]] = {}
    for row in analysis.treatments:
        trials = analysis.blocks.of(row.id)
        for name in (*OF_PROGRAMS, *LATENCIES):
            known = [value for trial in trials if math.isfinite(value := value_of(trial.metrics, name))]
            if known:
                found.setdefault(row.id, {})[name] = fmean(known)
    return found if any(set(OF_PROGRAMS) & set(each) for each in found.values()) else {}
