"""How many cuts an hour are examined, where that time goes, and whether what is found is right.

    sudo .venv/bin/python -m benches.crash [--all] [--cuts 200] [--seeds 1] [--apart 20] [--again 20] [--json FILE]
        [--strict]

On a drive without a volatile cache, with a log flush at every commit, nothing that was acknowledged can be lost: each
loss that is found is a false one. Of the control, which loses, every state is kept, and some are examined again: the
same state must give the same outcome and the same number of lost commits. With ``--all`` 1,200 such cuts, 1,000 of two
disks at one moment, and 240 states.
"""

import argparse
import os
import statistics
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from benches.crash import again, losses
from benches.crash.studies import FILESYSTEMS, run, study
from benches.figures import at_least, at_most, write

PER_HOUR, SAME = 600, 0.99
CUTS_A_SEED = 50  # of each treatment
ALL = {"seeds": 6, "apart": 1000, "again": 240, "damage": 20}


def speed(folder, filesystem, options):
    """Where the time of a cut goes, and false losses."""
    text = study(
        f"cuts on {filesystem}",
        f'device = "nvme-pm9a3"\nfilesystem = "{filesystem}"',
        cuts=options.cuts,
        seed=options.seed,
    )
    trials, seconds = run(folder, filesystem, text)
    cuts = [cut for trial in trials for cut in trial["cuts"]]
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
        **losses.counted(trials),
    }


def table(one):
    """Seconds by step, as Markdown."""
    whole = one["seconds"] / one["cuts"]
    lines = [f"{one['filesystem']}: {one['cuts']} cuts in {one['seconds']:.0f} s, {one['per_hour']:.0f} an hour"]
    lines += ["| step | s a cut | share |", "|---|---|---|"]
    lines += [f"| {name} | {seconds:.3f} | {seconds / whole:.0%} |" for name, seconds in one["step_seconds"].items()]
    return "\n".join(lines)


def told(found):
    """What was found of losses, in words."""
    lines = [
        f"false losses: {len(found['false'])} of {found['judged']} cuts ({found['runs']} runs)",
        f"at most {found['at_most']:.3%} of cuts if they are independent, {found['at_most_by_runs']:.2%} by runs",
        f"the control: {dict(found['control'])}",
        f"cuts by kind: {dict(sorted(found['by_kind'].items()))}",
    ]
    for one in found["losses"]:
        whose = "the server's, a torn first page" if one["known"] else "unexplained"
        lines.append(f"  {one['trial']}/{one['id']} {one['when']} {one['outcome']}, {whose}: {one['cause'][:200]}")
    return "\n".join(lines)


def judged(found, what):
    """Return the figure of what was found of losses."""
    return at_most(f"false losses of {found['judged']} cuts, {what}", len(found["false"]), 0)


def asked():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=100, help="of each filesystem, and as many of the control; 0: none")
    parser.add_argument("--only", choices=FILESYSTEMS, action="append", help="one of the filesystems")
    parser.add_argument("--seeds", type=int, default=1, help="200 cuts each that can't lose anything; 0: none")
    parser.add_argument("--apart", type=int, default=20, help="cuts with logs on a disk of their own; 0: none")
    parser.add_argument("--again", type=int, default=20, help="how many kept states are examined again; 0: none")
    parser.add_argument("--all", action="store_true", help=f"{ALL['seeds']} seeds, {ALL['again']} states; two hours")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a figure misses its limit")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--into", type=Path, help="a new folder for the runs, which stays")
    options = parser.parse_args()
    options.damage = 5
    if options.all:
        vars(options).update(ALL)
    return options


@contextmanager
def room(into):
    """Yield a folder for the runs: one that goes if none is given."""
    if into:
        into.mkdir()
        yield into.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="ddb", dir="/var/tmp") as folder:
        yield Path(folder)


def main():
    options, figures, speeds, lost, states, apart = asked(), [], [], None, None, None
    with room(options.into) as folder:
        folder.chmod(0o755)  # the server runs as another user
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/s"
        if options.seeds:
            lost = losses.found(folder, options.seeds, CUTS_A_SEED, options.seed)
            print(told(lost), flush=True)
            figures.append(judged(lost, "four stacks that can't lose any"))
        if options.apart:
            apart = losses.found_apart(folder, options.apart, options.seed)
            print(told(apart), flush=True)
            figures.append(judged(apart, "logs on a disk of their own"))
        if options.again:
            again.damaged(folder, options.damage, options.seed)
            states = again.same(folder, options.again)
            print(f"examined again: {states}", flush=True)
            for what in ("outcome", "counts"):
                name = f"same {what} of {states['states']} kept states, share of {states['examined']}"
                figures.append(at_least(name, states[what] / states["examined"], SAME))
        for filesystem in (options.only or FILESYSTEMS) if options.cuts else ():
            one = speed(folder, filesystem, options)
            print(table(one), told(one), sep="\n", flush=True)
            speeds.append(one)
            figures += [
                at_least(f"cuts examined an hour, {filesystem}", one["per_hour"], PER_HOUR),
                judged(one, filesystem),
            ]
    write(options.json, figures, {"speed": speeds, "losses": lost, "apart": apart, "again": states})
    return int(options.strict and any(figure.met is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
