"""What a load came to: scalars, the series, and where the raw histogram lies."""

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError

HALVES_INTERVALS_MIN = 6  # fewer say nothing of two halves


@dataclass(frozen=True)
class Load:
    """The result of one measured run."""

    result: dict[str, Any]  # one element of the load generator's "runs"
    series: dict[str, list[float]]  # column -> one value per interval; t_ns on the monotonic clock

    @property
    def window_ns(self) -> tuple[int, int]:
        """Start and end of measuring on the monotonic clock."""
        clock = self.result["clock"]
        return int(clock["measure_start_ns"]), int(clock["measure_end_ns"])

    def second_half_ratio(self) -> float | None:
        """Queries per second of the second half of the run over those of the first; unknown for very short runs."""
        start, end = self.window_ns
        middle = (start + end) / 2
        times, queries = self.series.get("t_ns", []), self.series.get("queries", [])
        if len(times) < HALVES_INTERVALS_MIN:
            return None
        first = [(t, count) for t, count in zip(times, queries, strict=True) if t <= middle]
        done, until = sum(count for _, count in first), first[-1][0]
        before, after = done / (until - start), (sum(queries) - done) / (end - until)
        return after / before if before > 0 else None

    def metrics(self) -> dict[str, float]:
        """The scalars of ``store.records.METRICS`` that the client can tell."""
        result, latency = self.result, self.result["latency_ns"]
        queries, real = int(result["queries"]), float(result["seconds_real"])
        cpu = float(result["seconds_user"]) + float(result["seconds_sys"])
        if queries <= 0 or real <= 0:
            raise TrialError("the load finished no query while it was measured")
        return {
            "queries_per_second": queries / real,
            "seconds_real": real,
            "seconds_user": float(result["seconds_user"]),
            "seconds_sys": float(result["seconds_sys"]),
            **{f"latency_ms_{name}": latency[name] / 1e6 for name in ("mean", "p50", "p95", "p99", "max")},
            "client_cpu_us_per_query": cpu * 1e6 / queries,
        }


def read_load(result: Path, series: Path) -> Load:
    """Read what ``dbdyno-load`` wrote. Raises ``TrialError`` where it is not whole."""
    try:
        run = json.loads(result.read_text(encoding="utf-8"))["runs"][0]
        with series.open(encoding="ascii", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = [name for name in rows[0] if name != "run"] if rows else []
        # An interval in which nothing ended has no latency: unknown, not 0.
        values = {name: [float(row[name] or math.nan) for row in rows] for name in columns}
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise TrialError(f"{result} and {series} are not what dbdyno-load writes: {error!r}") from None
    return Load(run, values)
