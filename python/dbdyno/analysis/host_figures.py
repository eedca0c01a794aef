"""What was measured of a host: values only, NaN and "unknown" where there are none."""

import math
from dataclasses import dataclass

UNKNOWN = "unknown"


@dataclass(frozen=True)
class HostFigures:
    """Times in microseconds, shares of all processors' time, bytes."""

    cores: int
    guest: bool
    wake_up_us_p50: float = math.nan  # a byte to another processor and back
    wake_up_us_p99: float = math.nan
    timer_late_us_p50: float = math.nan  # of a sleep of 1 ms
    timer_late_us_p99: float = math.nan
    clock_read_ns: float = math.nan
    memory_bytes_per_second: float = math.nan  # copied by one thread
    stolen_share: float = math.nan
    busy_share: float = math.nan  # by whatever runs beside, before anything was measured
    clock_source: str = UNKNOWN
    clock_sources: tuple[str, ...] = ()  # that could be chosen
    governor: str = UNKNOWN
    memory_bytes: float = math.nan
    swap_bytes: float = math.nan
    disk_us_p50: float = math.nan  # a read of an emulated disk that itself takes no time
    disk_us_p99: float = math.nan
    disk_iops: float = math.nan
    no_disk: str = ""  # why there are no figures of it
    can_be_awake: bool = False
    why_not_awake: str = ""
    awake_remedy: str = ""
