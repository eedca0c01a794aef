"""The metrics of a trial: name, unit, direction, and what they are called in text. Names end in their unit."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dbdyno.model.design import Design


@dataclass(frozen=True)
class Metric:
    """One metric: ``words`` go into a sentence ("+3 % queries per second"), ``heading`` over a column."""

    name: str
    words: str
    heading: str
    unit: str
    more_is_better: bool


def _more(name: str, words: str, heading: str, unit: str) -> Metric:
    return Metric(name, words, heading, unit, more_is_better=True)


def _less(name: str, words: str, heading: str, unit: str) -> Metric:
    return Metric(name, words, heading, unit, more_is_better=False)


def _by_name(*metrics: Metric) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics}


# What a trial may carry.
METRICS: dict[str, Metric] = _by_name(
    _more("queries_per_second", "queries per second", "queries/s", "1/s"),
    _more("events_per_second", "events per second", "events/s", "1/s"),
    _more("new_orders_per_minute", "new orders per minute", "new orders/min", "1/min"),
    _more("rows_per_second", "rows per second", "rows/s", "1/s"),
    _more("megabytes_per_second", "MB per second", "MB/s", "MB/s"),
    _more("iops", "I/O operations per second", "IOPS", "1/s"),
    _more("seeks_per_second", "seeks per second", "seeks/s", "1/s"),
    _more("write_megabytes_per_second", "MB per second written by blocks", "write MB/s", "MB/s"),
    _more("rewrite_megabytes_per_second", "MB per second rewritten", "rewrite MB/s", "MB/s"),
    _more("read_megabytes_per_second", "MB per second read by blocks", "read MB/s", "MB/s"),
    _more("file_creates_per_second", "files created per second", "creates/s", "1/s"),
    _more("file_stats_per_second", "files looked at per second", "stats/s", "1/s"),
    _more("file_deletes_per_second", "files deleted per second", "deletes/s", "1/s"),
    _more("figure_more", "of the program's figure", "figure", "1"),
    _less("figure_less", "of the program's figure", "figure", "1"),
    _more("achieved_ratio", "of the offered rate", "achieved/offered", "1"),
    _less("seconds_real", "seconds", "seconds", "s"),
    _less("seconds_user", "client user seconds", "user s", "s"),
    _less("seconds_sys", "client system seconds", "sys s", "s"),
    _less("latency_ms_mean", "mean latency", "mean ms", "ms"),
    _less("latency_ms_p50", "median latency", "p50 ms", "ms"),
    _less("latency_ms_p95", "95th percentile latency", "p95 ms", "ms"),
    _less("latency_ms_p99", "99th percentile latency", "p99 ms", "ms"),
    _less("latency_ms_p999", "99.9th percentile latency", "p99.9 ms", "ms"),
    _less("latency_ms_max", "largest latency", "max ms", "ms"),
    _less("stall_seconds_max", "longest time without a finished event", "longest stall s", "s"),
    _less("stalled_ratio", "of whole seconds without a finished event", "seconds stalled", "1"),
    _less("client_cpu_us_per_query", "client CPU per query", "client us/query", "us"),
    _less("server_cpu_us_per_query", "server CPU per query", "server us/query", "us"),
    _less("written_bytes_per_query", "bytes written per query", "written B/query", "B"),
    _less("read_bytes_per_query", "bytes read per query", "read B/query", "B"),
    _less("reads_per_query", "reads from the device per query", "reads/query", "1"),
    _less("writes_per_query", "writes to the device per query", "writes/query", "1"),
    _less("flushes_per_query", "flushes of the device per query", "flushes/query", "1"),
    _less("fsyncs_per_query", "fsyncs of InnoDB per query", "fsyncs/query", "1"),
    _less("voluntary_switches_per_query", "voluntary context switches per query", "vol cs/query", "1"),
    _less("involuntary_switches_per_query", "involuntary context switches per query", "invol cs/query", "1"),
    _less("instructions_per_query", "instructions per query", "instr/query", "1"),
    _less("cycles_per_query", "processor cycles per query", "cycles/query", "1"),
    _less("cache_misses_per_query", "cache misses per query", "cache misses/query", "1"),
    _less("branch_misses_per_query", "mispredicted branches per query", "branch misses/query", "1"),
    # Of a replica that follows the server.
    _less("replica_wait_ms_mean", "mean wait of a commit for the replica", "replica wait ms", "ms"),
    _less("replica_lag_ms_mean", "mean lag of the replica", "lag ms", "ms"),
    _less("replica_lag_ms_max", "largest lag of the replica", "lag max ms", "ms"),
    _less("replica_catch_up_ms", "time until the replica has all after the load", "catch-up ms", "ms"),
    # Of a cluster, whose first node has the load.
    _more("cluster_commits_per_second", "write sets per second", "write sets/s", "1/s"),
    _less("ordering_ms_mean", "mean time until all nodes have a write set", "ordering ms", "ms"),
    _less("flow_control_paused_ratio", "of the time paused by flow control", "paused", "1"),
    _less("receive_queue_mean", "mean length of the longest receive queue", "receive queue", "1"),
    _less("certification_failures", "write sets that failed certification", "cert. failures", "1"),
    _less("cluster_catch_up_ms", "time until all nodes have applied all after the load", "cluster catch-up ms", "ms"),
    _less("errors", "errors", "errors", "1"),
    _less("reconnects", "reconnects", "reconnects", "1"),
    # iostat's, of a simulated stack: w/s, w_await, avgrq-sz, aqu-sz.
    _more("writes_per_second", "writes per second at the device", "w/s", "1/s"),
    _less("write_wait_ms_mean", "mean wait of a write at the device", "w_await ms", "ms"),
    _more("request_bytes_mean", "bytes of a request", "request B", "B"),
    _less("queue_requests_mean", "requests in the queue at a time", "aqu-sz", "1"),
    # Of the block trace, reads and writes together.
    _less("queue_ms_mean", "mean time in the block queue", "queue ms", "ms"),
    _less("queue_ms_p99", "99th percentile time in the block queue", "queue p99 ms", "ms"),
    _less("device_ms_mean", "mean time in the device", "device ms", "ms"),
    _less("device_ms_p99", "99th percentile time in the device", "device p99 ms", "ms"),
    _less("flush_ms_mean", "mean time of a flush in the device", "flush ms", "ms"),
    _less("seek_bytes_mean", "mean distance between requests", "seek B", "B"),
    _more("sorted_run_requests_mean", "requests in a sorted run", "sorted run", "1"),
    _more("device_depth_mean", "requests in the device at a time", "depth", "1"),
)

# What is judged beside the primary metric unless the study names others.
SECONDARY = (
    "queries_per_second",
    "latency_ms_p99",
    "client_cpu_us_per_query",
    "server_cpu_us_per_query",
    "written_bytes_per_query",
)

# What each query costs the server and its disks, as a group of its own; all are less the better.
COSTS = (
    "server_cpu_us_per_query",
    "voluntary_switches_per_query",
    "involuntary_switches_per_query",
    "reads_per_query",
    "read_bytes_per_query",
    "writes_per_query",
    "written_bytes_per_query",
    "flushes_per_query",
    "fsyncs_per_query",
    "instructions_per_query",
    "cycles_per_query",
    "cache_misses_per_query",
    "branch_misses_per_query",
)
OF_PROCESSOR = COSTS[-4:]  # what only its counters tell

_LATENCY = "latency_ms_"
LATENCIES = tuple(name for name in METRICS if name.startswith(_LATENCY))
# As names of metrics end -> which share of events does not exceed the figure: "p" and the digits behind "0.".
PERCENTILES: dict[str, float] = {
    end: float(f"0.{end[1:]}") for name in LATENCIES if (end := name.removeprefix(_LATENCY))[1:].isdecimal()
}
LATENCY_PERCENTILES: dict[str, float] = {f"{_LATENCY}{end}": share for end, share in PERCENTILES.items()}


@dataclass(frozen=True)
class FigureStep:
    """How far a source's figures of a metric lie apart: in the metric's unit, or as a part of the figure, or both."""

    absolute: float = 0.0
    relative: float = 0.0  # the width of a bucket of its histogram


def _percentile_steps(relative: float) -> dict[str, FigureStep]:
    return dict.fromkeys(LATENCY_PERCENTILES, FigureStep(relative=relative))


# An HdrHistogram of d digits tells apart half of the least power of two from 2 * 10^d on in each octave.
HDR_OF_3_DIGITS, HDR_OF_2_DIGITS = 1 / 1024, 1 / 128
# sysbench's sb_logger.c: 1024 values from .001 to 100,000 ms, evenly in the logarithm; sb_histogram.c rounds to one.
SYSBENCH_BUCKET = math.log(1e5 / 1e-3) / 1023
FIO_BUCKET = 1 / 64  # fio's stat.h: FIO_IO_U_PLAT_BITS is 6, so an octave has 64 buckets; a percentile is their middle

# What each program's figures come in, by the kind that its load is stored under. What is not here is told exactly, or
# has a step that is found in the figures.
STEPS_OF_PROGRAMS: dict[str, dict[str, FigureStep]] = {
    "sysbench": {
        **dict.fromkeys(LATENCY_PERCENTILES, FigureStep(absolute=0.001, relative=SYSBENCH_BUCKET)),
        "latency_ms_mean": FigureStep(absolute=0.01),
        "latency_ms_max": FigureStep(absolute=0.01),
        "seconds_real": FigureStep(absolute=0.0001),
    },
    "fio": {**_percentile_steps(FIO_BUCKET), "seconds_real": FigureStep(absolute=0.001)},
    "mysqlslap": {"seconds_real": FigureStep(absolute=0.001)},
    "bonnie": {},
    "command": {},
    "dump": {},
}
STEPS_OF_OURS: dict[str, FigureStep] = {  # dbdyno-load and the simulator
    **_percentile_steps(HDR_OF_3_DIGITS),
    "stall_seconds_max": FigureStep(absolute=0.1),  # counted in tenths of a second
}
STEPS_OF_TRACE: dict[str, FigureStep] = dict.fromkeys(
    ("queue_ms_p99", "device_ms_p99"), FigureStep(relative=HDR_OF_2_DIGITS)
)


def steps_of(kind: str) -> dict[str, FigureStep]:
    """Return what the figures of a load of this kind come in, by metric; of a kind that is not named, as of ours."""
    return {**STEPS_OF_PROGRAMS.get(kind, STEPS_OF_OURS), **STEPS_OF_TRACE}


def steps_to_store(kind: str, metrics: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the same of the metrics that a trial has, as it is kept with the trial: a later dbdyno may not know."""
    return {name: asdict(step) for name, step in steps_of(kind).items() if name in metrics}


def step_stated(load: Mapping[str, Any], name: str) -> FigureStep:
    """Return what a trial's figures of a metric come in: as stored with its load, or else by the load's kind."""
    stored = load.get("steps")
    if not isinstance(stored, Mapping):
        return steps_of(str(load.get("kind"))).get(name, FigureStep()) if load.get("kind") else FigureStep()
    steps = part_of(stored, name)
    return FigureStep(*(max(0.0, _finite(steps.get(part))) for part in ("absolute", "relative")))


def _finite(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def percentile_of(name: str) -> float | None:
    """Return which share of the events does not exceed a metric's figure; ``None`` of what is no latency percentile."""
    return LATENCY_PERCENTILES.get(name)


SECONDS_PER_1000 = "seconds_per_1000_queries"
# What tables are published in: a trial's metrics and what follows from them.
REPORTED_METRICS: dict[str, Metric] = METRICS | _by_name(
    _less(SECONDS_PER_1000, "seconds per 1,000 queries", "s/1,000", "s"),
)


def metric_of(design: Design) -> Metric:
    """Return what the verdicts of a design are about; a program's own figure goes by the study's unit."""
    metric = METRICS[design.metric]
    if not design.unit or not design.metric.startswith("figure_"):
        return metric
    return replace(metric, words=design.unit, heading=design.unit, unit=design.unit)


# What a run folder holds: figures and tables of them, which an old one may lack, and a damaged one may hold otherwise.


def value_of(metrics: Mapping[str, object], name: str) -> float:
    """Return the value, or NaN where a trial doesn't carry it or carries nonsense."""
    value = metrics.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan


def or_zero(value: float) -> float:
    """Return a figure, and 0 for one that is not known."""
    return value if math.isfinite(value) else 0.0


def known_values(tables: Iterable[Mapping[str, object]], name: str) -> list[float]:
    """Return the values of those tables that carry it."""
    return [value for table in tables if math.isfinite(value := value_of(table, name))]


def mean_or_nan(values: Iterable[float]) -> float:
    """Return the mean of those that are known; NaN where none is."""
    known = [value for value in values if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan


def part_of(mapping: object, *path: str) -> Mapping[str, Any]:
    """Return a mapping inside another; an empty one where there is none."""
    for name in path:
        mapping = mapping.get(name) if isinstance(mapping, Mapping) else None
    return mapping if isinstance(mapping, Mapping) else {}
