"""The workload ``dump``: a logical backup by mariadb-dump, and putting it back by the client."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.servers.contract import ServerError
from dbdyno.stack.layer import StackContext
from dbdyno.study.workloads import DumpSection, OltpSection
from dbdyno.workload.generator import Oltp, tables_of
from dbdyno.workload.load import DAY_SECONDS
from dbdyno.workload.tool_load import ByTool, Program, ProgramRun, ToolLoad, client_cpu, positive, run_program

DUMP = Program(("mariadb-dump", "mysqldump"), "mariadb-client")
CLIENT = Program(("mariadb", "mysql"), "mariadb-client")
RESTORED = "dbdyno_restored"
FILE = "dump.sql"


@dataclass(frozen=True)
class Dump(ByTool[DumpSection]):
    """The dump or restore of one treatment; the file lies on the measured filesystem."""

    @property
    def tool(self) -> Program:
        """The program that is measured."""
        return CLIENT if self.section.load == "restore" else DUMP

    @property
    def _tables(self) -> Oltp:
        section = self.section
        fields = {"kind": "oltp", "load": "read_only", "events": 1}
        size = {"tables": section.tables, "table_size": section.table_size, "table_options": section.table_options}
        return Oltp(OltpSection.model_validate(fields | size), self.engine)

    def prepare(self, context: StackContext) -> None:
        """Make the tables, and for a restore the file too. Raises ``TrialError``."""
        self._tables.prepare(context)
        if self.section.load == "restore":
            self._dump(context, context.scratch, DAY_SECONDS)

    def check(self, context: StackContext) -> dict[str, Any]:
        """Engine, row format and options of the tables that are, or were, dumped."""
        return self._tables.check(context)

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Dump, or restore. Raises ``TrialError`` with the program's own words."""
        del seed  # there is no chance in it
        restores = self.section.load == "restore"
        ended = self._restore(context, folder) if restores else self._dump(context, folder, self.limit_seconds)
        file_bytes = positive(_file(context).lstat().st_size, "the size of the dump in bytes")
        rows, seconds = self.section.tables * self.section.table_size, (ended.end_ns - ended.start_ns) / 1e9
        figures = {
            "seconds_real": seconds,
            "megabytes_per_second": file_bytes / 1e6 / seconds,
            "rows_per_second": rows / seconds,
            **client_cpu(ended),
        }
        reported = {"kind": "dump", "load": self.section.load, "file_bytes": file_bytes, "rows": rows}
        return ToolLoad(reported=reported, window_ns=(ended.start_ns, ended.end_ns), figures=figures)

    def _dump(self, context: StackContext, folder: Path, limit_seconds: float) -> ProgramRun:
        section = self.section
        argv = [*connecting(DUMP, context), f"--result-file={_file(context)}"]
        argv += ["--single-transaction"] if section.single_transaction else ["--lock-tables"]
        argv += ["--no-autocommit"] if section.no_autocommit else []
        argv.append(self._tables.schema)
        return run_program(context, DUMP.name, argv, folder=folder, limit_seconds=limit_seconds, cwd=_folder(context))

    def _restore(self, context: StackContext, folder: Path) -> ProgramRun:
        try:
            context.server.control.create_schema(RESTORED)
        except ServerError as error:
            raise TrialError(f"the schema {RESTORED} can't be made: {error}") from None
        # Not by its command ``source``, of whose errors the client's exit code says nothing.
        argv = ["/bin/sh", "-c", f'exec "$0" "$@" <{FILE}', *connecting(CLIENT, context), f"--database={RESTORED}"]
        limit, cwd = self.limit_seconds, _folder(context)
        ended = run_program(context, CLIENT.name, argv, folder=folder, limit_seconds=limit, cwd=cwd)
        if not tables_of(context.server, RESTORED, self.engine):
            raise TrialError(f"the schema {RESTORED} holds no table after the dump was put back")
        return ended


def connecting(program: Program, context: StackContext) -> list[str]:
    """A client program of the server's, and how it logs in to one of dbdyno's own, which has no password."""
    address = context.server.address
    return [str(program.path()), "--no-defaults", f"--socket={address.socket}", f"--user={address.user}"]


def _folder(context: StackContext) -> Path:
    assert context.files is not None  # noqa: S101  (this load has them)
    return context.files


def _file(context: StackContext) -> Path:
    return _folder(context) / FILE
