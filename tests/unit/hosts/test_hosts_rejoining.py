"""A lost host that is tried again. Its agent and guard are real, children of ours; Ray is not there."""

import os
import signal
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import kept as rejoining
from dbdyno.hosts.answers import Begun, Guarding, LeftBehind
from dbdyno.hosts.carried import Guarded, quiet
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.kept import HERE, Reached, Rejoining
from tests.support import wait_for
from tests.unit.hosts.agents import guarded, kept


class Hosts:
    """Of ``RayHosts`` what is asked."""

    def __init__(self, work):
        self.work, self.agains = work, []

    def work_of(self, host):
        return self.work[host]

    def again(self, host, work, folder):
        self.agains.append((host, folder))
        self.work[host] = work


class WithoutRay(Rejoining):
    def _see_that_ray_is_there(self, name, found):
        pass


def held(ask):
    found = ask({"do": "guard"}, Guarding)
    return Guarded(found.token, found.folder), "there"


@pytest.fixture
def tries(monkeypatch, tmp_path):
    """The moments of all attempts; each reaches a new agent with the state folder of that host."""
    found, refused = [], []

    def reached(_inventory, name, _host):
        found.append(time.monotonic())
        if refused:
            raise HostError(refused[0])
        state = {"DBDYNO_STATE_DIR": str(tmp_path / name), "SSH_CONNECTION": ""}
        channel = Channel(name, [sys.executable, "-m", "dbdyno.hosts.agent"], state)
        channel.answer(Begun)
        return Reached(channel, "", "")

    monkeypatch.setattr(rejoining, "reached", reached)
    monkeypatch.setattr(rejoining, "held", held)
    monkeypatch.setattr(rejoining, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(rejoining, "PAUSE_MAX_SECONDS", 0.4)
    return SimpleNamespace(at=found, refused=refused)


def trying(lines, hosts, *, measured_here=False):
    inventory = SimpleNamespace(hosts=dict.fromkeys(hosts.work), path="hosts.toml")
    return WithoutRay(inventory, lines, hosts, measured_here=measured_here)


def guard_of(pid):
    [found] = [one for one in psutil.Process(pid).children() if "dbdyno.hosts.guard" in one.cmdline()]
    return found


@pytest.mark.usefixtures("tries")
def test_it_is_back_only_after_it_was_put_back(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, pids):
        hosts = Hosts({name: guarded(lines, name) for name in pids})
        before = hosts.work["a"]
        guard = guard_of(pids["a"])
        guard.suspend()
        with trying(lines, hosts) as again:
            os.kill(pids["a"], signal.SIGKILL)
            wait_for(lambda: again.why_not() == {"a": "a: is being put back"}, seconds=20)
            assert list(lines.lost()) == ["a"]
            guard.resume()
            wait_for(lambda: not lines.lost(), seconds=20)
            assert again.why_not() == {}
        assert hosts.agains == [("a", "there")]
        assert hosts.work["a"] != before
        assert lines.ask("a", {"do": "restore", "token": before.token}, LeftBehind).over is True
        assert lines.ask("a", {"do": "restore", "token": hosts.work["a"].token}, LeftBehind).over is False
        lines.release()


def test_it_is_tried_at_growing_intervals_for_as_long_as_it_is_refused(tmp_path, tries):
    tries.refused.append("a: another dbdyno is there")
    with kept(tmp_path, "a") as (lines, pids), trying(lines, Hosts({"a": Guarded()})) as again:
        os.kill(pids["a"], signal.SIGKILL)
        wait_for(lambda: len(tries.at) >= 5, seconds=20)
        assert again.why_not() == {"a": "a: another dbdyno is there"}
        assert list(lines.lost()) == ["a"]
        one, two, three, four = (later - earlier for earlier, later in zip(tries.at, tries.at[1:], strict=False))
        assert one >= 0.2
        assert min(two, three, four) >= 0.4


def test_where_this_machine_is_measured_it_waits(tmp_path, tries):
    with kept(tmp_path, "a") as (lines, pids), trying(lines, Hosts({"a": Guarded()}), measured_here=True):
        with quiet("b"):
            os.kill(pids["a"], signal.SIGKILL)
            wait_for(lines.lost, seconds=20)
            time.sleep(1.0)
            assert tries.at == []
        wait_for(lambda: not lines.lost(), seconds=20)


def test_without_ray_s_head_nothing_is_tried(tmp_path, tries):
    with kept(tmp_path, "a", HERE) as (lines, pids), trying(lines, Hosts({"a": Guarded()})):
        for name in (HERE, "a"):
            os.kill(pids[name], signal.SIGKILL)
            wait_for(lambda name=name: name in lines.lost(), seconds=20)
            time.sleep(0.5)
        assert tries.at == []
