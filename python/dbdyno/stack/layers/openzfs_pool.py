"""A ZFS pool on a device of a virtual machine, by OpenZFS of its kernel.

The machine sees its own disks alone and ends with the trial, so no pool of another's is in reach.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems import OPENZFS, ZfsKind
from dbdyno.stack.guest.openzfs import OpenZfs, openzfs_of
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.zfs_pool import PoolTools, ZfsPool
from dbdyno.stack.tools import needed, run_tool, tool_done
from dbdyno.stack.undo.actions import Unmount

_MODULE = Path("/sys/module/zfs")
_ARC = Path("/proc/spl/kstat/zfs/arcstats")


@dataclass(frozen=True)
class OpenZfsPool(ZfsPool):
    """The same pool, by the kernel."""

    @contextmanager
    def _standing(self, below: StackContext) -> Iterator[tuple[PoolTools, str, Path]]:
        tools = _Tools(_load_module(self.options.arc_max))
        root = below.scratch / "mnt"
        root.mkdir(exist_ok=True)
        directory = root / "pool"
        with below.journal.undoing(Unmount(str(directory))), self._mount_pool(tools, below, root) as pool:
            yield tools, pool, directory

    def _member(self, device: BlockDevice) -> Path:
        """The disk as a partition, of which only the kernel knows: on a whole disk zpool would wait for a udev."""
        whole = device.path.resolve()
        folder = Path("/sys/class/block") / whole.name
        if not any(folder.glob("*/partition")):
            sectors = (folder / "size").read_text(encoding="ascii").strip()
            run_tool([needed("addpart", "util-linux"), str(whole), "1", "0", sectors])
        return Path("/dev") / next(folder.glob("*/partition")).parent.name


@dataclass(frozen=True)
class _Tools:
    """The tools that were built with the kernel's modules."""

    openzfs: OpenZfs
    kind: ZfsKind = OPENZFS
    properties: tuple[str, ...] = ("sync",)

    @property
    def observed(self) -> dict[str, object]:
        """The module as it says itself, and the most that its cache takes."""
        return {"version": (_MODULE / "version").read_text(encoding="ascii").strip(), "arc_max_bytes": _arc_max_bytes()}

    def run(self, *argv: str, limit_seconds: float = 120.0) -> str:
        """Run one of them."""
        done = tool_done([*self.openzfs.tool(argv[0]), *argv[1:]], timeout_seconds=limit_seconds)
        if done.code:
            raise TrialError(f"{' '.join(argv)}: exit {done.code}: {done.message}")
        return done.out


def _load_module(arc_max: int | None) -> OpenZfs:
    """OpenZFS of the kernel that runs, loaded. Raises ``HostError`` and ``TrialError``."""
    release = platform.release()
    openzfs = openzfs_of(Path("/lib/modules") / release)
    if openzfs is None:
        raise HostError(f"kernel {release} has no OpenZFS")
    if not _MODULE.exists():
        run_tool(["modprobe", "zfs", *([f"zfs_arc_max={arc_max}"] if arc_max else [])])
    if arc_max and _arc_max_bytes() != arc_max:
        raise TrialError(f"zfs_arc_max: asked for {arc_max}, it is {_arc_max_bytes()}")
    return openzfs


def _arc_max_bytes() -> int:
    """The most that the cache takes, as the module counts by now."""
    lines = (line.split() for line in _ARC.read_text(encoding="ascii").splitlines())
    return next(int(line[2]) for line in lines if line and line[0] == "c_max")
