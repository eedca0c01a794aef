#!/usr/bin/env python3
"""The emulated disk: its own cost, how well it keeps times, and drives beside their references, through a loop device.

    sudo .venv/bin/python crates/dbdyno-disk/benches/bench_disk.py [--quick] [--only GROUP,...] [--strict] [--json FILE]

Groups:
  service   the path through loop device and FUSE, with a model that takes no time
  asked     latencies asked for and delivered at depth 1 to 128; how much later than asked for the block layer had the
            answers, in the mean; and lateness: how long after an answer was to be there it was. Beside each stands the
            floor, what a read of a device without latency takes at that depth: where that is more than was asked for,
            nothing is judged. Lateness is judged while half a processor or more was idle, and reported always
  hdd       hdd-7200, whole, beside the measured ST2000DM006, and its rates beside the drive file
  ssd       published figures of the SSDs; where this host cannot pass on as much, the row says so and is not judged
  cache     60 s of sequential writes: the knee of the 980 PRO, the cache of the 760p that fills and drains; with an
            eighth of the drive's channels and some of its capacity, so that this host can follow
  gp2       the length of a burst at a scaled balance of credits
  cuts      what it costs to record all writes for power cuts, and how long a fork of the state holds requests up

The reference is what devices were measured or published to do; the peer is ublk-disksim, by its own claims. All
figures are fio's, with direct I/O and no scheduler. --quick takes some 4 minutes, the full run 16. Others at work on
the machine make answers late: the figures of record come from one that does nothing else. Needs root. Exit code 1
comes with --strict only, when a row was not met.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict

from groups import FULL, GROUPS, QUICK
from rows import HEAD, Row

from benches.figures import within, write


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, separated by commas")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a row was not met")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = sorted(set(options.only) - set(GROUPS))
    if unknown:
        parser.error(f"--only: no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    return options


def run_all(options: argparse.Namespace) -> list[Row]:
    """All groups; each row is printed when it is known."""
    rows, group = [], ""
    print(HEAD)
    for name in options.only:
        for row in GROUPS[name](QUICK if options.quick else FULL):
            if row.group != group:
                group = row.group
                print(group)
            print(row.text(), flush=True)
            rows.append(row)
    return rows


def details(options: argparse.Namespace, rows: list[Row], load_average: float) -> dict[str, object]:
    """What the file beside the figures has."""
    return {
        "quick": options.quick,
        "host": {"processors": os.cpu_count(), "kernel": platform.release(), "load_average_before": load_average},
        "fio": subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip(),
        "rows": [{**asdict(row), "limits": row.limits, "met": row.met} for row in rows],
    }


def main() -> int:
    """Runs all and prints; gives the exit code."""
    options = arguments()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        print("bench-disk needs root and fio", file=sys.stderr)
        return 2
    load_average = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ddb", dir="/tmp") as folder:
        pathlib.Path(folder).chmod(0o755)  # state folders must be passable
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/s"
        rows = run_all(options)
    counted = {verdict: sum(row.met is verdict for row in rows) for verdict in (True, False, None)}
    print(f"{counted[True]} rows met, {counted[False]} not met, {counted[None]} not judged on this host")
    figures = [within(f"{row.group}: {row.what}, {row.unit}", row.value, row.low, row.high, row.met) for row in rows]
    write(options.json, figures, details(options, rows, load_average))
    return 1 if options.strict and counted[False] else 0


if __name__ == "__main__":
    sys.exit(main())
