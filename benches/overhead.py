"""What dbdyno itself costs: where a study's wall clock goes, CPU of the probes, lateness of the disk, start-up.

    .venv/bin/python -m benches.overhead [--seconds 10] [--json FILE]

The study is run twice: the second run finds its data prepared. Start-up is a ratio to bare Python, run side by side.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.figures import at_least, at_most, write

STUDY = """
version = 1
[study]
title = "overhead"
[stack]
device = ["hdd-7200", "ssd-sata"]
size = "2GiB"
scheduler = "mq-deadline"
filesystem = "ext4"
memory = "1GiB"
[workload]
kind = "slap"
load = "write"
clients = 10
warmup = "500ms"
duration = "{seconds}s"
[design]
interference = "note"
blocks = 2
"""
DBDYNO = [sys.executable, "-m", "dbdyno.cli.main"]
STARTS = 15


def seconds_of(command):
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def start_up(study):
    """Median seconds of ``--help`` and ``plan``, beside bare Python, interleaved."""
    commands = {"python": [sys.executable, "-c", ""], "help": [*DBDYNO, "--help"], "plan": [*DBDYNO, "plan", study]}
    seconds = {name: [] for name in commands}
    for _ in range(STARTS):
        for name, command in commands.items():
            seconds[name].append(seconds_of(command))
    return {name: statistics.median(values) for name, values in seconds.items()}


def measuring_share(run, wall_seconds):
    """Share of the wall clock inside measured windows, and what probes and disk cost in them."""
    trials = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(run.glob("trials/*/trial.json"))]
    measured = sum(trial["metrics"]["seconds_real"] for trial in trials)
    probes = [sum(probe["cpu_percent"] or 0 for probe in trial["probes"].values()) for trial in trials]
    lateness = [trial["device"]["lateness_ns"]["p99"] / 1e3 for trial in trials]
    phases = {name: sum(trial["seconds"].get(name, 0.0) for trial in trials) for name in trials[0]["seconds"]}
    phases["prepare or load data, store, start, report"] = wall_seconds - sum(phases.values())
    return {
        "phases_seconds": phases,
        "trials": len(trials),
        "measured_seconds": measured,
        "wall_seconds": wall_seconds,
        "measuring_percent": 100 * measured / wall_seconds,
        "probes_cpu_percent_of_a_core": statistics.mean(probes),
        "disk_lateness_us_p99": statistics.median(lateness),
    }


def show_phases(first, again):
    """Print where the wall clock went: seconds a trial, and percent of all, in both runs."""
    print(f"{'a trial on the average':44s}  {'first run':>16s}  {'data prepared':>16s}")
    for name in first["phases_seconds"]:
        cells = [
            f"{spent[name] / run['trials']:7.3f} s {100 * spent[name] / run['wall_seconds']:5.1f} %"
            for run, spent in ((run, run["phases_seconds"]) for run in (first, again))
        ]
        print(f"{name:44s}  {cells[0]:>16s}  {cells[1]:>16s}")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10, help="length of a trial")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ddb", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/s"
        study = Path(folder) / "study.toml"
        study.write_text(STUDY.format(seconds=options.seconds), encoding="utf-8")
        shares = []
        for name in ("first", "again"):
            wall = seconds_of([*DBDYNO, "run", str(study), "--into", f"{folder}/{name}"])
            shares.append(measuring_share(Path(folder) / name, wall))
        share, starts = shares[0], start_up(str(study))
    show_phases(*shares)
    rows = [
        ("study time spent measuring", f"{share['measuring_percent']:.0f} %", ">= 60 %"),
        ("the same, its data prepared", f"{shares[1]['measuring_percent']:.0f} %", ">= 60 %"),
        ("probes, CPU of one core", f"{share['probes_cpu_percent_of_a_core']:.2f} %", "< 1 %"),
        ("disk lateness p99", f"{share['disk_lateness_us_p99']:.0f} us", "<= 50 us with a core to spare"),
        ("dbdyno --help", f"{starts['help']:.3f} s, {starts['help'] / starts['python']:.1f} x python", "< 0.3 s"),
        ("dbdyno plan", f"{starts['plan']:.3f} s, {starts['plan'] / starts['python']:.1f} x python", "< 0.3 s"),
    ]
    for name, figure, budget in rows:
        print(f"{name:28s}  {figure:28s}  {budget}")
    figures = [
        at_least("study time spent measuring, %", share["measuring_percent"], 60),
        at_least("the same, its data prepared, %", shares[1]["measuring_percent"], 60),
        at_most("probes, CPU of one core, %", share["probes_cpu_percent_of_a_core"], 1),
        at_most("disk lateness p99, us", share["disk_lateness_us_p99"], 50),
        at_most("dbdyno --help, s", starts["help"], 0.3),
        at_most("dbdyno plan, s", starts["plan"], 0.3),
    ]
    write(options.json, figures, {**share, "data_prepared": shares[1], "start_up_seconds": starts})


if __name__ == "__main__":
    main()
