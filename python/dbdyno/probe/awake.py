"""CPU time of the pollers that keep processors awake, from /proc/PID/stat: time in which nothing else had work."""

import os
from collections.abc import Sequence

from dbdyno.probe.kernel_files import KernelFileSource

_TICKS = os.sysconf("SC_CLK_TCK")


class AwakeSource(KernelFileSource):
    """The pollers' process, all its threads. Raises ``OSError`` where there is none."""

    name = "awake"

    def __init__(self, pid: int) -> None:
        super().__init__(f"/proc/{pid}/stat")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """CPU seconds since its start."""
        return {"cpu_seconds": poller_ticks(raw[0]) / _TICKS}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds since its start, and percent of one core."""
        used = after["cpu_seconds"] - before["cpu_seconds"]
        return {**after, "%cpu": 100 * used / seconds}


def poller_ticks(stat: bytes) -> float:
    """Clock ticks that a process has used, by its ``stat``. Raises ``OSError`` of one that has ended."""
    fields = stat.rpartition(b")")[2].split()
    if fields[0] in b"ZX":
        raise ProcessLookupError("the pollers have ended")
    return float(fields[11]) + float(fields[12])
