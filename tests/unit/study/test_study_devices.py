"""``[stack] devices``: what can stand on two emulated disks, and what is refused with its remedy."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.filesystems import BTRFS, mkfs_profiles
from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import make_plan, prices_for
from dbdyno.store.records import Run

TWO = ('size = "1GiB"', 'size = "1GiB"\ndevices = 2')
BTRFS_ = ('filesystem = "ext4"', 'filesystem = "btrfs"')
ONE_DEVICE = ('["hdd-7200", "ssd-sata"]', '"ssd-sata"')
NO_BASELINE = ('baseline = { device = "hdd-7200" }\n', "")
COST = ("[design]", '[cost]\ncurrency = "EUR"\n[cost."ssd-sata"]\nsource = "a shop"\nprice = 60\n[design]')
MKFS = ("[server.settings]", '[filesystem]\nmkfs = "{}"\n[server.settings]')
GATHERED = "or make one device of them by stack.array or stack.volume"
ONE_ONLY = f"but ext4 stands on one device. Leave it out, or give stack.filesystem: btrfs; {GATHERED}"
EMULATED = "is 2, which is for emulated disks. Leave it out, or name an emulated drive"

REFUSED = {
    "another filesystem": ([TWO], f":8: stack.devices: is 2, {ONE_ONLY}"),
    "a level of it": ([TWO, BTRFS_, ('"btrfs"', '["btrfs", "ext4"]')], f":8: stack.devices: is 2, {ONE_ONLY}"),
    "a level of devices": (
        [TWO, ("devices = 2", "devices = [\n1,\n2]")],
        f":10: stack.devices: is 2, {ONE_ONLY}",
    ),
    "three": (
        [TWO, BTRFS_, ("devices = 2", "devices = 3")],
        f":8: stack.devices: is 3, but btrfs stands on at most 2 devices. Leave it out, or give 2; {GATHERED}",
    ),
    "too many": ([TWO, BTRFS_, ("devices = 2", "devices = 17")], ":8: stack.devices: is 17; it must be at most 16"),
    "a real disk": (
        [TWO, BTRFS_, ONE_DEVICE, NO_BASELINE, ('size = "1GiB"\n', ""), ('"ssd-sata"', '"/dev/disk/by-id/x"')],
        f":7: stack.devices: {EMULATED}",
    ),
    "the block trace": (
        [TWO, BTRFS_, ("[design]", "[probes]\ntrace = true\n[design]")],
        ":21: probes.trace: follows one device, not 2. Leave it out, or give stack.devices = 1",
    ),
    "a mirror of one": (
        [BTRFS_, (MKFS[0], MKFS[1].format("-d raid1 -m dup"))],
        ":14: filesystem.mkfs: asks for a profile that needs 2 devices; there is 1. Give stack.devices = 2",
    ),
    "three copies": (
        [TWO, BTRFS_, (MKFS[0], MKFS[1].format("-m raid1c3"))],
        ":15: filesystem.mkfs: asks for a profile that needs 3 devices; there is 2. Name another profile",
    ),
    "prices": ([TWO, BTRFS_, COST], ":20: cost: counts one disk; leave it out, or give stack.devices = 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_line_field_and_remedy(case, load):
    changes, said = REFUSED[case]
    with pytest.raises(UserError) as refused:
        load(*changes)
    lines = str(refused.value).splitlines()
    assert any(line.endswith(f"study.toml{said}") for line in lines), lines


def test_here_has_none(load):
    here = [TWO, ONE_DEVICE, NO_BASELINE, ('"ssd-sata"', '"here"')]
    with pytest.raises(UserError, match=f"stack.devices: {EMULATED}"):
        load(*here)


def test_a_factor_like_others_and_data_of_its_own_for_each(load):
    study = load(TWO, BTRFS_, ("devices = 2", "devices = [1, 2]"))
    specs = [spec for _, spec in study.combinations()]
    assert [spec.stack.devices for spec in specs] == [1, 2, 1, 2]
    keys = [image_key(spec, "a build", {}) for spec in specs]
    assert keys[:2] == keys[2:], "the drive's model is not in it"
    assert keys[0] != keys[1]


def test_a_run_on_two_is_not_priced_afterwards(load):
    priced = load(BTRFS_, COST)
    study = load(TWO, BTRFS_)
    plan = make_plan(study)
    run = Run("", "", plan.design, [], [], {}, {}, "done", [])
    run = replace(run, study=plan.study.raw)
    with pytest.raises(UserError, match="its \\[cost\\] counts one disk, but trials of this run stood on two"):
        prices_for(priced, run)


PROFILES = st.sampled_from(["single", "dup", "raid0", "RAID1", "raid10"])


@given(PROFILES, PROFILES, st.booleans(), st.booleans())
def test_profiles_are_read_as_mkfs_reads_them(data, metadata, joined, more):
    options = f"-d{'' if joined else ' '}{data} {'--csum xxhash -n 16384 ' if more else ''}-m {metadata}"
    assert mkfs_profiles(options) == {"data": data.lower(), "metadata": metadata.lower()}
    assert BTRFS.devices_min(options) == (2 if {"RAID1", "raid10"} & {data, metadata} else 1)


def test_of_two_the_last_counts_and_none_is_none():
    assert mkfs_profiles("-d raid0 -d raid1") == {"data": "raid1"}
    assert mkfs_profiles("--mixed -d") == {}
    assert BTRFS.devices_min("") == 1
