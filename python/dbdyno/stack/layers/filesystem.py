"""A filesystem of the kernel on a device: made, mounted, and its options and barriers read back."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.filesystems import BTRFS, Kind
from dbdyno.host.storage import mounted_at
from dbdyno.model.printable import short
from dbdyno.model.quantity import size_bytes
from dbdyno.stack.btrfs import check_profiles, observed_profiles
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.device import make_on_real_disk
from dbdyno.stack.tools import ToolResult, run_tool, tool_done
from dbdyno.stack.undo.actions import Unmount
from dbdyno.study.schema import FilesystemSection

# Options that the kernel accepts but does not list, because they are everybody's defaults.
UNLISTED = {"defaults", "rw", "async", "exec", "auto", "nouser"}
# Options that the kernel shows by listing none of these others.
BY_ABSENCE = {"strictatime": {"relatime", "noatime"}}
# What a filesystem holds may be another user's making, so none gives anybody rights on this host.
WITHOUT_RIGHTS = ("nosuid", "nodev")
CHECK_SECONDS = 600.0  # a checker of a disk that answers at once is stuck then
DAMAGE_MAX = 400  # characters of what a checker said
# What e2fsck, xfs_repair and btrfs check say whether or not they find anything.
_PHASE = re.compile(
    r"Pass \d|Phase \d|e2fsck \d|Opening filesystem|Checking filesystem|\[\d/\d\] |UUID:|No modify flag|\s*- |"
    r"WARNING: cannot check mount status"
)
FLUSHES_AT = 15  # the field of /sys/block/NAME/stat that counts flushes (Documentation/block/stat.rst)


@dataclass(frozen=True)
class Filesystem:
    """A filesystem on the device below, or on several."""

    kind: Kind
    options: FilesystemSection
    format: bool  # make it anew, rather than mount what the device holds
    limit_seconds: float = 120.0  # in which it must be mounted
    is_tried: bool = True  # whether a file is synced on it, to see if that flushes the device
    name: str = "filesystem"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The filesystem mounted in the scratch folder."""
        assert below.device is not None  # noqa: S101  (the plan puts no filesystem on ``here``)
        devices, directory = below.sources, below.scratch / "mnt"
        if self.format:
            self._make(below, devices)
        directory.mkdir(exist_ok=True)
        with below.journal.undoing(Unmount(str(directory))):
            mount(self.kind, self.options.mount, directory, *devices, limit_seconds=self.limit_seconds)
            observed = observed_mount(directory)
            if self.is_tried:
                observed["flushes_on_fsync"] = flushes_on_fsync(directory, below.synced or below.devices)
            check_mount(self.kind, self.options.mount, observed)
            if self.kind is BTRFS:
                profiles = observed_profiles(directory)
                check_profiles(self.options.mkfs, profiles)
                observed["profiles"] = profiles
            yield below.raised(self.name, observed, directory=directory)

    def damage(self, below: StackContext) -> str:
        """What its own checker, which mends nothing, has against it while it is not mounted; empty if nothing.

        Raises ``TrialError`` where the checker could not do its work.
        """
        done = tool_done([*self.kind.check, *below.sources], timeout_seconds=CHECK_SECONDS)
        if done.code and not self.kind.is_damage(done.code):
            raise TrialError(f"{done.command}: exit {done.code}: {done.message}")
        return f"{' '.join(self.kind.check)}: {found_in(done)}" if done.code else ""

    def _make(self, below: StackContext, devices: list[str]) -> None:
        assert below.device is not None  # noqa: S101  (as above)
        disk, ours = below.device.real_disk, below.device.uuid
        if disk and ours:  # the study format has no real disk beside another
            make_on_real_disk(disk, self.kind, self.options.mkfs, ours, below.journal)
        else:
            run_tool([*self.kind.making(self.options.mkfs, ours), *devices])


def found_in(done: ToolResult) -> str:
    """What a checker found, shortened: its output, without the lines that say what it is about to do."""
    lines = [line.strip() for line in f"{done.out}\n{done.err}".splitlines() if line.strip()]
    telling = [line for line in lines if not _PHASE.match(line)]
    return short(" / ".join(telling or lines) or f"exit {done.code}", DAMAGE_MAX)


def mount(kind: Kind, options: str, directory: Path, source: str, *others: str, limit_seconds: float = 120.0) -> None:
    """Mount a filesystem of the kernel's; where it stands on several devices, the mount options name the others.

    Of options that contradict each other the last counts, so ours come last.
    """
    all_options = ",".join([*filter(None, [options]), *(f"device={other}" for other in others), *WITHOUT_RIGHTS])
    run_tool(["mount", "-t", kind.name, "-o", all_options, source, str(directory)], timeout_seconds=limit_seconds)


def check_mount(kind: Kind, options: str, observed: dict[str, object]) -> None:
    """Raises ``TrialError`` where another filesystem is mounted, or an option that was asked for did not take."""
    if observed["kind"] != kind.name:
        raise TrialError(f"asked for {kind.name}, mounted is {observed['kind']}")
    check_without_rights(observed)
    listed = str(observed["mount_options"]).split(",")
    for option in filter(None, options.split(",")):
        key = option.partition("=")[0]
        default = option in UNLISTED | kind.unlisted and not any(other.startswith(f"{key}=") for other in listed)
        default |= option in BY_ABSENCE and not BY_ABSENCE[option] & set(listed)
        if not default and not any(_same_option(option, other) for other in listed):
            raise TrialError(f"mount option {option!r} did not take; the kernel lists {','.join(listed)}")


def check_without_rights(observed: Mapping[str, object]) -> None:
    """Raises ``TrialError`` where the kernel would heed setuid files or device nodes of a filesystem."""
    listed = str(observed["mount_options"]).split(",")
    if lacking := [option for option in WITHOUT_RIGHTS if option not in listed]:
        raise TrialError(f"mounted without {' and '.join(lacking)}; the kernel lists {','.join(listed)}")


def _same_option(option: str, listed: str) -> bool:
    """Whether the kernel lists what was asked, in its own spelling: ``zstd`` as ``zstd:3``, ``64m`` as ``65536k``."""
    if option == listed or listed.startswith(f"{option}:"):
        return True
    key, _, value = option.partition("=")
    listed_key, _, listed_value = listed.partition("=")
    try:
        return key == listed_key and size_bytes(value) == size_bytes(listed_value)
    except ValueError:
        return False


def observed_mount(directory: Path) -> dict[str, object]:
    """Type, options and barriers of the filesystem mounted at a folder, as the kernel lists it."""
    entry = mounted_at(directory)
    if entry.place != str(directory):
        raise TrialError(f"{directory} is not mounted although mount said nothing")
    barriers = not {"nobarrier", "barrier=0"} & set(entry.options.split(","))
    return {"kind": entry.kind, "mount_options": entry.options, "barriers": barriers}


def flushes_on_fsync(directory: Path, devices: Sequence[BlockDevice]) -> bool:
    """Whether every device gets a flush when a file is synced: what a barrier comes to.

    The kernel sends no flush to a device whose cache no power cut takes, whatever the filesystem asks for.
    """
    before = [_flushes(device) for device in devices]
    probe = directory / ".dbdyno-fsync"
    handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, b"\0" * 4096)
        os.fsync(handle)
    finally:
        os.close(handle)
        probe.unlink()
    return all(_flushes(device) > count for device, count in zip(devices, before, strict=True))


def _flushes(device: BlockDevice) -> int:
    fields = (Path("/sys/class/block") / device.name / "stat").read_text(encoding="ascii").split()
    return int(fields[FLUSHES_AT]) if len(fields) > FLUSHES_AT else 0
