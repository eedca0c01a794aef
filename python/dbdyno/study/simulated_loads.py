"""What a study may say of a simulated stack: kernels, drive, server and loads."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno._native import device_models, kernels
from dbdyno.filesystems import KINDS
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.settings import INNODB, MYISAM, SIMULATED, simulated_settings
from dbdyno.study.drives import HERE, MEMORY, drive_files, is_base_name, is_emulated, resolved_drive
from dbdyno.study.mistakes import Mistake, shown, unknown_drive
from dbdyno.study.schema import BETWEEN, TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.study.workloads import FioSection, IngestSection, LoopSection, SlapSection, TraceSection
from dbdyno.system.files import read_text

# The kernels that can be simulated, and what each of them has, as the simulator says it.


QUEUE_DEPTH = 32  # commands that a simulated drive takes at once, unless a study says otherwise
NR_REQUESTS = 128  # of a kernel before blk-mq
FIRST_CFQ_REQUESTS = 8192  # which the cfq without slices asked for itself
NR_REQUESTS_MIN, NR_REQUESTS_MAX, MQ_REQUESTS_MAX = 4, 1_000_000, 2048


@dataclass(frozen=True)
class Tunable:
    """A file of ``queue/iosched``."""

    unit: str  # empty for a plain number
    default: int
    least: int
    most: int


@dataclass(frozen=True)
class SimulatedKernel:
    """What one version has; the first scheduler is what it takes unless a study says."""

    schedulers: dict[str, dict[str, Tunable]]

    def nr_requests(self, scheduler: str, queue_depth: int) -> tuple[int, int, int]:
        """The default of ``nr_requests``, the least, and the most."""
        if scheduler == "none":
            return queue_depth, 1, queue_depth
        if "none" in self.schedulers:
            return 2 * min(queue_depth, 128), NR_REQUESTS_MIN, MQ_REQUESTS_MAX
        is_first_cfq = scheduler == "cfq" and "slice_sync" not in self.schedulers["cfq"]
        return FIRST_CFQ_REQUESTS if is_first_cfq else NR_REQUESTS, NR_REQUESTS_MIN, NR_REQUESTS_MAX


@cache
def kernels_by_name() -> dict[str, SimulatedKernel]:
    """All of them, the oldest first."""
    return {
        table["name"]: SimulatedKernel(
            {
                scheduler: {name: Tunable(**tunable) for name, tunable in tunables.items()}
                for scheduler, tunables in table["schedulers"].items()
            }
        )
        for table in kernels()
    }


def all_tunables() -> set[str]:
    """The names of the tunables of all their schedulers."""
    tunable_sets = (tunables for kernel in kernels_by_name().values() for tunables in kernel.schedulers.values())
    return {name for tunables in tunable_sets for name in tunables}


# What a study may say of a drive model, of the size of what stands for it, and of the name of a real disk.


def broken_drive_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Whether there is such a drive, and a disk of that size fits it; ``folder`` is where its files are looked for."""
    device = spec.stack.device
    if not is_base_name(device):
        try:
            for file in drive_files(resolved_drive(device, folder)):
                read_text(Path(file))
            device_models(resolved_drive(device, folder), spec.stack.size)
        except OSError as error:
            text = f"is {shown(device)}: cannot read the drive file {error.filename}: {error.strerror}"
            yield Mistake(("stack", "device"), text)
        except ValueError as error:
            yield Mistake(("stack", "device"), f"is {shown(device)}: {error}")
    elif unknown := unknown_drive(device, HERE, MEMORY, "/dev/disk/by-id/..."):
        yield Mistake(("stack", "device"), f"is {shown(device)}; {unknown}")
    else:
        try:
            device_models(device, spec.stack.size)
        except ValueError as error:
            yield Mistake(("stack", "size"), f"is too much: {error}")


def broken_size_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Whether what dbdyno makes has a size, and its filesystem fits."""
    size, kind = spec.stack.size, spec.stack.filesystem
    if size is None:
        yield Mistake(("stack", "size"), f'is missing; {_of_what(spec)} needs one, such as "4GiB"')
    elif size % 4096:
        yield Mistake(("stack", "size"), "must be a multiple of 4096 bytes")
    elif kind and size < KINDS[kind].size_min:
        least = format_bytes(KINDS[kind].size_min)
        yield Mistake(("stack", "size"), f"is {format_bytes(size)}; {kind} needs at least {least}")


def unsure_name(device: str, serial: str | None) -> str:
    """Return what is wrong with a disk's name that may lead to another one, but for where its serial is to be given."""
    if serial is not None or device.startswith("/dev/disk/by-id/"):
        return ""
    text = f"is {shown(device)}, a name that may be another disk tomorrow: name it by /dev/disk/by-id/..., "
    return text + "or give its serial"


def _of_what(spec: TrialSpec) -> str:
    device = spec.stack.device
    if spec.stack.is_simulated:
        return "a simulated drive"
    if is_emulated(device):
        return "an emulated disk"
    return "a tmpfs" if device == MEMORY else f"device = {shown(device)}"


# What the simulator is given for a server: its settings by the names of MySQL's variables, in the simulator's.


MAPPED_SHARE = 8  # of memory: what the server's own code, threads and the kernel take
MEMORY_BYTES = 8 << 30
OLD_KERNELS = ("2.6.9", "2.6.18", "2.6.32")  # of MySQL 5.1's time; then InnoDB flushes as 5.6 does


def setting_mistakes(spec: TrialSpec, known: Collection[str]) -> Iterator[Mistake]:
    """Variables that a simulated server does not know, or not with that value."""
    engine = spec.stack.engine.lower()
    for name, value in spec.server.settings.items():
        place = ("server", "settings", name)
        if name not in known:
            has = f"known are {', '.join(known)}{did_you_mean(name, known)}" if known else "this load has no server"
            yield Mistake(place, f"is not simulated; {has}")
            continue
        try:
            simulated_settings(engine, {name: value})
        except ValueError as error:
            yield Mistake(place, f"is {shown(value)}, which {error}")


def _server_fields(spec: TrialSpec, engine: str) -> dict[str, Any]:
    return simulated_settings(engine, spec.server.settings)


def page_cache(memory: int | None = None, filesystem: str | None = None, mount: str | None = None) -> dict[str, Any]:
    """Settings of the simulator's page cache for what is given: memory in bytes, filesystem, mount option."""
    cache: dict[str, Any] = {}
    if memory is not None:
        cache |= {"memory_bytes": memory, "mapped_bytes": memory // MAPPED_SHARE}
    if filesystem is not None:
        cache |= {"filesystem": filesystem, "barrier": filesystem != "ext3"}  # which had none as it came
    if mount is not None:
        cache["data"] = "writeback" if mount == "data=writeback" else "ordered"
    return cache


def rows_into_myisam(spec: TrialSpec, *, initial_rows: int) -> dict[str, Any]:
    """A MyISAM table that takes rows, on the kernel's page cache."""
    stack = spec.stack
    cache = page_cache(
        stack.memory or MEMORY_BYTES, stack.filesystem or "ext4", spec.filesystem.mount or "data=ordered"
    )
    table = {"initial_rows": initial_rows, **_server_fields(spec, MYISAM)}
    return {"kind": "ingest", "cache": cache, "table": table}


def commits_of_innodb(spec: TrialSpec, **load: object) -> dict[str, Any]:
    """A server with InnoDB under a load, of which the fields are the simulator's."""
    return {
        "kind": "commits",
        "version": "5.1" if spec.stack.kernel in OLD_KERNELS else "5.6",
        "space_bytes": (spec.stack.size or 0) // 2,  # of the drive, the rest being logs and the filesystem's
        "barriers": spec.stack.filesystem != "ext3",
        **load,
        **_server_fields(spec, INNODB),
    }


# Of a series: as probes have them, made longer by the simulator where there would be too many.
INTERVAL_SECONDS, INTERVALS_MAX = 0.1, 600
MIX_READ_PERCENT = 70  # of a profile: KDiskMark's
LOADS_OF_SLAP = ("write", "update", "key", "mixed")
# Fields of a load of dbdyno's own that a simulated server knows nothing of.
_LEFT_OUT = ("ignore_errors", "io_threads", "rate", "arrivals", "think_distribution", "warmup_max", "prepared",
             "guid_primary", "unique_queries", "unique_writes", "table_options")  # fmt: skip

PointFields = dict[str, Any]  # of a point of the simulator, as its document has them


def broken_load_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """What of a load that can be simulated can't be."""
    load = spec.workload
    match load:
        case FioSection():
            yield from _broken_fio(load, spec.stack.size)
        case TraceSection():
            if load.replay == "closed" and "speed" in load.model_fields_set:
                yield Mistake(("workload", "speed"), 'is for replay = "open"; leave it out')
        case LoopSection():
            yield from _broken_loop(spec, load)
    if not isinstance(load, LoopSection):
        yield from setting_mistakes(spec, ())


def _broken_fio(load: FioSection, device_bytes: int | None) -> Iterator[Mistake]:
    if load.job is not None:
        yield Mistake(("workload", "job"), "can't be simulated; give a profile, such as RND4K Q32T16")
    if not load.direct:
        text = "is false, but a simulated profile goes past the page cache; leave it out"
        yield Mistake(("workload", "direct"), text)
    if device_bytes is not None and load.size_bytes > device_bytes:
        text = f"is {format_bytes(load.size_bytes)}{'' if load.size else ' unless given'}, "
        yield Mistake(("workload", "size"), text + f"more than the {format_bytes(device_bytes)} of stack.size")


def _broken_loop(spec: TrialSpec, load: LoopSection) -> Iterator[Mistake]:
    """A simulated server: which engine, and what it knows of the load."""
    engines = (INNODB, MYISAM) if isinstance(load, IngestSection) else (INNODB,)
    engine = spec.stack.engine.lower()
    if engine not in engines:
        text = f"is {shown(spec.stack.engine)}; a simulated {load.kind} has {' or '.join(engines)}"
        yield Mistake(("stack", "engine"), text)
    else:
        yield from setting_mistakes(spec, SIMULATED[engine])
    for name in _LEFT_OUT:
        if name in load.model_fields_set:
            yield Mistake(("workload", name), "is not simulated; leave it out")
    if getattr(load, load.AMOUNT) is not None:
        text = "is not simulated, because work after the last answer would count; give duration"
        yield Mistake(("workload", load.AMOUNT), text)
    if load.warmup == "steady":
        yield Mistake(("workload", "warmup"), 'is "steady"; a simulated load has a time, such as "10s"')
    if isinstance(load, SlapSection) and load.load not in LOADS_OF_SLAP:
        text = f"is {shown(load.load)}; these can be simulated: {', '.join(LOADS_OF_SLAP)}"
        yield Mistake(("workload", "load"), text)


def _fio(spec: TrialSpec) -> PointFields:
    load = spec.workload
    assert isinstance(load, FioSection)  # noqa: S101  (by its kind)
    is_random, block, depth, threads = load.shape
    job = {
        "processes": threads,
        "pattern": "random" if is_random else "sequential",
        "read_percent": {"read": 100, "write": 0}.get(load.load or "", MIX_READ_PERCENT),
        "block_bytes": block,
        "depth": depth,
        "range_bytes": load.size_bytes,
    }
    return {**_times(load.warmup, load.measured_seconds), "load": {"kind": "jobs", "jobs": [job]}}


def _trace(spec: TrialSpec) -> PointFields:
    load = spec.workload
    assert isinstance(load, TraceSection)  # noqa: S101  (by its kind)
    load_fields: PointFields = {"kind": "trace", "files": [load.file], "replay": load.replay}
    if load.replay == "open":
        load_fields["speed"] = load.speed
    units = {"time_unit": load.time_unit, "length_unit": load.length_unit, "fold": load.fold or None}
    load_fields |= {name: value for name, value in units.items() if value is not None}
    return {**_times(0.0, load.duration), "load": load_fields}


def _ingest(spec: TrialSpec) -> PointFields:
    load = spec.workload
    assert isinstance(load, IngestSection)  # noqa: S101  (by its kind)
    if spec.stack.engine.lower() == MYISAM:
        load_fields = rows_into_myisam(spec, initial_rows=load.initial_rows)
    else:
        load_fields = commits_of_innodb(
            spec,
            load="write",
            clients=load.clients,
            statements_per_transaction=load.rows_per_commit,
            think_us=load.think_time * 1e6,
            rows=max(1, load.initial_rows),
            secondary_indexes=3,
        )
    return {**_times(load.seconds_before, load.duration), "load": load_fields}


def _slap(spec: TrialSpec) -> PointFields:
    load = spec.workload
    assert isinstance(load, SlapSection)  # noqa: S101  (by its kind)
    load_fields = commits_of_innodb(
        spec,
        load=load.load,
        clients=load.clients,
        statements_per_transaction=max(1, load.commit_every),
        think_us=load.think_time * 1e6,
        rows=load.initial_rows,
        row_bytes=20 + 4 * load.int_cols + 127 * load.char_cols,
        secondary_indexes=load.secondary_indexes,
    )
    return {**_times(load.seconds_before, load.duration), "load": load_fields}


def _times(warm_up_s: float, duration_s: float | None) -> PointFields:
    return {
        "warm_up_s": warm_up_s,
        "duration_s": duration_s,
        "interval_s": INTERVAL_SECONDS,
        "intervals_most": INTERVALS_MAX,
    }


# Kind of load -> what the point of the simulator says of it.
LOADS: dict[str, Callable[[TrialSpec], PointFields]] = {"fio": _fio, "trace": _trace, "ingest": _ingest, "slap": _slap}


# What a study may say of a simulated stack: the drive, what its kernel has, and the loads that can be simulated.


FILESYSTEMS = ("ext3", "ext4")
MOUNTS = ("data=ordered", "data=writeback")
_NO_HOST = "has no effect on a simulated stack, in which no host takes part; leave it out"
_STACK = ("serial", *BETWEEN, "server", "server_cpus", "client_cpus")
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
        yield Mistake(("workload", "kind"), text + did_you_mean(spec.workload.kind, LOADS))


def _kernel(spec: TrialSpec) -> Iterator[Mistake]:
    kernels, name = kernels_by_name(), str(spec.stack.kernel)
    if name not in kernels:
        text = f"is {shown(name)}, which can't be simulated; known are {', '.join(kernels)}"
        yield Mistake(("stack", "kernel"), text + did_you_mean(name, kernels))
        return
    kernel, scheduler_name = kernels[name], spec.stack.scheduler
    if scheduler_name is not None and scheduler_name not in kernel.schedulers:
        has = ", ".join(kernel.schedulers)
        text = f"is {shown(scheduler_name)}; kernel {name} has {has}{did_you_mean(scheduler_name, kernel.schedulers)}"
        yield Mistake(("stack", "scheduler"), text)
        return
    scheduler = scheduler_name or next(iter(kernel.schedulers))
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
    owner = f"{scheduler} of kernel {spec.stack.kernel}"
    for name, value in spec.queue.iosched.items():
        place = ("queue", "iosched", name)
        if name not in tunables:
            has = f"known are {', '.join(tunables)}{did_you_mean(name, tunables)}" if tunables else "it has none"
            yield Mistake(place, f"is not a tunable of {owner}; {has}")
        elif not (known := tunables[name]).least <= value <= known.most:
            unit = f" {known.unit}" if known.unit else ""
            yield Mistake(place, f"is {value}; {owner} takes {known.least} to {known.most}{unit}")


def _filesystem(spec: TrialSpec) -> Iterator[Mistake]:
    """What lies between the load and the queue, as far as the simulated page cache knows it."""
    kind, mount = spec.stack.filesystem, spec.filesystem.mount
    if kind is not None and kind not in FILESYSTEMS:
        text = f"is {shown(kind)}; a simulated stack has {', '.join(FILESYSTEMS)}"
        yield Mistake(("stack", "filesystem"), text + did_you_mean(kind, FILESYSTEMS))
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
    for section in (*BETWEEN, "server", "host", "probes"):
        for name in sorted(getattr(spec, section).model_fields_set - {"settings"}):
            yield Mistake((section, name), _NO_HOST)
