"""Hosts that are restarted between whole plots, as a run has it: the starts are played, all else is the real run."""

import json
import os
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError
from dbdyno.store.run_folder import read_run
from tests.fleets import Fleet, by_host, lines
from tests.scripted import Script

BOOTED = (
    "[stack]",
    '[hosts]\nunder_test = ["db1", "db2"]\n[hosts.boot]\nkernel = ["6.1", "6.12"]\n[stack]',
)
OWN = "5.10"


class Booting:
    """Hosts that are restarted at once: each looks at a file for the kernel that it runs."""

    def __init__(self, folder):
        self.folder, self.refused, self.error = folder, {}, HostError

    def kernel(self, host):
        path = self.folder / f"{host}.kernel"
        return path.read_text() if path.exists() else OWN

    def restart(self, host, kernel):
        if host in self.refused:
            raise self.error(f"{host}: {self.refused[host]}")
        (self.folder / f"{host}.kernel").write_text(kernel)
        with (self.folder / "boots").open("a") as file:
            file.write(json.dumps([host, kernel]) + "\n")

    def return_own(self, host):
        self.restart(host, OWN)
        return OWN

    def script(self, host):
        script = Script()
        ports = script.ports
        script.ports = lambda: replace(ports(), kernel=lambda: self.kernel(host))
        return script


@pytest.fixture
def booting(state, tmp_path):
    assert os.environ["DBDYNO_STATE_DIR"] == str(state)
    return Booting(tmp_path)


def fleet_of(booting, tmp_path):
    fleet = Fleet(tmp_path / "states", ["db1", "db2"], booting.script)
    fleet.clients = SimpleNamespace(reboots=booting)
    return fleet


def test_each_trial_has_its_kernel_and_each_block_stays_one(plan, into, booting, tmp_path):
    made = plan(BOOTED, blocks=6)
    fleet = fleet_of(booting, tmp_path)
    assert fleet.run(made, into).how == "done"
    run = read_run(into)
    assert (run.ended, run.notes, run.failures) == ("done", [], [])
    assert len(usable_blocks(run).trials) == 6
    for trial in run.trials:
        assert trial.observed["boot"] == {"kernel": made.specs[trial.treatment].booted_kernel}
    starts = made.reboots(6)
    for host, trials in by_host(into).items():
        order = [(n, 1, slot.treatment) for n in range(1, 4) for slot in made.on_host(host).slots(n, 1)]
        assert trials == order, "no trial is run twice, and none out of its order"
        kernels = [kernel for name, kernel in lines(tmp_path / "boots") if name == host]
        assert (kernels[-1], len(kernels)) == (OWN, starts[host])
        assert all(one != other for one, other in pairwise(kernels))


@pytest.mark.parametrize("error", [HostError, ValueError, PermissionError])
def test_a_host_that_is_not_back_takes_no_more_part_and_the_others_go_on(plan, into, booting, tmp_path, error):
    fleet, booting.error = fleet_of(booting, tmp_path), error
    booting.refused["db2"] = "was restarted with kernel 6.1, and came back with 5.10"
    assert fleet.run(plan(BOOTED, blocks=4), into).how == "done"
    run = read_run(into)
    void = "the block in progress is void"
    assert run.notes == [f"db2 no longer takes part: {booting.refused['db2']}; {void}"]
    assert {trial.host for trial in run.trials} == {"db1"}
    assert len(usable_blocks(run).trials) == 4
    assert any("db2: was restarted" in one and "restore --hosts" in one for one in fleet.said)
