"""What fio prints and logs, as the figures and the series of a trial.

fio(1): "JSON+ OUTPUT", "LOG FILE FORMATS".
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.servers.user import read_log
from dbdyno.workload.histogram import percentiles
from dbdyno.workload.load import Columns
from dbdyno.workload.program import Ended
from dbdyno.workload.tool_load import ToolLoad, client_cpu, positive

INTERVAL_MS = 100
LOGS = ("bw", "iops", "lat")
DIRECTIONS = ("read", "write", "trim")
LOG_BYTES_MAX = 256 * 1024**2

Entry = tuple[int, float, int]  # milliseconds, value, direction (0 read, 1 write, 2 trim)


def read_fio(ended: Ended, home: Path, folder: Path, ahead_ns: int) -> ToolLoad:
    """The load of a run of fio; its logs are kept in ``folder``.

    ``ahead_ns`` is how far the time of day is ahead of the monotonic clock. Raises ``TrialError``.
    """
    run = parse_output(ended.stdout)
    logs = {name: _log(home, folder, name) for name in LOGS}
    figures = fio_figures(run["jobs"])
    seconds = figures["seconds_real"]
    entries = [entry[0] for log in logs.values() for entry in log]
    # fio does not say when it began to measure: an interval before its first log entry, or its runtime before its end.
    start_ns = ended.end_ns - round(seconds * 1e9)
    if entries:
        start_ns = min(entries) * 1_000_000 - INTERVAL_MS * 1_000_000 - ahead_ns
    start_ns = min(max(start_ns, ended.start_ns), ended.end_ns - 1)
    end_ns = min(start_ns + round(seconds * 1e9), ended.end_ns)
    series = log_columns(logs, (start_ns + ahead_ns) / 1e6)
    reported = {
        "kind": "fio",
        "version": run.get("fio version"),
        "directions": {name: _direction(run["jobs"], name) for name in DIRECTIONS if _total(run["jobs"], name)},
        "jobs": [str(job.get("jobname")) for job in run["jobs"]],
        "latency": "from submission to completion",
    }
    return ToolLoad(
        reported=reported,
        window_ns=(start_ns, end_ns),
        figures={**figures, **client_cpu(ended)},
        series=series,
        rate="iops",
        before_seconds=(start_ns - ended.start_ns) / 1e9,
    )


def parse_output(text: str) -> dict[str, Any]:
    """The JSON that fio prints, which notes in plain text may precede. Raises ``TrialError``."""
    try:
        run = json.loads(text[text.index("{") :])
        jobs = run["jobs"]
        failed = [job for job in jobs if job["error"]]
    except (ValueError, KeyError, TypeError) as error:
        raise TrialError(f"fio's output is not what fio writes: {error!r}") from None
    if failed:
        raise TrialError(f"fio: job {failed[0].get('jobname')}: error {failed[0]['error']}")
    if not jobs:
        raise TrialError("fio ran no job")
    return dict(run)


def fio_figures(jobs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Throughput (MB/s, decimal), IOPS and latencies over all jobs and directions; latencies by fio's histogram.

    Its buckets, and so how coarse a percentile is, stand in ``model.metrics``.
    """
    seconds = positive(_seconds(jobs, DIRECTIONS), "fio's runtime")
    operations = sum(_total(jobs, name) for name in DIRECTIONS)
    moved = sum(int(job[name]["io_bytes"]) for job in jobs for name in DIRECTIONS if name in job)
    found = {
        "seconds_real": seconds,
        "megabytes_per_second": moved / 1e6 / seconds,
        "iops": positive(operations / seconds, "IOPS"),
    }
    latencies = [job[name]["lat_ns"] for job in jobs for name in DIRECTIONS if name in job]
    latencies = [one for one in latencies if one.get("N")]
    if latencies:
        count = sum(one["N"] for one in latencies)
        found["latency_ms_mean"] = math.fsum(one["mean"] * one["N"] for one in latencies) / count / 1e6
        found["latency_ms_max"] = max(one["max"] for one in latencies) / 1e6
        bins: defaultdict[int, int] = defaultdict(int)
        for one in latencies:
            for at_ns, times in one.get("bins", {}).items():
                bins[int(at_ns)] += int(times)
        values = percentiles(bins)
        found |= {f"latency_ms_{name}": min(value / 1e6, found["latency_ms_max"]) for name, value in values.items()}
    return found


def log_columns(logs: Mapping[str, Sequence[Entry]], start_ms: float) -> Columns:
    """The series of a run: MB/s, IOPS and mean latency of each interval, over all jobs and directions.

    Each job logs by itself: what ended in the same interval is added up, and latencies are averaged by direction,
    weighted with its IOPS. An interval without an entry had no I/O.
    """
    by_name = {name: _gathered(entries, start_ms) for name, entries in logs.items()}
    last = max((index for found in by_name.values() for index in found), default=-1)
    series: dict[str, list[float]] = {"t_s": [], "megabytes_per_second": [], "iops": [], "latency_ms_mean": []}
    for index in range(last + 1):
        moved, operations, late = (by_name.get(name, {}).get(index, {}) for name in LOGS)
        done = {way: math.fsum(values) for way, values in operations.items()}
        weights = {way: done.get(way, 0.0) for way in late}
        means = {way: math.fsum(values) / len(values) for way, values in late.items()}
        weight = math.fsum(weights.values())
        series["t_s"].append((index + 1) * INTERVAL_MS / 1000)
        series["megabytes_per_second"].append(math.fsum(v for values in moved.values() for v in values) * 1024 / 1e6)
        series["iops"].append(math.fsum(done.values()))
        mean = math.fsum(means[way] * weights[way] for way in means) / weight if weight else math.nan
        series["latency_ms_mean"].append(mean / 1e6)
    return {name: list(values) for name, values in series.items()}


def _gathered(entries: Sequence[Entry], start_ms: float) -> dict[int, dict[int, list[float]]]:
    """Interval -> direction -> values; an entry stands at the end of its interval."""
    found: dict[int, dict[int, list[float]]] = {}
    for at_ms, value, way in entries:
        index = max(0, round((at_ms - start_ms) / INTERVAL_MS) - 1)
        found.setdefault(index, {}).setdefault(way, []).append(value)
    return found


def parse_log(text: str) -> list[Entry]:
    """The entries of a log: ``time (ms), value, direction, ...`` on each line. Raises ``TrialError``."""
    try:
        rows = [line.split(",") for line in text.splitlines() if line.strip()]
        return [(int(row[0]), float(row[1]), int(row[2])) for row in rows]
    except (ValueError, IndexError) as error:
        raise TrialError(f"fio's log is not what fio writes: {error}") from None


def _log(home: Path, folder: Path, name: str) -> list[Entry]:
    content = read_log(home / "log" / f"fio_{name}.log", LOG_BYTES_MAX)
    if content is None:
        return []
    (folder / f"fio_{name}.log").write_bytes(content)
    return parse_log(content.decode(errors="replace"))


def _most(jobs: Sequence[Mapping[str, Any]], direction: str, field: str) -> float:
    return max((float(job[direction][field]) for job in jobs if direction in job), default=0.0)


def _seconds(jobs: Sequence[Mapping[str, Any]], directions: Sequence[str]) -> float:
    """How long jobs ran: those of a group beside each other, groups one after the other (``stonewall``)."""
    groups: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for job in jobs:
        groups[int(job.get("groupid", 0))].append(job)
    return sum(max(_most(group, name, "runtime") for name in directions) for group in groups.values()) / 1000


def _total(jobs: Sequence[Mapping[str, Any]], direction: str) -> int:
    return sum(int(job[direction]["total_ios"]) for job in jobs if direction in job)


def _direction(jobs: Sequence[Mapping[str, Any]], name: str) -> dict[str, float]:
    """What a trial keeps of one direction of a mix."""
    moved = sum(int(job[name]["io_bytes"]) for job in jobs if name in job)
    return {"operations": _total(jobs, name), "bytes": moved, "seconds": _seconds(jobs, (name,))}
