"""A host puts itself back: once its connection ends, however that ends, nothing is left of what was started there."""

import os
import signal
import sys
from contextlib import closing

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts.frames import HEAD, Nothing, PutBack, side_question
from dbdyno.stack.undo_log import ProcessIdentity
from tests.local_hosts import LocalHosts
from tests.support import wait_for
from tests.unit.hosts.agents import agent, guarded, kept

ENDS = {
    "the agent is killed": lambda _, pid: os.kill(pid, signal.SIGKILL),
    "its input ends": lambda lines, _: lines.close(),
    "it is asked to": lambda lines, _: lines.release(),
}
# A dbdyno that is killed on that host: what it has changed is in an undo log of its own there.
KILLED = """
import os, signal
from pathlib import Path
from dbdyno.stack.undo_log import Journal
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.system.state import state_folder
folder = state_folder() / "scratch/left"
Journal("a trial").announce(RemoveTree(str(folder)))
folder.mkdir(parents=True)
print(folder, flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pause()
"""


def left(folder):
    """Undo logs and scratch folders."""
    return [path for where in ("journals", "scratch") for path in (folder / where).glob("*")]


@pytest.mark.parametrize("end", ENDS)
def test_all_that_was_started_ends_with_the_connection(tmp_path, end):
    with kept(tmp_path, "a") as (lines, pids), closing(LocalHosts(["a"], {"a": guarded(lines, "a")})) as hosts:
        assert len(left(tmp_path / "a")) == 2
        script = f"sleep 1000 & echo $! > {tmp_path}/pid; setsid sleep 1000 & echo $! >> {tmp_path}/pid; echo up; wait"
        assert next(hosts.stream("a", hosts.start("a", ["sh", "-c", script]))).content == b"up\n"
        started = [int(line) for line in (tmp_path / "pid").read_text().split()]
        ENDS[end](lines, pids["a"])
        wait_for(lambda: not left(tmp_path / "a"))
        assert [pid for pid in started if ProcessIdentity.of(pid)] == []
        with pytest.raises(HostError, match=r"a: .*this host was restored"):
            hosts.start("a", ["touch", str(tmp_path / "late")])
        assert not (tmp_path / "late").exists()


def test_what_a_killed_dbdyno_there_has_changed_is_undone_by_its_own_log(tmp_path):
    with kept(tmp_path, "a") as (lines, _), closing(LocalHosts(["a"], {"a": guarded(lines, "a")})) as hosts:
        its_own = {"DBDYNO_STATE_DIR": str(tmp_path / "a")}
        changing = hosts.start("a", [sys.executable, "-c", KILLED], environment=its_own)
        assert next(hosts.stream("a", changing)).content.decode().strip() == str(tmp_path / "a/scratch/left")
        said = lines.ask("a", {"do": "release"}, PutBack)
    assert said.whole
    assert said.undone[1] == f"remove {tmp_path}/a/scratch/left"
    assert left(tmp_path / "a") == []


def test_a_guard_that_was_killed_too_leaves_a_log_by_which_restore_ends_it_all(tmp_path):
    with kept(tmp_path, "a") as (lines, _), closing(LocalHosts(["a"], {"a": guarded(lines, "a")})) as hosts:
        hosts.start("a", ["sleep", "1000"])
        assert "left alone" in lines.ask("a", {"do": "restore"}, PutBack).left_alone[0]
        (log,) = (tmp_path / "a/journals").iterdir()
        os.kill(int(log.name.partition("-")[0]), signal.SIGKILL)
        with pytest.raises(HostError, match="guard process has ended there; run dbdyno restore --hosts"):
            lines.ask("a", {"do": "release"}, PutBack)
        said = lines.ask("a", {"do": "restore"}, PutBack)
    assert said.whole
    assert len(said.undone) == 2
    assert left(tmp_path / "a") == []


def test_an_agent_without_beats_takes_the_network_for_cut(tmp_path):
    """Nothing closes its input, and yet it ends."""
    with agent(tmp_path, "a") as channel:
        channel.ask({"do": "beat"}, Nothing)
        assert channel._process.wait(60) == 0


def test_an_agent_that_is_cut_off_in_the_middle_of_a_question_or_of_an_answer_ends(tmp_path):
    with agent(tmp_path, "a") as asked, agent(tmp_path, "b") as answering:
        (tmp_path / "large").write_bytes(bytes(1024**2))
        for one in (asked, answering):
            one.ask({"do": "beat"}, Nothing)
        asked.send(HEAD.pack(9, 100, 10**6) + b"{")
        for _ in range(3):  # more than any pipe holds, and nobody takes it
            answering.submit(*side_question("content", [str(tmp_path / "large"), 0]))
        assert asked._process.wait(60) == 0
        assert answering._process.wait(60) in {0, -signal.SIGTERM}
