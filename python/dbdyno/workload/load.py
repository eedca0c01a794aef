"""What a load came to: scalars, series and latencies; and how long one may run."""

import csv
import json
import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from dbdyno._native import histogram_log
from dbdyno.errors import TrialError
from dbdyno.model.metrics import METRICS, PERCENTILES
from dbdyno.model.results import Summary
from dbdyno.store.records import TrialLoad
from dbdyno.study.document import WorkloadSection

FILES = ("load.json", "load.csv", "latency.hlog")  # of a trial's folder: what dbdyno-load writes


@dataclass(frozen=True)
class LatencyCounts:
    """How often each latency was met: values in ns, ascending, each the upper end of its bucket; and what they are."""

    values: list[float]
    counts: list[float]
    summary: Summary

    @classmethod
    def from_native(cls, met: tuple[bytes, bytes, str]) -> "LatencyCounts":
        """As the native part says it."""
        values, counts, summary = met
        return cls(array("d", values).tolist(), array("d", counts).tolist(), json.loads(summary))

    def columns(self) -> "Columns":
        """As a trial keeps it: ``latency_ns``, ascending, and ``count``; nothing of nothing."""
        return {"latency_ns": self.values, "count": self.counts} if self.values else {}


NO_LATENCIES = LatencyCounts([], [], {})


HALVES_INTERVALS_MIN = 6  # fewer say nothing of two halves
RATES = ("events", "queries", "rows", "errors", "reconnects")  # counted in each interval
LATENCIES = ("mean", "p50", "p95", "p99", "max")  # of the events that ended in it
TEXTS = ("phase",)

Columns = dict[str, list[float] | list[str]]


@dataclass(frozen=True)
class LoadResult:
    """The result of one measured run."""

    result: TrialLoad
    series: dict[str, list[float]]  # column -> one value per interval; t_ns on the monotonic clock
    phase: list[str]  # which part of its work the load was at, per interval; empty texts for a load without
    met: LatencyCounts = NO_LATENCIES  # latencies of events

    @property
    def window_ns(self) -> tuple[int, int]:
        """Start and end of measuring on the monotonic clock."""
        clock = self.result["clock"]
        return int(clock["measure_start_ns"]), int(clock["measure_end_ns"])

    @property
    def queries(self) -> float:
        """Queries done while it was measured."""
        return float(self.result["queries"])

    @property
    def seconds_before(self) -> dict[str, float]:
        """What the load took before measuring began, by what it was spent on."""
        clock = self.result["clock"]
        return {"connect": clock["connect_ns"] / 1e9, "warm-up": clock["warmup_ns"] / 1e9}

    def second_half_ratio(self) -> float | None:
        """Queries per second of the second half of the run over those of the first.

        Unknown for very short runs, and for a load of several phases, which are not alike by nature.
        """
        start, end = self.window_ns
        middle = (start + end) / 2
        times, queries = self.series.get("t_ns", []), self.series.get("queries", [])
        if len(times) < HALVES_INTERVALS_MIN or self.result.get("phases"):
            return None
        first = [(t, count) for t, count in zip(times, queries, strict=True) if t <= middle]
        done, until = sum(count for _, count in first), first[-1][0]
        before, after = done / (until - start), (sum(queries) - done) / (end - until)
        return after / before if before > 0 else None

    def metrics(self) -> dict[str, float]:
        """The scalars of ``model.metrics.METRICS`` that the client measures."""
        result, latency = self.result, self.result["latency_ns"]
        queries, real = int(result["queries"]), float(result["seconds_real"])
        cpu = float(result["seconds_user"]) + float(result["seconds_sys"])
        if queries <= 0 or real <= 0:
            raise TrialError("the load finished no query while it was measured")
        scalars = {
            "queries_per_second": queries / real,
            "events_per_second": result["events"] / real,
            "seconds_real": real,
            "seconds_user": float(result["seconds_user"]),
            "seconds_sys": float(result["seconds_sys"]),
            "client_cpu_us_per_query": cpu * 1e6 / queries,
            "errors": float(sum(error["count"] for error in result["errors"])),
            "reconnects": float(result["reconnects"]),
        }
        # A run too short for one event to end has no latency; one that only reads adds no row.
        scalars |= latency_metrics(latency) | self.stalls()
        if result["rows"]:
            scalars["rows_per_second"] = result["rows"] / real
        if new_orders := result.get("operations", {}).get("new_order"):
            scalars["new_orders_per_minute"] = (new_orders["count"] or 0) * 60 / real
        if result["offered_per_second"]:
            scalars["achieved_ratio"] = result["achieved_per_second"] / result["offered_per_second"]
        return scalars

    def stalls(self) -> dict[str, float]:
        """The longest time without a finished event, in tenths of a second; the share of whole seconds without one."""
        start, _ = self.window_ns
        ends, counts = self.series.get("t_ns", []), self.series.get("events", [])
        stall = longest = 0.0
        by_second: dict[int, float] = {}
        for before, end, count in zip([start, *ends], ends, counts, strict=False):
            stall = 0.0 if count else stall + (end - before) / 1e9
            longest = max(longest, stall)
            second = int((end - start - 1) // 1e9)  # an interval that ends at a full second belongs to the one before
            by_second[second] = by_second.get(second, 0.0) + count
        if not by_second or (whole := int((ends[-1] - start) // 1e9)) < 1:
            return {"stall_seconds_max": longest} if ends else {}
        stalled = sum(not by_second.get(second, 0.0) for second in range(whole))
        return {"stall_seconds_max": longest, "stalled_ratio": stalled / whole}

    def columns(self) -> Columns:
        """The series on the trial's clock: ``t_s`` is the end of each interval, 0 where measuring starts."""
        start, _ = self.window_ns
        ends = self.series.get("t_ns", [])
        seconds = [(end - before) / 1e9 for before, end in pairwise([start, *ends])]
        columns: Columns = {"t_s": [(end - start) / 1e9 for end in ends]}
        for name in RATES:
            counts = self.series.get(name, [])
            columns[f"{name}_per_second"] = [n / s if s > 0 else 0.0 for n, s in zip(counts, seconds, strict=True)]
        columns["backlog"] = self.series.get("backlog", [])
        for name in LATENCIES:
            columns[f"latency_ms_{name}"] = [value / 1e6 for value in self.series.get(f"latency_ns_{name}", [])]
        return {**columns, "phase": self.phase} if any(self.phase) else columns

    def beside(self) -> dict[str, Columns]:
        """None: probes watch the device."""
        return {}

    def latencies(self) -> Columns:
        """How often each latency of an event was met: ``latency_ns``, ascending, and ``count``."""
        return self.met.columns()


def latency_metrics(latency_ns: Summary) -> dict[str, float]:
    """The metrics of ``model.metrics.METRICS`` that a summary has."""
    metrics = {f"latency_ms_{name}": value / 1e6 for name, value in latency_ns.items() if value is not None}
    return {name: value for name, value in metrics.items() if name in METRICS}


def read_load(result: Path, series: Path, log: Path) -> LoadResult:
    """Read what ``dbdyno-load`` wrote. Raises ``TrialError`` where it is not whole."""
    try:
        run = json.loads(result.read_text(encoding="utf-8"))["runs"][0]
        with series.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = [name for name in rows[0] if name not in {"run", *TEXTS}] if rows else []
        # An interval in which nothing ended has no latency: unknown, not 0.
        values = {name: [math.nan if row[name] == "" else float(row[name]) for row in rows] for name in columns}
        largest = run["latency_ns"]["max"]
        text = log.read_text(encoding="utf-8", errors="replace")
        met = LatencyCounts.from_native(histogram_log(text, None if largest is None else int(largest)))
        return LoadResult(run, values, [row["phase"] for row in rows], met)
    except (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise TrialError(f"{result}, {series} and {log} are not what dbdyno-load writes: {error!r}") from None


# Percentiles of a histogram that a program printed.


def percentiles(buckets: Mapping[int, int] | Mapping[float, int]) -> dict[str, float]:
    """Percentiles of value -> count: the smallest value that so large a share does not exceed; empty of nothing."""
    ordered = sorted(buckets.items())
    sums = list(accumulate(times for _, times in ordered))
    if not sums or not sums[-1]:
        return {}
    by_name = {}
    for name, share in PERCENTILES.items():
        rank = math.ceil(share * sums[-1])
        by_name[name] = float(next(value for (value, _), below in zip(ordered, sums, strict=True) if below >= rank))
    return by_name


# How long a load may run before it is taken for stuck.


# After its own time a load may still have to wait for a slow disk; an hour later it is stuck rather than slow.
GRACE_SECONDS = 3600.0
# What is bounded by an amount takes as long as it takes; after a day it is stuck too.
DAY_SECONDS = 86_400.0


def limit_seconds(section: WorkloadSection) -> float:
    """Its own time and an hour, or a day."""
    bound = section.seconds_bound
    return DAY_SECONDS if bound is None else GRACE_SECONDS + section.seconds_before + bound
