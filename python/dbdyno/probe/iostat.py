"""The block device by iostat's columns: what the kernel counts of it (Documentation/admin-guide/iostats.rst)."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.model.disks import series_name
from dbdyno.probe.host import KernelFileSource

SECTOR_BYTES = 512  # of the statistics, whatever the device's own
_FIELDS = (
    "reads", "reads_merged", "read_sectors", "read_ms",
    "writes", "writes_merged", "write_sectors", "write_ms",
    "in_flight", "busy_ms", "weighted_ms",
    "discards", "discards_merged", "discard_sectors", "discard_ms",
    "flushes", "flush_ms",
)  # fmt: skip
_OLD_KERNELS = dict.fromkeys(_FIELDS, 0.0)  # before 4.18 they counted no discards, before 5.5 no flushes
_KINDS = (("r", "read"), ("w", "write"), ("d", "discard"))


class BlockDeviceSource(KernelFileSource):
    """Counters of one device, or the sums of several under one filesystem; ``disk`` is the name of a named one."""

    name = "block_device"

    def __init__(self, *devices: str, disk: str = "") -> None:
        self.name = series_name(self.name, disk)
        super().__init__(*(Path("/sys/class/block") / device / "stat" for device in devices))  # partitions have one too

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Their numbers since boot, added up; but two devices are not busy more than all the time: there the mean."""
        devices = [_OLD_KERNELS | dict(zip(_FIELDS, map(float, line.split()), strict=False)) for line in raw]
        added = {name: math.fsum(device[name] for device in devices) for name in _FIELDS}
        return {**added, "busy_ms": added["busy_ms"] / len(devices)}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """As ``iostat -x`` computes them, a mean of no request being 0, and requests and bytes so far."""
        delta = {name: after[name] - before[name] for name in after}
        requests = delta["reads"] + delta["writes"] + delta["discards"]
        sectors = delta["read_sectors"] + delta["write_sectors"] + delta["discard_sectors"]
        columns: dict[str, float] = {}
        for short, kind in _KINDS:
            columns |= _kind_columns(short, kind, delta, seconds)
        return columns | {
            "f/s": delta["flushes"] / seconds,
            "f_await": delta["flush_ms"] / (delta["flushes"] or 1.0),
            "areq-sz": sectors * SECTOR_BYTES / 1024 / (requests or 1.0),
            "aqu-sz": delta["weighted_ms"] / 1000 / seconds,
            "%util": min(100.0, delta["busy_ms"] / 10 / seconds),
            **{f"{kind}_done": after[kind] for kind in ("reads", "writes", "flushes")},
            "read_bytes": after["read_sectors"] * SECTOR_BYTES,
            "written_bytes": after["write_sectors"] * SECTOR_BYTES,
        }


def _kind_columns(short: str, kind: str, delta: dict[str, float], seconds: float) -> dict[str, float]:
    """The columns that reads, writes and discards have alike."""
    done, merged, sectors = delta[f"{kind}s"], delta[f"{kind}s_merged"], delta[f"{kind}_sectors"]
    return {
        f"{short}/s": done / seconds,
        f"{short}MB/s": sectors * SECTOR_BYTES / 1e6 / seconds,
        f"{short}rqm/s": merged / seconds,
        f"%{short}rqm": 100 * merged / ((done + merged) or 1.0),
        f"{short}_await": delta[f"{kind}_ms"] / (done or 1.0),
        f"{short}areq-sz": sectors * SECTOR_BYTES / 1024 / (done or 1.0),
    }


# A device's figures in the very columns, order and units of ``iostat -x``: kB are 1024 bytes.


_IOSTAT_KINDS = "rwd"
COLUMNS = (
    *(f"{kind}{rest}" if rest[0] != "%" else f"%{kind}{rest[1:]}"
      for kind in _IOSTAT_KINDS for rest in ("/s", "kB/s", "rqm/s", "%rqm", "_await", "areq-sz")),
    "f/s", "f_await", "aqu-sz", "%util",
)  # fmt: skip


def as_iostat(columns: Mapping[str, float]) -> dict[str, float]:
    """The columns of a ``BlockDeviceSource`` as iostat has them."""
    figures = {**columns, **{f"{kind}kB/s": columns[f"{kind}MB/s"] * 1e6 / 1024 for kind in _IOSTAT_KINDS}}
    return {name: figures[name] for name in COLUMNS}
