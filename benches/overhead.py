"""What dbdyno itself costs: share of a study spent measuring, CPU of the probes, lateness of the disk, start-up.

    .venv/bin/python benches/overhead.py [--seconds 10] [--json FILE]

Everything comes from one run on this host; start-up is a ratio to bare Python, run side by side.
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
disturbed = "note"
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
    return {
        "trials": len(trials),
        "measured_seconds": measured,
        "wall_seconds": wall_seconds,
        "measuring_percent": 100 * measured / wall_seconds,
        "probes_cpu_percent_of_a_core": statistics.mean(probes),
        "disk_lateness_us_p99": statistics.median(lateness),
    }


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
        wall = seconds_of([*DBDYNO, "run", str(study), "--into", f"{folder}/run"])
        share, starts = measuring_share(Path(folder) / "run", wall), start_up(str(study))
    rows = [
        ("study time spent measuring", f"{share['measuring_percent']:.0f} %", ">= 60 %"),
        ("probes, CPU of one core", f"{share['probes_cpu_percent_of_a_core']:.2f} %", "< 1 %"),
        ("disk lateness p99", f"{share['disk_lateness_us_p99']:.0f} us", "<= 50 us with a core to spare"),
        ("dbdyno --help", f"{starts['help']:.3f} s, {starts['help'] / starts['python']:.1f} x python", "< 0.3 s"),
        ("dbdyno plan", f"{starts['plan']:.3f} s, {starts['plan'] / starts['python']:.1f} x python", "< 0.3 s"),
    ]
    for name, figure, budget in rows:
        print(f"{name:28s}  {figure:28s}  {budget}")
    if options.json:
        options.json.write_text(json.dumps({**share, "start_up_seconds": starts}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
