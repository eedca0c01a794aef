"""The workload ``sysbench``: sysbench's own OLTP scripts, run by sysbench 1.0."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.servers.contract import ServerError
from dbdyno.stack.layer import StackContext
from dbdyno.study.workloads import SysbenchSection
from dbdyno.workload.generator import EVENT, TABLES, flags_of, tables_of
from dbdyno.workload.load import DAY_SECONDS, Columns, percentiles
from dbdyno.workload.tool_load import (
    ByTool,
    Program,
    ProgramRun,
    ToolLoad,
    client_cpu,
    home_of_program,
    positive,
    run_program,
)

# What sysbench 1.0 prints, as the figures and the series of a trial.


PERCENTILE = 99  # of each interval
_INTERVAL = re.compile(
    r"\[ (?P<t_s>\d+)s \] thds: \d+ tps: (?P<tps>[\d.]+) qps: (?P<qps>[\d.]+) .*"
    r"lat \(ms,99%\): (?P<p99>[\d.]+) err/s: (?P<errors>[\d.]+) reconn/s: (?P<reconnects>[\d.]+)"
)
_QUEUE = re.compile(r"\[ \d+s \] queue length: (\d+), concurrency: \d+")
_BUCKET = re.compile(r"\s*(\d+\.\d+) \|\**\s+(\d+)")
_TOTALS = {
    "events": re.compile(r"^\s*transactions:\s+(\d+)", re.MULTILINE),
    "queries": re.compile(r"^\s*queries:\s+(\d+)", re.MULTILINE),
    "errors": re.compile(r"^\s*ignored errors:\s+(\d+)", re.MULTILINE),
    "reconnects": re.compile(r"^\s*reconnects:\s+(\d+)", re.MULTILINE),
    "seconds": re.compile(r"^\s*total time:\s+([\d.]+)s", re.MULTILINE),
    "mean_ms": re.compile(r"^\s*avg:\s+([\d.]+)", re.MULTILINE),
    "max_ms": re.compile(r"^\s*max:\s+([\d.]+)", re.MULTILINE),
}
STARTED = "Threads started!"


def read_sysbench(ended: ProgramRun) -> ToolLoad:
    """The load of a run of sysbench. Raises ``TrialError``."""
    text, lines = ended.stdout, ended.lines()
    totals = totals_of(text)
    figures = sysbench_figures(text)
    start_ns = next((at_ns for at_ns, line in lines if line.startswith(STARTED)), ended.start_ns)
    end_ns = min(start_ns + round(totals["seconds"] * 1e9), ended.end_ns)
    reported = {
        "kind": "sysbench",
        **{name: round(totals[name]) for name in ("events", "queries", "reconnects")},
        "errors_ignored": round(totals["errors"]),
    }
    return ToolLoad(
        reported=reported,
        window_ns=(start_ns, end_ns),
        figures={**figures, **client_cpu(ended, totals["queries"])},
        series=intervals([line for _, line in lines]),
        rate="queries_per_second",
        queries=totals["queries"],
        before_seconds=(start_ns - ended.start_ns) / 1e9,
    )


def totals_of(text: str) -> dict[str, float]:
    """The numbers of the last report. Raises ``TrialError`` where one is missing."""
    matches = {name: pattern.search(text) for name, pattern in _TOTALS.items()}
    if lacking := [name for name, match in matches.items() if match is None]:
        raise TrialError(f"sysbench's output is not what sysbench 1.0 writes: no {', '.join(lacking)}")
    return {name: float(match[1]) for name, match in matches.items() if match}


def sysbench_figures(text: str) -> dict[str, float]:
    """Rates, latencies (ms), errors. Percentiles come from the histogram, whose buckets ``model.metrics`` has."""
    totals = totals_of(text)
    seconds = positive(totals["seconds"], "sysbench's total time")
    figures = {
        "queries_per_second": positive(totals["queries"], "sysbench's number of queries") / seconds,
        "events_per_second": totals["events"] / seconds,
        "seconds_real": seconds,
        "errors": totals["errors"],
        "reconnects": totals["reconnects"],
    }
    if totals["events"]:
        buckets = histogram(text)
        figures |= {"latency_ms_mean": totals["mean_ms"], "latency_ms_max": totals["max_ms"]}
        # A bucket's value may lie above the greatest that was seen.
        figures |= {f"latency_ms_{name}": min(value, totals["max_ms"]) for name, value in percentiles(buckets).items()}
    return figures


def histogram(text: str) -> dict[float, int]:
    """Milliseconds -> how many events."""
    buckets: dict[float, int] = {}
    for line in text.splitlines():
        if match := _BUCKET.fullmatch(line.rstrip()):
            value = float(match[1])
            buckets[value] = buckets.get(value, 0) + int(match[2])
    return buckets


def intervals(lines: Sequence[str]) -> Columns:
    """The series: one value a second; ``backlog`` where a rate was offered."""
    series: dict[str, list[float]] = {}
    for line in lines:
        if match := _INTERVAL.match(line):
            row = {
                "t_s": match["t_s"],
                "events_per_second": match["tps"],
                "queries_per_second": match["qps"],
                "latency_ms_p99": match["p99"],
                "errors_per_second": match["errors"],
                "reconnects_per_second": match["reconnects"],
            }
            for name, value in row.items():
                series.setdefault(name, []).append(float(value))
        elif match := _QUEUE.match(line):
            series.setdefault("backlog", []).append(float(match[1]))
    if len(series.get("backlog", [])) != len(series.get("t_s", [])):
        series.pop("backlog", None)
    return {name: list(values) for name, values in series.items()}


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

    def check(self, context: StackContext) -> dict[str, Any]:
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
