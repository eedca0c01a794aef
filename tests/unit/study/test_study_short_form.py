"""A study from a command line: where its fields go, and what is refused."""

import re
import tomllib

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study
from dbdyno.study.new_study import study_text
from tests.unit.study.conftest import refusal

WRITE = {"kind": "slap", "load": "write", "clients": 10, "duration": "5s"}


def written(*fields, **more):
    return tomllib.loads(study_text(fields, WRITE | more))


def test_fields_go_where_a_study_has_them(tmp_path):
    text = study_text(
        [
            "device=hdd-7200,ssd-sata",
            "nr_requests=64",
            "innodb_flush_log_at_trx_commit=1,2",
            "mount=noatime",
            "awake=auto",
        ],
        WRITE,
    )
    file = tmp_path / "study.toml"
    file.write_text(text)
    plan = make_plan(load_study(file))
    assert len(plan.specs) == 4
    read = tomllib.loads(text)
    assert read["stack"] == {"device": ["hdd-7200", "ssd-sata"], "size": "2GiB", "filesystem": "ext4"}
    assert read["queue"] == {"nr_requests": 64}
    assert read["filesystem"] == {"mount": "noatime"}
    assert read["host"] == {"awake": "auto"}
    assert read["server"]["settings"] == {"innodb_flush_log_at_trx_commit": [1, 2]}
    assert read["study"]["title"] == "device: hdd-7200 or ssd-sata; innodb_flush_log_at_trx_commit: 1 or 2"


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        ("device=raid1(hdd-15k, 2),ssd-sata", ["raid1(hdd-15k, 2)", "ssd-sata"]),
        ('device="mine.toml",ssd-sata', ["mine.toml", "ssd-sata"]),
    ],
)
def test_commas_in_brackets_and_quotes_are_a_level_s_own(given, levels):
    assert written(given)["stack"]["device"] == levels


def test_a_folder_of_this_machine_gets_no_filesystem():
    assert written("device=here", "clients=1,8")["stack"] == {"device": "here"}
    assert written("device=here", "clients=1,8")["workload"]["clients"] == [1, 8]


def test_a_hostile_level_stays_a_text():
    level = 'x"\n[design]\nblocks = 1\\'
    text = study_text([f"device={level}", "clients=1,2"], WRITE)
    assert tomllib.loads(text)["design"]["blocks"] == 8


@pytest.mark.parametrize(
    ("fields", "more", "message"),
    [
        (["scheduler"], {}, "'scheduler' is not FIELD=LEVEL"),
        (["device="], {}, "is not FIELD=LEVEL"),
        (["schedular=none,bfq", "device=nvme"], {}, 'Did you mean "scheduler"'),
        (["device=nvme"], {}, "give a field with levels to compare"),
        (["scheduler=none,bfq"], {}, "choose a device"),
        (["device=nvme,hdd-7200", "device=ssd-sata"], {}, "device is given twice"),
        (["device=nvme,hdd-7200"], {"kind": "slop"}, "--kind slop is not a kind of load; there are bonnie, bulk"),
    ],
)
def test_what_is_refused(fields, more, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(").replace("'", "'")):
        study_text(fields, WRITE | more)


# What administrators write first and a study can't have: the message says what to write, and that is accepted.


STUDY = """\
version = 1
[study]
title = "A first try"
[stack]
device = "ssd-sata"
size = "4GiB"
filesystem = "ext4"
server = "mariadb"
[workload]
kind = "oltp"
load = "read_write"
tables = 2
table_size = 50000
clients = 8
duration = "10s"
[design]
blocks = 8
"""


def study(tmp_path, *changes):
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_line_that_runs_a_backup_beside_readers_works_as_it_is_said(tmp_path):
    said = refusal(study(tmp_path, ('kind = "oltp"', 'kind = ["oltp", "dump"]')))
    kind, line = re.fullmatch(r".*in \[workload\] give (kind = \S+) and the line (beside = .*)", said).groups()
    loaded = load_study(study(tmp_path, ('kind = "oltp"', f"{kind}\n{line}")))
    assert [field.levels for field in loaded.factors] == [("none", "dump")]


def test_a_property_that_only_another_zfs_has_is_called_so(tmp_path):
    mkfs = '[filesystem]\nmkfs = "-O recordsize=16k -O sync=disabled"\n[workload]'
    said = refusal(study(tmp_path, ('"ext4"', '"zfs"'), ("[workload]", mkfs)))
    assert (
        "filesystem.mkfs: holds 'sync=disabled', which only the kernel's OpenZFS has; on the host dbdyno runs" in said
    )
    assert 'stack.kernel = "debian-6.1"; commits that are not flushed: innodb_flush_log_at_trx_commit = 0' in said
    instead = "[server.settings]\ninnodb_flush_log_at_trx_commit = [1, 0]\n[workload]"
    mkfs = '[filesystem]\nmkfs = "-O recordsize=16k"\n'
    load_study(study(tmp_path, ('"ext4"', '"zfs"'), ("[workload]", mkfs + instead)))


def test_what_encrypts_needs_no_module_and_no_key_of_the_user_s(tmp_path):
    settings = '[server.settings]\ninnodb_encrypt_tables = [false, true]\nplugin_load_add = "file_key_management"\n'
    said = refusal(study(tmp_path, ("[workload]", f"{settings}[workload]")))
    assert "plugin_load_add: is set by dbdyno: it decides what the server loads. Leave it out: a server that" in said
    load_study(study(tmp_path, ("[workload]", f"{settings.partition('plugin')[0]}[workload]")))


def test_logs_go_to_a_disk_of_their_own_as_it_is_said(tmp_path):
    settings = '[server.settings]\nlog_bin = "/mnt/binlog/mysql-bin"\n[workload]'
    said = refusal(study(tmp_path, ("[workload]", settings)))
    assert '[server.place] binlog = "NAME", and the disk in [stack.disks.NAME] with device, size and filesystem' in said
    place = "[server.settings]\nlog_bin = true\n"
    place += (
        '[server.place]\nbinlog = "log"\n[stack.disks.log]\ndevice = "hdd-7200"\nsize = "1GiB"\nfilesystem = "xfs"\n'
    )
    load_study(study(tmp_path, ("[workload]", f"{place}[workload]")))


def test_a_logical_volume_is_named_as_a_disk_by_its_link(tmp_path):
    said = refusal(study(tmp_path, ('"ssd-sata"', '"lvm:/dev/vg0/lv0"'), ('size = "4GiB"\n', "")))
    link = re.search(r"name it by (/dev/disk/by-id/dm-uuid-LVM-)\.\.\.", said)[1]
    loaded = load_study(study(tmp_path, ('"ssd-sata"', f'"{link}{"a" * 64}"'), ('size = "4GiB"\n', "")))
    ((_, spec),) = loaded.combinations()
    assert spec.stack.kind == "real"


@pytest.mark.parametrize("series", ["percona-8.4", "percona-8.0", "mysql-8.4", "mariadb-10.6"])
def test_a_series_without_a_build_in_any_registry_is_a_server(tmp_path, series):
    loaded = load_study(study(tmp_path, ('"mariadb"', f'["mariadb", "{series}"]')))
    assert loaded.factors[0].levels == ("mariadb", series)


@pytest.mark.parametrize("array", ["raid5(hdd-15k, 4)", "raid6(hdd-15k, 6, 256KiB)", "raid5(ssd-sata, 3)"])
def test_arrays_with_parity_are_drives(tmp_path, array):
    loaded = load_study(study(tmp_path, ('"ssd-sata"', f'["raid10(hdd-15k, 4)", "{array}"]')))
    assert loaded.factors[0].levels == ("raid10(hdd-15k, 4)", array)
