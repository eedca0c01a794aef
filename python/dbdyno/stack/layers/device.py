"""The device layer: an emulated disk, ``here``, a real disk, all of which is erased, or none."""

import fcntl
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from dbdyno.errors import TrialError
from dbdyno.filesystems import Kind
from dbdyno.host.read import UNKNOWN
from dbdyno.host.storage import disk_facts, mounted_at
from dbdyno.model.cut import Survivors
from dbdyno.model.results import Summary
from dbdyno.stack.erase import Erasing, HeldDisk
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.emulated_disk import EmulatedDisk, attached_device, wait_idle
from dbdyno.stack.loop import loops_over
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import DetachLoops, RemoveTree, SetInstantMode
from dbdyno.stack.undo.real_disk import MarkHalfMade, WipeOurs
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import TrialDevice

PREPARED = "prepared"  # the snapshot that every trial starts from


@dataclass(frozen=True)
class CutContent:
    """What a power cut left: the state that the disk kept under a name, with survivors drawn by a seed."""

    name: str
    survivors: Survivors
    seed: int


@dataclass(frozen=True)
class Emulated:
    """An emulated disk, attached as a pristine loop device."""

    disk: EmulatedDisk
    model: str
    rotational: bool
    seed: int
    restore: bool  # start from the prepared content rather than from an empty disk
    cut: CutContent | None = None  # start from what a power cut left instead
    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The loop device over the disk, in instant mode; ``measuring`` turns the model on."""
        undo = DetachLoops(str(self.disk.file))
        self.put_content()
        with below.journal.undoing(undo):
            path = self._attach()
            facts = disk_facts(path.name)
            observed = {
                "kind": "emulated",
                "model": self.model,
                "size_bytes": facts["bytes"],
                "sector_bytes": facts["logical_block_bytes"],
                "locked_memory": self.disk.observed.get("locked_memory"),
                "io_flusher": self.disk.observed.get("io_flusher"),
                "realtime": self.disk.observed.get("realtime"),
            }
            if self.disk.client.stats().get("flush_ignored"):
                observed["flush_ignored"] = True
            device = BlockDevice(path, rotational=self.rotational, disposable=True, control=self.disk.control)
            yield below.raised(self.name, observed, device=device)

    def put_content(self) -> None:
        """Have the disk hold what the trial starts from, and answer at once."""
        disk = self.disk.client
        disk.set_mode("instant")
        # Whether the kernel must send FLUSH depends on the drive.
        disk.set_model(self.model, self.seed)
        if self.cut:
            disk.restore_cut(self.cut.name, self.cut.survivors, self.cut.seed)
        elif self.restore:
            disk.restore(PREPARED)
        else:
            disk.clear()

    def is_attached(self) -> bool:
        """Whether it is still the block device that it was raised as."""
        return bool(loops_over(str(self.disk.file)))

    def _attach(self) -> Path:
        """The block device that the disk is."""
        return attached_device(self.disk, rotational=self.rotational)

    @contextmanager
    def measuring(self, journal: Journal) -> Iterator[TrialDevice]:
        """Behave like the drive for as long as the context lasts; fills the yielded dict with the disk's figures."""
        wait_idle(self.disk)
        disk = self.disk.client
        disk.set_model(self.model, self.seed)
        figures: TrialDevice = {}
        with journal.undoing(SetInstantMode(str(self.disk.control))):
            disk.set_mode("model")
            before = disk.stats(reset=True)
            yield figures
            figures.update(cast("TrialDevice", disk.stats()))
            figures["cpu_seconds"] -= before["cpu_seconds"]  # which no reset resets


@dataclass(frozen=True)
class DiskInGuest(Emulated):
    """An emulated disk of the host's as a virtual machine has it, seen from within: QEMU stands in the loop's place."""

    def is_attached(self) -> bool:
        """A guest keeps its disk as long as it runs."""
        return True

    def _attach(self) -> Path:
        """The guest's disk, which remembers nothing of what it held before; its file is called by its serial."""
        path = Path("/dev") / disk_of_guest(self.disk.file.name)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(handle, _BLKFLSBUF)
        finally:
            os.close(handle)
        return path


_BLKFLSBUF = 0x1261  # linux/fs.h


def disk_of_guest(serial: str) -> str:
    """The name of the disk that QEMU was given with a serial. Raises ``TrialError`` where there is no such disk."""
    entries = sorted(
        entry
        for entry in Path("/sys/block").iterdir()
        if (entry / "device").exists() and _NO_DISK.match(entry.name) is None
    )
    if len(entries) == 1 and serial == serial_in_guest(0):
        return entries[0].name
    for entry in entries:
        if _serial(entry) == serial:
            return entry.name
    found = ", ".join(f"{entry.name} ({_serial(entry) or 'no serial'})" for entry in entries) or "none"
    raise TrialError(f"the guest has no disk with the serial {serial}; it has {found}")


def serial_in_guest(number: int) -> str:
    """The serial of a guest's disk, by which the guest finds it."""
    return f"dbdyno{number}" if number else "dbdyno"


def _serial(entry: Path) -> str:
    """The serial of a disk in /sys/block; empty where it says none."""
    page = entry / "device/vpd_pg80"  # of SCSI and AHCI: four bytes, and the serial
    try:
        if page.exists():
            return page.read_bytes()[4:].decode(errors="replace").strip(" \0")
        paths = (entry / "serial", entry / "device/serial")
        return next((path.read_text(encoding="utf-8").strip() for path in paths if path.exists()), "")
    except OSError:
        return ""


_NO_DISK = re.compile(r"loop|ram|zram|sr|fd|nbd|md|dm-")


class AlwaysItself:
    """A device that no model stands in for."""

    disk: ClassVar[None] = None

    @contextmanager
    def measuring(self, _: Journal) -> Iterator[TrialDevice]:
        """Nothing is switched on, and it has no figures of its own."""
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
            yield below.raised(self.name, {"kind": "here", **mount_of(directory)}, directory=directory)


@dataclass(frozen=True)
class NoDevice(AlwaysItself):
    """Nothing of dbdyno's: what stands above stands in memory, or on what an external server has."""

    kind: str = "memory"
    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The context as it is."""
        yield below.raised(self.name, {"kind": self.kind})


def mount_of(directory: Path) -> dict[str, Any]:
    """What a folder lies on; unknown in a chroot whose root is no mount point."""
    mount = mounted_at(directory)
    facts = {"source": mount.source, "filesystem": mount.kind, "mount_options": mount.options}
    return dict.fromkeys(facts) if mount.kind == UNKNOWN else facts


# Emulated disks side by side, for a filesystem that stands on several.


SEED_BITS = 48  # that a trial's seed takes (Plan.trial_seed); above them the disk's number keeps the seeds apart


def seed_of(seed: int, number: int) -> int:
    """The seed of one disk of several; that of the first, number 0, is the trial's."""
    return seed + (number << SEED_BITS)


@dataclass(frozen=True)
class EmulatedSet:
    """Emulated disks of one model and size, each with chances of its own."""

    disks: tuple[Emulated, ...]
    name: str = "device"
    disk: ClassVar[None] = None  # whose own trace could stand in for the kernel's: two are not traced

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """A loop device over each; what was observed of the others stands beside that of the first."""
        with ExitStack() as lowering:
            contexts = [lowering.enter_context(disk.raised(below)) for disk in self.disks]
            first, *others = [dict(context.observed[self.name]) for context in contexts]
            devices = [device for context in contexts for device in context.devices]
            observed = {**first, "devices": len(devices), "beside": others}
            yield below.raised(self.name, observed, device=devices[0], beside=tuple(devices[1:]))

    @contextmanager
    def measuring(self, journal: Journal) -> Iterator[TrialDevice]:
        """All behave like the drive for as long as the context lasts; fills the yielded dict with their figures."""
        figures: TrialDevice = {}
        with ExitStack() as ending:
            figures_of = [ending.enter_context(disk.measuring(journal)) for disk in self.disks]
            yield figures
        figures.update(
            {
                "lateness_ns": latest([disk_figures["lateness_ns"] for disk_figures in figures_of]),
                "disks": list(figures_of),
            }
        )


def latest(lateness: Sequence[Summary]) -> Summary:
    """The figures of the later disk, as a request may wait for it; only ``count`` is of all."""
    known = {name: [value for summary in lateness if (value := summary[name]) is not None] for name in lateness[0]}
    return {name: (sum if name == "count" else max)(values) if values else None for name, values in known.items()}


# A real block device, all of which is erased.


@dataclass(frozen=True)
class Real(AlwaysItself):
    """A real block device; every trial makes its filesystem anew, so all it holds is erased."""

    path: Path
    serial: str | None
    erasing: Erasing
    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The device, once it has proved to be the one named and not to be in use."""
        with self.erasing.holding(self.path, self.serial) as disk:
            identity = disk.identity
            path = identity.path
            facts = disk_facts(path.name)
            rotational = facts["rotational"] == "yes"
            observed = {
                "kind": "real",
                "model": identity.model,
                "serial": identity.serial,
                "size_bytes": identity.size_bytes,
                "sector_bytes": facts["logical_block_bytes"],
            }
            ours = str(uuid.uuid4())
            with below.journal.undoing(WipeOurs(str(path), ours)):
                device = BlockDevice(path, rotational=rotational, disposable=False, uuid=ours, real_disk=disk)
                yield below.raised(self.name, observed, device=device)


def make_on_real_disk(disk: HeldDisk, kind: Kind, options: str, ours: str, journal: Journal) -> None:
    """Make a filesystem that is known by the UUID ``ours``, on a disk that is proved to be free once more.

    wipefs and mkfs inherit the very descriptor that was proved. Raises ``HostError`` where the disk is not free.
    """
    proof = disk.prove()
    half_made = MarkHalfMade(str(disk.identity.path), ours, disk.identity.attachment, proof.seed, proof.each)
    with journal.undoing(half_made):
        disk.begin()
        # What lies there is nothing, dbdyno's own, or given up: no old signature must be taken for the new one's.
        run_tool(["wipefs", "--all", "--quiet", disk.path], pass_fds=(disk.handle,))
        run_tool([*kind.making(options, ours), disk.path], pass_fds=(disk.handle,))
