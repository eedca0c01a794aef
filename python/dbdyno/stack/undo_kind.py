"""What every undo is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Undo(ABC):
    """Undoes one change."""

    @abstractmethod
    def apply(self) -> bool:
        """Undo it if it is there. Returns whether anything had to be done. Raises ``HostError``."""

    @abstractmethod
    def said(self) -> str:
        """What ``apply`` does, as ``restore`` says it."""
