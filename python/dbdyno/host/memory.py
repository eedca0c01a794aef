"""Memory, swap, huge pages and NUMA nodes."""

from pathlib import Path
from typing import Any

from dbdyno.host.read import UNKNOWN, chosen_of, number_of, text_of

MEMINFO, HUGE = Path("/proc/meminfo"), Path("/sys/kernel/mm")
NODES, VM = Path("/sys/devices/system/node"), Path("/proc/sys/vm")


def memory_facts(meminfo: Path = MEMINFO, huge: Path = HUGE) -> dict[str, Any]:
    """Sizes in bytes, and what the kernel does with memory by itself."""
    sizes = _meminfo(meminfo)
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
    sizes = _meminfo(path / "meminfo")
    return {"cpus": text_of(path / "cpulist"), "bytes": sizes.get("MemTotal", UNKNOWN)}


def _meminfo(path: Path) -> dict[str, int]:
    """``MemTotal: 24 kB`` as bytes; a node's lines begin with ``Node 0``."""
    found = {}
    for line in text_of(path).splitlines():
        name, _, value = line.partition(":")
        fields = value.split()
        if fields and fields[0].isdigit():
            found[name.split()[-1]] = int(fields[0]) * (1024 if fields[1:] == ["kB"] else 1)
    return found
