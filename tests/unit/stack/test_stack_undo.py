"""Each undo does what it says, to nothing else, and any number of times."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import HostError
from dbdyno.stack.layers.memory import memory_hierarchy
from dbdyno.stack.undo.actions import (
    TOKEN_VARIABLE,
    DetachLoops,
    EndProcesses,
    RemoveCgroup,
    RemoveDiskFile,
    RemoveTraceInstance,
    RemoveTree,
    RestoreSysfs,
    SetInstantMode,
    Unmount,
)
from dbdyno.system.state import new_token, state_folder


def running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def marked(tmp_path):
    """Start a shell script with a token in its environment, once it has written its children's numbers."""
    started = []

    def start(token, script):
        pids = tmp_path / f"pids{len(started)}"
        environment = {"PATH": os.environ["PATH"], "PIDS": str(pids)}
        if token:
            environment[TOKEN_VARIABLE] = token
        process = subprocess.Popen(["sh", "-c", script], env=environment, start_new_session=True)
        started.append(process)
        deadline = time.monotonic() + 120
        while not pids.exists() or not pids.read_text().endswith(".\n"):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return [process.pid, *(int(word) for word in pids.read_text().split()[:-1])]

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


TREE = """
sleep 60 & echo $! >> $PIDS
(sleep 60 & echo $! >> $PIDS; wait) & echo $! >> $PIDS
sleep .1; echo . >> $PIDS; wait
"""


def test_a_whole_tree_of_processes_ends_and_no_other(marked):
    token = new_token()
    ours = marked(token, TREE)
    others = [*marked(token + "0", TREE), *marked(token[:-1], TREE), *marked(None, TREE)]
    assert len(ours) == 4
    undo = EndProcesses(token, "the test's processes", grace_seconds=5)
    assert undo.apply()
    assert not any(running(pid) for pid in ours)
    assert all(running(pid) for pid in others)
    assert not undo.apply()


def test_what_will_not_end_is_killed(marked):
    token = new_token()
    [pid] = marked(token, 'trap "" TERM; echo . >> $PIDS; while :; do sleep .05; done')
    assert EndProcesses(token, "a stubborn one", grace_seconds=0.3).apply()
    assert not running(pid)


def test_a_process_that_nobody_waits_for_has_ended():
    """Under a first process that reaps nothing, as in many containers, what ended stays as a zombie."""
    token = new_token()
    code = "import os, subprocess, sys, time\n"
    code += (
        f"child = subprocess.Popen(['sleep', '60'], env={{'{TOKEN_VARIABLE}': '{token}', 'PATH': '/bin:/usr/bin'}})\n"
    )
    code += "print(child.pid, flush=True)\ntime.sleep(60)\n"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        deadline = time.monotonic() + 120
        while b"TOKEN" not in Path(f"/proc/{pid}/environ").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        try:
            assert EndProcesses(token, "a child of another", grace_seconds=1).apply()
            assert not running(pid)
        finally:
            parent.kill()


def test_a_scratch_folder_is_removed_once():
    folder = state_folder() / "scratch" / new_token()
    (folder / "mnt").mkdir(parents=True)
    (folder / "mnt" / "file").write_text("x")
    undo = RemoveTree(str(folder))
    assert undo.apply()
    assert not folder.exists()
    assert folder.parent.exists()
    assert not undo.apply()


def test_nothing_outside_the_state_folder_is_removed(state):
    outside = state.parent / "precious"
    outside.mkdir()
    (state / "scratch").mkdir()
    (state / "scratch" / "link").symlink_to(outside)
    beside = Path(f"{state}2")
    beside.mkdir()
    for path in (outside, state / ".." / "precious", state / "scratch" / "link", beside, state, state.parent):
        with pytest.raises(HostError) as refused:
            RemoveTree(str(path)).apply()
        assert str(refused.value) == f"{path} is not under {state}; it is left alone"
    assert outside.exists()
    assert state.exists()


@pytest.mark.parametrize(
    ("holds", "value", "done"),
    [
        ("64\n", "64", False),
        ("64\n", "128", True),
        ("none [mq-deadline] kyber bfq\n", "mq-deadline", False),
        ("none [mq-deadline] kyber bfq\n", "none", True),
        ("[none] mq-deadline\n", "none", False),
        ("[none] mq-deadline\n", "deadline", True),
    ],
)
def test_a_setting_is_written_back_only_where_it_differs(tmp_path, holds, value, done):
    setting = tmp_path / "scheduler"
    setting.write_text(holds)
    undo = RestoreSysfs(str(setting), value)
    assert undo.apply() is done
    assert setting.read_text() == (value if done else holds)
    assert not undo.apply()


def test_a_setting_of_a_device_that_is_gone_needs_nothing(tmp_path):
    assert not RestoreSysfs(str(tmp_path / "sdb" / "scheduler"), "none").apply()


def test_a_setting_that_can_not_be_written_is_named(tmp_path):
    with pytest.raises(HostError) as refused:
        RestoreSysfs(str(tmp_path), "none").apply()
    assert str(refused.value) == f"write 'none' to {tmp_path}: Is a directory"


def test_a_control_group_is_removed_once(tmp_path):
    group = tmp_path / "dbdyno-x"
    group.mkdir()
    assert RemoveCgroup(str(group)).apply()
    assert not group.exists()
    assert not RemoveCgroup(str(group)).apply()


@pytest.fixture
def busy_group():
    """A control group with a process in it."""
    found = memory_hierarchy()
    if found is None or os.geteuid() != 0:
        pytest.skip("no control group can be made here")
    group = found[1] / f"dbdyno-{new_token()}"
    group.mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            (group / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
            yield group, process
        finally:
            process.kill()
            process.wait()
            RemoveCgroup(str(group)).apply()


def test_a_busy_control_group_is_removed_once_its_processes_have_ended(busy_group, monkeypatch):
    group, process = busy_group
    pauses = []

    def end_the_process(seconds):
        pauses.append(seconds)
        process.kill()
        process.wait()

    monkeypatch.setattr("dbdyno.stack.undo.actions.time.sleep", end_the_process)
    assert RemoveCgroup(str(group)).apply()
    assert not group.exists()
    assert pauses


def test_a_control_group_that_stays_busy_is_given_up_with_what_is_in_it(busy_group, monkeypatch):
    group, process = busy_group
    monkeypatch.setattr("dbdyno.stack.undo.actions.LET_GO_SECONDS", 0.0)
    with pytest.raises(HostError, match=rf"rmdir {group}: .*busy; processes {process.pid} are in it; end what uses it"):
        RemoveCgroup(str(group)).apply()
    monkeypatch.undo()


def test_a_disk_that_runs_is_asked_to_hurry_and_one_that_is_gone_is_not_missed(tmp_path):
    control = tmp_path / "disk.sock"
    heard = []

    def answer(server):
        with server.accept()[0] as client:
            heard.append(json.loads(client.makefile("r").readline()))
            client.sendall(b'{"ok": true}\n')

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(control))
        server.listen()
        server.settimeout(120)
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        assert SetInstantMode(str(control)).apply()
        thread.join()
    assert heard == [{"op": "mode", "mode": "instant"}]
    assert not SetInstantMode(str(control)).apply()  # nobody listens
    control.unlink()
    assert not SetInstantMode(str(control)).apply()


def test_what_is_not_there_needs_no_undoing(tmp_path):
    assert not Unmount(str(tmp_path)).apply()
    assert not DetachLoops(str(tmp_path / "disk.img")).apply()
    assert not EndProcesses(new_token(), "nothing").apply()


def test_a_trace_instance_that_is_not_called_ours_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("dbdyno.stack.undo.actions.TRACEFS", (tmp_path,))
    for name in ("somebody", "dbdyno-0f/../../x", "dbdyno-", "dbdyno-1\n"):
        with pytest.raises(HostError, match="not a trace instance of dbdyno's"):
            RemoveTraceInstance(name).apply()
    (tmp_path / "instances/dbdyno-0f").mkdir(parents=True)
    assert RemoveTraceInstance("dbdyno-0f").apply()
    assert not RemoveTraceInstance("dbdyno-0f").apply()
    assert RemoveTraceInstance("dbdyno-0f").describe() == "remove the trace instance dbdyno-0f"


def test_a_disk_file_is_removed_by_its_name_and_nothing_else_is(tmp_path):
    ours = tmp_path / "dbdyno-00ff.img"
    ours.write_bytes(b"")
    assert (RemoveDiskFile(str(ours)).apply(), RemoveDiskFile(str(ours)).apply()) == (True, False)
    others = tmp_path / "backup.img"
    others.write_bytes(b"")
    ours.symlink_to(others)
    for path in (others, ours):
        with pytest.raises(HostError, match="left alone"):
            RemoveDiskFile(str(path)).apply()
    assert others.exists()
