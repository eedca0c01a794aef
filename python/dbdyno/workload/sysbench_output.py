"""What sysbench 1.0 prints, as the figures and the series of a trial."""

import re
from collections.abc import Sequence

from dbdyno.errors import TrialError
from dbdyno.workload.histogram import percentiles
from dbdyno.workload.load import Columns
from dbdyno.workload.program import Ended
from dbdyno.workload.tool_load import ToolLoad, client_cpu, positive

PERCENTILE = 99  # of each interval
_INTERVAL = re.compile(
    r"\[ (?P<t_s>\d+)s \] thds: \d+ tps: (?P<tps>[\d.]+) qps: (?P<qps>[\d.]+) .*"
    r"lat \(ms,99%\): (?P<p99>[\d.]+) err/s: (?P<errors>[\d.]+) reconn/s: (?P<reconnects>[\d.]+)"
)
_QUEUE = re.compile(r"\[ \d+s \] queue length: (\d+), concurrency: \d+")
_BUCKET = re.compile(r"\s*(\d+\.\d+) \|\**\s+(\d+)")
_TOTALS = {
    "events": re.compile(r"^\s*transactions:\s+(\d+)", re.MULTILINE),
    "queries": re.compile(r"^\s*queries:\s+(\d+)", re.MULTILINE),
    "errors": re.compile(r"^\s*ignored errors:\s+(\d+)", re.MULTILINE),
    "reconnects": re.compile(r"^\s*reconnects:\s+(\d+)", re.MULTILINE),
    "seconds": re.compile(r"^\s*total time:\s+([\d.]+)s", re.MULTILINE),
    "mean_ms": re.compile(r"^\s*avg:\s+([\d.]+)", re.MULTILINE),
    "max_ms": re.compile(r"^\s*max:\s+([\d.]+)", re.MULTILINE),
}
STARTED = "Threads started!"


def read_sysbench(ended: Ended) -> ToolLoad:
    """The load of a run of sysbench. Raises ``TrialError``."""
    text, lines = ended.stdout, ended.lines()
    totals = totals_of(text)
    figures = sysbench_figures(text)
    start_ns = next((at_ns for at_ns, line in lines if line.startswith(STARTED)), ended.start_ns)
    end_ns = min(start_ns + round(totals["seconds"] * 1e9), ended.end_ns)
    reported = {
        "kind": "sysbench",
        **{name: round(totals[name]) for name in ("events", "queries", "reconnects")},
        "errors_ignored": round(totals["errors"]),
    }
    return ToolLoad(
        reported=reported,
        window_ns=(start_ns, end_ns),
        figures={**figures, **client_cpu(ended, totals["queries"])},
        series=intervals([line for _, line in lines]),
        rate="queries_per_second",
        queries=totals["queries"],
        before_seconds=(start_ns - ended.start_ns) / 1e9,
    )


def totals_of(text: str) -> dict[str, float]:
    """The numbers of the last report. Raises ``TrialError`` where one is missing."""
    found = {name: pattern.search(text) for name, pattern in _TOTALS.items()}
    if lacking := [name for name, match in found.items() if match is None]:
        raise TrialError(f"sysbench's output is not what sysbench 1.0 writes: no {', '.join(lacking)}")
    return {name: float(match[1]) for name, match in found.items() if match}


def sysbench_figures(text: str) -> dict[str, float]:
    """Rates, latencies (ms), errors. Percentiles come from the histogram, whose buckets ``model.metrics`` has."""
    totals = totals_of(text)
    seconds = positive(totals["seconds"], "sysbench's total time")
    found = {
        "queries_per_second": positive(totals["queries"], "sysbench's number of queries") / seconds,
        "events_per_second": totals["events"] / seconds,
        "seconds_real": seconds,
        "errors": totals["errors"],
        "reconnects": totals["reconnects"],
    }
    if totals["events"]:
        buckets = histogram(text)
        found |= {"latency_ms_mean": totals["mean_ms"], "latency_ms_max": totals["max_ms"]}
        # A bucket's value may lie above the greatest that was seen.
        found |= {f"latency_ms_{name}": min(value, totals["max_ms"]) for name, value in percentiles(buckets).items()}
    return found


def histogram(text: str) -> dict[float, int]:
    """Milliseconds -> how many events."""
    buckets: dict[float, int] = {}
    for line in text.splitlines():
        if match := _BUCKET.fullmatch(line.rstrip()):
            value = float(match[1])
            buckets[value] = buckets.get(value, 0) + int(match[2])
    return buckets


def intervals(lines: Sequence[str]) -> Columns:
    """The series: one value a second; ``backlog`` where a rate was offered."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if match := _INTERVAL.match(line):
            row = {
                "t_s": match["t_s"],
                "events_per_second": match["tps"],
                "queries_per_second": match["qps"],
                "latency_ms_p99": match["p99"],
                "errors_per_second": match["errors"],
                "reconnects_per_second": match["reconnects"],
            }
            for name, value in row.items():
                found.setdefault(name, []).append(float(value))
        elif match := _QUEUE.match(line):
            found.setdefault("backlog", []).append(float(match[1]))
    if len(found.get("backlog", [])) != len(found.get("t_s", [])):
        found.pop("backlog", None)
    return {name: list(values) for name, values in found.items()}
