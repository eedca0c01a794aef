"""Mounts and mount options as they are read back."""

import subprocess
from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.filesystems import EXT4
from dbdyno.stack.layers.filesystem import check_mount, observed_mount


def test_a_mount_is_read_back():
    root = observed_mount(Path("/"))
    said = subprocess.run(["findmnt", "-no", "FSTYPE", "/"], capture_output=True, text=True, check=True).stdout.split()
    assert root["kind"] in said
    assert {"rw", "ro"} & set(str(root["mount_options"]).split(","))
    assert root["barriers"] is True


def test_what_is_not_mounted_is_said_so(tmp_path):
    with pytest.raises(TrialError) as refused:
        observed_mount(tmp_path)
    assert str(refused.value) == f"{tmp_path} is not mounted although mount said nothing"


@pytest.mark.parametrize(
    ("asked", "listed", "took"),
    [
        ("strictatime", "rw,seclabel", True),
        ("strictatime", "rw,relatime", False),
        ("strictatime", "rw,noatime", False),
        ("noatime", "rw,noatime", True),
        ("noatime", "rw,relatime", False),
        ("defaults,rw", "rw,relatime", True),
        ("data=writeback", "rw,data=ordered", False),
        ("compress=zstd", "rw,compress=zstd:3", True),
        ("commit=5", "rw,commit=60", False),
        ("", "rw", True),
    ],
)
def test_a_mount_option_that_did_not_take_fails_the_trial(asked, listed, took):
    observed = {"kind": "ext4", "mount_options": f"{listed},nosuid,nodev"}
    if took:
        check_mount(EXT4, asked, observed)
    else:
        with pytest.raises(TrialError) as refused:
            check_mount(EXT4, asked, observed)
        assert str(refused.value) == f"mount option {asked!r} did not take; the kernel lists {listed},nosuid,nodev"


def test_a_mount_option_that_only_begins_alike_did_not_take():
    with pytest.raises(TrialError):
        check_mount(EXT4, "commit=5", {"kind": "ext4", "mount_options": "rw,nosuid,nodev,commit=50"})


@pytest.mark.parametrize("listed", ["rw", "rw,nodev", "rw,nosuid"])
def test_a_mount_that_would_heed_setuid_files_or_device_nodes_is_refused(listed):
    with pytest.raises(TrialError, match="mounted without no"):
        check_mount(EXT4, "", {"kind": "ext4", "mount_options": listed})
