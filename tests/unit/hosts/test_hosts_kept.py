"""Connections that are kept: a lost host is noticed, a busy one is not taken for one. Agents are ours, by pipes."""

import os
import signal
import sys
import time
from contextlib import contextmanager

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.kept import LOST_SECONDS, Kept
from tests.support import wait_for

NOTICED_SECONDS = 5


@contextmanager
def kept(folder, *names):
    """Agents and the connections to them."""
    channels = {}
    for name in names:
        state = {"DBDYNO_STATE_DIR": str(folder / name), "SSH_CONNECTION": ""}
        channels[name] = Channel(name, [sys.executable, "-m", "dbdyno.hosts.agent"], state)
    pids = {name: channel.answer()["agent"] for name, channel in channels.items()}
    lines = Kept(channels)
    try:
        yield lines, pids
    finally:
        for pid in pids.values():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
        lines.close()


def test_a_host_whose_agent_is_killed_is_lost_and_the_other_is_not(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, pids):
        assert lines.lost() == {}
        os.kill(pids["a"], signal.SIGKILL)
        wait_for(lines.lost, seconds=NOTICED_SECONDS)
        assert list(lines.lost()) == ["a"]
        assert lines.lost()["a"].startswith("a: the connection ended")
        with pytest.raises(HostError, match="a: the connection ended"):
            lines.ask("a", {"do": "facts", "ray_folder": "/"})
        assert list(lines.offsets()) == ["b"]


def test_a_host_that_says_nothing_is_lost_and_stays_so(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, pids):
        os.kill(pids["b"], signal.SIGSTOP)
        stopped = time.monotonic()
        wait_for(lines.lost, seconds=60)
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
                assert lines.ask(host, {"do": "facts", "ray_folder": "/"})["ray"] is None
            time.sleep(0.05)
        assert lines.lost() == {}
