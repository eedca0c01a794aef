"""``[workload]`` of a recorded block trace; it runs on simulated stacks alone."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dbdyno.study.section import Line
from dbdyno.study.tools import LATENCIES
from dbdyno.study.units import Duration
from dbdyno.study.workload_section import WorkloadSection


class TraceSection(WorkloadSection):
    """``trace``: the requests of a block trace, on a simulated stack."""

    METRIC: ClassVar[str] = "latency_ms_mean"
    REPORTS: ClassVar[frozenset[str] | None] = frozenset(
        {"iops", "megabytes_per_second", "seconds_real", "achieved_ratio", *LATENCIES}
    )
    SECONDARY: ClassVar[tuple[str, ...]] = ("iops", "megabytes_per_second", "latency_ms_p99", "latency_ms_max")
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "none"
    ON_HOST: ClassVar[bool] = False

    kind: Literal["trace"]
    """A block trace replayed on a simulated stack: [workloads.md](workloads.md#trace)."""
    file: Line
    """The trace, relative to the study: of blktrace, blkparse, fio and others. The run folder keeps its SHA-256."""
    replay: Literal["open", "closed"] = "open"
    """`open`: requests come at their recorded times. `closed`: each waits for what it waited for when it was recorded.
    """
    speed: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Of an open replay: times as fast as recorded."""
    time_unit: Literal["s", "ms", "us", "100ns", "ns"] | None = None
    """Of the trace's times, where its format leaves that open; what is plausible if not given."""
    length_unit: Literal["sectors", "bytes"] | None = None
    """Of its places and lengths, likewise."""
    fold: bool = False
    """What ends beyond the device is folded onto it instead of left out: places wrap around."""
    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    """Of the trace; to its end if not given."""

    def data(self) -> dict[str, Any]:
        """It has none: what is read and written is not looked at."""
        return {"kind": self.kind}

    def secret_files(self) -> dict[str, str]:
        """The trace: too long to be kept with each run."""
        return {"file": self.file}
