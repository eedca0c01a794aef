"""All that a program not of dbdyno reported, as means over the trials of each treatment."""

import math
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.metrics import METRICS, value_of
from dbdyno.model.wording import number
from dbdyno.report.document import Abridged, Paragraph, Section, Table
from dbdyno.report.findings import Findings

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


def section(findings: Findings) -> Section:
    """Return what a program not of dbdyno reported, if one was run."""
    analysis = findings.analysis
    headings = figure_headings(analysis)
    note = Abridged((Paragraph("What the program reported, as means over the trials of each treatment.", "soft"),))
    table = Table("What the program reported for each treatment", headings, tuple(figure_rows(analysis)))
    data = {"figures": figures_json(analysis)}
    return Section("figures", "Figures", (note, table) if headings else (), data=data)


def means(analysis: Analysis) -> dict[str, dict[str, float]]:
    """Return treatment -> metric -> mean of the trials that have it; empty where the load was dbdyno's own."""
    found: dict[str, dict[str, float]] = {}
    for row in analysis.treatments:
        trials = analysis.blocks.of(row.id)
        for name in (*OF_PROGRAMS, *LATENCIES):
            known = [value for trial in trials if math.isfinite(value := value_of(trial.metrics, name))]
            if known:
                found.setdefault(row.id, {})[name] = math.fsum(known) / len(known)
    has_one = any(set(OF_PROGRAMS) & set(each) for each in found.values())
    return found if has_one else {}


def figure_headings(analysis: Analysis) -> tuple[str, ...]:
    """Return the headings of the table; empty where there is none."""
    names = _names(means(analysis))
    return ("treatment", *(_heading(name, analysis) for name in names)) if names else ()


def figure_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return one row of texts for each treatment, as ``figure_headings``."""
    found = means(analysis)
    names = _names(found)
    if not names:
        return []
    return [
        (row.label, *(number(found.get(row.id, {}).get(name, math.nan)) for name in names))
        for row in analysis.treatments
    ]


def figures_json(analysis: Analysis) -> list[dict[str, Any]] | None:
    """Return treatment and metrics of each row; None where the load was dbdyno's own."""
    found = means(analysis)
    return [{"treatment": id_, "metrics": each} for id_, each in found.items()] or None


def _names(found: dict[str, dict[str, float]]) -> list[str]:
    return [name for name in (*OF_PROGRAMS, *LATENCIES) if any(name in each for each in found.values())]


def _heading(name: str, analysis: Analysis) -> str:
    return analysis.metric.heading if name == analysis.metric.name else METRICS[name].heading
