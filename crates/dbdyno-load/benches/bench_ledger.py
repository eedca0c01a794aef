#!/usr/bin/env python3
"""What the ledger costs: client CPU of a transaction with and without `--ledger`, beside tpcc's; a verification.

    bench_ledger.py [--rounds N] [--events N] [--strict] [--json FILE] [--binary PATH]

All run in turn on one private MariaDB, in each round in another order; a figure is the median over the rounds. What
keeping the times costs is the median of the differences of single rounds. Exit code 1 comes with --strict only.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from private_server import PrivateServer, running

from benches.figures import Figure, at_most, write

CLIENTS = 8
KEEPING_US_MAX = 1.0  # of a transaction
TPCC_RATIO_MAX = 1.0  # CPU of one of the ledger's transactions to one of tpcc's
VERIFY_US_MAX = 30.0  # of a transaction that was sent, on the wall clock


def load(binary: str, server: PrivateServer, *words: str) -> None:
    """Runs the load generator."""
    login = ["--no-defaults", "-uroot", f"-S{server.socket}", "--silent"]
    subprocess.run([binary, words[0], *login, *words[1:]], check=True)


def cpu_us(binary: str, server: PrivateServer, events: int, verb: str, *flags: str) -> float:
    """CPU time of the client for an event of a run, in us."""
    with tempfile.NamedTemporaryFile(suffix=".json", dir="/tmp") as result:
        amount = [f"--clients={CLIENTS}", f"--events={events}", f"--json={result.name}"]
        load(binary, server, verb, *flags, *amount, "run")
        run = json.loads(pathlib.Path(result.name).read_text(encoding="utf-8"))["runs"][0]
    return (run["seconds_user"] + run["seconds_sys"]) * 1e6 / run["events"]


def measure(binary: str, rounds: int, events: int, folder: pathlib.Path) -> dict[str, list[float]]:
    """CPU of a transaction by what ran, in us, and the time of a verification for each transaction, round by round."""
    kept = f"--ledger={folder / 'ledger.bin'}"
    costs: dict[str, list[float]] = {"ledger": [], "ledger, kept": [], "tpcc": [], "verify": []}
    with running(CLIENTS + 50) as server:
        load(binary, server, "tpcc", "prepare")
        for number in range(rounds):
            load(binary, server, "ledger", "prepare")
            ways = [("ledger", "ledger", []), ("ledger, kept", "ledger", [kept]), ("tpcc", "tpcc", [])]
            for name, verb, flags in ways if number % 2 else reversed(ways):
                costs[name].append(cpu_us(binary, server, events, verb, *flags))
            begun = time.monotonic()
            load(binary, server, "ledger", kept, "verify")
            costs["verify"].append((time.monotonic() - begun) * 1e6 / events)
            load(binary, server, "ledger", "cleanup")
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return costs


def figures(costs: dict[str, list[float]]) -> list[Figure]:
    """The figures beside their limits."""
    keeping = [with_ - without for with_, without in zip(costs["ledger, kept"], costs["ledger"], strict=True)]
    ratio = statistics.median(costs["ledger, kept"]) / statistics.median(costs["tpcc"])
    return [
        at_most("keeping a transaction's times, us of CPU", statistics.median(keeping), KEEPING_US_MAX),
        at_most("CPU of a transaction, ledger over tpcc", ratio, TPCC_RATIO_MAX),
        at_most("verifying a transaction, us", statistics.median(costs["verify"]), VERIFY_US_MAX),
    ]


def main() -> int:
    """Measures and prints; gives the exit code."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, default=30_000, help="of each run")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a limit was not met")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    parser.add_argument("--binary", default=str(target / "dbdyno-load"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-", dir="/tmp") as folder:
        costs = measure(options.binary, options.rounds, options.events, pathlib.Path(folder))
    for name, values in costs.items():
        print(f"{name:<16} {statistics.median(values):8.2f} us ({min(values):.2f} to {max(values):.2f})")
    found = figures(costs)
    for figure in found:
        print(f"{figure.name:<44} {figure.value:6.2f} {figure.limit:6.2f}  {'met' if figure.met else 'NOT MET'}")
    write(options.json, found, costs)
    return 1 if options.strict and not all(figure.met for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
