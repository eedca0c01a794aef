"""One run at a time: refused or waited for by name, and no lock outlives its process."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dbdyno.errors import UserError
from dbdyno.lock import only_one
from tests.support import wait_for

HOLDER = """
import sys, time
from dbdyno.lock import only_one
with only_one("run a.toml into /there", wait=False, say=print):
    print("held", flush=True)
    time.sleep({})
"""


@pytest.fixture
def holder(state):
    """Start another process that holds the lock for some seconds."""
    started = []

    def hold(seconds):
        process = subprocess.Popen([sys.executable, "-c", HOLDER.format(seconds)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    assert (state / "run.lock").exists()
    for process in started:
        process.kill()
        process.communicate()


def test_the_second_is_refused_and_told_by_whom(holder):
    other = holder(60)
    with pytest.raises(UserError) as refused, only_one("run b.toml", wait=False, say=print):
        pytest.fail("two at once")
    assert f"run a.toml into /there (pid {other.pid})" in str(refused.value)
    assert "--wait" in str(refused.value)


def test_the_second_waits_if_told_to(holder):
    holder(1)
    said, began = [], time.monotonic()
    with only_one("run b.toml", wait=True, say=said.append):
        assert time.monotonic() - began > 0.3
    assert said == [one for one in said if "waiting for another run to end: run a.toml into /there" in one] != []


@pytest.mark.usefixtures("state")
def test_a_lock_of_a_dead_process_is_no_obstacle(holder):
    other = holder(60)
    os.kill(other.pid, signal.SIGKILL)
    wait_for(lambda: other.poll() is not None)
    for _ in range(2):  # and none of our own
        with only_one("run b.toml", wait=False, say=print):
            pass


def test_a_child_of_the_run_does_not_keep_the_lock(state):
    with only_one("run a.toml", wait=False, say=print):
        child = subprocess.Popen(["sleep", "60"])
    try:
        with only_one("run b.toml", wait=False, say=print):
            assert str(os.getpid()) in (state / "run.lock").read_text()
    finally:
        child.kill()
        child.wait()


def test_what_was_never_whole_is_said_to_have_begun(state, holder):
    holder(60)
    (state / "run.lock").write_text('{"pid": 1')
    with pytest.raises(UserError, match="it has only just begun"), only_one("b", wait=False, say=print):
        pass
