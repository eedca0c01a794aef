"""How many cuts an hour are examined, where that time goes, and whether what is found is right.

    sudo .venv/bin/python -m benches.crash [--cuts 200] [--only ext4] [--again 20] [--json FILE] [--strict]

On a drive without a volatile cache, with a log flush at every commit, nothing that was acknowledged can be lost: each
loss that is found is a false one. Of the control, which loses, every state is kept, and some are examined again: the
same state must give the same outcome and the same number of lost commits.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.figures import at_least, at_most, write
from dbdyno.crash.again import examine_kept
from dbdyno.crash.kept import read_kept
from dbdyno.plan.plan import make_plan
from dbdyno.stack.undo.log import Journal
from dbdyno.study.load import load_study

STUDY = """
version = 1
[study]
title = "cuts on {filesystem}"
[stack]
device = "nvme-pm9a3"
size = "512MiB"
filesystem = "{filesystem}"
[server.settings]
innodb_buffer_pool_size = "16M"
innodb_log_file_size = "64M"
innodb_flush_log_at_trx_commit = 1
[workload]
kind = "ledger"
clients = 4
accounts = 2000
warmup = "500ms"
duration = "5s"
[crash]
cuts = {cuts}
when = [{when}]
survivors = ["random-4096", "random-512"]
keep = "{keep}"
[design]
seed = {seed}
"""
FILESYSTEMS = ("ext4", "xfs")
# No flush: to a drive without a volatile cache the kernel sends none.
WHEN = '"uniform", "page-write", "recovery"'
DBDYNO = [sys.executable, "-m", "dbdyno.cli.main"]
PER_HOUR, SAME = 600, 0.99
ATTEMPTS = 5


def run(folder, name, **fields):
    """Run a study; its trials, and the seconds that all took."""
    study, into = folder / f"{name}.toml", folder / name
    study.write_text(STUDY.format(**fields), encoding="utf-8")
    began = time.monotonic()
    resume = []
    for left in reversed(range(ATTEMPTS)):
        argv = [*DBDYNO, "run", str(study), "--into", str(into), *resume]
        if subprocess.run(argv, check=not left, stdout=subprocess.DEVNULL).returncode == 0:
            break
        # Where other processes are given copies of all mounts, one may hold a device longer than dbdyno waits.
        resume = ["--resume"]
    seconds = time.monotonic() - began
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(into.glob("trials/*/trial.json"))], seconds


def speed(folder, filesystem, options):
    """Where the time of a cut goes, and false losses."""
    fields = {"filesystem": filesystem, "cuts": options.cuts, "when": WHEN, "keep": "none", "seed": options.seed}
    trials, seconds = run(folder, filesystem, **fields)
    cuts = [cut for trial in trials for cut in trial["cuts"]]
    judged = [cut for trial in trials if trial["treatment"] != "control" for cut in trial["cuts"]]
    steps = {name: [cut["recovery_s"].get(name, 0.0) for cut in cuts] for name in cuts[0]["recovery_s"]}
    examining = sum(trial["seconds"]["cut recovery"] for trial in trials) / len(cuts)
    each = {name: statistics.fmean(values) for name, values in steps.items()}
    each["other (the disk's content set, a recovery that is cut)"] = examining - sum(each.values())
    each["the load and its stack, its share"] = seconds / len(cuts) - examining
    return {
        "filesystem": filesystem,
        "cuts": len(cuts),
        "seconds": seconds,
        "per_hour": 3600 * len(cuts) / seconds,
        "step_seconds": each,
        "judged": len(judged),
        "false_losses": [cut for cut in judged if cut["outcome"] != "nothing"],
    }


def same(folder, options):
    """Examine kept states again: how many times, and how often that was what had been found before."""
    run(folder, "kept", filesystem="ext4", cuts=10, when='"uniform"', keep="all", seed=options.seed)
    plan = make_plan(load_study(folder / "kept.toml"))
    states = sorted((folder / "kept").glob("trials/*/cuts/*"))
    times = met = 0
    with contextlib.closing(Journal("benches.crash")) as journal:
        for number in range(options.again):
            state = states[number % len(states)]
            kept = read_kept(state)
            again = examine_kept(state, plan.specs[kept.treatment], journal)
            times += 1
            met += (again.outcome, again.lost, again.acked) == (kept.cut.outcome, kept.cut.lost, kept.cut.acked)
    return {"states": len(states), "examined": times, "same": met}


def table(one):
    """Seconds by step, as Markdown."""
    whole = one["seconds"] / one["cuts"]
    lines = [f"{one['filesystem']}: {one['cuts']} cuts in {one['seconds']:.0f} s, {one['per_hour']:.0f} an hour"]
    lines += ["| step | s a cut | share |", "|---|---|---|"]
    lines += [f"| {name} | {seconds:.3f} | {seconds / whole:.0%} |" for name, seconds in one["step_seconds"].items()]
    return "\n".join([*lines, f"false losses: {len(one['false_losses'])} of {one['judged']}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=200, help="of each filesystem, and as many of the control")
    parser.add_argument("--again", type=int, default=20, help="how often kept states are examined again; 0: not")
    parser.add_argument("--only", choices=FILESYSTEMS, action="append", help="one of the filesystems")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strict", action="store_true", help="exit 1 where a figure misses its limit")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ddb", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/s"
        found = [speed(Path(folder), one, options) for one in options.only or FILESYSTEMS]
        again = same(Path(folder), options) if options.again else None
    figures = []
    for one in found:
        print(table(one))
        figures += [
            at_least(f"cuts examined an hour, {one['filesystem']}", one["per_hour"], PER_HOUR),
            at_most(f"false losses of {one['judged']} cuts, {one['filesystem']}", len(one["false_losses"]), 0),
        ]
    if again:
        print(f"same outcome and as many lost: {again['same']} of {again['examined']} ({again['states']} states)")
        figures.append(at_least("same outcome of a kept state, share", again["same"] / again["examined"], SAME))
    write(options.json, figures, {"speed": found, "again": again})
    return int(options.strict and any(figure.met is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
