"""What this host can do, found by looking and by trying, never by assuming."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from dbdyno.errors import DbdynoError, HostError
from dbdyno.filesystems import BY_FUSE, KINDS
from dbdyno.host.allocators import LIBRARIES, SYSTEM, install_remedy, library_of, version_of
from dbdyno.host.perf_events import why_no_counters
from dbdyno.host.processor import means_here
from dbdyno.host.read import text_of
from dbdyno.mysql.settings import DISTRIBUTION
from dbdyno.servers.contract import SettingOutcome
from dbdyno.servers.sources.installation import NoServerError, find_server
from dbdyno.stack.layers.emulated_disk import content_room_bytes
from dbdyno.stack.layers.here import folder_here
from dbdyno.stack.layers.host_settings import ONE_NODE, SETTINGS, current, nodes, why_not, why_without_effect
from dbdyno.stack.layers.memory import memory_hierarchy
from dbdyno.stack.restore import leftovers
from dbdyno.stack.tools import own_binary, tool_path
from dbdyno.stack.tracefs import mounted_tracefs, why_not_mountable
from dbdyno.study.schema import HostSection, ServerSection
from dbdyno.study.units import cpu_list, cpu_numbers, format_bytes

BLK_MQ_SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
UBLK = "/dev/ublk-control"
OTHER_TOOLS = {"fio": "fio", "sysbench": "sysbench", "mariadb-slap": "mariadb-client", "bonnie++": "bonnie++",
               "iostat": "sysstat", "smartctl": "smartmontools"}  # fmt: skip


@dataclass(frozen=True)
class Capability:
    """One thing that a host can or can't do."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""  # what to do about a no
    needed: bool = True  # whether a study on emulated disks with the usual layers needs it
    used: bool = True  # whether anything here uses it, so that its absence is a lack
    field: tuple[str, ...] = ()  # of the study, where it is what that says that does not fit this host
    outcome: SettingOutcome | None = None  # what becomes of a setting, where that is not as the study writes it

    @property
    def said(self) -> str:
        """In one line: what, and the remedy."""
        link = " Else " if self.detail.endswith("?") else "; "
        return f"{self.name}: {self.detail}{link}{self.remedy}" if self.remedy else f"{self.name}: {self.detail}"


def device_need(device: str) -> str:
    """What a real device is called as a need."""
    return f"device {device}"


def look_around() -> list[Capability]:
    """Everything that dbdyno may ask of a host. Changes nothing."""
    capabilities = [root(), fuse(), loop(), *map(filesystem, KINDS)]
    capabilities += [
        schedulers(),
        memory_cgroup(),
        server(DISTRIBUTION),
        own_programs(),
        nothing_left_over(),
        tracefs(),
        processor_counters(),
        here(),
        settable(),
        allocators(),
        ublk(),
    ]
    return capabilities + [replace(tool((name,), package), needed=False) for name, package in OTHER_TOOLS.items()]


def root() -> Capability:
    """Whether this process may change block devices and mounts."""
    if os.geteuid() == 0 and _may_mount("CapEff"):
        return Capability("root", ok=True, detail="this process is root and may mount (CAP_SYS_ADMIN)")
    detail = "root, but without CAP_SYS_ADMIN" if os.geteuid() == 0 else "this is an ordinary user"
    return Capability("root", ok=False, detail=detail, remedy='run it with sudo, or study device = "here"')


def _may_mount(which: str) -> bool:
    """Whether CAP_SYS_ADMIN is in this set of the process's capabilities: ``CapEff``, or ``CapBnd`` of its children."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return bool(int(next(line.split()[1] for line in lines if line.startswith(which)), 16) >> 21 & 1)


def fuse() -> Capability:
    """Whether a file can be served by a process."""
    capability = _device_file("FUSE", "/dev/fuse", "modprobe fuse, or give the container /dev/fuse")
    if capability.ok and tool_path("fusermount3") is None:
        return replace(capability, ok=False, detail="no fusermount3", remedy="apt-get install fuse3")
    if capability.ok and not _may_mount("CapBnd"):  # nor may fusermount3, though it is setuid
        why, remedy = "no program here may mount, as in a container", "give the container CAP_SYS_ADMIN"
        return replace(capability, ok=False, detail=why, remedy=remedy)
    return replace(capability, detail=f"{capability.detail} and fusermount3") if capability.ok else capability


def loop() -> Capability:
    """Whether loop devices can be made."""
    return _device_file("loop", "/dev/loop-control", "modprobe loop")


def ublk() -> Capability:
    """Whether this kernel has block devices in user space. dbdyno goes another way, which more kernels have."""
    way = "dbdyno's disks go through FUSE and a loop device, which more kernels have"
    if Path(UBLK).exists():
        return Capability("ublk", ok=True, detail=f"{UBLK}; not used: {way}", needed=False, used=False)
    why, remedy = f"this kernel has no {UBLK}", f"nothing to do: {way}"
    return Capability("ublk", ok=False, detail=why, remedy=remedy, needed=False, used=False)


def _device_file(name: str, path: str, where_absent: str) -> Capability:
    if not Path(path).exists():
        return Capability(name, ok=False, detail=f"no {path}", remedy=where_absent)
    if not os.access(path, os.R_OK | os.W_OK):
        return Capability(name, ok=False, detail=f"{path} can't be opened", remedy="run it with sudo")
    return Capability(name, ok=True, detail=path)


def filesystem(kind: str) -> Capability:
    """Whether a filesystem can be made and mounted."""
    return replace(_filesystem(kind), needed=KINDS[kind].usual)


def _filesystem(kind: str) -> Capability:
    if kind == BY_FUSE:
        return _zfs()
    known = kind in Path("/proc/filesystems").read_text(encoding="ascii").split()
    module = any(Path(f"/lib/modules/{os.uname().release}").glob(f"kernel/fs/{kind}/{kind}.ko*"))
    if not known and not module:
        return Capability(kind, ok=False, detail="not in this kernel", remedy="use another filesystem or kernel")
    program = KINDS[kind].program
    if tool_path(program) is None:
        return Capability(kind, ok=False, detail=f"no {program}", remedy=f"apt-get install {KINDS[kind].package}")
    return Capability(kind, ok=True, detail=f"in the kernel, {tool_path(program)}")


def _zfs() -> Capability:
    """Whether a zfs-fuse can be run."""
    lacking = [name for name in ("zfs-fuse", "zpool", "zfs", "unshare", "nsenter") if tool_path(name) is None]
    if lacking:
        detail, remedy = f"no {', '.join(lacking)}", f"apt-get install {KINDS[BY_FUSE].package}"
        return Capability(BY_FUSE, ok=False, detail=detail, remedy=remedy)
    return Capability(BY_FUSE, ok=True, detail=f"{tool_path('zfs-fuse')}, started by dbdyno in a mount namespace")


def schedulers() -> Capability:
    """I/O schedulers that some block queue here offers."""
    offered = offered_schedulers()
    lacking = [name for name in BLK_MQ_SCHEDULERS if name not in offered]
    remedy = f"modprobe {' '.join(f'{name}-iosched' for name in lacking)}" if lacking else ""
    return Capability("schedulers", ok=bool(offered), detail=" ".join(offered) or "none found", remedy=remedy)


def scheduler(name: str) -> Capability:
    """Whether a block queue here can have this scheduler."""
    offered = offered_schedulers()
    detail = f"this kernel offers {', '.join(offered) or 'none'}"
    return Capability(f"scheduler {name}", ok=name in offered, detail=detail, remedy=f"modprobe {name}-iosched")


def offered_schedulers() -> list[str]:
    """Names of the schedulers that a block queue here can have."""
    for queue in sorted(Path("/sys/block").glob("*/queue/scheduler"), key=lambda path: "loop" not in str(path)):
        words = text_of(queue, "").replace("[", "").replace("]", "").split()  # one may be detached this moment
        if len(words) > 1:
            return words
    return []


def memory_cgroup() -> Capability:
    """Whether memory can be limited."""
    hierarchy = memory_hierarchy()
    remedy = "boot with cgroup_enable=memory, or leave stack.memory out"
    if hierarchy is None:
        return Capability("memory cgroup", ok=False, detail="no memory controller", remedy=remedy)
    version, place = hierarchy
    if not os.access(place, os.W_OK):
        return Capability("memory cgroup", ok=False, detail=f"{place} can't be written", remedy="run it with sudo")
    return Capability("memory cgroup", ok=True, detail=f"version {version} at {place}")


def server(name: str) -> Capability:
    """Whether a server that a study names is there."""
    try:
        installation = find_server(name)
    except NoServerError as error:
        return Capability(f"server {name}", ok=False, detail=error.reason, remedy=error.remedy)
    except DbdynoError as error:
        return Capability(f"server {name}", ok=False, detail=str(error), remedy="name another in stack.server")
    return Capability(f"server {name}", ok=True, detail=f"{installation.version}, {installation.daemon}")


def room_in_memory(size: int, field: Literal["size", "guest_memory"]) -> Capability:
    """Whether so many bytes of memory are free, which a field of the stack asks for."""
    free = psutil.virtual_memory().available
    name = {"size": "memory for a tmpfs", "guest_memory": "memory for a virtual machine"}[field]
    detail = f"stack.{field} is {format_bytes(size)}, and {format_bytes(free)} of memory are free"
    return Capability(name, ok=size < free, detail=detail, remedy=f"give a smaller stack.{field}")


def room_for_content(data_bytes: int) -> Capability:
    """Whether what a load is known to hold fits into emulated disks, whose content is in memory."""
    room = content_room_bytes()
    detail = f"the data take {format_bytes(data_bytes)}, and emulated disks may take half of the free memory: "
    remedy = 'make the data smaller, or give device = "here" or a real disk'
    return Capability(
        "memory for emulated disks", ok=data_bytes < room, detail=f"{detail}{format_bytes(room)}", remedy=remedy
    )


def here(needed_bytes: int = 0) -> Capability:
    """Whether ``device = "here"`` says something of a disk, and has room."""
    detail, remedy = folder_here(needed_bytes)
    detail = detail if remedy else f'for device = "here": {detail}'
    return Capability("here", ok=not remedy, detail=detail, remedy=remedy, needed=False)


def processors(name: str, cpus: str) -> Capability:
    """Whether this host has the processors that a field of a study names."""
    affinity = os.sched_getaffinity(0)
    lacking = cpu_numbers(cpus) - affinity
    detail = f"{cpus}; this process may use {cpu_list(affinity)}"
    return Capability(f"stack.{name}", ok=not lacking, detail=detail, remedy="name processors that this host has")


def awake() -> Capability:
    """Whether processors can be kept from halting, and by what."""
    means = means_here(frozenset(os.sched_getaffinity(0)))
    words = {
        "kernel": "the kernel polls while it is idle",
        "pollers": "idle-priority pollers use time that would be idle",
    }
    detail, field = words.get(means.by, means.why), ("host", "awake")
    return Capability("host.awake", ok=bool(means.by), detail=detail, remedy=means.remedy, needed=False, field=field)


def host_settings(host: HostSection, *, limited: bool) -> Iterator[Capability]:
    """Whether this host takes each setting of its kernel that a treatment has, and whether it then has an effect."""
    for name, value in host.settings.items():
        what, field = f"host.{name} = {value}", ("host", name)
        if refusal := why_not(name, value):
            yield Capability(what, ok=False, detail=refusal.why, remedy=refusal.remedy, field=field)
        elif why := why_without_effect(name, host.settings, limited=limited):
            outcome = SettingOutcome(name, value, "no effect", said=why)
            yield Capability(what, ok=True, detail=f"changes nothing here: {why}", field=field, outcome=outcome)
        else:
            yield Capability(what, ok=True, detail=f"it is {current(name)} now", field=field)


def placement(server: ServerSection, *, in_guest: bool = False) -> Iterator[Capability]:
    """Whether a server can have its priority, its allocator and its memory where a treatment wants them.

    In a virtual machine it runs as root, with the files of this host, and on one NUMA node.
    """
    node_count = 1 if in_guest else nodes()
    if server.nice is not None and server.nice < os.getpriority(os.PRIO_PROCESS, 0) and not in_guest:
        yield root()
    if server.allocator in LIBRARIES:
        what, library = f"allocator {server.allocator}", library_of(str(server.allocator))
        version = f"{version_of(str(server.allocator), library)}, {library}" if library else "is not installed"
        remedy, field = "" if library else install_remedy(str(server.allocator)), ("server", "allocator")
        yield Capability(what, ok=bool(library), detail=version, remedy=remedy, field=field)
    if server.numa:
        field, number = ("server", "numa"), server.numa.rpartition(":")[2]
        yield replace(tool(("numactl",), "numactl"), field=field)
        if number.isdecimal() and int(number) >= node_count:
            owner = "a virtual machine" if in_guest else "this host"
            there = f"has nodes 0 to {node_count - 1}" if node_count > 1 else "has node 0 alone"
            detail = f"is {server.numa}; {owner} {there}"
            yield Capability(f"node {number}", ok=False, detail=detail, remedy="name one of these", field=field)
        elif node_count == 1:
            outcome = SettingOutcome("numa", server.numa, "no effect", said=ONE_NODE)
            detail, what = f"changes nothing here: {ONE_NODE}", f"server.numa = {server.numa}"
            yield Capability(what, ok=True, detail=detail, field=field, outcome=outcome)


def allocators() -> Capability:
    """Which allocators a server can be started with here."""
    libraries = {name: library_of(name) for name in LIBRARIES}
    able = [f"{name} {version_of(name, library)}" for name, library in libraries.items() if library]
    lacking = [name for name, library in libraries.items() if not library]
    remedy = install_remedy(*lacking) if lacking else ""
    detail = ", ".join([SYSTEM, *able, *(f"no {name}" for name in lacking)])
    return Capability("allocators", ok=not lacking, detail=detail, remedy=remedy, needed=False)


def settable() -> Capability:
    """Which settings of the kernel a study can set here."""
    refusals = {name: why_not(name) for name in SETTINGS}
    able = [name for name, refusal in refusals.items() if refusal is None]
    names_by_why: dict[str, list[str]] = {}
    for name, refusal in refusals.items():
        if refusal is not None:
            names_by_why.setdefault(f"{refusal.why}; {refusal.remedy}", []).append(name)
    lacking = [f"not {', '.join(names)}: {why}" for why, names in names_by_why.items()]
    detail = "; ".join([", ".join(able) or "none", *lacking])
    return Capability("host settings", ok=bool(able), detail=detail, needed=False)


def own_programs() -> Capability:
    """Whether dbdyno's own programs are built."""
    try:
        places = [Path(own_binary(name)) for name in ("dbdyno-disk", "dbdyno-load", "dbdyno-probe")]
    except DbdynoError as error:
        detail, _, remedy = str(error).partition("; build it with: ")
        return Capability("dbdyno programs", ok=False, detail=detail, remedy=remedy)
    folders = list(dict.fromkeys(place.parent for place in places))
    names = [f"{', '.join(place.name for place in places if place.parent == folder)} in {folder}" for folder in folders]
    return Capability("dbdyno programs", ok=True, detail="; ".join(names))


def tracefs() -> Capability:
    """Whether the kernel's block trace can be read."""
    if place := mounted_tracefs():
        return Capability("tracefs", ok=True, detail=f"mounted at {place}", needed=False)
    why, _, remedy = why_not_mountable().partition("; ")
    detail = why or "not mounted; dbdyno mounts it in its state folder while it traces"
    return Capability("tracefs", ok=not why, detail=detail, remedy=remedy, needed=False)


def processor_counters() -> Capability:
    """Whether instructions, cycles and misses of a server can be counted."""
    why, remedy = why_no_counters()
    detail = why or "instructions, cycles, cache and branch misses can be counted"
    return Capability("processor counters", ok=not why, detail=detail, remedy=remedy, needed=False)


def tool(names: tuple[str, ...], package: str) -> Capability:
    """Whether a program of others is there, under one of its names."""
    path = next((path for name in names if (path := tool_path(name))), None)
    install = f"apt-get install {package}" if package else "name a program that there is in workload.command"
    remedy = "" if path else install
    return Capability(names[0], ok=path is not None, detail=path or "not installed", remedy=remedy)


def nothing_left_over() -> Capability:
    """Whether a killed dbdyno has left something on this host."""
    try:
        orphans = [leftover for leftover in leftovers() if leftover.orphaned()]
    except HostError as error:
        return Capability("nothing left over", ok=False, detail=str(error), remedy="fix that", needed=False)
    detail = (
        "; ".join(f"{orphan.what} ({orphan.by}) was killed" for orphan in orphans)
        or "no killed dbdyno has left anything"
    )
    return Capability("nothing left over", ok=not orphans, detail=detail, remedy="dbdyno restore", needed=False)
