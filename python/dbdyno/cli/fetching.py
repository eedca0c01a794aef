"""How far a download is, on standard error."""

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from rich.console import Console

if TYPE_CHECKING:
    from rich.status import Status


class Fetching:
    """A line that changes on a terminal; elsewhere a line for each step."""

    def __init__(self, name: str, about_mb: int) -> None:
        self._name, self._about_mb = name, about_mb
        self._text = ""
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._status: Status | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._closing.enter_context(self._console.status(self._name))
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def step(self, text: str) -> None:
        """What begins now."""
        self._text = text
        if self._status:
            self._status.update(f"{self._name}: {text}")
        else:
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)

    def size(self, downloaded_bytes: int) -> None:
        """How much has been downloaded."""
        if self._status:
            so_far = f"{downloaded_bytes / 1e6:.0f} of about {self._about_mb} MB"
            self._status.update(f"{self._name}: {self._text}, {so_far}")
