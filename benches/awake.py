"""Whether trials differ less where processors are kept awake: three loads, with and without, interleaved.

    sudo .venv/bin/python -m benches.awake [--blocks 16] [--seconds 5] [--only key] [--json FILE]

A block is a trial of each in random order. Shown are the coefficients of variation, their ratio with the 95 % interval
of Pitman and Morgan (Biometrika 31, 1939: the trials of a block are not independent), and the ratio of the rates. The
interval decides: one that holds 1 shows nothing (`met` is null).
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scipy import stats

from benches.figures import within, write

STUDY = """
version = 1
[study]
title = "{name}"
[stack]
device = "ssd-sata"
size = "1GiB"
scheduler = "none"
filesystem = "ext4"
memory = "512MiB"
engine = "{engine}"
[host]
awake = [false, true]
[workload]
kind = "slap"
load = "{load}"
autoincrement = true
clients = {clients}
warmup = "500ms"
duration = "{seconds}s"
[design]
interference = "note"
blocks = {blocks}
"""
LOADS = {
    "key": {"name": "SELECT by key, InnoDB", "engine": "innodb", "load": "key", "clients": 2},
    "commit": {"name": "durable commits, InnoDB", "engine": "innodb", "load": "write", "clients": 1},
    "myisam": {"name": "inserts, MyISAM", "engine": "myisam", "load": "write", "clients": 1},
}
DBDYNO = [sys.executable, "-m", "dbdyno.cli.main"]
LEAST_BLOCKS = 4


def rates(run):
    """Block to queries per second, of the halting and of the awake."""
    trials = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(run.glob("trials/*/trial.json"))]
    found = {awake: {} for awake in (False, True)}
    for trial in trials:
        found[bool(trial["awake"])][trial["block"]] = trial["metrics"]["queries_per_second"]
    blocks = sorted(found[False].keys() & found[True].keys())
    return [found[False][block] for block in blocks], [found[True][block] for block in blocks], trials


def ratio_of_spreads(halting, awake):
    """Standard deviation of the logs of the awake over that of the halting, with its 95 % interval."""
    one, other = ([math.log(value) for value in values] for values in (awake, halting))
    ratio = statistics.variance(one) / statistics.variance(other)
    correlation, freedom = statistics.correlation(one, other), len(one) - 2
    k = 1 + 2 * (1 - correlation**2) * stats.t.ppf(0.975, freedom) ** 2 / freedom
    reach = math.sqrt(k * k - 1)
    return tuple(math.sqrt(ratio * factor) for factor in (1, k - reach, k + reach))


def ratio_of_rates(halting, awake):
    """Geometric mean of the awake over the halting in each block, with the t interval of its log."""
    logs = [math.log(a / h) for h, a in zip(halting, awake, strict=True)]
    reach = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return tuple(math.exp(value) for value in (middle, middle - reach, middle + reach))


def measured(load, options, folder):
    study, run = folder / f"{load}.toml", folder / load
    study.write_text(STUDY.format(**LOADS[load], seconds=options.seconds, blocks=options.blocks), encoding="utf-8")
    subprocess.run([*DBDYNO, "run", str(study), "--into", str(run)], check=True, stdout=subprocess.DEVNULL)
    halting, awake, trials = rates(run)
    steal = max(trial["disturbance"].get("stolen", 0.0) for trial in trials)
    return {
        "load": LOADS[load]["name"],
        "by": next(trial["awake"]["by"] for trial in trials if trial["awake"]),
        "blocks": len(halting),
        "queries_per_second": {"halting": halting, "awake": awake},
        "cv_percent": [100 * statistics.stdev(one) / statistics.fmean(one) for one in (halting, awake)],
        "spread_ratio": ratio_of_spreads(halting, awake),
        "rate_ratio": ratio_of_rates(halting, awake),
        "interference": sum(bool(trial["disturbance"].get("beyond")) for trial in trials),
        "stolen_max": steal,
    }


def row(one):
    """A row of METHODOLOGY's table."""
    (spread, low, high), (rate, slow, fast) = one["spread_ratio"], one["rate_ratio"]
    halting, awake = one["cv_percent"]
    return (
        f"| {one['load']} | {one['blocks']} | {halting:.2f} % | {awake:.2f} % | {spread:.2f} ({low:.2f} to {high:.2f})"
        f" | {rate:.3f} ({slow:.3f} to {fast:.3f}) |"
    )


def figure(one):
    """Whether trials differ less where processors are kept awake: judged by the interval, not by its middle.

    Met where it lies below 1 and not met where it lies above; an interval that holds 1 shows neither.
    """
    middle, low, high = one["spread_ratio"]
    met = None if low <= 1.0 <= high else high < 1.0
    return within(f"spread awake/halting, {one['load']}", middle, None, 1.0, met)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=16, help="trials of each; at least 4")
    parser.add_argument("--seconds", type=int, default=5, help="length of a trial")
    parser.add_argument("--only", choices=LOADS, action="append", help="some of the loads")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    if options.blocks < LEAST_BLOCKS:
        parser.error(f"--blocks {options.blocks}: give {LEAST_BLOCKS} or more")
    with tempfile.TemporaryDirectory(prefix="ddb", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/s"
        found = [measured(load, options, Path(folder)) for load in options.only or LOADS]
    print(f"kept awake {found[0]['by']}")
    print("| load | blocks | CV halting | CV awake | spread awake/halting | rate awake/halting |")
    print("|---|---|---|---|---|---|")
    for one in found:
        print(row(one))
    for one in found:
        if one["interference"]:
            print(
                f"{one['load']}: {one['interference']} trials met interference; stolen at most {one['stolen_max']:.1%}"
            )
    write(options.json, [figure(one) for one in found], found)


if __name__ == "__main__":
    main()
