"""The page cache: what it holds of the data is dropped, so that every trial starts from the device."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.stack.layer import StackContext
from dbdyno.stack.tools import run_tool


@dataclass(frozen=True)
class PageCache:
    """Drops the data's own pages; everybody else's on this host are left alone."""

    name: str = "page_cache"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The data cold, and how much of it is not: what stands in memory by itself can't be dropped."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        files = sorted(path for path in below.directory.rglob("*") if path.is_file() and not path.is_symlink())
        for path in files:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(handle)  # only clean pages can be dropped
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
        yield below.raised(self.name, {"data_cached_bytes": cached_bytes(files)})


def cached_bytes(files: list[Path]) -> int | None:
    """Bytes of files that lie in the page cache; ``None`` where that is unknown."""
    try:
        said = run_tool(["fincore", "--bytes", "--raw", "--noheadings", "--output", "RES", *map(str, files)])
    except TrialError:
        return None
    return sum(int(line) for line in said.split())
