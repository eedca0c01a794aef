"""What a plan needs of the host, and which of it is not there."""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno import __version__
from dbdyno.errors import HostError, UserError
from dbdyno.host.awake import is_guest, means_here
from dbdyno.host.processor import kernel_facts, memory_facts, numa_facts, processor_facts, virtualisation_facts
from dbdyno.host.storage import disk_facts, disks_under
from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.run.settings_check import check_mkfs_options, check_settings
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.erase.identity import identify
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.short_start import Say
from dbdyno.study.mistakes import did_you_mean
from dbdyno.study.place import place_in
from dbdyno.study.schema import HostSection, TrialSpec
from dbdyno.workload.kinds import workload_of


def unmet_needs(plan: Plan, erase: frozenset[str] = frozenset(), say: Say = lambda _: None) -> list[Capability]:
    """What stands in the way of running a plan here, each with its remedy; empty if nothing does."""
    return [one for one in needs_of(plan, erase, say) if not one.ok]


def needs_of(plan: Plan, erase: frozenset[str] = frozenset(), say: Say = lambda _: None) -> list[Capability]:
    """What a plan needs here; of each what there is, or the remedy. ``say`` is told what takes a moment."""
    found: dict[str, Capability] = {one.name: one for one in _misgiven(plan, erase)}
    for spec in plan.specs.values():
        for one in _needs(spec, erase):
            if one.field and not one.ok:
                placed = replace(one, name=place_in(plan.study, spec, one.field))
                found[placed.said] = placed
            else:
                found[one.name] = one if one.name not in found or not one.ok else found[one.name]
    for one in (*check_mkfs_options(plan), *check_settings(plan, say)):
        found[one.said] = one
    return list(found.values())


def with_host_decided(plan: Plan) -> Plan:
    """The plan with each `host.awake = "auto"` decided for this host: yes on a virtual machine that allows it."""
    if all(spec.host.awake != "auto" for spec in plan.specs.values()):
        return plan
    host = HostSection(awake=is_guest() and bool(means_here(frozenset(os.sched_getaffinity(0))).by))
    decided = {
        id_: spec.model_copy(update={"host": host}) if spec.host.awake == "auto" else spec
        for id_, spec in plan.specs.items()
    }
    return replace(plan, specs=decided)


def _misgiven(plan: Plan, erase: frozenset[str]) -> Iterator[Capability]:
    """Serials to be erased that no disk of the study has."""
    if not erase:
        return
    devices = erased_devices(plan)
    serials = []
    for device in devices:
        with suppress(HostError):  # said of the device itself
            serials.append(identify(Path(device)).serial)
    for given in sorted(erase.difference(serials)):
        name, leave_out = f"--erase {given!r}", "leave it out"
        if not devices:
            yield Capability(name, ok=False, detail="this study erases no real device", remedy=leave_out)
        elif len(serials) == len(devices):
            detail = f"no disk of this study has that serial; it has {', '.join(map(repr, serials))}"
            remedy = did_you_mean(given, serials).removeprefix(". ")
            yield Capability(name, ok=False, detail=detail, remedy=remedy or leave_out)


def _needs(spec: TrialSpec, erase: frozenset[str]) -> list[Capability]:
    if not KINDS[spec.stack.kind].ON_HOST:
        return []
    programs, load, kind = capabilities.own_programs(), workload_of(spec), KINDS[spec.stack.kind]
    needs = [programs, *kind.needs_of_server(spec)]
    tool = capabilities.tool(load.tool.names, load.tool.package) if load.tool else programs
    needs.append(tool)
    if tool.ok:
        said, name = load.refused(), f"load of {load.tool.name}" if load.tool else "load generator"
        needs.append(Capability(name, ok=not said, detail=said, remedy="fix [workload]"))
    return [*needs, *kind.needs_of_ground(spec, erase), *_of_the_processes(spec)]


def _of_the_processes(spec: TrialSpec) -> Iterator[Capability]:
    """What memory, processors and I/O class of the server and the client need."""
    stack = spec.stack
    for name, cpus in (("server_cpus", stack.server_cpus), ("client_cpus", stack.client_cpus)):
        if cpus:
            yield capabilities.processors(name, cpus)
    if (spec.server.ionice or "").startswith("realtime"):
        yield capabilities.root()
    if stack.memory:
        yield capabilities.memory_cgroup()
    if spec.host.awake is True:
        yield capabilities.awake()


# What a run was made with and on: versions and host facts, kept with it. Nothing secret, no host name.


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


# ``run --keep-traces``: which plans allow it.


WITHOUT = {"here": "a folder", "memory": "memory", "external": "an external server", "simulated": "a simulation"}


def keeping_traces(plan: Plan) -> Plan:
    """The plan with its block traces kept. Raises ``UserError`` where a treatment has no block device, or two."""
    for treatment in plan.design.tried:
        stack = plan.specs[treatment.id].stack
        if stack.kind in WITHOUT:
            raise UserError(
                f"--keep-traces: {treatment.label} stands on {WITHOUT[stack.kind]}, not on a block device of its own; "
                'leave it out, or give the study a device, such as device = "ssd-sata"'
            )
        if stack.devices > 1:
            raise UserError(f"--keep-traces: {treatment.label} stands on {stack.devices} devices; one can be traced")
    return replace(plan, keep_traces=True)
