"""CPU, memory and I/O of the server's process, from /proc/PID (proc(5))."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ServerProcessSource:
    """One process, all its threads."""

    name = "server_process"

    def __init__(self, pid: int) -> None:
        self._stat = os.open(Path(f"/proc/{pid}/stat"), os.O_RDONLY)
        self._io = os.open(Path(f"/proc/{pid}/io"), os.O_RDONLY)

    def sample(self) -> dict[str, float]:
        """CPU seconds, resident bytes, and device bytes since its start. Raises ``OSError`` once it has ended."""
        fields = os.pread(self._stat, 2048, 0).rpartition(b")")[2].split()
        if fields[0] in b"ZX":
            raise ProcessLookupError("the process has ended")
        io = dict(line.split(b": ") for line in os.pread(self._io, 1024, 0).splitlines())
        return {
            "user_seconds": int(fields[11]) / _TICKS,
            "system_seconds": int(fields[12]) / _TICKS,
            "resident_bytes": float(int(fields[21]) * _PAGE_BYTES),
            "read_bytes": float(io[b"read_bytes"]),
            "write_bytes": float(io[b"write_bytes"]),
        }

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds since its start, percent of one core, resident MB, and MB/s."""
        delta = {name: after[name] - before[name] for name in after}
        return {
            "cpu_seconds": after["user_seconds"] + after["system_seconds"],
            "%usr": 100 * delta["user_seconds"] / seconds,
            "%system": 100 * delta["system_seconds"] / seconds,
            "rss_MB": after["resident_bytes"] / 1e6,
            "rMB/s": delta["read_bytes"] / 1e6 / seconds,
            "wMB/s": delta["write_bytes"] / 1e6 / seconds,
        }

    def close(self) -> None:
        """Close both files."""
        os.close(self._stat)
        os.close(self._io)
