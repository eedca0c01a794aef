"""Where the kernel's trace is read from: tracefs as the host has it mounted, or a mount of dbdyno's own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import TRACEFS, Unmount
from dbdyno.stack.undo_log import Journal


def mounted_tracefs() -> Path | None:
    """Where tracefs is mounted, if this user may read it there."""
    for place in TRACEFS:
        with suppress(PermissionError):  # mounted, but not for this user
            if (place / "events/block").is_dir():
                return place
    return None


def why_not_mountable() -> str:
    """Why dbdyno can't mount tracefs itself; empty where it can."""
    if "tracefs" not in Path("/proc/filesystems").read_text(encoding="ascii").split():
        return "this kernel has no tracefs; use one with CONFIG_FTRACE"
    return "" if os.geteuid() == 0 else "tracefs can't be read by this user; run it with sudo"


@contextmanager
def tracefs(journal: Journal) -> Iterator[Path]:
    """The folder of tracefs; where it is not mounted, a mount of dbdyno's own that goes away on exit.

    Raises ``HostError`` where there is none to be had.
    """
    if place := mounted_tracefs():
        yield place
        return
    if why := why_not_mountable():
        raise HostError(why)
    with scratch(journal) as ground:
        place = ground.scratch / "tracing"
        place.mkdir()
        with journal.undoing(Unmount(str(place))):
            try:
                run_tool(["mount", "-t", "tracefs", "-o", "nosuid,nodev,noexec", "tracefs", str(place)])
            except TrialError as error:
                raise HostError(f"tracefs is not mounted, and can't be mounted: {error}") from None
            yield place
