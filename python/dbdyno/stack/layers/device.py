"""The device layer: an emulated disk, ``here``, or none; a real disk is in ``real_disk.py``."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.errors import TrialError
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.emulated_disk import EmulatedDisk, attached_device, wait_idle
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import DetachLoops, RemoveTree, SetInstantMode

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
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The loop device over the disk, in instant mode; ``measuring`` turns the model on."""
        undo = DetachLoops(str(self.disk.file))
        disk = self.disk.client
        disk.set_mode("instant")
        # Whether the kernel must send FLUSH depends on the drive.
        disk.set_model(self.model, self.seed)
        disk.restore(PREPARED) if self.restore else disk.clear()
        with below.journal.undoing(undo):
            path = attached_device(self.disk, rotational=self.rotational)
            observed = {
                "kind": "emulated",
                "model": self.model,
                "size_bytes": size_bytes(path.name),
                "sector_bytes": queue_number(path.name, "logical_block_size"),
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
        disk = self.disk.client
        disk.set_model(self.model, self.seed)
        figures: dict[str, Any] = {}
        with journal.undoing(SetInstantMode(str(self.disk.control))):
            disk.set_mode("model")
            before = disk.stats(reset=True)
            yield figures
            figures |= disk.stats()
            figures["cpu_seconds"] -= before["cpu_seconds"]  # which no reset resets


class AlwaysItself:
    """A device that no model stands in for."""

    disk: ClassVar[None] = None

    @contextmanager
    def measuring(self, _: Journal) -> Iterator[dict[str, Any]]:
        """Nothing is switched on, and it tells no figures of its own."""
        yield {}


@dataclass(frozen=True)
class Here(AlwaysItself):
    """A folder on what the host has; needs no root."""

    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """A folder of this trial's own."""
        directory = below.scratch / "data"
        with below.journal.undoing(RemoveTree(str(directory))):
            directory.mkdir()
            yield below.raised(self.name, {"kind": "here", **_mount_of(directory)}, directory=directory)


@dataclass(frozen=True)
class NoDevice(AlwaysItself):
    """Nothing: what stands above stands in memory."""

    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The context as it is."""
        yield below.raised(self.name, {"kind": "memory"})


@dataclass(frozen=True)
class Elsewhere(AlwaysItself):
    """Whatever an external server stands on: nobody tells us, and nothing of it is touched."""

    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The context as it is."""
        yield below.raised(self.name, {"kind": "unknown"})


def _mount_of(directory: Path) -> dict[str, Any]:
    """What a folder lies on; unknown in a chroot whose root is no mount point."""
    try:
        found = json.loads(run_tool(["findmnt", "--json", "--target", str(directory)]))["filesystems"][0]
    except TrialError:
        return {"source": None, "filesystem": None, "mount_options": None}
    return {"source": found["source"], "filesystem": found["fstype"], "mount_options": found["options"]}


def size_bytes(name: str) -> int:
    """Of a whole device, by its name in /sys."""
    return int((Path("/sys/class/block") / name / "size").read_text(encoding="ascii")) * 512


def queue_number(name: str, setting: str) -> int:
    """A setting of a device's queue that is a number."""
    return int((Path("/sys/block") / name / "queue" / setting).read_text(encoding="ascii"))
