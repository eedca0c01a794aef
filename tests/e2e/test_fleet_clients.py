"""Hosts under test whose load comes from client hosts, all of them this machine, against real servers."""

import os
import shutil
import signal
from pathlib import Path
from threading import Event, Thread, Timer
from types import SimpleNamespace

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError
from dbdyno.hosts.connect import Connected
from dbdyno.hosts.inventory import read_inventory
from dbdyno.plan.plan import make_plan
from dbdyno.run.fleet import coordinate
from dbdyno.run.ports import HOST
from dbdyno.store.run_folder import read_run
from dbdyno.study.load import load_study
from tests.client_hosts import Clock, study_text
from tests.fleets import Fleet
from tests.support import dbdyno, is_measured, wait_for

ADDRESSES = {"db1": "127.0.0.2", "db2": "127.0.0.3", "c1": "127.0.0.4", "c2": "127.0.0.5"}
UNDER_TEST = ("db1", "db2")

pytestmark = [
    pytest.mark.drawn(1, group="client hosts"),
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("mariadbd", path="/usr/sbin") is None, reason="no MariaDB server"),
]


@pytest.fixture
def fleet(state, tmp_path, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))
    state.chmod(0o755)
    inventory = tmp_path / "hosts.toml"
    hosts = [
        f'[host.{name}]\nssh = "{name}.lab"\naddress = "{address}"\n'
        f'roles = ["{"server" if name in UNDER_TEST else "client"}"]\n'
        for name, address in ADDRESSES.items()
    ]
    inventory.write_text("version = 1\n" + "".join(hosts))
    real = lambda _: SimpleNamespace(ports=lambda: HOST)  # noqa: E731
    found = Fleet(state / "states", UNDER_TEST, real, real, clients=("c1", "c2"))
    found.clients = Connected(found.hosts, read_inventory(inventory), Clock(found.hosts, found.lost))
    yield found
    found.hosts.close()


def planned(tmp_path, under_test=UNDER_TEST, **fields):
    names = ", ".join(f'"{name}"' for name in under_test)
    text = study_text(**fields).replace("[stack]", f"[hosts]\nunder_test = [{names}]\n[stack]", 1)
    (tmp_path / "study.toml").write_text(text)
    return make_plan(load_study(tmp_path / "study.toml"))


def programs(fleet, host):
    return [program.process for program in fleet.hosts._sides[host]._programs.values()]


def once_they_measure(hosts, do):
    """Do something as soon as these hosts do."""

    def watch():
        wait_for(lambda: all(map(is_measured, hosts)))
        do()

    Thread(target=watch, daemon=True).start()


def whole_blocks(into):
    """Host -> how many of its blocks count; each trial of these is there once."""
    run = read_run(into)
    hosts = {trial.block: trial.host for trial in run.trials}
    counted = [hosts[block] for block in usable_blocks(run).trials]
    return {name: counted.count(name) for name in UNDER_TEST}


def test_hosts_are_loaded_in_turn_by_the_same_clients(fleet, tmp_path):
    seen, over = set(), Event()

    def watch():
        while not over.wait(0.002):
            seen.add((is_measured("c1"), is_measured("db1"), is_measured("db2")))

    Thread(target=watch, daemon=True).start()
    made = planned(tmp_path, blocks=4, duration="500ms")
    assert fleet.run(made, tmp_path / "run").how == "done"
    over.set()
    windows = {found for found in seen if found[0]}
    assert windows == {(True, True, False), (True, False, True)}, "who measures is asked nothing, one server at a time"
    assert not any(both[1:] == (True, True) for both in seen), "blocks are run in turn"
    run = read_run(tmp_path / "run")
    assert (run.ended, whole_blocks(tmp_path / "run")) == ("done", {"db1": 2, "db2": 2})
    first, second, third, fourth = {trial.block: trial.host for trial in run.trials}.values()  # attempts may be void
    assert first != second
    assert third != fourth
    for trial in run.trials:
        figures = trial.load["client_hosts"]
        assert [(one["host"], one["clients"]) for one in figures] == [("c1", 2), ("c2", 2)]
        assert all(abs(one["start_off_us"]) < 1e6 for one in figures)
        assert sum(one["queries_per_second"] for one in figures) == pytest.approx(trial.metrics["queries_per_second"])
        assert (tmp_path / "run/trials" / trial.id / "clients/c2/latency.hlog").exists()
        assert trial.metrics["server_cpu_us_per_query"] > 0, "probes and load have one clock"
    assert {read_password_free(path) for path in (tmp_path / "run").rglob("*") if path.is_file()} == {True}


def read_password_free(path: Path):
    return b"MYSQL_PWD" not in path.read_bytes()


def test_a_load_that_is_killed_voids_its_attempt_on_that_host_alone(fleet, tmp_path):
    def kill():
        os.killpg(programs(fleet, "c2")[0].pid, signal.SIGKILL)

    once_they_measure(["c2"], kill)
    made = planned(tmp_path, blocks=2, duration="2s")
    assert fleet.run(made, tmp_path / "run").how == "done"
    run = read_run(tmp_path / "run")
    assert ["c2: the load ended before its time" in one.cause for one in run.failures] == [True]
    assert whole_blocks(tmp_path / "run") == {"db1": 1, "db2": 1}


def test_a_lost_client_voids_the_block_and_is_waited_for(fleet, tmp_path):
    once_they_measure(["c2"], lambda: fleet.lost.update(c2="it answers no more"))
    say = fleet.say

    def heard(text):
        say(text)
        if "no block is begun until it is back" in text:
            Timer(3.0, fleet.lost.clear).start()

    fleet.say = heard
    made = planned(tmp_path, blocks=2, duration="2s")
    assert fleet.run(made, tmp_path / "run").how == "done"
    run = read_run(tmp_path / "run")
    void, back = run.notes
    assert void.startswith("client host c2 is lost: it answers no more; the block that db")
    assert back == "all client hosts are back"
    assert (run.failures, whole_blocks(tmp_path / "run")) == ([], {"db1": 1, "db2": 1})


def test_a_client_that_stays_lost_ends_the_run_with_all_put_back(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr(coordinate, "_AWAY_SECONDS", 2.0)
    once_they_measure(["c2"], lambda: fleet.lost.update(c2="it answers no more"))
    made = planned(tmp_path, blocks=2, duration="2s")
    with pytest.raises(HostError, match=r"client host c2 is lost: it answers no more; once it is back, .*--resume"):
        fleet.run(made, tmp_path / "run")
    assert not any(fleet.hosts.pids().values()), "hosts under test are put back, and nothing runs there"
    assert not any(process.poll() is None for process in programs(fleet, "c1"))
    assert read_run(tmp_path / "run").failures == []
    fleet.lost.clear()
    assert fleet.run(made, tmp_path / "run", resume=True).how == "done"
    assert whole_blocks(tmp_path / "run") == {"db1": 1, "db2": 1}


def test_a_lost_host_under_test_voids_its_block_and_the_clients_load_the_other(fleet, tmp_path):
    def lose():
        fleet.lost["db1"] = "its connection ended"
        os.kill(fleet.hosts.pids()["db1"], signal.SIGKILL)

    once_they_measure(["c1", "db1"], lose)
    made = planned(tmp_path, blocks=2, duration="2s")
    assert fleet.run(made, tmp_path / "run").how == "done"
    assert whole_blocks(tmp_path / "run") == {"db1": 0, "db2": 2}
    assert any("db1 no longer takes part: it is lost (its connection ended)" in one for one in fleet.said)
    # That, or its load before it, which is told that the server's host is lost: whichever looks first.
    of_block = [one for one in fleet.said if one.startswith("db1") and "the block in progress is void" in one]
    assert ["its connection ended" in one for one in of_block] == [True]
    restored = dbdyno("restore", state=fleet.states / "db1")  # what a guard does there
    assert "database server" in restored.stdout
