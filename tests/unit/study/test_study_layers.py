"""``[array]``, ``[encryption]`` and ``[volume]``: what can be between disks and filesystem, and what is refused."""

import pytest

from dbdyno.errors import UserError
from dbdyno.stack.between import has_module
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.own import between_of
from dbdyno.stack.layers.array import rebuilt_share
from dbdyno.stack.layers.encryption import observed_table
from dbdyno.stack.layers.volume import observed_tables

SIZE = 'size = "1GiB"'
ONE_DEVICE = ('["hdd-7200", "ssd-sata"]', '"ssd-sata"')
NO_BASELINE = ('baseline = { device = "hdd-7200" }\n', "")


def stack(text):
    """A change of the study: more in [stack]."""
    return (SIZE, f"{SIZE}\n{text}")


def section(text):
    """A change of the study: a section more."""
    return ("[server.settings]", f"{text}\n[server.settings]")


RAID5 = stack('array = "raid5"\ndevices = 4')
LUKS = stack('encryption = "luks"')

REFUSED = {
    "too few": (
        [stack('array = "raid5"\ndevices = 2')],
        "stack.devices: is 2; raid5 needs 3 or more. Give stack.devices",
    ),
    "stripes of one": ([stack('volume = "striped"')], "stack.devices: is 1; a striped volume needs 2 or more"),
    "nothing to gather": (
        [stack('encryption = "luks"\ndevices = 2')],
        'stack.encryption: is "luks" over 2 devices; give',
    ),
    "stripes of an array": (
        [stack('array = "raid5"\ndevices = 4\nvolume = "striped"')],
        'stack.volume: is "striped", and what is below it is one device; give "linear" or "thin"',
    ),
    "without a disk of none to spare": (
        [stack('array = "raid0"\ndevices = 2'), section('[array]\nstate = "degraded"')],
        'array.state: is "degraded", but raid0 can\'t do without a disk. Leave it out, or give another level',
    ),
    "chunks of a mirror": (
        [stack('array = "raid1"\ndevices = 2'), section('[array]\nchunk = "64KiB"')],
        "array.chunk: has no effect on raid1, which has no chunks; leave it out",
    ),
    "no power of two": ([RAID5, section('[array]\nchunk = "96KiB"')], "array.chunk: .*must be a power of two"),
    "a rebuild of nothing": (
        [RAID5, section("[array]\nsync_speed_min = 100")],
        "array.sync_speed_min: has no effect on an array that is clean; leave it out, or give array.state",
    ),
    "a cipher of nothing": (
        [section('[encryption]\ncipher = "aes-xts-plain64"')],
        'encryption.cipher: is for stack.encryption, which is "none"; leave it out, or give both in a level of',
    ),
    "no cipher": (
        [LUKS, section('[encryption]\ncipher = "aes"')],
        "encryption.cipher: .*must be CIPHER-MODE-IV, such as",
    ),
    "a power cut": (
        [LUKS, ("[design]", "[crash]\n[design]")],
        'stack.encryption: is "luks"; a power cut is of one plain',
    ),
    "a real disk": (
        [LUKS, ONE_DEVICE, NO_BASELINE, (f"{SIZE}\n", ""), ('"ssd-sata"', '"/dev/disk/by-id/x"')],
        'stack.encryption: is "luks"; layers between disk and filesystem are on emulated drives and files alone',
    ),
    "a folder": (
        [LUKS, ONE_DEVICE, NO_BASELINE, ('"ssd-sata"', '"here"')],
        "stack.encryption: .*lie in a folder of this host",
    ),
    "zfs": ([LUKS, ('filesystem = "ext4"', 'filesystem = "zfs"')], "stack.encryption: .*zfs stands on the disk itself"),
    "another word": ([stack('array = "raid4"')], 'stack.array: is "raid4"; allowed are none, raid0, raid1, raid5'),
    "what others call it": ([stack('raid = "raid5"')], 'stack.raid: is unknown here.*Did you mean "array"?'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_field_and_remedy(case, load):
    changes, said = REFUSED[case]
    with pytest.raises(UserError, match=said):
        load(*changes)


def test_a_factor_like_others_and_blocks_of_its_own_for_what_is_on_the_disks(load):
    levels = '[levels]\nfactor = "array_at_work"\n[levels.whole]\narray = "raid5"\nstate = "clean"\n'
    levels += '[levels.less]\narray = "raid5"\nstate = "degraded"\n[levels.mirror]\narray = "raid10"\nchunk = "64KiB"\n'
    study = load(stack("devices = 4"), ONE_DEVICE, NO_BASELINE, ("[design]", f"{levels}[design]"))
    specs = [spec for _, spec in study.combinations()]
    assert [(spec.stack.array, spec.array.state) for spec in specs] == [
        ("raid5", "clean"),
        ("raid5", "degraded"),
        ("raid10", "clean"),
    ]
    whole, less, mirror = (KINDS[spec.stack.kind].planned_key(spec) for spec in specs)
    assert whole == less != mirror, "an array's state is not on the disks that a trial begins with"
    assert {spec.stack.filesystem_devices for spec in specs} == {1}
    (part,) = between_of(specs[0])
    assert part.layer(specs[0], fresh=True, key=b"").name == "array"


def test_from_the_disks_up(load):
    study = load(stack('volume = "thin"\nencryption = "luks"\narray = "raid6"\ndevices = 4'), ONE_DEVICE, NO_BASELINE)
    ((_, spec),) = study.combinations()
    assert [part.FIELD for part in between_of(spec)] == ["array", "encryption", "volume"]
    touched = "\n".join(KINDS["emulated"].touches([spec], {}))
    for what in ("assembled: an md array", "mapped: a dm-crypt device", "activated: a logical volume"):
        assert what in touched


def test_a_kernel_without_the_module_is_named_with_one_that_has_it(load, tmp_path):
    study = load(LUKS, ONE_DEVICE, NO_BASELINE)
    ((_, spec),) = study.combinations()
    (part,) = between_of(spec)
    lacking = next(part.needs(spec, tmp_path, "debian-5.10"))
    assert lacking.said == "stack.encryption: kernel debian-5.10 has no module dm-crypt; name another in stack.kernel"
    (tmp_path / "modules.dep").write_text("kernel/drivers/md/dm-crypt.ko.xz: kernel/drivers/md/dm-mod.ko.xz\n")
    (tmp_path / "modules.builtin").write_text("kernel/drivers/md/md-mod.ko\n")
    assert has_module(tmp_path, "dm_crypt")
    assert has_module(tmp_path, "md-mod")
    assert not has_module(tmp_path, "raid456")
    assert all(need.name != "stack.encryption" for need in part.needs(spec, tmp_path, "debian-5.10"))


def test_how_much_is_rebuilt_is_read_of_the_array_asked_for():
    mdstat = (
        "Personalities : [raid6] [raid5] [raid4]\n"
        "md9 : active raid1 sda[0] sdb[1]\n"
        "      [=>...]  recovery = 50.0% (500/1000) finish=1.0min speed=9K/sec\n\n"
        "md12 : active raid5 vdd[4] vda[0]\n"
        "      777216 blocks super 1.2 level 5, 512k chunk, algorithm 2 [4/3] [UUU_]\n"
        "      [>....]  recovery =  2.0% (5184/259072) finish=4.1min speed=1000K/sec\n\n"
        "unused devices: <none>\n"
    )
    assert rebuilt_share(mdstat, "md12") == 5184 / 259072
    assert rebuilt_share(mdstat, "md9") == 0.5
    assert rebuilt_share(mdstat, "md1") == 0.0


def test_what_the_kernel_says_of_a_mapping_is_read():
    keyring = (
        "0 229376 crypt aes-xts-plain64 :64:logon:cryptsetup:1 0 254:0 32768 2 sector_size:4096 no_read_workqueue\n"
    )
    assert observed_table(keyring) == {
        "kind": "luks", "cipher": "aes-xts-plain64", "key_bits": 512, "sector_bytes": 4096, "workqueues": True,
    }  # fmt: skip
    hidden = f"0 229376 crypt aes-cbc-essiv:sha256 {'0' * 64} 0 254:0 32768\n"
    assert observed_table(hidden)["key_bits"] == 256
    assert observed_table(hidden)["sector_bytes"] == 512
    tables = (
        "dbdyno_1-data: 0 212992 striped 4 128 254:0 2048 254:16 2048 254:32 2048 254:48 2048\n"
        "dbdyno_12-data: 0 8 linear 254:0 0\n"
    )
    assert observed_tables(tables, "dbdyno_1") == {
        "kind": "striped", "segments": 1, "size_bytes": 109051904, "stripes": 4, "stripe_bytes": 65536,
    }  # fmt: skip
