"""What is drawn over time, in groups: one chart a line; a chart that would show nothing new is left out."""

import re
from dataclasses import dataclass

NOW_AND_THEN = 0.02  # of a trial's samples

THE_LOAD, THE_DEVICE, THE_HOST, THE_SERVER = "The load", "The device", "The host and its processes", "Inside the server"
FOLDED = (THE_HOST, THE_SERVER)  # until the reader asks for them


@dataclass(frozen=True)
class Panel:
    """One chart: the sum of ``columns`` of a series over time, times ``scale``."""

    title: str
    unit: str
    series: str
    columns: tuple[str, ...]
    group: str = THE_LOAD
    scale: float = 1.0
    shown_above: float | None = None  # share of a trial's samples that must be above 0; None: always shown
    if_it_moves: bool = False  # whether it is left out where it stood still in every trial
    unless_as: str = ""  # a column of the same series; where both are equal, this panel would say nothing new
    unless_there: str = ""  # a column of the same series that says more; this panel is for loads without it


_LOAD = (
    Panel("Queries per second", "1/s", "load", ("queries_per_second",)),
    Panel("Events per second", "1/s", "load", ("events_per_second",), unless_as="queries_per_second"),
    Panel("Rows added per second", "1/s", "load", ("rows_per_second",), shown_above=0, unless_as="queries_per_second"),
    Panel("Throughput of the load", "MB/s", "load", ("megabytes_per_second",)),
    Panel("I/O operations of the load", "1/s", "load", ("iops",)),
    Panel("Events waiting for a client", "", "load", ("backlog",), shown_above=0),
    Panel("99th percentile latency", "ms", "load", ("latency_ms_p99",)),
    Panel("Mean latency", "ms", "load", ("latency_ms_mean",), unless_there="latency_ms_p99"),
    Panel("Errors per second", "1/s", "load", ("errors_per_second",), shown_above=0),
    Panel("Reconnects per second", "1/s", "load", ("reconnects_per_second",), shown_above=0),
)


def _device(title: str, unit: str, *columns: str, always: bool = False) -> Panel:
    shown_above = None if always else NOW_AND_THEN
    return Panel(title, unit, "block_device", columns, THE_DEVICE, shown_above=shown_above)


def _inside(title: str, unit: str, gauge: str, scale: float = 1.0, *, series: str = "drive") -> Panel:
    return Panel(title, unit, series, (gauge,), THE_DEVICE, scale, if_it_moves=True)


_DEVICE = (
    _device("Write throughput", "MB/s", "wMB/s", always=True),
    _device("Read throughput", "MB/s", "rMB/s"),
    _device("IOPS, reads and writes", "1/s", "r/s", "w/s", always=True),
    _device("Requests merged, reads and writes", "1/s", "rrqm/s", "wrqm/s"),
    _device("Write latency at the device (w_await)", "ms", "w_await", always=True),
    _device("Read latency at the device (r_await)", "ms", "r_await"),
    _device("Flush latency at the device (f_await)", "ms", "f_await"),
    _device("Requests queued (aqu-sz)", "", "aqu-sz", always=True),
    Panel("Time in the queue (Q2D)", "ms", "block_trace", ("queue_ms",), THE_DEVICE, shown_above=0),
    Panel("Time in the device (D2C)", "ms", "block_trace", ("device_ms",), THE_DEVICE, shown_above=0),
    Panel("Distance between requests", "MB", "block_trace", ("seek_MB",), THE_DEVICE, shown_above=0),
    Panel("Requests in a sorted run", "", "block_trace", ("sorted_run_requests",), THE_DEVICE, shown_above=0),
    _inside("Temperature of the disk", "°C", "temperature_celsius", series="smart"),
    _inside("Temperature of the emulated drive", "°C", "temperature_c"),
    _inside("Room in the drive's fast cache", "GB", "slc_cache_free_bytes", 1e-9),
    _inside("Write amplification in the drive", "", "write_amplification"),
    _inside("In the drive's write cache, not yet on the medium", "MB", "write_cache_dirty_bytes", 1e-6),
    _inside("Credits left to the volume", "", "credits_io"),
)


def _host(title: str, unit: str, series: str, *columns: str, always: bool = False) -> Panel:
    return Panel(title, unit, series, columns, THE_HOST, shown_above=None if always else NOW_AND_THEN)


_HOST = (
    _host("CPU busy, user and system", "%", "host_cpu", "%user", "%system", always=True),
    _host("CPU waiting for I/O", "%", "host_cpu", "%iowait"),
    _host("CPU of the server", "% of a core", "server_process", "%usr", "%system"),
    _host("CPU of the client", "% of a core", "client_process", "%usr", "%system"),
    _host("Time in which tasks waited for I/O (pressure)", "%", "pressure", "%io_some"),
    _host("Time in which tasks waited for the CPU (pressure)", "%", "pressure", "%cpu_some"),
    _host("Time in which tasks waited for memory (pressure)", "%", "pressure", "%memory_some"),
    Panel(
        "Page cache not yet written", "MB", "writeback", ("nr_dirty_MB", "nr_writeback_MB"), THE_HOST, if_it_moves=True
    ),
    _host("Page cache written", "MB/s", "writeback", "nr_written_MB/s"),
    _host("Major page faults", "1/s", "writeback", "pgmajfault/s"),
    _host("Stalls for a free page", "1/s", "writeback", "allocstall/s"),
)


def _counted(title: str, *counters: str) -> Panel:
    columns = tuple(f"{name}/s" for name in counters)
    return Panel(title, "1/s", "server_status", columns, THE_SERVER, shown_above=NOW_AND_THEN)


def _stands(title: str, unit: str, gauge: str, scale: float = 1.0) -> Panel:
    return Panel(title, unit, "server_status", (gauge,), THE_SERVER, scale, if_it_moves=True)


_SERVER = (
    _stands("Dirty pages in the buffer pool", "", "Innodb_buffer_pool_pages_dirty"),
    _stands("Log written since the last checkpoint", "MB", "Innodb_checkpoint_age", 1e-6),
    _counted("fsyncs of InnoDB", "Innodb_data_fsyncs"),
    _counted("Pages read into the buffer pool", "Innodb_buffer_pool_reads"),
    _counted("Waits for a free page", "Innodb_buffer_pool_wait_free"),
    _counted("Waits for room in the log buffer", "Innodb_log_waits"),
    _counted("Waits for row locks", "Innodb_row_lock_waits"),
    _counted("Waits for table locks", "Table_locks_waited"),
    _counted("MyISAM key blocks from and to disk", "Key_reads", "Key_writes"),
    _stands("MyISAM key blocks not yet written", "", "Key_blocks_not_flushed"),
    _counted("Aria pages from and to disk", "Aria_pagecache_reads", "Aria_pagecache_writes"),
    _stands("Aria pages not yet written", "", "Aria_pagecache_blocks_not_flushed"),
)

PANELS = (*_LOAD, *_DEVICE, *_HOST, *_SERVER)


def columns_drawn() -> dict[str, str]:
    """Return what of each series a page draws, as a regular expression for the names of its columns."""
    names: dict[str, set[str]] = {}
    for panel in PANELS:
        further = (name for name in (panel.unless_as, panel.unless_there) if name)
        names.setdefault(panel.series, {"t_s"}).update(panel.columns, further)
    return {series: "|".join(sorted(map(re.escape, columns))) for series, columns in names.items()}
