"""Loop devices, made afresh: a queue's settings survive detaching, so an old number is never reused as it is."""

import fcntl
import os
import time
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.loop_ioctl import LOOP_CTL_ADD, LOOP_CTL_GET_FREE, LOOP_CTL_REMOVE
from dbdyno.stack.tools import run_tool

SECTOR_BYTES = 4096
ATTEMPTS, AGAIN_SECONDS = 20, 0.1


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
            raise TrialError(f"{device}: direct I/O did not take over {file}; the page cache would hide the device")
        return device
    raise HostError(f"no loop device could be attached: {failure}")


def _pristine_number() -> int:
    try:
        control = os.open("/dev/loop-control", os.O_RDWR)
    except OSError as error:
        raise HostError(f"/dev/loop-control: {error.strerror}; loop devices need root and the loop driver") from None
    try:
        number: int = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
        fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        fcntl.ioctl(control, LOOP_CTL_ADD, number)
    except OSError as error:
        raise TrialError(f"/dev/loop-control: {error.strerror}") from None
    finally:
        os.close(control)
    return number
