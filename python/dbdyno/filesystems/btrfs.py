"""btrfs, on one device or two."""

from dbdyno.filesystems.kind import MIB, NAME, NAMES, NUMBER, Kind, words

# What a profile needs to be made, by man 5 btrfs and mkfs.btrfs(8); single, dup and raid0 are made on one device too.
_DEVICES_MIN = {"raid1": 2, "raid5": 2, "raid10": 2, "raid6": 3, "raid1c3": 3, "raid1c4": 4}
_PROFILE_OF = {"-d": "data", "-m": "metadata"}


class _Btrfs(Kind):
    def devices_min(self, options: str) -> int:
        """By the profiles that the options give."""
        return max((_DEVICES_MIN.get(profile, 1) for profile in mkfs_profiles(options).values()), default=1)


def mkfs_profiles(options: str) -> dict[str, str]:
    """The profile of ``data`` and of ``metadata``, as far as mkfs options give them, in lower case; the last counts."""
    profiles, arguments = {}, options.split()
    for place, word in enumerate(arguments):
        if (of := _PROFILE_OF.get(word[:2])) and (value := word[2:] or next(iter(arguments[place + 1 :]), "")):
            profiles[of] = value.lower()
    return profiles


BTRFS = _Btrfs(
    "btrfs",
    "mkfs.btrfs",
    "btrfs-progs",
    ("mkfs.btrfs", "-q", "-f"),
    check=("btrfs", "check", "--readonly"),
    as_it_is="ro,rescue=nologreplay",
    size_min=256 * MIB,
    flags={
        **dict.fromkeys(words("-d -m -L --checksum --csum"), NAME),
        **dict.fromkeys(words("-O -R --features --runtime-features"), NAMES),
        **dict.fromkeys(words("-n -s --nodesize"), NUMBER),
    },
    flags_alone=words("-K -M --mixed --nodiscard"),
    devices_max=2,
    mount_options=words("""
        acl noacl autodefrag noautodefrag barrier nobarrier commit=# compress compress=zlib|lzo|zstd|no compress-force
        compress-force=zlib|lzo|zstd|no datacow nodatacow datasum nodatasum discard nodiscard discard=sync|async
        flushoncommit noflushoncommit max_inline=# metadata_ratio=# nospace_cache space_cache space_cache=v1|v2 ssd
        nossd ssd_spread nossd_spread thread_pool=# treelog notreelog
        """),
    unlisted=words("barrier commit=30 datacow datasum ssd discard=async"),
)
