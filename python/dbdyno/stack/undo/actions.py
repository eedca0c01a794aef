"""What undoes each kind of change. Every undo is found by what it changed, not by what came of it.

That is why it can be written down beforehand, and applied at any moment, any number of times.
"""

import contextlib
import errno
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dbdyno.errors import HostError, TrialError
from dbdyno.host.read import chosen_in
from dbdyno.host.storage import is_mounted, mounts
from dbdyno.stack.btrfs import forget_device
from dbdyno.stack.disk_client import DiskClient
from dbdyno.stack.emptiness import uses
from dbdyno.stack.loop import loops_over, remove_loop
from dbdyno.stack.tools import tool_path
from dbdyno.stack.undo.external_server import DropAccount, DropExternalTables, SetGlobal
from dbdyno.stack.undo.kind import Undo, boot_id
from dbdyno.stack.undo.real_disk import MarkHalfMade, WipeOurs
from dbdyno.system.state import state_folder

TOKEN_VARIABLE = "DBDYNO_TOKEN"  # noqa: S105  (not a password: it marks our processes)
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))  # where it may be mounted
_REMOVAL_TRIES = 20
LET_GO_SECONDS = 30.0  # a busy host takes its time to close what a device was used by


@dataclass(frozen=True)
class EndProcesses(Undo):
    """End every process that carries a token in its environment."""

    WHAT = "end {self.what}"

    token: str
    what: str
    grace_seconds: float = 10.0

    def _processes(self) -> list[psutil.Process]:
        processes = []
        for pid in marked({self.token}):
            with contextlib.suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(pid))
        return processes

    def apply(self) -> bool:
        """SIGTERM, and SIGKILL after the grace."""
        processes = alive = self._processes()
        for stop in ("terminate", "kill", "kill"):
            for process in alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    getattr(process, stop)()
                    process.resume()  # one that is held still ends as well
            # One may have started another meanwhile.
            alive = self._await_end(alive) or [process for process in self._processes() if not _is_dead(process)]
            if not alive:
                return bool(processes)
        raise HostError(f"{self.what} (pid {', '.join(str(p.pid) for p in alive)}) does not end, even when killed")

    def _await_end(self, processes: list[psutil.Process]) -> list[psutil.Process]:
        """Those that have not ended after the grace."""
        deadline = time.monotonic() + self.grace_seconds
        while True:
            _, alive = psutil.wait_procs(processes, timeout=0)
            alive = [process for process in alive if not _is_dead(process)]
            if not alive or time.monotonic() > deadline:
                return alive
            time.sleep(0.01)


@dataclass(frozen=True)
class SetInstantMode(Undo):
    """Let an emulated disk answer at once again: what it still has to write would take a drive's time otherwise."""

    WHAT = "let the emulated disk at {self.control} finish at once"

    control: str  # the disk's control socket

    def apply(self) -> bool:
        """Ask it; a disk that is gone needs no asking."""
        try:
            DiskClient(Path(self.control), answer_seconds=10.0).set_mode("instant")
        except TrialError:
            return False
        return True


@dataclass(frozen=True)
class Unmount(Undo):
    """Unmount a folder."""

    WHAT = "unmount {self.path}"

    path: str
    patience_seconds: float = 10.0

    def apply(self) -> bool:
        """Unmount; where the mount stays busy or its FUSE daemon is dead, take it out of the tree."""
        if not is_mounted(self.path):
            return False
        deadline = time.monotonic() + self.patience_seconds
        while True:
            complaint = _complaint("umount", self.path)
            if not is_mounted(self.path):
                return True
            if "busy" not in complaint or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        _complaint("umount", "--lazy", self.path)
        if is_mounted(self.path):
            raise HostError(f"umount {self.path}: {complaint}; end what uses it, then: dbdyno restore")
        return True


@dataclass(frozen=True)
class DetachLoops(Undo):
    """Detach every loop device over a file, and remove it, so that no setting of its queue survives."""

    WHAT = "detach the loop device over {self.backing_file}"

    backing_file: str

    def apply(self) -> bool:
        """Detach and wait until the kernel has let go."""
        names = loops_over(self.backing_file)
        for name in names:
            forget_device(Path("/dev") / name)  # while it has a name yet
            complaint = _complaint("losetup", "--detach", f"/dev/{name}")
            deadline = time.monotonic() + LET_GO_SECONDS
            while name in loops_over(self.backing_file):
                if time.monotonic() > deadline:
                    use = "; ".join(uses(Path("/dev") / name)) or "by something that can't be seen from here"
                    raise HostError(
                        f"losetup --detach /dev/{name}: {complaint or f'still in use: {use}'}; dbdyno restore"
                    )
                time.sleep(0.02)
            remove_loop(int(name.removeprefix("loop")))
        return bool(names)


@dataclass(frozen=True)
class RemoveTree(Undo):
    """Remove a scratch folder of ours."""

    WHAT = "remove {self.path}"

    path: str

    def apply(self) -> bool:
        """Remove it, but never through a mount and never outside the state folder."""
        path = Path(self.path)
        if not path.is_dir():
            return False
        if state_folder() not in path.resolve().parents:
            raise HostError(f"{path} is not under {state_folder()}; it is left alone")
        if path.is_symlink():
            raise HostError(f"{path} is a link, which dbdyno does not make; it is left alone")
        real = path.resolve()
        if any(real in (place := Path(mount.place), *place.parents) for mount in mounts()):
            raise HostError(f"{path} still holds a mount; it is left alone")
        return _remove(path)


def _remove(path: Path) -> bool:
    """Remove a folder with all that is in it; whether it was there."""
    if not path.exists():
        return False
    for _ in range(_REMOVAL_TRIES):
        try:
            shutil.rmtree(path)  # which follows no link inside
        except FileNotFoundError:  # a program that ends removes its own files meanwhile
            continue
        except OSError as error:
            raise HostError(f"{error.filename or path}: {error.strerror}") from None
        return True
    return not path.exists()


@dataclass(frozen=True)
class RemoveDiskFile(Undo):
    """Remove a file that dbdyno made as a disk in a folder of others."""

    WHAT = "remove {self.path}"

    path: str

    def apply(self) -> bool:
        """Remove it, if it is called as only dbdyno calls files, and is one."""
        path = Path(self.path)
        if not re.fullmatch(r"dbdyno-[0-9a-f]+\.img", path.name):
            raise HostError(f"{path} is not a file of dbdyno's; it is left alone")
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise HostError(f"{path} is not the file that dbdyno made; it is left alone")
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}") from None
        return True


@dataclass(frozen=True)
class RemoveCgroup(Undo):
    """Remove a control group of ours."""

    WHAT = "remove the control group {self.path}"

    path: str

    def apply(self) -> bool:
        """Remove it once its last process has ended; the kernel needs a moment after that."""
        return _rmdir(Path(self.path), FileNotFoundError, held_by=_processes_of)


@dataclass(frozen=True)
class RemoveTraceInstance(Undo):
    """Remove a trace instance of ours from tracefs, and what it traces with it."""

    WHAT = "remove the trace instance {self.name}"

    name: str
    tracefs: str = ""  # where that is mounted, if not at one of its usual places

    def apply(self) -> bool:
        """Remove it; the kernel needs a moment after its last reader is gone. Nothing goes that is not called ours."""
        if not re.fullmatch(r"dbdyno-[0-9a-f]+", self.name):
            raise HostError(f"{self.name} is not a trace instance of dbdyno's; it is left alone")
        places = (Path(self.tracefs),) if self.tracefs else TRACEFS
        # Who may not go there has made nothing there; removing it ends its events too.
        lacking = (FileNotFoundError, NotADirectoryError, PermissionError)
        return any(_rmdir(place / "instances" / self.name, *lacking) for place in places)


def _processes_of(group: Path) -> str:
    """Which processes are in a control group, in words; empty if none, or if that can't be read."""
    try:
        pids = (group / "cgroup.procs").read_text(encoding="ascii").split()
    except OSError:
        return ""
    return f"processes {', '.join(pids)} are in it" if pids else ""


def _rmdir(path: Path, *lacking: type[OSError], held_by: Callable[[Path], str] = lambda _: "") -> bool:
    """Remove a folder of the kernel's; whether it was there, which an error of the kinds ``lacking`` denies.

    A busy one is tried again for a while: what uses it may be ending, which takes a busy host its time.
    """
    deadline = time.monotonic() + LET_GO_SECONDS
    while True:
        try:
            path.rmdir()
        except lacking:
            return False
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                why = "; ".join(filter(None, [error.strerror, held_by(path)]))
                raise HostError(f"rmdir {path}: {why}; end what uses it, then: dbdyno restore") from None
            time.sleep(0.05)
        else:
            return True


@dataclass(frozen=True)
class RestoreSysfs(Undo):
    """Write a kernel setting back to what it was."""

    WHAT = "set {self.path} back to {self.value}"

    path: str
    value: str
    boot: str = field(default_factory=boot_id)

    def apply(self) -> bool:
        """Write it if it differs."""
        setting = Path(self.path)
        if self.boot != boot_id():
            return False
        try:
            if chosen_in(setting.read_text(encoding="ascii")) == self.value:
                return False
            setting.write_text(self.value, encoding="ascii")
        except FileNotFoundError:
            return False  # the device is gone
        except OSError as error:
            raise HostError(f"write {self.value!r} to {self.path}: {error.strerror}") from None
        return True


@dataclass(frozen=True)
class StopArray(Undo):
    """Stop the md array that stands on devices of ours."""

    WHAT = "stop the md array over {self.devices}"

    devices: Sequence[str]  # their paths, such as /dev/loop3
    boot: str = field(default_factory=boot_id)

    def apply(self) -> bool:
        """Stop each array all of whose disks are among them; one that has another's disk is left alone."""
        if self.boot != boot_id():
            return False
        _await_tools(set(self.devices))
        arrays = arrays_over(self.devices)
        for array in arrays:
            deadline = time.monotonic() + LET_GO_SECONDS
            while True:
                complaint = _complaint(tool_path("mdadm") or "mdadm", "--stop", f"/dev/{array}")
                if array not in arrays_over(self.devices):
                    break
                if time.monotonic() > deadline:
                    raise HostError(f"mdadm --stop /dev/{array}: {complaint}; end what uses it, then: dbdyno restore")
                time.sleep(0.05)
        return bool(arrays)


# What makes arrays, caches and mappings, and what such a tool is before it is itself.
_TOOLS = {"setpriv", "mdadm", "make-bcache", "cryptsetup", "dmsetup", "vgcreate", "vgrename", "vgchange", "lvcreate"}


def _await_tools(words: set[str]) -> None:
    """Wait for tools that were given one of these words: they are killed with dbdyno, but end their last call first.

    What such a call makes appears only then. Raises ``HostError`` where one does not end.
    """
    deadline = time.monotonic() + LET_GO_SECONDS
    while pids := _tools_given(words):
        if time.monotonic() > deadline:
            numbers = ", ".join(map(str, pids))
            raise HostError(f"a tool of dbdyno's (pid {numbers}) does not end; end it, then: dbdyno restore")
        time.sleep(0.05)


def _tools_given(words: set[str]) -> list[int]:
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(argv[0]).name in _TOOLS and any(word in argument for argument in argv for word in words):
                pids.append(int(folder.name))
    return pids


def arrays_over(devices: Sequence[str]) -> list[str]:
    """Names of the md arrays (``md127``) that stand on some of these devices, and on no other."""
    ours = {Path(device).name for device in devices}
    arrays = []
    for folder in sorted(Path("/sys/block").glob("md*/md")):
        disks = {path.name.removeprefix("dev-") for path in folder.glob("dev-*")}
        if disks and disks <= ours:
            arrays.append(folder.parent.name)
    return arrays


@dataclass(frozen=True)
class StopBcache(Undo):
    """Stop bcache on devices of ours: what it makes of a disk, then the set of the cache's disk."""

    WHAT = "stop bcache on {self.devices}"

    devices: Sequence[str]  # their paths: of the disk behind the cache, and of the cache's own
    boot: str = field(default_factory=boot_id)

    def apply(self) -> bool:
        """Stop each that is registered; what waited to be written back is given up with the cache."""
        if self.boot != boot_id():
            return False
        _await_tools(set(self.devices))
        folders = [Path("/sys/block") / Path(device).name / "bcache" for device in self.devices]
        registered = [folder for folder in folders if folder.is_dir()]
        for folder in registered:
            deadline = time.monotonic() + LET_GO_SECONDS
            while folder.is_dir():
                for stop in (folder / "stop", folder / "set/stop"):
                    with contextlib.suppress(OSError):  # a disk has the one, a cache the other
                        stop.write_text("1", encoding="ascii")
                if time.monotonic() > deadline:
                    raise HostError(f"{folder.parent.name}: bcache does not let go of it; then: dbdyno restore")
                time.sleep(0.05)
        return bool(registered)


@dataclass(frozen=True)
class RemoveMappings(Undo):
    """Remove the mappings of device mapper whose names begin as only dbdyno's do."""

    WHAT = "remove the mappings {self.prefix}*"

    prefix: str

    def apply(self) -> bool:
        """Remove each, those first on which no other stands."""
        if not re.match(r"dbdyno[-_][0-9a-f]+-", self.prefix):
            raise HostError(f"{self.prefix} is not a mapping of dbdyno's; it is left alone")
        _await_tools({self.prefix.rstrip("-")})
        deadline, removed = time.monotonic() + LET_GO_SECONDS, False
        while names := self._names():
            complaints = [_complaint(tool_path("dmsetup") or "dmsetup", "remove", name) for name in names]
            left = self._names()
            removed = removed or len(left) < len(names)
            if left and time.monotonic() > deadline:
                why = next(filter(None, reversed(complaints)), "still in use")
                raise HostError(f"dmsetup remove {left[0]}: {why}; end what uses it, then: dbdyno restore")
            if len(left) == len(names):
                time.sleep(0.05)
        return removed

    def _names(self) -> list[str]:
        names = []
        for path in Path("/sys/block").glob("dm-*/dm/name"):
            with contextlib.suppress(OSError):  # removed this moment
                names.append(path.read_text(encoding="utf-8").strip())
        return sorted(name for name in names if name.startswith(self.prefix))


_KINDS: tuple[type[Undo], ...] = (
    EndProcesses, SetInstantMode, Unmount, DetachLoops, RemoveTree, RemoveDiskFile, RemoveCgroup,
    RemoveTraceInstance, RestoreSysfs, StopArray, StopBcache, RemoveMappings, WipeOurs, MarkHalfMade, SetGlobal,
    DropExternalTables, DropAccount,
)  # fmt: skip
UNDOS = {kind.__name__: kind for kind in _KINDS}  # by the names that undo logs have


def _complaint(*argv: str) -> str:
    """Run a tool whose effect is looked at, not its exit code; returns what it has to say against it."""
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", errors="replace", check=False)
    return done.stderr.strip()


def marked(tokens: set[str]) -> set[int]:
    """Numbers of the processes that carry one of the tokens in their environment, as far as we may look."""
    marks = {f"{TOKEN_VARIABLE}={token}".encode() for token in tokens}
    numbers = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marks & set((folder / "environ").read_bytes().split(b"\0")):
                numbers.add(int(folder.name))
    return numbers


def _is_dead(process: psutil.Process) -> bool:
    """Whether nothing of a process runs any more; in a container its parent may never ask how it ended."""
    try:
        threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
        return process.status() == psutil.STATUS_ZOMBIE and threads == 1
    except (OSError, psutil.NoSuchProcess):
        return True
