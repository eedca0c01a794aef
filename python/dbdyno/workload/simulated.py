"""A load on a simulated stack: one point of the simulator, and what it came to."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from dbdyno._native import histogram, simulate
from dbdyno.errors import HostError, TrialError
from dbdyno.model.metrics import METRICS
from dbdyno.model.results import Outcome, SimulatedLatencies
from dbdyno.stack.layer import StackContext
from dbdyno.store.records import TrialLoad
from dbdyno.study.schema import TrialSpec
from dbdyno.study.simulated_loads import LOADS
from dbdyno.workload.load import HALVES_INTERVALS_MIN, Columns, LatencyCounts, latency_metrics

# What a load on a simulated stack came to: the simulator's outcome as the figures and series of a trial.


SECTOR_BYTES = 512
DIRECTIONS = {"r": "reads", "w": "writes"}
# What a load counts beside its I/O -> the metric that its rate is.
COUNTED = {"statements": "queries_per_second", "rows": "rows_per_second"}
STATEMENTS = "statements_since_the_start"  # a server's latencies, its warm-up's among them

# Metric -> iostat's column, and what makes its unit of the column's.
IOSTAT = {
    "writes_per_second": ("w/s", 1.0),
    "write_wait_ms_mean": ("w_await", 1.0),
    "request_bytes_mean": ("avgrq-sz", SECTOR_BYTES),
    "queue_requests_mean": ("aqu-sz", 1.0),
}


@dataclass(frozen=True)
class SimulatedLoad:
    """The outcome of one point, as the simulator says it. Its clock is virtual: measuring starts at 0."""

    kind: str
    warm_up_s: float
    outcome: Outcome

    @property
    def result(self) -> TrialLoad:
        """What is kept of it with the trial: all but histograms and series, which have files of their own."""
        outcome = {name: value for name, value in self.outcome.items() if name not in {"series", "sample"}}
        return {"kind": self.kind, "simulated": _without_histograms(outcome)}

    @property
    def window_ns(self) -> tuple[int, int]:
        """Of virtual time."""
        return 0, round(self.outcome["measured_s"] * 1e9)

    @property
    def seconds_before(self) -> dict[str, float]:
        """None of a clock on a wall."""
        return {}

    @property
    def queries(self) -> float | None:
        """What a server would have answered, where the load is one's."""
        counts = self.outcome["counts"]
        return next((float(counts[name]) for name, metric in COUNTED.items() if name in counts), None)

    def second_half_ratio(self) -> float | None:
        """The mean rate of the second half over that of the first."""
        series = self.columns()
        rates = next((series[metric] for metric in COUNTED.values() if metric in series), series["iops"])
        if len(rates) < HALVES_INTERVALS_MIN:
            return None
        middle = len(rates) // 2
        first, second = (math.fsum(map(float, part)) for part in (rates[:middle], rates[-middle:]))
        return second / first if first > 0 else None

    def metrics(self) -> dict[str, float]:
        """The scalars of ``model.metrics.METRICS``. Raises ``TrialError`` where nothing was done."""
        outcome, seconds = self.outcome, float(self.outcome["measured_s"])
        directions = [outcome["reads"], outcome["writes"]]
        operations = sum(direction["latency"]["count"] for direction in directions)
        if not seconds > 0 or not operations:
            raise TrialError("nothing was finished while it was simulated")
        sectors = sum(direction["sectors"] for direction in directions)
        scalars = {
            "seconds_real": seconds,
            "iops": operations / seconds,
            "megabytes_per_second": sectors * SECTOR_BYTES / 1e6 / seconds,
            **self._latencies_ms(),
        }
        for name, metric in COUNTED.items():
            if outcome["counts"].get(name):
                scalars[metric] = outcome["counts"][name] / seconds
        scalars |= self._of_device()
        if self.queries:
            for name, direction in zip(("read", "written"), directions, strict=True):
                scalars[f"{name}_bytes_per_query"] = direction["sectors"] * SECTOR_BYTES / self.queries
        assert set(scalars) <= set(METRICS)  # noqa: S101  (a new one needs words and a direction)
        return scalars

    def _of_device(self) -> dict[str, float]:
        """Iostat's columns over the whole run, and how many requests in a row went up the addresses."""
        columns, runs = self.outcome["columns"], self.outcome["seeks"]["ascending_runs"]
        figures = {name: float(columns[column]) * scale for name, (column, scale) in IOSTAT.items()}
        return figures | ({"sorted_run_requests_mean": self.outcome["commands"] / runs} if runs else {})

    def _latencies_ms(self) -> dict[str, float]:
        """Of statements, or else of reads and writes: from when a client meant to ask, until it had its answer."""
        count = sum(answers["count"] for answers in self._answers)
        mean = math.fsum(answers["mean_ns"] * answers["count"] for answers in self._answers) / count
        return latency_metrics({**self._met.summary, "mean": mean})

    @property
    def _answers(self) -> list[SimulatedLatencies]:
        statements = self.outcome["load"].get(STATEMENTS)
        reads, writes = self.outcome["reads"], self.outcome["writes"]
        return [statements] if statements else [reads["latency"], writes["latency"]]

    @cached_property
    def _met(self) -> LatencyCounts:
        largest = max(answers["max_ns"] for answers in self._answers)
        return LatencyCounts.from_native(histogram([answers["histogram"] for answers in self._answers], largest))

    def columns(self) -> Columns:
        """The series on the trial's clock: ``t_s`` is the end of each interval, 0 where measuring starts."""
        series = self.outcome["series"]
        rows = series["columns"]
        columns: Columns = {
            "t_s": self._ends(),
            "iops": [row["r/s"] + row["w/s"] for row in rows],
            "megabytes_per_second": [(row["rkB/s"] + row["wkB/s"]) * 1024 / 1e6 for row in rows],
            "latency_ms_mean": [row["await"] for row in rows],
        }
        counted_in = series["rates"]
        rates = {metric: counted_in[f"{name}/s"] for name, metric in COUNTED.items() if f"{name}/s" in counted_in}
        return {**columns, **rates}

    def beside(self) -> dict[str, Columns]:
        """The block device, in the columns that the probe of that name has, as far as there are such requests."""
        rows, ends = self.outcome["series"]["columns"], self._ends()
        columns: Columns = {"t_s": ends, **_of_device(rows)}
        for short, name in (("r", "read_bytes"), ("w", "written_bytes")):
            columns[name] = list(_so_far([row[f"{short}kB/s"] * 1024 for row in rows], ends))
        return {"block_device": columns}

    def latencies(self) -> Columns:
        """How often each latency was met: ``latency_ns``, ascending, and ``count``."""
        return self._met.columns()

    def _ends(self) -> list[float]:
        """Simulated time counts from when the load began."""
        return [end - self.warm_up_s for end in self.outcome["series"]["end_s"]]


def _without_histograms(value: Any) -> Any:  # noqa: ANN401  (whatever JSON holds)
    if not isinstance(value, dict):
        return value
    return {name: _without_histograms(member) for name, member in value.items() if name != "histogram"}


def _of_device(rows: Sequence[Mapping[str, float]]) -> Columns:
    columns: Columns = {}
    for short in DIRECTIONS:
        done, kib, merged = ([row[f"{short}{rest}"] for row in rows] for rest in ("/s", "kB/s", "rqm/s"))
        columns |= {
            f"{short}/s": done,
            f"{short}MB/s": [value * 1024 / 1e6 for value in kib],
            f"{short}rqm/s": merged,
            f"%{short}rqm": [100 * m / ((d + m) or 1.0) for d, m in zip(done, merged, strict=True)],
            f"{short}_await": [row[f"{short}_await"] for row in rows],
            f"{short}areq-sz": [k / (d or 1.0) for k, d in zip(kib, done, strict=True)],
        }
    columns |= {
        "areq-sz": [row["avgrq-sz"] * SECTOR_BYTES / 1024 for row in rows],
        "aqu-sz": [row["aqu-sz"] for row in rows],
        "%util": [row["%util"] for row in rows],
    }
    return columns


def _so_far(rates: Iterable[float], ends: Iterable[float]) -> Iterable[float]:
    total = before = 0.0
    for rate, end in zip(rates, ends, strict=True):
        total += rate * (end - before)
        before = end
        yield total


@dataclass(frozen=True)
class Simulated:
    """The load of one treatment on a simulated stack; ``simulated`` returns the outcome of a point."""

    spec: TrialSpec
    simulated: Callable[[str], str] = simulate
    tool: ClassVar[None] = None

    def program(self) -> Path:
        """None: nothing is prepared. Raises ``HostError``."""
        raise HostError("a simulated stack has no prepared data")

    def refused(self) -> str:
        """Nothing: what can't be simulated is a rule of the study format."""
        return ""

    def prepare(self, context: StackContext) -> None:
        """Nothing."""

    def check(self, context: StackContext) -> dict[str, Any]:
        """There are no tables."""
        return {}

    def run(self, context: StackContext, seed: int, folder: Path) -> SimulatedLoad:
        """Simulate it. Raises ``TrialError`` in the simulator's words."""
        try:
            outcome = json.loads(self.simulated(point_of(self.spec, seed)))
        except ValueError as error:
            raise TrialError(f"the simulator refused it: {error}") from None
        return SimulatedLoad(self.spec.workload.kind, self.spec.workload.seconds_before, outcome)


def point_of(spec: TrialSpec, seed: int) -> str:
    """The point of the simulator, as JSON, that a trial of this treatment and seed is."""
    stack, queue = spec.stack, spec.queue
    return json.dumps(
        {
            "device": stack.device,
            "size_bytes": stack.size,
            "kernel": stack.kernel,
            "scheduler": stack.scheduler,
            "tunables": queue.iosched,
            "nr_requests": queue.nr_requests,
            "queue_depth": queue.queue_depth,
            "wbt_lat_usec": queue.wbt_lat_usec,
            "seed": seed,
            "sample_most": 0,  # of single commands, which no report shows
            **LOADS[spec.workload.kind](spec),
        }
    )
