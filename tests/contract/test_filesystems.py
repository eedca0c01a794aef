"""The contract of a filesystem, over every one: made, mounted, a server run on it, everything read back, put back."""

import subprocess

import pytest

from dbdyno.errors import TrialError
from dbdyno.filesystems.catalogue import IN_MEMORY, KINDS
from dbdyno.layers import device_layer, layers
from dbdyno.servers import process
from dbdyno.stack.data import Image, Tree
from dbdyno.stack.emulated_disk import running_disk
from dbdyno.stack.layer import raised
from dbdyno.stack.scratch import scratch
from dbdyno.stack.space import after_load
from dbdyno.study.schema import TrialSpec
from tests.support import what_is_left

pytestmark = pytest.mark.host

SIZE = "400MiB"
# Each with options that reach mkfs and mount, and what the kernel shows of them.
OPTIONS = {
    "ext2": {"mkfs": "-b 4096", "mount": "noatime"},
    "ext3": {"mkfs": "-J size=16", "mount": "noatime,data=writeback"},
    "ext4": {"mkfs": "-O ^has_journal", "mount": "noatime,nobarrier"},
    "xfs": {"mkfs": "-m reflink=0", "mount": "noatime,logbsize=256k"},
    "btrfs": {"mkfs": "--csum xxhash", "mount": "compress=zstd,noatime,nobarrier"},
    "tmpfs": {"mkfs": "", "mount": "noatime,huge=within_size"},
}
EXTENTS_UNKNOWN = {"tmpfs"}


def spec_of(kind, **filesystem):
    return TrialSpec.model_validate(
        {
            "stack": {"device": "memory" if kind == IN_MEMORY else "ssd-sata", "size": SIZE, "filesystem": kind},
            "filesystem": filesystem,
            "server": {"settings": {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}},
            "workload": {"kind": "slap", "load": "write", "queries": 100},
        }
    )


@pytest.fixture
def stack(journal, tmp_path):
    """Raise the stack of a treatment as a run does to prepare data, with a server on top."""

    def rise(spec, ground, disk):
        image = Image(disk, None if disk else Tree(ground.scratch / "image"))
        device = device_layer(spec, image, seed=1, erase=frozenset(), blank=True)
        return raised(layers(spec, image, device, log=tmp_path / "server.log", install=True), ground)

    with running_disk(journal, model="ssd-sata", size=400 * 1024**2) as disk, scratch(journal) as ground:
        yield lambda spec: rise(spec, ground, disk if spec.stack.on_emulated_disk else None)


def test_every_filesystem_is_tried():
    assert set(OPTIONS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_runs_on_it_and_everything_is_read_back(kind, stack, state):
    before = what_is_left(state)
    with stack(spec_of(kind)) as stand:
        observed = stand.observed["filesystem"]
        assert observed["kind"] == kind
        assert observed["barriers"] is (kind != IN_MEMORY)
        assert observed["flushes_on_fsync"] is (kind != IN_MEMORY), "a commit reaches the device"
        assert stand.observed["server"]["version"]
        with process.connect(stand.endpoint.socket) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB")
            assert cursor.execute("INSERT INTO d.t VALUES (1), (2)") == 2
        room = after_load(stand.directory)
    assert 0 < room["free_bytes"] < room["size_bytes"] <= 400 * 1024**2
    assert room["files"] >= 2, "at least the log and the system tablespace are 1 MiB or more"
    assert (room["extents"] is None) == (kind in EXTENTS_UNKNOWN)
    assert kind in EXTENTS_UNKNOWN or room["extents"] >= room["files"]
    assert what_is_left(state) == before


@pytest.mark.parametrize("kind", KINDS)
def test_its_options_take_and_are_seen(kind, stack):
    spec = spec_of(kind, **OPTIONS[kind])
    with stack(spec) as stand:
        observed = stand.observed["filesystem"]
        for option in OPTIONS[kind]["mount"].split(","):
            assert option in observed["mount_options"], option
        barriers = "nobarrier" not in OPTIONS[kind]["mount"] and kind != IN_MEMORY
        assert observed["barriers"] is barriers
        assert observed["flushes_on_fsync"] is barriers, "without barriers a commit does not reach the device"


@pytest.mark.parametrize("kind", KINDS)
def test_an_option_that_it_does_not_know_fails_the_trial(kind, stack):
    with pytest.raises(TrialError, match="nonsense"), stack(spec_of(kind, mount="nonsense")):
        pass


def test_a_tmpfs_is_as_large_as_was_asked(stack):
    with stack(spec_of("tmpfs")) as stand:
        command = ["dd", "if=/dev/zero", f"of={stand.directory}/much", "bs=1M", "count=1000"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "No space left" in done.stderr
