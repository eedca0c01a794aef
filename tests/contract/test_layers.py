"""The contract of a layer, over every layer: what it shows was read back, and lowering puts the host back."""

import os
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno._native import device_models
from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems import KINDS
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack.erase import Erasing
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import Emulated, Here, Real
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.host_settings import HostSettings
from dbdyno.stack.layers.memory import Memory, PageCache, cached_bytes
from dbdyno.stack.layers.placement import Awake, Placement, pinned
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.study.schema import FilesystemSection, QueueSection
from tests.host.test_awake import BY_POLLERS
from tests.loops import lent_loop
from tests.support import what_is_left

pytestmark = pytest.mark.host

SIZE = 512 * 1024**2
SCHEDULERS = ["none", "mq-deadline", "kyber", "bfq"]
DRIVES = [*(drive["name"] for drive in device_models()), "raid1(hdd-15k,2)", "raid5(hdd-15k,4)"]


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
    return ServerLayer(find_server("mariadb"), settings, "innodb", 4, install=True, log=tmp_path / "server.log")


# One stack per layer, that layer on top of what it needs.
STACKS = {
    "device: emulated": lambda disk, _: [emulated(disk)],
    "device: here": lambda _disk, _: [Here()],
    "queue": lambda disk, _: [emulated(disk), Queue("kyber", QueueSection())],
    "filesystem: ext4": lambda disk, _: [emulated(disk), filesystem("ext4")],
    "filesystem: xfs": lambda disk, _: [emulated(disk), filesystem("xfs")],
    "filesystem: btrfs": lambda disk, _: [emulated(disk), filesystem("btrfs")],
    "host_settings": lambda _disk, _: [HostSettings({"dirty_writeback_centisecs": 612})],
    "host": lambda _disk, _: [Awake()],
    "host: pollers": lambda _disk, _: [BY_POLLERS],
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


TUNED = {
    "none": {},
    "mq-deadline": {"read_expire": 100, "write_expire": 2000, "writes_starved": 4, "front_merges": 0, "fifo_batch": 1,
                    "async_depth": 32, "prio_aging_expire": 2000},
    "kyber": {"read_lat_nsec": 1_000_000, "write_lat_nsec": 5_000_000},
    "bfq": {"fifo_expire_sync": 100, "fifo_expire_async": 200, "back_seek_max": 8192, "back_seek_penalty": 3,
            "slice_idle": 16, "max_budget": 1024, "timeout_sync": 100, "strict_guarantees": 1, "low_latency": 0},
}  # fmt: skip


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_tunable_of_a_scheduler_takes_and_is_read_back(scheduler, disk, ground):
    settings = QueueSection(iosched=TUNED[scheduler])
    with raised([emulated(disk), Queue(scheduler, settings)], ground) as stand:
        seen = stand.observed["queue"].get("iosched", {})
        assert {name: seen[name] for name in TUNED[scheduler]} == {k: str(v) for k, v in TUNED[scheduler].items()}
        assert set(seen) - {"slice_idle_us"} == set(TUNED[scheduler]), "there is no other tunable"


KNOBS = {"nr_requests": 64, "read_ahead_kb": 64, "rotational": True, "wbt_lat_usec": 5000, "nomerges": 2,
         "iostats": False, "write_cache": "write through", "max_sectors_kb": 256, "rq_affinity": 2, "add_random": True,
         "stable_writes": True, "discard_max_bytes": 1024**2}  # fmt: skip


def test_every_knob_of_the_queue_takes_is_read_back_and_gone_with_its_device(disk, ground):
    drive = emulated(disk, "ssd-sata")
    with raised([drive], ground) as stand:
        fresh = {knob: sysfs(stand.device, knob) for knob in KNOBS}
    with raised([drive, Queue("mq-deadline", QueueSection(**KNOBS))], ground) as stand:
        wanted = {knob: value if isinstance(value, str) else str(int(value)) for knob, value in KNOBS.items()}
        assert {knob: stand.observed["queue"][knob] for knob in KNOBS} == wanted
        assert all(sysfs(stand.device, knob) == value for knob, value in wanted.items())
        assert all(wanted[knob] != fresh[knob] for knob in KNOBS), "a knob that is already so proves nothing"
    with raised([drive], ground) as stand:
        assert {knob: sysfs(stand.device, knob) for knob in KNOBS} == fresh, "the next trial's queue is pristine"


@pytest.mark.parametrize(
    ("scheduler", "settings", "said"),
    [
        (
            "mq-deadline",
            {"iosched": {"read_expire": 501}},
            r"read_expire: asked for 501, the kernel took 50[04]",
        ),  # rounds
        ("kyber", {"max_sectors_kb": 4096}, r"max_sectors_kb"),  # clamps, or refuses
        ("none", {"io_poll_delay": 7}, r"io_poll_delay: asked for 7, the kernel took -1"),  # ignores
        ("bfq", {"iosched": {"slice_idle": 4, "slice_idle_us": 9000}}, r"slice_idle: asked for 4, the kernel took 9"),
        ("none", {"io_timeout": 1000}, r"io_timeout: this kernel's queue has no such setting"),
    ],
)
def test_a_knob_that_the_kernel_rounds_clamps_ignores_or_lacks_fails_the_trial(scheduler, settings, said, disk, ground):
    with (
        pytest.raises(TrialError, match=said),
        raised([emulated(disk), Queue(scheduler, QueueSection(**settings))], ground),
    ):
        pass


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
     ("btrfs", "compress=zstd"), ("btrfs", "nodatacow"), ("ext4", "nodelalloc,lazytime"), ("ext2", "noatime"),
     ("btrfs", "nobarrier,noatime")],
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
    disk.client.snapshot("prepared")
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


def test_a_limit_that_the_kernel_clamps_fails_the_trial(ground, monkeypatch, tmp_path):
    class Clamping(type(tmp_path)):
        def write_text(self, *_args, **_options):
            return 0

        def read_text(self, *_args, **_options):
            return str(65 * 1024**2)

    monkeypatch.setattr("dbdyno.stack.layers.memory.memory_hierarchy", lambda: (1, Clamping(tmp_path)))
    said = rf"stack.memory: asked for {64 * 1024**2} bytes, the kernel took {65 * 1024**2}"
    with pytest.raises(TrialError, match=said), raised([Memory(64 * 1024**2)], ground):
        pass


def test_the_group_can_not_swap(ground):
    with raised([Memory(64 * 1024**2)], ground) as stand:
        assert stand.observed["memory"]["swap_off"]
        memsw = stand.cgroup / "memory.memsw.limit_in_bytes"
        if memsw.exists():
            assert int(memsw.read_text(encoding="ascii")) == 64 * 1024**2


def test_the_server_is_where_it_was_put_in_every_thread(disk, ground, tmp_path):
    placed = replace(server(tmp_path), placement=Placement("1", "best-effort:1"))
    with raised([emulated(disk), filesystem(), placed], ground) as stand:
        assert (stand.observed["server"]["cpus"], stand.observed["server"]["ionice"]) == ("1", "best-effort:1")
        pid, places = stand.endpoint.pid, []
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):  # a thread that has ended meanwhile
                places.append(os.sched_getaffinity(int(thread.name)))
        assert len(places) > 5
        assert all(place == {1} for place in places)
        os.sched_setaffinity(pid, {0})
        with pytest.raises(TrialError, match=rf"server_cpus: asked for 1, thread {pid} of the server has 0"):
            placed.placement.observed(pid)


def test_processors_that_are_not_there_are_refused(disk, ground, tmp_path):
    placed = replace(server(tmp_path), placement=Placement("4000", None))
    with pytest.raises(TrialError), raised([emulated(disk), filesystem(), placed], ground):
        pass
    with pytest.raises(HostError, match="client_cpus: 4000"), pinned("4000"):
        pass


def test_the_client_s_programs_stay_on_their_processors_and_dbdyno_does_not():
    before = os.sched_getaffinity(0)
    with pinned("0") as told:
        assert told == {"cpus": "0"}
        said = subprocess.run(
            ["taskset", "--cpu-list", "--pid", str(os.getpid())], capture_output=True, text=True, check=True
        )
        child = subprocess.run(
            ["grep", "Cpus_allowed_list", "/proc/self/status"], capture_output=True, text=True, check=True
        )
        assert said.stdout.split()[-1] == child.stdout.split()[-1] == "0"
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_the_data_is_cold(kind, disk, ground):
    with raised([emulated(disk), filesystem(kind)], ground) as stand:
        (stand.directory / "file").write_bytes(b"warm" * 1024**2)
        assert cached_bytes([stand.directory / "file"]) == 4 * 1024**2
        with raised([PageCache()], stand) as cold:
            assert cold.observed["page_cache"] == {"data_cached_bytes": 0}
            assert cached_bytes([stand.directory / "file"]) == 0


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


def test_a_variable_that_an_older_server_shows_by_another_name_is_read_back(disk, ground, tmp_path):
    asked = server(tmp_path, transaction_isolation="READ-COMMITTED")
    with raised([emulated(disk), filesystem(), asked], ground) as stand:
        assert stand.observed["server"]["transaction_isolation"] == "READ-COMMITTED"


def test_a_real_device_gets_its_queue_settings_back(ground, tmp_path):
    with lent_loop(tmp_path / "disk") as device:
        Path(f"/sys/block/{device.name}/queue/scheduler").write_text("bfq", encoding="ascii")
        Path(f"/sys/block/{device.name}/queue/read_ahead_kb").write_text("512", encoding="ascii")
        before = [sysfs(device, knob) for knob in ("scheduler", "read_ahead_kb", "nr_requests", "rotational")]
        real = Real(device, str(tmp_path / "disk"), Erasing())
        with raised(
            [real, Queue("none", QueueSection(read_ahead_kb=64, nr_requests=32)), filesystem()], ground
        ) as stand:
            assert stand.observed["queue"]["scheduler"] == "none"
            assert stand.observed["device"]["serial"] == str(tmp_path / "disk")
        assert [sysfs(device, k) for k in ("scheduler", "read_ahead_kb", "nr_requests", "rotational")] == before
