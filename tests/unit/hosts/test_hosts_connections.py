"""Connections that are kept: a lost host is noticed, a busy one is not taken for one. Agents are ours, by pipes."""

import os
import signal
import time

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts.connections import LOST_SECONDS
from dbdyno.hosts.frames import Facts
from tests.support import wait_for
from tests.unit.hosts.agents import kept


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
