"""What a plan needs of the host, and which of it is not there."""

from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.plan.plan import Plan
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.erase_guard import identify
from dbdyno.study.rules import HERE, is_emulated
from dbdyno.study.schema import TrialSpec


def unmet_needs(plan: Plan) -> list[Capability]:
    """What stands in the way of running a plan here, each with its remedy; empty if nothing does."""
    found: dict[str, Capability] = {}
    for spec in plan.specs.values():
        found |= {one.name: one for one in _needs(spec)}
    return [one for one in found.values() if not one.ok]


def _needs(spec: TrialSpec) -> list[Capability]:
    stack = spec.stack
    needs = [capabilities.own_programs(), capabilities.server(stack.server)]
    if stack.device != HERE:
        needs.append(capabilities.root())
        if stack.filesystem:
            needs.append(capabilities.filesystem(stack.filesystem))
        if stack.scheduler:
            needs.append(_scheduler(stack.scheduler))
    if is_emulated(stack.device):
        needs += [capabilities.fuse(), capabilities.loop()]
    elif stack.device != HERE:
        needs.append(_real(stack.device))
    if stack.memory:
        needs.append(capabilities.memory_cgroup())
    return needs


def _scheduler(name: str) -> Capability:
    offered = capabilities.offered_schedulers()
    detail = f"this kernel offers {', '.join(offered) or 'none'}"
    return Capability(f"scheduler {name}", ok=name in offered, detail=detail, remedy=f"modprobe {name}-iosched")


def _real(device: str) -> Capability:
    try:
        found = identify(Path(device))
    except HostError as error:
        return Capability(f"device {device}", ok=False, detail=str(error), remedy="name the disk to be erased")
    return Capability(f"device {device}", ok=True, detail=f"{found.model} {found.serial}")
