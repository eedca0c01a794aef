"""A drive file from a drive: ``dbdyno-disk fit`` on a block device or a model."""

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from dbdyno.errors import HostError, UserError
from dbdyno.model.printable import short
from dbdyno.stack.erase import Erasing
from dbdyno.stack.tools import own_binary
from dbdyno.study.drives import is_base_name
from dbdyno.study.mistakes import unknown_drive
from dbdyno.system.child import child, decoded

GRACE = 4.0  # what the stages that can't be cut short may take, as a multiple of the limit
GRACE_SECONDS = 60.0
SECONDS = (5.0, 86_400.0)

Progress = Callable[[str], None]  # a stage begins


@dataclass(frozen=True)
class FitRequest:
    """What is to be fitted, and how."""

    source: str  # a block device, a drive's name, or a drive file
    seconds: float
    seed: int = 1
    size_bytes: int | None = None  # of a model's disk
    write: bool = False
    erase: str | None = None  # serial of a device that may lose its content


def fit(request: FitRequest, progress: Progress) -> dict[str, Any]:
    """Fit a drive: ``drive_file``, ``figures``, ``checks``, ``seconds``, ``cut_short``, ``notes``, ``host``.

    Raises:
        UserError: There is nothing of that name, or it can't be fitted.
        HostError: The device can't be read, or the device may not be written.

    """
    place = Path(request.source)
    least, most = SECONDS
    if not least <= request.seconds <= most:
        raise UserError(f"--time must be from {least:.0f} s to 24 h")
    arguments = ["--seconds", str(round(request.seconds)), "--seed", str(request.seed)]
    if place.is_block_device():
        return _of_device(place, request, arguments, progress)
    if request.erase:
        raise UserError(f"--erase is for a block device, which {short(request.source)} is not; leave it out")
    if place.is_absolute() and not place.exists():
        raise UserError(
            f"{short(request.source)} is not there; lsblk lists the devices, dbdyno disk list the emulated ones"
        )
    if place.exists() and place.suffix != ".toml":
        raise UserError(f"{place} is neither a block device nor a drive file ending in .toml")
    if is_base_name(request.source) and (unknown := unknown_drive(request.source, "a block device", "a drive file")):
        raise UserError(f'no drive model is called "{short(request.source)}"; {unknown}')
    size = [] if request.size_bytes is None else ["--size", str(request.size_bytes)]
    write = ["--write"] if request.write else []
    return _fitted(["--model", request.source, *size, *write, *arguments], request.seconds, progress)


def _of_device(device: Path, request: FitRequest, arguments: Sequence[str], progress: Progress) -> dict[str, Any]:
    if request.size_bytes is not None:
        raise UserError(f"--size is for a model; {device} has a size of its own: leave --size out")
    if not os.access(device, os.R_OK):
        raise UserError(f"{device}: permission denied; run it with sudo")
    if not (request.write or request.erase):
        return _fitted(["--on", str(device), *arguments], request.seconds, progress)
    erasing = Erasing(frozenset([request.erase] if request.erase else []), command="dbdyno disk fit")
    with erasing.holding(device.resolve(), request.erase or _serial(device)) as held_disk:
        held_disk.prove()
        return _fitted(["--on", str(device), "--write", *arguments], request.seconds, progress)


def _serial(device: Path) -> str:
    """Return the serial of a device. Raises ``HostError`` where it has none."""
    from dbdyno.stack.emptiness import identify

    return identify(device.resolve()).serial


def _fitted(arguments: Sequence[str], seconds: float, progress: Progress) -> dict[str, Any]:
    result: dict[str, Any] = {}
    with child([own_binary("dbdyno-disk"), "fit", *arguments], env=os.environ) as program:
        assert program.stdout is not None  # noqa: S101
        assert program.stderr is not None  # noqa: S101
        watch = Timer(GRACE * seconds + GRACE_SECONDS, program.kill)
        watch.start()
        try:
            for line in map(json.loads, program.stdout):
                if "stage" in line:
                    progress(line["stage"])
                else:
                    result = line
            code, complaint = program.wait(), decoded(program.stderr.read()).strip().removeprefix("dbdyno-disk: ")
        finally:
            watch.cancel()
    if code == -signal.SIGKILL:
        raise HostError(f"not done after {GRACE * seconds + GRACE_SECONDS:,.0f} s: the disk hardly responds; see dmesg")
    if code == 2:  # noqa: PLR2004 - a mistake on the command line
        raise UserError(short(complaint))
    if code or not result:
        raise HostError(complaint or f"dbdyno-disk fit ended with {code}")
    return result
