#!/usr/bin/env python3
"""How fast device models are simulated: requests per CPU-second, and how often each request has a model polled.

    .venv/bin/python crates/dbdyno-device/benches/bench_speed.py [--rounds N] [--only WORD] [--strict] [--json FILE]

Closed loops in virtual time (`examples/speed.rs`), each on a new model: some requests first, so that caches are full,
then those that count. CPU time is that of the thread, of the best round; drawing random numbers and counting is in it.
Beside them a checksum of all completions, which a change that only makes a model faster leaves as it is. Exit code 1
comes with --strict only, when a limit was not met.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

from benches.figures import Figure, at_least, at_most, write

REPOSITORY = pathlib.Path(__file__).parents[3]
DRIVE_RATE_MIN = 1e6
ARRAY_RATE_MIN = COLLECTING_RATE_MIN = 0.5e6
POLLS_MAX = 1.3


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--only", default="", help="loads whose name has this word")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a limit was not met")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    return parser.parse_args()


def measure(rounds: int, word: str) -> list[dict[str, object]]:
    """One row for each load."""
    command = [str(REPOSITORY / "target/release/examples/speed"), str(rounds), word]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line.split("\t") for line in run.stdout.splitlines()]
    if not rows:
        sys.exit(f"--only: no load has {word!r} in its name")
    return [
        {"load": load, "requests_per_cpu_s": float(rate), "polls_per_request": float(polls), "checksum": checksum}
        for load, rate, polls, checksum in rows
    ]


def judged(row: dict[str, object]) -> list[Figure]:
    """Figures of a load beside their limits."""
    load, array = row["load"], row["load"].startswith("raid")
    least = COLLECTING_RATE_MIN if "collecting" in load else ARRAY_RATE_MIN if array else DRIVE_RATE_MIN
    figures = [at_least(f"{load}: requests per CPU-second", row["requests_per_cpu_s"], least)]
    # A controller's own cache writes out on its own account, beside the requests.
    own_cache = "raid" in load and "write_cache_bytes" in load
    if load.startswith(("hdd", "raid")) and not own_cache:
        figures.append(at_most(f"{load}: polls per request", row["polls_per_request"], POLLS_MAX))
    return figures


def main() -> int:
    """Runs all and prints; gives the exit code."""
    options = arguments()
    rows = measure(options.rounds, options.only)
    figures = [figure for row in rows for figure in judged(row)]
    for figure in figures:
        sign, verdict = ">=" if "CPU" in figure.name else "<=", "met" if figure.met else "NOT MET"
        print(f"{figure.name:<85}{figure.value:>12,.10g}  {sign} {figure.limit:,.10g}  {verdict}")
    write(options.json, figures, rows)
    return 1 if options.strict and not all(figure.met for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
