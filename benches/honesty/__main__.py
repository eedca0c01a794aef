"""How honest the verdicts are: thousands of studies whose answer is known, judged by the product's own analysis.

    .venv/bin/python -m benches.honesty [--replicates N] [--seed N] [--only GROUP,...] [--strict] [--json FILE]

Limits that are shares have two standard errors of the simulation added. Exit code 1 comes with --strict only, when a
row was not met.
"""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benches.figures import within, write
from benches.honesty.row import Row

if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS = (
    "rules",
    "verdicts",
    "hosts",
    "stalls",
    "coarse",
    "percentiles",
    "stability",
    "split_plot",
    "ranking",
    "unpaired",
    "drift",
    "fleets",
    "carry_over",
    "host_speed",
    "unequal",
    "exaggeration",
    "crash",
    "quick",
    "suites",
    "speed",
)


def main() -> int:
    """Run the groups and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=4000, help="studies of each kind (4000)")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", default=",".join(GROUPS), help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a row was not met")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := sorted(set(chosen) - set(GROUPS)):
        parser.error(f"--only: no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    began = time.monotonic()
    rows: list[Row] = []
    for name in chosen:
        print(f"\n{name}", flush=True)
        module = import_module(f"benches.honesty.{name}")
        one: Callable[[int, int], list[Row]] = module.rows
        found = one(options.replicates, options.seed)
        rows += found
        if hasattr(module, "table"):
            print(f"{module.table(found)}\n")
        print("\n".join(_line(row) for row in found if row.met is not None or not hasattr(module, "table")), flush=True)
    failed = sum(row.met is False for row in rows)
    judged = sum(row.met is not None for row in rows)
    print(f"\n{judged - failed} of {judged} rows met, {time.monotonic() - began:.0f} s")
    figures = [within(f"{row.group}: {row.name}, {row.unit}", row.measured, row.low, row.high, row.met) for row in rows]
    write(options.json, figures, {"seed": options.seed, "replicates": options.replicates})
    return 1 if options.strict and failed else 0


def _line(row: Row) -> str:
    limits = " and ".join(
        text
        for text in (
            "" if row.low is None else f">= {row.low:.3g}",
            "" if row.high is None else f"<= {row.high:.3g}",
        )
        if text
    )
    word = {True: "met", False: "NOT MET", None: ""}[row.met]
    return f"  {row.group:28} {row.name:46} {row.measured:8.1f} {row.unit:4} {limits:16} {word}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
