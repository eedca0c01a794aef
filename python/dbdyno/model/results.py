"""What programs exchange, as `crates/dbdyno-common/src/results.rs` defines it; written by `make results`.

Values are of a JSON document. One that another version of a program wrote may lack a key, so every key may be missing.
"""

from typing import Any, TypedDict

# What a histogram comes to: count, min, mean, max, and percentiles such as p99. The key that holds it ends in its unit.
Summary = dict[str, float | None]


class MeanAndMax(TypedDict, total=False):
    """A number that is looked at whenever a request is issued."""

    max: int | None  # The maximum.
    mean: float | None  # The mean.


class Recorded(TypedDict, total=False):
    """State of a recording of events."""

    bytes: int  # Bytes written.
    events: int  # Events written.
    failed: str | None  # Why the file can't be written.
    full: bool  # Whether the file has reached its size limit.
    measured_s: list[float] | None  # Of a trial only: when measuring began and ended, in seconds of the recording.
    seconds: float  # Time from the start of the recording to its last event.


class BlockTrace(TypedDict, total=False):
    """Figures of the requests in a window of time."""

    ascending_ratio: float | None  # Share of requests that begin at or after the start of the one before.
    bios: int  # Bios of the issued requests.
    bytes: dict[str, int]  # Bytes issued, by kind.
    completed: dict[str, int]  # Requests completed, by kind.
    cpu_seconds: float | None  # CPU time of the probe.
    device: str | None  # The block device.
    device_depth: MeanAndMax  # Requests in the device when one is issued, including that one.
    device_ms: dict[str, Summary]  # From issue to completion, by kind and for reads and writes together.
    errors: int  # Requests that failed.
    flushes_asked: int  # Writes without data that only ask for a flush.
    lost: int  # Events or records that were lost.
    open: int  # Requests that are not completed yet.
    # From when a request's first bio was queued until it was issued, by kind and for reads and writes together.
    queue_ms: dict[str, Summary]
    recorded: Recorded | None  # The file to which the events were written.
    requests: dict[str, int]  # Requests issued, by kind.
    seek_bytes_mean: float | None  # Mean distance from the end of a request to the start of the next.
    sequential_ratio: float | None  # Share of requests that begin where the one before ended.
    sorted_run_requests_mean: float | None  # Mean number of requests in such a run.
    sorted_runs: int  # Number of runs of requests at ascending addresses.
    source: str | None  # "block layer", or the file of an emulated disk's own trace.
    unmatched: int  # Completions whose issue is not in the trace.
    waiting_bios: MeanAndMax  # Bios that wait when a request is issued.
    window_ns: list[int] | None  # Start and end of the window on the monotonic clock; null for the whole trace.


class ClientHost(TypedDict, total=False):
    """One of several hosts that a load came from."""

    clients: int  # Number of connections from this host.
    clock_bound_us: float  # Uncertainty of the offset of its clock.
    clock_drift_us: float  # Change of the offset of its clock during the run.
    events_per_second: float  # Events that it finished per second.
    host: str  # Its name.
    interface: str | None  # The network interface of the connections.
    interface_share: float | None  # Share of the interface's speed that its busier direction used.
    latency_ms_p99: float | None  # The 99th percentile of its events.
    latency_ms_p99_of_others: float | None  # The 99th percentile of the events of all other hosts.
    queries_per_second: float  # Queries per second that were answered to it.
    retransmits: int  # Segments that were sent again.
    rtt_ms_median: float  # Median over the connections of the smoothed round-trip time.
    rtt_ms_min: float | None  # The shortest round trip.
    seconds: float  # Length of its measurement.
    start_lateness_ms_p99: float | None  # The 99th percentile of the time from when an event was due until it started.
    start_off_us: float  # Distance of its start from the agreed moment.
    thread_cpu_share: float | None  # Share of a processor that its busiest thread used.
    thread_wait_share: float | None  # Largest share of the time that a thread of it waited for a processor.


Columns = dict[str, float]  # The columns of `iostat -x`, as sysstat computes them.


class SimulatedLatencies(TypedDict, total=False):
    """Latencies as the simulator reports them."""

    count: int  # How many.
    histogram: str  # All latencies: an `HdrHistogram` of three digits, version 2, compressed, in base64.
    max_ns: int  # The largest.
    mean_ns: float  # Their mean.
    min_ns: int  # The least; 0 of none, as the others.
    p50_ns: int  # The median.
    p99_ns: int  # The 99th percentile; other percentiles are beside it.


class DirectionFigures(TypedDict, total=False):
    """Figures of one direction."""

    latency: SimulatedLatencies  # Latencies of bios, from when they were due.
    merges: int  # Bios that were merged into a request.
    requests: int  # Requests completed.
    sectors: int  # Sectors completed.


class FastCache(TypedDict, total=False):
    """The fast part of a drive's flash."""

    bytes: int  # Its capacity on a disk of this size.
    drive_bytes: int | None  # Its capacity on the whole drive.
    ran_out_ns: int | None  # When a write first found it full, on the monotonic clock.
    ran_out_s: float | None  # The same in seconds since measuring began; of a trial only, which has no monotonic time.


class DiskFigures(TypedDict, total=False):
    """State and figures of an emulated disk."""

    content_bytes: int  # Bytes that were written and not discarded.
    cpu_seconds: float  # CPU time of the disk's process.
    cuts: Any  # Power cuts that were taken or are awaited.
    discards: int  # Discards received.
    enospc_errors: int  # Writes that failed for lack of space.
    errors: dict[str, int]  # Requests that failed, by kind.
    fast_cache: FastCache | None  # The fast part of the drive's flash, if it has one.
    faults: Any  # Faults that are injected.
    flush_ignored: bool  # Whether a FLUSH leaves the write cache as it is.
    flushes: int  # Flushes received.
    gauges: dict[str, float]  # Internal state of the model, by name.
    held_bytes: int  # Memory, or space of a file, that holds the content, snapshots included.
    in_flight: int  # Requests that wait for their answer.
    io_flusher: bool  # Whether the kernel knows that it serves a disk.
    lateness_ns: Summary  # How long after their due time answers were given.
    locked_memory: bool  # Whether its memory is locked.
    max_content_bytes: int  # The most content that may be held.
    mode: str  # "instant" or "model".
    model: str  # The drive that is emulated.
    path_after_ns: Any  # Time that an answer needs up to the block layer, by kind of request.
    path_before_ns: Summary  # Time that requests took from the block layer to the model.
    path_early_ns: Summary  # By how much requests took less than the model's time.
    path_followed: bool  # Whether each request is followed in the block layer, so that its time counts from there.
    path_left_ns: Summary  # By how much requests took longer than the model's time.
    path_ns: int  # Time that a request is taken to need on its way to the disk, if its start is not known.
    path_taken_ns: Summary  # How long before the model's time answers left, to make up for their way.
    power: str  # "on", "off" or "gone".
    queue_depth_max: int  # The most requests at one time.
    read_bytes: int  # Bytes read.
    reads: int  # Reads received.
    realtime: bool  # Whether it has a real-time priority.
    seed: int  # Seed of the drive's random numbers.
    service_ns: dict[str, Summary]  # From arrival to answer, by kind of request.
    size_bytes: int  # Size of the disk.
    snapshots: list[str]  # Names of snapshots.
    spin_share_max: float  # Largest share of a processor that may be spent spinning now.
    spun_seconds: float  # CPU time that was spent spinning so that answers leave in time.
    state: str  # "steady" or "fresh".
    trace: Any  # The trace that is being written.
    unflushed_bytes: int  # Bytes of the content that are not durable.
    write_bytes: int  # Bytes written.
    write_cache: str  # "none", "volatile" or "protected".
    writes: int  # Writes received.


class ErrorCount(TypedDict, total=False):
    """How often the server answered one kind of statement with one error code."""

    code: int  # The server's code; 2013 for a connection that was lost, 1159 for a reply that did not end.
    count: int  # Number of such answers.
    message: str  # The first message with this code.
    operation: str  # The kind of statement that was refused.
    sqlstate: str  # The SQLSTATE, five characters.


class HostTimes(TypedDict, total=False):
    """Times that were measured on a host."""

    count: int  # How many.
    iops: float | None  # Reads per second of several readers at once.
    max_ns: int  # The largest.
    mean_ns: float  # Their mean.
    min_ns: int  # The least; 0 of none, as the others.
    p50_ns: int  # The median.
    p99_ns: int  # The 99th percentile; other percentiles are beside it.
    processors: list[int] | None  # The two processors between which it was measured.
    readers: int | None  # Number of these readers.


class HostFigures(TypedDict, total=False):
    """Times that a host takes by itself."""

    disk: HostTimes
    timer: HostTimes
    wake_up: HostTimes


class LoadClock(TypedDict, total=False):
    """Moments of a run."""

    connect_ns: int  # Time it took to connect and log in all clients.
    measure_end_ns: int  # When the last reply was complete.
    measure_start_ns: int  # When the last thread released its clients.
    source: str  # Always `CLOCK_MONOTONIC`.
    start_asked_ns: int | None  # When `--start-file` asked for the start.
    warmup_ns: int  # Length of the warm-up before the start; 0 if there was none.


class Pace(TypedDict, total=False):
    """When the events of a load start."""

    kind: str  # "open", "closed" or "logged".
    rate: float | None  # Events per second that an open loop offers.
    spacing: str | None  # "fixed" or "exponential".
    speed: float | None  # How many times as fast as in the log; 0 means as fast as possible.
    think_seconds: float | None  # Pause of a client between two events of a closed loop.


class LoadNetwork(TypedDict, total=False):
    """The network of a run: its TCP connections at the end, and counts since the start."""

    connections: int  # Number of TCP connections at the end.
    interface: str | None  # The network interface of the first connection.
    interface_megabits: int | None  # Speed of the interface, Mbit/s; null if it has none.
    received_bytes: int | None  # Bytes that the interface received between start and end, for other programs too.
    retransmits: int  # Segments that were sent again between start and end.
    rtt_us_max: int  # The longest smoothed round-trip time of a connection.
    rtt_us_median: int  # Median over the connections of the smoothed round-trip time, which includes the server's work.
    rtt_us_min: int | None  # The shortest round trip of any connection in the last minutes.
    sent_bytes: int | None  # Bytes that the interface sent between start and end, for other programs too.


class Phase(TypedDict, total=False):
    """A phase of a run, from its first statement to the end of its last."""

    end_ns: int  # When its last statement ended, on `CLOCK_MONOTONIC`.
    name: str  # Its name.
    start_ns: int  # When its first statement was sent, on `CLOCK_MONOTONIC`.


class LoadShare(TypedDict, total=False):
    """The part of a load that one process offered."""

    clients_of_all: int  # Connections of all parts together.
    part: str  # Number of the part and number of all parts, such as "2/3".


class ThreadTime(TypedDict, total=False):
    """Times of one thread, as the kernel counts them."""

    cpu_seconds: float  # Time that the thread ran.
    # Time that the thread could have run while others did; null if the kernel does not count it.
    wait_seconds: float | None


class LoadRun(TypedDict, total=False):
    """One measured run: one engine, one number of clients, one iteration."""

    aborted: str | None  # Why the run ended early.
    achieved_per_second: float  # Events finished per second.
    backlog_end: int | None  # Events of an open loop that were due and waited for a client at the end.
    backlog_max: int | None  # The most events of an open loop that were due and waited for a client at one time.
    behind_ns: Summary | None  # From when an event of a log was due until its session was free.
    client_hosts: list[ClientHost] | None  # The hosts that the load came from, if there are several.
    clients: int  # Number of connections.
    clock: LoadClock  # Moments of the run.
    engine: str | None  # Storage engine as the server reports it.
    errors: list[ErrorCount]  # Statements that were refused or lost.
    events: int  # Events finished.
    io: str | None  # How the event loop waited for its sockets.
    io_threads: int  # Number of threads that shared the connections.
    iteration: int  # Number of the run among those with the same engine and number of clients, from 1.
    kind: str  # The verb of the command line.
    latency_ns: Summary  # From when an event was due until it was finished.
    load: str  # The load, if the verb has several.
    loop: Pace  # When events start.
    network: LoadNetwork | None  # Figures of the network, if the connections are TCP.
    offered: int | None  # Events that an open loop offered.
    offered_per_second: float | None  # Events that an open loop offered per second of the time in which it offered any.
    operations: dict[str, Summary]  # Latencies by kind of statement.
    phases: list[Phase]  # Phases of the run, in order.
    queries: int  # Queries answered without an error.
    queries_dropped: int  # Queries that an even split among the clients left out.
    queries_planned: int | None  # Queries that the workload meant to send; null if only time bounds it.
    reconnects: int  # Connections that replaced earlier ones.
    rows: int  # Rows added.
    seconds_real: float  # Length of the measurement.
    seconds_sys: float  # CPU time of the generator in the kernel.
    seconds_user: float  # CPU time of the generator in its own code.
    server_version: str  # Version text of the server.
    share: LoadShare | None  # The part of the load that this process offered; null if it offered all of it.
    # The generator's own lateness: from when an event was due until it started, if a client was free.
    start_lateness_ns: Summary | None
    threads: list[ThreadTime]  # CPU time and waiting time of each of these threads.
    version: int  # Version of the format.
    warmup_queries: int  # Queries of the warm-up; no other number includes them.
    warmup_steady: bool | None  # Whether the warm-up until steady became steady before its time limit.


class LoadFile(TypedDict, total=False):
    """The file of `--json`."""

    kind: str  # The verb of the command line.
    runs: list[LoadRun]  # The runs of one invocation.
    version: int  # Version of the format.


class Sample(TypedDict, total=False):
    """A sample of the commands sent to a drive, one list per column."""

    at_s: list[float]  # When each command went to the drive, seconds.
    sector: list[int]  # First sector of each command.
    share: float  # Share of all commands that is in the sample.
    write: list[int]  # 1 for a write, 0 for a read.


class Seeks(TypedDict, total=False):
    """Distances from the end of one command to the start of the next."""

    ascending_runs: int  # Runs of commands at ascending addresses.
    backward: list[int]  # Commands that begin behind that, counted in the same way.
    contiguous: int  # Commands that begin where the one before ended.
    # Commands that begin ahead of that: place k counts distances of at least 2^k and less than 2^(k+1) sectors.
    forward: list[int]


class OutcomeSeries(TypedDict, total=False):
    """Values by interval and column."""

    columns: list[Columns]  # Figures in the columns of iostat.
    end_s: list[float]  # End of each interval, seconds since the load began.
    gauges: dict[str, list[int]]  # State of the load at the end of the interval, by name.
    interval_s: float  # Length of an interval, seconds; the last may be shorter.
    queued: list[int]  # Requests in the queue at the end of the interval.
    rates: dict[str, list[float]]  # Counts of the load per second, by name.


class Outcome(TypedDict, total=False):
    """Outcome of a simulated point; times count from the end of its warm-up unless said otherwise."""

    columns: Columns  # Figures in the columns of iostat.
    commands: int  # Commands sent to the drive, flushes excluded.
    counts: dict[str, int]  # Other counts of the load, by name.
    flushes: int  # Flushes that the drive completed.
    has_ended: bool  # Whether the load came to its own end.
    load: dict[str, Any]  # Remarks on the results: how a trace was replayed, and what was odd about it.
    measured_s: float  # Length of the measurement, seconds.
    queued: int  # Requests in the queue at the end.
    reads: DirectionFigures  # Reads.
    sample: Sample  # A sample of the commands, with their times since the load began.
    scheduler: str  # Name of the I/O scheduler.
    seeks: Seeks  # Distances between commands.
    series: OutcomeSeries  # The course of time, by interval.
    writes: DirectionFigures  # Writes.
