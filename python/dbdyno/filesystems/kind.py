"""The contract of a filesystem: what is known of one before any is touched."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
        return [*self.command, *options.split(), *(self.known_by(uuid) if uuid else ())]

    def is_damage(self, code: int) -> bool:
        """Whether an exit code of its checker says that the filesystem is damaged, and not that it can't be checked."""
        return any(code & bit for bit in self.damage)

    def known_by(self, uuid: str) -> Sequence[str]:
        """The arguments that give it a UUID."""
        return ["-U", uuid]

    def devices_min(self, options: str) -> int:
        """How many devices it needs, made with these options."""
        return 1

    def flag_mistake(self, flag: str, value: str) -> str | None:
        """What is wrong with the value of a flag of mkfs; ``None`` if nothing."""
        allowed = self.flags[flag]
        if isinstance(allowed, re.Pattern):
            return None if allowed.fullmatch(value) else f"holds {value!r}, which is no value of {flag}"
        for option in value.split(","):
            if not fits(option, allowed):
                return f"holds {option!r}; {flag} may give {', '.join(sorted(allowed))}"
        return None

    def mounts_with(self) -> frozenset[str]:
        """All mount options that a study may give."""
        return ANY_MOUNT | self.mount_options
