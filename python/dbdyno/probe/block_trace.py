"""The kernel's block trace of the device below the data, read by ``dbdyno-probe`` while the load runs."""

import json
import math
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dbdyno.errors import HostError, TrialError
from dbdyno.probe.disk_trace import DiskTrace, disk_tracing
from dbdyno.stack.emulated_disk import EmulatedDisk
from dbdyno.stack.layer import Stand
from dbdyno.stack.tools import own_binary
from dbdyno.stack.undo import TOKEN_VARIABLE, EndProcesses, RemoveTraceInstance
from dbdyno.state import new_token
from dbdyno.store.block_trace import FIGURES, SCALARS, figure_at

Columns = dict[str, list[float]]

NAME = "block_trace"
ANSWER_SECONDS = 60.0  # the end of a trace is all that is left in the buffers of all processors


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


class NoTraceError(Exception):
    """There is no trace, and why in a sentence."""


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

    process: "subprocess.Popen[bytes]"
    began: float = field(default_factory=time.monotonic)

    def within(self, window_ns: tuple[int, int]) -> Traced:
        """All there is to know."""
        seconds = time.monotonic() - self.began
        try:
            _ask(self.process, "stop")
            answer = _ask(self.process, "summary {} {}".format(*window_ns))
        except NoTraceError as error:
            return Traced({"none": str(error)})
        figures = answer["figures"]
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
def tracing(stand: Stand, *, wanted: bool, disk: EmulatedDisk | None = None) -> Iterator[Trace]:
    """Trace the stand's device for as long as the context lasts, if that is wanted and can be done.

    ``disk`` is the emulated disk below the stand, whose own trace stands in for the kernel's where need be.
    """
    if not wanted:
        yield NoTrace()
        return
    if stand.device is None:
        yield NoTrace("the data stand on no block device of their own")
        return
    token = new_token()
    with ExitStack() as ending:
        ending.enter_context(stand.journal.undoing(RemoveTraceInstance(f"dbdyno-{token}")))
        ending.enter_context(stand.journal.undoing(EndProcesses(token, "the block trace")))
        try:
            process = _started(token, stand.device.path)
        except (NoTraceError, HostError) as error:
            yield ending.enter_context(_in_its_place(stand, disk, str(error)))
            return
        ending.callback(_ended, process)
        yield KernelTrace(process)


@contextmanager
def _in_its_place(stand: Stand, disk: EmulatedDisk | None, why: str) -> Iterator[Trace]:
    with ExitStack() as ending:
        trace: Trace = NoTrace(why)
        if disk is not None:
            with suppress(TrialError):
                trace = InItsPlace(ending.enter_context(disk_tracing(disk, stand.scratch)), why)
        yield trace


def _started(token: str, device: Path) -> "subprocess.Popen[bytes]":
    """A reader that has begun to trace."""
    process = subprocess.Popen(
        [own_binary("dbdyno-probe"), "block", str(device), "--control", "--instance", f"dbdyno-{token}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, TOKEN_VARIABLE: token},
    )
    try:
        _answer(process)
    except NoTraceError:
        _ended(process)
        raise
    return process


def _ask(process: "subprocess.Popen[bytes]", command: str) -> dict[str, Any]:
    assert process.stdin is not None  # noqa: S101  (it is a pipe)
    with suppress(BrokenPipeError):  # whose reason the answer tells
        process.stdin.write(command.encode() + b"\n")
        process.stdin.flush()
    return _answer(process)


def _answer(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The next line that the reader says. Raises ``NoTraceError`` where it says an error, nothing, or has ended."""
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    ready, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
    line = process.stdout.readline() if ready else b""
    if not line:
        raise NoTraceError(_last_words(process) if ready else "dbdyno-probe does not answer")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise NoTraceError(str(answer["error"]).removeprefix("no block trace: "))
    return answer


def _last_words(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None  # noqa: S101  (it is a pipe)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    ready, _, _ = select.select([process.stderr], [], [], 0)
    said = process.stderr.read1().decode(errors="replace").strip() if ready else ""  # type: ignore[attr-defined]
    return said.removeprefix("dbdyno-probe: ").removeprefix("no block trace: ") or "dbdyno-probe ended"


def _ended(process: "subprocess.Popen[bytes]") -> None:
    """The end of standard input ends the reader, and the reader its instance."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(BrokenPipeError):
                pipe.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
