"""The metrics of a trial: what they are called, their unit, and whether more is better."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbdyno.analysis.wording import UNKNOWN
from dbdyno.store.records import METRICS, Design


@dataclass(frozen=True)
class Metric:
    """One metric: ``words`` go into a sentence ("+3 % queries per second"), ``heading`` over a column."""

    name: str
    words: str
    heading: str
    unit: str
    more_is_better: bool


_WORDS: dict[str, tuple[str, str, str]] = {
    "queries_per_second": ("queries per second", "queries/s", "1/s"),
    "events_per_second": ("events per second", "events/s", "1/s"),
    "rows_per_second": ("rows per second", "rows/s", "1/s"),
    "megabytes_per_second": ("MB per second", "MB/s", "MB/s"),
    "iops": ("I/O operations per second", "IOPS", "1/s"),
    "seeks_per_second": ("seeks per second", "seeks/s", "1/s"),
    "write_megabytes_per_second": ("MB per second written by blocks", "write MB/s", "MB/s"),
    "rewrite_megabytes_per_second": ("MB per second rewritten", "rewrite MB/s", "MB/s"),
    "read_megabytes_per_second": ("MB per second read by blocks", "read MB/s", "MB/s"),
    "file_creates_per_second": ("files created per second", "creates/s", "1/s"),
    "file_stats_per_second": ("files looked at per second", "stats/s", "1/s"),
    "file_deletes_per_second": ("files deleted per second", "deletes/s", "1/s"),
    "figure_more": ("of the program's figure", "figure", "1"),
    "figure_less": ("of the program's figure", "figure", "1"),
    "achieved_ratio": ("of the offered rate", "achieved/offered", "1"),
    "seconds_real": ("seconds", "seconds", "s"),
    "seconds_user": ("client user seconds", "user s", "s"),
    "seconds_sys": ("client system seconds", "sys s", "s"),
    "latency_ms_mean": ("mean latency", "mean ms", "ms"),
    "latency_ms_p50": ("median latency", "p50 ms", "ms"),
    "latency_ms_p95": ("95th percentile latency", "p95 ms", "ms"),
    "latency_ms_p99": ("99th percentile latency", "p99 ms", "ms"),
    "latency_ms_p999": ("99.9th percentile latency", "p99.9 ms", "ms"),
    "latency_ms_max": ("largest latency", "max ms", "ms"),
    "client_cpu_us_per_query": ("client CPU per query", "client us/query", "us"),
    "server_cpu_us_per_query": ("server CPU per query", "server us/query", "us"),
    "written_bytes_per_query": ("bytes written per query", "written B/query", "B"),
    "read_bytes_per_query": ("bytes read per query", "read B/query", "B"),
    "errors": ("errors", "errors", "1"),
    "reconnects": ("reconnects", "reconnects", "1"),
    "queue_ms_mean": ("mean time in the block queue", "queue ms", "ms"),
    "queue_ms_p99": ("99th percentile time in the block queue", "queue p99 ms", "ms"),
    "device_ms_mean": ("mean time in the device", "device ms", "ms"),
    "device_ms_p99": ("99th percentile time in the device", "device p99 ms", "ms"),
    "flush_ms_mean": ("mean time of a flush in the device", "flush ms", "ms"),
    "seek_bytes_mean": ("mean distance between requests", "seek B", "B"),
    "sorted_run_requests_mean": ("requests in a sorted run", "sorted run", "1"),
    "device_depth_mean": ("requests in the device at a time", "depth", "1"),
}


def metric(name: str) -> Metric:
    """Return the metric of that name; one that has no words yet is called by its name.

    Raises:
        KeyError: ``METRICS`` doesn't know it, so nobody can say whether more is better.

    """
    words, heading, unit = _WORDS.get(name, (name.replace("_", " "), name, ""))
    return Metric(name, words, heading, unit, METRICS[name])


def metric_of(design: Design) -> Metric:
    """Return what the verdicts of a design are about; a program's own figure goes by the study's unit."""
    found = metric(design.metric)
    if not design.unit or not design.metric.startswith("figure_"):
        return found
    return replace(found, words=design.unit, heading=design.unit, unit=design.unit)


def value_of(metrics: Mapping[str, float], name: str) -> float:
    """Return the value, or NaN where a trial doesn't carry it or carries nonsense."""
    value = metrics.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan


def number(value: float) -> str:
    """Return a plain figure, never an exponent: four significant digits from 1 on, three below: 4.426, 0.0871."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(0, 3 - magnitude if magnitude >= 0 else 2 - magnitude)
    return f"{value:,.{min(decimals, 6)}f}"
