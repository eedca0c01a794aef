"""What can't be combined, by the kind of stack: rules over one whole treatment that need no look at the host."""

from collections.abc import Callable, Iterator
from pathlib import Path

from dbdyno.filesystems.catalogue import BY_FUSE, IN_MEMORY, KINDS
from dbdyno.study.drive_rules import broken_drive_rules, broken_size_rules, unsure_name
from dbdyno.study.drives import HERE, MEMORY, NOT_GIVEN, device_place, is_emulated, is_real
from dbdyno.study.external_rules import broken_external_rules
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.products import DISTRIBUTION, NO_SERVER, NOT_SERVED, PROVISIONED, not_served
from dbdyno.study.schema import TrialSpec
from dbdyno.study.simulated_rules import broken_simulated_rules
from dbdyno.study.tool_rules import broken_server_rules


def broken_stack_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule of its kind of stack that this treatment breaks; ``folder`` is where relative files are looked for."""
    if spec.stack.kind == EXTERNAL:
        yield from broken_external_rules(spec)
        return
    if spec.stack.is_simulated:
        yield from broken_simulated_rules(spec, folder)
        return
    yield from DEVICES.get(spec.stack.kind, _unknown)(spec, folder)
    yield from _devices(spec)
    yield from _server(spec)
    yield from broken_server_rules(spec)


def _unknown(spec: TrialSpec, _: Path) -> Iterator[Mistake]:
    known = [*filter(None, DEVICES)]
    text = f"is {shown(spec.stack.device)}; no kind of stack is called {shown(spec.stack.kind)}: {', '.join(known)}"
    yield Mistake(("stack", "device"), text + did_you_mean(spec.stack.kind, known))


def _missing(_: TrialSpec, __: Path) -> Iterator[Mistake]:
    yield Mistake(("stack", "device"), "is missing; give it unless stack.server is an external one")


def _here(spec: TrialSpec, _: Path) -> Iterator[Mistake]:
    why = f'can\'t be set with device = "{HERE}", a directory of the host as it is'
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
        why = f'can\'t be set with device = "{MEMORY}", which is no device'
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
        yield Mistake(("stack", "device"), f"is {shown(device)}; name a disk by its whole path, from / on")
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
        text = f"is {shown(spec.stack.device)}; name a folder by its whole path, such as {shown('file:/srv/bench')}"
        yield Mistake(("stack", "device"), text)
    if spec.stack.serial is not None:
        yield Mistake(("stack", "serial"), "is for real devices; a file has none")
    if spec.stack.filesystem == BY_FUSE:
        yield Mistake(("stack", "filesystem"), "is for emulated disks: a pool in a file looks like any other")
    yield from broken_size_rules(spec)


def _emulated(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    yield from _filesystem(spec)
    yield from broken_drive_rules(spec, folder)
    if spec.stack.serial is not None:
        yield Mistake(("stack", "serial"), "is for real devices; an emulated disk has none")
    yield from broken_size_rules(spec)


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


def _server(spec: TrialSpec) -> Iterator[Mistake]:
    name = spec.stack.server
    if spec.server.option_file is not None:
        yield Mistake(("server", "option_file"), "is for an external server; dbdyno's own has no password")
    if spec.server.whole_server_may_change:
        text = "is for an external server; dbdyno's own is thrown away. Leave it out"
        yield Mistake(("server", "whole_server_may_change"), text)
    known = (DISTRIBUTION, *PROVISIONED, NO_SERVER)
    if name in NOT_SERVED:
        yield Mistake(("stack", "server"), f"is {not_served(name)}")
    elif name not in known and not name.startswith("/"):
        text = f"is {shown(name)}; known are {', '.join(known)} and the absolute path of an unpacked MariaDB or MySQL"
        yield Mistake(("stack", "server"), text + did_you_mean(name, known))


# Kind of stack -> its rules; in the order in which a plan says what they touch.
DEVICES: dict[str, Callable[[TrialSpec, Path], Iterator[Mistake]]] = {
    "real": _real,
    "file": _file,
    "emulated": _emulated,
    MEMORY: _memory,
    HERE: _here,
    NOT_GIVEN: _missing,
}
EXTERNAL = "external"  # by its server, whatever the device
SIMULATED = "simulated"  # by its kernel, whatever the device
