"""What a study may say of a simulated stack: the drive, what its kernel has, and the loads that can be simulated."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from dbdyno.study.drive_rules import broken_drive_rules, broken_size_rules
from dbdyno.study.drives import is_emulated
from dbdyno.study.kernels import QUEUE_DEPTH, Tunable, kernels_by_name
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.schema import TrialSpec
from dbdyno.study.simulated_loads import LOADS, broken_load_rules

FILESYSTEMS = ("ext3", "ext4")
MOUNTS = ("data=ordered", "data=writeback")
_NO_HOST = "has no effect on a simulated stack, in which no host takes part; leave it out"
_STACK = ("serial", "server", "server_cpus", "client_cpus")
_QUEUE = frozenset({"nr_requests", "queue_depth", "iosched", "wbt_lat_usec"})


def broken_simulated_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment of a simulated stack breaks; ``folder`` is where drive files are looked for."""
    if is_emulated(spec.stack.device):
        yield from broken_drive_rules(spec, folder)
        yield from broken_size_rules(spec)
    else:
        text = f"is {shown(spec.stack.device)}; a simulated stack needs a drive model, such as hdd-15k"
        yield Mistake(("stack", "device"), f"{text}: dbdyno disk models lists them")
    yield from _kernel(spec)
    yield from _filesystem(spec)
    yield from _without_effect(spec)
    if spec.workload.kind in LOADS:
        yield from broken_load_rules(spec)
    else:
        text = f"is {shown(spec.workload.kind)}, which can't be simulated; these can: {', '.join(LOADS)}"
        yield Mistake(("workload", "kind"), text)


def _kernel(spec: TrialSpec) -> Iterator[Mistake]:
    kernels, name = kernels_by_name(), str(spec.stack.kernel)
    if name not in kernels:
        text = f"is {shown(name)}, which can't be simulated; known are {', '.join(kernels)}"
        yield Mistake(("stack", "kernel"), text + did_you_mean(name, kernels))
        return
    kernel, wanted = kernels[name], spec.stack.scheduler
    if wanted is not None and wanted not in kernel.schedulers:
        has = ", ".join(kernel.schedulers)
        text = f"is {shown(wanted)}; kernel {name} has {has}{did_you_mean(wanted, kernel.schedulers)}"
        yield Mistake(("stack", "scheduler"), text)
        return
    scheduler = wanted or next(iter(kernel.schedulers))
    yield from _tunables(spec, scheduler, kernel.schedulers[scheduler])
    if (number := spec.queue.nr_requests) is not None:
        _, least, most = kernel.nr_requests(scheduler, spec.queue.queue_depth or QUEUE_DEPTH)
        if not least <= number <= most:
            text = f"is {number}; kernel {name} with {scheduler} takes {least} to {most}"
            yield Mistake(("queue", "nr_requests"), text)
    if spec.queue.wbt_lat_usec and (scheduler == "bfq" or "none" not in kernel.schedulers):
        text = f"has no effect: kernel {name} with {scheduler} has no writeback throttling (from 4.10, not with bfq)"
        yield Mistake(("queue", "wbt_lat_usec"), text)


def _tunables(spec: TrialSpec, scheduler: str, tunables: Mapping[str, Tunable]) -> Iterator[Mistake]:
    where = f"{scheduler} of kernel {spec.stack.kernel}"
    for name, value in spec.queue.iosched.items():
        place = ("queue", "iosched", name)
        if name not in tunables:
            has = f"known are {', '.join(tunables)}{did_you_mean(name, tunables)}" if tunables else "it has none"
            yield Mistake(place, f"is no tunable of {where}; {has}")
        elif not (known := tunables[name]).least <= value <= known.most:
            unit = f" {known.unit}" if known.unit else ""
            yield Mistake(place, f"is {value}; {where} takes {known.least} to {known.most}{unit}")


def _filesystem(spec: TrialSpec) -> Iterator[Mistake]:
    """What lies between the load and the queue, as far as the simulated page cache knows it."""
    kind, mount = spec.stack.filesystem, spec.filesystem.mount
    if kind is not None and kind not in FILESYSTEMS:
        yield Mistake(("stack", "filesystem"), f"is {shown(kind)}; a simulated stack has {', '.join(FILESYSTEMS)}")
    if spec.filesystem.mkfs:
        yield Mistake(("filesystem", "mkfs"), _NO_HOST)
    if mount and mount not in MOUNTS:
        yield Mistake(("filesystem", "mount"), f"is {shown(mount)}; a simulated stack has {' or '.join(MOUNTS)}")


def _without_effect(spec: TrialSpec) -> Iterator[Mistake]:
    """What is of a host, a server or a real queue."""
    for name in _STACK:
        if name in spec.stack.model_fields_set:
            yield Mistake(("stack", name), _NO_HOST)
    if spec.stack.devices > 1:
        text = f"is {spec.stack.devices}; a simulated stack has one drive, which may be an array: raid1(hdd-15k, 2)"
        yield Mistake(("stack", "devices"), text)
    for name in sorted(spec.queue.model_fields_set - _QUEUE):
        text = f"is not simulated; a simulated queue has {', '.join(sorted(_QUEUE))}. Leave it out"
        yield Mistake(("queue", name), text)
    for section in ("server", "host", "probes"):
        for name in sorted(getattr(spec, section).model_fields_set - {"settings"}):
            yield Mistake((section, name), _NO_HOST)
