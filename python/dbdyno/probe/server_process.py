"""CPU, memory and I/O of the server's process, all its threads, from /proc/PID/stat and /proc/PID/io (proc(5))."""

import os
from collections.abc import Sequence

from dbdyno.probe.kernel_files import KernelFileSource

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
COUNTERS = ("user_seconds", "system_seconds", "resident_bytes", "read_bytes", "write_bytes")


class ServerProcessSource(KernelFileSource):
    """One process, all its threads. Raises ``OSError`` where there is none or it is not for us to see."""

    name = "server_process"

    def __init__(self, pid: int) -> None:
        super().__init__(f"/proc/{pid}/stat", f"/proc/{pid}/io")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """CPU seconds, resident bytes, and device bytes since its start. Raises ``OSError`` once it has ended."""
        return counters_of(raw)

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds since its start, percent of one core, resident MB, and MB/s."""
        return as_columns(before, after, seconds)


def counters_of(raw: Sequence[bytes], *, with_waited: bool = False) -> dict[str, float]:
    """CPU seconds, resident bytes, and bytes to and from devices since a process's start.

    The bytes include those of children it has waited for; ``with_waited`` adds their CPU too. Raises ``OSError``
    of a process that has ended.
    """
    fields = raw[0].rpartition(b")")[2].split()
    if fields[0] in b"ZX":
        raise ProcessLookupError("the process has ended")
    user, system, waited_user, waited_system = map(int, fields[11:15])
    io = raw[1].split()
    return {
        "user_seconds": (user + waited_user * with_waited) / _TICKS,
        "system_seconds": (system + waited_system * with_waited) / _TICKS,
        "resident_bytes": float(int(fields[21]) * _PAGE_BYTES),
        "read_bytes": float(io[9]),
        "write_bytes": float(io[11]),
    }


def as_columns(before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
    """CPU seconds since its start, percent of one core, resident MB, and MB/s."""

    def rate(name: str, scale: float) -> float:
        return (after[name] - before[name]) * scale / seconds

    return {
        "cpu_seconds": after["user_seconds"] + after["system_seconds"],
        "%usr": rate("user_seconds", 100),
        "%system": rate("system_seconds", 100),
        "rss_MB": after["resident_bytes"] / 1e6,
        "rMB/s": rate("read_bytes", 1e-6),
        "wMB/s": rate("write_bytes", 1e-6),
    }
