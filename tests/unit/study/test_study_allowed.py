"""What a study may not pass on: anything that reaches beyond the device it names."""

import pytest

from dbdyno.filesystems import KINDS
from dbdyno.mysql.settings import setting_mistake
from dbdyno.study.rules import mkfs_mistake, mount_mistake


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
        ("xfs", "-l logdev=/dev/sdb,size=64m", "holds 'logdev=/dev/sdb'; -l may give agnum=#, "),
        ("xfs", "-l logdev=sdb", "holds 'logdev=sdb'"),
        ("xfs", "-l file,name=x", "holds 'file'"),
        ("xfs", "-l size=64m,file=1", "holds 'file=1'"),
        ("xfs", "-l internal=0", "holds 'internal=0'"),
        ("xfs", "-l log", "holds 'log'"),
        ("xfs", "-d file,name=x", "holds 'file'"),
        ("xfs", "-d name=x", "holds 'name=x'"),
        ("xfs", "-r rtdev=sdb", "holds 'rtdev=sdb'"),
        ("xfs", "-m uuid=ab", "holds 'uuid=ab'"),
        ("xfs", "-b size=file", "holds 'size=file'"),
        ("xfs", "-p protofile", "holds '-p'"),
        ("ext4", "-J device=UUID=ab", "holds 'device=UUID=ab'"),
        ("ext4", "-J size=16,device=LABEL=ab", "holds 'device=LABEL=ab'"),
        ("ext4", "-J location=5", "holds 'location=5'"),
        ("ext4", "-E offset=1048576", "holds 'offset=1048576'; -E may give desc_size=#, "),
        ("ext4", "-Eoffset=4096", "holds 'offset=4096'"),
        ("ext4", "-E stride=16,root_owner=0:0", "holds 'root_owner=0:0'"),
        ("ext4", "-l file", "holds '-l'"),
        ("ext4", "-T news", "holds '-T'"),
        ("ext4", "-b ../x", "holds '../x', which is not a value of -b"),
        ("ext4", "-L a/b", "holds 'a/b'"),
        ("ext4", "-z undo", "holds '-z'"),
        ("ext4", "-z/undo", "holds '-z'"),
        ("ext4", "-d folder", "holds '-d'"),
        ("ext4", "-U clear", "holds '-U'"),
        ("ext4", "-b", "no value"),
        ("ext4", "-b -L", "no value"),
        ("ext4", "--help", "holds '--help'"),
        ("ext2", "-J device=/dev/sdb", "holds 'device=/dev/sdb'"),
        ("btrfs", "--rootdir=x", "holds '--rootdir'"),
        ("btrfs", "-d /dev/sdb", "holds '/dev/sdb'"),
        ("btrfs", "-n file", "holds 'file'"),
        ("zfs", "-O compression=a/b", "holds 'compression=a/b'"),
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
    ("kind", "text"),
    [
        ("ext4", ""),
        ("ext4", "defaults,noatime,data=writeback,nobarrier,commit=30,errors=remount-ro"),
        ("ext2", "noatime"),
        ("ext3", "data=journal"),
        ("xfs", "logbsize=256k,noatime,inode64,nobarrier"),
        ("btrfs", "compress=zstd:3,compress-force,ssd,space_cache=v2,nodatacow,discard=async"),
        ("tmpfs", "noatime,huge=within_size"),
    ],
)
def test_how_a_filesystem_is_mounted_may_be_said(kind, text):
    assert mount_mistake(kind, text) is None


def test_zfs_takes_no_mount_options():
    assert "filesystem.mkfs" in mount_mistake("zfs", "noatime")
    assert mount_mistake("zfs", "defaults") is None


STEERS_MOUNT = [
    "X-mount.mkdir", "X-mount.subdir=x", "x-gvfs-show", "x-systemd.automount", "helper=x", "uhelper=x", "offset=4096",
    "sizelimit=4096", "loop", "loop=/dev/loop1", "context=x", "fscontext=x", "defcontext=x", "rootcontext=x", "bind",
    "rbind", "move", "remount", "ro", "user", "users", "owner", "group", "_netdev", "comment=x", "nofail", "uid=1",
    "gid=1", "mode=777", "encryption=x", "lazytime=1", "a b", "verity.hashdevice=x",
]  # fmt: skip


@pytest.mark.parametrize("text", STEERS_MOUNT)
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs"])
def test_what_steers_mount_itself_may_not(kind, text):
    assert f"holds {text!r}; for {kind} a study may give " in mount_mistake(kind, f"noatime,{text}")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ext4", "journal_dev=0x801"),
        ("ext4", "journal_path=/dev/sdb"),
        ("ext4", "usrjquota=x"),
        ("ext4", "errors=panic"),
        ("ext4", "sb=32768"),
        ("ext4", "commit=/x"),
        ("ext4", "compress=zstd"),
        ("xfs", "logdev=/dev/sdb"),
        ("xfs", "logdev=sdb"),
        ("xfs", "rtdev=sdb"),
        ("xfs", "logbsize=x"),
        ("btrfs", "device=/dev/sdb"),
        ("btrfs", "device=sdb"),
        ("btrfs", "subvol=x"),
        ("btrfs", "subvolid=5"),
        ("btrfs", "fatal_errors=panic"),
        ("btrfs", "compress=other"),
        ("tmpfs", "size=1g"),
        ("tmpfs", "mpol=bind:0"),
    ],
)
def test_nor_another_device_a_place_an_owner_or_what_stops_the_host(kind, text):
    assert f"holds {text!r}" in mount_mistake(kind, text)


def test_a_typo_in_a_mount_option_is_answered_with_the_nearest():
    assert mount_mistake("ext4", "notime").endswith('Did you mean "noatime"?')


def test_several_extended_options_are_put_together_however_they_are_written():
    made = KINDS["ext4"].making("-E stride=16 -b 4096 -Estripe_width=64", None)
    assert made == [
        *("mkfs.ext4", "-q", "-F", "-b", "4096"),
        *("-E", "lazy_itable_init=0,lazy_journal_init=0,stride=16,stripe_width=64"),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("innodb_buffer_pool_size", "256M"), ("sql_mode", "ANSI,TRADITIONAL"), ("port", 3307), ("log_bin", True),
     ("innodb_io_capacity", 200), ("character_set_server", "utf8mb4"), ("innodb_adaptive_hash_index", False)],
)  # fmt: skip
def test_how_a_server_behaves_may_be_said(name, value):
    assert setting_mistake(name, value) is None


@pytest.mark.parametrize(
    "name",
    ["datadir", "basedir", "socket", "pid_file", "log_error", "user", "plugin_load_add", "bind_address", "tmpdir",
     "skip_grant_tables", "mysqlx", "mysqlx_port", "admin_address", "secure_file_priv", "loose_datadir",
     "defaults_extra_file", "extra_port", "core_file", "symbolic_links", "feedback"],
)  # fmt: skip
def test_which_files_it_touches_and_who_reaches_it_may_not(name):
    assert "is set by dbdyno" in setting_mistake(name, "x")


def test_a_path_in_any_setting_is_refused():
    assert "must not name a file" in setting_mistake("sql_mode", "/var/lib/mysql/bin")
    assert "true or false" in setting_mistake("log_bin", "elsewhere")


@pytest.mark.parametrize("name", ["rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"])
def test_commits_that_wait_for_a_replica_need_one(name):
    for value in (True, 1, "ON"):
        assert 'mode = "semisync" in [server.replica]' in setting_mistake(name, value)
        assert setting_mistake(name, value, may_have_replica=True) is None
    assert setting_mistake(name, value=False) is None
