"""``[server.replica]``: what a replica may be, what is refused, and what the data depend on."""

from functools import partial

import pytest

from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import control_of, make_plan
from dbdyno.study.load import load_study
from tests.unit.conftest import changed
from tests.unit.study.conftest import refusal

STUDY = """\
version = 1
[study]
title = "a replica"
[stack]
device = "ssd-sata"
size = "1GiB"
filesystem = "ext4"
[stack.disks.second]
device = "hdd-7200"
size = "512MiB"
filesystem = "xfs"
[server.replica]
mode = ["none", "async", "semisync"]
disk = "second"
[server.replica.settings]
sync_relay_log = 1
[server.settings]
log_bin = true
[workload]
kind = "ledger"
duration = "1s"
"""
CUT = '[workload]\nkind = "ledger"', '[crash]\n{}\n[workload]\nkind = "ledger"'

REFUSED = {
    "a cluster": (
        [('"semisync"]', '"galera"]')],
        '13: server.replica.mode: is "galera", which is a cluster of several nodes; give mode = "galera" in [server.cl',
    ),
    "group replication": (
        [('"semisync"]', '"group"]')],
        '13: server.replica.mode: is "group", which is group replication, which dbdyno does not start; give async',
    ),
    "an unknown mode": (
        [('"semisync"]', '"semi"]')],
        '13: server.replica.mode: is "semi"; allowed are none, async, semisync. Did you mean "semisync"?',
    ),
    "no binary log": (
        [("log_bin = true\n", "")],
        '13: server.replica.mode: is "async", and a replica follows the binary log; give log_bin = true in',
    ),
    "a binary log that is off": ([("log_bin = true", "log_bin = false")], "a replica follows the binary log"),
    "another disk": (
        [('disk = "second"', 'disk = "scnd"')],
        '14: server.replica.disk: is "scnd"; disks are data, second. A further one is a section [stack.disks.NAME]',
    ),
    "a shared disk": (
        [("[server.settings]", '[server.place]\nbinlog = "second"\n[server.settings]')],
        '14: server.replica.disk: is "second", where [server.place] puts what is the source\'s; give the replica a',
    ),
    "a redo log elsewhere": (
        [("[server.settings]", '[server.place]\ninnodb_log = "second"\n[server.settings]')],
        "18: server.place.innodb_log: can't lie on another disk where there is a replica, which begins with a copy",
    ),
    "an id of its own": (
        [("sync_relay_log = 1", "server_id = 7")],
        "16: server.replica.settings.server_id: is set by dbdyno: source and replica need two that differ",
    ),
    "an id of the source's": (
        [("log_bin = true", "log_bin = true\nserver_id = 7")],
        "19: server.settings.server_id: is set by dbdyno: source and replica need two that differ",
    ),
    "a file": (
        [("sync_relay_log = 1", 'relay_log = "/tmp/x"')],
        "16: server.replica.settings.relay_log: is '/tmp/x'; a setting must not name a file",
    ),
    "the variable alone": (
        [("log_bin = true", "log_bin = true\nrpl_semi_sync_master_enabled = true")],
        'Give mode = "semisync" in [server.replica], which brings one, or leave it out',
    ),
    "in a virtual machine": (
        [('size = "1GiB"', 'size = "1GiB"\nkernel = "debian-6.1"')],
        '14: server.replica.mode: is "async", and there can be no replica here: a virtual machine runs one server',
    ),
    "cuts of the power": (
        [(CUT[0], CUT[1].format("cuts = 30"))],
        '13: server.replica.mode: is "async", and [crash] examines the source alone; give crash.mode = "failover"',
    ),
    "a failover without one": (
        [(CUT[0], CUT[1].format('mode = "failover"'))],
        '20: crash.mode: is "failover", and there is no replica to take over; give [server.replica] mode',
    ),
    "survivors of a failover": (
        [('"none", ', ""), (CUT[0], CUT[1].format('mode = "failover"\nsurvivors = ["none"]'))],
        'crash.survivors: has no effect with mode = "failover": no state of a disk is examined. Leave it out',
    ),
}


replica_study = partial(changed, text=STUDY)


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_be_no_replica_is_refused_with_its_line(name, study_file):
    changes, said = REFUSED[name]
    assert said in refusal(study_file(replica_study(*changes)))


def test_each_field_is_a_factor_and_the_disk_is_there_where_the_replica_is(study_file):
    study = load_study(study_file(replica_study(("sync_relay_log = 1", "sync_relay_log = [0, 1]"))))
    specs = {tuple(labels.values()): spec for labels, spec in study.combinations()}
    assert [factor.name for factor in study.factors] == ["mode", "sync_relay_log"]
    assert specs["none", "0"].by_disk == {}
    assert list(specs["async", "0"].by_disk) == ["second"]
    assert not specs["none", "0"].has_replica
    assert specs["semisync", "1"].server.replica.settings == {"sync_relay_log": 1}


def test_data_are_shared_by_all_treatments_that_have_the_same_disks(study_file):
    specs = [spec for _, spec in load_study(study_file(STUDY)).combinations()]
    keys = [image_key(spec, "build", {"log_bin": True}) for spec in specs]
    assert keys[0] != keys[1] == keys[2]


def test_a_named_level_and_a_scale_may_give_it(study_file):
    levels = '[levels.alone]\nmount = "noatime"\n[levels.alone.server.replica]\nmode = "none"\n'
    levels += '[levels.beside]\nmount = "noatime"\n[levels.beside.server.replica]\nmode = "async"\n'
    levels += "[levels.beside.server.replica.settings]\nread_only = true\n"
    text = replica_study(('mode = ["none", "async", "semisync"]\n', ""), ("[workload]", f"{levels}[workload]"))
    text += '[scale.small.server.replica]\ntimeout = "2s"\n'
    specs = {labels["configuration"]: spec for labels, spec in load_study(study_file(text), "small").combinations()}
    assert specs["beside"].server.replica.settings == {"sync_relay_log": 1, "read_only": True}
    assert specs["beside"].server.replica.timeout == 2
    assert specs["alone"].server.replica.mode == "none"


def test_the_control_of_a_failover_is_a_replica_that_falls_behind(study_file):
    text = replica_study(
        ('"none", "async", ', ""),
        ("sync_relay_log = 1", "sync_relay_log = 0"),
        (CUT[0], CUT[1].format('mode = "failover"')),
    )
    plan = make_plan(load_study(study_file(text)), seed=1)
    control = control_of(plan.design.treatments, plan.specs, plan.design.baseline)
    assert control.spec.server.replica.mode == "async"
    assert control.spec.server.replica.round_trip == 0.05
    assert control.treatment.id not in {treatment.id for treatment in plan.design.treatments}
