"""One run at a time: refused or waited for by name, and no lock outlives its process."""

import os
import signal
import subprocess
import sys

import pytest

from dbdyno.errors import UserError
from dbdyno.system import locks as lock
from dbdyno.system.locks import alone_on_host, only_one
from tests.support import wait_for

HOLDER = """
import sys
from dbdyno.system.locks import only_one
with only_one("run a.toml into /there", wait=False, say=print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(state):
    """Start another process that holds the lock until it gets a line."""
    started = []

    def hold():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    assert (state / "run.lock").exists()
    for process in started:
        process.kill()
        process.communicate()


def test_the_second_is_refused_and_told_by_whom(holder):
    other = holder()
    with pytest.raises(UserError) as refused, only_one("run b.toml", wait=False, say=print):
        pytest.fail("two at once")
    assert f"run a.toml into /there (pid {other.pid})" in str(refused.value)
    assert "--wait" in str(refused.value)


def test_the_second_waits_if_told_to(holder):
    other, said = holder(), []

    def say(line):
        assert other.poll() is None
        said.append(line)
        print("go on", file=other.stdin, flush=True)

    with only_one("run b.toml", wait=True, say=say):
        pass
    assert said == [one for one in said if "waiting for another run to end: run a.toml into /there" in one] != []


@pytest.mark.usefixtures("state")
def test_a_lock_of_a_dead_process_is_no_obstacle(holder):
    other = holder()
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
    holder()
    (state / "run.lock").write_text('{"pid": 1')
    with pytest.raises(UserError, match="it has only just begun"), only_one("b", wait=False, say=print):
        pass


HOST_HOLDER = """
import sys
from dbdyno.system import locks as lock
lock.HOST_NAME = sys.argv[1]
with lock.alone_on_host(wait=False, say=print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def host_holder(monkeypatch):
    """Start another user's run, which has another state folder; by a name of the test's own."""
    monkeypatch.delenv("DBDYNO_STATE_DIR", raising=False)
    monkeypatch.setattr(lock, "HOST_NAME", f"\0dbdyno-test-{os.getpid()}")
    started = []

    def hold():
        # An argument can't hold the NUL that the name begins with.
        argv = [sys.executable, "-c", HOST_HOLDER.replace("sys.argv[1]", repr(lock.HOST_NAME)), "run of a.toml\x1b[31m"]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_a_run_of_another_user_is_refused_and_told(host_holder):
    other = host_holder()
    with (
        pytest.raises(
            UserError, match=rf"another run is going on here: .*run of a.toml.* \(pid {other.pid}\)"
        ) as refused,
        alone_on_host(wait=False, say=print),
    ):
        pytest.fail("two at once")
    assert "\x1b" not in str(refused.value)


def test_a_run_of_another_user_is_waited_for(host_holder):
    other, said = host_holder(), []

    def say(line):
        assert other.poll() is None
        said.append(line)
        print("go on", file=other.stdin, flush=True)

    with alone_on_host(wait=True, say=say):
        assert len(said) == 1
        assert "waiting for another run to end" in said[0]


def test_a_killed_run_of_another_user_is_no_obstacle(host_holder):
    other = host_holder()
    other.kill()
    other.wait()
    with alone_on_host(wait=False, say=print):
        pass


def test_state_folders_of_ones_own_are_kept_apart_by_whoever_made_them(host_holder, monkeypatch, tmp_path):
    host_holder()
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path))
    with alone_on_host(wait=False, say=print):
        pass
