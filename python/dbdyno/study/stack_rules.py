"""What can't be combined, by the kind of stack: rules over one whole treatment that need no look at the host."""

from collections.abc import Callable, Iterator
from pathlib import Path

from dbdyno.filesystems import BY_FUSE, IN_MEMORY, KINDS
from dbdyno.model.design import BOOTED, BOOTED_KERNELS, IMAGE
from dbdyno.model.disks import DATA_DISK
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.server_url import EXAMPLE, is_url, server_url
from dbdyno.mysql.settings import DISTRIBUTION, NO_SERVER, NOT_SERVED, OF_ARCHIVE, PROVISIONED
from dbdyno.study.drives import A_VOLUME_THERE_IS, HERE, MEMORY, NOT_GIVEN, device_place, is_emulated, is_real
from dbdyno.study.fio_rules import job_mistakes
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import ARRAYS, BETWEEN, CACHE_DISK, DISKS, VOLUMES, TrialSpec
from dbdyno.study.simulated_loads import broken_drive_rules, broken_simulated_rules, broken_size_rules, unsure_name
from dbdyno.study.units import format_bytes
from dbdyno.study.workloads import KINDS as WORKLOADS
from dbdyno.study.workloads import (
    BonnieSection,
    CommandSection,
    FioSection,
    GeneratedSection,
    MysqlslapSection,
    SysbenchSection,
)
from dbdyno.system.files import read_text

# What can't be set for an external server: whatever it was started with or stands on.


_WHY = "can't be set with an external server: "
# Field of [stack] -> why, and what to do about it.
_STACK = {
    **dict.fromkeys(
        ("device", "serial", "size", "devices", "filesystem", "scheduler", *BETWEEN),
        "its storage is its own, and stays as it is. Leave it out, or let dbdyno start a server of its own",
    ),
    "kernel": "only what dbdyno raises can be simulated. Leave one of the two out",
    "memory": "its memory limit is set where it was started. Leave it out, or let dbdyno start a server of its own",
    "server_cpus": "its processors are chosen where it was started. Leave it out, or bind that server yourself",
}
_SECTIONS = {
    **dict.fromkeys(
        BETWEEN,
        "dbdyno does not touch the disks below it. Leave it out, or let dbdyno start a server of its own",
    ),
    "queue": "dbdyno does not touch the disks below it. Leave it out, or let dbdyno start a server of its own",
    "filesystem": "dbdyno does not touch the disks below it. Leave it out, or let dbdyno start a server of its own",
}


def broken_external_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that this treatment of an external server breaks."""
    try:
        server_url(spec.stack.server)
    except ValueError as error:
        yield Mistake(("stack", "server"), str(error))
    for name, why in _STACK.items():
        if name in spec.stack.model_fields_set:
            yield Mistake(("stack", name), _WHY + why)
    for section, why in _SECTIONS.items():
        for name in sorted(getattr(spec, section).model_fields_set):
            yield Mistake((section, name), _WHY + why)
    yield from _generated_alone(spec, "an external server")
    if spec.server.whole_server_may_change and spec.workload.kind != "script":
        text = "is for the load script; other loads change nothing but tables of their own. Leave it out"
        yield Mistake(("server", "whole_server_may_change"), text)
    yield from _of_its_host(spec)


def _of_its_host(spec: TrialSpec) -> Iterator[Mistake]:
    """What is decided where an external server was started."""
    for name in spec.host.settings:
        yield Mistake(("host", name), _WHY + "it is of the machine that it runs on. Leave it out, or set it there")
    given = "was given to it where it was started. Leave it out"
    for name, what in (("ionice", "I/O class"), ("nice", "priority"), ("allocator", "allocator"), ("numa", "memory")):
        if getattr(spec.server, name) is not None:
            yield Mistake(("server", name), f"{_WHY}its {what} {given}")


def _generated_alone(spec: TrialSpec, server: str) -> Iterator[Mistake]:
    """Other programs than dbdyno's own would make a schema of their own on a server that it did not start."""
    if not isinstance(spec.workload, GeneratedSection):
        able = ", ".join(name for name, kind in WORKLOADS.items() if issubclass(kind, GeneratedSection))
        yield Mistake(("workload", "kind"), f"is {shown(spec.workload.kind)}; {server} takes {able}")


# What can't be set for a machine of the user's own: whatever its own system decides.


_OF_IMAGE = "can't be set with stack.image: the machine's own system decides it. Leave it out, or set it by stack."
_STACK_OF_IMAGE = {
    **dict.fromkeys(
        ("filesystem", "scheduler", *BETWEEN),
        f"{_OF_IMAGE}setup or stack.start, which can be factors",
    ),
    **dict.fromkeys(("memory", "server_cpus"), f"{_OF_IMAGE}start; stack.guest_memory is the machine's memory"),
    "kernel": "can't be set with stack.image, which has a kernel of its own. Leave one of the two out",
    "devices": "can't be set with stack.image: the machine has one emulated drive beside its own. Leave it out",
    "serial": "is for real devices; an emulated disk has none",
}
_AWAKE = "is for processors of this host; the stack is a virtual machine, so leave it out"
_HERE_IN_IMAGE = ("localhost", "127.0.0.1")
_EXAMPLE_IN_IMAGE = EXAMPLE.replace("@host", f"@{_HERE_IN_IMAGE[0]}")


def _broken_image_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that a treatment in a machine of the user's own breaks."""
    stack = spec.stack
    for name, path in (("image", stack.image), ("key", stack.key)):
        if path is None:
            yield Mistake(("stack", name), "is missing; an image needs the ssh key of its login: an absolute path")
        elif not path.startswith("/"):
            yield Mistake(("stack", name), f"is {shown(path)}; give an absolute path")
    yield from _server_in_image(stack.server)
    yield from _decided_in_image(spec)
    if not is_emulated(stack.device):
        text = f"is {shown(stack.device)}; the second drive of a machine is emulated, such as {shown('ssd-sata')}"
        yield Mistake(("stack", "device"), text)
    else:
        yield from broken_drive_rules(spec, folder)
        yield from broken_size_rules(spec)
    if getattr(spec.workload, "clients_from", None):
        text = "can't be given with stack.image: its server can be reached from this host alone. Leave it out"
        yield Mistake(("workload", "clients_from"), text)
    yield from _generated_alone(spec, "the server of a machine")
    if spec.server.whole_server_may_change:
        text = "is for an external server; that of a machine is thrown away. Leave it out"
        yield Mistake(("server", "whole_server_may_change"), text)


def _decided_in_image(spec: TrialSpec) -> Iterator[Mistake]:
    for name, why in _STACK_OF_IMAGE.items():
        if name in spec.stack.model_fields_set:
            yield Mistake(("stack", name), why)
    for section in ("queue", *BETWEEN, "filesystem"):
        for name in sorted(getattr(spec, section).model_fields_set):
            yield Mistake((section, name), f"{_OF_IMAGE}start")
    for name in ("ionice", "nice", "allocator", "numa"):
        if getattr(spec.server, name) is not None:
            yield Mistake(("server", name), f"{_OF_IMAGE}start")
    for name in spec.host.settings:
        yield Mistake(("host", name), f"{_OF_IMAGE}start")
    if spec.host.awake is True:
        yield Mistake(("host", "awake"), _AWAKE)


def _server_in_image(server: str) -> Iterator[Mistake]:
    place, example = ("stack", "server"), shown(_EXAMPLE_IN_IMAGE)
    if not is_url(server):
        yield Mistake(place, f"is {shown(server)}; name the server that is in stack.image, such as {example}")
        return
    try:
        url = server_url(server)
    except ValueError as error:
        yield Mistake(place, str(error).replace(EXAMPLE, _EXAMPLE_IN_IMAGE))
        return
    if url.socket or url.host not in _HERE_IN_IMAGE:
        text = f"is not the machine itself; name it as a program in the machine does, by TCP: {example}"
        yield Mistake(place, text)


# What can't be combined in ``[workload]`` of another program, or around it.


def broken_tool_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment breaks; ``folder`` is where a relative job file is looked for."""
    match spec.workload:
        case FioSection():
            yield from _fio(spec.workload, folder)
        case BonnieSection():
            yield from _bonnie(spec.workload, spec.stack.memory)
        case SysbenchSection():
            yield from _sysbench(spec.workload)
        case MysqlslapSection():
            yield from _mysqlslap(spec.workload)
        case CommandSection():
            yield from broken_command_rules(spec.workload)


def broken_server_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """A server where none can be, and none where one is needed."""
    kind, needs = spec.workload.kind, spec.workload.SERVER
    if needs == "needed" and spec.stack.server == NO_SERVER:
        yield Mistake(("stack", "server"), f'is "{NO_SERVER}", but a {kind} load needs one; leave it out for MariaDB')
    if spec.has_server:
        return
    why = f"{kind}, which works on the filesystem" if needs == "none" else f'server = "{NO_SERVER}"'
    for name in ("server", "engine", "server_cpus"):
        if name in spec.stack.model_fields_set and not (name == "server" and spec.stack.server == NO_SERVER):
            yield Mistake(("stack", name), f"has no effect with {why}; leave it out")
    for name in sorted(spec.server.model_fields_set):
        yield Mistake(("server", name), f"has no effect with {why}; leave it out")


def _fio(load: FioSection, folder: Path) -> Iterator[Mistake]:
    if load.job is None and load.profile is None:
        yield Mistake(("workload",), 'has neither profile nor job; give one, such as profile = "SEQ1M Q8T1"')
    if load.profile is not None and load.load is None and load.job is None:
        yield Mistake(("workload", "load"), "is missing; a profile needs one: read, write, mix")
    if load.job is None:
        return
    for name in ("profile", "load", "size", "duration", "warmup", "direct"):
        if name in load.model_fields_set:
            yield Mistake(("workload", name), "is for a profile; a job file has its own")
    path = folder / load.job
    try:
        text = read_text(path)
    except OSError as error:
        yield Mistake(("workload", "job"), f"is {shown(load.job)}: {path} can't be read: {error.strerror}")
    except UnicodeDecodeError:
        yield Mistake(("workload", "job"), f"is {shown(load.job)}, which is not UTF-8 text")
    else:
        for why in job_mistakes(text, path.parent):
            yield Mistake(("workload", "job"), f"is {shown(load.job)}: {why}")


def _bonnie(load: BonnieSection, memory: int | None) -> Iterator[Mistake]:
    if load.size % 1024**2:
        yield Mistake(("workload", "size"), "must be whole MiB")
    if memory is not None and load.size <= memory:
        text = f"is {format_bytes(load.size)}, not more than stack.memory ({format_bytes(memory)}): "
        yield Mistake(("workload", "size"), text + "the page cache would answer for the disk")


def _sysbench(load: SysbenchSection) -> Iterator[Mistake]:
    if (load.events is None) == (load.duration is None):
        ending = "has neither events nor duration" if load.events is None else "gives both events and duration"
        yield Mistake(("workload",), f"{ending}; give one of them")


def _mysqlslap(load: MysqlslapSection) -> Iterator[Mistake]:
    if load.queries < load.clients:
        yield Mistake(("workload", "queries"), f"is {load.queries}, fewer than one for each of {load.clients} clients")
    if load.autoincrement and load.guid_primary:
        yield Mistake(("workload", "guid_primary"), "and autoincrement are two keys for the same table; give one")
    if load.int_cols + load.char_cols == 0:
        yield Mistake(("workload", "int_cols"), "and char_cols are both 0; a table needs a column")


def broken_command_rules(load: CommandSection) -> Iterator[Mistake]:
    """What of a command's figure has no effect."""
    for name in ("unit", "better"):
        if name in load.model_fields_set and load.figure is None:
            yield Mistake(("workload", name), "has no effect without workload.figure; give it too")


def broken_stack_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule of its kind of stack that this treatment breaks; ``folder`` is where relative files are looked for."""
    yield from broken_disk_rules(spec, folder)
    if spec.stack.kind == EXTERNAL:
        yield from broken_external_rules(spec)
        return
    if spec.stack.kind == IMAGE:
        yield from _broken_image_rules(spec, folder)
        return
    for name in sorted({"image", "login", "key", "setup", "start"} & spec.stack.model_fields_set):
        yield Mistake(("stack", name), "is for a machine of your own; leave it out, or give stack.image")
    if spec.stack.is_simulated:
        yield from broken_simulated_rules(spec, folder)
        return
    yield from DEVICES.get(spec.stack.kind, _unknown)(spec, folder)
    if not spec.stack.is_booted:
        for name in sorted({"bus", "guest_memory"} & spec.stack.model_fields_set):
            yield Mistake(("stack", name), "is for a virtual machine; leave it out, or give stack.kernel one to boot")
    yield from _devices(spec)
    yield from _host(spec)
    yield from _server(spec)
    yield from broken_server_rules(spec)


EXTERNAL = "external"  # by its server, whatever the device
SIMULATED = "simulated"  # by its kernel, whatever the device
AHCI_PORTS = 6  # of the controller of a virtual machine
# Kind of stack -> why no disk stands beside that of the data.
_NO_DISKS = {
    EXTERNAL: "an external server has its files where it was told to",
    SIMULATED: "a simulated stack has one disk",
    IMAGE: "a machine of your own has one drive beside the image",
    MEMORY: "the data lie in memory, on no disk",
    HERE: "the data lie in a folder of this host; name an emulated or a real disk in stack.device",
    "file": "the data lie in a file; name an emulated or a real disk in stack.device",
}


def broken_disk_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that ``[stack.disks]`` and ``[server.place]`` break; each disk is held to the rules of its kind."""
    yield from _places(spec)
    kind = spec.stack.kind
    if why := _NO_DISKS.get(kind):
        if spec.stack.disks:
            yield Mistake(DISKS, f"can't be given here: {why}. Leave it out")
        return
    devices = {DATA_DISK: spec.stack.device}
    for name, on in spec.by_disk.items():
        device, filesystem = on.stack.device, on.stack.filesystem
        if text := _wrong_filesystem(filesystem, of_cache=name == spec.cache_disk):
            yield Mistake((*DISKS, name, "filesystem"), f"is {shown(filesystem)}{text}")
            continue
        if on.stack.kind != kind:
            text = f"is {shown(device)}, and the data lie on {shown(spec.stack.device)}; give both of one kind"
            yield Mistake((*DISKS, name, "device"), f"{text}: emulated drives, or real disks")
            continue
        if kind == "real" and (other := next((disk for disk, path in devices.items() if path == device), "")):
            yield Mistake((*DISKS, name, "device"), f"is {shown(device)}, the disk {other}; name another")
        devices[name] = device
        for mistake in _booted_drive(on, folder) if kind == BOOTED else DEVICES[kind](on, folder):
            if not (name == spec.cache_disk and mistake.path == ("stack", "filesystem")):
                yield _of_disk(name, mistake, filesystem)


def _wrong_filesystem(filesystem: str | None, *, of_cache: bool) -> str:
    """Why a named disk can't have it; empty if it can."""
    if of_cache and filesystem is not None:
        return "; a cache has the disk itself, without a filesystem. Leave it out"
    if filesystem in {BY_FUSE, IN_MEMORY}:
        return f", which is for the disk of the data alone; give one such as {shown('ext4')}"
    return ""


def _places(spec: TrialSpec) -> Iterator[Mistake]:
    known, why = [DATA_DISK, *spec.stack.disks], _NO_DISKS.get(spec.stack.kind)
    for purpose, name in spec.places.items():
        if name in known:
            continue
        text = f"is {shown(name)}; disks are {', '.join(known)}. A further one is a section [stack.disks.NAME]"
        text += did_you_mean(name, known)
        if why:
            text = f"is {shown(name)}, and there is no such disk here: {why}. Leave it out"
        yield Mistake(("server", "place", purpose), text)


def _of_disk(name: str, mistake: Mistake, filesystem: str | None) -> Mistake:
    """A mistake that is said of [stack] and [filesystem], which are a named disk's here."""
    text = mistake.text.replace("stack.", f"stack.disks.{name}.")
    if filesystem is None and mistake.path == ("stack", "filesystem"):
        text = f"is missing; allowed are {', '.join(each for each in KINDS if each not in {BY_FUSE, IN_MEMORY})}"
    return Mistake((*DISKS, name, *mistake.path[1:]), text)


# What users call a volume that their host has.
_OF_DEVICE_MAPPER = ("lvm", "lv", "dm", "md", "raid")


def _unknown(spec: TrialSpec, _: Path) -> Iterator[Mistake]:
    known = [name for name in DEVICES if name not in {NOT_GIVEN, BOOTED}]
    text = f"is {shown(spec.stack.device)}; no kind of stack is called {shown(spec.stack.kind)}: {', '.join(known)}"
    if spec.stack.kind in _OF_DEVICE_MAPPER:
        text += f". {A_VOLUME_THERE_IS}"
    yield Mistake(("stack", "device"), text + did_you_mean(spec.stack.kind, known))


def _missing(_: TrialSpec, __: Path) -> Iterator[Mistake]:
    yield Mistake(("stack", "device"), "is missing; give it unless stack.server is an external one")


# How a field that one kind of device has, and another has not, can stand in one study with both.
_APART = "leave it out, or give it in a level of [levels] with another device"


def _here(spec: TrialSpec, _: Path) -> Iterator[Mistake]:
    why = f'can\'t be set with device = "{HERE}", a folder of the host as it is; {_APART}'
    yield from _unsettable(spec, ("size", "scheduler", "filesystem", "serial"), ("queue", "filesystem"), why)


def _memory(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Also of a tmpfs whose study names a device, for other treatments."""
    device, filesystem = spec.stack.device, spec.stack.filesystem
    if is_emulated(device):
        yield from _emulated(spec, folder)
    elif is_real(device):
        yield from _real(spec, folder)
        text = f'is {shown(filesystem)}, which stands on no disk; use device = "{MEMORY}"'
        yield Mistake(("stack", "filesystem"), text)
    else:
        yield from _filesystem(spec)
        why = f'can\'t be set with device = "{MEMORY}", which is not a device; {_APART}'
        yield from _unsettable(spec, ("scheduler", "serial"), ("queue",), why)
        if filesystem not in {None, IN_MEMORY}:
            text = f'is {shown(filesystem)}; with device = "{MEMORY}" it is "{IN_MEMORY}"'
            yield Mistake(("stack", "filesystem"), text)
        yield from broken_size_rules(spec)


def _filesystem(spec: TrialSpec) -> Iterator[Mistake]:
    if spec.stack.filesystem is None:
        yield Mistake(("stack", "filesystem"), f"is missing; allowed are {', '.join(KINDS)}")


def _unsettable(spec: TrialSpec, fields: tuple[str, ...], sections: tuple[str, ...], why: str) -> Iterator[Mistake]:
    """What a study sets although its device has no such thing."""
    for name in fields:
        if getattr(spec.stack, name) is not None:
            yield Mistake(("stack", name), why)
    for section in sections:
        for name in sorted(getattr(spec, section).model_fields_set):
            yield Mistake((section, name), why)


def _real(spec: TrialSpec, _: Path) -> Iterator[Mistake]:
    device, stack = spec.stack.device, spec.stack
    yield from _filesystem(spec)
    if not device.startswith("/"):
        yield Mistake(("stack", "device"), f"is {shown(device)}; name a disk by its absolute path")
    elif stack.size is not None:
        yield Mistake(("stack", "size"), "is for emulated disks; a real device is used whole")
    elif text := unsure_name(device, stack.serial):
        yield Mistake(("stack", "device"), f"{text} in stack.serial")
    if stack.filesystem == BY_FUSE:
        text = "is for emulated disks: on a real one, what a killed trial left looks like any other pool"
        yield Mistake(("stack", "filesystem"), text)


def _file(spec: TrialSpec, _: Path) -> Iterator[Mistake]:
    place = device_place(spec.stack.device)
    yield from _filesystem(spec)
    if not place.startswith("/"):
        text = f"is {shown(spec.stack.device)}; name a folder by its absolute path, such as {shown('file:/srv/bench')}"
        yield Mistake(("stack", "device"), text)
    if spec.stack.serial is not None:
        yield Mistake(("stack", "serial"), "is for real devices; a file has none")
    if spec.stack.filesystem == BY_FUSE:
        yield Mistake(("stack", "filesystem"), "is for emulated disks: a pool in a file looks like any other")
    yield from broken_size_rules(spec)


def _emulated(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    broken = list(broken_drive_rules(spec, folder))
    yield from broken
    if not any(mistake.path == ("stack", "device") for mistake in broken):  # else none knows what such a drive lacks
        yield from _filesystem(spec)
        yield from broken_size_rules(spec)
    if spec.stack.serial is not None:
        yield Mistake(("stack", "serial"), "is for real devices; an emulated disk has none")


def _booted(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    stack = spec.stack
    kernel = str(stack.kernel)
    if kernel not in BOOTED_KERNELS and not kernel.startswith("/"):
        known = ", ".join(BOOTED_KERNELS)
        path = "the absolute path of a kernel: its image, or the folder of its unpacked package"
        text = f"is {shown(kernel)}; known are {known} and {path}"
        yield Mistake(("stack", "kernel"), text + did_you_mean(kernel, BOOTED_KERNELS))
    yield from _booted_drive(spec, folder)
    if stack.filesystem == IN_MEMORY:
        text = f"is {shown(stack.filesystem)}; a virtual machine has a filesystem on a disk, such as {shown('ext4')}"
        yield Mistake(("stack", "filesystem"), text)
    arc_bytes = spec.filesystem.arc_max
    if arc_bytes and arc_bytes >= stack.guest_memory:
        text = f"is {format_bytes(arc_bytes)}, and the machine has {format_bytes(stack.guest_memory)}"
        yield Mistake(("filesystem", "arc_max"), f"{text}; give less, or more stack.guest_memory")
    if spec.host.awake is True:
        yield Mistake(("host", "awake"), _AWAKE)


def _booted_drive(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """What a virtual machine can't have as the disk of the data, or as a named one."""
    stack = spec.stack
    if not is_emulated(stack.device):
        text = f"is {shown(stack.device)}; a virtual machine has an emulated drive, such as {shown('ssd-sata')}"
        yield Mistake(("stack", "device"), text)
    else:
        yield from _emulated(spec, folder)


def _devices(spec: TrialSpec) -> Iterator[Mistake]:
    """How many disks there are below one filesystem, and how many it needs."""
    stack, place = spec.stack, ("stack", "devices")
    kind = KINDS.get(stack.filesystem or "")
    yield from _between(spec)
    gathered = ARRAYS.get(stack.array) or VOLUMES.get(stack.volume)
    if stack.devices > 1 and not is_emulated(stack.device):
        yield Mistake(
            place, f"is {stack.devices}, which is for emulated disks. Leave it out, or name an emulated drive"
        )
    elif stack.bus == "ahci" and (number := stack.devices + len(spec.by_disk)) > AHCI_PORTS:
        with_named = f", with those of stack.disks {number}" if spec.by_disk else ""
        text = f"is {stack.devices}{with_named}; an AHCI controller has {AHCI_PORTS} ports. Give another stack.bus"
        yield Mistake(place, text)
    elif gathered and stack.devices < gathered:
        what = stack.array if stack.array != "none" else f"a {stack.volume} volume"
        yield Mistake(place, f"is {stack.devices}; {what} needs {gathered} or more. Give stack.devices = {gathered}")
    elif kind and not gathered and stack.devices > kind.devices_max:
        able = ", ".join(name for name, family in KINDS.items() if family.devices_max > 1)
        most = f"at most {kind.devices_max} devices" if kind.devices_max > 1 else "one device"
        remedy = f"give stack.filesystem: {able}" if kind.devices_max == 1 else f"give {kind.devices_max}"
        text = f"is {stack.devices}, but {kind.name} stands on {most}. Leave it out, or {remedy}"
        yield Mistake(place, f"{text}; or make one device of them by stack.array or stack.volume")
    if stack.devices > 1 and spec.probes.trace:
        text = f"follows one device, not {stack.devices}. Leave it out, or give stack.devices = 1"
        yield Mistake(("probes", "trace"), text)
    beneath = stack.filesystem_devices
    if kind and (needed := kind.devices_min(spec.filesystem.mkfs)) > beneath:
        remedy = f"give stack.devices = {needed}" if needed <= kind.devices_max else "name another profile"
        text = f"asks for a profile that needs {needed} devices; there is {beneath}. {remedy.capitalize()}"
        yield Mistake(("filesystem", "mkfs"), text)


_WITHOUT_REDUNDANCY = ("raid0", "linear")
_ON_NONE = {
    "real": "are on emulated drives and files alone: what a killed trial left on a real disk would look like another's",
    HERE: "need a device of their own, and the data lie in a folder of this host",
    MEMORY: "need a device, and the data lie in memory",
}


def _between(spec: TrialSpec) -> Iterator[Mistake]:
    """What can't be between disks and filesystem, by what it is, what is below it, and what is above."""
    stack = spec.stack
    for name in BETWEEN:
        chosen, section = getattr(stack, name), getattr(spec, name)
        if chosen == "none":
            for inner in sorted(section.model_fields_set):
                text = f'is for stack.{name}, which is "none"; leave it out, or give both in a level of [levels]'
                yield Mistake((name, inner), text)
            continue
        place = ("stack", name)
        if why := _ON_NONE.get(stack.kind):
            yield Mistake(place, f"is {shown(chosen)}; layers between disk and filesystem {why}. Leave it out")
        elif stack.filesystem == BY_FUSE:
            yield Mistake(place, f"is {shown(chosen)}; zfs stands on the disk itself. Give another stack.filesystem")
        elif spec.crash:
            yield Mistake(place, f"is {shown(chosen)}; a power cut is of one plain disk. Leave it out, or [crash]")
    yield from _one_of_many(spec)
    yield from _array(spec)
    if stack.cache != "none" and stack.kind not in _ON_NONE:
        yield from _cache(spec)


def _one_of_many(spec: TrialSpec) -> Iterator[Mistake]:
    stack = spec.stack
    for name in ("cache", "encryption"):
        chosen = getattr(stack, name)
        if chosen != "none" and stack.array == "none" and stack.devices > 1:
            text = f"is {shown(chosen)} over {stack.devices} devices; give stack.array, which makes one of them"
            yield Mistake(("stack", name), text)
    if stack.volume == "striped" and {stack.array, stack.cache, stack.encryption} != {"none"}:
        text = 'is "striped", and what is below it is one device; give "linear" or "thin"'
        yield Mistake(("stack", "volume"), text)


def _array(spec: TrialSpec) -> Iterator[Mistake]:
    level, array = spec.stack.array, spec.array
    if level == "none":
        return
    if level == "raid1" and array.chunk is not None:
        yield Mistake(("array", "chunk"), "has no effect on raid1, which has no chunks; leave it out")
    if level not in {"raid5", "raid6"} and array.stripe_cache_size is not None:
        yield Mistake(("array", "stripe_cache_size"), f"is of raid5 and raid6; {level} has none. Leave it out")
    if level in _WITHOUT_REDUNDANCY:
        if array.state != "clean":
            text = f"is {shown(array.state)}, but {level} can't do without a disk. Leave it out, or give another level"
            yield Mistake(("array", "state"), text)
        if array.bitmap is not None:
            yield Mistake(("array", "bitmap"), f"is of arrays that are synced; {level} is not. Leave it out")
    for name in ("sync_speed_min", "sync_speed_max"):
        if getattr(array, name) is not None and array.state != "rebuilding":
            text = f"has no effect on an array that is {array.state}; leave it out, or give array.state"
            yield Mistake(("array", name), f'{text} = "rebuilding"')


_OF_CACHE = {"high_watermark": ("writecache",), "low_watermark": ("writecache",), "max_age": ("writecache",),
             "cache_mode": ("dm-cache", "bcache"), "sequential_cutoff": ("bcache",)}  # fmt: skip


def _cache(spec: TrialSpec) -> Iterator[Mistake]:
    """What a cache lacks, and what of ``[cache]`` is another's."""
    kind, section, place = spec.stack.cache, spec.cache, ("stack", "cache")
    if why := _NO_DISKS.get(spec.stack.kind):
        yield Mistake(place, f"is {shown(kind)}, and there is no disk for it here: {why}. Leave it out")
        return
    if CACHE_DISK not in spec.stack.disks:
        text = f"is {shown(kind)}, and needs a disk; give a section [stack.disks.{CACHE_DISK}] with device and size"
        yield Mistake(place, text)
    used = {("server", "place", purpose): disk for purpose, disk in spec.places.items()}
    used[("server", "replica", "disk")] = spec.server.replica.own_disk
    for field, disk in used.items():
        if disk == CACHE_DISK:
            yield Mistake(field, f"is {shown(disk)}, the disk that stack.cache takes; give one of another name")
    for name in sorted(section.model_fields_set):
        if kind not in _OF_CACHE[name]:
            text = f"is of {' and '.join(_OF_CACHE[name])}; {kind} has none. Leave it out, or give both in a level of "
            yield Mistake(("cache", name), f"{text}[levels]")
    if section.low_watermark > section.high_watermark:
        text = f"is {section.low_watermark}, above cache.high_watermark ({section.high_watermark}); give less"
        yield Mistake(("cache", "low_watermark"), text)


def _host(spec: TrialSpec) -> Iterator[Mistake]:
    """Of two settings of the host the kernel keeps the one that was set last."""
    for name in ("dirty", "dirty_background"):
        ratio, size = f"{name}_ratio", f"{name}_bytes"
        if {ratio, size} <= spec.host.settings.keys():
            yield Mistake(("host", size), f"and {ratio} are one limit in two units; give one of them")


def _server(spec: TrialSpec) -> Iterator[Mistake]:
    name = spec.stack.server
    if spec.server.option_file is not None:
        yield Mistake(("server", "option_file"), "is for an external server; dbdyno's own has no password")
    if spec.server.whole_server_may_change:
        text = "is for an external server; dbdyno's own is thrown away. Leave it out"
        yield Mistake(("server", "whole_server_may_change"), text)
    known = (DISTRIBUTION, *PROVISIONED, *NOT_SERVED, NO_SERVER)
    if name not in known and not name.startswith("/") and not OF_ARCHIVE.fullmatch(name):
        text = f"is {shown(name)}; known are {', '.join(known)} and the absolute path of an unpacked MariaDB or MySQL"
        yield Mistake(("stack", "server"), text + did_you_mean(name, known))


# Kind of stack -> its rules; in the order in which a plan says what they touch.
DEVICES: dict[str, Callable[[TrialSpec, Path], Iterator[Mistake]]] = {
    "real": _real,
    "file": _file,
    "emulated": _emulated,
    BOOTED: _booted,
    MEMORY: _memory,
    HERE: _here,
    NOT_GIVEN: _missing,
}
