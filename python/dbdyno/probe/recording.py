"""A block device's requests into a file that ``dbdyno trace show`` and ``dbdyno simulate`` read."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError
from dbdyno.probe.trace_reader import NoTraceError, Record, TraceReader, reading
from dbdyno.stack.undo.log import Journal
from dbdyno.system.interrupt import Interrupted, interruptible, shielded

LOOK_SECONDS = 0.2  # how often it is seen whether the file is full


@dataclass(frozen=True)
class Recorded:
    """What a recording came to."""

    events: int
    requests: int
    bytes: int
    seconds: float  # from its begin to the last event
    lost: int  # events that the kernel had no room for
    ended: str  # "time", "full" or "interrupted"
    cpu_us_per_request: float | None  # of dbdyno-probe, its start left out


def record(device: str, to: Record, seconds: float | None, say: Callable[[str], None]) -> Recorded:
    """Record a block device by its name until the time is over, the file is full, or a signal comes.

    Raises ``HostError`` where it can't be traced, or the file can't be written to its end.
    """
    with interruptible(say), closing(Journal(f"trace record {device}")) as journal:
        try:
            with reading(journal, Path("/dev") / device, to) as reader:
                say(f"recording {device} into {to.file}; Ctrl-C ends it")
                before = reader.ask("figures 0 1")["cpu_seconds"]  # what its start took is no request's
                ended = _until(reader, seconds)
                reader.ask("stop")
                figures = reader.ask("summary")["figures"]
        except NoTraceError as error:
            raise HostError(f"there is no block trace of {device}: {error}") from None
    return _recorded({**figures, "cpu_seconds": figures["cpu_seconds"] - before}, ended, to.file)


def _until(reader: TraceReader, seconds: float | None) -> str:
    """Wait, and say for what it ended."""
    end = None if seconds is None else time.monotonic() + seconds
    with suppress(Interrupted):
        while end is None or (left := end - time.monotonic()) > 0:
            time.sleep(LOOK_SECONDS if end is None else min(LOOK_SECONDS, left))
            with shielded():  # an answer is read whole
                so_far = reader.ask("recorded")
            if so_far["full"] or so_far["failed"]:
                return "full"
        return "time"
    return "interrupted"


def _recorded(figures: dict[str, Any], ended: str, file: Path) -> Recorded:
    recorded, requests = figures["recorded"], sum(figures["requests"].values())
    if recorded["failed"]:
        raise HostError(f"{file} can't be written to its end: {recorded['failed']}; what it holds is whole up to there")
    return Recorded(
        recorded["events"],
        requests,
        recorded["bytes"],
        recorded["seconds"],
        figures["lost"],
        "full" if recorded["full"] else ended,
        figures["cpu_seconds"] * 1e6 / requests if requests else None,
    )
