"""Data prepared once and put in place for every trial, where the device can't restore its blocks by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.stack.emulated_disk import EmulatedDisk
from dbdyno.stack.layer import Stand
from dbdyno.stack.tools import run_tool


@dataclass(frozen=True)
class Tree:
    """A folder of prepared data, copied onto whatever is below."""

    folder: Path
    name: str = "data"

    def keep(self, directory: Path) -> None:
        """Save what lies in ``directory`` as the prepared data."""
        self.folder.mkdir(parents=True)
        run_tool(["cp", "--archive", "--reflink=auto", "--sparse=auto", f"{directory}/mysql", str(self.folder)],
                 timeout_seconds=3600)  # fmt: skip

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The data in place and on the device, so that the trial does not pay for the copying."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        # Not by reflink: the measured run would pay for each block's first write.
        run_tool(["cp", "--archive", "--reflink=never", "--sparse=auto", f"{self.folder}/mysql", str(below.directory)],
                 timeout_seconds=3600)  # fmt: skip
        run_tool(["sync", "--file-system", str(below.directory)], timeout_seconds=3600)
        yield below.raised(self.name, {"from": "tree"})


@dataclass(frozen=True)
class Keep:
    """Keeps what the layers above have made, once they are lowered."""

    tree: Tree
    name: str = "keep"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """Nothing on the way up; on the way down the data is saved, unless something failed."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        yield below
        self.tree.keep(below.directory)


@dataclass(frozen=True)
class Image:
    """Prepared data: the content of an emulated disk, or a tree."""

    disk: EmulatedDisk | None
    tree: Tree | None
