"""What a load came to that another program offered."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from dbdyno.errors import TrialError
from dbdyno.model.metrics import METRICS
from dbdyno.stack.layer import StackContext
from dbdyno.study.section import WorkloadSection
from dbdyno.workload.load import HALVES_INTERVALS_MIN, Columns
from dbdyno.workload.program import Ended, Program
from dbdyno.workload.time_limit import limit_seconds


@dataclass(frozen=True)
class ToolLoad:
    """The figures of one run, as far as the program reports them; what it does not report is left out."""

    reported: dict[str, Any]
    window_ns: tuple[int, int]
    figures: Mapping[str, float]  # of ``model.metrics.METRICS``
    series: Columns = field(default_factory=dict)  # ``t_s`` and what was counted until then
    rate: str = ""  # the column of the series that the halves of a run are compared by
    queries: float | None = None
    before_seconds: float = 0.0

    @property
    def result(self) -> dict[str, Any]:
        """What it reported, and when it was measured."""
        start_ns, end_ns = self.window_ns
        return {**self.reported, "clock": {"measure_start_ns": start_ns, "measure_end_ns": end_ns}}

    @property
    def seconds_before(self) -> dict[str, float]:
        """What the program took before measuring began."""
        return {"warm-up": self.before_seconds}

    def second_half_ratio(self) -> float | None:
        """The mean rate of the second half over that of the first."""
        ends, rates = self.series.get("t_s", []), self.series.get(self.rate, [])
        if len(ends) < HALVES_INTERVALS_MIN or len(ends) != len(rates):
            return None
        middle = len(ends) // 2
        first, second = (math.fsum(float(rate) for rate in part) for part in (rates[:middle], rates[-middle:]))
        return second / first if first > 0 else None

    def metrics(self) -> dict[str, float]:
        """The scalars that the program reports."""
        assert set(self.figures) <= set(METRICS)  # noqa: S101  (a new one needs words and a direction)
        return {name: float(value) for name, value in self.figures.items() if math.isfinite(value)}

    def columns(self) -> Columns:
        """The series on the trial's clock."""
        return self.series

    def beside(self) -> dict[str, Columns]:
        """None: probes watch the device."""
        return {}

    def latencies(self) -> Columns:
        """Unknown: what a program prints of its histogram, if it does, is too coarse for rare latencies."""
        return {}


def client_cpu(ended: Ended, queries: float | None = None) -> dict[str, float]:
    """What the program itself burned, from its start to its end."""
    found = {"seconds_user": ended.user_seconds, "seconds_sys": ended.sys_seconds}
    if queries:
        found["client_cpu_us_per_query"] = (ended.user_seconds + ended.sys_seconds) * 1e6 / queries
    return found


def positive(value: float, what: str) -> float:
    """A figure that must be more than 0. Raises ``TrialError``."""
    if not value > 0:
        raise TrialError(f"{what} is {value:g}; nothing was measured")
    return value


# What the workloads that run programs of others have in common.


SectionT = TypeVar("SectionT", bound=WorkloadSection)


@dataclass(frozen=True)
class ByTool(ABC, Generic[SectionT]):
    """A load that a program of others offers; by itself it prepares nothing and has no tables."""

    section: SectionT
    engine: str

    @property
    @abstractmethod
    def tool(self) -> Program:
        """The program."""

    def program(self) -> Path:
        """Where it is. Raises ``HostError``."""
        return self.tool.path()

    def refused(self) -> str:
        """Nothing: what can be said without the program is a rule of the study format."""
        return ""

    def prepare(self, context: StackContext) -> None:
        """Nothing: it makes what it needs as it runs."""

    def check(self, context: StackContext) -> dict[str, Any]:
        """Nothing: it has no tables."""
        return {}

    @property
    def limit_seconds(self) -> float:
        """How long it may run before it is taken for stuck."""
        return limit_seconds(self.section)
