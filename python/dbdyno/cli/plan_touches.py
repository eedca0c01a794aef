"""What a run of a plan would touch on this host."""

from collections.abc import Iterable, Iterator

from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.servers.user import server_user
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.tracefs import mounted_tracefs
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of


def touched(plan: Plan, needs: Iterable[Capability] = ()) -> list[str]:
    """What will be created, changed or erased on the host, a line each; ``needs`` say why a disk may be erased."""
    proofs = {one.name: one.detail for one in needs if one.ok}
    lines, raised = list[str](), list[TrialSpec]()
    for name, kind in KINDS.items():
        specs = [spec for spec in plan.specs.values() if spec.stack.kind == name]
        if specs:
            lines += kind.touches(specs, proofs)
        if kind.IS_RAISED:
            raised += specs
    if awake := plan.awake():
        of = "" if len(awake) == len(plan.specs) else f" for {', '.join(awake)}"
        lines.append(f"kept awake{of}: all processors, while a trial runs; {capabilities.awake().detail}")
    if raised:
        lines += _touched_by_raising(raised)
    return lines if erased_devices(plan) else [*lines, "erased: nothing"]


def _touched_by_raising(specs: list[TrialSpec]) -> Iterator[str]:
    """What every stack that dbdyno raises may touch."""
    yield "kept: the prepared data, for later runs (dbdyno images)"
    if any(spec.stack.memory for spec in specs):
        yield "created: a memory control group; gone afterwards"
    if any(spec.probes.trace and KINDS[spec.stack.kind].HAS_DISK for spec in specs):
        if not mounted_tracefs():
            yield "mounted: tracefs, in the state folder; unmounted afterwards"
        yield "created: a trace instance in tracefs, of the device's requests only; gone afterwards"
    servers = ", ".join(dict.fromkeys(spec.stack.server for spec in specs if spec.has_server))
    tcp = "TCP on 127.0.0.1 only" if any("port" in spec.server.settings for spec in specs) else "no TCP"
    if servers:
        yield f"started: {servers} with data, socket and user of its own, {tcp}; ended afterwards"
    yield from (f"started: {what}; ended afterwards" for what in dict.fromkeys(_programs(specs)))


def _programs(specs: list[TrialSpec]) -> Iterator[str]:
    """Other programs; of a command all its words, as a study may have come from anywhere."""
    user = server_user()
    who = f"as the user {user.pw_name}" if user else "as you"
    for spec in specs:
        if tool := workload_of(spec).tool:
            what = getattr(spec.workload, "command", tool.name)
            yield f"{what}, {who}"
