"""A ZFS pool on a device, served by a zfs-fuse of its own, or in a virtual machine by OpenZFS of its kernel.

zfs-fuse finds its socket, its lock and the host's pools at fixed places. So ours runs in a mount namespace in which
these places are empty: it can't meet another zfs-fuse, nor reach a pool of the host's. Its mount comes out of the
namespace through one shared folder.
"""

import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems import OPENZFS, ZFS, ZfsKind
from dbdyno.model.quantity import same_value
from dbdyno.stack.guest.openzfs import OpenZfs, openzfs_of
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.filesystem import (
    DAMAGE_MAX,
    WITHOUT_RIGHTS,
    check_without_rights,
    flushes_on_fsync,
    observed_mount,
)
from dbdyno.stack.tools import needed, run_tool, tool_done
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, EndProcesses, Unmount
from dbdyno.study.schema import FilesystemSection
from dbdyno.system.state import new_token, scratch_path

START_SECONDS, SCRUB_SECONDS = 20.0, 600.0
UNHARMED = "errors: No known data errors"
SHOWN = ("compression", "recordsize", "atime", "logbias", "primarycache", "checksum", "copies")
# As the distribution's configuration has them, which is out of sight; the cache (MB) is beyond any memory limit.
DAEMON_OPTIONS = ("--no-daemon", "--no-kstat-mount", "--max-arc-size", "100", "--vdev-cache-size", "10",
                  "--zfs-prefetch-disable", "--fuse-attr-timeout", "3600", "--fuse-entry-timeout", "3600",
                  "--fuse-mount-options", f"default_permissions,{','.join(WITHOUT_RIGHTS)}")  # fmt: skip
# What is covered must first be private, or it would be covered for all. The mounts of other runs are let go, as a copy
# of a mount holds the device below it: of two arguments, the one that stays, and the folder of the others.
PRIVATE = """\
set -e
own=$1 scratch_folders=$2
shift 2
while read -r _ place _; do
    if [ "$place" != "$own" ]; then
        mount --make-slave "$place" 2>/dev/null || true
        case "$place" in "$scratch_folders"/*) umount --lazy "$place" 2>/dev/null || true ;; esac
    fi
done << END
$(cat /proc/self/mounts)
END
cover() { mount --make-private "$(stat -c %m "$1")"; mount -t tmpfs -o nosuid,nodev dbdyno "$1"; }
cover "$(readlink -f /var/run)"
lock=$(readlink -f /var/lock)
if [ -d "$lock" ]; then cover "$lock"; else mkdir -p "$lock"; fi
for place in /var/lib/zfs /etc/zfs; do
    if [ -d "$place" ]; then cover "$place"; fi
done
exec "$@"
"""


@dataclass(frozen=True)
class ZfsPool:
    """A pool on the device below, and its one filesystem."""

    options: FilesystemSection
    format: bool  # make it anew, rather than import what the device holds
    limit_seconds: float = 120.0  # in which it must be imported
    is_tried: bool = True  # whether a file is synced on it, to see if that flushes the device
    name: str = "filesystem"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The pool imported and mounted; exported, so that all of it is on the device, on the way down."""
        with self._standing(below) as (tools, pool, directory):
            observed: dict[str, object] = {**observed_mount(directory), "kind": ZFS.name}
            check_without_rights(observed)
            if self.is_tried:
                observed["flushes_on_fsync"] = flushes_on_fsync(directory, below.devices)
            observed |= {**tools.observed, **self._properties(tools, pool)}
            yield below.raised(self.name, observed, directory=directory)

    def damage(self, below: StackContext) -> str:
        """What a scrub of the whole pool finds; empty if nothing. Raises ``TrialError`` where it does not end."""
        with self._standing(below) as (tools, pool, _):
            tools.run("zpool", "scrub", pool)
            deadline = time.monotonic() + SCRUB_SECONDS
            while "in progress" in (status := tools.run("zpool", "status", pool)):
                if time.monotonic() > deadline:
                    raise TrialError(f"zpool scrub: not done after {SCRUB_SECONDS:g} s")
                time.sleep(0.05)
        return "" if UNHARMED in status else f"zpool scrub: {' / '.join(status.split(chr(10)))}"[:DAMAGE_MAX]

    @contextmanager
    def _standing(self, below: StackContext) -> Iterator[tuple["FuseTools | OpenZfsTools", str, Path]]:
        """What asks of the pool, the pool's name and where it is mounted, for as long as the context lasts."""
        assert below.device is not None  # noqa: S101  (the plan puts no filesystem on ``here``)
        shared, token = below.scratch / "mnt", new_token()
        directory = shared / "pool"
        shared.mkdir(exist_ok=True)
        with below.journal.undoing(Unmount(str(shared))):
            _share(shared)
            with (
                below.journal.undoing(
                    EndProcesses(token, ZFS.program, grace_seconds=1.0)
                ),  # it takes ten to end by itself
                _serving(token, below.scratch / "zfs-fuse.log", shared) as pid,
                below.journal.undoing(Unmount(str(directory))),
                self._mount_pool(tools := FuseTools(pid), below, shared) as pool,
            ):
                yield tools, pool, directory

    @contextmanager
    def _mount_pool(self, tools: "FuseTools | OpenZfsTools", below: StackContext, root: Path) -> Iterator[str]:
        """The pool, by its name, mounted below ``root`` for as long as the context lasts."""
        # A name of its own: other dbdyno's pools are among the mounts that this zfs-fuse sees.
        pool = f"dbdyno-{below.scratch.name}"
        self._raise_pool(tools, below, root, pool)
        try:
            yield pool
        finally:
            tools.run("zpool", "export", pool)

    def _raise_pool(self, tools: "FuseTools | OpenZfsTools", below: StackContext, root: Path, pool: str) -> None:
        assert below.device is not None  # noqa: S101  (see above)
        member = self._member(below.device)
        if self.format:
            made = tools.kind.making(self.options.mkfs, below.device.uuid)
            tools.run(*made, "-R", str(root), "-m", "/pool", pool, str(member))
            return
        # Only in this folder is a pool looked for.
        devices = below.scratch / "devices"
        devices.mkdir(exist_ok=True)
        if not (devices / member.name).is_symlink():
            (devices / member.name).symlink_to(member)
        reported = tools.run("zpool", "import", "-d", str(devices))
        pools = re.findall(r"^\s*pool: (\S+)$", reported, re.MULTILINE)
        if len(pools) != 1:
            raise TrialError(
                f"expected one pool on {below.device.path}; zpool import lists {', '.join(pools) or 'none'}"
            )
        argv = ("zpool", "import", "-f", "-R", str(root), "-d", str(devices), pools[0], pool)
        tools.run(*argv, limit_seconds=self.limit_seconds)

    def _member(self, device: BlockDevice) -> Path:
        """What of a device the pool is on."""
        return device.path

    def _properties(self, tools: "FuseTools | OpenZfsTools", pool: str) -> dict[str, str]:
        """Those of the filesystem, and of the pool where the study asks for one. Raises ``TrialError``."""
        asked = dict(tools.kind.properties(self.options.mkfs))
        of_pool = asked.keys() & tools.kind.pool_properties
        shown = ",".join(dict.fromkeys((*SHOWN, *tools.properties, *(asked.keys() - of_pool))))
        listing = tools.run("zfs", "get", "-H", "-o", "property,value", shown, pool)
        readback = dict(line.split("\t") for line in listing.splitlines())
        for name in sorted(of_pool):
            readback[name] = tools.run("zpool", "get", name, pool).splitlines()[-1].split()[2]
        for name, value in asked.items():
            if not same_value(value, readback[name]):
                raise TrialError(f"zfs property {name}: asked for {value}, it is {readback[name]}")
        return readback


@dataclass(frozen=True)
class FuseTools:
    """The tools where our zfs-fuse runs."""

    pid: int
    kind: ClassVar[ZfsKind] = ZFS
    properties: ClassVar[tuple[str, ...]] = ()  # that a trial notes beside those of every ZFS

    @property
    def observed(self) -> dict[str, object]:
        """Nothing that is not known."""
        return {}

    def run(self, *argv: str, limit_seconds: float = 120.0) -> str:
        """Run a tool there."""
        path = needed(argv[0], ZFS.package)
        within = ["nsenter", "--mount", "--target", str(self.pid), "--", path, *argv[1:]]
        return run_tool(within, timeout_seconds=limit_seconds)


def _share(folder: Path) -> None:
    """Make a folder whose mounts are seen in the namespaces made from now on, and the other way round."""
    run_tool(["mount", "--bind", "-o", ",".join(WITHOUT_RIGHTS), str(folder), str(folder)])
    run_tool(["mount", "--make-private", str(folder)])  # else it shares with the mount it lies on
    run_tool(["mount", "--make-shared", str(folder)])


@contextmanager
def _serving(token: str, log: Path, shared: Path) -> Iterator[int]:
    """A zfs-fuse that answers and knows no pool, by its number; its undo must be announced. Raises ``HostError``.

    What it mounts below ``shared`` is seen outside.
    """
    program = needed(ZFS.program, ZFS.package)
    argv = ["unshare", "--mount", "--propagation", "unchanged", "--", "/bin/sh", "-c", PRIVATE, "sh"]
    argv += [str(place.resolve()) for place in (shared, scratch_path("any").parent)] + [program]
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            [*argv, *DAEMON_OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            env={**os.environ, TOKEN_VARIABLE: token},
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(daemon.pid):
            if daemon.poll() is not None or time.monotonic() > deadline:
                complaint = log.read_text(encoding="utf-8", errors="replace").strip() or "it said nothing"
                raise HostError(f"zfs-fuse did not start: {complaint}")
            time.sleep(0.02)
        yield daemon.pid
    finally:
        daemon.kill()  # an exported pool leaves it nothing to do, and its own way out takes seconds
        daemon.wait()


def _answers(pid: int) -> bool:
    """Whether it is the daemon by now, so that its places are its own, and it answers."""
    try:
        if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() != ZFS.program:
            return False
        known = FuseTools(pid).run("zpool", "list", "-H")
    except (OSError, TrialError):
        return False
    if known.strip() not in {"", "no pools available"}:
        raise HostError("a new zfs-fuse already has a pool, which is left alone")
    return True


# By OpenZFS of the kernel of a virtual machine, which sees its own disks alone and ends with the trial: no pool of
# another's is in reach.


_MODULE = Path("/sys/module/zfs")
_ARC = Path("/proc/spl/kstat/zfs/arcstats")


@dataclass(frozen=True)
class OpenZfsPool(ZfsPool):
    """The same pool, by the kernel."""

    @contextmanager
    def _standing(self, below: StackContext) -> Iterator[tuple["FuseTools | OpenZfsTools", str, Path]]:
        tools = OpenZfsTools(_load_module(self.options.arc_max))
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
class OpenZfsTools:
    """The tools that were built with the kernel's modules."""

    openzfs: OpenZfs
    kind: ClassVar[ZfsKind] = OPENZFS
    properties: ClassVar[tuple[str, ...]] = ("sync",)

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
