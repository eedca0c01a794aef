"""The kernel: which one, and what of its command line bears on speed."""

import platform
from pathlib import Path
from typing import Any

from dbdyno.host.processor import clock_source
from dbdyno.host.read import UNKNOWN, text_of

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


def kernel_facts(command_line: Path = Path("/proc/cmdline"), cgroups: Path = CGROUPS) -> dict[str, Any]:
    """The kernel's release, build, parameters that matter, clock and control groups."""
    return {
        "release": platform.release(),
        "build": platform.version(),
        "parameters": parameters(text_of(command_line)),
        "clock_source": clock_source(),
        "control_groups": _control_groups(cgroups),
        "pressure": "yes" if Path("/proc/pressure/cpu").exists() else "no",
    }


def parameters(command_line: str) -> list[str] | str:
    """Of the words of a command line those that bear on speed; what follows ``--`` is init's."""
    if command_line == UNKNOWN:
        return UNKNOWN
    words = command_line.split(" -- ", maxsplit=1)[0].split()
    return [word for word in words if word.partition("=")[0] in PARAMETERS_THAT_MATTER]


def _control_groups(folder: Path) -> str:
    if (folder / "cgroup.controllers").exists():
        return "v2"
    if (folder / "memory").is_dir():
        return "v1"
    return "none"
