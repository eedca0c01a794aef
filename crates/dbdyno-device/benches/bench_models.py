#!/usr/bin/env python3
"""Disk models on drives whose response times were measured: how far off they are, beside DiskSim.

    .venv/bin/python crates/dbdyno-device/benches/bench_models.py --disksim DIR [--only NAMES] [--strict] [--json FILE]

DIR is the folder `valid` of DiskSim 4.0 (Parallel Data Laboratory, Carnegie Mellon University), which has parameters
extracted from eleven disks, and for each a trace with response times measured on it. A drive file is made of the
parameters alone; its model then plays the trace, each request after the one before as in the trace. The error is the
root mean square horizontal distance between the two distributions of response times (Ruemmler and Wilkes' demerit
figure), in milliseconds, and as a part of the mean; DiskSim's own is the one that its valid/runvalid states of ten of
them. Classes: sequential (continues the request before), local (within 1000 sectors of its end), random. Exit code 1
comes with --strict only, when a limit was not met.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import statistics
import subprocess
import sys
from collections import defaultdict

from disksim import REFERENCES, SECTOR_BYTES, Request, parameters, trace
from drive_file import capacity_sectors, drive_file

from benches.figures import Figure, at_most, write

REPOSITORY = pathlib.Path(__file__).parents[3]
LOCAL_SECTORS = 1000
MEAN_RATIO_MAX, RATIO_MAX = 1.1, 2.0
PART_OF_MEAN_MAX = 0.05
SEEDS = (1, 2, 3)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disksim", type=pathlib.Path, help="the folder 'valid' of DiskSim 4.0")
    parser.add_argument("--only", help="drives, separated by commas")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a limit was not met")
    parser.add_argument("--json", type=pathlib.Path, help="write the result there")
    options = parser.parse_args()
    names = [reference.name for reference in REFERENCES]
    options.only = options.only.split(",") if options.only else names
    if unknown := sorted(set(options.only) - set(names)):
        parser.error(f"--only: no drive {', '.join(unknown)}; there are {', '.join(names)}")
    if options.disksim is None or not (options.disksim / "runvalid").is_file():
        parser.error("--disksim: give the folder 'valid' of DiskSim 4.0 (make bench-models DISKSIM=DIR)")
    return options


def replayed(drive: pathlib.Path, size_bytes: int, requests: list[Request], seed: int) -> list[float]:
    """Response times of our model, ms."""
    lines = [
        f"{'W' if one.write else 'R'} {one.sector * SECTOR_BYTES} {one.sectors * SECTOR_BYTES} {one.think_us}\n"
        for one in requests
    ]
    command = [REPOSITORY / "target/release/examples/replay", drive, size_bytes, seed]
    run = subprocess.run(
        [str(part) for part in command], check=False, input="".join(lines), capture_output=True, text=True
    )
    if run.returncode:
        sys.exit(f"replay: {run.stderr.strip()}")
    return [float(line) / 1e3 for line in run.stdout.split()]


def distance_ms(measured: list[float], modelled: list[float]) -> float:
    """Root mean square horizontal distance between two distributions of as many times, ms."""
    pairs = zip(sorted(measured), sorted(modelled), strict=True)
    return math.sqrt(statistics.fmean((one - other) ** 2 for one, other in pairs))


def classes(requests: list[Request]) -> list[str]:
    """Of each request, what it is."""
    found, end = [], -2 * LOCAL_SECTORS
    for one in requests:
        apart = abs(one.sector - end)
        place = "sequential" if apart == 0 else "local" if apart <= LOCAL_SECTORS else "random"
        found.append(f"{'write' if one.write else 'read'} {place}")
        end = one.sector + one.sectors
    return found


def errors_ms(requests: list[Request], modelled: list[float]) -> dict[str, float]:
    """The error of all requests, and of each class."""
    groups: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for one, kind, modelled_ms in zip(requests, classes(requests), modelled, strict=True):
        for group in ("all", kind):
            groups[group][0].append(one.measured_us / 1e3)
            groups[group][1].append(modelled_ms)
    return {group: distance_ms(*both) for group, both in groups.items()}


def play(options: argparse.Namespace) -> list[dict[str, object]]:
    """One row a drive; the table is printed as they come."""
    kinds = [f"{direction} {place}" for direction in ("read", "write") for place in ("sequential", "local", "random")]
    print(
        f"{'error, ms':<12}{'ours':>8}{'DiskSim':>9}{'ratio':>7}{'of mean':>9}"
        + "".join(f"{kind:>18}" for kind in kinds)
    )
    rows = []
    for reference in (one for one in REFERENCES if one.name in options.only):
        drive = parameters(options.disksim, reference)
        path = REPOSITORY / f"target/bench-models/{reference.name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drive_file(reference.name, drive), encoding="utf-8")
        requests = trace(options.disksim, reference)
        size_bytes = capacity_sectors(drive) * SECTOR_BYTES
        tries = [errors_ms(requests, replayed(path, size_bytes, requests, seed)) for seed in SEEDS]
        error = {kind: statistics.fmean(one[kind] for one in tries) for kind in tries[0]}
        mean_ms = statistics.fmean(one.measured_us for one in requests) / 1e3
        theirs_ms = reference.disksim_rms_ms
        row = {
            "drive": reference.name,
            "error_ms": error,
            "disksim_ms": theirs_ms,
            "ratio": error["all"] / theirs_ms if theirs_ms else None,
            "part_of_mean": error["all"] / mean_ms,
        }
        rows.append(row)
        beside = f"{theirs_ms:>9.3f}{row['ratio']:>7.2f}" if theirs_ms else f"{'-':>9}{'-':>7}"
        print(
            f"{reference.name:<12}{error['all']:>8.3f}{beside}{row['part_of_mean']:>9.1%}"
            + "".join(f"{error.get(kind, math.nan):>18.3f}" for kind in kinds),
            flush=True,
        )
    return rows


def judged(rows: list[dict[str, object]]) -> list[Figure]:
    """Figures beside their limits."""
    compared = [row for row in rows if row["ratio"] is not None]
    found = [(f"error, ours over DiskSim's, {row['drive']}", row["ratio"], RATIO_MAX) for row in compared]
    if compared:
        mean = statistics.geometric_mean(row["ratio"] for row in compared)
        found.insert(0, ("error, ours over DiskSim's, geometric mean", mean, MEAN_RATIO_MAX))
    alone = [row for row in rows if row["ratio"] is None]
    found += [(f"error, part of the mean, {row['drive']}", row["part_of_mean"], PART_OF_MEAN_MAX) for row in alone]
    return [at_most(*each) for each in found]


def main() -> int:
    """Runs all and prints; gives the exit code."""
    options = arguments()
    rows = play(options)
    figures = judged(rows)
    for figure in figures:
        verdict = "met" if figure.met else "NOT MET"
        print(f"{figure.name:<55}{figure.value:>7.3f}  <= {figure.limit}  {verdict}")
    write(options.json, figures, rows)
    return 1 if options.strict and not all(figure.met for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
