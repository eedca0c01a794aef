"""Data prepared once and put in place for every trial, where the device can't restore its blocks by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from dbdyno.servers.user import own_folder
from dbdyno.stack.layer import KeptImage, Layer, StackContext
from dbdyno.stack.layers.device import PREPARED
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.stack.layers.server import DATA
from dbdyno.stack.space import bytes_on_disk
from dbdyno.stack.tools import run_tool

# A folder for a program that works on files of its own, such as fio: on the filesystem that is measured.


FILES = "files"


@dataclass(frozen=True)
class Files:
    """The folder, owned by the user that the program runs as; it goes away with what is below."""

    name: str = "files"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The folder, with what was prepared in it."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        files = below.directory / FILES
        own_folder(files)
        prepared = [path.stat().st_size for path in files.rglob("*") if path.is_file() and not path.is_symlink()]
        observed = {"prepared_files": len(prepared), "prepared_bytes": sum(prepared)}
        yield below.raised(self.name, observed, files=files)


@dataclass(frozen=True)
class Tree(KeptImage):
    """A folder of prepared data, copied onto whatever is below."""

    folder: Path
    name: str = "data"

    def loaded(self, kept: Path) -> Self:
        """Used where it lies."""
        return replace(self, folder=kept / "tree")

    def finish(self) -> None:
        """The files are complete as they are."""

    def kept_bytes(self) -> int:
        """The files."""
        return bytes_on_disk(self.folder)

    def save(self, kept: Path) -> None:
        """The same files, under another name."""
        run_tool(["cp", "--archive", "--link", str(self.folder), str(kept / "tree")])

    def layers(self, *, install: bool) -> list[Layer]:
        """A copy is made, or taken."""
        return [Keep(self)] if install else [self]

    def keep(self, directory: Path) -> None:
        """Save what lies in ``directory`` as the prepared data."""
        self.folder.mkdir(parents=True)
        copy(directory, self.folder, reflink="auto")

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
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
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """Nothing on the way up; on the way down the data is saved, unless something failed."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        yield below
        self.tree.keep(below.directory)


@dataclass(frozen=True)
class Disks(KeptImage):
    """The content of emulated disks."""

    disks: tuple[EmulatedDisk, ...] = ()

    def is_gone(self) -> bool:
        """A process may be killed."""
        return any(disk.process.poll() is not None for disk in self.disks)

    def loaded(self, kept: Path) -> Self:
        """Each disk reads its own file."""
        for disk, content in self._contents(kept):
            disk.client.load(content)
        return self

    def finish(self) -> None:
        """Each keeps a snapshot."""
        for disk in self.disks:
            disk.client.snapshot(PREPARED)

    def kept_bytes(self) -> int:
        """Their content."""
        return sum(disk.client.stats()["content_bytes"] for disk in self.disks)

    def save(self, kept: Path) -> None:
        """Each disk writes its own file."""
        for disk, content in self._contents(kept):
            disk.client.save(content)

    def layers(self, *, install: bool) -> list[Layer]:
        """None: they hold the filesystem itself."""
        return []

    def _contents(self, kept: Path) -> Iterator[tuple[EmulatedDisk, Path]]:
        for number, disk in enumerate(self.disks, 1):
            yield disk, kept / ("content" if number == 1 else f"content-{number}")
