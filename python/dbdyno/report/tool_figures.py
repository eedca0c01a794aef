"""All that a program of somebody else's told of itself, as means over the trials of each treatment."""

import math
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.metrics import metric, number, value_of

HEADING = "Figures"
# What only such programs tell; a run that has one of them gets the table.
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


def means(analysis: Analysis) -> dict[str, dict[str, float]]:
    """Return treatment -> metric -> mean of the trials that tell it; empty where the load was dbdyno's own."""
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
    return ("level", *(_heading(name, analysis) for name in names)) if names else ()


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
    return analysis.metric.heading if name == analysis.metric.name else metric(name).heading
