"""What a run of a plan would touch on this host."""

from collections.abc import Iterator

from dbdyno.filesystems.catalogue import BY_FUSE
from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.servers.user import server_user
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.workload.kinds import workload_of


def touched(plan: Plan) -> list[str]:
    """What will be created, changed or erased on the host, a line each."""
    specs = list(plan.specs.values())
    erased = erased_devices(plan)
    disks = {
        image_key(spec, spec.stack.server if spec.has_server else None): spec.stack.size or 0
        for spec in specs
        if spec.stack.on_emulated_disk
    }
    in_memory = [spec.stack.size or 0 for spec in specs if spec.stack.in_memory]
    lines = [f"ERASED: {device}, all that is on it" for device in erased]
    lines += [f"changed: queue settings of {device}, put back after each trial" for device in erased]
    if disks:
        sizes = ", ".join(format_bytes(size) for size in sorted(disks.values()))
        lines.append(
            f"created: {len(disks)} emulated disk{'s' * (len(disks) > 1)} in memory ({sizes}); gone afterwards"
        )
    if in_memory:
        lines.append(f"created: a tmpfs of at most {format_bytes(max(in_memory))} in memory; gone afterwards")
    lines.append("kept: the prepared data, for later runs (dbdyno images)")
    if any(spec.stack.memory for spec in specs):
        lines.append("created: a memory control group; gone afterwards")
    if any(spec.stack.filesystem == BY_FUSE and spec.stack.on_emulated_disk for spec in specs):
        lines.append("started: zfs-fuse in a mount namespace of its own, which knows no other pool; ended afterwards")
    servers = ", ".join(dict.fromkeys(spec.stack.server for spec in specs if spec.has_server))
    tcp = "TCP on 127.0.0.1 only" if any("port" in spec.server.settings for spec in specs) else "no TCP"
    if servers:
        lines.append(f"started: {servers} with data, socket and user of its own, {tcp}; ended afterwards")
    lines += [f"started: {what}; ended afterwards" for what in dict.fromkeys(_programs(specs))]
    if not erased:
        lines.append("erased: nothing")
    return lines


def _programs(specs: list[TrialSpec]) -> Iterator[str]:
    """Somebody else's programs; of a command all its words, as a study may have come from anywhere."""
    user = server_user()
    who = f"as the user {user.pw_name}" if user else "as you"
    for spec in specs:
        if tool := workload_of(spec).tool:
            what = getattr(spec.workload, "command", tool.name)
            yield f"{what}, {who}"
