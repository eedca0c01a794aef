//! The results that programs exchange: what Rust writes and Python reads, defined once.
//!
//! `results.schema.json` beside this crate's `Cargo.toml` is the JSON Schema of [`Results`], and Python's types are
//! made from that (`python -m scripts.results`). A test of this file holds the schema to the types.
//!
//! Keys end in their unit. That of a [`Summary`] is in the key that holds it.

use std::borrow::Cow;
use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::histogram::{Summary, SummaryNs};

/// Everything that is exchanged: the root of the schema.
#[cfg(test)]
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of use")]
struct Results {
    load: LoadFile,
    disk: DiskFigures,
    block_trace: BlockTrace,
    host: HostFigures,
    simulated: Outcome,
}

// What the load generator writes.

/// The file of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadFile {
    /// Version of the format.
    pub version: u32,
    /// The verb of the command line.
    pub kind: String,
    /// The runs of one invocation.
    pub runs: Vec<LoadRun>,
}

/// One measured run: one engine, one number of clients, one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadRun {
    /// Version of the format.
    pub version: u32,
    /// The verb of the command line.
    pub kind: String,
    /// The load, if the verb has several.
    pub load: String,
    /// Storage engine as the server reports it.
    pub engine: Option<String>,
    /// Number of the run among those with the same engine and number of clients, from 1.
    pub iteration: u32,
    /// Number of connections.
    pub clients: u64,
    /// When events start.
    #[serde(rename = "loop")]
    pub pace: Pace,
    /// Events that an open loop offered.
    pub offered: Option<u64>,
    /// Events that an open loop offered per second of the time in which it offered any.
    pub offered_per_second: Option<f64>,
    /// Events finished per second.
    pub achieved_per_second: f64,
    /// The most events of an open loop that were due and waited for a client at one time.
    pub backlog_max: Option<u64>,
    /// Events of an open loop that were due and waited for a client at the end.
    pub backlog_end: Option<u64>,
    /// The generator's own lateness: from when an event was due until it started, if a client was free.
    pub start_lateness_ns: Option<Summary>,
    /// From when an event of a log was due until its session was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<Summary>,
    /// Events finished.
    pub events: u64,
    /// Queries answered without an error.
    pub queries: u64,
    /// Rows added.
    pub rows: u64,
    /// Queries that the workload meant to send; null if only time bounds it.
    pub queries_planned: Option<u64>,
    /// Queries that an even split among the clients left out.
    pub queries_dropped: u64,
    /// Queries of the warm-up; no other number includes them.
    pub warmup_queries: u64,
    /// Whether the warm-up until steady became steady before its time limit.
    pub warmup_steady: Option<bool>,
    /// Statements that were refused or lost.
    pub errors: Vec<ErrorCount>,
    /// Connections that replaced earlier ones.
    pub reconnects: u64,
    /// Why the run ended early.
    pub aborted: Option<String>,
    /// Moments of the run.
    pub clock: LoadClock,
    /// Length of the measurement.
    pub seconds_real: f64,
    /// CPU time of the generator in its own code.
    pub seconds_user: f64,
    /// CPU time of the generator in the kernel.
    pub seconds_sys: f64,
    /// The part of the load that this process offered; null if it offered all of it.
    pub share: Option<LoadShare>,
    /// How the event loop waited for its sockets.
    pub io: Option<String>,
    /// Number of threads that shared the connections.
    pub io_threads: u64,
    /// CPU time and waiting time of each of these threads.
    pub threads: Vec<ThreadTime>,
    /// Figures of the network, if the connections are TCP.
    pub network: Option<LoadNetwork>,
    /// From when an event was due until it was finished.
    pub latency_ns: Summary,
    /// Latencies by kind of statement.
    pub operations: BTreeMap<String, Summary>,
    /// Phases of the run, in order.
    pub phases: Vec<Phase>,
    /// Version text of the server.
    pub server_version: String,
    /// The hosts that the load came from, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_hosts: Option<Vec<ClientHost>>,
    /// Figures that only this kind of load reports.
    #[serde(flatten)]
    pub particulars: Map<String, Value>,
}

/// When the events of a load start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Pace {
    /// "open", "closed" or "logged".
    pub kind: Cow<'static, str>,
    /// Events per second that an open loop offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Pause of a client between two events of a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_seconds: Option<f64>,
    /// "fixed" or "exponential".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing: Option<Cow<'static, str>>,
    /// How many times as fast as in the log; 0 means as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// How often the server answered one kind of statement with one error code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ErrorCount {
    /// The server's code; 2013 for a connection that was lost, 1159 for a reply that did not end.
    pub code: u16,
    /// The SQLSTATE, five characters.
    pub sqlstate: String,
    /// The first message with this code.
    pub message: String,
    /// The kind of statement that was refused.
    pub operation: String,
    /// Number of such answers.
    pub count: u64,
}

/// Moments of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadClock {
    /// Always `CLOCK_MONOTONIC`.
    pub source: Cow<'static, str>,
    /// When `--start-file` asked for the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_asked_ns: Option<u64>,
    /// When the last thread released its clients.
    pub measure_start_ns: u64,
    /// When the last reply was complete.
    pub measure_end_ns: u64,
    /// Time it took to connect and log in all clients.
    pub connect_ns: u64,
    /// Length of the warm-up before the start; 0 if there was none.
    pub warmup_ns: u64,
}

/// The part of a load that one process offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadShare {
    /// Number of the part and number of all parts, such as "2/3".
    pub part: String,
    /// Connections of all parts together.
    pub clients_of_all: u64,
}

/// Times of one thread, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ThreadTime {
    /// Time that the thread ran.
    pub cpu_seconds: f64,
    /// Time that the thread could have run while others did; null if the kernel does not count it.
    pub wait_seconds: Option<f64>,
}

/// The network of a run: its TCP connections at the end, and counts since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadNetwork {
    /// Number of TCP connections at the end.
    pub connections: u64,
    /// Median over the connections of the smoothed round-trip time, which includes the server's work.
    pub rtt_us_median: u32,
    /// The longest smoothed round-trip time of a connection.
    pub rtt_us_max: u32,
    /// The shortest round trip of any connection in the last minutes.
    pub rtt_us_min: Option<u32>,
    /// Segments that were sent again between start and end.
    pub retransmits: u64,
    /// The network interface of the first connection.
    pub interface: Option<String>,
    /// Speed of the interface, Mbit/s; null if it has none.
    pub interface_megabits: Option<u64>,
    /// Bytes that the interface received between start and end, for other programs too.
    pub received_bytes: Option<u64>,
    /// Bytes that the interface sent between start and end, for other programs too.
    pub sent_bytes: Option<u64>,
}

/// A phase of a run, from its first statement to the end of its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Phase {
    /// Its name.
    pub name: Cow<'static, str>,
    /// When its first statement was sent, on `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When its last statement ended, on `CLOCK_MONOTONIC`.
    pub end_ns: u64,
}

/// One of several hosts that a load came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ClientHost {
    /// Its name.
    pub host: String,
    /// Number of connections from this host.
    pub clients: u64,
    /// Events that it finished per second.
    pub events_per_second: f64,
    /// Queries per second that were answered to it.
    pub queries_per_second: f64,
    /// The 99th percentile of its events.
    pub latency_ms_p99: Option<f64>,
    /// The 99th percentile of the events of all other hosts.
    pub latency_ms_p99_of_others: Option<f64>,
    /// Distance of its start from the agreed moment.
    pub start_off_us: f64,
    /// Uncertainty of the offset of its clock.
    pub clock_bound_us: f64,
    /// Change of the offset of its clock during the run.
    pub clock_drift_us: f64,
    /// Length of its measurement.
    pub seconds: f64,
    /// Share of a processor that its busiest thread used.
    pub thread_cpu_share: Option<f64>,
    /// Largest share of the time that a thread of it waited for a processor.
    pub thread_wait_share: Option<f64>,
    /// The 99th percentile of the time from when an event was due until it started.
    pub start_lateness_ms_p99: Option<f64>,
    /// Figures of its connections, if they are TCP.
    #[serde(flatten)]
    pub network: Option<ClientNetwork>,
}

/// The connections of a client host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ClientNetwork {
    /// Median over the connections of the smoothed round-trip time.
    pub rtt_ms_median: f64,
    /// The shortest round trip.
    pub rtt_ms_min: Option<f64>,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// The network interface of the connections.
    pub interface: Option<String>,
    /// Share of the interface's speed that its busier direction used.
    pub interface_share: Option<f64>,
}

// What an emulated disk reports.

/// State and figures of an emulated disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DiskFigures {
    /// What it did since the start or the last reset.
    #[serde(flatten)]
    pub requests: DiskRequests,
    /// "instant" or "model".
    pub mode: String,
    /// Time that a request is taken to need on its way to the disk, if its start is not known.
    pub path_ns: u64,
    /// Whether each request is followed in the block layer, so that its time counts from there.
    pub path_followed: bool,
    /// Time that an answer needs up to the block layer, by kind of request.
    pub path_after_ns: Value,
    /// CPU time that was spent spinning so that answers leave in time.
    pub spun_seconds: f64,
    /// Largest share of a processor that may be spent spinning now.
    pub spin_share_max: f64,
    /// The drive that is emulated.
    pub model: String,
    /// Seed of the drive's random numbers.
    pub seed: u64,
    /// "steady" or "fresh".
    pub state: Cow<'static, str>,
    /// "on", "off" or "gone".
    pub power: String,
    /// "none", "volatile" or "protected".
    pub write_cache: String,
    /// Whether a FLUSH leaves the write cache as it is.
    pub flush_ignored: bool,
    /// Internal state of the model, by name.
    pub gauges: BTreeMap<String, f64>,
    /// The fast part of the drive's flash, if it has one.
    pub fast_cache: Option<FastCache>,
    /// Faults that are injected.
    pub faults: Value,
    /// Requests that wait for their answer.
    pub in_flight: u64,
    /// Size of the disk.
    pub size_bytes: u64,
    /// Bytes that were written and not discarded.
    pub content_bytes: u64,
    /// Bytes of the content that are not durable.
    pub unflushed_bytes: u64,
    /// Memory, or space of a file, that holds the content, snapshots included.
    pub held_bytes: u64,
    /// The most content that may be held.
    pub max_content_bytes: u64,
    /// Names of snapshots.
    pub snapshots: Vec<String>,
    /// Power cuts that were taken or are awaited.
    pub cuts: Value,
    /// The trace that is being written.
    pub trace: Value,
    /// CPU time of the disk's process.
    pub cpu_seconds: f64,
    /// What the host granted the disk's process.
    #[serde(flatten)]
    pub granted: Option<DiskGranted>,
}

/// What the host granted the process of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DiskGranted {
    /// Whether its memory is locked.
    pub locked_memory: bool,
    /// Whether the kernel knows that it serves a disk.
    pub io_flusher: bool,
    /// Whether it has a real-time priority.
    pub realtime: bool,
}

/// Requests that a disk served, and how well it kept the model's times.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DiskRequests {
    /// Reads received.
    pub reads: u64,
    /// Writes received.
    pub writes: u64,
    /// Flushes received.
    pub flushes: u64,
    /// Discards received.
    pub discards: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// From arrival to answer, by kind of request.
    pub service_ns: BTreeMap<Cow<'static, str>, Summary>,
    /// How long after their due time answers were given.
    pub lateness_ns: Summary,
    /// Time that requests took from the block layer to the model.
    pub path_before_ns: Summary,
    /// How long before the model's time answers left, to make up for their way.
    pub path_taken_ns: Summary,
    /// By how much requests took longer than the model's time.
    pub path_left_ns: Summary,
    /// By how much requests took less than the model's time.
    pub path_early_ns: Summary,
    /// The most requests at one time.
    pub queue_depth_max: u32,
    /// Writes that failed for lack of space.
    pub enospc_errors: u64,
    /// Requests that failed, by kind.
    pub errors: BTreeMap<Cow<'static, str>, u64>,
}

/// The fast part of a drive's flash.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FastCache {
    /// Its capacity on a disk of this size.
    pub bytes: u64,
    /// Its capacity on the whole drive.
    pub drive_bytes: Option<u64>,
    /// When a write first found it full, on the monotonic clock.
    pub ran_out_ns: Option<u64>,
    /// The same in seconds since measuring began; of a trial only, which has no monotonic time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_out_s: Option<f64>,
}

// What the probe of the block trace reports.

/// Figures of the requests in a window of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BlockTrace {
    /// Counts and times that can be added up.
    #[serde(flatten)]
    pub sums: BlockSums,
    /// Start and end of the window on the monotonic clock; null for the whole trace.
    pub window_ns: Option<[u64; 2]>,
    /// Writes without data that only ask for a flush.
    pub flushes_asked: u64,
    /// Events or records that were lost.
    pub lost: u64,
    /// Completions whose issue is not in the trace.
    pub unmatched: u64,
    /// Requests that are not completed yet.
    pub open: u32,
    /// "block layer", or the file of an emulated disk's own trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// CPU time of the probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// The file to which the events were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
}

/// Sums over a window of time; what is unknown is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BlockSums {
    /// Requests issued, by kind.
    pub requests: BTreeMap<Cow<'static, str>, u64>,
    /// Requests completed, by kind.
    pub completed: BTreeMap<Cow<'static, str>, u64>,
    /// Bytes issued, by kind.
    pub bytes: BTreeMap<Cow<'static, str>, u64>,
    /// Requests that failed.
    pub errors: u64,
    /// From when a request's first bio was queued until it was issued, by kind and for reads and writes together.
    pub queue_ms: BTreeMap<Cow<'static, str>, Summary<f64>>,
    /// From issue to completion, by kind and for reads and writes together.
    pub device_ms: BTreeMap<Cow<'static, str>, Summary<f64>>,
    /// Mean distance from the end of a request to the start of the next.
    pub seek_bytes_mean: Option<f64>,
    /// Share of requests that begin where the one before ended.
    pub sequential_ratio: Option<f64>,
    /// Share of requests that begin at or after the start of the one before.
    pub ascending_ratio: Option<f64>,
    /// Number of runs of requests at ascending addresses.
    pub sorted_runs: u64,
    /// Mean number of requests in such a run.
    pub sorted_run_requests_mean: Option<f64>,
    /// Requests in the device when one is issued, including that one.
    pub device_depth: MeanAndMax,
    /// Bios that wait when a request is issued.
    pub waiting_bios: MeanAndMax,
    /// Bios of the issued requests.
    pub bios: u64,
}

/// A number that is looked at whenever a request is issued.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MeanAndMax {
    /// The mean.
    pub mean: Option<f64>,
    /// The maximum.
    pub max: Option<u32>,
}

/// State of a recording of events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Recorded {
    /// Events written.
    pub events: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Time from the start of the recording to its last event.
    pub seconds: f64,
    /// Whether the file has reached its size limit.
    pub full: bool,
    /// Why the file can't be written.
    pub failed: Option<String>,
    /// Of a trial only: when measuring began and ended, in seconds of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<[f64; 2]>,
}

// What the probe of a host measures.

/// Times that a host takes by itself.
#[cfg(test)]
#[derive(JsonSchema)]
#[allow(dead_code, reason = "they are said one by one, as each is measured")]
struct HostFigures {
    wake_up: HostTimes,
    timer: HostTimes,
    disk: HostTimes,
}

/// Times that were measured on a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct HostTimes {
    /// The times.
    #[serde(flatten)]
    pub times: SummaryNs,
    /// The two processors between which it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<[usize; 2]>,
    /// Reads per second of several readers at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// Number of these readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<usize>,
}

// What came of a simulated point.

/// Outcome of a simulated point; times count from the end of its warm-up unless said otherwise.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Outcome {
    /// Name of the I/O scheduler.
    pub scheduler: Cow<'static, str>,
    /// Length of the measurement, seconds.
    pub measured_s: f64,
    /// Whether the load came to its own end.
    pub has_ended: bool,
    /// Requests in the queue at the end.
    pub queued: u64,
    /// Figures in the columns of iostat.
    pub columns: Columns,
    /// Reads.
    pub reads: DirectionFigures,
    /// Writes.
    pub writes: DirectionFigures,
    /// Flushes that the drive completed.
    pub flushes: u64,
    /// Commands sent to the drive, flushes excluded.
    pub commands: u64,
    /// Other counts of the load, by name.
    pub counts: BTreeMap<Cow<'static, str>, u64>,
    /// Distances between commands.
    pub seeks: Seeks,
    /// The course of time, by interval.
    pub series: OutcomeSeries,
    /// A sample of the commands, with their times since the load began.
    pub sample: Sample,
    /// Remarks on the results: how a trace was replayed, and what was odd about it.
    pub load: Map<String, Value>,
}

/// Figures of one direction.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DirectionFigures {
    /// Requests completed.
    pub requests: u64,
    /// Bios that were merged into a request.
    pub merges: u64,
    /// Sectors completed.
    pub sectors: u64,
    /// Latencies of bios, from when they were due.
    pub latency: SimulatedLatencies,
}

/// Latencies as the simulator reports them.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SimulatedLatencies {
    /// Summary of the latencies.
    #[serde(flatten)]
    pub summary: SummaryNs,
    /// All latencies: an `HdrHistogram` of three digits, version 2, compressed, in base64.
    pub histogram: String,
}

/// Values by interval and column.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct OutcomeSeries {
    /// Length of an interval, seconds; the last may be shorter.
    pub interval_s: f64,
    /// End of each interval, seconds since the load began.
    pub end_s: Vec<f64>,
    /// Figures in the columns of iostat.
    pub columns: Vec<Columns>,
    /// Requests in the queue at the end of the interval.
    pub queued: Vec<u64>,
    /// Counts of the load per second, by name.
    pub rates: BTreeMap<String, Vec<f64>>,
    /// State of the load at the end of the interval, by name.
    pub gauges: BTreeMap<Cow<'static, str>, Vec<u64>>,
}

/// Distances from the end of one command to the start of the next.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Seeks {
    /// Commands that begin where the one before ended.
    pub contiguous: u64,
    /// Commands that begin ahead of that: place k counts distances of at least 2^k and less than 2^(k+1) sectors.
    pub forward: Vec<u64>,
    /// Commands that begin behind that, counted in the same way.
    pub backward: Vec<u64>,
    /// Runs of commands at ascending addresses.
    pub ascending_runs: u64,
}

/// A sample of the commands sent to a drive, one list per column.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Sample {
    /// Share of all commands that is in the sample.
    pub share: f64,
    /// When each command went to the drive, seconds.
    pub at_s: Vec<f64>,
    /// First sector of each command.
    pub sector: Vec<u64>,
    /// 1 for a write, 0 for a read.
    pub write: Vec<u8>,
}

/// The columns of `iostat -x`, as sysstat computes them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Columns {
    /// Reads completed per second (`r/s`).
    #[serde(rename = "r/s")]
    pub reads_per_s: f64,
    /// Writes completed per second (`w/s`).
    #[serde(rename = "w/s")]
    pub writes_per_s: f64,
    /// Reads merged per second (`rrqm/s`).
    #[serde(rename = "rrqm/s")]
    pub reads_merged_per_s: f64,
    /// Writes merged per second (`wrqm/s`).
    #[serde(rename = "wrqm/s")]
    pub writes_merged_per_s: f64,
    /// KiB read a second (`rkB/s`).
    #[serde(rename = "rkB/s")]
    pub read_kib_per_s: f64,
    /// KiB written a second (`wkB/s`).
    #[serde(rename = "wkB/s")]
    pub written_kib_per_s: f64,
    /// Sectors of a request (`avgrq-sz`).
    #[serde(rename = "avgrq-sz")]
    pub request_sectors_mean: f64,
    /// Requests in the queue (`aqu-sz`, formerly `avgqu-sz`).
    #[serde(rename = "aqu-sz")]
    pub queue_requests_mean: f64,
    /// Milliseconds from allocation to completion of a request (`await`).
    #[serde(rename = "await")]
    pub wait_ms_mean: f64,
    /// The same of reads (`r_await`).
    #[serde(rename = "r_await")]
    pub read_wait_ms_mean: f64,
    /// The same of writes (`w_await`).
    #[serde(rename = "w_await")]
    pub write_wait_ms_mean: f64,
    /// Busy milliseconds a request (`svctm`).
    #[serde(rename = "svctm")]
    pub service_ms_mean: f64,
    /// Percent of the time with a request in the queue (`%util`).
    #[serde(rename = "%util")]
    pub busy_percent: f64,
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};

    use super::*;
    use crate::histogram::PERCENTILES;

    // Which percentiles there are is no part of the schema: each value of a summary is a number or none.
    impl<T> JsonSchema for Summary<T> {
        fn schema_name() -> Cow<'static, str> {
            "Summary".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "What a histogram comes to: count, min, mean, max and percentiles such as p99; the key that \
                                holds it ends in its unit.",
                "type": "object",
                "additionalProperties": {"type": ["number", "null"]},
            })
        }
    }

    impl JsonSchema for SummaryNs {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "SummaryNs".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            #[derive(JsonSchema)]
            #[allow(dead_code, reason = "only its schema is of use")]
            struct Named {
                /// How many.
                count: u64,
                /// The least; 0 of none, as the others.
                min_ns: u64,
                /// Their mean.
                mean_ns: f64,
                /// The median.
                p50_ns: u64,
                /// The 99th percentile; other percentiles are beside it.
                p99_ns: u64,
                /// The largest.
                max_ns: u64,
            }
            Named::json_schema(generator)
        }
    }

    #[test]
    fn the_schema_is_that_of_the_types() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/results.schema.json");
        let schema = format!("{:#}\n", serde_json::to_value(schema_for!(Results)).unwrap());
        if env::var_os("DBDYNO_WRITE_SCHEMA").is_some() {
            fs::write(file, &schema).unwrap();
        }
        let is_same = fs::read_to_string(file).is_ok_and(|committed| committed == schema);
        assert!(is_same, "results.schema.json is not that of the types; write it anew: make results");
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let summary = Summary {
            count: 1,
            min: Some(1),
            mean: Some(1.0),
            max: Some(1),
            percentiles: [Some(1); PERCENTILES.len()],
        };
        let run = serde_json::json!({
            "version": 2, "kind": "oltp", "load": "read_only", "engine": null, "iteration": 1, "clients": 2,
            "loop": {"kind": "open", "rate": 5.0, "spacing": "fixed"}, "offered": 3, "offered_per_second": 3.0,
            "achieved_per_second": 2.0, "backlog_max": 1, "backlog_end": 0, "start_lateness_ns": null, "events": 1,
            "queries": 1, "rows": 0, "queries_planned": null, "queries_dropped": 0, "warmup_queries": 0,
            "warmup_steady": null, "errors": [], "reconnects": 0, "aborted": null,
            "clock": {"source": "CLOCK_MONOTONIC", "measure_start_ns": 1, "measure_end_ns": 2, "connect_ns": 0,
                      "warmup_ns": 0},
            "seconds_real": 1.0, "seconds_user": 0.5, "seconds_sys": 0.25, "share": null, "io": "epoll", "io_threads": 1,
            "threads": [], "network": null, "latency_ns": summary, "operations": {"select": summary}, "phases": [],
            "server_version": "8.4.2", "replay": {"form": "slow query log"},
        });
        let read: LoadRun = serde_json::from_value(run.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), run);
    }
}
