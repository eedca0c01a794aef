"""Prepared data: made once, and the same for every trial."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from dbdyno.stack.layer import Layer


class Image:
    """What the layer of a stack's data works from."""

    def is_gone(self) -> bool:
        """Whether what held it has ended by itself."""
        return False


class KeptImage(Image, ABC):
    """Data that are prepared once, and kept from run to run as files in a folder."""

    @abstractmethod
    def loaded(self, kept: Path) -> Self:
        """The image with what an earlier run kept."""

    @abstractmethod
    def finish(self) -> None:
        """It is complete; every trial starts from what it is now."""

    @abstractmethod
    def kept_bytes(self) -> int:
        """What keeping it takes."""

    @abstractmethod
    def save(self, kept: Path) -> None:
        """Keep it; this run goes on with its own."""

    @abstractmethod
    def layers(self, *, install: bool) -> list[Layer]:
        """What puts it in place on a filesystem; with ``install`` what takes it from there."""
