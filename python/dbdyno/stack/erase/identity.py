"""Which disk a path leads to: model, serial, size, and which attachment of it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.host.read import text_of
from dbdyno.host.storage import SECTOR_BYTES
from dbdyno.stack.erase.in_use import CLASS, kernel_path, sysfs_name

SERIAL_CHARS_MIN = 4  # a shorter one could be part of any name


@dataclass(frozen=True)
class Identity:
    """Which device this is."""

    path: Path  # resolved: /dev/sdb
    model: str
    serial: str
    wwn: str = ""  # its world wide name, as ``wwn-`` and ``scsi-`` links hold it
    size_bytes: int = 0
    attachment: str = ""  # the kernel's number of it, new whenever any disk is attached; empty before Linux 5.15

    def is_named_by(self, link: Path) -> bool:
        """Whether a /dev/disk/by-id link holds the serial or the WWN; udev writes blanks as underscores."""
        names = (self.serial.replace(" ", "_"), self.wwn)
        return "/disk/by-id/" in str(link) and any(
            len(name) >= SERIAL_CHARS_MIN and name in link.name for name in names
        )


def identify(device: Path) -> Identity:
    """Model, serial and size of a block device. Raises ``HostError`` where it is none, or has no serial."""
    path = kernel_path(device)
    sysfs = CLASS / sysfs_name(path)
    if (sysfs / "partition").exists():
        raise HostError(f"{device} is a partition; name a whole disk, or its queue could not be set")
    serial = next((text for place in _serials(sysfs, path) if (text := text_of(place, ""))), "")
    wwn = text_of(sysfs / "device/wwid", "").removeprefix("naa.").removeprefix("eui.")
    if not serial:
        raise HostError(f"{device} shows no serial, so it can't be distinguished from another disk; it is not touched")
    size_bytes = int(text_of(sysfs / "size", "") or 0) * SECTOR_BYTES
    return Identity(path, text_of(sysfs / "device/model", ""), serial, wwn, size_bytes, text_of(sysfs / "diskseq", ""))


def identified(device: Path, serial: str | None) -> Identity:
    """The identity of a device. Raises ``HostError`` unless it is the very one that a study names."""
    identity = identify(device)
    if serial is None and not identity.is_named_by(device):
        raise HostError(f"{device} now leads to the disk with serial {identity.serial!r}, which its name does not hold")
    if serial is not None and serial != identity.serial:
        raise HostError(
            f"{device} has the serial {identity.serial!r}, not {serial!r} as the study says; it is not touched"
        )
    return identity


def opened(identity: Identity) -> int:
    """The disk, open to be read around the page cache, which need not hold what others have written to a partition.

    While it is open its number can't pass to another device. Raises ``HostError`` where it can't be opened, or its path
    has come to lead elsewhere.
    """
    try:
        number = identity.path.stat().st_rdev
        handle = os.open(identity.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"{identity.path}: {error.strerror}; it is not touched") from None
    if os.fstat(handle).st_rdev == number and identify(identity.path) == identity:
        return handle
    os.close(handle)
    raise HostError(f"{identity.path} became another disk just now; it is not touched")


def _serials(sysfs: Path, path: Path) -> Iterator[Path]:
    yield sysfs / "device/serial"  # NVMe
    yield sysfs / "serial"  # virtio
    yield sysfs / "device/vpd_pg80"  # SCSI, SAS, SATA: the unit serial number page
    yield sysfs / "device/wwid"
    if path.name.startswith("loop"):
        yield sysfs / "loop/backing_file"
