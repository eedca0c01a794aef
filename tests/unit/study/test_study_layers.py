"""``[array]``, ``[cache]``, ``[encryption]`` and ``[volume]``: what is between disks and filesystem."""

from pathlib import Path

import pytest

from dbdyno.errors import TrialError, UserError
from dbdyno.stack.between import has_module
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.kinds.own import between_of, block_layers
from dbdyno.stack.layers.array import rebuilt_share
from dbdyno.stack.layers.cache import bucket_bytes, bytes_of, cache_figures, metadata_sectors, observed_cache
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
CACHE = stack('cache = "writecache"\ndisks.cache = { device = "nvme", size = "64MiB" }')

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
    "a cache without a disk": (
        [stack('cache = "writecache"')],
        r"stack.cache: is \"writecache\", and needs a disk; give a section \[stack.disks.cache\] with device and size",
    ),
    "a disk of a cache that has no size": (
        [CACHE, (', size = "64MiB"', "")],
        "stack.disks.cache.size: is missing; an emulated disk needs one",
    ),
    "a filesystem on the disk of a cache": (
        [CACHE, ('"64MiB"', '"64MiB", filesystem = "ext4"')],
        'stack.disks.cache.filesystem: is "ext4"; a cache has the disk itself, without a filesystem. Leave it out',
    ),
    "a log on the disk of a cache": (
        [CACHE, section('[server.place]\ninnodb_log = "cache"')],
        'server.place.innodb_log: is "cache", the disk that stack.cache takes; give one of another name',
    ),
    "a cache of several": (
        [CACHE, ('cache = "writecache"', 'cache = "writecache"\ndevices = 2')],
        'stack.cache: is "writecache" over 2 devices; give stack.array, which makes one of them',
    ),
    "marks of another cache": (
        [CACHE, ('"writecache"', '"dm-cache"'), section("[cache]\nhigh_watermark = 60")],
        "cache.high_watermark: is of writecache; dm-cache has none. Leave it out, or give both in a level of",
    ),
    "marks upside down": (
        [CACHE, section("[cache]\nhigh_watermark = 40")],
        r"cache.low_watermark: is 45, above cache.high_watermark \(40\); give less",
    ),
    "marks of nothing": (
        [section("[cache]\nmax_age = 5")],
        'cache.max_age: is for stack.cache, which is "none"; leave',
    ),
    "a cache before a file": (
        [CACHE, ONE_DEVICE, NO_BASELINE, ('"ssd-sata"', '"file:/srv/bench"')],
        'stack.cache: is "writecache", and there is no disk for it here: the data lie in a file; name an emulated or',
    ),
    "a power cut of a cache": (
        [CACHE, ("[design]", "[crash]\n[design]")],
        'stack.cache: is "writecache"; a power cut is of one plain disk',
    ),
    "another cache": ([stack('cache = "lvmcache"')], 'stack.cache: is "lvmcache"; allowed are none, writecache, dm-c'),
    "what only another cache bypasses": (
        [CACHE, section('[cache]\nsequential_cutoff = "0B"')],
        "cache.sequential_cutoff: is of bcache; writecache has none. Leave it out, or give both in a level of",
    ),
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


def test_a_cache_has_the_disk_of_its_name_and_its_settings_are_not_in_the_data(load):
    marks = ("[server.settings]", "[cache]\nhigh_watermark = 60\n[server.settings]")
    layers = ('cache = "writecache"', 'cache = "writecache"\nencryption = "luks"\nkernel = "debian-6.12"')
    keys = []
    for changes in ([layers], [layers, marks]):
        ((_, spec),) = load(CACHE, ONE_DEVICE, NO_BASELINE, *changes).combinations()
        keys.append(KINDS[spec.stack.kind].planned_key(spec))
        assert [part.FIELD for part in between_of(spec)] == ["cache", "encryption"]
        (fast,) = spec.by_disk.values()
        assert (fast.stack.device, fast.stack.filesystem, fast.stack.cache) == ("nvme", None, "none")
        assert [layer.name for layer in block_layers(fast, raising(install=False), fresh=False)] == ["queue"]
        assert block_layers(fast, raising(install=True), fresh=True) == []
        assert KINDS["emulated"].image_place(spec) == "ext4 on luks on writecache"
    assert keys[0] == keys[1]
    assert "made: a cache before the disk of each trial" in "\n".join(KINDS["emulated"].touches([spec], {}))


def raising(*, install):
    """How a stack is raised, for what asks that alone."""
    return Raising(Path("log"), print, install=install)


def test_what_device_mapper_says_of_a_cache_is_read():
    table = "0 1048576 writecache s 254:16 254:0 4096 4 high_watermark 60 low_watermark 45\n"
    before = "0 1048576 writecache 0 32000 32000 0 100 0 7 0 0 0 7 0 3 0\n"
    after = "0 1048576 writecache 0 32000 24000 12 300 50 9007 2 5 0 9000 0 40 0\n"
    assert observed_cache(table, before) == {
        "kind": "writecache", "size_bytes": 32000 * 4096, "high_watermark": 60, "low_watermark": 45,
    }  # fmt: skip
    assert cache_figures(before, after) == {"waiting_share": 0.25, "read_hit_share": 0.25}
    assert cache_figures("0 8 writecache 0 100 100 0\n", "0 8 writecache 0 100 90 0\n") == {"waiting_share": 0.1}
    table = "0 1048576 cache 253:0 253:1 254:0 128 1 writeback smq 0\n"
    status = "0 1048576 cache 8 14/2048 128 {}/1952 {} 20 5 1 0 3 {} 3 metadata2 writeback no_discard_passdown "
    status += "2 migration_threshold 2048 smq 0 rw - \n"
    assert observed_cache(table, status.format(0, 0, 0)) == {
        "kind": "dm-cache", "size_bytes": 1952 * 65536, "cache_mode": "writeback", "policy": "smq",
    }  # fmt: skip
    figures = cache_figures(status.format(0, 0, 0), status.format(99, 30, 488))
    assert figures == {"waiting_share": 0.25, "read_hit_share": 1.0}
    for line in ("0 8 writecache -5 100 100 0\n", "0 8 cache Fail\n", "0 8 linear\n", "\n"):
        with pytest.raises(TrialError, match="dmsetup status: expected a cache that works, it is "):
            observed_cache(table, line)


def test_what_dm_cache_notes_fits_into_the_room_for_it():
    for size in (64 << 20, 1 << 30, 1 << 40):
        room = 512 * metadata_sectors(size // 512)
        assert room % (1 << 20) == 0
        assert 4 * 2**20 + 16 * (size - room) // 65536 <= room < 0.1 * size


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


def test_sizes_of_bcache():
    assert [bytes_of(text) for text in ("0", "0.0k", "64.0k", "4.0M", "1.5G")] == [0, 0, 65536, 4 << 20, 3 << 29]
    with pytest.raises(TrialError, match="expected a size of bcache's, it is 'unknown'"):
        bytes_of("unknown")
    assert bucket_bytes(8 << 30) == 512 * 1024
    assert bucket_bytes(64 << 20) == 64 * 1024
    assert (100 << 20) // bucket_bytes(100 << 20) >= 1024, "the kernel wants more than 512"
