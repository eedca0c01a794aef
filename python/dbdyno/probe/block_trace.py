"""The kernel's block trace of the device below the data, read by ``dbdyno-probe`` while the load runs."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from dbdyno.errors import HostError, TrialError
from dbdyno.probe.disk_trace import DiskTrace, disk_tracing
from dbdyno.probe.trace_reader import NoTraceError, Record, TraceReader, reading
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.store.block_trace import FIGURES, SCALARS, began_in, figure_at

Columns = dict[str, list[float]]

NAME = "block_trace"


@dataclass(frozen=True)
class Traced:
    """What a trace came to in the measured run."""

    figures: dict[str, Any] = field(default_factory=dict)  # as ``dbdyno-probe`` says them; or {"none": why}; or nothing
    series: dict[str, Columns] = field(default_factory=dict)  # one, or none
    cost: dict[str, dict[str, Any]] = field(default_factory=dict)  # of one probe, or none

    def metrics(self) -> dict[str, float]:
        """The scalars of a trial; one that is not known is left out."""
        found = {name: figure_at(self.figures, *FIGURES[name]) for name in SCALARS}
        return {name: value for name, value in found.items() if value is not None}


class Trace(Protocol):
    """A trace that runs; or none, and why."""

    def within(self, window_ns: tuple[int, int]) -> Traced:
        """End the trace; what it came to in a window of the monotonic clock. A trace that fails fails no trial."""


@dataclass(frozen=True)
class NoTrace:
    """None was asked for, or none could be had."""

    why: str = ""

    def within(self, _: tuple[int, int]) -> Traced:
        """Nothing, or the reason."""
        return Traced({"none": self.why} if self.why else {})


@dataclass(frozen=True)
class KernelTrace:
    """The kernel's."""

    reader: TraceReader
    record: Record | None = None
    began: float = field(default_factory=time.monotonic)

    def within(self, window_ns: tuple[int, int]) -> Traced:
        """All there is to know."""
        seconds = time.monotonic() - self.began
        try:
            self.reader.ask("stop")
            answer = self.reader.ask("summary {} {}".format(*window_ns))
        except NoTraceError as error:
            return Traced({"none": str(error)})
        figures = answer["figures"]
        began_ns = began_in(self.record.file) if self.record else None
        if began_ns is not None and "recorded" in figures:
            figures["recorded"]["measured_s"] = [(at_ns - began_ns) / 1e9 for at_ns in window_ns]
        cost = {"cpu_seconds": figures["cpu_seconds"], "cpu_percent": 100 * figures["cpu_seconds"] / seconds,
                "samples": sum(figures["completed"].values()), "missed": 0}  # fmt: skip
        return Traced(figures, {NAME: _columns(answer["series"], window_ns)}, {NAME: cost})


@dataclass(frozen=True)
class InItsPlace:
    """An emulated disk's own, since the kernel's can't be had: without times in the queue."""

    trace: DiskTrace
    why: str

    def within(self, window_ns: tuple[int, int]) -> Traced:
        """What the disk saw."""
        try:
            figures, series = self.trace.within(window_ns)
        except (TrialError, HostError) as error:
            return Traced({"none": f"{self.why}; nor of the disk's own: {error}"})
        return Traced({**figures, "why_not_kernel": self.why}, {NAME: _columns(series, window_ns)})


def _columns(series: Mapping[str, list[float | None]], window_ns: tuple[int, int]) -> Columns:
    """The series on the trial's clock, without what lies outside the measured run; a mean of nothing is NaN."""
    start, end = window_ns
    ends = [int(t_ns or 0) for t_ns in series["t_ns"]]
    inside = [place for place, t_ns in enumerate(ends) if start < t_ns <= end + 100_000_000]
    columns: Columns = {
        name: [math.nan if values[place] is None else float(values[place] or 0.0) for place in inside]
        for name, values in series.items()
        if name != "t_ns"
    }
    return {"t_s": [(ends[place] - start) / 1e9 for place in inside], **columns}


@contextmanager
def tracing(
    context: StackContext, *, wanted: bool, disk: EmulatedDisk | None = None, record: Record | None = None
) -> Iterator[Trace]:
    """Trace the stack's device until this ends, if that is wanted and can be done.

    ``disk`` is the emulated disk below the context, whose own trace stands in for the kernel's where need be.
    The kernel's events go into the file of ``record``, if any; then a trace is wanted in any case.
    """
    if not (wanted or record):
        yield NoTrace()
        return
    if context.device is None:
        yield NoTrace("the data stand on no block device of their own")
        return
    with ExitStack() as ending:
        trace: Trace
        try:
            trace = KernelTrace(ending.enter_context(reading(context.journal, context.device.path, record)), record)
        except (NoTraceError, HostError) as error:
            trace = NoTrace(str(error))
            if disk is not None:
                with suppress(TrialError):
                    trace = InItsPlace(ending.enter_context(disk_tracing(disk, context.scratch)), trace.why)
        yield trace
