"""What is said of two devices together, and what btrfs's own tool says of how data lie on them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import TrialError
from dbdyno.stack.btrfs import check_profiles, profiles_in
from dbdyno.stack.layers.device import SEED_BITS, latest, seed_of

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
