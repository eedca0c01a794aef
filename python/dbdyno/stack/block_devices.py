"""Which block devices there are, by number rather than by name, and which of them share their storage."""

import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.stack.loop import loop_files, loop_status

CLASS = Path("/sys/class/block")
_LOOP_INFO64 = struct.Struct("=QQQ")  # lo_device, lo_inode, lo_rdevice: the first three of struct loop_info64


def kernel_path(device: Path) -> Path:
    """The kernel's own path of a block device, whatever leads to it. Raises ``HostError`` where it is none.

    Goes by its number: a node may carry any name, also that of another disk.
    """
    try:
        found = device.stat()
    except OSError as error:
        raise HostError(f"{device}: {error.strerror}") from None
    if not stat.S_ISBLK(found.st_mode):
        raise HostError(f"{device} is not a block device")
    path = Path("/dev") / _name(found.st_rdev).replace("!", "/")
    try:
        same = path.stat().st_rdev == found.st_rdev and stat.S_ISBLK(path.stat().st_mode)
    except OSError:
        same = False
    if not same:
        raise HostError(f"{device}: the kernel calls it {path}, which is not there or another device")
    return path


def _name(number: int) -> str:
    """The kernel's name of the device with a number. Raises ``HostError`` where there is none."""
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    try:
        return place.resolve(strict=True).name
    except OSError:
        raise HostError(f"there is no block device {os.major(number)}:{os.minor(number)}") from None


def sysfs_name(path: Path) -> str:
    """The name in /sys of a device by the kernel's own path."""
    return str(path.relative_to("/dev")).replace("/", "!")


def number_of(name: str) -> tuple[int, int]:
    """Major and minor of a device by its name in /sys."""
    major, _, minor = (CLASS / name / "dev").read_text(encoding="ascii").strip().partition(":")
    return int(major), int(minor)


def sharing(name: str) -> list[str]:
    """Every device whose content is some of this one's, by name in /sys; itself first. Raises ``HostError``.

    Its partitions; the device below a loop device; loop devices over it, over a partition, or over the same file.
    """
    loops = dict(_loops())
    found: list[str] = []
    waiting = [name]
    while waiting:
        one = waiting.pop(0)
        if one in found:
            continue
        found.append(one)
        waiting += partitions(one)
        number = os.makedev(*number_of(one))
        waiting += [loop for loop, backing in loops.items() if backing == number]
        if one in loops:
            waiting += [loop for loop, backing in loops.items() if backing == loops[one]]
            if isinstance(below := loops[one], int):
                waiting.append(_name(below))
    return found


def partitions(name: str) -> list[str]:
    """The partitions that the kernel has of a disk."""
    return sorted(entry.parent.name for entry in (CLASS / name).glob("*/partition"))


def _loops() -> Iterator[tuple[str, int | tuple[int, int]]]:
    """Each attached loop device, and what it lies over: the number of a device, or file system and inode of a file."""
    for name, _ in loop_files():
        if status := loop_status(name):
            place, inode, below = _LOOP_INFO64.unpack(status[: _LOOP_INFO64.size])
            yield name, below or (place, inode)
