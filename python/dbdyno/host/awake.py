"""What could keep this host's processors from halting: the kernel's own polling, else threads that poll when idle.

A processor that halts takes long to wake up in a virtual machine, where each halt leaves it to the hypervisor.
"""

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dbdyno.host.read import UNKNOWN, text_of

ROOT = Path("/")
CPU_IDLE_SINCE = (5, 15)  # the first kernel whose control groups can yield as a whole: cpu.idle
ALONE = "run it with sudo, or: sysctl -w kernel.sched_autogroup_enabled=0"


@dataclass(frozen=True)
class Means:
    """How processors can be kept awake here; where nothing can, why, and the remedy."""

    by: Literal["kernel", "pollers", ""]
    group: Path | None = None  # the control groups' root, below which pollers get one of their own
    why: str = ""
    remedy: str = ""


def means_here(cpus: frozenset[int], root: Path = ROOT) -> Means:
    """The first means that this host allows; ``root`` is where /dev, /proc and /sys are found.

    ``SCHED_IDLE`` counts inside a control group, or a session where the kernel groups by those (sched(7), "The
    autogroup feature"). Without a group of their own pollers would take as much as the whole server.
    """
    if _kernel_polls(cpus, root):
        return Means("kernel")
    group = _group_root(root)
    if limit := _cpu_limit(root, inside=group is None):
        why = f"the control group {limit} limits CPU time, which pollers would use up"
        return Means("", why=why, remedy="run it outside of that group")
    if group is None and text_of(root / "proc/sys/kernel/sched_autogroup_enabled") == "1":
        why = "the kernel schedules by session, so that pollers would not yield to the server"
        return Means("", why=why, remedy=ALONE)
    return Means("pollers", group)


def is_guest(root: Path = ROOT) -> bool:
    """Whether this is a virtual machine, by the processor's own flag; without such a flag it counts as none."""
    return re.search(r"^flags\s*:.*\bhypervisor\b", text_of(root / "proc/cpuinfo"), re.MULTILINE) is not None


def _kernel_polls(cpus: frozenset[int], root: Path) -> bool:
    """Whether each processor has an idle state that polls, and this user may choose it (admin-guide/pm/cpuidle.rst)."""
    states = [root / f"sys/devices/system/cpu/cpu{cpu}/cpuidle/state0" for cpu in cpus]
    polls = all(text_of(state / "name") == "POLL" and text_of(state / "disable", "0") == "0" for state in states)
    return bool(states) and polls and os.access(root / "dev/cpu_dma_latency", os.R_OK | os.W_OK)


def _group_root(root: Path) -> Path | None:
    """Where a control group can be made that yields to all others; none without root or on an older kernel."""
    version_1, version_2 = root / "sys/fs/cgroup/cpu", root / "sys/fs/cgroup"
    if (version_1 / "cgroup.procs").exists():
        able, group = (version_1 / "cpu.idle").exists(), version_1
    else:
        # Not switched on here: the controller at the root would regroup every process of the host.
        able, group = "cpu" in text_of(version_2 / "cgroup.subtree_control").split() and _knows_cpu_idle(), version_2
    return group if able and os.access(group, os.W_OK) else None


def _knows_cpu_idle() -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    return bool(numbers) and tuple(map(int, numbers.groups())) >= CPU_IDLE_SINCE  # type: ignore[union-attr]


def _cpu_limit(root: Path, *, inside: bool) -> str:
    """The control group that limits CPU time, of those the pollers would be in: ``inside`` dbdyno's own or the root."""
    paths = _own_groups(root) if inside else {"v1": [Path("/")], "v2": [Path("/")]}
    for path in paths.get("v1", ()):
        limit = text_of(root / "sys/fs/cgroup/cpu" / path.relative_to("/") / "cpu.cfs_quota_us")
        if limit.isdigit() and int(limit) > 0:
            return str(path)
    for path in paths.get("v2", ()):
        if text_of(root / "sys/fs/cgroup" / path.relative_to("/") / "cpu.max", "max").split()[0].isdigit():
            return str(path)
    return ""


def _own_groups(root: Path) -> dict[str, list[Path]]:
    """Of this process, with all above them, by the version of the hierarchy."""
    groups: dict[str, list[Path]] = {}
    for line in _lines(text_of(root / "proc/self/cgroup")):
        number, controllers, place = line
        kind = "v2" if number == "0" else "v1" if "cpu" in controllers.split(",") else ""
        path = Path(place)
        if kind and path.is_absolute() and ".." not in path.parts:
            groups[kind] = [path, *path.parents]
    return groups


def _lines(text: str) -> Iterator[tuple[str, str, str]]:
    for line in text.splitlines() if text != UNKNOWN else ():
        number, _, rest = line.partition(":")
        controllers, _, place = rest.partition(":")
        yield number, controllers, place
