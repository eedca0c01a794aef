"""Connections that are kept: a lost host is noticed, a busy one is not taken for one. Agents are ours, by pipes."""

import os
import signal
import time
from types import SimpleNamespace

import psutil
import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import connections as rejoining
from dbdyno.hosts.connections import LOST_SECONDS, ReadyHost, Rejoining
from dbdyno.hosts.contract import GuardedWork, quiet
from dbdyno.hosts.frames import Facts, PutBack
from tests.support import wait_for
from tests.unit.hosts.agents import agent, guarded, kept


def test_a_host_whose_agent_is_killed_is_lost_and_the_other_is_not(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, pids):
        assert lines.lost() == {}
        os.kill(pids["a"], signal.SIGKILL)
        wait_for(lines.lost)
        assert list(lines.lost()) == ["a"]
        assert lines.lost()["a"].startswith("a: the connection ended")
        with pytest.raises(HostError, match="a: the connection ended"):
            lines.ask("a", {"do": "facts"}, Facts)
        assert list(lines.offsets()) == ["b"]


def test_a_host_that_says_nothing_is_lost_and_stays_so(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, pids):
        os.kill(pids["b"], signal.SIGSTOP)
        stopped = time.monotonic()
        wait_for(lines.lost)
        assert time.monotonic() - stopped > LOST_SECONDS - 1.5, "a beat that is answered late is no loss"
        assert list(lines.lost()) == ["b"]
        os.kill(pids["b"], signal.SIGCONT)
        time.sleep(1)
        assert list(lines.lost()) == ["b"]


def test_clocks_and_questions_between_beats(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, _):
        for _ in range(4):
            for host in ("a", "b"):
                offset = lines.offsets()[host]["monotonic"]
                assert abs(offset.offset_ns) <= offset.bound_ns
                assert lines.ask(host, {"do": "facts"}, Facts).ssh_from == ""
            time.sleep(0.05)
        assert lines.lost() == {}


# A lost host that is tried again. Its agent and guard are real, children of ours.


@pytest.fixture
def tries(monkeypatch, tmp_path):
    """The moments of all attempts; each reaches a new agent with the state folder of that host."""
    found, refused = [], []

    def reached(_inventory, name, _host):
        found.append(time.monotonic())
        if refused:
            raise HostError(refused[0])
        return ReadyHost(agent(tmp_path, name), "", "", "")

    monkeypatch.setattr(rejoining, "reach_ready", reached)
    monkeypatch.setattr(rejoining, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(rejoining, "PAUSE_MAX_SECONDS", 0.4)
    return SimpleNamespace(at=found, refused=refused)


def trying(lines, work, *, measured_here=False):
    inventory = SimpleNamespace(hosts=dict.fromkeys(work), path="hosts.toml")
    return Rejoining(inventory, lines, work, measured_here=measured_here)


def guard_of(pid):
    [found] = [one for one in psutil.Process(pid).children() if "dbdyno.hosts.guard" in one.cmdline()]
    return found


@pytest.mark.usefixtures("tries")
def test_it_is_back_only_after_it_was_put_back(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, pids):
        work = {name: guarded(lines, name) for name in pids}
        before = work["a"]
        guard = guard_of(pids["a"])
        guard.suspend()
        with trying(lines, work) as again:
            os.kill(pids["a"], signal.SIGKILL)
            wait_for(lambda: again.why_not() == {"a": "a: is being restored"})
            assert list(lines.lost()) == ["a"]
            guard.resume()
            wait_for(lambda: not lines.lost())
            assert again.why_not() == {}
        assert work["a"] != before
        assert lines.ask("a", {"do": "restore", "token": before.token}, PutBack).over is True
        assert lines.ask("a", {"do": "restore", "token": work["a"].token}, PutBack).over is False
        lines.release()


def test_it_is_tried_at_growing_intervals_for_as_long_as_it_is_refused(tmp_path, tries):
    tries.refused.append("a: another dbdyno is there")
    with kept(tmp_path, "a") as (lines, pids), trying(lines, {"a": GuardedWork()}) as again:
        os.kill(pids["a"], signal.SIGKILL)
        wait_for(lambda: len(tries.at) >= 5)
        assert again.why_not() == {"a": "a: another dbdyno is there"}
        assert list(lines.lost()) == ["a"]
        one, two, three, four = (later - earlier for earlier, later in zip(tries.at, tries.at[1:], strict=False))
        assert one >= 0.2
        assert min(two, three, four) >= 0.4


def test_where_this_machine_is_measured_it_waits(tmp_path, tries):
    with kept(tmp_path, "a") as (lines, pids), trying(lines, {"a": GuardedWork()}, measured_here=True):
        with quiet("b"):
            os.kill(pids["a"], signal.SIGKILL)
            wait_for(lines.lost)
            time.sleep(1.0)
            assert tries.at == []
        wait_for(lambda: not lines.lost())
