"""A trial's ``block_trace``: what ``dbdyno-probe`` says of the requests that the device saw."""

import math
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

# The requests themselves, in a trial's folder, and how large that file may grow: 1.6 million requests.
KEPT = "requests.blkparse"
KEPT_BYTES_MAX = 256 * 1024**2

# Figure -> where it stands; times of reads and writes together, but for flushes.
FIGURES: dict[str, tuple[str, ...]] = {
    "queue_ms_mean": ("queue_ms", "all", "mean"),
    "queue_ms_p99": ("queue_ms", "all", "p99"),
    "device_ms_mean": ("device_ms", "all", "mean"),
    "device_ms_p99": ("device_ms", "all", "p99"),
    "flush_ms_mean": ("device_ms", "flush", "mean"),
    "flush_ms_p99": ("device_ms", "flush", "p99"),
    "reads": ("requests", "read"),
    "writes": ("requests", "write"),
    "flushes": ("requests", "flush"),
    "bios": ("bios",),
    "seek_bytes_mean": ("seek_bytes_mean",),
    "sequential_ratio": ("sequential_ratio",),
    "sorted_run_requests_mean": ("sorted_run_requests_mean",),
    "device_depth_mean": ("device_depth", "mean"),
    "device_depth_max": ("device_depth", "max"),
    "waiting_bios_mean": ("waiting_bios", "mean"),
}
# Those that are metrics of a trial.
SCALARS = ("queue_ms_mean", "queue_ms_p99", "device_ms_mean", "device_ms_p99", "flush_ms_mean", "seek_bytes_mean",
           "sorted_run_requests_mean", "device_depth_mean")  # fmt: skip


def figure_at(trace: Mapping[str, Any], *path: str) -> float | None:
    """Return a number that may be missing or malformed in a run folder."""
    value: Any = trace
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if known else None


def began_in(file: Path) -> int | None:
    """Return when a kept trace began, nanoseconds of the monotonic clock; None where its head does not say so."""
    try:
        with file.open(encoding="ascii", errors="replace") as lines:
            head = "".join(islice(lines, 4))
    except OSError:
        return None
    head_match = re.search(r"^# began: .*, (\d+) ns of CLOCK_MONOTONIC", head, re.MULTILINE)
    return int(head_match[1]) if head_match else None
