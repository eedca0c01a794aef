"""Settings of the host's kernel that a study varies: set below the whole stack, read back, and put back.

Whether this host takes a setting is answered by ``why_not``, and whether it then changes anything by
``why_without_effect``: ``plan``, ``doctor`` and the trial ask the same two functions.

Cannot: keep another program from changing a setting meanwhile (that fails the trial); see a claim of another container.
"""

import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.host.processor import sizes_in
from dbdyno.host.read import chosen_in, text_of
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.memory import memory_hierarchy
from dbdyno.stack.undo.actions import RestoreSysfs
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import NO_EFFECT
from dbdyno.study.units import format_bytes
from dbdyno.system import locks

ROOT = Path("/")
CLAIMS = Path("/run/dbdyno-settings")  # a file for each setting that a trial of this host has changed
SWAPPINESS_MAX_BEFORE_5_8 = 100
_CLAIM = 0  # the byte of a claim that its owner locks


@dataclass(frozen=True)
class KernelSetting:
    """Where the kernel keeps a setting."""

    files: str  # a pattern below the root: of one file, or of one for each processor
    lacking: str  # why a host may have no such file
    words: str = ""  # the file beside it that lists what can be chosen; the file itself may mark the chosen word
    partner: str = ""  # the other one of two of which the kernel clears that which is not set


_VM = "proc/sys/vm"
_NO_VM = "this kernel has no such setting in /proc/sys/vm"
_NO_THP = "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)"
ONE_NODE = "this host has one NUMA node"
SETTINGS: Mapping[str, KernelSetting] = {
    "transparent_hugepage": KernelSetting("sys/kernel/mm/transparent_hugepage/enabled", _NO_THP),
    "transparent_hugepage_defrag": KernelSetting("sys/kernel/mm/transparent_hugepage/defrag", _NO_THP),
    "nr_hugepages": KernelSetting(f"{_VM}/nr_hugepages", "this kernel has no huge pages (CONFIG_HUGETLBFS)"),
    "swappiness": KernelSetting(f"{_VM}/swappiness", _NO_VM),
    "vfs_cache_pressure": KernelSetting(f"{_VM}/vfs_cache_pressure", _NO_VM),
    "dirty_ratio": KernelSetting(f"{_VM}/dirty_ratio", _NO_VM, partner="dirty_bytes"),
    "dirty_bytes": KernelSetting(f"{_VM}/dirty_bytes", _NO_VM, partner="dirty_ratio"),
    "dirty_background_ratio": KernelSetting(f"{_VM}/dirty_background_ratio", _NO_VM, partner="dirty_background_bytes"),
    "dirty_background_bytes": KernelSetting(f"{_VM}/dirty_background_bytes", _NO_VM, partner="dirty_background_ratio"),
    "dirty_expire_centisecs": KernelSetting(f"{_VM}/dirty_expire_centisecs", _NO_VM),
    "dirty_writeback_centisecs": KernelSetting(f"{_VM}/dirty_writeback_centisecs", _NO_VM),
    "zone_reclaim_mode": KernelSetting(f"{_VM}/zone_reclaim_mode", "this kernel knows no NUMA nodes (CONFIG_NUMA)"),
    "numa_balancing": KernelSetting(
        "proc/sys/kernel/numa_balancing", "this kernel does not move memory between nodes (CONFIG_NUMA_BALANCING)"
    ),
    "io_uring_disabled": KernelSetting(
        "proc/sys/kernel/io_uring_disabled", "this kernel has no such setting; Linux 6.6 and later have it"
    ),
    "cpu_governor": KernelSetting(
        "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
        "this kernel does not set the processors' frequency (no cpufreq): the hypervisor or the firmware does",
        words="scaling_available_governors",
    ),
}
Value = int | str


@dataclass(frozen=True)
class Refusal:
    """Why this host does not take a setting, and the remedy."""

    why: str
    remedy: str


def why_not(name: str, value: Value | None = None, root: Path = ROOT) -> Refusal | None:
    """Why a setting, or a value of it, can't be set here; ``None`` where it can. Looks, and changes nothing."""
    files = _files(name, root)
    if not files:
        return Refusal(SETTINGS[name].lacking, "leave it out")
    if locked := next((path for path in files if not os.access(path, os.W_OK)), None):
        if os.geteuid() == 0:
            return Refusal(f"{locked.parent} can't be written, as in most containers", "run dbdyno on the host itself")
        return Refusal(f"only root may write to {locked.parent}", "run it with sudo")
    for claimed in _with_partners([name]):
        if claim := _claim_of_another(claimed):
            return claim
    return None if value is None else _why_not_value(name, value, files[0], root)


def _why_not_value(name: str, value: Value, file: Path, root: Path) -> Refusal | None:
    partner = SETTINGS[name].partner
    if partner and {current(name, root), current(partner, root)} == {"0"}:
        why = f"{name} and {partner} are both 0 on this host, which the kernel lets nobody put back"
        return Refusal(why, f"set one of them: sysctl -w vm.{name.replace('bytes', 'ratio')}=10")
    if isinstance(value, str):
        offered = _words_of(file, SETTINGS[name].words)
        if offered and value not in offered:
            return Refusal(f"is {value}, and this kernel offers {', '.join(offered)}", "name one of these")
    elif name == "swappiness" and value > SWAPPINESS_MAX_BEFORE_5_8 and _kernel() < (5, 8):
        return Refusal(f"is {value}, and kernels before 5.8 take at most {SWAPPINESS_MAX_BEFORE_5_8}", "give less")
    elif name == "nr_hugepages":
        return _why_no_room(value, root)
    return None


def _why_no_room(pages: int, root: Path) -> Refusal | None:
    """Whether free memory is lacking for huge pages, beside those that are reserved already."""
    sizes = sizes_in(root / "proc/meminfo")
    page, free = sizes.get("Hugepagesize", 0), sizes.get("MemAvailable", 0)
    needed = (pages - sizes.get("HugePages_Total", 0)) * page
    if needed < free:
        return None
    why = f"{pages} pages of {format_bytes(page)} take {format_bytes(needed)} more, and {format_bytes(free)} are free"
    return Refusal(why, "reserve fewer")


def why_without_effect(name: str, values: Mapping[str, Value], *, limited: bool, root: Path = ROOT) -> str:
    """Why a setting changes nothing for the server here, though the kernel takes it; empty where it may.

    ``values`` are all that a treatment sets, ``limited`` is whether it limits the server's memory.
    """

    def planned(other: str) -> str:
        return str(values[other]) if other in values else current(other, root)

    if name == "swappiness":
        return _why_no_swap(str(values[name]), root, limited=limited)
    if name in {"numa_balancing", "zone_reclaim_mode"}:
        return ONE_NODE if nodes(root) == 1 else ""
    if name == "transparent_hugepage_defrag" and planned("transparent_hugepage") == "never":
        return "transparent_hugepage is never"
    if name.startswith("dirty_background_"):
        limit = name.replace("background_", "")
        background_text, limit_text = planned(name), planned(limit)
        known = background_text.isdecimal() and limit_text.isdecimal() and limit_text != "0"
        if known and int(background_text) >= int(limit_text):
            return f"it is not less than {limit} ({limit_text}), so the kernel takes half of that"
    return ""


def _why_no_swap(swappiness: str, root: Path, *, limited: bool) -> str:
    """Why nothing of the server is swapped, or not by this setting."""
    if len(text_of(root / "proc/swaps").splitlines()) < 2:  # noqa: PLR2004  (the first line names the columns)
        return "this host has no swap"
    hierarchy = memory_hierarchy() if root == ROOT else None
    if limited and hierarchy and (hierarchy[0] == 2 or (hierarchy[1] / "memory.memsw.usage_in_bytes").exists()):  # noqa: PLR2004
        return "stack.memory keeps the server from swap"
    if not limited and hierarchy and hierarchy[0] == 1:
        group = next((line.rpartition(":")[2] for line in _own_groups() if ":memory:" in line), "/")
        own = text_of(hierarchy[1] / group.lstrip("/") / "memory.swappiness", "")
        if group != "/" and own not in {"", swappiness}:
            return f"dbdyno runs in the control group {group}, which has a swappiness of its own: {own}"
    return ""


def _own_groups() -> list[str]:
    return text_of(Path("/proc/self/cgroup"), "").splitlines()


def nodes(root: Path = ROOT) -> int:
    """How many NUMA nodes this host has; one where the kernel tells nothing of them."""
    return len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or 1


def current(name: str, root: Path = ROOT) -> str:
    """What a setting is now; of processors that differ each value once. ``"unknown"`` where there is none."""
    return ", ".join(dict.fromkeys(chosen_in(text_of(path)) for path in _files(name, root))) or "unknown"


def _with_partners(names: Iterable[str]) -> list[str]:
    """Settings with those that the kernel clears when they are set."""
    return list(dict.fromkeys(each for name in names for each in (name, SETTINGS[name].partner) if each))


def _files(name: str, root: Path) -> list[Path]:
    return sorted(root.glob(SETTINGS[name].files))


def _words_of(file: Path, beside: str) -> list[str]:
    """What can be chosen; empty where the kernel does not list it."""
    text = text_of(file.parent / beside if beside else file, "")
    return text.replace("[", "").replace("]", "").split() if beside or "[" in text else []


def _kernel() -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    return tuple(map(int, numbers.groups())) if numbers else (0,)


@dataclass(frozen=True)
class HostSettings:
    """What one treatment sets."""

    values: Mapping[str, Value]
    limited: bool = False  # whether the treatment limits the server's memory
    name: str = "host_settings"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """All set; each as it was before on exit. Raises ``TrialError`` where one did not take, or did not last."""
        for name, value in self.values.items():
            if refusal := why_not(name, value):
                raise HostError(f"host.{name}: {refusal.why}; {refusal.remedy}")
        with ExitStack() as undoing:
            for name in _with_partners(self.values):
                undoing.enter_context(_claimed(name, below.journal.path))
            before = {name: current(name) for name in self.values}
            for name, value in self.values.items():
                _set(name, value, below.journal, undoing)
            observed = self._read_back("asked for {}, the kernel took {}")
            idle = {
                name: why
                for name in self.values
                if (why := why_without_effect(name, self.values, limited=self.limited))
            }
            yield below.raised(self.name, {**observed, "before": before, **({NO_EFFECT: idle} if idle else {})})
            self._read_back("was set to {} for the trial, and another program changed it to {} meanwhile")

    def _read_back(self, complaint: str) -> dict[str, str]:
        """Every value as the kernel shows it. Raises ``TrialError`` with each that is another than was set."""
        readback = {name: current(name) for name in self.values}
        wrong = [
            f"host.{name}: {complaint.format(value, readback[name])}"
            for name, value in self.values.items()
            if readback[name] != str(value)
        ]
        if wrong:
            raise TrialError("; ".join(wrong))
        return readback


def _set(name: str, value: Value, journal: Journal, undoing: ExitStack) -> None:
    """Write a setting, of each processor where it has one, once what undoes it is in the undo log."""
    partner = SETTINGS[name].partner
    for path in _files(name, ROOT):
        text = chosen_in(text_of(path))
        undo = RestoreSysfs(str(path), text)
        # The kernel clears the partner of what is set, and takes no 0 for a number of bytes: the one that counts is
        # put back, which clears the other.
        if partner and text == "0" and current(partner) != "0":
            (file,) = _files(partner, ROOT)
            undo = RestoreSysfs(str(file), current(partner))
        undoing.enter_context(journal.undoing(undo))
        try:
            path.write_text(str(value), encoding="ascii")
        except OSError as error:
            raise TrialError(f"host.{name}: write {value} to {path}: {error.strerror}") from None


# A setting is one for the whole host, so only one trial at a time may change it, whichever state folder it has: who
# changes it holds a lock on the setting's claim. The claim names the undo log: while that is there and nobody holds the
# lock, a killed dbdyno has left the setting changed.


@contextmanager
def _claimed(name: str, log: Path) -> Iterator[None]:
    """Hold the claim to a setting; it is void once the setting is as it was. Raises ``HostError``."""
    path = CLAIMS / name
    try:
        CLAIMS.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise HostError(
            f"{path}: {error.strerror}; a setting of the host is changed only under a claim there"
        ) from None
    try:
        if not locks.take(handle, _CLAIM):
            another = _claim_of_another(name) or Refusal("another dbdyno is changing it", "wait until that has ended")
            raise HostError(f"host.{name}: {another.why}; {another.remedy}")
        before = [text_of(file) for file in _files(name, ROOT)]
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "log": str(log)}).encode(), 0)
        try:
            yield
        finally:
            if [text_of(file) for file in _files(name, ROOT)] == before:
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _claim_of_another(name: str) -> Refusal | None:
    """Who has changed a setting and not put it back yet, alive or killed."""
    try:
        handle = os.open(CLAIMS / name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        taken, claim = locks.is_taken(handle, _CLAIM), {}
        with suppress(ValueError):
            claim = json.loads(os.pread(handle, 4096, 0) or b"{}")
    finally:
        os.close(handle)
    if taken:
        return Refusal(
            f"another dbdyno (pid {claim.get('pid', 'unknown')}) has changed it", "wait until that has ended"
        )
    log = Path(claim.get("log", ""))
    if claim and log.exists():
        return Refusal("a killed dbdyno has left it changed", f"DBDYNO_STATE_DIR={log.parent.parent} dbdyno restore")
    return None
