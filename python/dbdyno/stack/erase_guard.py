"""What stands between a study and somebody's data on a real block device."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.block_devices import CLASS, kernel_path, number_of, sharing, sysfs_name
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo import unescaped

SERIAL_CHARS_MIN = 4  # a shorter one could be part of any name


@dataclass(frozen=True)
class Identity:
    """Which device this is."""

    path: Path  # resolved: /dev/sdb
    model: str
    serial: str
    wwn: str = ""  # its world wide name, as ``wwn-`` and ``scsi-`` links hold it

    def is_named_by(self, link: Path) -> bool:
        """Whether a /dev/disk/by-id link holds the serial or the WWN; udev writes blanks as underscores."""
        names = (self.serial.replace(" ", "_"), self.wwn)
        return "/disk/by-id/" in str(link) and any(
            len(name) >= SERIAL_CHARS_MIN and name in link.name for name in names
        )


def identify(device: Path) -> Identity:
    """Model and serial of a block device. Raises ``HostError`` where it is none, or has no serial."""
    path = kernel_path(device)
    sysfs = CLASS / sysfs_name(path)
    if (sysfs / "partition").exists():
        raise HostError(f"{device} is a partition; name a whole disk, or its queue could not be set")
    serial = next((text for place in _serials(sysfs, path) if (text := _text(place))), "")
    wwn = _text(sysfs / "device/wwid").removeprefix("naa.").removeprefix("eui.")
    if not serial:
        raise HostError(f"{device} shows no serial, so it can't be told from another disk; it is not touched")
    return Identity(path, _text(sysfs / "device/model"), serial, wwn)


def check_erasable(device: Path, serial: str | None, erase: frozenset[str]) -> Identity:
    """Raises ``HostError`` unless the study names this very device and it holds nothing (or erasing is allowed)."""
    found = identify(device)
    if serial is None and not found.is_named_by(device):
        raise HostError(f"{device} now leads to the disk with serial {found.serial!r}, which its name does not hold")
    if serial is not None and serial != found.serial:
        raise HostError(
            f"{device} has the serial {found.serial!r}, not {serial!r} as the study says; it is not touched"
        )
    in_use = list(_uses(found.path))
    if in_use:
        raise HostError(f"{device} is in use: {'; '.join(in_use)}. It is not touched")
    content = list(_contents(found.path))
    if content and found.serial not in erase:
        raise HostError(
            f"{device} holds data: {'; '.join(content)}. It is not touched; "
            f"to erase all of it: dbdyno run ... --erase {found.serial!r}"
        )
    return found


def _serials(sysfs: Path, path: Path) -> Iterator[Path]:
    yield sysfs / "device/serial"  # NVMe
    yield sysfs / "serial"  # virtio
    yield sysfs / "device/vpd_pg80"  # SCSI, SAS, SATA: the unit serial number page
    yield sysfs / "device/wwid"
    if path.name.startswith("loop"):
        yield sysfs / "loop/backing_file"


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError:
        return ""
    if path.name == "vpd_pg80":
        content = content[4:]  # page header (SPC-4, 7.8.15)
    return content.decode(errors="replace").strip(" \t\n\0")


def _uses(path: Path) -> Iterator[str]:
    """What uses a disk, a partition of it, or another device that shares its storage."""
    for name in sharing(sysfs_name(path)):
        yield from (f"/dev/{name} is mounted at {place}" for place in _mounted_at(name))
        yield from (f"/dev/{name} is held by {holder.name}" for holder in sorted((CLASS / name / "holders").glob("*")))
        if name != sysfs_name(path) and (CLASS / name / "loop").is_dir():
            yield f"the loop device /dev/{name} has the same storage"
    yield from _swaps(path)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))  # a whole device in exclusive use refuses this
    except PermissionError:
        yield "whether anybody uses it can't be seen without root"
    except OSError as error:
        yield f"opening it exclusively: {error.strerror}"


def _mounted_at(name: str) -> Iterator[str]:
    """Where a device is mounted: by its number, and by its path, as a filesystem of several devices shows one."""
    major, minor = number_of(name)
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        source = Path(unescaped(rest.split(" ")[1]))
        if fields.split()[2] == f"{major}:{minor}" or _is_device(source, os.makedev(major, minor)):
            yield unescaped(fields.split()[4])


def _swaps(path: Path) -> Iterator[str]:
    """Swap on a device that shares the disk's storage, or in the file below it."""
    names = sharing(sysfs_name(path))
    numbers = {os.makedev(*number_of(name)) for name in names}
    backing = [CLASS / name / "loop/backing_file" for name in names]
    files = [Path(_text(place)) for place in backing if place.exists()]
    for line in Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]:
        swap = Path(unescaped(line.split()[0]))
        if any(_is_device(swap, number) for number in numbers) or any(_is_file(swap, file) for file in files):
            yield f"{swap} is swap"


def _is_device(path: Path, number: int) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISBLK(found.st_mode) and found.st_rdev == number


def _is_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _contents(path: Path) -> Iterator[str]:
    """What a disk holds, as it is seen through every device that shares its storage."""
    for name in sharing(sysfs_name(path)):
        if (CLASS / name / "partition").exists():
            yield f"the partition {name}"
        place = Path("/dev") / name.replace("!", "/")
        yield from (found if place == path else f"{found} of {place}" for found in _content(place))


def _content(path: Path) -> Iterator[str]:
    try:
        found = json.loads(run_tool(["wipefs", "--json", "--no-act", str(path)]) or "{}")
    except TrialError as error:
        yield f"it can't be looked at ({error})"
        return
    for signature in found.get("signatures", []):
        label = f" labelled {signature['label']!r}" if signature.get("label") else ""
        yield f"a {signature['type']} signature{label} at offset {signature['offset']}"
