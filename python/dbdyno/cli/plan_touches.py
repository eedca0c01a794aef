"""What a run of a plan would touch on this host."""

from collections.abc import Iterator

from dbdyno.filesystems.catalogue import BY_FUSE
from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.servers.user import server_user
from dbdyno.study.schema import TrialSpec
from dbdyno.study.server_url import server_url
from dbdyno.study.units import format_bytes
from dbdyno.workload.kinds import workload_of


def touched(plan: Plan) -> list[str]:
    """What will be created, changed or erased on the host, a line each."""
    given = [spec for spec in plan.specs.values() if spec.stack.runs_already]
    specs = [spec for spec in plan.specs.values() if not spec.stack.runs_already]
    if not specs:
        return [*_touched_on_running(given), "erased: nothing"]
    erased = erased_devices(plan)
    disks = {
        image_key(spec, spec.stack.server if spec.has_server else None): [spec.stack.size or 0] * spec.stack.devices
        for spec in specs
        if spec.stack.on_emulated_disk
    }
    in_memory = [spec.stack.size or 0 for spec in specs if spec.stack.in_memory]
    lines = [f"ERASED: {device}, all that is on it" for device in erased]
    lines += [f"changed: queue settings of {device}, put back after each trial" for device in erased]
    if disks:
        sizes = sorted(size for each in disks.values() for size in each)
        told = ", ".join(format_bytes(size) for size in sizes)
        lines.append(f"created: {len(sizes)} emulated disk{'s' * (len(sizes) > 1)} in memory ({told}); gone afterwards")
    if in_memory:
        lines.append(f"created: a tmpfs of at most {format_bytes(max(in_memory))} in memory; gone afterwards")
    lines.append("kept: the prepared data, for later runs (dbdyno images)")
    if any(spec.stack.memory for spec in specs):
        lines.append("created: a memory control group; gone afterwards")
    if any(spec.probes.trace and not spec.stack.in_memory for spec in specs):
        lines.append("created: a trace instance in tracefs, of the device's requests only; gone afterwards")
    if any(spec.stack.filesystem == BY_FUSE and spec.stack.on_emulated_disk for spec in specs):
        lines.append("started: zfs-fuse in a mount namespace of its own, which knows no other pool; ended afterwards")
    servers = ", ".join(dict.fromkeys(spec.stack.server for spec in specs if spec.has_server))
    tcp = "TCP on 127.0.0.1 only" if any("port" in spec.server.settings for spec in specs) else "no TCP"
    if servers:
        lines.append(f"started: {servers} with data, socket and user of its own, {tcp}; ended afterwards")
    lines += [f"started: {what}; ended afterwards" for what in dict.fromkeys(_programs(specs))]
    lines += _touched_on_running(given)
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


def _touched_on_running(specs: list[TrialSpec]) -> list[str]:
    """What is changed on servers that run already."""
    lines = []
    for url in dict.fromkeys(spec.stack.server for spec in specs):
        named, place = server_url(url), server_url(url).place
        names = sorted({name for spec in specs if spec.stack.server == url for name in spec.server.settings})
        lines.append(f"created: tables in the database {named.database} of the server at {place}; dropped afterwards")
        if names:
            lines.append(f"changed: {', '.join(names)} of that server, for all its users; put back after each trial")
    return lines
