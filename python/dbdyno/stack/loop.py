"""Loop devices, made afresh: a queue's settings survive detaching, so an old number is never reused as it is."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.tools import run_tool

SECTOR_BYTES = 4096
ATTEMPTS, AGAIN_SECONDS = 20, 0.1
# linux/loop.h
_GET_STATUS64, _CTL_ADD, _CTL_REMOVE, _CTL_GET_FREE = 0x4C05, 0x4C80, 0x4C81, 0x4C82
_INFO64_BYTES, _NAME_AT, _NAME_BYTES = 232, 56, 64  # struct loop_info64


def attach_loop(file: Path, sector: int = SECTOR_BYTES) -> Path:
    """Attach a file with direct I/O to a pristine loop device; returns its path. Raises ``TrialError``, ``HostError``.

    The undo (``DetachLoops``) must have been announced.
    """
    failure = ""
    for _ in range(ATTEMPTS):
        try:
            device = Path(f"/dev/loop{_pristine_number()}")
            run_tool(["losetup", "--direct-io=on", "--sector-size", str(sector), str(device), str(file)])
        except TrialError as error:
            failure = str(error)  # another process took the number in between, or is about to
            time.sleep(AGAIN_SECONDS)
            continue
        queue = Path("/sys/block") / device.name / "loop/dio"
        if queue.read_text(encoding="ascii").strip() != "1":
            raise TrialError(
                f"{device}: the kernel does not do direct I/O over {file}; the page cache would hide the device"
            )
        return device
    raise HostError(f"no loop device could be attached: {failure}")


def _pristine_number() -> int:
    with _open("/dev/loop-control", os.O_RDWR) as control:
        try:
            number: int = fcntl.ioctl(control, _CTL_GET_FREE)
            fcntl.ioctl(control, _CTL_REMOVE, number)
            fcntl.ioctl(control, _CTL_ADD, number)
        except OSError as error:
            raise TrialError(f"/dev/loop-control: {error.strerror}") from None
    return number


def remove_loop(number: int) -> None:
    """Remove a detached loop device; its queue settings would survive otherwise. Silent where another took it."""
    with _open("/dev/loop-control", os.O_RDWR) as control, suppress(OSError):
        fcntl.ioctl(control, _CTL_REMOVE, number)


@contextmanager
def _open(place: str, flags: int = os.O_RDONLY) -> Iterator[int]:
    try:
        handle = os.open(place, flags)
    except OSError as error:
        raise HostError(f"{place}: {error.strerror}; loop devices need root and the loop driver") from None
    try:
        yield handle
    finally:
        os.close(handle)


def await_free(device: Path, seconds: float = 30.0) -> None:
    """Wait until no filesystem holds a device any more. Raises ``TrialError`` after ``seconds``.

    It is out of the tree at once, but another process that was given a copy of all mounts, in a mount namespace of its
    own, holds it on.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            if time.monotonic() > deadline:
                raise TrialError(
                    f"{device}: {error.strerror}, although it is unmounted: another process has a copy of the mount"
                    " in a mount namespace of its own; end that process"
                ) from None
            time.sleep(AGAIN_SECONDS / 10)
        else:
            return


def loop_files() -> list[tuple[str, str]]:
    """Name (``loop3``) of each attached loop device, and the path that sysfs shows of its file."""
    loops = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached this moment
            loops.append((entry.parts[3], entry.read_text(encoding="utf-8").strip().removesuffix(" (deleted)")))
    return loops


def loop_status(name: str) -> bytes | None:
    """The kernel's ``struct loop_info64`` of a loop device; ``None`` where it was detached. Raises ``HostError``."""
    with _open(f"/dev/{name}") as handle:
        try:
            return fcntl.ioctl(handle, _GET_STATUS64, bytes(_INFO64_BYTES))
        except OSError:
            return None


def loops_over(backing_file: str) -> list[str]:
    """Names of the loop devices over a file.

    Where the file can't be seen any more, its mount being detached lazily, sysfs shows another path than the one that
    the kernel keeps: by which the device was attached.
    """
    return [name for name, shown in loop_files() if backing_file in {shown, _attached_as(name)}]


def _attached_as(name: str) -> str:
    """The path by which a loop device was attached, as the kernel keeps it; empty where it does not fit."""
    try:
        status = loop_status(name) or b""
    except HostError:
        return ""
    path = status[_NAME_AT : _NAME_AT + _NAME_BYTES].split(b"\0")[0]
    return os.fsdecode(path) if len(path) < _NAME_BYTES - 1 else ""
