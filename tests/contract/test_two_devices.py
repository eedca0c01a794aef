"""btrfs over two emulated disks, really raised: profiles read back, both disks used alike, restored and put back."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.filesystems import BTRFS
from dbdyno.probe.iostat import BlockDeviceSource
from dbdyno.stack.kinds.emulated import emulated_device
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import PREPARED
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.tools import run_tool
from dbdyno.study.schema import TrialSpec
from tests.support import what_is_left

pytestmark = pytest.mark.host

MIB = 1024**2
SIZE = 300 * MIB
METADATA = {"single": "raid1", "raid0": "raid0", "raid1": "raid1"}  # beside data of that profile


@pytest.fixture
def disks(journal):
    with ExitStack() as ending:
        yield tuple(ending.enter_context(running_disk(journal, model="ssd-sata", size=SIZE)) for _ in range(2))


def spec_of(profile):
    mkfs = f"-d {profile} -m {METADATA[profile]}"
    return TrialSpec.model_validate(
        {
            "stack": {
                "device": "ssd-sata",
                "devices": 2,
                "size": f"{SIZE}B",
                "filesystem": "btrfs",
                "scheduler": "kyber",
            },
            "queue": {"read_ahead_kb": 64},
            "filesystem": {"mkfs": mkfs, "mount": "noatime"},
            "workload": {"kind": "slap", "queries": 1},
        }
    )


def stack(disks, profile, *, fresh=True):
    spec = spec_of(profile)
    raising = Raising(Path("unused.log"), lambda _: None, seed=1, install=fresh)
    device = emulated_device(spec, Disks(disks), raising)
    filesystem = Filesystem(BTRFS, spec.filesystem, format=fresh)
    return device, [device, Queue(spec.stack.scheduler, spec.queue), filesystem]


def written(path):
    path.write_bytes(os.urandom(16 * MIB))
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


@pytest.mark.parametrize("profile", METADATA)
def test_profiles_are_read_back_and_both_disks_are_used_as_they_say(profile, disks, journal, state):
    before = what_is_left(state)
    device, layers = stack(disks, profile)
    with scratch(journal) as ground, raised(layers, ground) as stand:
        found = stand.observed["filesystem"]
        assert found["profiles"] == {"data": profile, "metadata": METADATA[profile], "system": METADATA[profile]}
        assert found["flushes_on_fsync"] is True, "on both"
        assert (stand.observed["device"]["devices"], len(stand.devices)) == (2, 2)
        for one in stand.devices:
            assert Path(f"/sys/block/{one.name}/queue/read_ahead_kb").read_text(encoding="ascii").strip() == "64"
        room = os.statvfs(stand.directory)
        size_bytes = room.f_blocks * room.f_frsize
        assert size_bytes == pytest.approx(SIZE if profile == "raid1" else 2 * SIZE, rel=0.01)
        source = BlockDeviceSource(*(one.name for one in stand.devices))
        began = source.sample()
        with device.measuring(journal) as figures:
            written(stand.directory / "file")
        counted = (source.sample()["write_sectors"] - began["write_sectors"]) * 512
        source.close()
    each = [disk["write_bytes"] for disk in figures["disks"]]
    assert sum(each) == pytest.approx(counted, rel=0.1), "the probe counts what both disks were given"
    assert [disk["seed"] for disk in figures["disks"]] == [1, 1 + 2**48]
    assert figures["lateness_ns"]["count"] == sum(disk["lateness_ns"]["count"] for disk in figures["disks"])
    if profile == "single":
        assert max(each) >= 16 * MIB > 4 * min(each), "one disk has all of the file"
    else:
        least = 16 * MIB if profile == "raid1" else 8 * MIB
        assert all(least <= one < 1.5 * least for one in each)
    assert what_is_left(state) == before, "raised or lowered, only the disks themselves are there"


def test_set_back_to_the_same_content_for_every_trial(disks, journal):
    """Were the kernel's list of btrfs devices left as it is, it would refuse the earlier state as a stale copy."""
    with scratch(journal) as ground, raised(stack(disks, "raid0")[1], ground) as stand:
        (stand.directory / "file").write_bytes(b"prepared")
    for disk in disks:
        disk.client.snapshot(PREPARED)
    for turn in range(3):
        either_way = disks[:: -1 if turn % 2 else 1]  # so each is another loop device than before
        device, above = stack(either_way, "raid0", fresh=False)
        with scratch(journal) as ground, raised([device], ground) as bare:
            with raised(above[1:], bare) as stand:
                assert stand.observed["filesystem"]["profiles"]["data"] == "raid0"
                assert (stand.directory / "file").read_bytes() == b"prepared"
                written(stand.directory / "file")
            # As udev does once a device has been written to.
            run_tool(["btrfs", "device", "scan", *(str(one.path) for one in bare.devices)])


def test_a_profile_that_mkfs_did_not_make_fails_the_trial(disks, journal, monkeypatch):
    monkeypatch.setattr("dbdyno.filesystems.BTRFS.making", lambda *_: ["mkfs.btrfs", "-q", "-f"])
    said = "btrfs profile of data: asked for raid0, it is single"
    with scratch(journal) as ground, pytest.raises(TrialError, match=said), raised(stack(disks, "raid0")[1], ground):
        pass


def test_two_queues_that_do_not_come_out_alike_fail_the_trial(disks, journal):
    device, layers = stack(disks, "raid1")

    with scratch(journal) as ground, raised([device], ground) as stand:
        meddled = Path(f"/sys/block/{stand.beside[0].name}/queue/nomerges")
        meddled.write_text("2", encoding="ascii")
        with pytest.raises(TrialError, match="have different queues"), layers[1].raised(stand):
            pass
