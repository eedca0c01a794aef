"""What stands between a study and somebody's data on a real block device."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.tools import run_tool

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
    try:
        path = device.resolve(strict=True)
        if not stat.S_ISBLK(path.stat().st_mode):
            raise HostError(f"{device} is not a block device")
    except OSError as error:
        raise HostError(f"{device}: {error.strerror}") from None
    sysfs = Path("/sys/class/block") / path.name
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
    content = list(_content(found.path))
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
    tree: dict[str, Any] = json.loads(run_tool(["lsblk", "--json", "--output", "NAME,TYPE,MOUNTPOINTS", str(path)]))
    for node in _nodes(tree["blockdevices"]):
        yield from (f"/dev/{node['name']} is mounted at {place}" for place in node["mountpoints"] if place)
    holders = Path("/sys/class/block") / path.name / "holders"
    yield from (f"held by {holder.name}" for holder in sorted(holders.iterdir()))
    swaps = Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]
    yield from (f"{line.split()[0]} is swap" for line in swaps if line.startswith(str(path)))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))  # a whole device in exclusive use refuses this
    except OSError as error:
        yield f"opening it exclusively: {error.strerror}"


def _nodes(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from _nodes(node.get("children", []))


def _content(path: Path) -> Iterator[str]:
    try:
        found = json.loads(run_tool(["wipefs", "--json", "--no-act", str(path)]) or "{}")
    except TrialError as error:
        yield f"it can't be looked at ({error})"
        return
    for signature in found.get("signatures", []):
        label = f" labelled {signature['label']!r}" if signature.get("label") else ""
        yield f"a {signature['type']} signature{label} at offset {signature['offset']}"
