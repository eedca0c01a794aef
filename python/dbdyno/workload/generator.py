"""Loads that ``dbdyno-load`` offers: its command line for each kind, and what comes back."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from dbdyno.errors import TrialError
from dbdyno.model.printable import joined_lines, short
from dbdyno.servers.contract import Address, ServerError, TableFormats
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.stack.tools import own_binary
from dbdyno.store.records import NOT_GRANTED, TABLE_OPTIONS
from dbdyno.study.document import WorkloadSection
from dbdyno.study.workloads import (
    BulkSection,
    GeneratedSection,
    IngestSection,
    LoopSection,
    OltpSection,
    ReplayLogSection,
    ScriptSection,
    SmackSection,
    TpccSection,
)
from dbdyno.system.child import DIES_WITH_US, child, decoded
from dbdyno.system.interrupt import now_ns
from dbdyno.workload.load import DAY_SECONDS, LoadResult, limit_seconds, read_load
from dbdyno.workload.tool_load import StopRequest

# What the tables of a load are, read back from the server.


def tables_of(endpoint: Endpoint, schema: str, engine: str, options: str = "") -> dict[str, Any]:
    """Engine and row format of the tables of a schema, and what they have of options; empty where there is no table.

    Raises ``TrialError`` where a table has another engine than was asked for.
    """
    try:
        tables = endpoint.control.tables(schema)
        encrypted = endpoint.control.encrypted_files(schema) if tables else 0
        encrypts = bool(tables) and not encrypted and endpoint.control.encrypts(schema)
        made = endpoint.control.table_formats(schema, tables, options) if options and tables else TableFormats({}, "")
    except ServerError as error:
        raise TrialError(f"the server does not report what its tables are: {error}") from None
    for table in tables:
        if table.engine.lower() != engine.lower():
            name = short(f"{schema}.{table.name}")
            raise TrialError(f"table {name}: asked for engine {engine}, the server took {short(table.engine)}")
    if not tables:
        return {}
    if encrypts and "ENCRYPTION" not in options.upper():
        raise TrialError(f"schema {short(schema)}: its tables are to be encrypted, and the server shows none that is")
    missing = {NOT_GRANTED: {TABLE_OPTIONS: short(made.missing, SAID_MAX)}} if made.missing else {}
    return {"engine": short(tables[0].engine), "row_format": short(tables[0].row_format), **made.shown, **missing} | (
        {"files_encrypted": encrypted} if encrypted else {}
    )


# The load generator ``dbdyno-load``: its command line, its time limit, its errors. Common to all kinds.


INTERVAL_MS = 100
# A killed server has closed its connections a moment before it is gone.
DYING_SECONDS = 1.0

SAID_MAX = 2000  # characters of what the load generator said; it has cut what a server said
USAGE, INTERRUPTED = 2, 130  # the load generator's exit codes for a mistake in its flags, and for Ctrl-C
START_AHEAD_NS = 50_000_000  # from naming the moment of a start until it: the load looks for it every few ms
NOWHERE = Address("nobody", Path("/nonexistent/server.sock"))

SectionT = TypeVar("SectionT", bound=GeneratedSection)


@dataclass(frozen=True)
class Generated(ABC, Generic[SectionT]):
    """A load that ``dbdyno-load`` offers; each kind says its own part of the command line."""

    STARTS_WITHOUT_TABLES: ClassVar[bool] = False  # whether there may be no table before a run

    section: SectionT
    engine: str
    external_schema: str | None = None  # on an external server

    @property
    def schema(self) -> str:
        """The schema that holds its tables."""
        return self.external_schema or f"dbdyno_{self.section.kind.replace('-', '_')}"

    def common_flags(self) -> list[str]:
        """Where the tables are, and how much load by how many."""
        flags = [f"--schema={self.schema}", f"--engine={self.engine}", *self.table_flags()]
        return [*flags, *flags_of(self.section, "clients", *filter(None, [self.section.AMOUNT]))]

    def table_flags(self) -> list[str]:
        """What CREATE TABLE ends in, if the study says."""
        options = self.section.table_options
        return [f"--table-options={options}"] if options else []

    @abstractmethod
    def own_flags(self) -> list[str]:
        """The word after the verb, if there is one, and the flags that only this kind has."""

    def step_flags(self, step: str) -> list[str]:
        """What asks for one step only: ``prepare`` or ``run``."""
        return [step]

    def run_flags(self, folder: Path) -> list[str]:
        """What only a run has; files that it leaves go into the trial's folder."""
        return []

    def login_flags(self, endpoint: Endpoint) -> list[str]:
        """Who runs the load's statements, where that is not the login itself."""
        return []

    @property
    def tool(self) -> None:
        """No program but dbdyno's own."""

    def program(self) -> Path:
        """The load generator."""
        return Path(own_binary("dbdyno-load"))

    def refused(self) -> str:
        """What the load generator has against the flags or the files of this load; empty if nothing. Asks no server."""
        argv = [*self._argv(NOWHERE, seed=0), *_loop_flags(self.section), *self.step_flags("run")]
        done = subprocess.run(
            argv, capture_output=True, encoding="utf-8", errors="replace", check=False, env=_environment()
        )
        return (
            short(joined_lines(done.stderr), SAID_MAX).removeprefix("dbdyno-load: ") if done.returncode == USAGE else ""
        )

    def prepare(self, context: StackContext) -> None:
        """Make schema, tables and first rows, and see that the engine is the one asked for. Raises ``TrialError``."""
        endpoint = context.server
        argv = [
            *self._argv(endpoint.address, seed=0),
            *self.login_flags(endpoint),
            f"--stall-timeout={DAY_SECONDS:.0f}",
            *self.step_flags("prepare"),
        ]
        run_generator(argv, endpoint.address, DAY_SECONDS)
        self.check(context)

    def check(self, context: StackContext) -> dict[str, Any]:
        """Engine, row format and options of the tables, read back. Raises ``TrialError`` on another engine."""
        tables = tables_of(context.server, self.schema, self.engine, self.section.table_options)
        if not tables and not self.STARTS_WITHOUT_TABLES:
            raise TrialError(f"the schema {self.schema} holds no table after it was prepared")
        return tables

    def run(
        self,
        context: StackContext,
        seed: int,
        folder: Path,
        *,
        at_start: Callable[[int], None] | None = None,
        stop: StopRequest | None = None,
    ) -> LoadResult:
        """Offer the load. Raises ``TrialError`` with the cause of whatever ended it early, but for ``stop``.

        ``at_start`` is told the time at which measuring is to begin, on the monotonic clock, right before.
        """
        endpoint, result, series = context.server, folder / "load.json", folder / "load.csv"
        log = folder / "latency.hlog"
        argv = [own_binary("dbdyno-load"), *self.run_argv(endpoint.address, seed), *self.login_flags(endpoint)]
        argv += [f"--json={result}", f"--series={series}", f"--hlog={log}", *self.run_flags(folder)]
        try:
            run_generator(argv, endpoint.address, limit_seconds(self.section), at_start=at_start, stop=stop)
        except TrialError as error:
            # Of rights that an account lacks the generator itself says more.
            cause = (not endpoint.account and _cause(result, self.section.ignore_errors)) or str(error)
            with contextlib.suppress(subprocess.TimeoutExpired):
                if endpoint.process:
                    endpoint.process.wait(DYING_SECONDS)
            ended = how_it_ended(endpoint)
            raise TrialError(f"{cause}; {ended}" if ended else cause) from None
        return read_load(result, series, log)

    def run_argv(self, address: Address, seed: int) -> list[str]:
        """What makes the program offer the load, apart from files and account."""
        timing = [*_loop_flags(self.section), f"--interval={INTERVAL_MS}ms"]
        return [*self._words(address, seed), *timing, *self.step_flags("run")]

    def _argv(self, address: Address, seed: int) -> list[str]:
        return [own_binary("dbdyno-load"), *self._words(address, seed)]

    def _words(self, address: Address, seed: int) -> list[str]:
        argv = [self.section.kind, *self.own_flags(), *self.common_flags()]
        return [*argv, *address.flags(), f"--seed={seed}", "--silent"]


def flags_of(section: WorkloadSection, *names: str) -> list[str]:
    """Fields as the flags of the same name; a field without a value gives none."""
    fields = {name: getattr(section, name) for name in names}
    return [f"--{name.replace('_', '-')}={_shown(value)}" for name, value in fields.items() if value is not None]


def statement_flags(*, prepared: bool) -> list[str]:
    """How statements are sent, in sysbench's words."""
    return [f"--db-ps-mode={'auto' if prepared else 'disable'}"]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _loop_flags(load: GeneratedSection) -> list[str]:
    """How the load is offered."""
    flags = [f"--ignore-errors={load.ignore_errors}", f"--io-threads={load.io_threads}"]
    if not isinstance(load, LoopSection):
        return flags
    if load.warmup == "steady":
        flags += ["--warmup=steady", f"--warmup-max={_milliseconds(load.warmup_max)}"]
    else:
        flags.append(f"--warmup={_milliseconds(load.warmup)}")
    if load.duration is not None:
        flags.append(f"--duration={_milliseconds(load.duration)}")
    if load.rate:
        flags += [f"--rate={load.rate!r}", f"--arrivals={load.arrivals}"]
    if load.think_time:
        flags += [f"--think-time={load.think_time * 1e6:.0f}us", f"--think-distribution={load.think_distribution}"]
    return flags


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}


def run_generator(
    argv: list[str],
    address: Address,
    timeout_seconds: float,
    *,
    at_start: Callable[[int], None] | None = None,
    stop: StopRequest | None = None,
) -> None:
    """Have ``dbdyno-load`` do something and wait for its end. Raises ``TrialError`` with what it said of a failure.

    With ``at_start`` a warm load waits for the moment that this is told. After ``stop`` it ends early and says what was
    done until then.
    """
    environment, deadline = {**_environment(), **address.environment()}, time.monotonic() + timeout_seconds
    with contextlib.ExitStack() as closing:
        start = -1
        if at_start:
            start = os.memfd_create("start")
            closing.callback(os.close, start)
            argv = [*argv, f"--start-file=/proc/self/fd/{start}"]
        command, passed = [*DIES_WITH_US, *argv], (start,) if at_start else ()
        load, stopped = closing.enter_context(child(command, env=environment, pass_fds=passed)), False
        try:
            if at_start:
                _release(load, start, at_start, deadline)
            if stop:
                stopped = _await_stop(load, stop, deadline)
            _, err = load.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TrialError(f"the load was not done after {timeout_seconds:g} s; it was ended") from None
    if load.returncode != 0 and not (stopped and load.returncode == INTERRUPTED):
        raise TrialError(short(joined_lines(decoded(err)), SAID_MAX) or f"dbdyno-load: exit {load.returncode}")


def _release(load: "subprocess.Popen[bytes]", start: int, at_start: Callable[[int], None], deadline: float) -> None:
    """Wait until the load is warm, and name the moment at which it is measured from; nothing where it has ended."""
    assert load.stdout is not None  # noqa: S101  (it is a pipe)
    if not select.select([load.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise subprocess.TimeoutExpired(load.args, 0.0)
    if load.stdout.readline().startswith(b"ready "):
        start_ns = now_ns() + START_AHEAD_NS
        os.pwrite(start, f"{start_ns}\n".encode(), 0)
        at_start(start_ns)


def _await_stop(load: "subprocess.Popen[bytes]", stop: StopRequest, deadline: float) -> bool:
    """Wait until the load ends or is to; whether it was asked to."""
    handle = os.pidfd_open(load.pid)
    try:
        seconds = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([handle, stop.descriptor], [], [], seconds)
    finally:
        os.close(handle)
    if handle in ready or not ready:
        return False
    load.send_signal(signal.SIGINT)
    return True


def _cause(result: Path, ignored: str) -> str:
    """Why a load failed, from what it stored before it ended; empty if it does not say."""
    try:
        run = json.loads(result.read_text(encoding="utf-8"))["runs"][-1]
    except (OSError, ValueError, KeyError, IndexError):
        return ""
    codes = ignored.split(",")
    errors = [error for error in run["errors"] if ignored != "all" and str(error["code"]) not in codes]
    met = [f"{error['count']} x error {error['code']}: {short(str(error['message']))}" for error in errors[:3]]
    return "the load met " + "; ".join(met) if met else short(str(run["aborted"] or ""), SAID_MAX)


# The workload ``oltp``: sysbench's OLTP loads.


TABLES = ("tables", "table_size", "auto_inc", "secondary", "create_secondary")
EVENT = ("skip_trx", "point_selects", "range_selects", "range_size", "simple_ranges", "sum_ranges", "order_ranges",
         "distinct_ranges", "index_updates", "non_index_updates", "delete_inserts")  # fmt: skip


@dataclass(frozen=True)
class Oltp(Generated[OltpSection]):
    """The oltp load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the tables are like, and what an event consists of."""
        section = self.section
        fields = flags_of(section, *TABLES, *EVENT, "reconnect_every", "rand_type", *section.DISTRIBUTION)
        return [section.load, *fields, *statement_flags(prepared=section.prepared)]


# The workload ``bulk``: tables made, filled and indexed, as sysbench prepares them.


@dataclass(frozen=True)
class Bulk(Generated[BulkSection]):
    """The bulk load of one treatment; it starts from an empty schema and makes its tables itself."""

    STARTS_WITHOUT_TABLES = True

    def own_flags(self) -> list[str]:
        """What the tables are like. A CREATE INDEX answers nothing until it is done, however long that takes."""
        return [*flags_of(self.section, *TABLES, "batch_bytes"), f"--stall-timeout={DAY_SECONDS:.0f}"]


# The workload ``ingest``: rows into a table with three secondary indexes, as fast as it takes them.


FIELDS = ("mode", "rows_per_call", "rows_per_insert", "rows_per_commit", "value_range", "initial_rows")


@dataclass(frozen=True)
class Ingest(Generated[IngestSection]):
    """The ingest load of one treatment; its table starts with ``initial_rows``, which may be none."""

    def own_flags(self) -> list[str]:
        """What the table is like, and how rows come into it."""
        return [*flags_of(self.section, *FIELDS), *statement_flags(prepared=self.section.prepared)]


# The workload ``script``: a SQL file of the user's own.


@dataclass(frozen=True)
class Script(Generated[ScriptSection]):
    """The script of one treatment; its tables are what its setup makes, which may be none.

    Their engine is the study's, unless the script's CREATE TABLE names another: that fails the trial.
    """

    STARTS_WITHOUT_TABLES = True

    def own_flags(self) -> list[str]:
        """The file, and what is changed of it."""
        section = self.section
        changed = [name for name in ("setup", "weights", "set") if getattr(section, name)]
        return [section.file, *flags_of(section, *changed), *statement_flags(prepared=section.prepared)]

    def login_flags(self, endpoint: Endpoint) -> list[str]:
        """By which account the script runs.

        A server of dbdyno's own is the script's as a whole, and is thrown away. On an external one it has an
        account for its database alone, unless the study gives it the whole server.
        """
        return [f"--account={endpoint.account}"] if endpoint.account else ["--whole-server"]


# The workload ``smack``: Super-Smack's statements by random primary key, over rows of a given size.


@dataclass(frozen=True)
class Smack(Generated[SmackSection]):
    """The smack load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the table is like, and what is said to it."""
        section = self.section
        table = flags_of(section, "rows", "row_size", "key", "compressible")
        keys = flags_of(section, "rand_type", *section.DISTRIBUTION)
        return [section.load, *table, *keys, *statement_flags(prepared=section.prepared)]


# The workload ``tpcc``: the tables and transactions of TPC-C.


@dataclass(frozen=True)
class Tpcc(Generated[TpccSection]):
    """The tpcc load of one treatment."""

    def common_flags(self) -> list[str]:
        """As of any load, but terminals follow from the warehouses."""
        return [flag for flag in super().common_flags() if not (self.section.keying and flag.startswith("--clients="))]

    def own_flags(self) -> list[str]:
        """How much data, and how often each transaction comes."""
        return flags_of(self.section, "warehouses", "mix", "keying")


# The workload ``replay-log``: a server's log, with its sessions and times.


@dataclass(frozen=True)
class ReplayLog(Generated[ReplayLogSection]):
    """The replay of one treatment; its tables are what the setup makes, which may be none."""

    STARTS_WITHOUT_TABLES = True

    def own_flags(self) -> list[str]:
        """The log, and what is sent of it when."""
        section = self.section
        writes = ["--writes"] if section.writes else []
        # One schema of a log is replayed in the load's own, whatever else the log has.
        return [section.file, *flags_of(section, "speed", "setup", "from_schema", "duration"), *writes]

    def login_flags(self, endpoint: Endpoint) -> list[str]:
        """By which account: on every server the load's own, as a log may hold anything."""
        return [f"--account={endpoint.account}"] if endpoint.account else []
