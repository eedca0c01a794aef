"""A quick look at the storage below a folder: no study, no root, nothing left behind."""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno._native import device_models
from dbdyno.analysis import quick
from dbdyno.errors import HostError, UserError
from dbdyno.host.processor import processor_ticks
from dbdyno.host.storage import disk_facts, disks_under, mounted_at
from dbdyno.model.printable import short
from dbdyno.stack.tools import own_binary
from dbdyno.study.drives import is_base_name
from dbdyno.study.mistakes import unknown_drive
from dbdyno.system.child import run_for_json_lines

MODEL_ROUNDS = 2  # of a model, which has no noise but its own
REGION_BYTES = 1024**3
REGION_BYTES_MIN = 32 * 1024**2
FREE_SHARE = 0.1  # of what is free, that may be written for some seconds
LIMIT_SECONDS = 60  # of one round: a disk that takes longer hardly answers
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)  # fields of /proc/stat's first line: idle, iowait
_STEAL = 7

Progress = Callable[[int, int], None]  # rounds done, rounds in all


def look(place: Path, against: str | None, *, rounds: int, seed: int, progress: Progress) -> quick.Quick:
    """Measure a folder's disk or a block device, and what it is to be held against. Some 40 s; twice that for two.

    Raises:
        UserError: There is nothing to be measured.
        HostError: It can't be measured.

    """
    place = _usable(place).resolve()
    targets = ["--on", str(place), *_other(against)]
    region_bytes = _region_bytes(_folders(place, against))
    before = processor_ticks()
    measurements = _measured([*targets, "--seed", str(seed), "--region", str(region_bytes)], rounds, progress)
    host = _host(before, processor_ticks(), measurements["cpu_seconds"])
    target, *others = map(quick.target_of, measurements["targets"])
    noise, drives = quick.noise_of(target), _drives(seed)
    return quick.Quick(
        target=target,
        host=host,
        noise=noise,
        shown=quick.least_shown(noise),
        likeness=quick.likeness(target, drives),
        against=others[0] if others else None,
        verdicts=quick.verdicts(target, others[0]) if others else (),
        facts=_facts(place),
        catalogue=tuple(drives),
    )


def _other(against: str | None) -> list[str]:
    if against is None:
        return []
    if Path(against).exists():
        return ["--on", str(_usable(Path(against)).resolve())]
    file = "the path of a drive file ending in .toml"
    if is_base_name(against) and (unknown := unknown_drive(against, "a folder", file)):
        raise UserError(f'no drive model is called "{short(against)}"; {unknown}')
    return ["--model", against]


def _folders(place: Path, against: str | None) -> list[Path]:
    places = [place, *([Path(against)] if against and Path(against).exists() else [])]
    return [path for path in places if path.is_dir()]


def _usable(place: Path) -> Path:
    """Raises ``UserError`` where a place is none, or where nothing written to it would last."""
    if not (place.is_dir() or place.is_block_device()):
        raise UserError(f"{place} is neither a folder nor a block device")
    if place.is_dir() and mounted_at(place.resolve()).kind in IN_MEMORY:
        raise UserError(
            f"{place} lies in memory, where nothing is durable; name a folder on a disk, as in: dbdyno quick /var/tmp"
        )
    if not os.access(place, os.R_OK | (os.W_OK if place.is_dir() else 0)):
        remedy = "name a folder of your own" if place.is_dir() else "run it with sudo, or name a folder on it"
        raise UserError(f"{place}: permission denied; {remedy}")
    return place


def _region_bytes(folders: Sequence[Path]) -> int:
    """Return how much to write in each folder. Raises ``UserError`` where there is too little room."""
    if not folders:
        return REGION_BYTES
    free, folder = min((shutil.disk_usage(folder).free, folder) for folder in folders)
    usable = min(REGION_BYTES, int(free * FREE_SHARE)) // REGION_BYTES_MIN * REGION_BYTES_MIN
    if not usable:
        needed = int(REGION_BYTES_MIN / FREE_SHARE) // 1024**2
        raise UserError(f"{folder} has {free // 1024**2:,} MiB free; a quick look needs {needed:,} MiB")
    return usable


def _measured(arguments: Sequence[str], rounds: int, progress: Progress) -> dict[str, Any]:
    argv = [own_binary("dbdyno-disk"), "measure", *arguments, "--rounds", str(rounds)]
    limit_seconds = LIMIT_SECONDS * (rounds + 1)
    result: dict[str, Any] = {}

    def take(line: dict[str, Any]) -> None:
        if "round" in line:
            progress(line["round"], line["rounds"])
        else:
            result.update(line)

    code, complaint = run_for_json_lines(argv, limit_seconds, take)
    if code == -signal.SIGKILL:
        raise HostError(f"not done after {limit_seconds:,} s: the disk hardly answers")
    if code == 2:  # noqa: PLR2004 - a mistake on the command line: of the name of a drive
        raise UserError(complaint.removeprefix("dbdyno-disk: "))
    if code or not result:
        raise HostError(complaint.removeprefix("dbdyno-disk: ") or f"dbdyno-disk measure ended with {code}")
    return result


def _drives(seed: int) -> list[quick.Target]:
    """Return every drive of the catalogue, measured by the same steps in virtual time; a second for all of them."""
    names = [model["name"] for model in device_models() if model["kind"] != "ideal"]
    arguments = [part for name in names for part in ("--model", name)]
    measurements = _measured([*arguments, "--seed", str(seed)], MODEL_ROUNDS, lambda *_: None)
    return [quick.target_of(target) for target in measurements["targets"]]


def _host(before: Sequence[int], after: Sequence[int], cpu_seconds: float) -> quick.Host:
    spent = [b - a for a, b in zip(before, after, strict=True)]
    whole = max(1, sum(spent[:8]))
    idle, stolen = sum(spent[place] for place in _IDLE), spent[_STEAL]
    tool = cpu_seconds * _TICKS
    return quick.Host(others=max(0.0, whole - idle - stolen - tool) / whole, stolen=stolen / whole, tool=tool / whole)


def _facts(place: Path) -> dict[str, str]:
    mount = mounted_at(place.resolve())
    filesystem = f"{mount.kind} ({mount.options})" if mount.options else mount.kind
    disks = [f"{name} ({disk_facts(name)['model']})" for name in disks_under(place)]
    return {
        "filesystem": "" if place.is_block_device() else filesystem,
        "disk": ", ".join(disks) or "unknown",
        "host": os.uname().nodename,
        "kernel": os.uname().release,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),  # noqa: TID251  (a date for people)
    }
