"""Mounts and mount options as they are read back."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import TrialError
from dbdyno.filesystems import EXT4
from dbdyno.stack.btrfs import check_profiles, profiles_in
from dbdyno.stack.layers.device import SEED_BITS, latest, seed_of
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


# What is said of two devices together, and what btrfs's own tool says of how data lie on them.


SAID = """\
Data, RAID0: total=204.75MiB, used=54.12MiB
System, RAID1: total=8.00MiB, used=16.00KiB
Metadata, RAID1: total=256.00MiB, used=384.00KiB
GlobalReserve, single: total=5.50MiB, used=0.00B
"""
RAID0 = {"data": "raid0", "system": "raid1", "metadata": "raid1"}


def test_profiles_as_the_tool_tells_them():
    assert profiles_in(SAID) == RAID0
    assert profiles_in("Data, single: total=8.00MiB, used=0.00B\n" + SAID)["data"] == "single+raid0", "half converted"
    assert profiles_in("Data+Metadata, DUP: total=1.00GiB, used=1.00MiB\n") == {"data+metadata": "dup"}


def test_a_profile_that_did_not_take_fails_the_trial():
    check_profiles("-d raid0 -m RAID1", RAID0)
    check_profiles("", RAID0)
    check_profiles("-M -d dup -m dup", {"data+metadata": "dup"})
    with pytest.raises(TrialError, match="btrfs profile of data: asked for raid1, it is raid0"):
        check_profiles("-d raid1 -m raid1", RAID0)
    with pytest.raises(TrialError, match="btrfs profile of data: asked for raid0, it is single\\+raid0"):
        check_profiles("-d raid0", {"data": "single+raid0"})


@given(st.integers(0, 2**SEED_BITS - 1), st.integers(0, 2**SEED_BITS - 1), st.integers(0, 1), st.integers(0, 1))
def test_no_two_disks_share_a_seed_whatever_their_trials(seed, other, number, of_other):
    assert seed_of(seed, 0) == seed, "with one disk nothing changes"
    assert (seed_of(seed, number) == seed_of(other, of_other)) == ((seed, number) == (other, of_other))
    assert seed_of(seed, number) < 2**63


def test_lateness_is_that_of_the_later_disk():
    one, other = {"count": 10, "p99": 5, "max": 9}, {"count": 3, "p99": 6, "max": 8}
    assert latest([one, other]) == {"count": 13, "p99": 6, "max": 9}
