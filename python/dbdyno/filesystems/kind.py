"""The contract of a filesystem: what is known of one before any is touched."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MIB = 1024**2


@dataclass(frozen=True)
class Kind:
    """One filesystem. A subclass says what is peculiar to it; nothing here runs a program.

    dbdyno runs mkfs and mount as root, and a study is untrusted text. So the flags that it may give are listed here,
    and whatever could reach another device or file is not among them.
    """

    name: str  # as a study, mount and /proc/filesystems call it
    program: str  # that makes it
    package: str  # of Debian and Ubuntu, which holds that program
    command: tuple[str, ...] = ()  # that makes it, without questions; options and device follow
    size_min: int = 64 * MIB  # bytes of the smallest device on which data can be prepared
    flags_with_value: frozenset[str] = frozenset()  # of mkfs, that a study may give
    flags_alone: frozenset[str] = frozenset()
    devices_max: int = 1  # on how many devices together it can stand
    mount_refused: frozenset[str] = frozenset()  # mount options that are dbdyno's to say for this one
    mountable: bool = True  # whether it takes mount options
    usual: bool = True  # whether a host that lacks it is found wanting
    unlisted: frozenset[str] = field(default_factory=frozenset)  # mount options the kernel takes but does not list

    def making(self, options: str, uuid: str | None) -> list[str]:
        """The command line up to the device; ``uuid`` is what the filesystem is to be known by."""
        return [*self.command, *options.split(), *(self.known_by(uuid) if uuid else ())]

    def known_by(self, uuid: str) -> Sequence[str]:
        """The arguments that give it a UUID."""
        return ["-U", uuid]

    def devices_min(self, options: str) -> int:  # noqa: ARG002  (most need one)
        """How many devices it needs, made with these options."""
        return 1

    def values_mistake(self, flag: str, value: str) -> str | None:  # noqa: ARG002  (most have none)
        """What is wrong with the value of a flag, beyond what is wrong everywhere; ``None`` if nothing."""
        return None


def words(text: str) -> frozenset[str]:
    """A set written as a line."""
    return frozenset(text.split())
