"""One clock for load and probes: CLOCK_MONOTONIC in nanoseconds, which every process on a host shares."""

import time


def now_ns() -> int:
    """The clock's time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
