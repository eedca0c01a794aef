"""Data prepared once and put in place for every trial, where the device can't restore its blocks by itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
DISKS = "disks"  # in a folder of prepared data: a folder for each named disk


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

    def part_on_disk(self, name: str) -> Self:
        """A folder of its own."""
        return replace(self, folder=self.folder / DISKS / name)

    def keep(self, context: StackContext) -> None:
        """Save what lies in the folders of a context as the prepared data."""
        assert context.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        self.folder.mkdir(parents=True)
        copy(context.directory, self.folder, reflink="auto")
        for name, disk in context.disks.items():
            self.part_on_disk(name).keep(disk)

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The data in place and on the device, so that the trial does not pay for the copying."""
        self._put(below)
        yield below.raised(self.name, {"from": "tree"})

    def _put(self, below: StackContext) -> None:
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        # Not by reflink: the measured run would pay for each block's first write.
        copy(self.folder, below.directory, reflink="never")
        run_tool(["sync", "--file-system", str(below.directory)], timeout_seconds=3600)
        for name, disk in below.disks.items():
            self.part_on_disk(name)._put(disk)  # noqa: SLF001  (of the same class)


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
        yield below
        self.tree.keep(below)


@dataclass(frozen=True)
class Disks(KeptImage):
    """The content of emulated disks: those of the data, and named ones beside them."""

    disks: tuple[EmulatedDisk, ...] = ()
    named: Mapping[str, EmulatedDisk] = field(default_factory=dict)
    key: bytes = field(default=b"", repr=False)  # of what encrypts them; empty where nothing does

    @property
    def outlives_run(self) -> bool:
        """A key is in the memory of this run alone, and without it the blocks are of no use."""
        return not self.key

    @property
    def all(self) -> tuple[EmulatedDisk, ...]:
        """Every one."""
        return (*self.disks, *self.named.values())

    def is_gone(self) -> bool:
        """A process may be killed."""
        return any(disk.process.poll() is not None for disk in self.all)

    def part_on_disk(self, name: str) -> Self:
        """The disk of that name."""
        return replace(self, disks=(self.named[name],), named={})

    def loaded(self, kept: Path) -> Self:
        """Each disk reads its own file."""
        for disk, content in self._contents(kept):
            disk.client.load(content)
        return self

    def finish(self) -> None:
        """Each keeps a snapshot."""
        for disk in self.all:
            disk.client.snapshot(PREPARED)

    def kept_bytes(self) -> int:
        """Their content."""
        return sum(disk.client.stats()["content_bytes"] for disk in self.all)

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
        for name, disk in self.named.items():
            yield disk, kept / f"content-{name}"
