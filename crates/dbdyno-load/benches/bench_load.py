#!/usr/bin/env python3
"""dbdyno-load beside mysqlslap and sysbench: client CPU per query, queries per second, and the budgets for them.

    bench_load.py [--quick] [--rounds N] [--only TEXT] [--strict] [--json FILE] [--binary PATH] [--floor PATH]

All tools run in turn on one private MariaDB, over its unix socket unless a line says tcp, in another order in each
round; a figure is the median over the rounds, with the least and the greatest beside it.

What runs:
  point select     by key over 100,000 rows at 1, 8, 64 and 256 clients: mysqlslap (its key load; a file of such
                   statements), sysbench (text, prepared), ours (slap's key load; oltp, text and prepared; at 256
                   clients also with two threads), and the floor
  point select,tcp the same over the loopback; published, without a budget
  slap write/mixed 10 and 50 clients, against mysqlslap
  oltp read_write  10 and 50 clients, text and prepared, against sysbench
  4,000 clients    whether a run works at all, ours and theirs

How a figure is made:
  CPU us/query     what a long run cost the client beyond one a tenth as long, so that start, connecting and preparing
                   cancel out: (user + system time of the process) / (more queries)
  queries/s        likewise; of mysqlslap by the seconds it reports itself, as it fills its table in every run
  server us        CPU time of the server per query, likewise
  foreign          processors that neither the tool nor the server used and that were not idle. Where it is above 0.1,
                   others were at work, and no ratio of that group is to be trusted
  floor            the example program `floor` of this crate: the bytes of one point select of ours, as captured here,
                   sent to and fro between one thread and an echo server with a thread per connection, no more

Budgets: the cheapest of ours to the cheapest peer, the fastest of ours to the fastest peer; each of ours to the floor
with its bytes; writing loads like with like. A ratio is one of medians; beside it the ratios of single rounds.

--only 'unix, 64' runs the groups whose name holds that. --quick: 3 rounds over 20,000 rows with fewer queries, tcp at
64 clients only; about 3 minutes. The figures of record come from the full run on a machine that does nothing else.
The result is written to --json; exit code 1 comes with --strict only, when a budget was not met.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import budgets
from cost import Cost, Group, measure
from private_server import running
from tools import Bench, Programs

from benches.figures import Figure, write

if TYPE_CHECKING:
    from collections.abc import Callable

    Judge = Callable[[Group, dict[str, Cost]], list[budgets.Row]]

FOREIGN_CORES_MAX = 0.1
MANY_CLIENTS = 4000
MANY_CLIENTS_QUERIES = 40_000
MANY_CLIENTS_TIMEOUT_S = 180


@dataclass(frozen=True)
class Extent:
    """How much is run."""

    rows: int
    rounds: int
    tcp_rounds: int
    queries_alone: int
    queries: int
    tcp_clients: tuple[int, ...]

    def queries_of(self, clients: int) -> int:
        """A single client is slower by the time of a round trip."""
        return self.queries_alone if clients == 1 else self.queries


CLIENTS = (1, 8, 64, 256)
WRITING_CLIENTS = (10, 50)
FULL = Extent(100_000, 7, 3, 80_000, 240_000, CLIENTS)
QUICK = Extent(20_000, 3, 1, 20_000, 50_000, (64,))


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def many_clients(bench: Bench) -> dict[str, dict[str, object]]:
    """Whether 4,000 clients work, by tool."""
    group = bench.point_select("unix", MANY_CLIENTS, MANY_CLIENTS_QUERIES)
    outcome: dict[str, dict[str, object]] = {}
    for tool in group.tools:
        say(f"{MANY_CLIENTS} clients: {tool.name}")
        start = time.monotonic()
        try:
            run = subprocess.run(
                tool.filled(MANY_CLIENTS, MANY_CLIENTS_QUERIES),
                check=False,
                capture_output=True,
                text=True,
                timeout=MANY_CLIENTS_TIMEOUT_S,
            )
            code, said = run.returncode, (run.stderr.strip() or run.stdout.strip()).splitlines()
        except subprocess.TimeoutExpired:
            code, said = None, ["no end in time"]
        outcome[tool.name] = {
            "kind": tool.kind,
            "exit_code": code,
            "seconds": time.monotonic() - start,
            "said": said[-1][:200] if code != 0 and said else "",
        }
    return outcome


@dataclass
class Outcome:
    """All that was found."""

    groups: list[tuple[Group, dict[str, Cost]]] = field(default_factory=list)
    rows: list[budgets.Row] = field(default_factory=list)
    many: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def many_work(self) -> bool:
        """Whether 4,000 clients work, ours."""
        return all(tool["exit_code"] == 0 for tool in self.many.values() if tool["kind"] == "ours")

    @property
    def met(self) -> bool:
        """Whether every budget was."""
        return self.many_work and all(row.met for row in self.rows)

    def foreign_cores(self) -> dict[str, float]:
        """By group: processors taken by others, in the worst median of its tools."""
        return {group.name: max(cost.foreign_cores.median for cost in costs.values()) for group, costs in self.groups}

    def figures(self) -> list[Figure]:
        """The budgets."""
        rows = [
            Figure(f"{row.what}, {row.group}: {row.ours} over {row.other}", row.ratio, row.limit, row.met)
            for row in self.rows
        ]
        return [*rows, Figure(f"{MANY_CLIENTS} clients work", float(self.many_work), 1, self.many_work)]

    def json(self) -> dict[str, object]:
        """What the file beside the figures has."""
        foreign = self.foreign_cores()
        groups = [
            {
                "load": group.load,
                "transport": group.transport,
                "clients": group.clients,
                "foreign_cores": foreign[group.name],
                "disturbed": foreign[group.name] > FOREIGN_CORES_MAX,
                "tools": {name: cost.json() for name, cost in costs.items()},
            }
            for group, costs in self.groups
        ]
        many = {"clients": MANY_CLIENTS, "met": self.many_work, "tools": self.many}
        return {"budgets": [asdict(row) for row in self.rows], "many_clients": many, "groups": groups}


def planned(bench: Bench, extent: Extent) -> list[tuple[Group, int, Judge]]:
    """All groups, with the number of their rounds and what judges them."""
    plan: list[tuple[Group, int, Judge]] = []
    for clients in CLIENTS:
        group = bench.point_select("unix", clients, extent.queries_of(clients))
        plan.append((group, extent.rounds, budgets.point_select))
    for clients in extent.tcp_clients:
        group = bench.point_select("tcp", clients, extent.queries_of(clients))
        plan.append((group, extent.tcp_rounds, budgets.none))
    for clients in WRITING_CLIENTS:
        groups = [bench.slap_load(load, clients, extent.queries) for load in ("write", "mixed")]
        groups.append(bench.read_write(clients, extent.queries))
        plan += [(group, extent.rounds, budgets.writing) for group in groups]
    return plan


def run_all(bench: Bench, extent: Extent, only: str) -> Outcome:
    """All groups whose name holds ``only``, and the 4,000 clients unless that is asked for."""
    outcome = Outcome()
    for group, rounds, judge in planned(bench, extent):
        if only in group.name:
            costs = measure(group, bench.server, rounds, say)
            outcome.groups.append((group, costs))
            outcome.rows += judge(group, costs)
            print(budgets.table(group, costs), flush=True)
    if not only:
        outcome.many = many_clients(bench)
    return outcome


def version_of(program: str) -> str | None:
    """What it says of itself."""
    if not shutil.which(program):
        return None
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()


def show(outcome: Outcome) -> None:
    """Prints the verdicts; the tables came when they were done."""
    if outcome.many:
        print(f"{MANY_CLIENTS} clients, {MANY_CLIENTS_QUERIES} queries")
    for name, tool in outcome.many.items():
        verdict = f"{tool['seconds']:.1f} s" if tool["exit_code"] == 0 else f"failed: {tool['said']}"
        print(f"  {name:<30} {verdict}")
    print("budgets: ratio, those of single rounds, limit")
    for row in outcome.rows:
        print(f"  {row.text()}")
    if outcome.many:
        print(f"  {MANY_CLIENTS} clients work: {'met' if outcome.many_work else 'NOT MET'}")
    disturbed = [name for name, cores in outcome.foreign_cores().items() if cores > FOREIGN_CORES_MAX]
    if disturbed:
        print(f"others were at work: trust no ratio of {'; '.join(disturbed)}")


def arguments() -> argparse.Namespace:
    """The command line."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rows and queries")
    parser.add_argument("--rounds", type=int, help="instead of 7, or 3 with --quick")
    parser.add_argument("--only", default="", help="groups whose name holds this: 'unix, 64', 'slap write'")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a budget was not met")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    parser.add_argument("--binary", default=str(target / "dbdyno-load"))
    parser.add_argument("--floor", default=str(target / "examples" / "floor"))
    return parser.parse_args()


def main() -> int:
    """Runs all and prints; gives the exit code."""
    options = arguments()
    extent = QUICK if options.quick else FULL
    if options.rounds:
        extent = replace(extent, rounds=options.rounds, tcp_rounds=options.rounds)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
    # Each client is an open file, here and in the server.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    programs = Programs(options.binary, options.floor)
    for name in ("mysqlslap", "sysbench"):
        if getattr(programs, name) is None:
            say(f"{name} is not installed: no budget is judged against it")
    load_average = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-bench-", dir="/tmp") as folder,
        running(MANY_CLIENTS + 50) as server,
    ):
        bench = Bench(programs, server, pathlib.Path(folder), extent.rows)
        bench.prepare()
        outcome = run_all(bench, extent, options.only)
    show(outcome)
    if options.json:
        details = {
            "extent": asdict(extent),
            "host": {"processors": os.cpu_count(), "kernel": platform.release(), "load_average_before": load_average},
            "versions": {name: version_of(name) for name in ("mariadbd", "mysqlslap", "sysbench", options.binary)},
            **outcome.json(),
        }
        write(options.json, outcome.figures(), details)
    return 1 if options.strict and not outcome.met else 0


if __name__ == "__main__":
    sys.exit(main())
