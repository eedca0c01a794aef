"""The read-only check of every filesystem on a device, and where its files lie: what power cuts are judged by."""

import os
import random
import signal
from contextlib import contextmanager
from dataclasses import replace

import pytest

from dbdyno.errors import TrialError
from dbdyno.filesystems import BY_FUSE, IN_MEMORY, KINDS
from dbdyno.stack.capabilities import filesystem
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.zfs_pool import ZfsPool
from dbdyno.stack.loop import await_free
from dbdyno.stack.space import ranges_of
from dbdyno.study.schema import FilesystemSection
from tests.disks import attached, make_filesystem, mounted

pytestmark = pytest.mark.host

ON_DEVICES = [kind for kind in KINDS if kind != IN_MEMORY]
IN_PLACE = ("ext2", "ext3", "ext4", "xfs")  # the kernel says where on the device a file lies
BLOCK, HEAD = 4096, 128 * 1024
CONTENT = random.Random(7).randbytes(2 * 1024**2)


@pytest.fixture(autouse=True)
def _able(kind):
    if not KINDS[kind].usual and not (found := filesystem(kind)).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")


@contextmanager
def filled(kind, journal):
    """A device with a filesystem that has some files, and the layer that mounts it."""
    layer = ZfsPool if kind == BY_FUSE else lambda *given: Filesystem(KINDS[kind], *given)
    made = layer(FilesystemSection(), True)
    with running_disk(journal, model="ssd-sata", size=400 * 1024**2) as disk, scratch(journal) as ground:
        device = Emulated(disk, "ssd-sata", rotational=False, seed=1, restore=False)
        with device.raised(ground) as context:
            with made.raised(context) as mounted:
                for number in range(8):
                    path = mounted.directory / f"file{number}"
                    path.write_bytes(CONTENT)
                    handle = os.open(path, os.O_RDONLY)
                    os.fsync(handle)
                    os.close(handle)
                places = ranges_of([mounted.directory / "file3"])
            await_free(context.device.path)
            yield context, replace(made, format=False), places


@pytest.mark.parametrize("kind", ON_DEVICES)
def test_what_is_whole_is_found_so_again_and_again_and_is_not_changed(kind, journal):
    with filled(kind, journal) as (context, layer, _):
        assert [layer.damage(context), layer.damage(context)] == ["", ""]
        with layer.raised(context) as mounted:
            assert (mounted.directory / "file7").read_bytes() == CONTENT


@pytest.mark.alone  # the checks and mkfs of tests beside it would meet the dead disk, too
@pytest.mark.parametrize("kind", ["btrfs"])
def test_a_dead_disk_that_is_mounted_elsewhere_is_no_damage(kind, journal, state, tmp_path):
    with filled(kind, journal) as (context, layer, _), attached(state, "ideal", size="400M") as other:
        make_filesystem(kind, other.device)
        with mounted(other.device, tmp_path / "place"):
            os.kill(other.pid, signal.SIGKILL)
            assert layer.damage(context) == ""


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ON_DEVICES)
def test_what_is_spoiled_is_found_or_does_not_mount(kind, journal):
    with filled(kind, journal) as (context, layer, _):
        spoil(context.device.path)
        try:
            with layer.raised(context):
                pass
            await_free(context.device.path)
            found = layer.damage(context)
        except (TrialError, OSError) as error:
            found = str(error)
        assert found


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_file_is_on_the_device_where_it_is_said_to_be(kind, journal):
    with filled(kind, journal) as (context, _, places):
        with context.device.path.open("rb") as device:
            found = b"".join(os.pread(device.fileno(), after - first, first) for first, after in places)
        assert len(found) >= len(CONTENT)
        assert all(found.find(CONTENT[at : at + BLOCK]) >= 0 for at in range(0, len(CONTENT), BLOCK))


def spoil(path):
    """Garble every third block that holds something, beyond the head of the device."""
    handle = os.open(path, os.O_RDWR)
    garbage = random.Random(3)
    try:
        held = 0
        for at in range(HEAD, os.lseek(handle, 0, os.SEEK_END), BLOCK):
            if any(os.pread(handle, BLOCK, at)):
                held += 1
                if held % 3 == 0:
                    os.pwrite(handle, garbage.randbytes(BLOCK), at)
        os.fsync(handle)
    finally:
        os.close(handle)
