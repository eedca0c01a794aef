"""Loads beside the judged one, such as a backup: each begins at its time and is stopped when measuring ends.

They are processes of dbdyno's own, so what they take of the host is no interference: it is what a study asks about.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any, cast

from dbdyno.errors import DbdynoError, TrialError
from dbdyno.plan.order import drawn
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.actions import EndProcesses
from dbdyno.store.records import LoadBeside, LoadPart, TrialLoad
from dbdyno.study.beside import AlterBeside, BesideSection, CommandBeside, DumpBeside, MariabackupBeside
from dbdyno.study.workloads import CommandSection, LoopSection, OltpSection
from dbdyno.system.interrupt import now_ns
from dbdyno.system.state import new_token
from dbdyno.workload.command import Command, environment, figure_in
from dbdyno.workload.dump import CLIENT, DUMP, connecting
from dbdyno.workload.generator import Generated
from dbdyno.workload.load import DAY_SECONDS, LoadResult
from dbdyno.workload.tool_load import Program, ProgramRun, StopRequest, client_cpu, run_program

MARIABACKUP = Program(("mariabackup", "mariadb-backup"), "mariadb-backup")
_PROGRAMS: dict[type[BesideSection], Program] = {
    DumpBeside: DUMP,
    MariabackupBeside: MARIABACKUP,
    AlterBeside: CLIENT,
}
SEED_BYTES = 6
KILL_SECONDS = 60.0  # in which the server must take the end of a statement
INTO_NOTHING = ["/bin/sh", "-c", 'exec "$0" "$@" >/dev/null']


def program_of(section: BesideSection) -> Program | None:
    """The program of others that offers it; ``None`` where ``dbdyno-load`` does."""
    if isinstance(section, CommandSection):
        return Command(section, "").tool
    return _PROGRAMS.get(type(section))


@dataclass(frozen=True)
class LoadsBeside:
    """The load of one treatment, and those beside it."""

    load: Generated[Any]
    sections: Mapping[str, BesideSection]  # by name; none in a treatment that others are compared with
    generated: Mapping[str, Generated[Any]]  # of those that dbdyno-load offers
    own_tables: frozenset[str]  # names of those among them that do not work on the judged load's tables

    @property
    def tool(self) -> None:
        """The judged load is dbdyno's own."""

    def program(self) -> Path:
        """The load generator."""
        return self.load.program()

    def refused(self) -> str:
        """What the load generator has against the loads."""
        refusals = ((name, load.refused()) for name, load in self.generated.items())
        return self.load.refused() or next((f"workload.beside {name}: {why}" for name, why in refusals if why), "")

    def prepare(self, context: StackContext) -> None:
        """Make the data of all of them. Raises ``TrialError``."""
        self.load.prepare(context)
        for name, load in self.generated.items():
            if name in self.own_tables:
                load.prepare(context)

    def check(self, context: StackContext) -> dict[str, str]:
        """What the judged load's tables are. Raises ``TrialError``, also for those of the others."""
        for load in self.generated.values():
            load.check(context)
        return self.load.check(context)

    def run(self, context: StackContext, seed: int, folder: Path) -> LoadResult:
        """Offer the load, the others beside it from their times on.

        Raises ``TrialError`` where any of them failed: a trial without what was to run beside it measured nothing.
        """
        token = new_token()
        begun = [
            _Begun(name, section, self._runner(section, context, seed, folder / "beside" / name, token))
            for name, section in self.sections.items()
        ]
        with context.journal.undoing(EndProcesses(token, "the load beside")), _stopping(begun):
            load = self.load.run(context, seed, folder, at_start=lambda start_ns: _begin(begun, start_ns))
        beside = {each.name: each.came_to(load) for each in begun}
        return replace(load, result=cast("TrialLoad", {**load.result, "beside": beside})) if beside else load

    def _runner(
        self, section: BesideSection, context: StackContext, seed: int, folder: Path, token: str
    ) -> "Callable[[StopRequest], Ran]":
        folder.mkdir(parents=True, exist_ok=True)
        own_seed = int.from_bytes(drawn(seed, "beside", section.name)[:SEED_BYTES])
        if section.name in self.generated:
            return partial(_offer, self.generated[section.name], context, own_seed, folder)
        return _OfProgram(section, self.load, context, own_seed, folder, token).run


def beside_load(section: BesideSection, engine: str, made: Callable[..., Any], schema: str = "") -> Generated[Any]:
    """The load that dbdyno-load offers by a section, without a warm-up, until it is stopped.

    It works on the tables of that schema; on its own where none is named.
    """
    fields: dict[str, Any] = {"warmup": 0.0}
    assert isinstance(section, LoopSection)  # noqa: S101  (only such are dbdyno-load's)
    if section.duration is None and getattr(section, section.AMOUNT) is None:
        fields["duration"] = DAY_SECONDS  # until it is stopped
    generated: Generated[Any] = made(section.model_copy(update=fields), engine)
    return replace(generated, external_schema=schema or f"dbdyno_beside_{section.name}")


@dataclass(frozen=True)
class Ran:
    """How a load beside ran."""

    start_ns: int
    end_ns: int
    stopped: bool
    figures: dict[str, float]


@dataclass
class _Begun:
    """One load beside: a thread that waits for its time, runs it, and keeps what it came to."""

    name: str
    section: BesideSection
    runner: "Callable[[StopRequest], Ran]"
    stop: StopRequest = field(default_factory=StopRequest)
    thread: Thread | None = None
    ran: Ran | None = None
    trouble: BaseException | None = None

    def begin(self, start_ns: int) -> None:
        """Run it from its time on; ``start_ns`` is when measuring begins."""
        due_ns = start_ns + round(self.section.start * 1e9)
        self.thread = Thread(target=self._work, args=(due_ns,), name=f"load beside {self.name}", daemon=True)
        self.thread.start()

    def _work(self, due_ns: int) -> None:
        if self.stop.is_made((due_ns - now_ns()) / 1e9):
            return
        try:
            self.ran = self.runner(self.stop)
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits for it)
            self.trouble = error

    def end(self) -> None:
        """Stop it if it still runs, and wait for its end."""
        self.stop.make()
        if self.thread:
            self.thread.join()
        self.stop.close()

    def came_to(self, load: LoadResult) -> LoadBeside:
        """What it came to beside ``load``. Raises ``TrialError`` where it failed, or was never begun."""
        if isinstance(self.trouble, DbdynoError):
            raise TrialError(f"workload.beside {self.name}: {self.trouble}") from None
        if self.trouble is not None:
            raise self.trouble
        start_ns, end_ns = load.window_ns
        if self.ran is None:
            raise TrialError(
                f"workload.beside {self.name}: the measured load ended after {(end_ns - start_ns) / 1e9:.3g} s, before "
                f"its start ({self.section.start:g} s); give an earlier start, or more load"
            )
        program, ran = program_of(self.section), self.ran
        known = program.observed() if program else {}
        return {
            "kind": self.section.kind,
            "began_s": (ran.start_ns - start_ns) / 1e9,
            "seconds": (ran.end_ns - ran.start_ns) / 1e9,
            "stopped": ran.stopped,
            "figures": ran.figures,
            **known,  # type: ignore[typeddict-item]  # program and version
            "during": figures_between(load, ran.start_ns, ran.end_ns, inside=True),
            "outside": figures_between(load, ran.start_ns, ran.end_ns, inside=False),
        }


def _begin(begun: list[_Begun], start_ns: int) -> None:
    for each in begun:
        each.begin(start_ns)


@contextmanager
def _stopping(begun: list[_Begun]) -> Iterator[None]:
    """Whatever ends the judged load ends the others."""
    try:
        yield
    finally:
        for each in begun:
            each.end()


def figures_between(load: LoadResult, from_ns: int, to_ns: int, *, inside: bool) -> LoadPart:
    """What a load did between two times, or outside of them, by the tenths of a second whose middle lies there."""
    ends, start_ns = load.series.get("t_ns", []), float(load.window_ns[0])
    seconds = events = latency = 0.0
    worst, p99s = [], []
    for place, end_ns in enumerate(ends):
        before_ns = ends[place - 1] if place else start_ns
        if (from_ns <= (before_ns + end_ns) / 2 <= to_ns) is not inside:
            continue
        count = load.series["events"][place]
        seconds += (end_ns - before_ns) / 1e9
        if count:
            events += count
            latency += count * load.series["latency_ns_mean"][place]
            worst.append(load.series["latency_ns_max"][place])
            p99s.append(load.series["latency_ns_p99"][place])
    if not seconds:
        return {"seconds": 0.0}
    part: LoadPart = {"seconds": seconds, "events_per_second": events / seconds}
    if events:
        part |= {
            "latency_ms_mean": latency / events / 1e6,
            "latency_ms_p99": median(p99s) / 1e6,
            "latency_ms_max": max(worst) / 1e6,
        }
    return part


# How each kind is run.


def _offer(load: Generated[Any], context: StackContext, seed: int, folder: Path, stop: StopRequest) -> Ran:
    """By dbdyno-load, which says what was done until it was stopped."""
    result = load.run(context, seed, folder, stop=stop)
    start_ns, end_ns = result.window_ns
    stopped = bool(result.result.get("aborted"))
    return Ran(start_ns, end_ns, stopped, result.metrics())


@dataclass(frozen=True)
class _OfProgram:
    """A load that a program of others offers, as the server's user."""

    section: BesideSection
    judged: Generated[Any]
    context: StackContext
    seed: int
    folder: Path
    token: str  # that its end is announced by

    @property
    def program(self) -> Program:
        """Which one."""
        program = program_of(self.section)
        assert program is not None  # noqa: S101  (dbdyno-load offers the others)
        return program

    @property
    def target(self) -> Path:
        """What a backup is written to, on the measured filesystem."""
        return (self.context.files or self.folder) / self.section.name

    def run(self, stop: StopRequest) -> Ran:
        """Run it to its end, or until it is stopped. Raises ``TrialError``."""
        section, is_command = self.section, isinstance(self.section, CommandSection)
        limit = section.time_limit if isinstance(section, CommandSection) else DAY_SECONDS
        variables = environment(self.context, self.seed) if is_command else None
        ended = self._run(self._command_line(), limit, variables, stop)
        if ended.stopped and isinstance(section, AlterBeside):
            self._end_statement(ended)
        seconds = (ended.end_ns - ended.start_ns) / 1e9
        figures = {"seconds_real": seconds, **client_cpu(ended), **self._amounts(ended)}
        figures |= {f"{name}_per_second": figures[name] / seconds for name in ("megabytes", "rows") if name in figures}
        return Ran(ended.start_ns, ended.end_ns, ended.stopped, figures)

    def _run(
        self,
        argv: list[str],
        limit_seconds: float,
        variables: Mapping[str, str] | None = None,
        stop: StopRequest | None = None,
    ) -> ProgramRun:
        return run_program(
            self.context,
            self.program.name,
            argv,
            folder=self.folder,
            limit_seconds=limit_seconds,
            cwd=self.context.files or self.context.scratch,
            environment=variables,
            stop=stop,
            announced=self.token,
        )

    def _command_line(self) -> list[str]:
        section, client = self.section, connecting(self.program, self.context)
        match section:
            case DumpBeside():
                file = self.target if section.into == "disk" else os.devnull
                how = "--single-transaction" if section.single_transaction else "--lock-tables"
                return [*client, f"--result-file={file}", how, self.judged.schema]
            case MariabackupBeside():
                threads = [f"--parallel={section.parallel}"]
                threads += [f"--throttle={section.throttle}"] if section.throttle else []
                argv = [*client, "--backup", f"--target-dir={self.target}", *threads]
                return argv if section.into == "disk" else [*INTO_NOTHING, *argv, "--stream=mbstream"]
            case AlterBeside():
                # Its number is said first: a statement goes on in the server when its client is gone.
                statements = f"SELECT CONNECTION_ID(); {section.statement}"
                quiet = ["--batch", "--skip-column-names", "--unbuffered"]
                return [*client, *quiet, f"--database={self.judged.schema}", f"--execute={statements}"]
            case CommandBeside():
                return [str(self.program.path()), *section.words[1:]]
        raise AssertionError(section.kind)

    def _amounts(self, ended: ProgramRun) -> dict[str, float]:
        """How much it did: what is in files, of a whole dump the rows, and a command's figure."""
        amounts, section, tables = dict[str, float](), self.section, self.judged.section
        if isinstance(section, DumpBeside | MariabackupBeside) and section.into == "disk":
            files = [self.target] if self.target.is_file() else list(self.target.rglob("*"))
            amounts["megabytes"] = sum(file.lstat().st_size for file in files if file.is_file()) / 1e6
        if isinstance(section, DumpBeside) and isinstance(tables, OltpSection) and not ended.stopped:
            amounts["rows"] = float(tables.tables * tables.table_size)
        if isinstance(section, CommandSection) and section.figure and not ended.stopped:
            amounts[section.metric] = figure_in(ended.stdout, section.figure)
        return amounts

    def _end_statement(self, ended: ProgramRun) -> None:
        """End a statement whose client is gone. Raises ``TrialError``."""
        number = ended.stdout.split("\n", 1)[0].strip()
        if number.isdecimal():
            # One that has just ended is no error.
            self._run([*connecting(self.program, self.context), "--force", f"--execute=KILL {number}"], KILL_SECONDS)
