"""Emulated disks that outlive the command that attached them."""

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.host.storage import disks_under
from dbdyno.model.results import DiskFigures
from dbdyno.model.similar import did_you_mean
from dbdyno.stack.capabilities import fuse, loop, own_programs, root
from dbdyno.stack.disk_client import DiskClient
from dbdyno.stack.layers.emulated_disk import (
    DiskSpec,
    EmulatedDisk,
    attached_device,
    disk_undos,
    is_rotational,
    start_disk,
)
from dbdyno.stack.layers.queue import WBT_LATENCY_US, write_knob
from dbdyno.stack.loop import SECTOR_BYTES, loops_over
from dbdyno.stack.restore import Leftover, leftovers, replay, taken
from dbdyno.stack.undo.actions import DetachLoops, RemoveTree
from dbdyno.stack.undo_log import Journal, ProcessIdentity
from dbdyno.study.drives import is_base_name
from dbdyno.study.mistakes import unknown_drive
from dbdyno.system.state import new_token, scratch_path

WHAT = "disk attach"  # how the journals of these disks begin
CARD = "disk.json"  # in the disk's scratch folder: what it was attached as


@dataclass(frozen=True)
class AttachedDisk:
    """A disk as it was attached."""

    name: str
    model: str
    size: int  # bytes
    sector: int  # bytes of a sector, as the kernel sees it
    since: str  # local time
    scratch: Path
    leftover: Leftover

    @property
    def pid(self) -> int:
        """The process that serves it, or did; 0 where that is no longer known."""
        return self.leftover.owner.pid if self.leftover.owner else 0

    @property
    def device(self) -> Path | None:
        """Its loop device, while there is one."""
        loops = loops_over(str(self.scratch / "disk" / "disk.img"))
        return Path("/dev") / loops[0] if loops else None

    def client(self) -> DiskClient:
        """What it is asked by; it raises ``UserError`` where the disk refuses. ``HostError`` if its process is gone."""
        if self.leftover.orphaned():
            raise HostError(f"the process of {self.name} (pid {self.pid}) has ended; put the host back: dbdyno restore")
        return _AttachedClient(self.scratch / "disk.sock", self.name)

    def refuse_if_used(self, remedy: str) -> None:
        """Raises ``UserError`` where the device is mounted or held: what stands on it would be destroyed."""
        if self.device is None:
            return
        try:
            os.close(os.open(self.device, os.O_RDONLY | os.O_EXCL))
        except OSError as error:
            raise UserError(
                f"{self.device} is in use ({error.strerror}); unmount it or end the process that holds it, then "
                f"{remedy}"
            ) from None


class _AttachedClient(DiskClient):
    def _refusal(self, _: str, why: str) -> DbdynoError:
        return UserError(f"{self.name}: {why}")


def attach_disk(spec: DiskSpec, *, name: str | None = None, sector: int = SECTOR_BYTES) -> tuple[Path, list[str]]:
    """Start a disk and attach it; returns its loop device and what could not be had."""
    if is_base_name(spec.model) and (unknown := unknown_drive(spec.model, "the path of a drive file ending in .toml")):
        raise UserError(f"no drive is called {spec.model!r}; {unknown}")
    try:
        rotational = is_rotational(spec.model)
    except ValueError as error:
        raise UserError(str(error)) from None
    if spec.size < 1024**2 or spec.size % 4096:
        raise UserError(f"--size must be at least 1 MiB and a multiple of 4096 bytes, not {spec.size}")
    needed = replace(root(), remedy="run it with sudo"), fuse(), loop(), own_programs()
    lacking = [capability for capability in needed if not capability.ok]
    if lacking:
        raise UserError("\n".join(capability.said for capability in lacking))
    name = _free_name(name, spec.model)
    token = new_token()
    scratch = scratch_path(token)
    journal = Journal(f"{WHAT} {spec.model}")
    for undo in disk_undos(token, scratch):
        journal.announce(undo)
    try:
        disk = start_disk(token, scratch, spec, inherits=(journal.for_heir(),))
        device = attached_device(disk, rotational=rotational, sector=sector)
        write_knob(Path("/sys/block") / device.name / "queue/wbt_lat_usec", str(WBT_LATENCY_US[rotational]))
        since = datetime.now().astimezone().isoformat(timespec="seconds")  # noqa: TID251  (a date for people)
        card = {"name": name, "model": spec.model, "size": spec.size, "sector": sector, "since": since}
        (scratch / CARD).write_text(json.dumps(card), encoding="utf-8")
        owner = _process_of(disk, spec.model)
    except BaseException:
        journal.close()  # which undoes what is still open
        raise
    journal.hand_over(owner)
    return device, list(disk.observed.get("notes", []))


def _free_name(name: str | None, model: str) -> str:
    disk_of = {disk.name: disk for disk in attached_disks()}
    if name is None:
        name = re.split(r"[(, ]", Path(model).stem if model.endswith(".toml") else model)[0]
        numbered = (f"{name}-{number}" for number in range(2, len(disk_of) + 3))
        return name if name not in disk_of else next(candidate for candidate in numbered if candidate not in disk_of)
    if name in disk_of:
        raise UserError(f"a disk called {name} is attached already, as {disk_of[name].device}; choose another --name")
    if not name or "/" in name or not name.isprintable():
        raise UserError(f"--name {name!r} must have at least one character, all printable, and no slash")
    return name


def _process_of(disk: EmulatedDisk, model: str) -> ProcessIdentity:
    owner = ProcessIdentity.of(disk.pid)
    if owner is None:
        raise HostError(f"the emulated disk {model} ended at once")
    return owner


def attached_disks() -> list[AttachedDisk]:
    """Every disk that ``attach_disk`` made and was not detached, oldest first, those whose process has died too."""
    disks = []
    for leftover in leftovers():
        folders = (Path(undo.path) for _, undo in leftover.undos if isinstance(undo, RemoveTree))
        scratch = next(folders, None) if leftover.what.startswith(WHAT) else None
        try:
            card = json.loads((scratch / CARD).read_text(encoding="utf-8")) if scratch else None
        except (OSError, ValueError):  # it is being attached or detached this moment, or its attaching was killed
            continue
        if scratch and card:
            disks.append(AttachedDisk(**card, scratch=scratch, leftover=leftover))
    return disks


def find_disk(name_or_device: str) -> AttachedDisk:
    """A disk by its name or its loop device. Raises ``UserError`` that says which there are."""
    known = attached_disks()
    for disk in known:
        if name_or_device == disk.name or (disk.device is not None and Path(name_or_device) == disk.device):
            return disk
    listing = ", ".join(f"{disk.name} ({disk.device or 'no device'})" for disk in known) or "none"
    meant = did_you_mean(name_or_device, [disk.name for disk in known])
    raise UserError(f"{name_or_device} is not a disk that dbdyno disk attach made; attached are: {listing}{meant}")


def detach_disk(name_or_device: str) -> str:
    """End a disk that ``attach_disk`` made; returns what it was. Raises ``UserError`` where this is none."""
    disk = find_disk(name_or_device)
    disk.refuse_if_used("detach it")
    title = str(disk.device or disk.name)
    messages: list[str] = []
    with taken(disk.leftover.path, messages.append, though_alive=True) as log:
        if log and not replay(log, messages.append):
            raise HostError("; ".join(messages))
    return title


def summary(disk: AttachedDisk) -> dict[str, Any]:
    """A disk in short: what it was attached as, and how it is now."""
    now: DiskFigures = {}
    problem = None
    try:
        now = disk.client().stats()
    except DbdynoError as error:
        problem = str(error)
    card = {"name": disk.name, "model": disk.model, "size_bytes": disk.size, "since": disk.since, "pid": disk.pid}
    return _shown(card, disk.device, now, problem)


def disks_of_runs() -> list[dict[str, Any]]:
    """The emulated disks that other commands of dbdyno's raised, in short; ``used_by`` is the command."""
    cards = []
    for leftover in leftovers():
        images = dict.fromkeys(Path(undo.backing_file) for _, undo in leftover.undos if isinstance(undo, DetachLoops))
        for image in images if not leftover.what.startswith(WHAT) else ():
            try:
                now = DiskClient(image.parents[1] / "disk.sock").stats()
            except DbdynoError:  # it is being raised or lowered this moment, or is no disk of an emulated drive
                continue
            device = next((Path("/dev") / name for name in loops_over(str(image))), None)
            pid = leftover.owner.pid if leftover.owner else 0
            card = {
                "model": now.get("model"),
                "size_bytes": now.get("size_bytes"),
                "pid": pid,
                "used_by": leftover.what,
            }
            cards.append(_shown(card, device, now, None))
    return cards


def _shown(card: Mapping[str, Any], device: Path | None, now: DiskFigures, problem: str | None) -> dict[str, Any]:
    """What ``disk list`` says of a disk: what it was made as, and what its process says now."""
    return {
        "name": card.get("name"),
        "model": now.get("model", card["model"]),
        "size_bytes": card["size_bytes"],
        "device": str(device) if device else None,
        "state": _state(now, problem),
        "pid": card["pid"],
        "since": card.get("since"),
        **{key: now.get(key) for key in ("mode", "power", "locked_memory", "io_flusher", "realtime")},
        "problem": problem,
        "faults": len(now.get("faults", [])),
        "used_by": card.get("used_by"),
    }


def _state(now: DiskFigures, problem: str | None) -> str:
    """One word or two for people."""
    if problem is not None:
        return "ended"
    if now["power"] != "on":
        return {"off": "power off", "gone": "gone"}[now["power"]]
    return f"{now['mode']}, faults" if now["faults"] else str(now["mode"])


# The block device that is meant by an emulated disk's name, a kernel name, or a path.


_CLASS, _WHOLE, _BY_NUMBER = Path("/sys/class/block"), Path("/sys/block"), Path("/sys/dev/block")


@dataclass(frozen=True)
class Watchable:
    """A block device by its name in /sys, and what else is known of it."""

    name: str
    about: str = ""  # "hdd-7200, emulated", "below /mnt"


def watchables(word: str) -> list[Watchable]:
    """The devices that a word stands for, more than one below a folder on several. Raises ``UserError``."""
    emulated = {disk.device.name: disk for disk in attached_disks() if disk.device}
    about = {name: _drive_text(disk.name, disk.model) for name, disk in emulated.items()}
    names = [name for name, disk in emulated.items() if disk.name == word]
    if names:
        return [Watchable(names[0], about[names[0]])]
    path = Path(word)
    if not word.strip():
        raise UserError(f"an empty name was given; {there_are()}")
    if "/" not in word and word not in {".", ".."} and (_CLASS / word).exists():
        return [Watchable(word, about.get(word, ""))]
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(
            f"{word} is not a device, emulated disk or folder ({error.strerror}); {there_are(word)}"
        ) from None
    if stat.S_ISBLK(status.st_mode):
        name = (_BY_NUMBER / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}").resolve().name
        return [Watchable(name, about.get(name, ""))]
    below = [Watchable(name, about.get(name) or f"below {word}") for name in disks_under(path.resolve())]
    if not below:
        raise UserError(f"{word} stands on no block device; {there_are()}")
    return below


def there_are(word: str = "") -> str:
    """The whole devices of this host that hold anything, and which emulated disk a ``word`` may have meant."""
    emulated = {disk.device.name: disk for disk in attached_disks() if disk.device}
    names = sorted(entry.name for entry in _WHOLE.iterdir() if _sectors(entry))
    words = [f"{name} ({emulated[name].name})" if name in emulated else name for name in names]
    # Of block devices none is guessed: sda is as much like sdq as sdb is.
    meant = did_you_mean(word, [disk.name for disk in emulated.values()])
    return f"there are {', '.join(words)}{meant}" if words else "this host shows no block device"


def _drive_text(name: str, model: str) -> str:
    return f"{model}, emulated" if name == model else f"{name}, emulated {model}"


def _sectors(entry: Path) -> int:
    try:
        return int((entry / "size").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
