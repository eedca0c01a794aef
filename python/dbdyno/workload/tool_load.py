"""Loads that other programs offer: which program, how it is run to its end, and what the load came to."""

import math
import os
import select
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar, cast

from dbdyno.errors import TrialError
from dbdyno.model.metrics import METRICS
from dbdyno.model.printable import joined_lines, one_line, printable
from dbdyno.servers.user import answer, own_folder, unprivileged
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.memory import killed_for_memory
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.stack.tools import not_installed, tool_path
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, EndProcesses
from dbdyno.store.records import TrialLoad
from dbdyno.study.document import WorkloadSection
from dbdyno.system.child import DIES_WITH_US, exit_words
from dbdyno.system.interrupt import now_ns
from dbdyno.system.state import new_token
from dbdyno.workload.load import HALVES_INTERVALS_MIN, Columns, limit_seconds

OUTPUT_BYTES_MAX = 64 * 1024**2
LOOK_SECONDS = 1.0  # between two looks at the clock and at the server, while nothing happens
SAID_MAX = 600  # characters of a program's own words in a cause
SAID_READ_MAX = 100 * SAID_MAX  # of which they are taken
VERSION_SECONDS = 20.0
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Program:
    """A program of the system's, by its names (the first that is there is meant) and its package."""

    names: tuple[str, ...]
    package: str
    version_flag: str = "--version"

    @property
    def name(self) -> str:
        """What it is called."""
        return self.names[0]

    def find_path(self) -> str | None:
        """Where it is."""
        return next((path for name in self.names if (path := tool_path(name))), None)

    def path(self) -> Path:
        """Where it is. Raises ``HostError`` with the remedy where it is not."""
        path = self.find_path()
        if path is None:
            raise not_installed(self.name, self.package)
        return Path(path)

    def version(self) -> str:
        """What it says of its version, in its own words."""
        path = self.find_path()
        return _version(path, self.version_flag) if path else UNKNOWN

    def observed(self) -> dict[str, str]:
        """What a trial keeps of it."""
        return {"program": self.name, "version": self.version()}


@cache
def _version(path: str, flag: str) -> str:
    try:
        lines = answer([path, flag], "both", VERSION_SECONDS, SAID_MAX).decode(errors="replace").splitlines()
    except OSError:
        return UNKNOWN
    line = next((line for line in lines if any(char.isdigit() for char in line)), UNKNOWN)
    return printable(line.strip())[:120]


def plain_environment() -> dict[str, str]:
    """What every program gets: nothing of the caller's but the path to programs."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


class StopRequest:
    """A request to a program that runs in another thread to end early; a descriptor that can be polled has it."""

    def __init__(self) -> None:
        """Ask for nothing yet."""
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def make(self) -> None:
        """Ask for it."""
        os.eventfd_write(self.descriptor, 1)

    def is_made(self, within_seconds: float = 0.0) -> bool:
        """Whether it was asked for, or is within so many seconds."""
        return bool(select.select([self.descriptor], [], [], max(0.0, within_seconds))[0])

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


@dataclass
class ProgramRun:
    """A program that has run to its end, or was stopped before."""

    start_ns: int
    end_ns: int = 0
    code: int = 0
    user_seconds: float = 0.0  # with all children that it waited for
    sys_seconds: float = 0.0
    out: list[tuple[int, bytes]] = field(default_factory=list)  # when a piece of its output came, and the piece
    err: list[tuple[int, bytes]] = field(default_factory=list)
    stopped: bool = False  # because that was asked for

    @property
    def stdout(self) -> str:
        """All that it printed."""
        return _text(self.out)

    @property
    def stderr(self) -> str:
        """All that it complained about."""
        return _text(self.err)

    def lines(self, stream: str = "out") -> list[tuple[int, str]]:
        """Each line with the time at which its end came."""
        lines, rest = [], b""
        for at_ns, piece in getattr(self, stream):
            *whole, rest = (rest + piece).split(b"\n")
            lines += [(at_ns, line.decode(errors="replace")) for line in whole]
        return lines


def _text(pieces: list[tuple[int, bytes]]) -> str:
    return b"".join(piece for _, piece in pieces).decode(errors="replace")


def home_of_program(context: StackContext) -> Path:
    """A folder that the program may write to; it goes with the trial's scratch folder."""
    home = context.scratch / "tool"
    own_folder(home)
    return home


def run_program(  # noqa: PLR0913  (what a program is run with)
    context: StackContext,
    name: str,
    argv: list[str],
    *,
    folder: Path,
    limit_seconds: float,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    stop: StopRequest | None = None,
    announced: str = "",
) -> ProgramRun:
    """Run a program as the server's user to its end; all it said goes to ``tool.out`` and ``tool.err`` in ``folder``.

    ``stop`` ends it before; that is no failure. ``announced`` is a token by which the caller has already had its end
    written down: the undo log takes back first what was announced later, so two threads can't each announce theirs.
    Where the stack has no server, the program is in the control group that would bound the server. It and all that it
    started are ended, whatever happens. Raises ``TrialError`` with its own words where it fails.
    """
    token = announced or new_token()
    group = None if context.endpoint else context.cgroup
    # As another user first: that takes away what the kernel was asked to do when the parent dies.
    command = unprivileged([*DIES_WITH_US, "--no-new-privs", "--", *argv], group)
    with nullcontext() if announced else context.journal.undoing(EndProcesses(token, name)):
        ended = ProgramRun(now_ns())
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**plain_environment(), **(environment or {}), TOKEN_VARIABLE: token},
            cwd=cwd,
            start_new_session=True,  # Ctrl-C is for dbdyno
        )
        try:
            _attend(process, ended, context, name, limit_seconds, stop)
        finally:
            _keep(ended, folder)
    if ended.code != 0 and not ended.stopped:
        raise TrialError(_failure(name, ended, context))
    return ended


def _attend(  # noqa: PLR0913, PLR0917  (as above)
    process: "subprocess.Popen[bytes]",
    ended: ProgramRun,
    context: StackContext,
    name: str,
    limit_seconds: float,
    stop: StopRequest | None,
) -> None:
    """Take what the program says until it has ended. Raises ``TrialError`` where that must not go on."""
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018  (they were asked for)
    streams = {process.stdout.fileno(): ended.out, process.stderr.fileno(): ended.err}
    handle = os.pidfd_open(process.pid)
    waiting = select.poll()
    try:
        for descriptor in (handle, *streams):
            os.set_blocking(descriptor, False) if descriptor != handle else None
            waiting.register(descriptor, select.POLLIN)
        if stop:
            waiting.register(stop.descriptor, select.POLLIN)
        deadline, size, running = time.monotonic() + limit_seconds, 0, True
        while running:
            ready = {descriptor for descriptor, _ in waiting.poll(LOOK_SECONDS * 1000)}
            running = handle not in ready
            if stop and running and stop.descriptor in ready:
                ended.stopped = True
                waiting.unregister(stop.descriptor)
                _end_group(process.pid)
            for descriptor in streams if not running else ready & set(streams):
                size += _take(descriptor, streams[descriptor], waiting)
            if size > OUTPUT_BYTES_MAX:
                _give_up(f"{name} said more than {OUTPUT_BYTES_MAX // 1024**2} MiB", name, ended)
            if running and time.monotonic() > deadline:
                _give_up(f"{name} was not done after {limit_seconds:g} s", name, ended)
            if running and context.endpoint and (why := how_it_ended(context.endpoint)):
                _give_up(why, name, ended)
        ended.end_ns = now_ns()
        _end_group(process.pid)  # while its number can't be another's
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = ended.code = os.waitstatus_to_exitcode(status)
        ended.user_seconds, ended.sys_seconds = used.ru_utime, used.ru_stime
    except BaseException:
        _end_group(process.pid)
        process.wait()
        raise
    finally:
        os.close(handle)
        process.stdout.close()
        process.stderr.close()


def _give_up(why: str, name: str, ended: ProgramRun) -> NoReturn:
    words = last_words(ended)
    raise TrialError(f"{why}; {name} was ended" + (f"; it had said: {words}" if words else ""))


def _end_group(leader: int) -> None:
    """End what the program left behind in its process group."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _take(descriptor: int, pieces: list[tuple[int, bytes]], waiting: "select.poll") -> int:
    """Read all that is there; returns how many bytes."""
    size = 0
    while True:
        try:
            piece = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return size
        except OSError:
            piece = b""
        if not piece:
            with suppress(KeyError):  # it was at its end before
                waiting.unregister(descriptor)
            return size
        pieces.append((now_ns(), piece))
        size += len(piece)


def _keep(ended: ProgramRun, folder: Path) -> None:
    for stream, name in ((ended.out, "tool.out"), (ended.err, "tool.err")):
        if stream:
            (folder / name).write_bytes(b"".join(piece for _, piece in stream))


def last_words(ended: ProgramRun) -> str:
    """What a program said last, in one line: its complaints, else its output."""
    text = (ended.stderr.strip() or ended.stdout.strip())[-SAID_READ_MAX:]
    line = one_line(joined_lines(text))
    return line if len(line) <= SAID_MAX else f"... {line[-SAID_MAX:]}"


def _failure(name: str, ended: ProgramRun, context: StackContext) -> str:
    if not context.endpoint and context.cgroup and killed_for_memory(context.cgroup):
        return f"the kernel killed {name} for going beyond stack.memory; give it more"
    cause = f"{name}: {exit_words(ended.code)}: {last_words(ended) or 'it said nothing'}"
    why = how_it_ended(context.endpoint) if context.endpoint else ""
    return f"{cause}; {why}" if why else cause


# What a load came to that another program offered.


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
    def result(self) -> TrialLoad:
        """What it reported, and when it was measured."""
        start_ns, end_ns = self.window_ns
        load = {**self.reported, "clock": {"measure_start_ns": start_ns, "measure_end_ns": end_ns}}
        return cast("TrialLoad", load)  # what else a program says is its own

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


def client_cpu(ended: ProgramRun, queries: float | None = None) -> dict[str, float]:
    """What the program itself burned, from its start to its end."""
    metrics = {"seconds_user": ended.user_seconds, "seconds_sys": ended.sys_seconds}
    if queries:
        metrics["client_cpu_us_per_query"] = (ended.user_seconds + ended.sys_seconds) * 1e6 / queries
    return metrics


def positive(value: float, quantity: str) -> float:
    """A figure that must be more than 0. Raises ``TrialError``."""
    if not value > 0:
        raise TrialError(f"{quantity} is {value:g}; nothing was measured")
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
