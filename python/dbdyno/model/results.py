"""What programs exchange, as `crates/dbdyno-common/src/results.rs` defines it; written by `make results`.

Values are of a JSON document. One that another version of a program wrote may lack a key, so every key may be missing.
"""

from typing import Any, TypedDict

# What a histogram comes to: count, min, mean, max, and percentiles such as p99. The key that holds it ends in its unit.
Summary = dict[str, float | None]


class MeanAndMax(TypedDict, total=False):
    """What was met at each issue."""

    max: int | None  # The most.
    mean: float | None  # Its mean.


class Recorded(TypedDict, total=False):
    """What a recording of events has come to."""

    bytes: int  # Bytes written.
    events: int  # Events written.
    failed: str | None  # Why it can't be written.
    full: bool  # Whether the file may not grow any more.
    measured_s: list[float] | None  # In a trial: where in it measuring began and ended, seconds.
    seconds: float  # From its begin to the last event.


class BlockTrace(TypedDict, total=False):
    """What the requests of a window came to."""

    ascending_ratio: float | None  # The share that did not go back.
    bios: int  # Bios of the requests issued.
    bytes: dict[str, int]  # Bytes issued, by kind.
    completed: dict[str, int]  # Requests done, by kind.
    cpu_seconds: float | None  # CPU time of the probe.
    device: str | None  # The block device.
    device_depth: MeanAndMax  # Requests in the device when one is issued, itself included.
    device_ms: dict[str, Summary]  # From issue to completion, likewise.
    errors: int  # Requests that failed.
    flushes_asked: int  # Empty writes that only asked for a flush.
    lost: int  # Events or records that were lost.
    open: int  # Requests that are not done yet.
    # From when the first bio of a request was queued until it was issued, by kind and of reads and writes together.
    queue_ms: dict[str, Summary]
    recorded: Recorded | None  # The file that its events went to.
    requests: dict[str, int]  # Requests issued, by kind.
    seek_bytes_mean: float | None  # Mean distance from the end of a request to the start of the next.
    sequential_ratio: float | None  # The share that began where the one before ended.
    sorted_run_requests_mean: float | None  # Requests of such a run.
    sorted_runs: int  # Runs at ascending addresses.
    source: str | None  # "block layer" or the file of an emulated disk's own trace.
    unmatched: int  # Completions whose issue was not seen.
    waiting_bios: MeanAndMax  # Bios that still wait then.
    window_ns: list[int] | None  # The window's start and end on the monotonic clock; none for all of the trace.


class ClientHost(TypedDict, total=False):
    """One of several hosts that a load came from."""

    clients: int  # Connections from there.
    clock_bound_us: float  # Within which bound its clock is known.
    clock_drift_us: float  # By how much its clock went from ours meanwhile.
    events_per_second: float  # Events that it finished.
    host: str  # Its name.
    interface: str | None  # Through which they go.
    interface_share: float | None  # What the busier way of it carried, of its speed.
    latency_ms_p99: float | None  # The 99th percentile of its events.
    latency_ms_p99_of_others: float | None  # That of the events of all others.
    queries_per_second: float  # Queries that it had answered.
    retransmits: int  # Segments sent again.
    rtt_ms_median: float  # Smoothed round trips, the connections' median.
    rtt_ms_min: float | None  # The least.
    seconds: float  # How long it measured.
    start_lateness_ms_p99: float | None  # How late it started what was due.
    start_off_us: float  # How far from the agreed moment it started.
    thread_cpu_share: float | None  # What its busiest thread had of a processor.
    thread_wait_share: float | None  # What a thread waited for one at most, of the time.


Columns = dict[str, float]  # The columns of `iostat -x`, as sysstat computes them.


class SimulatedLatencies(TypedDict, total=False):
    """Latencies as they leave the simulator."""

    count: int  # How many.
    histogram: str  # All of them: an `HdrHistogram` of three digits, version 2, compressed, in base64.
    max_ns: int  # The largest.
    mean_ns: float  # Their mean.
    min_ns: int  # The least; 0 of none, as the others.
    p50_ns: int  # The median.
    p99_ns: int  # The 99th percentile; other percentiles are beside it.


class DirectionFigures(TypedDict, total=False):
    """Counts of one direction."""

    latency: SimulatedLatencies  # Of bios, from when they were meant to begin.
    merges: int  # Bios that joined a request.
    requests: int  # Requests completed.
    sectors: int  # Sectors completed.


class FastCache(TypedDict, total=False):
    """The fast part of a drive's room for writes."""

    bytes: int  # What it holds on a disk of this size.
    drive_bytes: int | None  # What it holds on the whole drive.
    ran_out_ns: int | None  # When a write first found it full, on the monotonic clock.
    ran_out_s: float | None  # In a trial, which has no other clock: the same in seconds since measuring began.


class DiskFigures(TypedDict, total=False):
    """All that an emulated disk knows of itself."""

    content_bytes: int  # What was written and still counts.
    cpu_seconds: float  # CPU time of the disk's process.
    cuts: Any  # Power cuts taken or waited for.
    discards: int  # Discards that came.
    enospc_errors: int  # Writes for which there was no room.
    errors: dict[str, int]  # Requests that failed, by kind.
    fast_cache: FastCache | None  # The fast part of the drive's room for writes, if it has one.
    faults: Any  # Faults that were put in.
    flush_ignored: bool  # Whether a FLUSH makes nothing durable.
    flushes: int  # Flushes that came.
    gauges: dict[str, float]  # The inside of the model, by name.
    held_bytes: int  # Memory or room of a file that holds it, snapshots included.
    in_flight: int  # Requests that wait for their answer.
    io_flusher: bool  # Whether the kernel knows that it serves a disk.
    lateness_ns: Summary  # How long after they were to be there answers were.
    locked_memory: bool  # Whether its memory stays.
    max_content_bytes: int  # The most that may be held.
    mode: str  # "instant" or "model".
    model: str  # The drive that it behaves like.
    path_after_ns: Any  # What an answer takes to the block layer, by what it answers.
    path_before_ns: Summary  # What requests took from the block layer to the model.
    path_early_ns: Summary  # By how much they took less.
    path_followed: bool  # Whether requests are counted from the block layer on.
    path_left_ns: Summary  # By how much requests took longer than the model's time.
    path_ns: int  # What the way of a request is taken to be, where its start is not known.
    path_taken_ns: Summary  # How long before the model's time answers left.
    power: str  # "on", "off" or "gone".
    queue_depth_max: int  # Most requests at a time.
    read_bytes: int  # Bytes of reads.
    reads: int  # Reads that came.
    realtime: bool  # Whether it has a real-time priority.
    seed: int  # Of that drive's chances.
    service_ns: dict[str, Summary]  # From arrival to answer, by kind of request.
    size_bytes: int  # Size of the disk.
    snapshots: list[str]  # Names of snapshots.
    spin_share_max: float  # The most of a processor that it may spin now.
    spun_seconds: float  # Time that was spun so that answers leave in time.
    state: str  # "steady" or "fresh".
    trace: Any  # The trace that runs.
    unflushed_bytes: int  # Of which not durable.
    write_bytes: int  # Bytes of writes.
    write_cache: str  # "none", "volatile" or "protected".
    writes: int  # Writes that came.


class ErrorCount(TypedDict, total=False):
    """How often the server answered with one error code to one kind of statement."""

    code: int  # The server's code; 2013 for a connection that was lost, 1159 where a reply did not end.
    count: int  # How often.
    message: str  # The first message with this code.
    operation: str  # The kind of statement that was refused.
    sqlstate: str  # Five characters.


class HostTimes(TypedDict, total=False):
    """Times that were measured on a host."""

    count: int  # How many.
    iops: float | None  # Reads a second by many readers at once.
    max_ns: int  # The largest.
    mean_ns: float  # Their mean.
    min_ns: int  # The least; 0 of none, as the others.
    p50_ns: int  # The median.
    p99_ns: int  # The 99th percentile; other percentiles are beside it.
    processors: list[int] | None  # The processors between which it was.
    readers: int | None  # How many readers these were.


class HostFigures(TypedDict, total=False):
    """What a host can do by itself."""

    disk: HostTimes
    timer: HostTimes
    wake_up: HostTimes


class LoadClock(TypedDict, total=False):
    """When things happened."""

    connect_ns: int  # Time it took to connect and log in all clients.
    measure_end_ns: int  # The last reply was complete.
    measure_start_ns: int  # All clients were released: the last thread of them.
    source: str  # Always `CLOCK_MONOTONIC`.
    start_asked_ns: int | None  # When the start was asked for by `--start-file`.
    warmup_ns: int  # Time of the warm-up before the start; 0 for none.


class Pace(TypedDict, total=False):
    """When the events of a load start."""

    kind: str  # "open", "closed" or "logged".
    rate: float | None  # Events a second that an open loop offers.
    spacing: str | None  # "fixed" or "exponential".
    speed: float | None  # How many times as fast as logged; 0 as fast as it can be.
    think_seconds: float | None  # Pause of a client between two events of a closed loop.


class LoadNetwork(TypedDict, total=False):
    """The network of a run: its connections by TCP at the end, and what was counted since the start."""

    connections: int  # Of TCP, at the end.
    interface: str | None  # Through which the first connection goes.
    interface_megabits: int | None  # Its speed, Mbit/s; none where it has none.
    received_bytes: int | None  # All that it received between start and end, others' bytes too.
    retransmits: int  # Segments sent again between start and end.
    rtt_us_max: int  # The longest of them.
    rtt_us_median: int  # Smoothed round trips, the connections' median; with the server's work in it.
    rtt_us_min: int | None  # The least that any connection had in the last minutes.
    sent_bytes: int | None  # All that it sent.


class Phase(TypedDict, total=False):
    """A phase of a run, from its first statement to the end of its last."""

    end_ns: int  # `CLOCK_MONOTONIC`.
    name: str  # Its name.
    start_ns: int  # `CLOCK_MONOTONIC`.


class LoadShare(TypedDict, total=False):
    """The part of a load that one process offered."""

    clients_of_all: int  # Connections of all parts together.
    part: str  # Which of how many, such as "2/3".


class ThreadTime(TypedDict, total=False):
    """What the kernel gave one thread."""

    cpu_seconds: float  # It ran.
    wait_seconds: float | None  # It could have run, and others did; none where the kernel does not count it.


class LoadRun(TypedDict, total=False):
    """One measured run: one engine, one number of clients, one iteration."""

    aborted: str | None  # Why it ended early.
    achieved_per_second: float  # Events finished a second.
    backlog_end: int | None  # How many waited at its end.
    backlog_max: int | None  # Most events that were due and waited for a client, of an open loop.
    behind_ns: Summary | None  # How long events of a log waited for their session after they were due.
    client_hosts: list[ClientHost] | None  # The hosts that a load came from, if several.
    clients: int  # Connections.
    clock: LoadClock  # When things happened.
    engine: str | None  # Storage engine as the server reports it.
    errors: list[ErrorCount]  # Refused and lost statements.
    events: int  # Events finished.
    io: str | None  # What waited for the sockets.
    io_threads: int  # Threads that shared the connections.
    iteration: int  # From 1 for the same engine and number of clients.
    kind: str  # The verb.
    latency_ns: Summary  # From the moment an event was due until it was finished.
    load: str  # Which load of the verb.
    loop: Pace  # When events start.
    network: LoadNetwork | None  # Of the connections, where they are by TCP.
    offered: int | None  # Events that an open loop offered.
    offered_per_second: float | None  # The same a second, of the time in which it did.
    operations: dict[str, Summary]  # Latencies by kind of statement.
    phases: list[Phase]  # Parts of its work that came.
    queries: int  # Queries answered without an error.
    queries_dropped: int  # Queries that an even split among the clients left out.
    queries_planned: int | None  # Queries that the workload meant to send; none where only time bounds it.
    reconnects: int  # New connections in place of old ones.
    rows: int  # Rows added.
    seconds_real: float  # Length of the measurement.
    seconds_sys: float  # CPU time of the generator in the kernel.
    seconds_user: float  # CPU time of the generator in its own code.
    server_version: str  # Version text of the server.
    share: LoadShare | None  # Which part of a load it was; none where it was all of it.
    # How long after they were due events started for which a client was free: the generator's own lateness.
    start_lateness_ns: Summary | None
    threads: list[ThreadTime]  # Of each of these threads.
    version: int  # Version of the format.
    warmup_queries: int  # Queries of the warm-up, which are in no other number.
    warmup_steady: bool | None  # Of a warm-up until steady: whether it was, before its bound.


class LoadFile(TypedDict, total=False):
    """The file of `--json`."""

    kind: str  # The verb.
    runs: list[LoadRun]  # The runs of one invocation.
    version: int  # Version of the format.


class Sample(TypedDict, total=False):
    """A sample of the commands that a drive got, a column each."""

    at_s: list[float]  # When each went to the drive, seconds.
    sector: list[int]  # Its first sector.
    share: float  # The share of all commands that it was drawn with.
    write: list[int]  # 1 for a write, 0 for a read.


class Seeks(TypedDict, total=False):
    """Distances from the end of one command to the start of the next."""

    ascending_runs: int  # Commands one after the other without going back.
    backward: list[int]  # Commands behind.
    contiguous: int  # Commands that begin where the one before ended.
    forward: list[int]  # Commands ahead: at place k those from 2^k sectors on, and fewer than 2^(k+1).


class OutcomeSeries(TypedDict, total=False):
    """A value for each interval and column."""

    columns: list[Columns]  # iostat's columns.
    end_s: list[float]  # When each ends, seconds since the load began.
    gauges: dict[str, list[int]]  # How the load stands at its end.
    interval_s: float  # Length of an interval, seconds; the last may be shorter.
    queued: list[int]  # Requests in the queue at its end.
    rates: dict[str, list[float]]  # What the load counts, a second.


class Outcome(TypedDict, total=False):
    """What came of a point; times count from its warm-up's end unless said otherwise."""

    columns: Columns  # iostat's columns.
    commands: int  # Commands that went to the drive, without flushes.
    counts: dict[str, int]  # What the load counted besides, by name.
    flushes: int  # Flushes that the drive finished.
    has_ended: bool  # The load came to its own end.
    load: dict[str, Any]  # What the results must be read with; how a trace was replayed, and what was odd about it.
    measured_s: float  # Time that was counted, seconds.
    queued: int  # Requests in the queue at the end.
    reads: DirectionFigures  # Reads.
    sample: Sample  # Some commands, with their times since the load began.
    scheduler: str  # The scheduler it had.
    seeks: Seeks  # Distances between commands.
    series: OutcomeSeries  # How it went.
    writes: DirectionFigures  # Writes.
