"""What a plan needs of the host, and which of it is not there."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.plan.plan import Plan
from dbdyno.servers.command import refused_settings
from dbdyno.servers.installation import find_server
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.erase_guard import check_erasable
from dbdyno.stack.running_needs import running_needs
from dbdyno.study.drives import HERE
from dbdyno.study.schema import TrialSpec
from dbdyno.study.section import Setting
from dbdyno.workload.kinds import workload_of


def unmet_needs(plan: Plan, erase: frozenset[str] = frozenset()) -> list[Capability]:
    """What stands in the way of running a plan here, each with its remedy; empty if nothing does."""
    found: dict[str, Capability] = {}
    for spec in plan.specs.values():
        for one in _needs(spec, erase):
            found[one.name] = one if one.name not in found or not one.ok else found[one.name]
    return [one for one in found.values() if not one.ok]


def _needs(spec: TrialSpec, erase: frozenset[str]) -> list[Capability]:
    programs, load = capabilities.own_programs(), workload_of(spec)
    needs = [programs, *_of_the_server(spec)]
    tool = capabilities.tool(load.tool.names, load.tool.package) if load.tool else programs
    needs.append(tool)
    if tool.ok:
        said, name = load.refused(), f"load of {load.tool.name}" if load.tool else "load generator"
        needs.append(Capability(name, ok=not said, detail=said, remedy="mend [workload]"))
    return [*needs, *_of_the_ground(spec, erase), *_of_the_processes(spec)]


def _of_the_server(spec: TrialSpec) -> Iterator[Capability]:
    """What a server needs, where there is one."""
    if not spec.has_server:
        return
    if spec.stack.runs_already:
        yield from running_needs(spec)
        return
    server = capabilities.server(spec.stack.server)
    yield server
    if server.ok:
        yield from (_engine(spec.stack.server, spec.stack.engine), _settings(spec))


def _of_the_ground(spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
    """What device, queue and filesystem need."""
    stack = spec.stack
    if stack.device == HERE or stack.runs_already:
        return
    yield capabilities.root()
    if stack.filesystem:
        yield capabilities.filesystem(stack.filesystem)
    if stack.in_memory:
        yield capabilities.room_in_memory(stack.size or 0)
        return
    if stack.scheduler:
        yield _scheduler(stack.scheduler)
    if stack.on_real_disk:
        yield _real(stack.device, stack.serial, erase)
    else:
        yield from (capabilities.fuse(), capabilities.loop())


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


def _engine(server: str, engine: str) -> Capability:
    said = find_server(server).lacks(engine)
    remedy = "name one that it has in stack.engine, or another server"
    return Capability(f"engine {engine} of {server}", ok=not said, detail=said, remedy=remedy)


def _settings(spec: TrialSpec) -> Capability:
    said = _refused(spec.stack.server, spec.stack.engine, tuple(spec.server.settings.items()))
    name = f"server settings of {spec.stack.server}"
    return Capability(name, ok=not said, detail="; ".join(said), remedy="mend [server.settings]")


@cache
def _refused(server: str, engine: str, settings: tuple[tuple[str, Setting], ...]) -> list[str]:
    return refused_settings(find_server(server), dict(settings), engine) if settings else []


def _scheduler(name: str) -> Capability:
    offered = capabilities.offered_schedulers()
    detail = f"this kernel offers {', '.join(offered) or 'none'}"
    return Capability(f"scheduler {name}", ok=name in offered, detail=detail, remedy=f"modprobe {name}-iosched")


def _real(device: str, serial: str | None, erase: frozenset[str]) -> Capability:
    try:
        found = check_erasable(Path(device), serial, erase)
    except (HostError, TrialError) as error:
        return Capability(f"device {device}", ok=False, detail=str(error), remedy="or name another disk")
    return Capability(f"device {device}", ok=True, detail=f"{found.model} {found.serial}")
