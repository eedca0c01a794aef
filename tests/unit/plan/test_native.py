"""The extension module, from where it is used."""

import pytest

from dbdyno._native import device_models, toml_lines


def test_keys_tables_and_elements_have_their_lines():
    found = toml_lines('version = 1\n[stack]\ndevice = [\n  "a",\n  "b",\n]\n[design]\nbaseline = { device = "a" }\n')
    assert found == {
        "version": 1,
        "stack": 2,
        "stack.device": 3,
        "stack.device.0": 4,
        "stack.device.1": 5,
        "design": 7,
        "design.baseline": 8,
        "design.baseline.device": 8,
    }


def test_a_line_is_counted_in_lines_not_in_bytes():
    assert toml_lines('title = "é\N{GRINNING FACE}"\nnext = 1\n')["next"] == 2


def test_what_is_not_toml_is_refused():
    with pytest.raises(ValueError, match="TOML"):
        toml_lines("a = [1,")


def test_every_drive_has_a_name_a_kind_and_a_title():
    drives = device_models()
    assert {drive["kind"] for drive in drives} == {"hdd", "ssd", "cloud", "raid", "ideal"}
    assert all(drive["rotational"] == ("hdd" in drive["name"]) and drive["title"] for drive in drives)
    for drive in drives:
        assert device_models(drive["name"]) == [drive]


def test_a_drive_that_is_not_there_or_too_small_is_refused():
    with pytest.raises(ValueError, match="the models are hdd-7200"):
        device_models("hdd-7201")
    with pytest.raises(ValueError, match="is larger than the drive"):
        device_models("ssd-sata", 10**15)


def test_a_drive_has_its_numbers_and_its_array_in_its_name():
    (drive,) = device_models("raid1(hdd-15k(write_cache_bytes=0), 2)")
    assert (drive["kind"], drive["rotational"]) == ("raid", True)
    (drive,) = device_models("raid6(ssd-sata, 6)")
    assert (drive["kind"], drive["rotational"]) == ("raid", False)
    (drive,) = device_models("raid0(ebs-gp2(volume_gib=500), 4, 256KiB)")
    assert (drive["kind"], drive["rotational"]) == ("raid", False)
