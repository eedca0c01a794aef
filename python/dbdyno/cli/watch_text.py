"""Text that stands for figures on the screen of ``dbdyno watch``."""

import math
from collections.abc import Iterable, Mapping

BARS = " ▁▂▃▄▅▆▇█"


def sparkline(values: Iterable[float], width: int, most: float = 0.0) -> str:
    """The last ``width`` values as bars, the highest of which is the largest or ``most``; any above 0 is seen."""
    last = list(values)[-width:] if width > 0 else []
    top = max([*last, most]) or 1.0
    return "".join(BARS[max(value > 0, round(value / top * (len(BARS) - 1)))] for value in last)


def traced_line(columns: Mapping[str, float]) -> str:
    """What the block trace tells of an interval, as ``"in queue 0.12 ms (p99 0.5), in device ..."``."""

    def told(name: str, scale: float = 1.0) -> str:
        return f"{columns[name] / scale:.3g}" if math.isfinite(columns[name]) else "-"

    return (
        f"in queue {told('queue_ms_mean')} ms (p99 {told('queue_ms_p99')}),"
        f" in device {told('device_ms_mean')} ms (p99 {told('device_ms_p99')}),"
        f" {told('seek_bytes_mean', 1e6)} MB apart, sorted runs of {told('sorted_run_requests_mean')}"
    )
