"""Processors that are kept awake: by what, what that costs, and that nothing of it outlives dbdyno."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dbdyno.host.processor import Means, means_here
from dbdyno.probe.host import AwakeSource, HostCpuSource
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.placement import Awake
from dbdyno.stack.layers.scratch import scratch
from tests.support import dbdyno, kill, put_back, study_text, wait_for, what_is_left

pytestmark = pytest.mark.host

CPUS = frozenset(os.sched_getaffinity(0))
GROUPS = Path("/sys/fs/cgroup/cpu") if Path("/sys/fs/cgroup/cpu/cpu.idle").exists() else None
BY_POLLERS = Awake(Means("pollers", GROUPS))
RAISES = """
import sys, time
from contextlib import closing
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.undo_log import Journal
from tests.host.test_awake import BY_POLLERS
with closing(Journal("a test")) as journal, scratch(journal) as ground, raised([BY_POLLERS], ground) as up:
    print(up.pollers, flush=True)
    time.sleep(600)
"""
needs_means = pytest.mark.skipif(not means_here(CPUS).by, reason="nothing keeps processors awake here")


def alive(pid):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def groups():
    return set(GROUPS.glob("dbdyno-*")) if GROUPS else set()


def test_pollers_hold_each_processor_and_give_way(journal):
    with scratch(journal) as ground, raised([BY_POLLERS], ground) as up:
        assert up.observed["host"]["awake"] == "by pollers"
        threads = [int(path.name) for path in Path(f"/proc/{up.pollers}/task").iterdir()]
        classes = {tid: os.sched_getscheduler(tid) for tid in threads if tid != up.pollers}
        assert set(classes.values()) == {os.SCHED_IDLE}
        assert frozenset().union(*(os.sched_getaffinity(tid) for tid in classes)) == CPUS
        assert len(classes) == len(CPUS)
    assert not alive(up.pollers)


def test_what_pollers_use_counts_as_idle(journal):
    with scratch(journal) as ground, raised([BY_POLLERS], ground) as up:
        host, pollers = HostCpuSource.from_context(up), AwakeSource(up.pollers)
        before = host.sample(), pollers.sample()
        wait_for(lambda: pollers.sample()["cpu_seconds"] > before[1]["cpu_seconds"] + 0.2)
        after = host.sample()
        columns = host.interval(before[0], after, 1.0)
        plain = HostCpuSource().interval({**before[0], "pollers": 0.0}, {**after, "pollers": 0.0}, 1.0)
        host.close()
        pollers.close()
    assert sum(columns.values()) == pytest.approx(100)
    assert columns["%idle"] > plain["%idle"]
    assert columns["%user"] < plain["%user"]


def test_killed_it_leaves_no_poller_and_restore_removes_the_group(state):
    before = groups()
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    run = subprocess.Popen([sys.executable, "-c", RAISES], env=environment, stdout=subprocess.PIPE, text=True)
    pid = int(run.stdout.readline())
    assert alive(pid)
    kill(run)
    wait_for(lambda: not alive(pid))
    put_back(state)
    assert groups() <= before


@needs_means
def test_a_run_says_what_kept_processors_awake(state, study_file, tmp_path):
    text = study_text(scheduler='"none"', blocks=1) + "[host]\nawake = [true, false]\n"
    done = dbdyno("run", study_file(text), "--into", tmp_path / "run", "--json", state=state)
    assert done.returncode == 0, done.stderr
    (note,) = [line for line in json.loads(done.stdout)["notes"] if line.startswith("Processors were kept awake")]
    assert "for awake true" in note
    header = (tmp_path / "run/run.toml").read_text()
    assert 'awake = [\n    "t1",\n]' in header
    assert what_is_left(state) == []
