"""What can't be combined: rules over one whole treatment that need no look at the host."""

from collections.abc import Iterator
from pathlib import Path

from dbdyno._native import device_models
from dbdyno.study.allowed import mkfs_mistake, mount_mistake, setting_mistake
from dbdyno.study.drives import HERE, is_base_name, is_emulated, resolved_drive
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.schema import NR_REQUESTS_NONE_MAX, TrialSpec
from dbdyno.study.units import format_bytes, size_bytes
from dbdyno.study.workload_rules import broken_workload_rules


def broken_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment breaks; ``folder`` is where relative files are looked for."""
    yield from _device(spec, folder)
    yield from _queue(spec)
    yield from _passed_on(spec)
    yield from broken_workload_rules(spec.workload, folder)
    yield from _memory(spec)


def _device(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    device, stack = spec.stack.device, spec.stack
    if device == HERE:
        for name in ("size", "scheduler", "filesystem", "serial"):
            if getattr(stack, name) is not None:
                yield Mistake(
                    ("stack", name), f'can\'t be set with device = "{HERE}", a directory of the host as it is'
                )
        for section in ("queue", "filesystem"):
            for name in sorted(getattr(spec, section).model_fields_set):
                yield Mistake(
                    (section, name), f'can\'t be set with device = "{HERE}", a directory of the host as it is'
                )
        return
    if stack.filesystem is None:
        yield Mistake(("stack", "filesystem"), "is missing; allowed are ext4, xfs, btrfs")
    if is_emulated(device):
        yield from _emulated(spec, folder)
    elif stack.size is not None:
        yield Mistake(("stack", "size"), "is for emulated disks; a real device is used whole")
    elif not device.startswith("/dev/disk/by-id/") and stack.serial is None:
        text = f"is {shown(device)}, a name that may be another disk tomorrow: name it by /dev/disk/by-id/..., "
        yield Mistake(("stack", "device"), text + "or give its serial in stack.serial")


def _emulated(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    device = spec.stack.device
    if not is_base_name(device):
        try:
            device_models(resolved_drive(device, folder), spec.stack.size)
        except ValueError as error:
            yield Mistake(("stack", "device"), f"is {shown(device)}: {error}")
    else:
        models = [model["name"] for model in device_models()]
        if device not in models:
            known = [*models, HERE, "/dev/disk/by-id/..."]
            near = did_you_mean(device, models)
            yield Mistake(("stack", "device"), f"is {shown(device)}; known are {', '.join(known)}{near}")
        else:
            try:
                device_models(device, spec.stack.size)
            except ValueError as error:
                yield Mistake(("stack", "size"), f"is too much: {error}")
    if spec.stack.size is None:
        yield Mistake(("stack", "size"), 'is missing; an emulated disk needs one, such as "4GiB"')
    elif spec.stack.size % 4096:
        yield Mistake(("stack", "size"), "must be a multiple of 4096 bytes")
    if spec.stack.serial is not None:
        yield Mistake(("stack", "serial"), "is for real devices; an emulated disk has none")
    if spec.stack.filesystem == "btrfs" and spec.stack.size is not None and spec.stack.size < size_bytes("256MiB"):
        yield Mistake(("stack", "size"), f"is {format_bytes(spec.stack.size)}; btrfs needs at least 256 MiB")
    if spec.stack.filesystem == "xfs" and spec.stack.size is not None and spec.stack.size < size_bytes("300MiB"):
        yield Mistake(("stack", "size"), f"is {format_bytes(spec.stack.size)}; mkfs.xfs needs at least 300 MiB")


def _passed_on(spec: TrialSpec) -> Iterator[Mistake]:
    kind, options = spec.stack.filesystem, spec.filesystem
    if kind and (text := mkfs_mistake(kind, options.mkfs)):
        yield Mistake(("filesystem", "mkfs"), text)
    if text := mount_mistake(options.mount):
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
