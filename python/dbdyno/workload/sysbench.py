"""The workload ``sysbench``: sysbench's own OLTP scripts, run by sysbench 1.0."""

from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.servers.contract import ServerError
from dbdyno.stack.layer import StackContext
from dbdyno.study.tools import SysbenchSection
from dbdyno.workload.generator import flags_of
from dbdyno.workload.oltp import EVENT, TABLES
from dbdyno.workload.program import Program, home_of_program, run_program
from dbdyno.workload.sysbench_output import PERCENTILE, read_sysbench
from dbdyno.workload.tables import tables_of
from dbdyno.workload.time_limit import DAY_SECONDS
from dbdyno.workload.tool import ByTool
from dbdyno.workload.tool_load import ToolLoad

SYSBENCH = Program(("sysbench",), "sysbench")
SCHEMA = "dbdyno_sysbench"


@dataclass(frozen=True)
class Sysbench(ByTool[SysbenchSection]):
    """The sysbench load of one treatment."""

    tool = SYSBENCH

    def prepare(self, context: StackContext) -> None:
        """Make the tables with sysbench itself. Raises ``TrialError``."""
        try:
            context.server.control.create_schema(SCHEMA)
        except ServerError as error:
            raise TrialError(f"the schema {SCHEMA} can't be made: {error}") from None
        home = home_of_program(context)
        argv = [*self._argv(context), "--rand-seed=1", "prepare"]
        run_program(context, "sysbench", argv, folder=context.scratch, limit_seconds=DAY_SECONDS, cwd=home)
        if not self.check(context):
            raise TrialError(f"the schema {SCHEMA} holds no table after it was prepared")

    def check(self, context: StackContext) -> dict[str, str]:
        """Engine and row format of every table, read back. Raises ``TrialError`` on a silent substitution."""
        return tables_of(context.server, SCHEMA, self.engine)

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Run the script. Raises ``TrialError`` with sysbench's own words."""
        section = self.section
        home = home_of_program(context)
        argv = [*self._argv(context), f"--threads={section.clients}", f"--rate={section.rate}"]
        argv += [f"--events={section.events or 0}", f"--time={round(section.duration or 0)}"]
        argv += ["--report-interval=1", "--histogram=on", f"--percentile={PERCENTILE}"]
        argv += [f"--rand-seed={seed % 2**31 or 1}", "run"]
        ended = run_program(context, "sysbench", argv, folder=folder, limit_seconds=self.limit_seconds, cwd=home)
        load = read_sysbench(ended)
        if section.rate:
            load = replace(load, reported={**load.reported, "loop": {"kind": "open", "rate": float(section.rate)}})
        return load

    def _argv(self, context: StackContext) -> list[str]:
        section, address = self.section, context.server.address
        argv = ["sysbench", f"oltp_{section.load}", "--db-driver=mysql"]
        argv += [f"--mysql-socket={address.socket}", f"--mysql-user={address.user}"]
        argv += [f"--mysql-db={SCHEMA}", f"--mysql-storage-engine={self.engine}"]
        argv += [f"--db-ps-mode={'auto' if section.prepared else 'disable'}"]
        return [*argv, *flags_of(section, *TABLES, "rand_type", *EVENT)]
