#!/usr/bin/env python3
"""Client CPU per query of dbdyno-load, mysqlslap and sysbench, side by side.

All run select by key over one private MariaDB and its unix socket, in turn within each round; a
figure is the median over the rounds. CPU per query is what a long run cost beyond a short one,
so start, connecting and preparing cancel out. Prints a table, then JSON on the last line.

    python3 load_cpu.py [--binary PATH] [--rounds 5] [--queries 60000] [--clients 1,8,64]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 1000
BUDGET = {1: 0.75, 8: 0.55, 64: 0.33, 256: 0.30}
PEER_SHORT_RUN_SHARE = 10


@dataclass
class Cost:
    """What the rounds of one tool at one number of clients cost."""

    cpu_us_per_query: list[float] = field(default_factory=list)
    queries_per_second: list[float] = field(default_factory=list)


@contextlib.contextmanager
def server(max_connections: int) -> Iterator[str]:
    """A private MariaDB; gives the path of its socket."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dbdyno-bench-", dir="/tmp"))
    folder.chmod(0o755)
    datadir, socket = folder / "data", folder / "data" / "s"
    common = ["--no-defaults", f"--datadir={datadir}"]
    if os.geteuid() == 0:
        common.append("--user=nobody")
    install = ["mariadb-install-db", *common, "--auth-root-authentication-method=normal"]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(
        [
            "mariadbd",
            *common,
            f"--socket={socket}",
            "--skip-networking",
            f"--max-connections={max_connections}",
            "--innodb-flush-log-at-trx-commit=0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        probe = ["mariadb", "--no-defaults", "-uroot", f"-S{socket}", "-e", "CREATE SCHEMA sb"]
        for _ in range(600):
            if subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                break
            if process.poll() is not None:
                sys.exit("the server ended before it was ready")
            time.sleep(0.1)
        yield str(socket)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def measure(command: list[str]) -> tuple[float, float]:
    """CPU and wall time of a command, seconds."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start


def tools(binary: str, socket: str) -> dict[str, list[str]]:
    """Command of each tool that is installed; CLIENTS and QUERIES are filled in later."""
    slap = [
        "--no-defaults",
        "-uroot",
        f"--socket={socket}",
        "-a",
        "--auto-generate-sql-add-autoincrement",
        "--auto-generate-sql-load-type=key",
        f"--auto-generate-sql-write-number={ROWS + 1}",
        "--concurrency=CLIENTS",
        "--number-of-queries=QUERIES",
    ]
    sysbench = [
        "sysbench",
        "oltp_point_select",
        "--mysql-user=root",
        f"--mysql-socket={socket}",
        "--mysql-db=sb",
        f"--table-size={ROWS}",
        "--rand-type=uniform",
        "--time=0",
        "--threads=CLIENTS",
        "--events=QUERIES",
    ]
    found = {"dbdyno": [binary, "slap", *slap]}
    if shutil.which("mysqlslap"):
        found["mysqlslap"] = ["mysqlslap", *slap]
    if shutil.which("sysbench"):
        prepare = [part for part in sysbench if not part.endswith(("CLIENTS", "QUERIES"))]
        subprocess.run([*prepare, "prepare"], check=True, stdout=subprocess.DEVNULL)
        found["sysbench text"] = [*sysbench, "--db-ps-mode=disable", "run"]
        found["sysbench prepared"] = [*sysbench, "run"]
    return found


def once(command: list[str], clients: int, queries: int) -> tuple[float, float]:
    """CPU seconds per query and queries per second of a long run beyond a short one."""
    short = queries // PEER_SHORT_RUN_SHARE

    def filled(count: int) -> list[str]:
        return [part.replace("CLIENTS", str(clients)).replace("QUERIES", str(count)) for part in command]

    short_cpu, short_wall = measure(filled(short))
    long_cpu, long_wall = measure(filled(queries))
    more = queries - short
    return (long_cpu - short_cpu) / more, more / max(long_wall - short_wall, 1e-9)


def main() -> None:
    """Runs all rounds and prints."""
    default = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / "dbdyno-load"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(default))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=60_000)
    parser.add_argument("--clients", default="1,8,64")
    arguments = parser.parse_args()
    all_clients = [int(text) for text in arguments.clients.split(",")]
    costs: dict[int, dict[str, Cost]] = {}
    with server(max(all_clients) + 50) as socket:
        commands = tools(arguments.binary, socket)
        for clients in all_clients:
            costs[clients] = {name: Cost() for name in commands}
        for number in range(arguments.rounds):
            for clients in all_clients:
                # Alternate the order, so that none always follows the same other.
                names = list(commands) if number % 2 == 0 else list(reversed(commands))
                for name in names:
                    cpu, rate = once(commands[name], clients, arguments.queries)
                    costs[clients][name].cpu_us_per_query.append(cpu * 1e6)
                    costs[clients][name].queries_per_second.append(rate)
    show(costs)


def show(costs: dict[int, dict[str, Cost]]) -> None:
    """Prints the table and the JSON."""
    results = []
    print(f"{'clients':>7}  {'tool':<18} {'CPU us/query':>12} {'queries/s':>10}")
    for clients, by_tool in costs.items():
        cpu = {name: statistics.median(cost.cpu_us_per_query) for name, cost in by_tool.items()}
        rate = {name: statistics.median(cost.queries_per_second) for name, cost in by_tool.items()}
        for name in by_tool:
            print(f"{clients:>7}  {name:<18} {cpu[name]:>12.2f} {rate[name]:>10.0f}")
        peers = {name: value for name, value in cpu.items() if name != "dbdyno"}
        cheapest = min(peers, key=peers.__getitem__, default=None)
        ratio = cpu["dbdyno"] / peers[cheapest] if cheapest else None
        budget = BUDGET.get(clients)
        if ratio is not None:
            print(f"{clients:>7}  ratio to {cheapest}: {ratio:.2f} (budget {budget})")
        results.append(
            {
                "clients": clients,
                "cpu_us_per_query": cpu,
                "queries_per_second": rate,
                "cheapest_peer": cheapest,
                "ratio": ratio,
                "budget": budget,
                "rounds": {name: cost.cpu_us_per_query for name, cost in by_tool.items()},
            }
        )
    busy = os.getloadavg()[0]
    if busy > (os.cpu_count() or 1) + 1:
        print(f"load average {busy:.1f}: others were running, trust no ratio of this table")
    print(json.dumps({"version": 1, "kind": "load_cpu", "load_average": busy, "results": results}))


if __name__ == "__main__":
    main()
