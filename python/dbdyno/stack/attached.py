"""Emulated disks that outlive the command that attached them."""

import os
from pathlib import Path

from dbdyno.errors import HostError, UserError
from dbdyno.stack.capabilities import fuse, loop, own_programs, root
from dbdyno.stack.emulated_disk import EmulatedDisk, attached_device, disk_undos, is_rotational, start_disk
from dbdyno.stack.journal import Journal, Leftover, Process, leftovers, replay
from dbdyno.stack.queue import WBT_LATENCY_US, write_knob
from dbdyno.stack.undo import DetachLoops, loops_over
from dbdyno.state import new_token, scratch_path


def attach_disk(model: str, size: int, seed: int) -> tuple[Path, list[str]]:
    """Start a disk and attach it; returns its loop device and what could not be had. ``size`` in bytes."""
    try:
        rotational = is_rotational(model)
    except ValueError as error:
        raise UserError(str(error)) from None
    if size < 1024**2 or size % 4096:
        raise UserError(f"--size must be at least 1 MiB and a multiple of 4096 bytes, not {size}")
    lacking = [one for one in (root(), fuse(), loop(), own_programs()) if not one.ok]
    if lacking:
        raise UserError("\n".join(f"{one.name}: {one.detail}; {one.remedy}" for one in lacking))
    token = new_token()
    scratch = scratch_path(token)
    journal = Journal(f"disk attach {model}")
    for undo in disk_undos(token, scratch):
        journal.announce(undo)
    try:
        disk = start_disk(token, scratch, model=model, size=size, seed=seed, mode="model")
        device = attached_device(disk, rotational=rotational)
        write_knob(Path("/sys/block") / device.name / "queue/wbt_lat_usec", str(WBT_LATENCY_US[rotational]))
        owner = _process_of(disk, model)
    except BaseException:
        journal.close()  # which undoes what is still open
        raise
    journal.hand_over(owner)
    return device, list(disk.observed.get("notes", []))


def _process_of(disk: EmulatedDisk, model: str) -> Process:
    owner = Process.of(disk.pid)
    if owner is None:
        raise HostError(f"the emulated disk {model} ended at once")
    return owner


def detach_disk(device: Path) -> None:
    """End a disk that ``attach_disk`` made. Raises ``UserError`` where this is none."""
    for held in leftovers():
        if device.name in _loops(held):
            _refuse_if_used(device)
            said: list[str] = []
            if not replay(held, said.append):
                raise HostError("; ".join(said))
            return
    raise UserError(f"{device} is not a disk that dbdyno disk attach made")


def _refuse_if_used(device: Path) -> None:
    """Raises ``UserError`` where the disk is mounted or held: ending it would destroy what stands on it."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        raise UserError(
            f"{device} is in use ({error.strerror}); unmount it or end what holds it, then detach it"
        ) from None


def _loops(held: Leftover) -> list[str]:
    if not held.what.startswith("disk attach"):
        return []
    files = [undo.backing_file for _, undo in held.undos if isinstance(undo, DetachLoops)]
    return [name for file in files for name in loops_over(file)]
