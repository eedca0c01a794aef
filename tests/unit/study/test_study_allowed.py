"""What a study may not pass on: anything that reaches beyond the device it names."""

import pytest

from dbdyno.study.allowed import mkfs_mistake, mount_mistake, setting_mistake


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ext4", ""),
        ("ext4", "-b 1024 -O ^has_journal -L name"),
        ("ext4", "-E stride=16,stripe_width=64"),
        ("ext4", "-J size=64"),
        ("xfs", "-d su=64k,sw=2 -l size=64m -K"),
        ("btrfs", "-d single -m dup --csum xxhash"),
        ("btrfs", "--csum=crc32c -K"),
        ("ext2", "-b 4096"),
        ("ext3", "-J size=16"),
        ("zfs", "-o ashift=9 -O recordsize=16k -Ocompression=gzip-1"),
        ("tmpfs", ""),
    ],
)
def test_how_a_filesystem_is_made_may_be_said(kind, text):
    assert mkfs_mistake(kind, text) is None


@pytest.mark.parametrize(
    ("kind", "text", "word"),
    [
        ("btrfs", "/dev/sdb", "belongs to no option"),
        ("btrfs", "sdb", "belongs to no option"),
        ("btrfs", "-K sdb", "belongs to no option"),
        ("btrfs", "-d single sdb", "belongs to no option"),
        ("btrfs", "-r folder", "holds '-r'"),
        ("xfs", "-l logdev=/dev/sdb,size=64m", "may name another device"),
        ("xfs", "-l logdev=sdb", "may name another device"),
        ("xfs", "-d file,name=x", "may name another device"),
        ("xfs", "-r rtdev=sdb", "may name another device"),
        ("xfs", "-p protofile", "holds '-p'"),
        ("ext4", "-J device=UUID=ab", "may name another device"),
        ("ext4", "-J device=LABEL=ab", "may name another device"),
        ("ext4", "-z undo", "holds '-z'"),
        ("ext4", "-z/undo", "holds '-z'"),
        ("ext4", "-d folder", "holds '-d'"),
        ("ext4", "-U clear", "holds '-U'"),
        ("ext4", "-b", "no value"),
        ("ext4", "-b -L", "no value"),
        ("ext4", "--help", "holds '--help'"),
        ("ext2", "-J device=/dev/sdb", "may name another device"),
        ("zfs", "-O mountpoint=x", "holds 'mountpoint=x'"),
        ("zfs", "-O sharenfs=on", "holds 'sharenfs=on'"),
        ("zfs", "-o altroot=x", "holds 'altroot=x'"),
        ("zfs", "-O recordsize", "holds 'recordsize'"),
        ("zfs", "-R folder", "holds '-R'"),
        ("zfs", "mirror", "belongs to no option"),
        ("tmpfs", "-x", "may give none"),
    ],
)
def test_which_device_is_touched_may_not(kind, text, word):
    assert word in mkfs_mistake(kind, text)


@pytest.mark.parametrize(
    "text", ["", "noatime,data=writeback", "compress=zstd:3", "logbsize=256k,noatime", "nobarrier"]
)
def test_how_a_filesystem_is_mounted_may_be_said(text):
    assert mount_mistake("ext4", text) is None


def test_zfs_takes_no_mount_options():
    assert "filesystem.mkfs" in mount_mistake("zfs", "noatime")
    assert mount_mistake("zfs", "defaults") is None


@pytest.mark.parametrize(
    "text", ["logdev=/dev/sdb", "device=/dev/sdb", "logdev=sdb", "bind", "remount", "loop", "ro", "a b"]
)
def test_what_is_mounted_may_not(text):
    assert mount_mistake("ext4", f"noatime,{text}") is not None


@pytest.mark.parametrize(
    ("kind", "text"), [("btrfs", "subvol=x"), ("tmpfs", "size=1g"), ("tmpfs", "mode=777"), ("ext4", "bind")]
)
def test_nor_what_is_dbdyno_s_to_say_of_one_filesystem(kind, text):
    assert "dbdyno's to say" in mount_mistake(kind, text)


@pytest.mark.parametrize(
    ("name", "value"),
    [("innodb_buffer_pool_size", "256M"), ("sql_mode", "ANSI,TRADITIONAL"), ("port", 3307), ("log_bin", True),
     ("innodb_io_capacity", 200), ("character_set_server", "utf8mb4"), ("innodb_data_file_path", "x")],
)  # fmt: skip
def test_how_a_server_behaves_may_be_said(name, value):
    refused = setting_mistake(name, value)
    assert (refused is None) == (name != "innodb_data_file_path")


@pytest.mark.parametrize(
    "name",
    ["datadir", "basedir", "socket", "pid_file", "log_error", "user", "init_file", "plugin_load_add", "plugin_dir",
     "general_log_file", "innodb_data_home_dir", "innodb_log_group_home_dir", "bind_address", "tmpdir",
     "skip_grant_tables", "mysqlx", "mysqlx_port", "admin_address", "secure_file_priv",
     "loose_datadir", "defaults_extra_file", "lc_messages_dir", "slow_query_log_file"],
)  # fmt: skip
def test_which_files_it_touches_and_who_reaches_it_may_not(name):
    assert "dbdyno's to say" in setting_mistake(name, "x")


def test_a_path_in_any_setting_is_refused():
    assert "must not name a file" in setting_mistake("log_bin", "/var/lib/mysql/bin")
