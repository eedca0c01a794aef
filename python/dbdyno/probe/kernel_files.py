"""Sources that read files of the kernel's, which are opened once."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from dbdyno.probe.sampler import Source


class KernelFileSource(Source):
    """The files named, open until ``close``: all of them, or none. Raises ``OSError``."""

    bytes_max: ClassVar[int] = 4096  # that are read of each

    def __init__(self, *paths: str | Path) -> None:
        self._files: list[int] = []
        with ExitStack() as opened:
            for path in paths:
                self._files.append(os.open(path, os.O_RDONLY))
                opened.callback(os.close, self._files[-1])
            self._opened = opened.pop_all()

    def read(self) -> Sequence[bytes]:
        """The text of each. Raises ``OSError`` where what it is about has ended."""
        return [os.pread(file, self.bytes_max, 0) for file in self._files]

    def close(self) -> None:
        """Close the files."""
        self._opened.close()
