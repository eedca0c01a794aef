"""``[server.cluster]``: what a cluster may be, what is refused, and what takes its place as the control."""

from functools import partial

import pytest

from dbdyno.mysql.settings import CLUSTER_SETTINGS
from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import control_of, make_plan
from dbdyno.study.load import load_study
from tests.unit.conftest import changed
from tests.unit.study.conftest import refusal

STUDY = """\
version = 1
[study]
title = "a cluster"
[stack]
device = "ssd-sata"
size = "1GiB"
filesystem = "ext4"
[stack.disks.second]
device = "hdd-7200"
size = "512MiB"
filesystem = "xfs"
[stack.disks.third]
device = "ssd-sata"
size = "512MiB"
filesystem = "xfs"
[server.cluster]
mode = "galera"
disks = "second,third"
gcs_fc_limit = 16
[server.settings]
wsrep_slave_threads = 1
[workload]
kind = "ledger"
duration = "1s"
"""
CRASH = '[workload]\nkind = "ledger"', '[crash]\n{}\n[workload]\nkind = "ledger"'
SIZE = 'size = "1GiB"'
DISKS = STUDY[STUDY.index("[stack.disks.second]") : STUDY.index("[server.cluster]")]
CLUSTER = STUDY[STUDY.index("[server.cluster]") : STUDY.index("[server.settings]")]


def with_crash(fields):
    return CRASH[0], CRASH[1].format(fields)


REFUSED = {
    "another engine": (
        [(SIZE, f'{SIZE}\nengine = "aria"')],
        '18: server.cluster.mode: is "galera", which replicates innodb alone, not aria; give stack.engine = "innodb"',
    ),
    "MySQL": (
        [(SIZE, f'{SIZE}\nserver = "mysql-9"')],
        '18: server.cluster.mode: is "galera", which MariaDB alone has here; give stack.server = "mariadb", or leave',
    ),
    "a load without a server": (
        [('kind = "ledger"', 'kind = "fio"\nprofile = "RND4K Q1T1"\nload = "read"\nsize = "64MiB"')],
        '17: server.cluster.mode: is "galera", and a load of kind "fio" has no server; leave [server.cluster] out',
    ),
    "an unknown mode": (
        [('mode = "galera"', 'mode = "galara"')],
        '17: server.cluster.mode: is "galara"; allowed are none, galera. Did you mean "galera"?',
    ),
    "in a virtual machine": (
        [(SIZE, f'{SIZE}\nkernel = "debian-6.1"')],
        "and there can be no cluster here: a virtual machine runs one server. Leave [server.cluster] out, or stack.ker",
    ),
    "beside an external server": (
        [('device = "ssd-sata"\nsize = "1GiB"\nfilesystem = "ext4"', 'server = "mysql://bench@db1/bench"')],
        "there can be no cluster here: what it has stays as it is, and dbdyno starts none. Leave [server.cluster] out",
    ),
    "a replica as well": (
        [("[server.settings]", '[server.replica]\nmode = "async"\n[server.settings]\nlog_bin = true')],
        'and there is a replica ([server.replica] mode is "async"); give one of them',
    ),
    "too few disks": (
        [('"second,third"', '"second,"')],
        '18: server.cluster.disks: is "second,", which names no disk between two commas; give "data", or a disk for',
    ),
    "a disk twice": (
        [('"second,third"', '"second,second"')],
        '18: server.cluster.disks: is "second,second", which names "second" twice; each node',
    ),
    "a disk for one of two": (
        [('"second,third"', '"second"')],
        '18: server.cluster.disks: is "second", and 2 nodes need one beside the first; give so many, separated by',
    ),
    "an unknown disk": (
        [('"second,third"', '"second,thrd"')],
        '18: server.cluster.disks: is "thrd"; disks are data, second, third. A further one is a section',
    ),
    "a shared disk": (
        [("[server.settings]", '[server.place]\ntmpdir = "third"\n[server.settings]')],
        '18: server.cluster.disks: is "third", where [server.place] puts what is the first node\'s; give each other a',
    ),
    "a redo log elsewhere": (
        [("[server.settings]", '[server.place]\ninnodb_log = "second"\n[server.settings]')],
        "21: server.place.innodb_log: can't lie on another disk where there is a cluster, which begins with a copy",
    ),
    "statements in the log": (
        [("[server.settings]", '[server.settings]\nbinlog_format = "MIXED"')],
        '21: server.settings.binlog_format: is "MIXED", and a cluster needs ROW, which dbdyno sets; leave it out',
    ),
    "who reaches a node": (
        [("wsrep_slave_threads = 1", 'wsrep_cluster_address = "gcomm://"')],
        "21: server.settings.wsrep_cluster_address: is set by dbdyno: it decides who may reach the server",
    ),
    "settings of a node alone": (
        [(DISKS + CLUSTER, "")],
        "9: server.settings.wsrep_slave_threads: has no effect without a cluster; give mode",
    ),
    "more of them than all": (
        [("gcs_fc_limit = 16", "evs_send_window = 4\nevs_user_send_window = 8")],
        "20: server.cluster.evs_user_send_window: is 8, more than evs_send_window (4)",
    ),
    "too far apart": ([("gcs_fc_limit = 16", 'round_trip = "2s"')], "19: server.cluster.round_trip: "),
    "cuts of the power": (
        [with_crash("cuts = 30")],
        'is "galera", and [crash] examines the first node alone; give crash.mode = "failover"',
    ),
    "a failover of two": (
        [("gcs_fc_limit = 16", "nodes = 2"), with_crash('mode = "failover"')],
        "19: server.cluster.nodes: is 2, and once the first is lost no majority is left to take over; give 3",
    ),
}

cluster_study = partial(changed, text=STUDY)


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_be_no_cluster_is_refused_with_its_line(name, study_file):
    changes, said = REFUSED[name]
    assert said in refusal(study_file(cluster_study(*changes)))


def test_an_external_server_may_be_a_node_of_a_cluster_of_your_own(study_file):
    where = 'device = "ssd-sata"\nsize = "1GiB"\nfilesystem = "ext4"', 'server = "mysql://bench@db1/bench"'
    load = '[workload]\nkind = "ledger"', '[workload]\nkind = "slap"'
    ((_, spec),) = load_study(study_file(cluster_study((DISKS + CLUSTER, ""), where, load))).combinations()
    assert spec.server.settings.keys() <= CLUSTER_SETTINGS


def test_each_field_is_a_factor_and_a_node_has_the_disk_at_its_place(study_file):
    factors = ("gcs_fc_limit = 16", "gcs_fc_limit = [16, 100]\nnodes = [1, 2, 3]")
    study = load_study(study_file(cluster_study(factors)))
    specs = {tuple(labels.values()): spec for labels, spec in study.combinations()}
    assert [factor.name for factor in study.factors] == ["gcs_fc_limit", "nodes"]
    assert [list(specs["16", nodes].by_disk) for nodes in "123"] == [[], ["second"], ["second", "third"]]
    assert specs["100", "3"].server.cluster.options == {"gcs.fc_limit": 100}
    assert specs["16", "3"].server.cluster.own_disks == ("second", "third")


def test_settings_of_nodes_may_stand_beside_a_treatment_that_has_none(study_file):
    study = load_study(study_file(cluster_study(('mode = "galera"', 'mode = ["none", "galera"]'))))
    assert [spec.has_cluster for _, spec in study.combinations()] == [False, True]


def test_all_may_share_the_disk_of_the_data(study_file):
    study = load_study(study_file(cluster_study((DISKS, ""), ('disks = "second,third"\n', ""))))
    ((_, spec),) = study.combinations()
    assert (spec.server.cluster.own_disks, spec.by_disk) == (("", ""), {})


def test_data_are_shared_by_treatments_that_differ_in_settings_of_nodes(study_file):
    study = load_study(study_file(cluster_study(("wsrep_slave_threads = 1", "wsrep_slave_threads = [1, 4]"))))
    first, other = (image_key(spec, "build", {}) for _, spec in study.combinations())
    assert first == other


def test_the_control_of_a_failover_is_an_asynchronous_replica_in_its_place(study_file):
    crash = with_crash('mode = "failover"')
    plan = make_plan(load_study(study_file(cluster_study(crash))), seed=1)
    server = control_of(plan.design.treatments, plan.specs, plan.design.baseline).spec.server
    assert (server.cluster.mode, server.replica.mode, server.replica.disk) == ("none", "async", "second")
    assert server.replica.round_trip == 0.05
    assert server.settings == {"log_bin": True}
