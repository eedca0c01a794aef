"""What every undo is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Undo(ABC):
    """Undoes one change."""

    WHAT: ClassVar[str]  # what ``apply`` does, by the fields of ``self``

    @abstractmethod
    def apply(self) -> bool:
        """Undo it if it is there. Returns whether anything had to be done. Raises ``HostError``."""

    def describe(self) -> str:
        """What ``apply`` does, as ``restore`` says it."""
        return self.WHAT.format(self=self)


def boot_id() -> str:
    """Which boot this is: what a reboot has undone must not be undone to another device of the same name."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
