"""The memory limit: a control group that bounds the server and the page cache it fills."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems import TMPFS
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.filesystem import check_mount, mount, observed_mount
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import RemoveCgroup, Unmount

ROOT = Path("/sys/fs/cgroup")


def memory_hierarchy() -> tuple[int, Path] | None:
    """Version (1 or 2) and root of the hierarchy whose memory controller can be used here, if there is one."""
    if (ROOT / "memory/memory.limit_in_bytes").exists() or (ROOT / "memory/memory.usage_in_bytes").exists():
        return 1, ROOT / "memory"
    controllers = ROOT / "cgroup.controllers"
    if controllers.exists() and "memory" in controllers.read_text(encoding="ascii").split():
        return 2, ROOT
    return None


@dataclass(frozen=True)
class Memory:
    """A limit for what stands above: the server joins the group, and its page cache is charged to it."""

    limit: int  # bytes
    name: str = "memory"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """A control group of this trial's own."""
        hierarchy = memory_hierarchy()
        if hierarchy is None:
            raise HostError("stack.memory: this host has no usable memory control group; leave stack.memory out")
        version, root = hierarchy
        group = root / f"dbdyno-{below.scratch.name}"
        limit_file = group / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        with below.journal.undoing(RemoveCgroup(str(group))):
            try:
                if version == 2:  # noqa: PLR2004
                    with suppress(OSError):  # it is on already, or the read-back below says that it is not
                        (root / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
                group.mkdir()
                limit_file.write_text(str(self.limit), encoding="ascii")
                limit_bytes = int(limit_file.read_text(encoding="ascii"))
            except (OSError, ValueError) as error:
                raise HostError(f"stack.memory: {group}: {error}") from None
            if abs(limit_bytes - self.limit) >= 4096:  # noqa: PLR2004  (the kernel rounds down to pages)
                raise TrialError(f"stack.memory: asked for {self.limit} bytes, the kernel took {limit_bytes}")
            swap_off = _swap_off(group, version)
            yield below.raised(
                self.name, {"limit_bytes": limit_bytes, "cgroup": version, "swap_off": swap_off}, cgroup=group
            )


def killed_for_memory(group: Path) -> bool:
    """Whether the kernel has killed a process of a group for its limit."""
    for name in ("memory.events", "memory.oom_control"):
        with suppress(OSError):
            counts = dict(line.split() for line in (group / name).read_text(encoding="ascii").splitlines())
            return int(counts.get("oom_kill", 0)) > 0
    return False


def _swap_off(group: Path, version: int) -> bool:
    """Keep the group from swap where the kernel allows it: no room for memory and swap together but for memory."""
    if version == 1:
        name = "memory.memsw.limit_in_bytes"
        value = (group / "memory.limit_in_bytes").read_text(encoding="ascii").strip()
    else:
        name, value = "memory.swap.max", "0"
    with suppress(OSError):
        (group / name).write_text(value, encoding="ascii")
        return (group / name).read_text(encoding="ascii").strip() == value
    return False


# The page cache: what it holds of the data is dropped, so that every trial starts from the device.


@dataclass(frozen=True)
class PageCache:
    """Drops the data's own pages; everybody else's on this host are left alone."""

    name: str = "page_cache"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The data cold, and how much of it is not: what stands in memory by itself can't be dropped."""
        everything = (path for directory in below.directories for path in directory.rglob("*"))
        files = sorted(path for path in everything if path.is_file() and not path.is_symlink())
        for path in files:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(handle)  # only clean pages can be dropped
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
        yield below.raised(self.name, {"data_cached_bytes": cached_bytes(files)})


def cached_bytes(files: list[Path]) -> int | None:
    """Bytes of files that lie in the page cache; ``None`` where that is unknown."""
    try:
        sizes = run_tool(["fincore", "--bytes", "--raw", "--noheadings", "--output", "RES", *map(str, files)])
    except TrialError:
        return None
    return sum(int(line) for line in sizes.split())


# A tmpfs in place of a filesystem on a device: what there is to gain by any device at most.


@dataclass(frozen=True)
class MemoryFilesystem:
    """A tmpfs of a size."""

    size: int  # bytes; what is written beyond finds the disk full
    options: str  # of mount
    name: str = "filesystem"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The tmpfs mounted in the scratch folder; nothing is flushed anywhere."""
        directory = below.scratch / "mnt"
        directory.mkdir(exist_ok=True)
        with below.journal.undoing(Unmount(str(directory))):
            mount(TMPFS, ",".join(filter(None, [self.options, f"size={self.size}"])), directory, "dbdyno")
            observed = {**observed_mount(directory), "barriers": False, "flushes_on_fsync": False}
            check_mount(TMPFS, self.options, observed)
            size_bytes = shutil.disk_usage(directory).total
            if size_bytes != self.size:
                raise TrialError(f"tmpfs: asked for {self.size} bytes, the kernel took {size_bytes}")
            yield below.raised(self.name, observed, directory=directory)
