"""What a study may say of a drive model, of the size of what stands for it, and of the name of a real disk."""

from collections.abc import Iterator
from pathlib import Path

from dbdyno._native import device_models
from dbdyno.filesystems.catalogue import KINDS
from dbdyno.study.drives import HERE, MEMORY, drive_files, is_base_name, is_emulated, resolved_drive
from dbdyno.study.mistakes import Mistake, shown, unknown_drive
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.system.files import read_text


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
