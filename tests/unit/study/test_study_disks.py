"""``[stack.disks]`` and ``[server.place]``: what may lie where, what is refused, and what the data depend on."""

from functools import partial

import pytest

from dbdyno.plan.identity import image_key
from dbdyno.study.load import load_study
from tests.unit.study.conftest import refusal

STUDY = """\
version = 1
[study]
title = "a log of its own"
[stack]
device = "hdd-7200"
size = "1GiB"
filesystem = "ext4"
[stack.disks.log]
device = ["ssd-sata", "nvme"]
size = "512MiB"
filesystem = "ext4"
[server.place]
innodb_log = ["data", "log"]
binlog = "log"
[server.settings]
log_bin = true
[workload]
kind = "slap"
load = "write"
duration = "1s"
"""
REAL = 'device = "/dev/disk/by-id/{}"\n'
CUT = ('kind = "slap"\nload = "write"', 'kind = "ledger"')

REFUSED = {
    "another name": (
        [('"data", "log"', '"data", "lgo"')],
        (
            '13: server.place.innodb_log: is "lgo"; disks are data, log. A further one is a section '
            '[stack.disks.NAME]. Did you mean "log"?'
        ),
    ),
    "nothing on it": (
        [('innodb_log = ["data", "log"]\nbinlog = "log"', 'innodb_log = "data"')],
        '8: stack.disks.log: is a disk on which nothing lies; give [server.place], such as innodb_log = "log"',
    ),
    "no size": ([('size = "512MiB"\n', "")], "8: stack.disks.log.size: is missing; an emulated disk needs one"),
    "no filesystem": (
        [('MiB"\nfilesystem = "ext4"', 'MiB"')],
        "8: stack.disks.log.filesystem: is missing; allowed are ext2, ext3, ext4, xfs, btrfs",
    ),
    "an unknown drive": ([('"nvme"', '"ssd-stat"')], '9: stack.disks.log.device: is "ssd-stat"; known are'),
    "a pool": (
        [('MiB"\nfilesystem = "ext4"', 'MiB"\nfilesystem = "zfs"')],
        '11: stack.disks.log.filesystem: is "zfs", which is for the disk of the data alone; give one such as "ext4"',
    ),
    "memory": (
        [('MiB"\nfilesystem = "ext4"', 'MiB"\nfilesystem = "tmpfs"')],
        '11: stack.disks.log.filesystem: is "tmpfs", which is for the disk of the data alone; give one such as "ext4"',
    ),
    "a disk of a level alone": (
        [("[workload]", '[levels.a.stack.disks.lgo]\ndevice = "nvme"\n[levels.b.server]\nnice = 1\n[workload]')],
        "17: levels.a.stack.disks.lgo: is a disk on which nothing lies; give [server.place], such as",
    ),
    "a place where no disk can be": (
        [
            ('device = "hdd-7200"\nsize = "1GiB"\nfilesystem = "ext4"\n', 'server = "mysql://me@h/bench"\n'),
            ('[stack.disks.log]\ndevice = ["ssd-sata", "nvme"]\nsize = "512MiB"\nfilesystem = "ext4"\n', ""),
        ],
        (
            '7: server.place.innodb_log: is "log", and there is no such disk here: an external server has its files '
            "where it was told to. Leave it out"
        ),
    ),
    "real disks of several hosts": (
        [
            ("[stack]", '[hosts]\nunder_test = ["a"]\n[hosts.disk.a]\ndevice = "/dev/disk/by-id/x"\n[stack]'),
            ('device = "hdd-7200"\nsize = "1GiB"\n', ""),
        ],
        "stack.disks: can't be given with [hosts] on real disks; leave it out, or have the data on an emulated drive",
    ),
    "options of mount": (
        [('MiB"\nfilesystem = "ext4"', 'MiB"\nfilesystem = "ext4"\nmount = "loop"')],
        "12: stack.disks.log.mount: ",
    ),
    "an unknown field": (
        [('"512MiB"', '"512MiB"\nspeed = 1')],
        "11: stack.disks.log.speed: is unknown here; known are",
    ),
    "a reserved name": ([("disks.log", "disks.data")], "8: stack.disks.data: "),
    "a folder": (
        [('device = "hdd-7200"\nsize = "1GiB"\nfilesystem = "ext4"', 'device = "here"')],
        (
            "stack.disks: can't be given here: the data lie in a folder of this host; name an emulated or a real disk "
            "in stack.device. Leave it out"
        ),
    ),
    "more than a controller has ports for": (
        [("[stack]\n", '[stack]\nkernel = "debian-6.1"\nbus = "ahci"\ndevices = 6\narray = "raid0"\n')],
        "7: stack.devices: is 6, with those of stack.disks 7; an AHCI controller has 6 ports. Give another stack.bus",
    ),
    "a real disk of a virtual machine": (
        [("[stack]\n", '[stack]\nkernel = "debian-6.1"\n'), ('device = ["ssd-sata", "nvme"]\n', REAL.format("x"))],
        '10: stack.disks.log.device: is "/dev/disk/by-id/x"; a virtual machine has an emulated drive, such as',
    ),
    "the disk of a cache": (
        [("disks.log", "disks.cache"), ('["data", "log"]\nbinlog = "log"', '"data"')],
        (
            "8: stack.disks.cache: is a disk on which nothing lies; give [server.place], such as innodb_log = "
            '"cache", or stack.cache = "writecache"'
        ),
    ),
    "a real disk beside an emulated one": (
        [('device = ["ssd-sata", "nvme"]\n', REAL.format("x"))],
        (
            '9: stack.disks.log.device: is "/dev/disk/by-id/x", and the data lie on "hdd-7200"; give both of one kind: '
            "emulated drives, or real disks"
        ),
    ),
    "the data's own disk": (
        [
            ('device = "hdd-7200"\nsize = "1GiB"\n', REAL.format("x")),
            ('device = ["ssd-sata", "nvme"]\nsize = "512MiB"\n', REAL.format("x")),
        ],
        '8: stack.disks.log.device: is "/dev/disk/by-id/x", the disk data; name another',
    ),
    "a real disk of an unsure name": (
        [
            ('device = "hdd-7200"\nsize = "1GiB"\n', REAL.format("x")),
            ('device = ["ssd-sata", "nvme"]\nsize = "512MiB"\n', 'device = "/dev/sdb"\n'),
        ],
        (
            '8: stack.disks.log.device: is "/dev/sdb", a name that may be another disk tomorrow: name it by '
            "/dev/disk/by-id/..., or give its serial in stack.disks.log.serial"
        ),
    ),
    "the server's own variable": (
        [("log_bin = true", 'innodb_log_group_home_dir = "/mnt/redo"')],
        (
            "16: server.settings.innodb_log_group_home_dir: is set by dbdyno: it decides where files lie. For a disk "
            'of its own give [server.place] innodb_log = "NAME", and the disk in [stack.disks.NAME] with device, '
            "size and filesystem"
        ),
    ),
    "a path of the binary log": (
        [("log_bin = true", 'log_bin = "/mnt/binlog/mysql-bin"')],
        (
            "16: server.settings.log_bin: may be true or false; the place of its files is set by dbdyno: it decides "
            'where files lie. For a disk of its own give [server.place] binlog = "NAME", and the disk in '
            "[stack.disks.NAME] with device, size and filesystem"
        ),
    ),
    "prices": (
        [("[workload]", '[cost]\ncurrency = "EUR"\n[cost."nvme"]\nsource = "a shop"\nprice = 60\n[workload]')],
        "cost: counts the disk of the data alone; leave it out, or [stack.disks]",
    ),
    "kept states": (
        [CUT, ("[workload]", '[crash]\nkeep = "all"\n[workload]')],
        '18: crash.keep: is "all"; of several disks no state is kept. Leave it out',
    ),
}


@pytest.fixture
def write(write_study):
    return partial(write_study, text=STUDY)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_line_field_and_remedy(case, write):
    changes, said = REFUSED[case]
    path = write(*changes)
    lines = refusal(path).splitlines()
    assert any(said in line and line.startswith(f"{path}:") for line in lines), lines


def test_places_and_devices_of_disks_are_factors_and_disks_of_no_use_are_left_out(write):
    study = load_study(write(('binlog = "log"\n', "")))
    assert {factor.name: factor.labels() for factor in study.factors} == {
        "device": ["ssd-sata", "nvme"],
        "innodb_log": ["data", "log"],
    }
    specs = {tuple(labels.values()): spec for labels, spec in study.combinations()}
    assert specs["nvme", "data"].by_disk == {}
    (on_log,) = specs["nvme", "log"].by_disk.values()
    assert (on_log.stack.device, on_log.stack.filesystem, on_log.stack.disks) == ("nvme", "ext4", {})
    assert specs["nvme", "log"].stack.device == "hdd-7200"


def test_a_virtual_machine_has_them_too_and_says_what_is_wrong_with_it_once(write):
    booted = ("[stack]\n", '[stack]\nkernel = "debian-6.1"\nbus = "nvme"\n')
    for _, spec in load_study(write(booted)).combinations():
        (log,) = spec.by_disk.values()
        assert (log.stack.kind, log.stack.bus, log.stack.devices) == ("booted", "nvme", 1)
    said = refusal(write((booted[0], booted[1].replace("6.1", "6.2"))))
    assert said.count("debian-6.2") == 1
    assert "stack.disks" not in said


def test_data_depend_on_places_and_disks_but_not_on_their_drives(write):
    keys = {}
    for labels, spec in load_study(write()).combinations():
        keys[tuple(labels.values())] = image_key(spec, "server", {})
    assert keys["nvme", "log"] == keys["ssd-sata", "log"] != keys["nvme", "data"]
    larger = next(iter(load_study(write(('"512MiB"', '"1GiB"'))).combinations()))[1]
    assert image_key(larger, "server", {}) not in keys.values()


def test_named_levels_and_scales_give_disks_and_places(write):
    levels = '[levels.near.server.place]\ntmpdir = "data"\n[levels.far]\nmount = "noatime"\n'
    levels += '[levels.far.server.place]\ntmpdir = "log"\n[levels.far.stack.disks.log]\nmount = "noatime"\n'
    study = load_study(write(("[workload]", f'{levels}[scale.small.stack.disks.log]\nsize = "256MiB"\n[workload]')))
    specs = {labels["configuration"]: spec for labels, spec in study.combinations()}
    assert specs["near"].places.keys() < specs["far"].places.keys()
    assert specs["far"].by_disk["log"].filesystem.mount == "noatime"
    small = load_study(study.path, "small")
    assert {spec.by_disk["log"].stack.size for _, spec in small.combinations()} == {256 * 1024**2}
