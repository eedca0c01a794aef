"""What administrators write first and a study can't have: the message says what to write, and that is accepted."""

import re

import pytest

from dbdyno.study.load import load_study
from tests.unit.study.conftest import refusal

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
