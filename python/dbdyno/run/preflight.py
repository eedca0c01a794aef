"""What a plan needs of the host, and which of it is not there."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.host.awake import is_guest, means_here
from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.run.settings_taken import filesystems_made, settings_taken
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.erase.identity import identify
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.takes import Say
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
    for one in (*filesystems_made(plan), *settings_taken(plan, say)):
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
