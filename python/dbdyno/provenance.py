"""What a run was made with and on: versions and host facts, kept with it. Nothing secret, no host name."""

import os
import platform
from pathlib import Path
from typing import Any

import psutil

from dbdyno import __version__
from dbdyno.plan.plan import Plan
from dbdyno.servers.installation import find_server


def versions(plan: Plan) -> dict[str, str]:
    """Versions of dbdyno, Python, the kernel and each server of the plan."""
    servers = {spec.stack.server: find_server(spec.stack.server).version for spec in plan.specs.values()}
    return {
        "dbdyno": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        **{f"server {name}": version for name, version in servers.items()},
    }


def host_facts() -> dict[str, Any]:
    """The machine as the run found it."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "load_average_1min": os.getloadavg()[0],
        **_tuning(),
    }


def _tuning() -> dict[str, Any]:
    """What dbdyno leaves alone and a server may feel; ``None`` where the kernel does not tell."""
    huge = _text("/sys/kernel/mm/transparent_hugepage/enabled")
    cpus = Path("/sys/devices/system/cpu")
    governors = {path.read_text(encoding="ascii").strip() for path in cpus.glob("cpu*/cpufreq/scaling_governor")}
    return {
        "transparent_hugepages": huge.partition("[")[2].partition("]")[0] if huge else None,
        "huge_pages": _text("/proc/sys/vm/nr_hugepages"),
        "numa_nodes": _text("/sys/devices/system/node/online"),
        "cpu_governors": sorted(governors) or None,
        "swappiness": _text("/proc/sys/vm/swappiness"),
    }


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return "unknown"


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"
