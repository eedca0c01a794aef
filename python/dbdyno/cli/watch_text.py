"""Text that stands for figures on the screen of ``dbdyno watch``."""

import math
from collections.abc import Iterable, Mapping

BARS = " ▁▂▃▄▅▆▇█"
PLAIN_BARS = " .:-=+*#@"  # as many, for terminals without the others


def bars_of(encoding: str) -> str:
    """The bars that a terminal of this encoding can show."""
    try:
        BARS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN_BARS
    return BARS


def sparkline(values: Iterable[float], width: int, most: float = 0.0, bars: str = BARS) -> str:
    """The last ``width`` values as bars, the highest of which is the largest or ``most``; any above 0 is seen."""
    last = list(values)[-width:] if width > 0 else []
    top = max([*last, most]) or 1.0
    return "".join(bars[max(value > 0, round(value / top * (len(bars) - 1)))] for value in last)


def traced_line(columns: Mapping[str, float]) -> str:
    """What the block trace shows of an interval, as ``"in queue 0.12 ms (p99 0.5), in device ..."``."""

    def shown(name: str, scale: float = 1.0) -> str:
        return f"{columns[name] / scale:.3g}" if math.isfinite(columns[name]) else "-"

    return (
        f"in queue {shown('queue_ms_mean')} ms (p99 {shown('queue_ms_p99')}),"
        f" in device {shown('device_ms_mean')} ms (p99 {shown('device_ms_p99')}),"
        f" {shown('seek_bytes_mean', 1e6)} MB apart, sorted runs of {shown('sorted_run_requests_mean')}"
    )
