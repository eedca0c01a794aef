"""Data prepared once and put in place for every trial, where the device can't restore its blocks by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.stack.emulated_disk import EmulatedDisk
from dbdyno.stack.files import FILES
from dbdyno.stack.layer import Stand
from dbdyno.stack.lent_data import LentDatabase
from dbdyno.stack.server import DATA
from dbdyno.stack.tools import run_tool


@dataclass(frozen=True)
class Tree:
    """A folder of prepared data, copied onto whatever is below."""

    folder: Path
    name: str = "data"

    def keep(self, directory: Path) -> None:
        """Save what lies in ``directory`` as the prepared data."""
        self.folder.mkdir(parents=True)
        copy(directory, self.folder, reflink="auto")

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The data in place and on the device, so that the trial does not pay for the copying."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        # Not by reflink: the measured run would pay for each block's first write.
        copy(self.folder, below.directory, reflink="never")
        run_tool(["sync", "--file-system", str(below.directory)], timeout_seconds=3600)
        yield below.raised(self.name, {"from": "tree"})


def copy(source: Path, target: Path, *, reflink: str) -> None:
    """Copy the folders of the server and of a program's own files, as far as they are there; nothing else is ours."""
    folders = [str(source / name) for name in (DATA, FILES) if (source / name).is_dir()]
    if folders:
        command = ["cp", "--archive", f"--reflink={reflink}", "--sparse=auto", *folders, str(target)]
        run_tool(command, timeout_seconds=3600)


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
    """Prepared data: the content of emulated disks, a tree, or a database to be filled with it."""

    disks: tuple[EmulatedDisk, ...] = ()
    tree: Tree | None = None
    lent: LentDatabase | None = None
