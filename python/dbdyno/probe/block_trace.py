"""Block traces: the kernel's by ``dbdyno-probe``, into a file, live or beside a load, and an emulated disk's own."""

import csv
import json
import math
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.stack.tools import own_binary
from dbdyno.stack.tracefs import tracefs
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, EndProcesses, RemoveTraceInstance
from dbdyno.stack.undo_log import Journal, journalled
from dbdyno.store.block_trace import FIGURES, SCALARS, began_in, figure_at
from dbdyno.store.records import ProbeCost, TrialBlockTrace
from dbdyno.system.interrupt import Interrupted, interruptible, now_ns, shielded
from dbdyno.system.state import new_token

# ``dbdyno-probe`` at the kernel's block trace of one device: steered by lines, and answering by lines of JSON.


ANSWER_SECONDS = 60.0  # the end of a trace is all that is left in the buffers of all processors


@dataclass(frozen=True)
class Record:
    """A file for the events of a trace, and how large it may grow."""

    file: Path
    bytes_max: int


class NoTraceError(Exception):
    """There is no trace, and why in a sentence."""


class TraceReader:
    """The program, which traces."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def ask(self, command: str) -> dict[str, Any]:
        """What it answers. Raises ``NoTraceError`` where it says an error, nothing, or has ended."""
        assert self._process.stdin is not None  # noqa: S101  (it is a pipe)
        with suppress(BrokenPipeError):  # the answer gives the reason
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        return self.heard()

    def heard(self) -> dict[str, Any]:
        """The next line that it says. Raises ``NoTraceError``."""
        assert self._process.stdout is not None  # noqa: S101  (it is a pipe)
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise NoTraceError(self._last_words() if ready else "dbdyno-probe does not answer")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise NoTraceError(str(answer["error"]).removeprefix("no block trace: "))
        return answer

    def close(self) -> None:
        """The end of standard input ends the reader, and the reader its instance."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_words(self) -> str:
        assert self._process.stderr is not None  # noqa: S101  (it is a pipe)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        ready, _, _ = select.select([self._process.stderr], [], [], 0)
        message = self._process.stderr.read1().decode(errors="replace").strip() if ready else ""  # type: ignore[attr-defined]
        return message.removeprefix("dbdyno-probe: ").removeprefix("no block trace: ") or "dbdyno-probe ended"


@contextmanager
def reading(journal: Journal, device: Path, record: Record | None = None) -> Iterator[TraceReader]:
    """Trace a device for as long as the context lasts; ``record`` says into which new file its events go, if any.

    Raises ``NoTraceError`` where that can't be done, ``HostError`` where there is no tracefs or no dbdyno-probe.
    """
    token = new_token()
    instance = f"dbdyno-{token}"
    with (
        tracefs(journal) as place,
        journal.undoing(RemoveTraceInstance(instance, str(place))),
        journal.undoing(EndProcesses(token, "the block trace")),
    ):
        block = ["block", str(device), "--control", "--instance", instance, "--tracefs", str(place)]
        if record:
            block += ["--record", str(record.file), "--record-most", str(record.bytes_max)]
        process = subprocess.Popen(
            [own_binary("dbdyno-probe"), *block],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, TOKEN_VARIABLE: token},
        )
        reader = TraceReader(process)
        try:
            reader.heard()  # that it has begun
            yield reader
        finally:
            reader.close()


# A block device's requests into a file that ``dbdyno trace show`` and ``dbdyno simulate`` read.


LOOK_SECONDS = 0.2  # how often it is seen whether the file is full


@dataclass(frozen=True)
class TraceRecording:
    """What a recording came to."""

    events: int
    requests: int
    bytes: int
    seconds: float  # from its begin to the last event
    lost: int  # events that the kernel had no room for
    ended: str  # "time", "full" or "interrupted"
    cpu_us_per_request: float | None  # of dbdyno-probe, its start left out


def record(device: str, to: Record, seconds: float | None, say: Callable[[str], None]) -> TraceRecording:
    """Record a block device by its name until the time is over, the file is full, or a signal comes.

    Raises ``HostError`` where it can't be traced, or the file can't be written to its end.
    """
    with interruptible(say), journalled(f"trace record {device}") as journal:
        try:
            with reading(journal, Path("/dev") / device, to) as reader:
                say(f"recording {device} into {to.file}; Ctrl-C ends it")
                before = reader.ask("figures 0 1")["cpu_seconds"]  # what its start took is no request's
                ended = _until(reader, seconds)
                reader.ask("stop")
                figures = reader.ask("summary")["figures"]
        except NoTraceError as error:
            raise HostError(f"there is no block trace of {device}: {error}") from None
    return _recording({**figures, "cpu_seconds": figures["cpu_seconds"] - before}, ended, to.file)


def _until(reader: TraceReader, seconds: float | None) -> str:
    """Wait, and say for what it ended."""
    end = None if seconds is None else time.monotonic() + seconds
    with suppress(Interrupted):
        while end is None or (left := end - time.monotonic()) > 0:
            time.sleep(LOOK_SECONDS if end is None else min(LOOK_SECONDS, left))
            with shielded():  # an answer is read whole
                so_far = reader.ask("recorded")
            if so_far["full"] or so_far["failed"]:
                return "full"
        return "time"
    return "interrupted"


def _recording(figures: dict[str, Any], ended: str, file: Path) -> TraceRecording:
    recorded, requests = figures["recorded"], sum(figures["requests"].values())
    if recorded["failed"]:
        raise HostError(f"{file} can't be written to its end: {recorded['failed']}; what it holds is whole up to there")
    return TraceRecording(
        recorded["events"],
        requests,
        recorded["bytes"],
        recorded["seconds"],
        figures["lost"],
        "full" if recorded["full"] else ended,
        figures["cpu_seconds"] * 1e6 / requests if requests else None,
    )


# Block traces of several devices, interval by interval, for ``dbdyno watch --trace``.


LIVE_COLUMNS = ("queue_ms_mean", "queue_ms_p99", "device_ms_mean", "device_ms_p99", "seek_bytes_mean",
           "sorted_run_requests_mean")  # fmt: skip
SLICE_NS = 100_000_000  # of the reader's sums: an interval is whole slices, and each counts in one interval


class LiveTraces:
    """Traces that run."""

    def __init__(self, readers: dict[str, TraceReader]) -> None:
        self._readers, self._from_ns = readers, _slice_of(now_ns())

    def interval(self) -> dict[str, dict[str, float]]:
        """Device -> column -> figure since the call before, as far as a tenth of a second is over; NaN of nothing."""
        end_ns = _slice_of(now_ns())
        try:
            answers = {name: reader.ask(f"figures {self._from_ns} {end_ns}") for name, reader in self._readers.items()}
        except NoTraceError as error:
            raise HostError(f"the block trace has ended: {error}") from None
        self._from_ns = end_ns
        return {name: {column: _figure(trace, column) for column in LIVE_COLUMNS} for name, trace in answers.items()}


@contextmanager
def live_traces(names: Sequence[str]) -> Iterator[LiveTraces]:
    """Trace devices for as long as the context lasts. Raises ``HostError`` where one can't be traced."""
    with ExitStack() as ending:
        journal = ending.enter_context(journalled(f"watch --trace {' '.join(names)}"))
        readers = {}
        for name in names:
            try:
                readers[name] = ending.enter_context(reading(journal, Path("/dev") / name))
            except (NoTraceError, HostError) as error:
                raise HostError(f"there is no block trace of {name}: {error}; watch it without --trace") from None
        yield LiveTraces(readers)


def _slice_of(at_ns: int) -> int:
    return at_ns // SLICE_NS * SLICE_NS


def _figure(trace: dict[str, object], column: str) -> float:
    figure = figure_at(trace, *FIGURES[column])
    return math.nan if figure is None else figure


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
    if context.device is None and disk is None:
        yield NoTrace("the data stand on no block device of their own")
        return
    with ExitStack() as ending:
        trace: Trace = NoTrace("the requests go through the kernel of a machine, which is not traced")
        if context.device:
            try:
                trace = KernelTrace(ending.enter_context(reading(context.journal, context.device.path, record)), record)
            except (NoTraceError, HostError) as error:
                trace = NoTrace(str(error))
        if isinstance(trace, NoTrace) and disk:
            with suppress(TrialError):
                trace = InItsPlace(ending.enter_context(disk_tracing(disk, context.scratch)), trace.why)
        yield trace
