"""Checksums of kept states: whatever is not as it was kept is named; holes make no difference."""

import json
import os
import shutil
import time

import pytest

from dbdyno.store.cuts import SUMS, verify_list, verify_sums, write_sums
from dbdyno.store.parts import DamageError

MIB = 1024**2


@pytest.fixture
def state(tmp_path):
    """A state as it is kept, and what its trial says of it."""
    folder = tmp_path / "c1"
    folder.mkdir()
    with (folder / "base.img").open("wb") as image:
        image.seek(3 * MIB + 17)
        image.write(b"pages")
        image.truncate(64 * MIB)
    for name in ("about.json", "cut.json", "writes.bin", "ledger.bin"):
        (folder / name).write_bytes(name.encode())
    return folder, write_sums(folder)


def flip(path, offset, bit=1):
    with path.open("r+b") as file:
        file.seek(offset)
        held = file.read(1)
        file.seek(offset)
        file.write(bytes([held[0] ^ bit]))


def test_a_state_as_it_was_kept_is_whole(state):
    folder, sha256 = state
    verify_list(folder, sha256)
    verify_sums(folder)


@pytest.mark.parametrize("name", ["about.json", "cut.json", "writes.bin", "ledger.bin"])
@pytest.mark.parametrize("at", [0, -1])
def test_a_flipped_bit_of_any_file_is_named(state, name, at):
    path = state[0] / name
    flip(path, at % path.stat().st_size, 1 << 7)
    with pytest.raises(DamageError, match=rf"{path}: is damaged: it has been changed since the state was kept"):
        verify_sums(state[0])


@pytest.mark.parametrize("offset", [0, 3 * MIB + 17, 4 * MIB, 64 * MIB - 1])
def test_a_flipped_bit_of_the_image_is_named_in_its_holes_too(state, offset):
    flip(state[0] / "base.img", offset)
    with pytest.raises(DamageError, match=r"base\.img: is damaged: it has been changed"):
        verify_sums(state[0])


def test_the_same_bytes_elsewhere_in_the_image_are_another_image(state):
    path = state[0] / "base.img"
    with path.open("r+b") as image:
        image.seek(3 * MIB + 17)
        image.write(bytes(5))
        image.seek(5 * MIB + 17)
        image.write(b"pages")
    with pytest.raises(DamageError, match="it has been changed"):
        verify_sums(state[0])


def test_holes_that_a_copy_filled_are_no_difference(state, tmp_path):
    full = tmp_path / "copy"
    full.mkdir()
    for path in state[0].iterdir():
        (full / path.name).write_bytes(path.read_bytes())
    assert (full / "base.img").stat().st_blocks > (state[0] / "base.img").stat().st_blocks
    verify_sums(full)


@pytest.mark.parametrize(
    "change",
    [lambda path: os.truncate(path, 10 << 40), lambda path: os.truncate(path, MIB), lambda path: path.unlink()],
)
def test_an_image_of_another_size_is_refused_unread(state, change):
    change(state[0] / "base.img")
    began = time.process_time()
    with pytest.raises(DamageError, match=r"base\.img: is damaged"):
        verify_sums(state[0])
    assert time.process_time() - began < 1.0


def test_a_file_that_was_not_kept_is_refused(state):
    (state[0] / "more.img").touch()
    with pytest.raises(DamageError, match=r"more\.img: is damaged: it was not there when the state was kept"):
        verify_sums(state[0])


def fifo(path):
    os.mkfifo(path)


def link(path):
    path.symlink_to("/etc/shadow")


def folder(path):
    path.mkdir()


def link_to_a_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("has_sums", [True, False])
@pytest.mark.parametrize("name", ["about.json", "base.img", "writes.bin", "ledger.bin", SUMS])
@pytest.mark.parametrize("make", [fifo, link, folder, link_to_a_device])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(state, has_sums, name, make):
    if not has_sums:
        (state[0] / SUMS).unlink()
    (state[0] / name).unlink(missing_ok=True)
    make(state[0] / name)
    with pytest.raises(DamageError, match=r"it is not a regular file|it is a link|Is a directory"):
        verify_sums(state[0])


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b"null", b"[" * 60000, b'{"a":' * 10000, b"\xff", b"9" * 6000, b"x" * 100_000]
)
def test_a_list_that_is_none_is_damaged(state, content):
    (state[0] / SUMS).write_bytes(content)
    with pytest.raises(DamageError, match=SUMS):
        verify_sums(state[0])
    with pytest.raises(DamageError, match=SUMS):
        verify_list(*state)


@pytest.mark.parametrize("sums", [None, 5, "x", [], {}, {"bytes": True}, {"bytes": 9, "sha256": None}])
def test_a_checksum_that_is_none_fits_no_file(state, sums):
    path = state[0] / SUMS
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cut.json": sums}))
    with pytest.raises(DamageError, match=r"cut\.json: is damaged: it has been changed"):
        verify_sums(state[0])


def test_a_state_whose_list_was_taken_away_is_not_taken_for_one_of_an_earlier_version(state):
    (state[0] / SUMS).unlink()
    verify_sums(state[0])
    verify_list(state[0], "")
    with pytest.raises(DamageError, match=rf"{SUMS}: is damaged: No such file"):
        verify_list(*state)


def test_a_state_made_anew_with_its_list_is_not_the_one_that_the_trial_kept(state):
    flip(state[0] / "base.img", 4 * MIB)
    (state[0] / SUMS).unlink()
    write_sums(state[0])
    verify_sums(state[0])
    with pytest.raises(DamageError, match="another than the trial's own file says"):
        verify_list(*state)


def test_a_folder_that_is_gone_is_said(state):
    shutil.rmtree(state[0])
    with pytest.raises(DamageError, match="No such file"):
        verify_sums(state[0])
