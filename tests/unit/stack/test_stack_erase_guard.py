"""What is never erased: by what name a disk is known, where it is looked at, and what its mark is."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import HostError
from dbdyno.stack.emptiness import (
    END_BYTES,
    MIB,
    PAGE,
    SAMPLES,
    WHOLE_BYTES_MAX,
    Identity,
    fields_of,
    identify,
    known_places,
    no_serial_text,
    page_of,
    places,
)
from dbdyno.stack.erase import Erasing, check_erasable


def test_what_is_no_block_device_is_never_erased(tmp_path):
    file = tmp_path / "file"
    file.write_text("data")
    link = tmp_path / "disk-by-id"
    link.symlink_to(file)
    for path in (file, tmp_path, link, Path("/dev/null")):
        with pytest.raises(HostError) as refused:
            identify(path)
        assert str(refused.value) == f"{path} is not a block device"
    assert file.read_text() == "data"


def test_a_device_that_is_not_there(tmp_path):
    with pytest.raises(HostError) as refused:
        check_erasable(tmp_path / "sdz", None, Erasing())
    assert str(refused.value) == f"{tmp_path / 'sdz'}: No such file or directory"


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ("/dev/disk/by-id/ata-Acme_S1_AB", True),
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", True),
        ("/dev/disk/by-id/ata-Acme_S2", False),
        ("/dev/disk/by-label/S1_AB", False),
        ("/dev/sdb", False),
    ],
)
def test_a_link_names_a_disk_by_serial_or_world_wide_name(link, named):
    found = Identity(Path("/dev/sdb"), "Acme", "S1 AB", "5000c500a1b2c3d4")
    assert found.is_named_by(Path(link)) == named


def test_a_serial_that_could_be_part_of_any_name_names_nothing():
    assert not Identity(Path("/dev/sdb"), "Acme", "S1").is_named_by(Path("/dev/disk/by-id/ata-Acme_S1"))


def test_what_a_run_may_erase_it_may_erase_once():
    erasing = Erasing(frozenset({"S1"}))
    assert (erasing.allows("S1"), erasing.allows("S2")) == (True, False)
    erasing.begun["S1"] = Identity(Path("/dev/sdb"), "Acme", "S1")
    assert not erasing.allows("S1")


# The mark as bytes: whole or none, and no signature of anything.


FIELDS = {"disk": "0" * 32, "uuid": "u" * 36, "seed": "0" * 32, "all": "f" * 32, "each": "0123" * SAMPLES}


def test_a_mark_fills_a_page_and_is_read_back():
    page = page_of(FIELDS)
    assert len(page) == PAGE
    assert fields_of(page) == FIELDS


def test_one_changed_bit_makes_it_none():
    page = page_of(FIELDS)
    for at in range(PAGE):
        assert fields_of(page[:at] + bytes([page[at] ^ 1]) + page[at + 1 :]) is None, at


@pytest.mark.parametrize(
    "page",
    [bytes(PAGE), b"\xff" * PAGE, b"{}".ljust(PAGE), b"[1]".ljust(PAGE), b"[" * PAGE, json.dumps(FIELDS).encode()],
)
def test_what_is_no_mark_is_none(page):
    assert fields_of(page) is None


def test_it_is_of_characters_that_no_filesystem_begins_with():
    """Neither 0x55AA of a boot sector nor 0x53EF of ext, nor the letters of HFS, minix and others at their places."""
    page = page_of(FIELDS)
    assert all(0x20 <= byte < 0x7F or byte == ord("\n") for byte in page)
    assert not any(chr(byte).isupper() for byte in page)


# Where a disk is looked at: all of a small one, and of a large one enough that little is missed.


GIB, TIB = 1024**3, 1024**4


def test_so_many_samples_miss_a_hundredth_with_a_chance_of_1_in_10_000():
    assert 0.99**SAMPLES <= 1e-4 < 0.99 ** (SAMPLES - 1)


@given(st.integers(min_value=2 * PAGE // 512, max_value=WHOLE_BYTES_MAX // 512))
def test_a_small_disk_is_covered_without_gap_or_overlap(sectors):
    size, at = sectors * 512, PAGE
    for offset, length in places(size, b""):
        assert (offset, length % 512) == (at, 0)
        at += length
    assert at == size - PAGE
    assert known_places(size) == []


@given(st.integers(min_value=WHOLE_BYTES_MAX // 512 + 1, max_value=64 * TIB // 512), st.binary(min_size=1, max_size=16))
def test_a_large_disk_is_sampled_once_in_each_part_and_never_at_its_mark(sectors, seed):
    size = sectors * 512
    found = places(size, seed)
    part = (size - 2 * PAGE) / SAMPLES
    assert len(found) == SAMPLES
    for number, (offset, length) in enumerate(found):
        assert (offset % PAGE, length) == (0, PAGE)
        assert part * number - PAGE <= offset - PAGE < part * (number + 1)
    for offset, length in [*found, *known_places(size)]:
        assert PAGE <= offset < offset + length <= size - PAGE


def test_the_same_seed_gives_the_same_places_on_any_machine():
    assert places(100 * GIB, b"seed") == places(100 * GIB, b"seed") != places(100 * GIB, b"other")
    assert [offset // PAGE for offset, _ in places(100 * GIB, b"seed")[:3]] == [19901, 34524, 62093]


@pytest.mark.parametrize(
    ("offset", "what"),
    [
        (PAGE, "what follows the first page"),
        (END_BYTES - PAGE, "LUKS"),
        (32768 * 4096, "ext4 with blocks of 4 KiB, group 1"),
        (49 * 32768 * 4096, "the same, group 49"),
        (MIB + 27 * 32768 * 4096, "the same, group 27, in a partition at 1 MiB"),
        (3 * 8192 * 1024, "ext4 with blocks of 1 KiB, group 3"),
        (64 * MIB, "btrfs, first mirror"),
        (256 * GIB, "btrfs, second mirror"),
        (512 * GIB, "xfs, third allocation group of 2 TiB"),
        (2 * TIB - 8 * 1024, "RAID, format 1.0"),
        (2 * TIB - 64 * 1024, "RAID, format 0.90"),
        (2 * TIB - 33 * 512, "the copy of a GUID partition table"),
        (2 * TIB - 512 * 1024, "ZFS, third label"),
    ],
)
def test_places_of_superblocks_and_copies_are_known(offset, what):
    assert any(start <= offset < start + length for start, length in known_places(2 * TIB)), what


def test_no_known_place_is_read_twice():
    for size in (WHOLE_BYTES_MAX + 512, 8 * GIB, 2 * TIB, 20 * TIB + 512):
        at = 0
        for start, length in known_places(size):
            assert start >= at
            at = start + length
        assert at == size - PAGE


def test_of_a_volume_of_the_device_mapper_it_is_said_what_can_be_done(tmp_path):
    volume, disk = Path("/dev/vg0/lv0"), Path("/dev/sdz")
    assert no_serial_text(disk, tmp_path).endswith("so it can't be distinguished from another disk; it is not touched")
    (tmp_path / "dm").mkdir()
    said = no_serial_text(volume, tmp_path)
    assert said.startswith("/dev/vg0/lv0 shows no serial, so it can't be distinguished")
    assert 'mount a filesystem and give a folder there: device = "file:/srv/bench"' in said
