"""The workload ``slap``: mysqlslap's auto-generated SQL, offered by ``dbdyno-load``."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pymysql

from dbdyno.errors import TrialError
from dbdyno.servers import mariadb
from dbdyno.stack.layer import Endpoint
from dbdyno.stack.server import how_it_ended
from dbdyno.stack.tools import own_binary
from dbdyno.study.schema import SlapSection
from dbdyno.workload.load import Load, read_load

SCHEMA = "dbdyno_slap"
INTERVAL_MS = 100
# Beyond this a closed loop on a slow disk is stuck rather than slow.
TIMEOUT_SECONDS = 3600.0


@dataclass(frozen=True)
class Slap:
    """The slap load of one treatment."""

    section: SlapSection
    engine: str

    def prepare(self, endpoint: Endpoint) -> None:
        """Create schema, table and first rows, and see that the engine is the one asked for. Raises ``TrialError``."""
        self._run([*self._argv(endpoint, seed=0), "--phase=prepare", *self._amount()])
        self.check(endpoint)

    def check(self, endpoint: Endpoint) -> dict[str, str]:
        """Engine and row format of every table, read back. Raises ``TrialError`` on a silent substitution."""
        query = "SELECT table_name, engine, row_format FROM information_schema.tables WHERE table_schema = %s"
        try:
            with mariadb.connect(endpoint.socket) as connection, connection.cursor() as cursor:
                cursor.execute(query, (SCHEMA,))
                tables = cursor.fetchall()
        except pymysql.Error as error:
            raise TrialError(f"the server does not tell the tables' engine: {error}") from None
        for table, engine, _ in tables:
            if str(engine).lower() != self.engine.lower():
                raise TrialError(f"table {SCHEMA}.{table}: asked for engine {self.engine}, the server took {engine}")
        if not tables:
            raise TrialError(f"the schema {SCHEMA} holds no table after it was prepared")
        return {"engine": str(tables[0][1]), "row_format": str(tables[0][2])}

    def run(self, endpoint: Endpoint, seed: int, folder: Path) -> Load:
        """Offer the load. Raises ``TrialError`` with the cause on any error that a query met."""
        result, series = folder / "load.json", folder / "load.csv"
        argv = [*self._argv(endpoint, seed), "--phase=run", *self._amount()]
        argv += [f"--warmup={round(self.section.warmup * 1000)}", f"--interval={INTERVAL_MS}"]
        argv += [f"--json={result}", f"--series={series}", f"--hlog={folder / 'latency.hlog'}"]
        try:
            self._run(argv)
        except TrialError as error:
            ended = how_it_ended(endpoint)
            raise TrialError(f"{_cause(result) or error}{ended and f'; {ended}'}") from None
        return read_load(result, series)

    def _amount(self) -> list[str]:
        section = self.section
        if section.duration is not None:
            return [f"--duration={round(section.duration * 1000)}"]
        return [f"--number-of-queries={section.queries}"]

    def _argv(self, endpoint: Endpoint, seed: int) -> list[str]:
        section = self.section
        argv = [own_binary("dbdyno-load"), "slap", "--no-defaults", "--auto-generate-sql", "--silent"]
        argv += [f"--socket={endpoint.socket}", f"--user={endpoint.user}", f"--create-schema={SCHEMA}"]
        argv += [f"--auto-generate-sql-load-type={section.load}", f"--concurrency={section.clients}"]
        argv += [f"--engine={self.engine}", f"--seed={seed}", f"--commit={section.commit_every}"]
        argv += [f"--number-int-cols={section.int_cols}", f"--number-char-cols={section.char_cols}"]
        argv += [f"--auto-generate-sql-secondary-indexes={section.secondary_indexes}"]
        argv += [f"--auto-generate-sql-write-number={section.initial_rows}"]
        argv += [f"--auto-generate-sql-unique-query-number={section.unique_queries}"]
        argv += [f"--auto-generate-sql-unique-write-number={section.unique_writes}"]
        if section.autoincrement:
            argv.append("--auto-generate-sql-add-autoincrement")
        if section.guid_primary:
            argv.append("--auto-generate-sql-guid-primary")
        return argv

    def _run(self, argv: list[str]) -> None:
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}
        try:
            done = subprocess.run(
                ["setpriv", "--pdeathsig", "KILL", *argv],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_SECONDS,
                check=False,
                env=environment,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise TrialError(f"the load was not done after {TIMEOUT_SECONDS:g} s; it was ended") from None
        if done.returncode != 0:
            said = " / ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
            raise TrialError(f"dbdyno-load: {said or f'exit {done.returncode}'}")


def _cause(result: Path) -> str:
    """Why a load failed, from what it stored before it ended."""
    try:
        run = json.loads(result.read_text(encoding="utf-8"))["runs"][-1]
    except (OSError, ValueError, KeyError, IndexError):
        return ""
    errors = [f"{error['count']} x error {error['code']}: {error['message']}" for error in run.get("errors", [])]
    return "the load met " + "; ".join(errors[:3]) if errors else str(run.get("aborted") or "")
