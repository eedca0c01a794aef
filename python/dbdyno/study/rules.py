"""What can't be combined: rules over one whole treatment that need no look at the host."""

from collections.abc import Iterator
from pathlib import Path

from dbdyno._native import device_models
from dbdyno.filesystems.catalogue import BY_FUSE, IN_MEMORY, KINDS
from dbdyno.study.allowed import mkfs_mistake, mount_mistake, setting_mistake
from dbdyno.study.drives import HERE, MEMORY, NOT_GIVEN, is_base_name, is_emulated, resolved_drive
from dbdyno.study.mistakes import Mistake, did_you_mean, shown, unknown_drive
from dbdyno.study.products import DISTRIBUTION, NO_SERVER, PROVISIONED
from dbdyno.study.running_rules import broken_running_rules
from dbdyno.study.schema import NR_REQUESTS_NONE_MAX, TrialSpec
from dbdyno.study.tool_rules import broken_tool_rules
from dbdyno.study.units import format_bytes, size_bytes
from dbdyno.study.workload_rules import broken_workload_rules

# Of each scheduler, in the kernel's words (block/mq-deadline.c, kyber-iosched.c, bfq-iosched.c).
TUNABLES = {
    "none": (),
    "mq-deadline": ("read_expire", "write_expire", "writes_starved", "front_merges", "async_depth", "fifo_batch",
                    "prio_aging_expire"),
    "kyber": ("read_lat_nsec", "write_lat_nsec"),
    "bfq": ("fifo_expire_sync", "fifo_expire_async", "back_seek_max", "back_seek_penalty", "slice_idle",
            "slice_idle_us", "max_budget", "timeout_sync", "strict_guarantees", "low_latency"),
}  # fmt: skip


def broken_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment breaks; ``folder`` is where relative files are looked for."""
    if spec.stack.runs_already:
        yield from broken_running_rules(spec)
    else:
        yield from _device(spec, folder)
        yield from _devices(spec)
        yield from _server(spec)
    yield from _queue(spec)
    yield from _passed_on(spec)
    yield from broken_workload_rules(spec.workload, folder)
    yield from broken_tool_rules(spec, folder)
    yield from _memory(spec)


def _server(spec: TrialSpec) -> Iterator[Mistake]:
    name = spec.stack.server
    if spec.server.option_file is not None:
        yield Mistake(("server", "option_file"), "is for a server that runs already; dbdyno's own has no password")
    known = (DISTRIBUTION, *PROVISIONED, NO_SERVER)
    if name not in known and not name.startswith("/"):
        text = f"is {shown(name)}; known are {', '.join(known)} and the absolute path of an unpacked MariaDB or MySQL"
        yield Mistake(("stack", "server"), text + did_you_mean(name, known))


def _device(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    device, stack = spec.stack.device, spec.stack
    if device == NOT_GIVEN:
        yield Mistake(("stack", "device"), "is missing; give it unless stack.server is one that runs already")
        return
    if device == HERE:
        why = f'can\'t be set with device = "{HERE}", a directory of the host as it is'
        yield from _unsettable(spec, ("size", "scheduler", "filesystem", "serial"), ("queue", "filesystem"), why)
        return
    if stack.filesystem is None:
        yield Mistake(("stack", "filesystem"), f"is missing; allowed are {', '.join(KINDS)}")
    if device == MEMORY:
        why = f'can\'t be set with device = "{MEMORY}", which is no device'
        yield from _unsettable(spec, ("scheduler", "serial"), ("queue",), why)
        if not stack.in_memory and stack.filesystem is not None:
            text = f'is {shown(stack.filesystem)}; with device = "{MEMORY}" it is "{IN_MEMORY}"'
            yield Mistake(("stack", "filesystem"), text)
    elif is_emulated(device):
        yield from _emulated(spec, folder)
    else:
        yield from _real(spec)
    if device == MEMORY or is_emulated(device):
        yield from _size(spec)


def _unsettable(spec: TrialSpec, fields: tuple[str, ...], sections: tuple[str, ...], why: str) -> Iterator[Mistake]:
    """What a study sets although its device has no such thing."""
    for name in fields:
        if getattr(spec.stack, name) is not None:
            yield Mistake(("stack", name), why)
    for section in sections:
        for name in sorted(getattr(spec, section).model_fields_set):
            yield Mistake((section, name), why)


def _real(spec: TrialSpec) -> Iterator[Mistake]:
    device, stack = spec.stack.device, spec.stack
    if not device.startswith("/"):
        yield Mistake(("stack", "device"), f"is {shown(device)}; name a disk by its whole path, from / on")
    elif stack.size is not None:
        yield Mistake(("stack", "size"), "is for emulated disks; a real device is used whole")
    elif not device.startswith("/dev/disk/by-id/") and stack.serial is None:
        text = f"is {shown(device)}, a name that may be another disk tomorrow: name it by /dev/disk/by-id/..., "
        yield Mistake(("stack", "device"), text + "or give its serial in stack.serial")
    if stack.filesystem == BY_FUSE:
        text = "is for emulated disks: on a real one, what a killed trial left could not be told from somebody's pool"
        yield Mistake(("stack", "filesystem"), text)
    if stack.in_memory:
        text = f'is {shown(stack.filesystem)}, which stands on no disk; use device = "{MEMORY}"'
        yield Mistake(("stack", "filesystem"), text)


def _size(spec: TrialSpec) -> Iterator[Mistake]:
    size, kind = spec.stack.size, spec.stack.filesystem
    if size is None:
        what = "a tmpfs" if spec.stack.device == MEMORY else "an emulated disk"
        yield Mistake(("stack", "size"), f'is missing; {what} needs one, such as "4GiB"')
    elif size % 4096:
        yield Mistake(("stack", "size"), "must be a multiple of 4096 bytes")
    elif kind and size < KINDS[kind].size_min:
        least = format_bytes(KINDS[kind].size_min)
        yield Mistake(("stack", "size"), f"is {format_bytes(size)}; {kind} needs at least {least}")


def _emulated(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    device = spec.stack.device
    if not is_base_name(device):
        try:
            device_models(resolved_drive(device, folder), spec.stack.size)
        except ValueError as error:
            yield Mistake(("stack", "device"), f"is {shown(device)}: {error}")
    elif unknown := unknown_drive(device, HERE, MEMORY, "/dev/disk/by-id/..."):
        yield Mistake(("stack", "device"), f"is {shown(device)}; {unknown}")
    else:
        try:
            device_models(device, spec.stack.size)
        except ValueError as error:
            yield Mistake(("stack", "size"), f"is too much: {error}")
    if spec.stack.serial is not None:
        yield Mistake(("stack", "serial"), "is for real devices; an emulated disk has none")


def _devices(spec: TrialSpec) -> Iterator[Mistake]:
    """How many disks there are below one filesystem, and how many it needs."""
    stack, place = spec.stack, ("stack", "devices")
    kind = KINDS.get(stack.filesystem or "")
    if stack.devices > 1 and not is_emulated(stack.device):
        yield Mistake(
            place, f"is {stack.devices}, which is for emulated disks. Leave it out, or name an emulated drive"
        )
    elif kind and stack.devices > kind.devices_max:
        able = ", ".join(name for name, one in KINDS.items() if one.devices_max > 1)
        text = (
            f"is {stack.devices}, but {kind.name} stands on one device. Leave it out, or give stack.filesystem: {able}"
        )
        yield Mistake(place, text)
    if stack.devices > 1 and spec.probes.trace:
        text = f"follows one device, not {stack.devices}. Leave it out, or give stack.devices = 1"
        yield Mistake(("probes", "trace"), text)
    if kind and (needed := kind.devices_min(spec.filesystem.mkfs)) > stack.devices:
        remedy = f"give stack.devices = {needed}" if needed <= kind.devices_max else "name another profile"
        text = f"asks for a profile that needs {needed} devices; there is {stack.devices}. {remedy.capitalize()}"
        yield Mistake(("filesystem", "mkfs"), text)


def _passed_on(spec: TrialSpec) -> Iterator[Mistake]:
    kind, options = spec.stack.filesystem, spec.filesystem
    if kind and (text := mkfs_mistake(kind, options.mkfs)):
        yield Mistake(("filesystem", "mkfs"), text)
    if kind and (text := mount_mistake(kind, options.mount)):
        yield Mistake(("filesystem", "mount"), text)
    for name, value in spec.server.settings.items():
        if text := setting_mistake(name, value):
            yield Mistake(("server", "settings", name), text)


def _queue(spec: TrialSpec) -> Iterator[Mistake]:
    wanted, scheduler = spec.queue.nr_requests, spec.stack.scheduler
    # How deep a real device's own queue is, only the host can tell.
    unscheduled = is_emulated(spec.stack.device) and scheduler in {None, "none"}
    if unscheduled and wanted is not None and wanted > NR_REQUESTS_NONE_MAX:
        text = f"is {wanted}; without a scheduler the kernel allows at most the device's own depth, "
        text += f"{NR_REQUESTS_NONE_MAX} for an emulated disk. Give stack.scheduler, or a smaller number"
        yield Mistake(("queue", "nr_requests"), text)
    if scheduler == "bfq" and spec.queue.wbt_lat_usec:
        yield Mistake(("queue", "wbt_lat_usec"), "can't be set under bfq, which throttles writeback itself")
    if spec.queue.iosched and not TUNABLES.get(scheduler or ""):
        tunable = ", ".join(name for name, tunables in TUNABLES.items() if tunables)
        yield Mistake(("queue", "iosched"), f"is for a scheduler with tunables; give stack.scheduler: {tunable}")
        return
    known = TUNABLES.get(scheduler or "", ())
    for name in spec.queue.iosched:
        if name not in known:
            said = f"is no tunable of {scheduler}; known are {', '.join(known)}{did_you_mean(name, known)}"
            yield Mistake(("queue", "iosched", name), said)


def _memory(spec: TrialSpec) -> Iterator[Mistake]:
    pool = spec.server.settings.get("innodb_buffer_pool_size")
    if spec.stack.memory is None or pool is None:
        return
    try:
        pool_bytes = pool if isinstance(pool, int) else size_bytes(pool)
    except ValueError:
        return  # the server will say what it thinks of it
    if pool_bytes >= spec.stack.memory:
        text = f"is {shown(pool)}, not less than stack.memory ({format_bytes(spec.stack.memory)}): "
        yield Mistake(("server", "settings", "innodb_buffer_pool_size"), text + "the kernel would kill the server")
