"""The contract of a layer, over every layer: what it shows was read back, and lowering puts the host back."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.filesystems.catalogue import KINDS
from dbdyno.servers.installation import find_server
from dbdyno.stack.device import Emulated, Here, Real
from dbdyno.stack.emulated_disk import running_disk
from dbdyno.stack.filesystem import Filesystem
from dbdyno.stack.layer import raised
from dbdyno.stack.memory import Memory
from dbdyno.stack.queue import Queue
from dbdyno.stack.scratch import scratch
from dbdyno.stack.server import Server
from dbdyno.study.schema import FilesystemSection, QueueSection
from tests.support import what_is_left

pytestmark = pytest.mark.host

SIZE = 512 * 1024**2
SCHEDULERS = ["none", "mq-deadline", "kyber", "bfq"]
DRIVES = ["hdd-7200", "hdd-15k", "ssd-sata", "nvme", "ebs-gp2", "raid1(hdd-15k,2)", "ideal"]


@pytest.fixture
def disk(journal):
    with running_disk(journal, model="ideal", size=SIZE) as started:
        yield started


@pytest.fixture
def ground(journal):
    with scratch(journal) as stand:
        yield stand


def emulated(disk, model="ideal", rotational=False):
    return Emulated(disk, model, rotational=rotational, seed=1, restore=False)


def filesystem(kind="ext4", mkfs="", mount="", fresh=True):
    return Filesystem(KINDS[kind], FilesystemSection(mkfs=mkfs, mount=mount), format=fresh)


def sysfs(device, knob):
    return Path(f"/sys/block/{device.name}/queue/{knob}").read_text(encoding="ascii").strip()


def server(tmp_path, **settings):
    return Server(find_server("mariadb"), settings, "innodb", 4, install=True, log=tmp_path / "server.log")


# One stack per layer, that layer on top of what it needs.
STACKS = {
    "device: emulated": lambda disk, _: [emulated(disk)],
    "device: here": lambda _disk, _: [Here()],
    "queue": lambda disk, _: [emulated(disk), Queue("kyber", QueueSection())],
    "filesystem: ext4": lambda disk, _: [emulated(disk), filesystem("ext4")],
    "filesystem: xfs": lambda disk, _: [emulated(disk), filesystem("xfs")],
    "filesystem: btrfs": lambda disk, _: [emulated(disk), filesystem("btrfs")],
    "memory": lambda _disk, _: [Memory(256 * 1024**2)],
    "server": lambda disk, path: [emulated(disk), filesystem(), server(path, innodb_log_file_size="8M")],
}


class BoomError(Exception):
    pass


@pytest.mark.parametrize("name", STACKS)
def test_raised_observed_lowered(name, disk, ground, state, tmp_path):
    before = what_is_left(state)
    with raised(STACKS[name](disk, tmp_path), ground) as stand:
        layer = name.partition(":")[0]
        assert stand.observed[layer], "a layer shows what it read back"
    assert what_is_left(state) == before


@pytest.mark.parametrize("name", STACKS)
def test_lowered_whatever_happened_above(name, disk, ground, state, tmp_path):
    before = what_is_left(state)
    with pytest.raises(BoomError), raised(STACKS[name](disk, tmp_path), ground):
        raise BoomError
    assert what_is_left(state) == before
    with raised(STACKS[name](disk, tmp_path), ground):
        pass  # and it can be raised again


@pytest.mark.parametrize("drive", DRIVES)
def test_every_drive_is_what_the_kernel_is_told(drive, disk, ground, journal):
    rotational = "hdd" in drive
    layers = [emulated(disk, drive, rotational), Queue("none", QueueSection())]
    with raised(layers, ground) as stand:
        assert sysfs(stand.device, "rotational") == str(int(rotational))
        assert sysfs(stand.device, "wbt_lat_usec") == ("75000" if rotational else "2000")
        with layers[0].measuring(journal) as figures:
            subprocess.run(["dd", f"of={stand.device.path}", "if=/dev/zero", "bs=4096", "count=8", "oflag=direct"],
                           check=True, capture_output=True)  # fmt: skip
        assert figures["writes"] >= 1
        assert figures["model"] == drive


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_takes_and_leaves_nothing_behind(scheduler, disk, ground):
    depth = {"none": 64}.get(scheduler, 256)
    with raised([emulated(disk), Queue(scheduler, QueueSection(nr_requests=depth, read_ahead_kb=64))], ground) as stand:
        assert stand.observed["queue"]["scheduler"] == scheduler
        assert sysfs(stand.device, "nr_requests") == str(depth)
    with raised([emulated(disk)], ground) as stand:
        assert "[none]" in sysfs(stand.device, "scheduler"), "a loop device comes up pristine"
        assert sysfs(stand.device, "read_ahead_kb") != "64"


def test_a_queue_setting_that_is_refused_fails_the_trial(disk, ground):
    layers = [emulated(disk), Queue("none", QueueSection(nr_requests=2048))]
    with (
        pytest.raises(TrialError, match=r"write '2048' to /sys/block/loop\d+/queue/nr_requests"),
        raised(layers, ground),
    ):
        pass


@pytest.mark.parametrize(
    ("kind", "mount"),
    [("ext4", "noatime,data=writeback,commit=30"), ("ext4", "nobarrier"), ("xfs", "noatime,logbsize=256k"),
     ("btrfs", "compress=zstd"), ("btrfs", "nobarrier,noatime")],
)  # fmt: skip
def test_mount_options_are_read_back(kind, mount, disk, ground):
    with raised([emulated(disk), filesystem(kind, mount=mount)], ground) as stand:
        observed = stand.observed["filesystem"]
        assert observed["kind"] == kind
        assert observed["barriers"] == ("nobarrier" not in mount)


def test_mkfs_options_reach_mkfs(disk, ground):
    with raised([emulated(disk), filesystem("ext4", mkfs="-L asked-for")], ground) as stand:
        command = ["blkid", "--probe", "--match-tag", "LABEL", "--output", "value", str(stand.device.path)]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == "asked-for"


def test_content_is_the_same_bytes_after_a_restore(disk, ground):
    with raised([emulated(disk), filesystem()], ground) as stand:
        (stand.directory / "file").write_bytes(b"prepared")
    disk.ask("snapshot", name="prepared")
    for _ in range(2):
        restored = Emulated(disk, "ideal", rotational=False, seed=1, restore=True)
        with raised([restored, filesystem(fresh=False)], ground) as stand:
            assert (stand.directory / "file").read_bytes() == b"prepared"
            (stand.directory / "file").write_bytes(b"spoiled by a trial")


def test_memory_bounds_what_the_group_may_hold(ground):
    with raised([Memory(64 * 1024**2)], ground) as stand:
        eat = f"echo $$ > {stand.cgroup}/cgroup.procs && exec head -c 200m /dev/zero | tail -c 200m > /dev/null"
        done = subprocess.run(["sh", "-c", eat], capture_output=True, check=False)
        assert done.returncode != 0, "200 MB fitted into a limit of 64 MiB"


def test_server_runs_as_somebody_else_without_tcp_and_tells_its_version(disk, ground, tmp_path):
    layers = [emulated(disk), filesystem(), server(tmp_path, innodb_buffer_pool_size="32M")]
    with raised(layers, ground) as stand:
        pid = stand.endpoint.pid
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        assert "\nUid:\t0\t" not in status
        assert b"--skip-networking" in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert stand.observed["server"]["version"].startswith("1")
        assert stand.observed["server"]["innodb_buffer_pool_size"] == str(32 * 1024**2)
    assert "mariadbd" in (tmp_path / "server.log").read_text(encoding="utf-8")
    assert not Path(f"/proc/{pid}").exists()


@contextmanager
def lent_loop(file, size=SIZE):
    """A loop device of somebody else's, to stand for a real disk; its backing file is its serial."""
    with file.open("wb") as backing:
        backing.truncate(size)
    command = ["losetup", "--find", "--show", str(file)]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def test_a_real_device_gets_its_queue_settings_back(ground, tmp_path):
    with lent_loop(tmp_path / "disk") as device:
        Path(f"/sys/block/{device.name}/queue/scheduler").write_text("bfq", encoding="ascii")
        Path(f"/sys/block/{device.name}/queue/read_ahead_kb").write_text("512", encoding="ascii")
        before = [sysfs(device, knob) for knob in ("scheduler", "read_ahead_kb", "nr_requests", "rotational")]
        real = Real(device, str(tmp_path / "disk"), frozenset())
        with raised(
            [real, Queue("none", QueueSection(read_ahead_kb=64, nr_requests=32)), filesystem()], ground
        ) as stand:
            assert stand.observed["queue"]["scheduler"] == "none"
            assert stand.observed["device"]["serial"] == str(tmp_path / "disk")
        assert [sysfs(device, k) for k in ("scheduler", "read_ahead_kb", "nr_requests", "rotational")] == before
