"""``[hosts.disk.NAME]``: the real disk of each host under test, and every mistake in naming them."""

from functools import partial

import pytest

from dbdyno.errors import UserError
from dbdyno.model.design import Disk, Fleet
from dbdyno.plan.plan import hosts_warnings, make_plan
from dbdyno.run.fleet.request import make_requests
from dbdyno.study.load import load_study

STUDY = """\
version = 1
[study]
title = "real disks"
[hosts]
under_test = ["db1", "db2"]
[hosts.disk.db1]
device = "/dev/nvme0n1"
serial = "S4510"
[hosts.disk.db2]
device = "/dev/disk/by-id/nvme-PM9A3"
[stack]
scheduler = ["none", "bfq"]
filesystem = "ext4"
[workload]
kind = "slap"
duration = "1s"
"""


@pytest.fixture
def loaded(load):
    return partial(load, text=STUDY)


def test_each_host_has_the_study_on_its_own_disk(loaded):
    made = make_plan(loaded(), seed=1)
    assert made.design.fleet == Fleet(
        ["db1", "db2"], {}, {"db1": Disk("/dev/nvme0n1", "S4510"), "db2": Disk("/dev/disk/by-id/nvme-PM9A3")}
    )
    request = make_requests(made, "run", frozenset(), fresh_images=False)
    of_hosts = {host: request("run", host).plan(made.study.path) for host in ("db1", "db2")}
    disks = {
        host: {(one.stack.kind, one.stack.device, one.stack.serial) for one in its.specs.values()}
        for host, its in of_hosts.items()
    }
    assert disks == {
        "db1": {("real", "/dev/nvme0n1", "S4510")},
        "db2": {("real", "/dev/disk/by-id/nvme-PM9A3", None)},
    }
    assert {one.stack.kind for one in made.specs.values()} == {"real"}


def test_the_disks_are_part_of_what_is_measured(loaded):
    made = make_plan(loaded(), seed=1)
    other = make_plan(loaded(("S4510", "S4511")), seed=1)
    assert made.study_sha256() != other.study_sha256()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('serial = "S4510"\n', "", r":7: hosts.disk.db1.device: is .*another disk tomorrow.*give its serial beside it"),
        ('"/dev/nvme0n1"', '"hdd-7200"', r":7: hosts.disk.db1.device: is .* which is not a whole path of a disk"),
        ('"/dev/nvme0n1"', '"/srv/mine.toml"', r":7: hosts.disk.db1.device: is .* which is not a whole path of a disk"),
        ("serial =", "serail =", r':8: hosts.disk.db1.serail: is unknown here; .*Did you mean "serial"'),
        ("[hosts.disk.db2]", "[hosts.disk.db3]", r":9: hosts.disk.db3: is not under test; those are db1, db2"),
        ("[hosts.disk.db2]", "[hosts.disk.db3]", r":6: hosts.disk: names no disk for db2"),
        ("[stack]", '[stack]\ndevice = "/dev/sdb"', r":12: stack.device: can't be given with \[hosts.disk\]"),
        ("[stack]", '[stack]\nserial = "S"', r":12: stack.serial: can't be given with \[hosts.disk\]"),
        ('"ext4"', '"tmpfs"', r":13: stack.filesystem: is \"tmpfs\", which stands on no disk"),
    ],
)
def test_a_mistake_is_named_with_its_line(loaded, old, new, said):
    with pytest.raises(UserError, match=said):
        loaded((old, new))


def test_named_levels_give_no_disk(loaded):
    levels = '[levels.a]\nserial = "S"\n[levels.b]\nscheduler = "none"\n[workload]'
    with pytest.raises(UserError, match=r":15: levels.a.serial: can't be given where \[hosts.disk\]"):
        loaded(('["none", "bfq"]', '"none"'), ("[workload]", levels))


def test_one_disk_for_several_hosts_is_refused(write_study):
    begin, _, end = STUDY.partition("[hosts.disk.db1]")
    stack = '[stack]\ndevice = "/dev/disk/by-id/x"\n' + end.partition("[stack]\n")[2]
    with pytest.raises(UserError, match=r":7: stack.device: is the disk of one host, and 2 are under test"):
        load_study(write_study(text=begin + stack))
    assert load_study(write_study(text=begin.replace(', "db2"', "") + stack)).fleet.under_test == ["db1"]


def test_what_only_dbdyno_calls_a_disk_is_none_of_a_study(write_study):
    begin, _, end = STUDY.partition("[hosts]")
    text = begin + '[stack]\ndevice = "the disk of each host"\n' + end.partition("[stack]\n")[2]
    with pytest.raises(UserError, match="name a disk by its absolute path"):
        load_study(write_study(text=text))


def test_disks_that_may_be_one_are_warned_of(loaded):
    design = make_plan(loaded(("/dev/disk/by-id/nvme-PM9A3", '/dev/sdb"\nserial = "S4510')), seed=1).design
    (warning,) = [one for one in hosts_warnings(design) if "same disk" in one]
    assert warning == "db1 and db2 name the same disk, S4510; if it is one that both of them see, both erase it"
    assert not [one for one in hosts_warnings(make_plan(loaded(), seed=1).design) if "same disk" in one]
