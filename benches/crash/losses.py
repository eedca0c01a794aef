"""False losses: where no cut can take anything that was acknowledged, each loss that is found is one.

Four treatments (ext4 and XFS, with and without a binary log that is synced at commit) on drives without a volatile
cache, InnoDB's log flushed at every commit. Each seed has another drive, other moments and other survivors.
"""

from collections import Counter

from benches.crash.studies import run, study
from dbdyno.analysis.safety.bounds import upper

DEVICES = ("nvme-pm9a3", "nvme(power_loss_protected=true)", "ssd-s4600", "nvme-p4500", "hdd-15k(write_cache_bytes=0)")
WHEN = ("uniform", "ack", "page-write", "recovery")
SURVIVORS = ("none", "random-512", "random-4096", "prefix", "requests", "versions")
STACK = 'device = "{device}"\nfilesystem = ["ext4", "xfs"]'
SETTINGS = "log_bin = [false, true]\nsync_binlog = 1"
TREATMENTS = 4


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


def counted(trials):
    """Return how many cuts were judged, of which kinds, and which of them found a loss."""
    judged = [trial for trial in trials if trial["treatment"] != "control"]
    cuts = [cut for trial in judged for cut in trial["cuts"]]
    control = [cut for trial in trials if trial["treatment"] == "control" for cut in trial["cuts"]]
    false = [{"trial": trial["id"], **cut} for trial in judged for cut in trial["cuts"] if cut["outcome"] != "nothing"]
    runs_with = len({cut["trial"] for cut in false})
    return {
        "judged": len(cuts),
        "runs": len(judged),
        "acked": sum(cut["acked"] for cut in cuts),
        "by_kind": Counter(f"{cut['when']}, {cut['survivors']}" for cut in cuts),
        "false": false,
        "at_most": upper(len(false), len(cuts)),
        "at_most_by_runs": upper(runs_with, len(judged)),
        "control": Counter(cut["outcome"] for cut in control),
    }
