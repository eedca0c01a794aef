"""What a run was made with and on: versions and host facts, kept with it. Nothing secret, no host name."""

import os
import platform
from typing import Any

from dbdyno import __version__
from dbdyno.host.kernel import kernel_facts
from dbdyno.host.memory import memory_facts, numa_facts
from dbdyno.host.processor import processor_facts
from dbdyno.host.storage import disk_facts, disks_under
from dbdyno.host.virtual import virtualisation_facts
from dbdyno.plan.plan import Plan
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.workload.kinds import workload_of


def versions(plan: Plan) -> dict[str, str]:
    """Versions of dbdyno, Python, the kernel, and each server and each tool of the plan."""
    specs = plan.specs.values()
    served = {spec.stack.server: spec for spec in specs if spec.has_server}  # one is asked once
    servers = {name: KINDS[spec.stack.kind].server_version(spec) for name, spec in served.items()}
    tools = [tool for spec in specs if (tool := workload_of(spec).tool)]
    return {
        "dbdyno": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        **{f"server {name}": version for name, version in servers.items()},
        **{tool.name: tool.version() for tool in dict.fromkeys(tools)},
    }


def host_facts(plan: Plan) -> dict[str, Any]:
    """The machine as the run found it, as far as results may depend on it; what can't be known is ``"unknown"``."""
    return {**this_machine(), "disks": _disks(plan)}


def this_machine() -> dict[str, Any]:
    """The same, but for the disks of a study."""
    processor = processor_facts()
    return {
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "cores": os.cpu_count(),
        "load_average_1min": os.getloadavg()[0],
        "kernel": kernel_facts(),
        "cpu": processor,
        "memory": memory_facts(),
        "numa": numa_facts(),
        "virtualisation": virtualisation_facts(cpu_flags=processor["flags"]),
    }


def _disks(plan: Plan) -> dict[str, Any]:
    """The disks that the data stand on: those the study names, and the one below the state folder."""
    places = {place for spec in plan.specs.values() for place in KINDS[spec.stack.kind].places(spec)}
    return {name: disk_facts(name) for name in sorted({name for place in places for name in disks_under(place)})}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"
