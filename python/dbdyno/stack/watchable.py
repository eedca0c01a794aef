"""The block device that is meant by an emulated disk's name, a kernel name, or a path."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host.storage import disks_under
from dbdyno.stack.attached import attached_disks

_CLASS, _WHOLE, _BY_NUMBER = Path("/sys/class/block"), Path("/sys/block"), Path("/sys/dev/block")


@dataclass(frozen=True)
class Watchable:
    """A block device by its name in /sys, and what else is known of it."""

    name: str
    about: str = ""  # "hdd-7200, emulated", "below /mnt"


def watchables(given: str) -> list[Watchable]:
    """The devices that a word stands for, more than one below a folder on several. Raises ``UserError``."""
    emulated = {disk.device.name: disk for disk in attached_disks() if disk.device}
    about = {name: _emulated(disk.name, disk.model) for name, disk in emulated.items()}
    named = [name for name, disk in emulated.items() if disk.name == given]
    if named:
        return [Watchable(named[0], about[named[0]])]
    path = Path(given)
    if not given.strip():
        raise UserError(f"an empty name was given; {there_are()}")
    if "/" not in given and given not in {".", ".."} and (_CLASS / given).exists():
        return [Watchable(given, about.get(given, ""))]
    try:
        found = path.stat()
    except OSError as error:
        raise UserError(f"{given} is no device, emulated disk or folder ({error.strerror}); {there_are()}") from None
    if stat.S_ISBLK(found.st_mode):
        name = (_BY_NUMBER / f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}").resolve().name
        return [Watchable(name, about.get(name, ""))]
    below = [Watchable(name, about.get(name) or f"below {given}") for name in disks_under(path.resolve())]
    if not below:
        raise UserError(f"{given} stands on no block device; {there_are()}")
    return below


def there_are() -> str:
    """The whole devices of this host that hold anything, in words."""
    emulated = {disk.device.name: disk for disk in attached_disks() if disk.device}
    names = sorted(entry.name for entry in _WHOLE.iterdir() if _sectors(entry))
    words = [f"{name} ({emulated[name].name})" if name in emulated else name for name in names]
    return f"there are {', '.join(words)}" if words else "this host shows no block device"


def _emulated(name: str, model: str) -> str:
    return f"{model}, emulated" if name == model else f"{name}, emulated {model}"


def _sectors(entry: Path) -> int:
    try:
        return int((entry / "size").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
