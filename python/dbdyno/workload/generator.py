"""The load generator ``dbdyno-load``: its command line, its time limit, its errors. Common to all kinds."""

import contextlib
import json
import os
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from dbdyno.errors import TrialError
from dbdyno.model.printable import short
from dbdyno.servers.contract import Address
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.stack.tools import own_binary
from dbdyno.study.section import WorkloadSection
from dbdyno.study.workloads import GeneratedSection, LoopSection
from dbdyno.system.child import child, decoded
from dbdyno.workload.load import Load, read_load
from dbdyno.workload.tables import tables_of
from dbdyno.workload.time_limit import DAY_SECONDS, limit_seconds

INTERVAL_MS = 100
# A killed server has closed its connections a moment before it is gone.
DYING_SECONDS = 1.0

SAID_MAX = 2000  # characters of what the load generator said; it has cut what a server said
USAGE = 2  # the load generator's exit code for a mistake in its flags
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
        where = [f"--schema={self.schema}", f"--engine={self.engine}"]
        return [*where, *flags_of(self.section, "clients", *filter(None, [self.section.AMOUNT]))]

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
        return _said(done.stderr).removeprefix("dbdyno-load: ") if done.returncode == USAGE else ""

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

    def check(self, context: StackContext) -> dict[str, str]:
        """Engine and row format of every table, read back. Raises ``TrialError`` on a silent substitution."""
        found = tables_of(context.server, self.schema, self.engine)
        if not found and not self.STARTS_WITHOUT_TABLES:
            raise TrialError(f"the schema {self.schema} holds no table after it was prepared")
        return found

    def run(self, context: StackContext, seed: int, folder: Path) -> Load:
        """Offer the load. Raises ``TrialError`` with the cause of whatever ended it early."""
        endpoint, result, series = context.server, folder / "load.json", folder / "load.csv"
        log = folder / "latency.hlog"
        argv = [own_binary("dbdyno-load"), *self.run_argv(endpoint.address, seed), *self.login_flags(endpoint)]
        argv += [f"--json={result}", f"--series={series}", f"--hlog={log}", *self.run_flags(folder)]
        try:
            run_generator(argv, endpoint.address, limit_seconds(self.section))
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


def _said(stderr: str) -> str:
    return short(" / ".join(line.strip() for line in stderr.splitlines() if line.strip()), SAID_MAX)


def run_generator(argv: list[str], address: Address, timeout_seconds: float) -> None:
    """Have ``dbdyno-load`` do something and wait for its end. Raises ``TrialError`` with what it said of a failure."""
    environment = {**_environment(), **address.environment()}
    try:
        with child(["setpriv", "--pdeathsig", "KILL", *argv], env=environment) as load:
            _, err = load.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise TrialError(f"the load was not done after {timeout_seconds:g} s; it was ended") from None
    if load.returncode != 0:
        raise TrialError(_said(decoded(err)) or f"dbdyno-load: exit {load.returncode}")


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
