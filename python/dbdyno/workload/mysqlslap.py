"""The workloads ``mysqlslap``, mysqlslap's own run of the SQL it makes, and ``slap``, that SQL by ``dbdyno-load``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.stack.layer import StackContext
from dbdyno.study.workloads import MysqlslapSection, SlapSection
from dbdyno.workload.generator import Generated, tables_of
from dbdyno.workload.tool_load import (
    ByTool,
    Program,
    ToolLoad,
    client_cpu,
    home_of_program,
    last_words,
    positive,
    run_program,
)

# The workload ``slap``: mysqlslap's auto-generated SQL.


@dataclass(frozen=True)
class Slap(Generated[SlapSection]):
    """The slap load of one treatment; its flags are mysqlslap's."""

    def common_flags(self) -> list[str]:
        """Schema, engine, clients and queries by their names in mysqlslap."""
        section = self.section
        flags = [f"--create-schema={self.schema}", f"--engine={self.engine}", f"--concurrency={section.clients}"]
        flags += self.table_flags()
        return flags if section.queries is None else [*flags, f"--number-of-queries={section.queries}"]

    def own_flags(self) -> list[str]:
        """What the table is like, and which statements are generated."""
        return generated_sql(self.section)

    def step_flags(self, step: str) -> list[str]:
        """What asks for one step only."""
        return [f"--phase={step}"]


def generated_sql(section: SlapSection | MysqlslapSection) -> list[str]:
    """The table and the statements in mysqlslap's words, which ``dbdyno-load slap`` takes too."""
    values = {
        "auto-generate-sql-load-type": section.load,
        "number-int-cols": section.int_cols,
        "number-char-cols": section.char_cols,
        "auto-generate-sql-secondary-indexes": section.secondary_indexes,
        "auto-generate-sql-write-number": section.initial_rows,
        "auto-generate-sql-unique-query-number": section.unique_queries,
        "auto-generate-sql-unique-write-number": section.unique_writes,
        "commit": section.commit_every,
    }
    switches = {"add-autoincrement": section.autoincrement, "guid-primary": section.guid_primary}
    flags = ["--auto-generate-sql", *(f"--{name}={value}" for name, value in values.items())]
    return [*flags, *(f"--auto-generate-sql-{name}" for name, on in switches.items() if on)]


MYSQLSLAP = Program(("mysqlslap", "mariadb-slap"), "mariadb-client")
SCHEMA = "dbdyno_mysqlslap"
FIELDS = 7  # engine, load type, average, least, greatest seconds, clients, queries of each client


@dataclass(frozen=True)
class Mysqlslap(ByTool[MysqlslapSection]):
    """The mysqlslap load of one treatment; it makes its tables itself, as part of its run."""

    tool = MYSQLSLAP

    def check(self, context: StackContext) -> dict[str, Any]:
        """Engine and row format of the table, read back; nothing before the run, and after several iterations."""
        return tables_of(context.server, SCHEMA, self.engine)

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Run it. Raises ``TrialError`` with mysqlslap's own words."""
        address = context.server.address
        argv = [str(self.program()), "--no-defaults", f"--socket={address.socket}", f"--user={address.user}"]
        argv += [f"--create-schema={SCHEMA}", f"--engine={self.engine}"]
        # It makes the schema anew for each iteration, which fails if the one before is still there.
        argv += [f"--concurrency={self.section.clients}", f"--number-of-queries={self.section.queries}"]
        argv += ["--csv", f"--iterations={self.section.iterations}", *generated_sql(self.section)]
        argv += [*(["--no-drop"] if self.section.iterations == 1 else [])]
        home = home_of_program(context)
        limit, name = self.limit_seconds, "mysqlslap"
        ended = run_program(context, name, argv, folder=folder, limit_seconds=limit, cwd=home)
        try:
            reported = slap_line(ended.stdout)
        except TrialError as error:  # it ends as if all was well when a query fails
            raise TrialError(f"mysqlslap: {last_words(ended)}" if ended.stderr.strip() else str(error)) from None
        queries = reported["clients"] * reported["queries_per_client"]
        seconds = reported["seconds_mean"]
        figures = {
            "seconds_real": seconds,
            "queries_per_second": positive(queries, "mysqlslap's number of queries") / seconds,
            **client_cpu(ended, queries * self.section.iterations),
        }
        window = (ended.start_ns, ended.end_ns)
        result = {"kind": "mysqlslap", "iterations": self.section.iterations, **reported}
        return ToolLoad(reported=result, window_ns=window, figures=figures, queries=queries * self.section.iterations)


def slap_line(text: str) -> dict[str, float]:
    """The figures of the line that ``--csv`` prints. Raises ``TrialError``."""
    fields = next((line.split(",") for line in text.splitlines() if line.count(",") >= FIELDS - 1), [])
    try:
        mean, least, greatest = (float(field) for field in fields[2:5])
        clients, queries = int(fields[5]), int(fields[6])
    except (ValueError, IndexError):
        raise TrialError(f"mysqlslap's output is not what --csv writes: {text.strip()[:200]!r}") from None
    if not mean > 0:
        raise TrialError("mysqlslap reports milliseconds, and took less than one: give it more workload.queries")
    return {
        "seconds_mean": mean,
        "seconds_min": least,
        "seconds_max": greatest,
        "clients": clients,
        "queries_per_client": queries,
    }
