"""Simulated trials of a run: begun ahead on all processors, stored in the plan's order, and of no host."""

import contextlib
import json
import threading
from dataclasses import replace

import pytest

from dbdyno.compute.spread import Spread
from dbdyno.compute.workers import LocalWorkers
from dbdyno.hosts.connect import Connected
from dbdyno.plan.plan import make_plan
from dbdyno.run.over_hosts import simulating
from dbdyno.run.ports import HOST, Simulations
from dbdyno.simulation.sweep import Simulators
from dbdyno.study.load import load_study
from dbdyno.workload.simulated import point_of
from tests.documents import ROOT
from tests.local_hosts import LocalHosts


def calling(simulate):
    return Simulations(Simulators(Spread(LocalWorkers(lambda point, _: simulate(point)))))


def test_an_outcome_is_that_of_its_point_and_is_handed_out_once():
    asked = []
    simulations = calling(lambda point: asked.append(point) or f"outcome of {json.loads(point)}")
    simulations.begin('"a"')
    simulations.begin('"a"')
    assert simulations.outcome('"a"') == "outcome of a"
    assert simulations.outcome('"b"') == "outcome of b"
    assert asked == ['"a"', '"b"']
    assert simulations.outcome('"a"') == "outcome of a"
    assert asked == ['"a"', '"b"', '"a"']


def test_what_a_simulation_raises_is_raised_where_its_outcome_is_asked_for():
    def refuse(point):
        raise ValueError(f"load: {point}")

    simulations = calling(refuse)
    simulations.begin("1")
    with pytest.raises(ValueError, match="load: 1"):
        simulations.outcome("1")


def test_as_many_run_at_a_time_as_there_are_processors(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    running, most, together = set(), [], threading.Barrier(2, timeout=60)

    def simulate(point):
        running.add(point)
        together.wait()
        most.append(len(running))
        together.wait()
        running.discard(point)
        return point

    simulations = calling(simulate)
    assert simulations.has_room()
    for point in "1234":
        simulations.begin(point)
    assert not simulations.has_room()
    assert [simulations.outcome(point) for point in "1234"] == list("1234")
    assert max(most) == 2


STUDY = """\
version = 1
[study]
title = "Simulated"
[stack]
kernel = ["2.6.18", "2.6.32"]
device = "hdd-15k"
size = "1GiB"
[workload]
kind = "fio"
profile = "RND4K Q1T1"
load = "read"
[design]
seed = 3
"""


def test_treatments_of_a_block_have_one_seed_and_blocks_have_different_ones(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    plan = make_plan(load_study(path))
    seeds = {
        (block, id_): json.loads(point_of(spec, plan.trial_seed(block)))["seed"]
        for block in (1, 2)
        for id_, spec in plan.specs.items()
    }
    assert seeds[1, "t1"] == seeds[1, "t2"] != seeds[2, "t1"]


def test_a_plan_says_that_it_is_simulated(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    plan = make_plan(load_study(path))
    assert plan.is_simulated
    assert plan.seconds_per_trial() < 1


class Lent:
    """Hosts that are connected, all of them this machine."""

    def __init__(self, hosts):
        self.hosts = hosts

    spread = Connected.spread

    def why_lost(self):
        return {}


def test_over_hosts_a_study_comes_to_the_same_and_its_drive_file_is_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "mine.toml").write_bytes((ROOT / "crates/dbdyno-device/drives/hdd-15k.toml").read_bytes())
    path, said = tmp_path / "study.toml", []
    path.write_text(STUDY.replace("hdd-15k", "mine.toml"), encoding="utf-8")
    plan = make_plan(load_study(path))
    points = [point_of(spec, plan.trial_seed(block)) for block in range(1, 6) for spec in plan.specs.values()]
    here = Simulations()
    hosts = LocalHosts(["a", "b"])
    ports = replace(HOST, connected=Lent(hosts))
    with contextlib.closing(hosts), simulating(plan, ports, said.append) as over:
        there = over.simulations
        assert there is not HOST.simulations
        for point in points:
            there.begin(point)
        assert [there.outcome(point) for point in points] == [here.outcome(point) for point in points]
    assert said
    assert all(": sending " in line for line in said)
    assert [one.suffix for one in (tmp_path / "state/inputs").iterdir()] == [".toml"]
