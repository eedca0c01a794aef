"""``dbdyno-probe`` at the kernel's block trace of one device: steered by lines, and answering by lines of JSON."""

import json
import math
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError
from dbdyno.stack.tools import own_binary
from dbdyno.stack.tracefs import tracefs
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import TOKEN_VARIABLE, EndProcesses, RemoveTraceInstance
from dbdyno.store.block_trace import FIGURES, figure_at
from dbdyno.system.clock import now_ns
from dbdyno.system.interrupt import Interrupted, interruptible, shielded
from dbdyno.system.state import new_token

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
    with interruptible(say), closing(Journal(f"trace record {device}")) as journal:
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
        journal = ending.enter_context(closing(Journal(f"watch --trace {' '.join(names)}")))
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
