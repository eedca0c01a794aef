"""What a trial leaves of a real disk: its filesystem wiped, the mark in its place, nothing of others' touched."""

import os
import subprocess
import tempfile
import threading
import uuid
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.emptiness import MIB, Content, Sums, begin_mark, identify
from dbdyno.stack.erase import Erasing, check_erasable
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo.real_disk import MarkHalfMade, WipeOurs
from tests.contents import CONTENTS, write
from tests.loops import lent_loop

pytestmark = pytest.mark.host

SIZE = 64 * MIB
OURS = str(uuid.uuid4())
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-U"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "--mixed", "-U"],
}


@pytest.fixture
def file():
    with tempfile.TemporaryDirectory(prefix="dbdyno-test-", dir="/dev/shm") as folder:
        yield Path(folder) / "disk"


@pytest.fixture
def device(file):
    with lent_loop(file, SIZE) as lent:
        yield lent


def made(device, kind="ext4", its=OURS):
    subprocess.run([*MAKE[kind], its, device], check=True, capture_output=True)
    write(device, 40 * MIB, os.urandom(MIB))


def signatures(device):
    return subprocess.run(["wipefs", "--no-act", device], check=True, capture_output=True, text=True).stdout


def why(device, file):
    return check_erasable(device, str(file), Erasing())[1].why


def digest(device):
    return subprocess.check_output(["sha256sum", device])


@pytest.mark.parametrize("kind", MAKE)
def test_our_filesystem_is_wiped_and_marked_once(kind, device, file):
    made(device, kind)
    undo = WipeOurs(str(device), OURS)
    assert undo.apply()
    assert signatures(device) == ""
    assert why(device, file).startswith("it holds what a trial left, unchanged")
    before = digest(device)
    assert not undo.apply()
    assert digest(device) == before


def test_a_filesystem_that_is_not_ours_is_left_alone(device):
    made(device, its=str(uuid.uuid4()))
    before = digest(device)
    assert not WipeOurs(str(device), OURS).apply()
    assert digest(device) == before


def test_one_that_others_made_and_use_is_left_alone_without_waiting(device, tmp_path):
    made(device, its=str(uuid.uuid4()))
    subprocess.run(["mount", "--options", "ro", device, tmp_path], check=True)
    try:
        assert not WipeOurs(str(device), OURS, patience_seconds=3600).apply()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_device_that_is_gone_needs_no_undoing(file):
    with lent_loop(file, SIZE) as device:
        path = str(device)
    for place in (path, "/dev/dbdyno-test-none"):
        assert not WipeOurs(place, OURS).apply()
        assert not MarkHalfMade(place, OURS, "1", "00", "").apply()


def test_a_device_that_is_still_held_is_wiped_once_it_is_let_go(device, file):
    made(device)
    held = os.open(device, os.O_RDONLY | os.O_EXCL)
    threading.Timer(0.3, os.close, [held]).start()
    assert WipeOurs(str(device), OURS, patience_seconds=60).apply()
    assert "what a trial left" in why(device, file)


def test_a_device_that_stays_held_is_named(device):
    made(device)
    held = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        with pytest.raises(HostError, match=f"{device}: Device or resource busy; end what uses it, then: dbdyno resto"):
            WipeOurs(str(device), OURS, patience_seconds=0).apply()
    finally:
        os.close(held)


def test_wiping_that_was_cut_short_is_ended(device, file):
    made(device)
    handle = os.open(device, os.O_RDWR)
    reading = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with Content(reading) as content:
        begin_mark(handle, content, OURS)
    os.close(reading)
    os.close(handle)
    subprocess.run(["wipefs", "--all", "--quiet", device], check=True)
    assert not WipeOurs(str(device), str(uuid.uuid4())).apply(), "another trial's"
    assert WipeOurs(str(device), OURS).apply()
    assert "what a trial left" in why(device, file)


def before_mkfs(device):
    """The undo as it is announced before mkfs, of a disk that held something that was given up."""
    write(device, 10 * MIB, os.urandom(8 * MIB))
    reading = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with Content(reading) as content:
        sums = Sums(content, b"seed")
    os.close(reading)
    return MarkHalfMade(str(device), OURS, identify(device).attachment, sums.seed.hex(), sums.each)


def half_made(device):
    """As a killed mkfs leaves it: all but the superblock."""
    made(device)
    subprocess.run(["wipefs", "--all", "--quiet", device], check=True)
    write(device, 40 * MIB, bytes(MIB))


def test_what_a_killed_mkfs_left_is_marked(device, file):
    undo = before_mkfs(device)
    half_made(device)
    assert undo.apply()
    assert "what a trial left" in why(device, file)
    assert not undo.apply()


def test_what_mkfs_has_made_is_for_the_other_undo(device):
    undo = before_mkfs(device)
    made(device)
    assert not undo.apply()
    assert WipeOurs(str(device), OURS).apply()


@pytest.mark.parametrize("name", ["random bytes", "a filesystem behind a lost partition table"])
def test_what_others_wrote_after_a_killed_mkfs_is_left_alone(name, device):
    undo = before_mkfs(device)
    half_made(device)
    CONTENTS[name](device, SIZE)
    write(device, 40 * MIB, os.urandom(8 * MIB))
    before = digest(device)
    assert not undo.apply()
    assert digest(device) == before


def test_a_disk_that_was_detached_meanwhile_is_left_alone(file):
    with lent_loop(file, SIZE) as device:
        undo = before_mkfs(device)
    with lent_loop(file, SIZE) as again:
        half_made(again)
        before = digest(again)
        moved = MarkHalfMade(str(again), OURS, undo.attachment, undo.seed, undo.each)
        assert not moved.apply()
        assert not MarkHalfMade(str(again), OURS, identify(again).attachment, "00", "", boot="another boot").apply()
        assert digest(again) == before


@pytest.mark.parametrize("inside", ["", "mnt", "disk-log/mnt"])
def test_a_folder_with_a_mount_at_any_depth_is_left_alone(state, inside):
    folder = state / "scratch" / "x"
    place = folder / inside
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "dbdyno-test", str(place)], check=True)
    try:
        (place / "kept").touch()
        with pytest.raises(HostError, match="still holds a mount"):
            RemoveTree(str(folder)).apply()
        assert (place / "kept").exists()
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert RemoveTree(str(folder)).apply()
    assert not folder.exists()
