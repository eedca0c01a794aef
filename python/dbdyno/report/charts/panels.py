"""What is drawn over time, in groups: one chart a line; a chart that would show nothing new is left out."""

import re
from dataclasses import dataclass
from functools import partial

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


_device = partial(Panel, series="block_device", group=THE_DEVICE, shown_above=NOW_AND_THEN)
_traced = partial(Panel, series="block_trace", group=THE_DEVICE, shown_above=0)
_inside = partial(Panel, series="drive", group=THE_DEVICE, if_it_moves=True)
_DEVICE = (
    _device("Write throughput", "MB/s", columns=("wMB/s",), shown_above=None),
    _device("Read throughput", "MB/s", columns=("rMB/s",)),
    _device("IOPS, reads and writes", "1/s", columns=("r/s", "w/s"), shown_above=None),
    _device("Requests merged, reads and writes", "1/s", columns=("rrqm/s", "wrqm/s")),
    _device("Write latency at the device (w_await)", "ms", columns=("w_await",), shown_above=None),
    _device("Read latency at the device (r_await)", "ms", columns=("r_await",)),
    _device("Flush latency at the device (f_await)", "ms", columns=("f_await",)),
    _device("Requests queued (aqu-sz)", "", columns=("aqu-sz",), shown_above=None),
    _traced("Time in the queue (Q2D)", "ms", columns=("queue_ms",)),
    _traced("Time in the device (D2C)", "ms", columns=("device_ms",)),
    _traced("Distance between requests", "MB", columns=("seek_MB",)),
    _traced("Requests in a sorted run", "", columns=("sorted_run_requests",)),
    _inside("Temperature of the disk", "°C", columns=("temperature_celsius",), series="smart"),
    _inside("Temperature of the emulated drive", "°C", columns=("temperature_c",)),
    _inside("Room in the drive's fast cache", "GB", columns=("slc_cache_free_bytes",), scale=1e-9),
    _inside("Write amplification in the drive", "", columns=("write_amplification",)),
    _inside(
        "In the drive's write cache, not yet on the medium", "MB", columns=("write_cache_dirty_bytes",), scale=1e-6
    ),
    _inside("Credits left to the volume", "", columns=("credits_io",)),
)


_host = partial(Panel, group=THE_HOST, shown_above=NOW_AND_THEN)
_HOST = (
    _host("CPU busy, user and system", "%", "host_cpu", ("%user", "%system"), shown_above=None),
    _host("CPU waiting for I/O", "%", "host_cpu", ("%iowait",)),
    _host("CPU of the server", "% of a core", "server_process", ("%usr", "%system")),
    _host("CPU of the client", "% of a core", "client_process", ("%usr", "%system")),
    _host("Time in which tasks waited for I/O (pressure)", "%", "pressure", ("%io_some",)),
    _host("Time in which tasks waited for the CPU (pressure)", "%", "pressure", ("%cpu_some",)),
    _host("Time in which tasks waited for memory (pressure)", "%", "pressure", ("%memory_some",)),
    Panel(
        "Page cache not yet written", "MB", "writeback", ("nr_dirty_MB", "nr_writeback_MB"), THE_HOST, if_it_moves=True
    ),
    _host("Page cache written", "MB/s", "writeback", ("nr_written_MB/s",)),
    _host("Major page faults", "1/s", "writeback", ("pgmajfault/s",)),
    _host("Stalls for a free page", "1/s", "writeback", ("allocstall/s",)),
)


_counted = partial(Panel, unit="1/s", series="server_status", group=THE_SERVER, shown_above=NOW_AND_THEN)
_stands = partial(Panel, series="server_status", group=THE_SERVER, if_it_moves=True)
_SERVER = (
    _stands("Dirty pages in the buffer pool", "", columns=("Innodb_buffer_pool_pages_dirty",)),
    _stands("Free pages in the buffer pool", "", columns=("Innodb_buffer_pool_pages_free",)),
    _stands("Log written since the last checkpoint", "MB", columns=("Innodb_checkpoint_age",), scale=1e-6),
    _counted("fsyncs of InnoDB", columns=("Innodb_data_fsyncs/s",)),
    _counted("Pages read into the buffer pool", columns=("Innodb_buffer_pool_reads/s",)),
    _counted("Waits for a free page", columns=("Innodb_buffer_pool_wait_free/s",)),
    _counted("Waits for room in the log buffer", columns=("Innodb_log_waits/s",)),
    _counted("Waits for row locks", columns=("Innodb_row_lock_waits/s",)),
    _counted("Waits for table locks", columns=("Table_locks_waited/s",)),
    _counted("MyISAM key blocks from and to disk", columns=("Key_reads/s", "Key_writes/s")),
    _stands("MyISAM key blocks not yet written", "", columns=("Key_blocks_not_flushed",)),
    _counted("Aria pages from and to disk", columns=("Aria_pagecache_reads/s", "Aria_pagecache_writes/s")),
    _stands("Aria pages not yet written", "", columns=("Aria_pagecache_blocks_not_flushed",)),
)

PANELS = (*_LOAD, *_DEVICE, *_HOST, *_SERVER)


def columns_drawn() -> dict[str, str]:
    """Return what of each series a page draws, as a regular expression for the names of its columns."""
    names: dict[str, set[str]] = {}
    for panel in PANELS:
        further = (name for name in (panel.unless_as, panel.unless_there) if name)
        names.setdefault(panel.series, {"t_s"}).update(panel.columns, further)
    return {series: "|".join(sorted(map(re.escape, columns))) for series, columns in names.items()}
