"""How fast the host is by itself, just before a trial's load and just after it: fixed work that no treatment touches.

Hosts differ from minute to minute: neighbours, heat, a disk that fills. Trials of one block meet it differently, and
what they meet is in their ratio. So the same small pieces of work are timed beside each trial, while its server idles:
what the trial measures can then be compared for what the host was worth at that moment.

Nothing is run while the load is measured, so it costs the measured run nothing: some 40 ms of one core before and
after. Cannot: see what lasts for less than a trial, nor neighbours that come between its two ends.
"""

import hashlib
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from dbdyno.errors import DbdynoError
from dbdyno.host.storage import mounted_at
from dbdyno.stack.layer import StackContext
from dbdyno.system.state import state_folder

WORK_BYTES, PIECES = 1 << 20, 8  # SHA-256 of 1 MiB takes some 1 to 4 ms; the median of so many
WRITE_BYTES, FLUSHES = 4096, 3
IN_MEMORY = {"tmpfs", "ramfs"}


def host_speed(context: StackContext) -> dict[str, float]:
    """Return what fixed work takes now, in nanoseconds, medians over its pieces.

    ``work_wall_ns`` and ``work_cpu_ns`` of hashing 1 MiB, by the clock and in CPU time; ``flush_ns`` of writing 4 KiB
    and syncing them, where the state folder lies on another device than the data of the trial; else it is not there.
    """
    figures = _work()
    flush_ns = _flush(context)
    return figures | ({"flush_ns": flush_ns} if flush_ns else {})


def before_and_after(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the mean of what was timed at both ends of a trial, of what is known of both."""
    return {name: (before[name] + after[name]) / 2 for name in before if name in after}


def _work() -> dict[str, float]:
    piece = bytes(WORK_BYTES)
    walls, processor = [], []
    for _ in range(PIECES):
        wall, cpu = time.monotonic_ns(), time.thread_time_ns()
        hashlib.sha256(piece).digest()
        processor.append(time.thread_time_ns() - cpu)
        walls.append(time.monotonic_ns() - wall)
    return {"work_wall_ns": statistics.median(walls), "work_cpu_ns": statistics.median(processor)}


def _flush(context: StackContext, folder_of: Callable[[], Path] = state_folder) -> float:
    """Return what a durable write takes on a disk that is not under test; 0 where there is none."""
    try:
        folder = folder_of()
        in_memory = mounted_at(folder).kind in IN_MEMORY
        if in_memory or context.directory is None or folder.stat().st_dev == context.directory.stat().st_dev:
            return 0.0
        return _timed_flush(folder)
    except (OSError, DbdynoError):
        return 0.0


def _timed_flush(folder: Path) -> float:
    handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)  # it has no name, so nothing is left of it
    try:
        times_ns = []
        for place in range(FLUSHES):
            began = time.monotonic_ns()
            os.pwrite(handle, os.urandom(WRITE_BYTES), place * WRITE_BYTES)
            os.fdatasync(handle)
            times_ns.append(time.monotonic_ns() - began)
        return statistics.median(times_ns)
    finally:
        os.close(handle)
