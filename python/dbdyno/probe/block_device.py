"""The block device, with iostat's columns, from /sys/block/DEV/stat (Documentation/block/stat.rst)."""

import os
from pathlib import Path

SECTOR_BYTES = 512  # of the statistics, whatever the device's own
_FIELDS = (
    "reads", "reads_merged", "read_sectors", "read_ms",
    "writes", "writes_merged", "write_sectors", "write_ms",
    "in_flight", "busy_ms", "weighted_ms",
    "discards", "discards_merged", "discard_sectors", "discard_ms",
    "flushes", "flush_ms",
)  # fmt: skip


class BlockDeviceSource:
    """Counters of one device."""

    name = "block_device"

    def __init__(self, device: str) -> None:
        self._file = os.open(Path("/sys/block") / device / "stat", os.O_RDONLY)

    def sample(self) -> dict[str, float]:
        """The kernel's counters since boot."""
        numbers = os.pread(self._file, 1024, 0).split()
        return {name: float(number) for name, number in zip(_FIELDS, numbers, strict=False)}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """As ``iostat -x`` computes them, a mean of no request being 0, and the bytes so far."""
        delta = {name: after[name] - before[name] for name in after}

        def mean(total: str, count: str) -> float:
            return delta.get(total, 0.0) / delta[count] if delta.get(count) else 0.0

        requests = delta["reads"] + delta["writes"]
        sectors = delta["read_sectors"] + delta["write_sectors"]
        return {
            "r/s": delta["reads"] / seconds,
            "w/s": delta["writes"] / seconds,
            "rMB/s": delta["read_sectors"] * SECTOR_BYTES / 1e6 / seconds,
            "wMB/s": delta["write_sectors"] * SECTOR_BYTES / 1e6 / seconds,
            "rrqm/s": delta["reads_merged"] / seconds,
            "wrqm/s": delta["writes_merged"] / seconds,
            "r_await": mean("read_ms", "reads"),
            "w_await": mean("write_ms", "writes"),
            "f/s": delta.get("flushes", 0.0) / seconds,
            "f_await": mean("flush_ms", "flushes"),
            "areq-sz": sectors * SECTOR_BYTES / 1024 / requests if requests else 0.0,
            "aqu-sz": delta["weighted_ms"] / 1000 / seconds,
            "%util": min(100.0, delta["busy_ms"] / 10 / seconds),
            "read_bytes": after["read_sectors"] * SECTOR_BYTES,
            "written_bytes": after["write_sectors"] * SECTOR_BYTES,
        }

    def close(self) -> None:
        """Close the counter file."""
        os.close(self._file)
