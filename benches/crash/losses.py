"""False losses: where no cut can take anything that was acknowledged, each loss that is found is one.

Four treatments (ext4 and XFS, with and without a binary log that is synced at commit) on drives without a volatile
cache, InnoDB's log flushed at every commit. Each seed has another drive, other moments and other survivors.
"""

from collections import Counter
from pathlib import Path

from benches.crash.studies import run, study
from dbdyno.analysis.safety import upper

DEVICES = ("nvme-pm9a3", "nvme(power_loss_protected=true)", "ssd-s4600", "nvme-p4500", "hdd-15k(write_cache_bytes=0)")
WHEN = ("uniform", "ack", "page-write", "recovery")
SURVIVORS = ("none", "random-512", "random-4096", "prefix", "requests", "versions")
STACK = 'device = "{device}"\nfilesystem = ["ext4", "xfs"]'
SETTINGS = "log_bin = [false, true]\nsync_binlog = 1"
# The server's own fault, looked at by hand (docs/internals/crash.md): it does not use the whole copy that it has.
TORN_FIRST_PAGE = "The first page of file"


def found(folder, seeds, cuts, first_seed):
    """Return what ``cuts`` of each treatment with each of so many seeds came to, and the seconds of each run."""
    trials, seconds = [], []
    for seed in range(first_seed, first_seed + seeds):
        stack = STACK.format(device=DEVICES[seed % len(DEVICES)])
        options = {"settings": SETTINGS, "when": WHEN, "survivors": SURVIVORS, "duration": "3s"}
        text = study(f"cuts that lose nothing, {seed}", stack, cuts=cuts, seed=seed, keep="all", **options)
        of_seed, took = run(folder, f"losses-{seed}", text)
        trials += of_seed
        seconds.append(took)
    return counted(trials) | {"seconds": seconds}


# The data on a slow drive with a volatile cache, both logs on a fast one: at any moment the two are far apart.
APART = """device = "hdd-7200"
filesystem = "ext4"
[stack.disks.log]
device = "ssd-sata"
size = "512MiB"
filesystem = "xfs"
[server.place]
innodb_log = "log"
binlog = "log"
"""


def found_apart(folder, cuts, seed):
    """Return what came of so many cuts of two disks at one moment, both logs synced at commit."""
    options = {"settings": "log_bin = true\nsync_binlog = 1", "when": ("uniform", "ack", "flush", "recovery")}
    text = study("cuts of data and logs on disks of their own", APART, cuts=cuts, seed=seed, duration="3s", **options)
    trials, seconds = run(folder, "apart", text)
    return counted(trials) | {"seconds": [seconds]}


def counted(trials):
    """Return how many cuts were judged, of which kinds, and in which of them a loss was found."""
    judged = [trial for trial in trials if trial["treatment"] != "control"]
    control = [cut for trial in trials if trial["treatment"] == "control" for cut in trial["cuts"]]
    cuts = [cut for trial in judged for cut in trial["cuts"]]
    losses = [
        {"trial": trial["id"], "known": is_known(trial, cut), **cut}
        for trial in judged
        for cut in trial["cuts"]
        if cut["outcome"] != "nothing"
    ]
    false = [cut for cut in losses if not cut["known"]]
    return {
        "judged": len(cuts),
        "runs": len(judged),
        "by_kind": Counter(f"{cut['when']}, {cut['survivors']}" for cut in cuts),
        "losses": losses,
        "false": false,
        "at_most": upper(len(false), len(cuts)),
        "at_most_by_runs": upper(len({cut["trial"] for cut in false}), len(judged)),
        "control": Counter(cut["outcome"] for cut in control),
    }


def is_known(trial, cut):
    """Return whether it is a first page that was torn in the cut, whose copy the server does not use."""
    log = Path(trial["folder"]) / f"recovery-{cut['id']}.log"
    return cut["outcome"] == "table" and log.exists() and TORN_FIRST_PAGE in log.read_text("utf-8", "replace")
