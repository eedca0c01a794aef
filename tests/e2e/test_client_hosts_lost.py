"""A client host that is lost, or whose load is killed, against a real server: the attempt at the block is void."""

import os
import shutil
import signal
from threading import Thread

import pytest

from dbdyno.errors import HostError
from tests.client_hosts import connected_to, run_over, study_text
from tests.support import wait_for

pytestmark = [
    pytest.mark.drawn(1, group="client hosts"),
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("mariadbd", path="/usr/sbin") is None, reason="no MariaDB server"),
    pytest.mark.usefixtures("state"),
]


def once_it_measures(hosts, host, do):
    """Do something when a host has been told the start of its first trial."""

    def watch():
        wait_for(lambda: any(name == host and argv[0] == "tee" for name, argv in hosts.hosts.started))
        do()

    Thread(target=watch, daemon=True).start()


def programs(hosts):
    return [program.process for side in hosts.hosts._sides.values() for program in side._programs.values()]


def test_a_load_that_is_killed_voids_its_attempt(tmp_path):
    with connected_to(tmp_path, "c1", "c2") as hosts:

        def kill():
            first = next(iter(hosts.hosts._sides["c2"]._programs.values()))
            os.killpg(first.process.pid, signal.SIGKILL)

        once_it_measures(hosts, "c2", kill)
        run, _, said = run_over(tmp_path, study_text(duration="3s", blocks=1), hosts)
        wait_for(lambda: all(process.poll() is not None for process in programs(hosts)))
    assert run.ended == "done"
    assert len(run.failures) == 1
    assert "c2: the load ended before its time" in run.failures[0].cause
    assert any("repeated whole" in line for line in said)
    assert {trial.treatment for trial in run.trials if trial.attempt == 2} == {"t1", "t2"}


def test_a_lost_host_ends_the_run_until_it_is_back(tmp_path):
    with connected_to(tmp_path, "c1", "c2") as hosts:
        once_it_measures(hosts, "c2", lambda: hosts._connections.gone.update(c2="it answers no more"))
        with pytest.raises(HostError, match=r"client host c2 is lost: it answers no more; dbdyno hosts up .*--resume"):
            run_over(tmp_path, study_text(duration="3s", blocks=1), hosts)
        wait_for(lambda: all(process.poll() is not None for process in programs(hosts)))
        hosts._connections.gone.clear()
        run, _, _ = run_over(tmp_path, study_text(duration="3s", blocks=1), hosts, resume=True)
    assert run.ended == "done"
    assert "client host c2 is lost" in run.failures[0].cause
    whole = max(trial.attempt for trial in run.trials)
    assert [trial.treatment for trial in run.trials if trial.attempt == whole].count("t1") == 1
