"""``Hosts`` over the protocol of agents, which are children of ours; ``tests/host/test_hosts.py`` asks it of ssh."""

from dbdyno.hosts.connect import SshHosts
from dbdyno.simulation.sweep import simulate_point
from tests.unit.hosts import workers_contract
from tests.unit.hosts.agents import kept
from tests.unit.hosts.contract import keeps_the_contract


def test_the_contract(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, _):
        keeps_the_contract(SshHosts(lines, ["a", "b"], {}), "a", "b", tmp_path)


def test_the_contract_of_workers(tmp_path):
    with kept(tmp_path, "a", "b") as (lines, _):
        hosts = SshHosts(lines, ["a", "b"], {})
        workers_contract.keeps_the_contract(hosts, hosts.workers(simulate_point), tmp_path)
