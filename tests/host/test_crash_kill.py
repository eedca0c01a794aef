"""SIGKILL while cuts are taken and examined: restore puts the host back, and resuming loses and doubles no cut."""

import json
import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from dbdyno.crash.trial_cuts import read_kept
from dbdyno.errors import TrialError
from dbdyno.stack.disk_client import DiskClient
from dbdyno.store.run_folder import read_run
from tests.crash_studies import crash_study, ran
from tests.disks import LONG
from tests.sampled import some
from tests.support import dbdyno, number_of, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(3600 if LONG else 600)]

CUTS = 3
LINES = 16  # of the undo log, at least, for each state that is examined


class Watched:
    """What a run has come to, seen from outside: how often each step has begun."""

    def __init__(self, process, state, run):
        self.process, self.state, self.run = process, state, run
        self.is_loaded = False
        self.pids = {}

    def children(self, program, *words):
        """How many children of dbdyno have run a program with these words so far."""
        seen = self.pids.setdefault((program, words), set())
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                with suppress(psutil.NoSuchProcess):
                    line = child.cmdline()
                    if line and line[0].rpartition("/")[2] == program and set(words) <= set(line):
                        seen.add(child.pid)
        return len(seen)

    def undo_log(self, kind=None, *, done=False):
        """How many changes of a kind were announced, or undone; without a kind, all lines."""
        kinds, count = {}, 0
        for path in (self.state / "journals").glob("*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):  # a line that is being written
                    entry = json.loads(line)
                    kinds |= {entry["undo"]: entry["kind"]} if "undo" in entry else {}
                    number = entry.get("done" if done else "undo")
                    count += kind is None or (number is not None and kinds.get(number) == kind)
        return count

    def forked(self):
        """How many cuts the disk has taken."""
        for socket in (self.state / "scratch").glob("*/disk.sock"):
            with suppress(TrialError, OSError):
                if taken := DiskClient(socket).stats()["cuts"]["taken"]:
                    return taken
        return 0

    def kept(self):
        """How many states are in the run folder, or on their way there."""
        return len(list(self.run.glob("trials/*/cuts/*")))

    def offers_load(self):
        """Whether a load is offered."""
        return number_of(self.state, "dbdyno-load ledger", "--ledger=", " run")


STEPS = {
    "fork": Watched.forked,
    "attach": lambda run: run.undo_log("DetachLoops"),
    "mount": lambda run: run.undo_log("Unmount"),
    "mounting": lambda run: run.children("mount"),
    "check": lambda run: run.children("e2fsck", "-fn"),
    "server": lambda run: run.children("mariadbd"),
    "verify": lambda run: run.children("dbdyno-load", "verify"),
    "server ended": lambda run: run.undo_log("EndProcesses", done=True),
    "unmount": lambda run: run.undo_log("Unmount", done=True),
    "detach": lambda run: run.undo_log("DetachLoops", done=True),
    "keep": Watched.kept,
}
KILLS = [
    *some("kills while cuts are examined", [(step, nth) for step in STEPS for nth in range(1, CUTS + 1)], 0.1),
    *some("lines of examining", [("line", nth) for nth in range(1, CUTS * LINES)], 0.02),
]


def killed_at(process, state, run, step, nth):
    """Kill a run at the nth time that a step begins after its load has begun; False where it did not come to that."""
    watched = Watched(process, state, run)
    count = STEPS.get(step, Watched.undo_log)
    wait_for(lambda: process.poll() is not None or watched.offers_load())
    before = 0 if step == "fork" else count(watched)
    wait_for(lambda: process.poll() is not None or count(watched) >= before + nth, every=0.003)
    is_killed = process.poll() is None
    if is_killed:
        os.kill(process.pid, signal.SIGKILL)
    output = process.communicate(timeout=180)[0]
    assert is_killed or process.returncode == 0, output
    return is_killed


def test_killed_at_any_step_of_cutting_and_examining_then_restored_and_resumed(state, study_file, tmp_path):
    # Both lose the newest commits at nearly every cut, so there is something to keep.
    crash = f'cuts = {CUTS}\ncuts_per_run = {CUTS}\nkeep = "all"'
    study, run = study_file(crash_study("[0, 2]", crash, seconds=1)), tmp_path / "run"
    met = Counter()
    for step, nth in KILLS:
        resume = ["--resume"] if (run / "run.toml").exists() else []
        process = start_dbdyno("run", study, "--into", run, *resume, state=state)
        met[step] += killed_at(process, state, run, step, nth)
        restored = dbdyno("restore", state=state)
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert what_is_left(state) == [], (step, nth)
        held = [] if not (run / "run.toml").exists() else read_run(run).trials
        assert all(len(trial.cuts) == CUTS for trial in held), "a trial that counts has all of its cuts"
    assert sum(met.values()) >= 0.9 * len(KILLS), met
    ran(study, run, state, "--resume")
    assert what_is_left(state) == []
    trials = read_run(run).trials
    assert sorted(trial.treatment for trial in trials) == ["t1", "t2"]
    named = {(trial.id, cut.id): cut for trial in trials for cut in trial.cuts}
    assert len(named) == 2 * CUTS
    kept = {(path.parents[1].name, path.name): read_kept(path).cut for path in run.glob("trials/*/cuts/*")}
    # What a state says of itself can't hold the sum over it; the trial's own record does.
    assert kept == {name: replace(cut, kept_sha256="") for name, cut in named.items() if cut.kept}
    assert all(len(named[name].kept_sha256) == 64 for name in kept)
    assert kept, "at most moments the log is behind"
