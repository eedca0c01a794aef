"""``--profile``: a trial of each treatment that is not judged, in which ``perf`` samples the stacks of the server."""

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.printable import joined_lines, one_line, short
from dbdyno.plan.order import Slot
from dbdyno.plan.plan import Plan
from dbdyno.run.images import Images
from dbdyno.run.ports import Ports
from dbdyno.run.trial import TrialStep, TrialTerms, run_steps
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.erase import Erasing
from dbdyno.stack.layer import StackContext
from dbdyno.stack.tools import tool_path
from dbdyno.stack.undo_log import Journal
from dbdyno.store.profiles import (
    BETWEEN,
    BYTES_MAX,
    FRAME_CHARACTERS_MAX,
    FRAMES_MAX,
    PROFILES,
    STACKS_MAX,
    Profile,
    with_profile,
    write_profile,
)
from dbdyno.study.schema import TrialSpec
from dbdyno.system.child import DIES_WITH_US, child, decoded
from dbdyno.workload.tool_load import plain_environment
from dbdyno.workload.workload import LoadOutcome, Workload

EVENT, HERTZ = "cpu-clock", 499  # of the kernel's timers, which virtual machines have as well
RECORDED_BYTES_MAX = 128 * 1024**2
TRY_SECONDS, STOP_SECONDS, FOLD_SECONDS = 20.0, 60.0, 300.0
LINES_MAX = 20_000_000  # of what perf says of its samples
SAID_MAX = 300
_PERF = "perf"
_SAMPLE = re.compile(r"(\S.*?)\s+\d+\s+(\d+)\.(\d{9}):\s*$")  # command, seconds and nanoseconds
_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)\s*$")  # symbol, file


# Whether it can be done here.


def profiling(plan: Plan) -> Plan:
    """The plan with a profile of each treatment. Raises ``UserError`` where a treatment has no server to profile."""
    if plan.design.fleet:
        raise UserError("--profile: is for a study on one host; run it there without [hosts]")
    if plan.study.crash:
        raise UserError("--profile: a study with [crash] is about what is lost, not about time; leave it out")
    for treatment in plan.design.tried:
        spec = plan.specs[treatment.id]
        where = {
            "in a virtual machine": spec.stack.is_in_machine,
            "simulated": spec.stack.is_simulated,
            "without a server": not spec.has_server,
            "on a server that dbdyno does not start": spec.stack.kind == "external",
        }
        if why := next((words for words, holds in where.items() if holds), ""):
            raise UserError(f"--profile: {treatment.label} runs {why}; perf samples servers that dbdyno starts here")
    return replace(plan, profile=True)


def lacks_profile(plan: Plan, folder: Path) -> bool:
    """Whether a treatment of a run has no profile."""
    return len(with_profile(folder, plan.specs)) < len(plan.specs)


def perf_need() -> Capability:
    """Whether perf can sample a process here."""
    path = tool_path(_PERF)
    if path is None:
        return Capability(
            "perf", ok=False, detail="not installed", remedy="apt-get install linux-perf, or leave out --profile"
        )
    argv = [path, "record", "-e", EVENT, "-o", "/dev/null", "--", "true"]
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=TRY_SECONDS, env=_environment())
        said, is_ok = decoded(done.stderr), done.returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        said, is_ok = str(error), False
    why = "" if is_ok else f"can't sample {EVENT}: {short(joined_lines(said), SAID_MAX)}"
    remedy = "" if is_ok else "sysctl kernel.perf_event_paranoid=1, or run it as root; or leave out --profile"
    return Capability("perf", ok=is_ok, detail=why or path, remedy=remedy)


def _environment() -> dict[str, str]:
    return {**plain_environment(), "HOME": "/nonexistent"}  # no ~/.perfconfig, no cache of binaries


# The trials: run as any other, their load watched by perf, and nothing of them stored but the profile.


@dataclass(frozen=True)
class Profiling:
    """What profiles of a run are taken with."""

    plan: Plan
    folder: Path  # of the run
    images: Images
    journal: Journal
    erase: Erasing
    ports: Ports
    say: Callable[[str], None]

    def take(self, live: Iterable[str]) -> None:
        """Take a profile of each treatment that has none yet; one that fails is said and left out."""
        left = set(live) - with_profile(self.folder, self.plan.specs)
        rows = [[id_ for id_ in row if id_ in live] for row in self.plan.design.steps()]
        rows = [row for row in rows if left.intersection(row)]
        for number, row in enumerate(rows, 1):
            labels = ", ".join(self.plan.design.labels[id_] for id_ in row)
            self.say(f"profile {number} of {len(rows)}, not judged: {labels}")
            try:
                self._take_row(row)
            except (TrialError, HostError) as error:
                self.say(f"no profile of {labels}: {error}")

    def _take_row(self, row: Sequence[str]) -> None:
        """Run the steps of one trial; store what can be folded, and say what can't.

        Raises ``TrialError`` or ``HostError``.
        """
        scratch = self.folder / PROFILES / "trial"
        shutil.rmtree(scratch, ignore_errors=True)
        steps, loads = [], []
        for place, id_ in enumerate(row, 1):
            where = scratch / id_
            where.mkdir(parents=True)
            spec = self.plan.specs[id_]
            loads.append(_Profiled(self.ports.workload_of(spec), where))
            ports = replace(self.ports, workload_of=_always(loads[-1]))
            steps.append(TrialStep(Slot(1, 1, place, id_), spec, where, ports))
        try:
            spec = self.plan.specs[row[0]]
            terms = TrialTerms(self.plan.trial_seed(1), self.journal, self.erase, rest_seconds=0.0, say=self.say)
            came = run_steps(steps, self.images.of(spec), terms)
            for id_, load in zip(row, loads, strict=True):
                if load.folded is not None:
                    write_profile(self.folder, load.profile(id_))
                elif load.trouble:
                    self.say(f"no profile of {self.plan.design.labels[id_]}: {load.trouble}")
            if came.error:
                raise came.error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _always(workload: Workload) -> Callable[[TrialSpec], Workload]:
    return lambda _: workload


class _Profiled:
    """A load while which perf samples the server."""

    def __init__(self, load: Workload, folder: Path) -> None:
        self._load, self._recorded = load, folder / "perf.data"
        self.folded: Counter[tuple[str, ...]] | None = None
        self.trouble = ""  # why what was recorded is no profile
        self._window_seconds, self._queries = 0.0, 0.0
        self.tool, self.program, self.refused = load.tool, load.program, load.refused
        self.prepare, self.check = load.prepare, load.check

    def run(self, context: StackContext, seed: int, folder: Path) -> LoadOutcome:
        """Offer the load. Raises ``TrialError`` also where perf fails."""
        pid = context.server.pid
        if pid is None:
            raise TrialError("perf can't sample a server that runs elsewhere")
        with sampled(pid, self._recorded):
            load = self._load.run(context, seed, folder)
        start_ns, end_ns = load.window_ns
        self._window_seconds, self._queries = (end_ns - start_ns) / 1e9, float(load.queries or 0)
        try:
            self.folded = folded(self._recorded, load.window_ns)
        except TrialError as error:  # steps that go on from this one are none the worse for it
            self.trouble = str(error)
        return load

    def profile(self, treatment: str) -> Profile:
        """What was sampled."""
        stacks, lost = bounded(self.folded or Counter())
        return Profile(treatment, EVENT, HERTZ, self._window_seconds, self._queries, lost, stacks)


@contextmanager
def sampled(pid: int, into: Path) -> Iterator[None]:
    """Have perf sample a process, all its threads, and those that it will start. Raises ``TrialError``."""
    path = tool_path(_PERF)
    if path is None:
        raise TrialError("perf is not installed")
    (asked, asking), (answer, answering) = os.pipe(), os.pipe()
    record = ["record", "-q", "-e", EVENT, "-F", str(HERTZ), "-g", "-k", "CLOCK_MONOTONIC", "-o", str(into)]
    # It is asked to begin and says that it has: a thread that the server starts before that would not be sampled.
    record += [f"--max-size={RECORDED_BYTES_MAX >> 20}M", "-D", "-1", f"--control=fd:{asked},{answering}"]
    argv, passed = [*DIES_WITH_US, path, *record, "-p", str(pid)], (asked, answering)
    try:
        with child(argv, env=_environment(), stdout=subprocess.DEVNULL, pass_fds=passed) as perf:
            os.write(asking, b"enable\n")
            deadline = time.monotonic() + TRY_SECONDS
            while perf.poll() is None and not select.select([answer], [], [], 0.05)[0]:
                if time.monotonic() > deadline:
                    raise TrialError(f"perf had not begun after {TRY_SECONDS:g} s")
            yield
            _stop(perf, into)
    finally:
        for descriptor in (asked, asking, answer, answering):
            os.close(descriptor)


def _stop(perf: "subprocess.Popen[bytes]", into: Path) -> None:
    """Have perf write the rest of what it has. Raises ``TrialError`` where it recorded nothing."""
    if perf.poll() is None:
        perf.send_signal(signal.SIGINT)
    try:
        _, said = perf.communicate(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        raise TrialError(f"perf did not end within {STOP_SECONDS:g} s") from None
    if not into.is_file() or not into.stat().st_size:
        raise TrialError(f"perf recorded nothing: {short(joined_lines(decoded(said)), SAID_MAX)}")


def folded(recorded: Path, window_ns: tuple[int, int]) -> Counter[tuple[str, ...]]:
    """Return stacks, the outermost frame first, with how many samples of a window of time met each.

    Raises ``TrialError``.
    """
    fields = ["-F", "comm,tid,time,ip,sym,dso", "--ns", "--no-inline"]
    argv = [*DIES_WITH_US, tool_path(_PERF) or _PERF, "script", "-i", str(recorded), *fields]
    with child(argv, env=_environment(), stderr=subprocess.DEVNULL) as script:
        assert script.stdout is not None  # noqa: S101  (it is a pipe)
        deadline = time.monotonic() + FOLD_SECONDS
        stacks = stacks_in((decoded(line) for line in script.stdout), window_ns, deadline)
        if script.wait():
            raise TrialError(f"perf script failed on what perf has recorded (exit {script.returncode})")
    if not stacks:
        raise TrialError("perf met the server at nothing while the load was measured; give a longer load")
    return stacks


def stacks_in(
    lines: Iterable[str], window_ns: tuple[int, int], deadline: float = float("inf")
) -> Counter[tuple[str, ...]]:
    """Return the stacks that ``perf script`` prints, within a window of time. Raises ``TrialError``."""
    stacks: Counter[tuple[str, ...]] = Counter()
    command, frames = "", list[str]()
    for number, line in enumerate(lines):
        if number > LINES_MAX or (number % 10_000 == 0 and time.monotonic() > deadline):
            raise TrialError("perf recorded more than can be folded; give a shorter load")
        if sample := _SAMPLE.match(line):
            at_ns = int(sample[2]) * 1_000_000_000 + int(sample[3])
            command, frames = (_name(sample[1]) if window_ns[0] <= at_ns <= window_ns[1] else ""), []
        elif command and (frame := _FRAME.match(line)):
            frames.append(_called(frame[1], frame[2]))
        elif command and not line.strip():
            stacks[_outermost_first(command, frames)] += 1
            command = ""
    if command:
        stacks[_outermost_first(command, frames)] += 1
    return stacks


def _outermost_first(command: str, frames: Sequence[str]) -> tuple[str, ...]:
    """Return a stack, in which a file whose functions are not known stands once for several in a row."""
    whole = [command, *reversed(frames)]
    return tuple(name for place, name in enumerate(whole) if not (place and name == whole[place - 1]))[:FRAMES_MAX]


@lru_cache(100_000)
def _called(symbol: str, file: str) -> str:
    """Return what a frame is called: its function, or the file that does not name it."""
    return _name(symbol) if symbol != "[unknown]" else f"[{_name(file.rpartition('/')[2].strip('[]'))}]"


def _name(text: str) -> str:
    return one_line(text.replace(BETWEEN, ":"))[:FRAME_CHARACTERS_MAX] or "?"


def bounded(stacks: Mapping[tuple[str, ...], int]) -> tuple[dict[str, int], int]:
    """Return folded stacks, those met most often as far as they may be stored, and how many samples are left out."""
    kept, size, lost = dict[str, int](), 0, 0
    for frames, count in sorted(stacks.items(), key=lambda item: (-item[1], item[0])):
        stack = BETWEEN.join(frames)
        size += 2 * len(stack.encode()) + 40
        if len(kept) < STACKS_MAX and size < BYTES_MAX // 2:
            kept[stack] = kept.get(stack, 0) + count
        else:
            lost += count
    return kept, lost
