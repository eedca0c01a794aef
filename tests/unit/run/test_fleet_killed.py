"""A study on several hosts whose processes are killed at random moments: nothing is lost or doubled."""

import fcntl
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.run.fleet.fold import ARRIVED
from dbdyno.store.run_folder import is_begun, read_run
from tests.fleets import HOSTS, Fleet, noting
from tests.sampled import KILLS, drawn
from tests.unit.run.test_fleet import ON_THREE

BLOCKS = 12


def forked(fleet, plan, into, *, resume):
    """A process that runs the study; its process number."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if fleet.run(plan, into, resume=resume).how == "done" else 1)
        finally:
            os._exit(2)
    return pid


def of_session(state_folder):
    """The process that holds the run lock of a host's state folder, if any."""
    lock = state_folder / "run.lock"
    try:
        said = lock.read_text()
    except OSError:
        return None
    pid = said.partition('"pid": ')[2].partition(",")[0]
    return int(pid) if pid and Path(f"/proc/{pid}").exists() else None


def wait_until_put_back(state_folder):
    """A session that had only begun when its coordinator was killed may not have written its name yet."""
    deadline = time.monotonic() + 120
    while of_session(state_folder) or any((state_folder / "journals").glob("*")):
        assert time.monotonic() < deadline, f"a session is not over, or its host not put back: {state_folder}"
        time.sleep(0.01)


def wait_until_let_go(folder):
    """A program that was being forked when its starter was killed has the lock of the run for a moment more."""
    if (folder / "lock").exists():
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)


def whole_and_once(into, plan):
    run = read_run(into)
    assert run.ended == "done"
    counted = usable_blocks(run).trials
    assert len(counted) == BLOCKS
    assert all(set(row) == set(plan.specs) for row in counted.values())
    assert all(len({trial.host for trial in row.values()}) == 1 for row in counted.values())
    blocks = {}
    for trial in run.trials:
        its = blocks.setdefault(trial.host, [])
        if trial.block not in its:
            its.append(trial.block)
    for trial in run.trials:
        n = blocks[trial.host].index(trial.block) + 1  # what was played is of this very block
        assert trial.metrics["queries_per_second"] == 100 + n + 10 * (trial.treatment == "t2"), trial
        slots = {slot.treatment: slot.position for slot in plan.on_host(trial.host).slots(n, trial.attempt)}
        assert trial.position == slots[trial.treatment]
    assert max(Counter((one.block, one.attempt, one.treatment) for one in run.trials).values()) == 1
    assert not list((into / ARRIVED).iterdir())
    return run


@pytest.mark.parametrize("which", ["coordinator", *HOSTS])
def test_killed_at_any_moment_no_block_is_lost_or_doubled(plan, into, states, tmp_path, which):
    made, random = plan(ON_THREE, blocks=BLOCKS), drawn(f"fleet killed {which}")
    for turn in range(max(1, KILLS // 2)):
        there, to = states / str(turn), into.with_name(f"run{turn}")
        fleet = Fleet(there, script_of=noting(tmp_path / f"ran{turn}", seconds=0.02))
        pid = forked(fleet, made, to, resume=False)
        time.sleep(random.uniform(0.05, 1.5))
        victim = pid if which == "coordinator" else of_session(there / which)
        if victim:
            os.kill(victim, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if which == "coordinator":
            again = Fleet(there, script_of=noting(tmp_path / f"ran{turn}", seconds=0.02))
            for host in HOSTS:  # each ends with the coordinator, the host put back
                wait_until_put_back(there / host)
            wait_until_let_go(to)
            assert again.run(made, to, resume=is_begun(to)).how == "done"
        else:
            assert code == 0
        whole_and_once(to, made)
