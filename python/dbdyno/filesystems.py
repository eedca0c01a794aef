"""The filesystems: the contract of a kind, and ext2 to ext4, XFS, btrfs, ZFS and tmpfs by it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

MIB = 1024**2


def words(text: str) -> frozenset[str]:
    """A set written as a line."""
    return frozenset(text.split())


Values = re.Pattern[str] | frozenset[str]

# How the value of a flag of mkfs looks. No device and no file can be meant by any of these.
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?[A-Za-z]{0,3}")  # 4096, 64k, 16MiB
NAME = re.compile(r"\w[\w.-]*")
NAMES = re.compile(r"\^?\w[\w.-]*(,\^?\w[\w.-]*)*")  # of features, some of them off

# What follows may be said of any filesystem: the kernel's own flags of a mount, none of which names anything. Not suid
# and dev: nothing that dbdyno mounts gives anybody rights.
ANY_MOUNT = words("""
    defaults rw async sync dirsync atime noatime diratime nodiratime relatime norelatime strictatime nostrictatime
    lazytime nolazytime nosuid nodev exec noexec auto nouser iversion noiversion
    """)


def fits(option: str, allowed: Iterable[str]) -> bool:
    """Whether an option is among those allowed, its value with it.

    ``noatime`` has none; ``commit=#`` a number or a size; ``compress=zlib|zstd`` one of these words, with a level after
    a colon if any.
    """
    name, is_, value = option.partition("=")
    for pattern in allowed:
        known, has_value, values = pattern.partition("=")
        if known == name and is_ == has_value:
            word, colon, level = value.partition(":")
            a_word = word in values.split("|") and (level.isdecimal() if colon else True)
            if NUMBER.fullmatch(value) if values == "#" else a_word:
                return True
    return False


@dataclass(frozen=True)
class Kind:
    """One filesystem. A subclass says what is peculiar to it; nothing here runs a program.

    dbdyno runs mkfs and mount as root, and a study is untrusted text. So the options that it may give are listed here
    with the values that each may have. Whatever names a device, a file, a place on the device or an owner, steers mount
    itself, or lets an error of the filesystem stop the host is not among them.
    """

    name: str  # as a study, mount and /proc/filesystems call it
    program: str  # that makes it
    package: str  # of Debian and Ubuntu, which holds that program
    command: tuple[str, ...] = ()  # that makes it, without questions; options and device follow
    size_min: int = 64 * MIB  # bytes of the smallest device on which data can be prepared
    # Of mkfs, that a study may give: how the value looks, or which options may stand in it, as ``fits`` has them.
    flags: Mapping[str, Values] = field(default_factory=dict)
    flags_alone: frozenset[str] = frozenset()
    trying: tuple[str, ...] = ()  # of mkfs: look at all options and make nothing; none where it has no such flag
    check: tuple[str, ...] = ()  # that looks for damage and mends nothing; the device follows; none where it has none
    as_it_is: str = "ro"  # mount options that show it without replaying its journal, so that nothing is written
    damage: frozenset[int] = frozenset({1})  # bits of that program's exit code that say that it found some
    devices_max: int = 1  # on how many devices together it can stand
    mount_options: frozenset[str] = frozenset()  # that a study may give, beside those of any filesystem
    mountable: bool = True  # whether it takes mount options
    usual: bool = True  # whether a host that lacks it is found wanting
    unlisted: frozenset[str] = field(default_factory=frozenset)  # mount options the kernel takes but does not list

    def making(self, options: str, uuid: str | None) -> list[str]:
        """The command line up to the device; ``uuid`` is what the filesystem is to be known by."""
        return [*self.command, *options.split(), *(self.uuid_arguments(uuid) if uuid else ())]

    def is_damage(self, code: int) -> bool:
        """Whether an exit code of its checker says that the filesystem is damaged, and not that it can't be checked."""
        return any(code & bit for bit in self.damage)

    def uuid_arguments(self, uuid: str) -> Sequence[str]:
        """The arguments that give it a UUID."""
        return ["-U", uuid]

    def devices_min(self, options: str) -> int:
        """How many devices it needs, made with these options."""
        return 1

    def flag_mistake(self, flag: str, value: str) -> str | None:
        """What is wrong with the value of a flag of mkfs; ``None`` if nothing."""
        allowed = self.flags[flag]
        if isinstance(allowed, re.Pattern):
            return None if allowed.fullmatch(value) else f"holds {value!r}, which is not a value of {flag}"
        for option in value.split(","):
            if not fits(option, allowed):
                return f"holds {option!r}; {flag} may give {', '.join(sorted(allowed))}"
        return None

    def mounts_with(self) -> frozenset[str]:
        """All mount options that a study may give."""
        return ANY_MOUNT | self.mount_options


# ext2, ext3, ext4: one program makes them all.


# Lazy initialisation would write in the background while the trial measures.
NOT_LAZY = "lazy_itable_init=0,lazy_journal_init=0"

_FLAGS: dict[str, Values] = {
    **dict.fromkeys(words("-b -C -g -G -i -I -m -N"), NUMBER),
    "-L": NAME,
    "-O": NAMES,
    "-E": words("desc_size=# discard nodiscard lazy_itable_init=# lazy_journal_init=# num_backup_sb=# "
                "orphan_file_size=# packed_meta_blocks=# resize=# stride=# stripe_width=# stripe-width=#"),
    "-J": words("fast_commit_size=# size=#"),
}  # fmt: skip
# Not errors=panic, which is the host's.
_MOUNT = words("""
    acl noacl auto_da_alloc noauto_da_alloc barrier nobarrier barrier=0|1 block_validity noblock_validity commit=#
    data=journal|ordered|writeback data_err=abort|ignore delalloc nodelalloc dioread_lock dioread_nolock discard
    nodiscard errors=continue|remount-ro init_itable init_itable=# noinit_itable inode_readahead_blks=#
    journal_async_commit journal_checksum nojournal_checksum journal_ioprio=# max_batch_time=# max_dir_size_kb=#
    min_batch_time=# mb_optimize_scan=# nombcache prefetch_block_bitmaps no_prefetch_block_bitmaps stripe=# user_xattr
    nouser_xattr
    """)
_UNLISTED = words("barrier barrier=1 delalloc data=ordered commit=5")


# man 8 e2fsck: 4, errors are left; 8, it can't go on, as with a superblock that it does not know.
_DAMAGE = frozenset({4, 8})


class Ext(Kind):
    """One of the three."""

    def making(self, options: str, uuid: str | None) -> list[str]:
        """Of several -E only the last counts, so they are put together with our own."""
        others: list[str] = []
        extended = [NOT_LAZY]
        words = iter(options.split())
        for word in words:
            if word.startswith("-E"):
                extended.append(word[2:] or next(words))
            else:
                others.append(word)
        return [*super().making(" ".join(others), uuid), "-E", ",".join(extended)]


def _ext(name: str, *, usual: bool) -> Ext:
    command = (f"mkfs.{name}", "-q", "-F")
    return Ext(
        name,
        command[0],
        "e2fsprogs",
        command,
        trying=("-n",),
        check=("e2fsck", "-fn"),
        as_it_is="ro" if name == "ext2" else "ro,noload",
        damage=_DAMAGE,
        flags=_FLAGS,
        mount_options=_MOUNT,
        unlisted=_UNLISTED,
        usual=usual,
    )


EXT2, EXT3, EXT4 = _ext("ext2", usual=False), _ext("ext3", usual=False), _ext("ext4", usual=True)


# xfs.


class _Xfs(Kind):
    def uuid_arguments(self, uuid: str) -> Sequence[str]:
        return ["-m", f"uuid={uuid}"]


XFS = _Xfs(
    "xfs",
    "mkfs.xfs",
    "xfsprogs",
    ("mkfs.xfs", "-q", "-f"),
    trying=("-N",),
    check=("xfs_repair", "-n"),
    as_it_is="ro,norecovery",
    damage=frozenset({1, 2}),  # 2: the log is not clean, though it was mounted and unmounted
    size_min=300 * MIB,
    # A UUID is dbdyno's to give; a log or a realtime part elsewhere would be on another device.
    flags={
        "-b": words("size=# log=#"),
        "-d": words(
            "agcount=# agsize=# concurrency=# cowextsize=# extszinherit=# noalign size=# su=# sunit=# sw=# swidth=#"
        ),
        "-i": words("align=# attr=# exchange=# maxpct=# nrext64=# perblock=# projid32bit=# size=# sparse=#"),
        "-l": words("agnum=# concurrency=# lazy-count=# size=# su=# sunit=# version=#"),
        "-L": NAME,
        "-m": words("autofsck=# bigtime=# crc=# finobt=# inobtcount=# reflink=# rmapbt=#"),
        "-n": words("ftype=# size=# version=# version=ci parent=#"),
        "-r": words("extsize=#"),
        "-s": words("size=# log=#"),
    },
    flags_alone=words("-K"),
    mount_options=words("""
        allocsize=# attr2 noattr2 barrier nobarrier discard nodiscard filestreams ikeep noikeep inode32 inode64 largeio
        nolargeio logbsize=# logbufs=# noalign noquota sunit=# swalloc swidth=# wsync
        """),
    unlisted=words("attr2 inode64 noquota"),
)


# btrfs, on one device or two.


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
    # It is not mounted, says its caller; btrfs would look for itself, and fail at any dead mount of the host.
    check=("btrfs", "check", "--readonly", "--force"),
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


# ZFS: in a virtual machine by its kernel's OpenZFS; on the host by the program zfs-fuse, for which no kernel module is
# needed, and in reach of which no pool of the host's is.


# Of a pool, and of its filesystem: what may be said of how data is stored; never where it is mounted, or shared.
POOL_PROPERTIES = words("ashift")
PROPERTIES = words("compression recordsize atime logbias primarycache checksum copies")
# Of the kernel's OpenZFS, and not of zfs-fuse (pool version 23).
OF_OPENZFS = words("sync relatime redundant_metadata dnodesize direct prefetch xattr")
OF_OPENZFS_POOL = words("autotrim")
_REFUSED = words("acltype special_small_blocks encryption keyformat keylocation")  # OpenZFS alone has these, too
_COMPRESSIONS_OF_OPENZFS = re.compile(r"(lz4|zstd(-fast)?)(-\d+)?")
# What lies in it gives nobody rights; nothing remembers the pool beside its disk.
_OF_OPENZFS_ALWAYS = ("-O", "setuid=off", "-O", "devices=off", "-o", "cachefile=none")
ASHIFT = "12"  # blocks of 4 KiB, the sector of an emulated disk


@dataclass(frozen=True)
class ZfsKind(Kind):
    """That of zfs-fuse, or OpenZFS."""

    is_openzfs: bool = False

    @property
    def pool_properties(self) -> frozenset[str]:
        """Those that a study may give to the pool."""
        return POOL_PROPERTIES | (OF_OPENZFS_POOL if self.is_openzfs else frozenset())

    def making(self, options: str, uuid: str | None) -> list[str]:
        """``zpool create``, with the disk's own sector size unless the study gives one; a pool takes no UUID."""
        assert uuid is None  # noqa: S101  (a rule of the study format: not on real disks)
        properties = dict(self.properties(options))
        default = [] if "ashift" in properties else ["-o", f"ashift={ASHIFT}"]
        always = _OF_OPENZFS_ALWAYS if self.is_openzfs else ()
        return [*self.command, *default, *options.split(), *always]

    def flag_mistake(self, flag: str, value: str) -> str | None:
        """A property that is none of those above."""
        known = self.pool_properties if flag == "-o" else PROPERTIES | (OF_OPENZFS if self.is_openzfs else frozenset())
        name, _, setting = value.partition("=")
        is_newer = name in OF_OPENZFS | OF_OPENZFS_POOL | _REFUSED
        is_newer |= name == "compression" and _COMPRESSIONS_OF_OPENZFS.fullmatch(setting) is not None
        if is_newer and not self.is_openzfs:
            lacking = value if name == "compression" else name
            hint = "; commits that are not flushed: innodb_flush_log_at_trx_commit = 0" if name == "sync" else ""
            return (
                f"holds {value!r}, which only the kernel's OpenZFS has; on the host dbdyno runs zfs-fuse, which has no "
                f'{lacking}. For OpenZFS boot a kernel that has it: stack.kernel = "debian-6.1"{hint}'
            )
        if name not in known or not NAME.fullmatch(setting):
            return f"holds {value!r}; {flag} may give {', '.join(f'{entry}=...' for entry in sorted(known))}"
        return None

    @staticmethod
    def properties(options: str) -> Iterator[tuple[str, str]]:
        """Each property that a study's options give, with its value."""
        for word in options.split():
            name, is_, value = word.removeprefix("-o").removeprefix("-O").partition("=")
            if is_:
                yield name, value


ZFS = ZfsKind(
    "zfs",
    "zfs-fuse",
    "zfs-fuse",
    ("zpool", "create", "-f"),
    size_min=256 * MIB,
    flags={"-o": POOL_PROPERTIES, "-O": PROPERTIES},
    mountable=False,
    usual=False,
)
OPENZFS = replace(
    ZFS,
    program="",
    package="",
    is_openzfs=True,
    flags={"-o": POOL_PROPERTIES | OF_OPENZFS_POOL, "-O": PROPERTIES | OF_OPENZFS},
)


# tmpfs: memory in place of a device, as a ceiling for all that stand on one.


TMPFS = Kind(
    "tmpfs",
    "mount",
    "mount",
    mount_options=words("huge=always|never|within_size|advise inode32 inode64 noswap nr_inodes=#"),
    unlisted=words("huge=never"),
)


# All filesystems by name.


KINDS: dict[str, Kind] = {kind.name: kind for kind in (EXT2, EXT3, EXT4, XFS, BTRFS, ZFS, TMPFS)}
BY_FUSE = ZFS.name  # which no mount of the kernel's makes
IN_MEMORY = TMPFS.name  # which stands on no device
