"""The kernel's block trace of the device below the data, read by ``dbdyno-probe`` while the load runs."""

import csv
import json
import math
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dbdyno.errors import HostError, TrialError
from dbdyno.probe.trace_reader import NoTraceError, Record, TraceReader, reading
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.stack.tools import own_binary
from dbdyno.store.block_trace import FIGURES, SCALARS, began_in, figure_at
from dbdyno.store.records import ProbeCost, TrialBlockTrace

# An emulated disk's own trace, summed up as the kernel's is: what there is where the kernel's can't be had.


SUMMARY_SECONDS = 120.0  # of a trace that has ended: ten million requests take a few


@dataclass(frozen=True)
class DiskTrace:
    """A trace that the disk is writing."""

    disk: EmulatedDisk
    file: Path

    def within(self, window_ns: tuple[int, int]) -> tuple[TrialBlockTrace, dict[str, list[float | None]]]:
        """End it; figures of a window of the monotonic clock, and the series. Raises ``TrialError``, ``HostError``."""
        dropped = self.disk.client.stop_trace().dropped
        figures, series = self.file.with_suffix(".json"), self.file.with_suffix(".csv")
        argv = [own_binary("dbdyno-probe"), "disk", str(self.file), "--window", "{},{}".format(*window_ns)]
        argv += ["--json", str(figures), "--series", str(series)]
        try:
            done = subprocess.run(
                argv, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=SUMMARY_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise TrialError(f"dbdyno-probe was not done after {SUMMARY_SECONDS:g} s") from None
        if done.returncode != 0:
            raise TrialError(done.stderr.strip().removeprefix("dbdyno-probe: ") or "dbdyno-probe failed")
        trace: TrialBlockTrace = json.loads(figures.read_text(encoding="utf-8"))
        trace["lost"] = dropped
        return trace, read_series(series.read_text(encoding="ascii"))


def read_series(text: str) -> dict[str, list[float | None]]:
    """Columns of the series that ``dbdyno-probe`` writes; an empty cell is the mean of nothing."""
    rows = list(csv.reader(text.splitlines()))
    return {name: [float(row[place]) if row[place] else None for row in rows[1:]] for place, name in enumerate(rows[0])}


@contextmanager
def disk_tracing(disk: EmulatedDisk, folder: Path) -> Iterator[DiskTrace]:
    """Let a disk write its trace into a folder for as long as the context lasts. Raises ``TrialError``."""
    file = folder / "requests.trace"
    disk.client.start_trace(file, "binary")
    try:
        yield DiskTrace(disk, file)
    finally:
        with suppress(TrialError, HostError):  # it has ended already, or the disk has
            disk.client.stop_trace()


Columns = dict[str, list[float]]

NAME = "block_trace"


@dataclass(frozen=True)
class Traced:
    """What a trace came to in the measured run."""

    figures: TrialBlockTrace = field(
        default_factory=TrialBlockTrace
    )  # as ``dbdyno-probe`` says them; or {"none": why}; or nothing
    series: dict[str, Columns] = field(default_factory=dict)  # one, or none
    cost: dict[str, ProbeCost] = field(default_factory=dict)  # of one probe, or none

    def metrics(self) -> dict[str, float]:
        """The scalars of a trial; one that is not known is left out."""
        figures = {name: figure_at(self.figures, *FIGURES[name]) for name in SCALARS}
        return {name: value for name, value in figures.items() if value is not None}


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
        cost: ProbeCost = {"cpu_seconds": figures["cpu_seconds"], "cpu_percent": 100 * figures["cpu_seconds"] / seconds,
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
