"""The host's processors, kernel, memory and hypervisor, and what could keep its processors from halting."""

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dbdyno.host.read import UNKNOWN, chosen_of, distinct, number_of, text_of

# The processors: model, flags, mitigations, and who sets their frequency, from /proc/cpuinfo and sysfs.


CPUINFO, SYSFS = Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu")
# What checksums, encryption, compression, and clocks of a server depend on.
FLAGS_THAT_MATTER = ("sse4_2", "avx2", "avx512f", "aes", "vaes", "pclmulqdq", "sha_ni", "erms", "constant_tsc",
                     "nonstop_tsc", "tsc_known_freq", "hypervisor", "crc32", "sve", "asimd")  # fmt: skip


def processor_facts(cpuinfo: Path = CPUINFO, sysfs: Path = SYSFS) -> dict[str, Any]:
    """Every fact about the processors of this host."""
    first = _first_processor(cpuinfo)
    flags = set(first.get("flags", first.get("Features", "")).split())
    return {
        "model": first.get("model name", UNKNOWN),
        "microcode": first.get("microcode", UNKNOWN),
        "flags": [flag for flag in FLAGS_THAT_MATTER if flag in flags] if flags else UNKNOWN,
        "smt": {"1": "on", "0": "off"}.get(text_of(sysfs / "smt/active"), UNKNOWN),
        "frequency": _frequency(sysfs),
        "idle": {
            "driver": text_of(sysfs / "cpuidle/current_driver"),
            "governor": text_of(sysfs / "cpuidle/current_governor_ro"),
        },
        "mitigations": {path.name: text_of(path) for path in sorted((sysfs / "vulnerabilities").glob("*"))} or UNKNOWN,
    }


def clock_source() -> str:
    """What the kernel reads the time from: a slow one costs a server a system call for each look at the clock."""
    return chosen_of(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))


def processor_ticks() -> list[int]:
    """What all processors together spent in each state since the start, by the first line of /proc/stat (proc(5))."""
    return [int(field) for field in Path("/proc/stat").read_bytes().split(b"\n", 1)[0].split()[1:]]


def _first_processor(cpuinfo: Path) -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo; all processors of one host are taken to be alike."""
    processor: dict[str, str] = {}
    text = text_of(cpuinfo)
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if colon:
            processor[name.strip()] = value.strip()
    return processor


def _frequency(sysfs: Path) -> dict[str, Any]:
    """Driver and governor of every processor; a guest that sees none has none to show."""
    folders = sorted(sysfs.glob("cpu[0-9]*/cpufreq"))
    if not folders:
        return {"driver": UNKNOWN, "governor": UNKNOWN}
    boost = text_of(sysfs / "cpufreq/boost")
    no_turbo = text_of(sysfs / "intel_pstate/no_turbo")
    return {
        "driver": distinct([text_of(folder / "scaling_driver") for folder in folders]),
        "governor": distinct([text_of(folder / "scaling_governor") for folder in folders]),
        "boost": {"1": "on", "0": "off"}.get(boost) or {"1": "off", "0": "on"}.get(no_turbo, UNKNOWN),
        "min_khz": number_of(folders[0] / "scaling_min_freq"),
        "max_khz": number_of(folders[0] / "scaling_max_freq"),
    }


# The kernel: which one, and what of its command line bears on speed.


# By name: a command line may hold anything, also what is private.
PARAMETERS_THAT_MATTER = (
    "mitigations", "nosmt", "nopti", "pti", "spectre_v2", "spec_store_bypass_disable", "l1tf", "mds", "retbleed",
    "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "irqaffinity", "maxcpus", "nr_cpus", "mem", "preempt", "threadirqs",
    "idle", "cpuidle.off", "intel_idle.max_cstate", "processor.max_cstate", "intel_pstate", "amd_pstate",
    "cpufreq.default_governor", "transparent_hugepage", "hugepages", "hugepagesz", "default_hugepagesz",
    "numa", "numa_balancing", "elevator", "scsi_mod.use_blk_mq", "nvme_core.default_ps_max_latency_us",
    "nvme.poll_queues", "libata.force", "pcie_aspm", "iommu", "intel_iommu", "amd_iommu", "swiotlb", "clocksource",
    "tsc", "psi", "cgroup_disable", "systemd.unified_cgroup_hierarchy", "init_on_alloc", "init_on_free", "slub_debug",
    "page_poison", "debug_pagealloc", "lockdown", "audit",
)  # fmt: skip
CGROUPS = Path("/sys/fs/cgroup")


def kernel_facts() -> dict[str, Any]:
    """The kernel's release, build, parameters that matter, clock and control groups."""
    return {
        "release": platform.release(),
        "build": platform.version(),
        "parameters": parameters(text_of(Path("/proc/cmdline"))),
        "clock_source": clock_source(),
        "control_groups": _control_groups(),
        "pressure": "yes" if Path("/proc/pressure/cpu").exists() else "no",
    }


def parameters(command_line: str) -> list[str] | str:
    """Of the words of a command line those that bear on speed; what follows ``--`` is init's."""
    if command_line == UNKNOWN:
        return UNKNOWN
    words = command_line.split(" -- ", maxsplit=1)[0].split()
    return [word for word in words if word.partition("=")[0] in PARAMETERS_THAT_MATTER]


def _control_groups() -> str:
    if (CGROUPS / "cgroup.controllers").exists():
        return "v2"
    if (CGROUPS / "memory").is_dir():
        return "v1"
    return "none"


# Whether the host is a guest, and in what: the hypervisor flag, the firmware's tables, a container's marks.


DMI = Path("/sys/class/dmi/id")
# What firmware says of itself (systemd-detect-virt's table, the commoner part).
VENDORS = {
    "KVM": "kvm",
    "OpenStack": "kvm",
    "Amazon EC2": "amazon",
    "QEMU": "qemu",
    "VMware": "vmware",
    "VMW": "vmware",
    "innotek GmbH": "virtualbox",
    "VirtualBox": "virtualbox",
    "Xen": "xen",
    "Bochs": "bochs",
    "Parallels": "parallels",
    "BHYVE": "bhyve",
    "Microsoft Corporation Virtual Machine": "hyper-v",
    "Google Compute Engine": "google",
    "DigitalOcean": "kvm",
    "Hetzner": "kvm",
}
DMI_FILES = ("sys_vendor", "product_name", "board_vendor", "bios_vendor", "bios_version")


def virtualisation_facts(
    *, cpu_flags: list[str] | str, dmi: Path = DMI, root: Path = Path("/"), environ: Path = Path("/proc/1/environ")
) -> dict[str, Any]:
    """What this host runs in, and what says so; nothing that names the one machine."""
    tables = {name: text_of(dmi / name) for name in DMI_FILES}
    return {
        "hypervisor_flag": UNKNOWN if cpu_flags == UNKNOWN else ("yes" if "hypervisor" in cpu_flags else "no"),
        "hypervisor": _hypervisor(tables, root),
        "firmware": tables,
        "container": _container(root, environ),
    }


def _hypervisor(tables: dict[str, str], root: Path) -> str:
    kind = text_of(root / "sys/hypervisor/type")
    if kind != UNKNOWN:
        return kind
    firmware = " / ".join([f"{tables['sys_vendor']} {tables['product_name']}", *tables.values()])
    return next((name for mark, name in VENDORS.items() if mark in firmware), UNKNOWN)


def _container(root: Path, environ: Path) -> str:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    try:
        words = environ.read_bytes().split(b"\0")
    except OSError:
        return UNKNOWN
    return next((word.partition(b"=")[2].decode(errors="replace") for word in words if word.startswith(b"container=")),
                "none seen")  # fmt: skip


# Memory, swap, huge pages and NUMA nodes.


MEMINFO, HUGE = Path("/proc/meminfo"), Path("/sys/kernel/mm")
NODES, VM = Path("/sys/devices/system/node"), Path("/proc/sys/vm")


def memory_facts(meminfo: Path = MEMINFO, huge: Path = HUGE) -> dict[str, Any]:
    """Sizes in bytes, and what the kernel does with memory by itself."""
    sizes = sizes_in(meminfo)
    return {
        "bytes": sizes.get("MemTotal", UNKNOWN),
        "swap_bytes": sizes.get("SwapTotal", UNKNOWN),
        "transparent_huge_pages": chosen_of(huge / "transparent_hugepage/enabled"),
        "transparent_huge_pages_defrag": chosen_of(huge / "transparent_hugepage/defrag"),
        "huge_pages": {
            path.name.removeprefix("hugepages-"): number_of(path / "nr_hugepages")
            for path in sorted((huge / "hugepages").glob("hugepages-*"))
        }
        or UNKNOWN,
        "same_page_merging": {"0": "off", "1": "on"}.get(text_of(huge / "ksm/run"), UNKNOWN),
        "swappiness": number_of(VM / "swappiness"),
        "dirty": {
            name: number_of(VM / name)
            for name in ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
        },
    }


def numa_facts(nodes: Path = NODES) -> dict[str, Any]:
    """Which processors and how much memory each node has."""
    folders = sorted(nodes.glob("node[0-9]*"), key=lambda path: int(path.name.removeprefix("node")))
    return {
        "nodes": {path.name: _node(path) for path in folders} or UNKNOWN,
        "balancing": {"0": "off", "1": "on"}.get(text_of(Path("/proc/sys/kernel/numa_balancing")), UNKNOWN),
    }


def _node(path: Path) -> dict[str, Any]:
    sizes = sizes_in(path / "meminfo")
    return {"cpus": text_of(path / "cpulist"), "bytes": sizes.get("MemTotal", UNKNOWN)}


def sizes_in(path: Path) -> dict[str, int]:
    """``MemTotal: 24 kB`` as bytes; a node's lines begin with ``Node 0``."""
    amounts = {}
    for line in text_of(path).splitlines():
        name, _, value = line.partition(":")
        fields = value.split()
        if fields and fields[0].isdigit():
            amounts[name.split()[-1]] = int(fields[0]) * (1024 if fields[1:] == ["kB"] else 1)
    return amounts


# What could keep this host's processors from halting: the kernel's own polling, else threads that poll when idle.
#
# A processor that halts takes long to wake up in a virtual machine, where each halt leaves it to the hypervisor.


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
