"""The device layer: an emulated disk, a real block device, ``here``, or none."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.errors import TrialError
from dbdyno.stack.emulated_disk import EmulatedDisk, attached_device, wait_idle
from dbdyno.stack.erase_guard import check_erasable
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import BlockDevice, Stand
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo import DetachLoops, HurryDisk, RemoveTree, WipeOurs

PREPARED = "prepared"  # the snapshot that every trial starts from


@dataclass(frozen=True)
class Emulated:
    """An emulated disk, attached as a pristine loop device."""

    disk: EmulatedDisk
    model: str
    rotational: bool
    seed: int
    restore: bool  # start from the prepared content rather than from an empty disk
    name: str = "device"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The loop device over the disk, in instant mode; ``measuring`` turns the model on."""
        undo = DetachLoops(str(self.disk.file))
        self.disk.ask("mode", mode="instant")
        # Whether the kernel must send FLUSH depends on the drive.
        self.disk.ask("model", name=self.model, seed=self.seed)
        self.disk.ask("restore", name=PREPARED) if self.restore else self.disk.ask("clear")
        with below.journal.undoing(undo):
            path = attached_device(self.disk, rotational=self.rotational)
            observed = {
                "kind": "emulated",
                "model": self.model,
                "size_bytes": _size_bytes(path.name),
                "sector_bytes": _queue_number(path.name, "logical_block_size"),
                "locked_memory": self.disk.observed.get("locked_memory"),
                "io_flusher": self.disk.observed.get("io_flusher"),
                "realtime": self.disk.observed.get("realtime"),
            }
            device = BlockDevice(path, rotational=self.rotational, disposable=True, control=self.disk.control)
            yield below.raised(self.name, observed, device=device)

    @contextmanager
    def measuring(self, journal: Journal) -> Iterator[dict[str, Any]]:
        """Behave like the drive for as long as the context lasts; fills the yielded dict with the disk's figures."""
        wait_idle(self.disk)
        self.disk.ask("model", name=self.model, seed=self.seed)
        figures: dict[str, Any] = {}
        with journal.undoing(HurryDisk(str(self.disk.control))):
            self.disk.ask("mode", mode="model")
            before = self.disk.ask("stats", reset=True)
            yield figures
            figures |= {key: value for key, value in self.disk.ask("stats").items() if key != "ok"}
            figures["cpu_seconds"] -= before["cpu_seconds"]  # which no reset resets


class _AlwaysItself:
    """A device that no model stands in for."""

    disk: ClassVar[None] = None

    @contextmanager
    def measuring(self, _: Journal) -> Iterator[dict[str, Any]]:
        """Nothing is switched on, and it tells no figures of its own."""
        yield {}


@dataclass(frozen=True)
class Real(_AlwaysItself):
    """A real block device; every trial makes its filesystem anew, so all it holds is erased."""

    path: Path
    serial: str | None
    erase: frozenset[str]  # serials the command line allows to be erased although they hold something
    name: str = "device"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The device, once it has proved to be the one named and to hold nothing."""
        identity = check_erasable(self.path, self.serial, self.erase)
        path = identity.path
        rotational = _queue_number(path.name, "rotational") == 1
        observed = {
            "kind": "real",
            "model": identity.model,
            "serial": identity.serial,
            "size_bytes": _size_bytes(path.name),
            "sector_bytes": _queue_number(path.name, "logical_block_size"),
        }
        # The guard found nothing, or was told to erase what it found.
        run_tool(["wipefs", "--all", "--quiet", str(path)])
        ours = str(uuid.uuid4())
        with below.journal.undoing(WipeOurs(str(path), ours)):
            device = BlockDevice(path, rotational=rotational, disposable=False, uuid=ours)
            yield below.raised(self.name, observed, device=device)


@dataclass(frozen=True)
class Here(_AlwaysItself):
    """A folder on what the host has; needs no root."""

    name: str = "device"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """A folder of this trial's own."""
        directory = below.scratch / "data"
        with below.journal.undoing(RemoveTree(str(directory))):
            directory.mkdir()
            yield below.raised(self.name, {"kind": "here", **_mount_of(directory)}, directory=directory)


@dataclass(frozen=True)
class NoDevice(_AlwaysItself):
    """Nothing: what stands above stands in memory."""

    name: str = "device"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The stand as it is."""
        yield below.raised(self.name, {"kind": "memory"})


@dataclass(frozen=True)
class Elsewhere(_AlwaysItself):
    """Whatever a server that runs already stands on: nobody tells us, and nothing of it is touched."""

    name: str = "device"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The stand as it is."""
        yield below.raised(self.name, {"kind": "unknown"})


def _mount_of(directory: Path) -> dict[str, Any]:
    """What a folder lies on; unknown in a chroot whose root is no mount point."""
    try:
        found = json.loads(run_tool(["findmnt", "--json", "--target", str(directory)]))["filesystems"][0]
    except TrialError:
        return {"source": None, "filesystem": None, "mount_options": None}
    return {"source": found["source"], "filesystem": found["fstype"], "mount_options": found["options"]}


def _size_bytes(name: str) -> int:
    return int((Path("/sys/class/block") / name / "size").read_text(encoding="ascii")) * 512


def _queue_number(name: str, setting: str) -> int:
    return int((Path("/sys/block") / name / "queue" / setting).read_text(encoding="ascii"))
