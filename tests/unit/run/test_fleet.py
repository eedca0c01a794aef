"""A study on several hosts: forked processes that play their trials; the run folder, the plan and the hosts' own runs are real."""

import pytest

from dbdyno.plan.order import seed_of_host, slots_of
from dbdyno.store.run_folder import read_run
from tests.fleets import HOSTS, Fleet, by_host, noting

ON_THREE = ("[stack]", '[hosts]\nunder_test = ["db1", "db2", "db3"]\n[stack]')
ON_ONE = ("[stack]", '[hosts]\nunder_test = ["db1"]\n[stack]')


@pytest.fixture
def states(tmp_path):
    return tmp_path / "states"


def test_blocks_run_on_all_hosts_each_in_the_order_of_seed_host_and_count(plan, into, states, tmp_path):
    made = plan(ON_THREE, blocks=9)
    fleet = Fleet(states, script_of=noting(tmp_path / "ran"))
    assert fleet.run(made, into).how == "done"
    run = read_run(into)
    assert (run.ended, run.stopped, run.notes) == ("done", "blocks", [])
    found = by_host(into)
    assert set(found) == set(HOSTS)
    for host, ran in found.items():
        design = made.design.__class__(**{**made.design.__dict__, "seed": seed_of_host(1, host, made.design.fleet)})
        assert ran == [(n, 1, slot.treatment) for n in (1, 2, 3) for slot in slots_of(design, n, 1)]
