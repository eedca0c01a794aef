//! The results that programs exchange: what Rust writes and Python reads, defined once.
//!
//! `results.schema.json` beside this crate's `Cargo.toml` is the JSON Schema of [`Results`], and Python's types are made
//! from that (`python -m scripts.results`). A test of this file holds the schema to the types.
//!
//! Keys end in their unit. That of a [`Summary`] is in the key that holds it.

use std::borrow::Cow;
use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::summary::{Summary, SummaryNs};

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
    /// The verb.
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
    /// The verb.
    pub kind: String,
    /// Which load of the verb.
    pub load: String,
    /// Storage engine as the server reports it.
    pub engine: Option<String>,
    /// From 1 for the same engine and number of clients.
    pub iteration: u32,
    /// Connections.
    pub clients: u64,
    /// When events start.
    #[serde(rename = "loop")]
    pub pace: Pace,
    /// Events that an open loop offered.
    pub offered: Option<u64>,
    /// The same a second, of the time in which it did.
    pub offered_per_second: Option<f64>,
    /// Events finished a second.
    pub achieved_per_second: f64,
    /// Most events that were due and waited for a client, of an open loop.
    pub backlog_max: Option<u64>,
    /// How many waited at its end.
    pub backlog_end: Option<u64>,
    /// How long after they were due events started for which a client was free: the generator's own lateness.
    pub start_lateness_ns: Option<Summary>,
    /// How long events of a log waited for their session after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<Summary>,
    /// Events finished.
    pub events: u64,
    /// Queries answered without an error.
    pub queries: u64,
    /// Rows added.
    pub rows: u64,
    /// Queries that the workload meant to send; none where only time bounds it.
    pub queries_planned: Option<u64>,
    /// Queries that an even split among the clients left out.
    pub queries_dropped: u64,
    /// Queries of the warm-up, which are in no other number.
    pub warmup_queries: u64,
    /// Of a warm-up until steady: whether it was, before its bound.
    pub warmup_steady: Option<bool>,
    /// Refused and lost statements.
    pub errors: Vec<ErrorCount>,
    /// New connections in place of old ones.
    pub reconnects: u64,
    /// Why it ended early.
    pub aborted: Option<String>,
    /// When things happened.
    pub clock: LoadClock,
    /// Length of the measurement.
    pub seconds_real: f64,
    /// CPU time of the generator in its own code.
    pub seconds_user: f64,
    /// CPU time of the generator in the kernel.
    pub seconds_sys: f64,
    /// Which part of a load it was; none where it was all of it.
    pub share: Option<LoadShare>,
    /// What waited for the sockets.
    pub io: Option<String>,
    /// Threads that shared the connections.
    pub io_threads: u64,
    /// Of each of these threads.
    pub threads: Vec<ThreadTime>,
    /// Of the connections, where they are by TCP.
    pub network: Option<LoadNetwork>,
    /// From the moment an event was due until it was finished.
    pub latency_ns: Summary,
    /// Latencies by kind of statement.
    pub operations: BTreeMap<String, Summary>,
    /// Parts of its work that came.
    pub phases: Vec<Phase>,
    /// Version text of the server.
    pub server_version: String,
    /// The hosts that a load came from, if several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_hosts: Option<Vec<ClientHost>>,
    /// What only one kind of load reports.
    #[serde(flatten)]
    pub particulars: Map<String, Value>,
}

/// When the events of a load start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Pace {
    /// "open", "closed" or "logged".
    pub kind: Cow<'static, str>,
    /// Events a second that an open loop offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Pause of a client between two events of a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_seconds: Option<f64>,
    /// "fixed" or "exponential".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing: Option<Cow<'static, str>>,
    /// How many times as fast as logged; 0 as fast as it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// How often the server answered with one error code to one kind of statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ErrorCount {
    /// The server's code; 2013 for a connection that was lost, 1159 where a reply did not end.
    pub code: u16,
    /// Five characters.
    pub sqlstate: String,
    /// The first message with this code.
    pub message: String,
    /// The kind of statement that was refused.
    pub operation: String,
    /// How often.
    pub count: u64,
}

/// When things happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadClock {
    /// Always `CLOCK_MONOTONIC`.
    pub source: Cow<'static, str>,
    /// When the start was asked for by `--start-file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_asked_ns: Option<u64>,
    /// All clients were released: the last thread of them.
    pub measure_start_ns: u64,
    /// The last reply was complete.
    pub measure_end_ns: u64,
    /// Time it took to connect and log in all clients.
    pub connect_ns: u64,
    /// Time of the warm-up before the start; 0 for none.
    pub warmup_ns: u64,
}

/// The part of a load that one process offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadShare {
    /// Which of how many, such as "2/3".
    pub part: String,
    /// Connections of all parts together.
    pub clients_of_all: u64,
}

/// What the kernel gave one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ThreadTime {
    /// It ran.
    pub cpu_seconds: f64,
    /// It could have run, and others did; none where the kernel does not count it.
    pub wait_seconds: Option<f64>,
}

/// The network of a run: its connections by TCP at the end, and what was counted since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoadNetwork {
    /// Of TCP, at the end.
    pub connections: u64,
    /// Smoothed round trips, the connections' median; with the server's work in it.
    pub rtt_us_median: u32,
    /// The longest of them.
    pub rtt_us_max: u32,
    /// The least that any connection had in the last minutes.
    pub rtt_us_min: Option<u32>,
    /// Segments sent again between start and end.
    pub retransmits: u64,
    /// Through which the first connection goes.
    pub interface: Option<String>,
    /// Its speed, Mbit/s; none where it has none.
    pub interface_megabits: Option<u64>,
    /// All that it received between start and end, others' bytes too.
    pub received_bytes: Option<u64>,
    /// All that it sent.
    pub sent_bytes: Option<u64>,
}

/// A phase of a run, from its first statement to the end of its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Phase {
    /// Its name.
    pub name: Cow<'static, str>,
    /// `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub end_ns: u64,
}

/// One of several hosts that a load came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ClientHost {
    /// Its name.
    pub host: String,
    /// Connections from there.
    pub clients: u64,
    /// Events that it finished.
    pub events_per_second: f64,
    /// Queries that it had answered.
    pub queries_per_second: f64,
    /// The 99th percentile of its events.
    pub latency_ms_p99: Option<f64>,
    /// That of the events of all others.
    pub latency_ms_p99_of_others: Option<f64>,
    /// How far from the agreed moment it started.
    pub start_off_us: f64,
    /// Within which bound its clock is known.
    pub clock_bound_us: f64,
    /// By how much its clock went from ours meanwhile.
    pub clock_drift_us: f64,
    /// How long it measured.
    pub seconds: f64,
    /// What its busiest thread had of a processor.
    pub thread_cpu_share: Option<f64>,
    /// What a thread waited for one at most, of the time.
    pub thread_wait_share: Option<f64>,
    /// How late it started what was due.
    pub start_lateness_ms_p99: Option<f64>,
    /// Of its connections, where they are by TCP.
    #[serde(flatten)]
    pub network: Option<ClientNetwork>,
}

/// The connections of a client host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ClientNetwork {
    /// Smoothed round trips, the connections' median.
    pub rtt_ms_median: f64,
    /// The least.
    pub rtt_ms_min: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Through which they go.
    pub interface: Option<String>,
    /// What the busier way of it carried, of its speed.
    pub interface_share: Option<f64>,
}

// What an emulated disk reports.

/// All that an emulated disk knows of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DiskFigures {
    /// What it did since the start or the last reset.
    #[serde(flatten)]
    pub requests: DiskRequests,
    /// "instant" or "model".
    pub mode: String,
    /// What the way of a request is taken to be, where its start is not known.
    pub path_ns: u64,
    /// Whether requests are counted from the block layer on.
    pub path_followed: bool,
    /// What an answer takes to the block layer, by what it answers.
    pub path_after_ns: Value,
    /// Time that was spun so that answers leave in time.
    pub spun_seconds: f64,
    /// The most of a processor that it may spin now.
    pub spin_share_max: f64,
    /// The drive that it behaves like.
    pub model: String,
    /// Of that drive's chances.
    pub seed: u64,
    /// "steady" or "fresh".
    pub state: Cow<'static, str>,
    /// "on", "off" or "gone".
    pub power: String,
    /// "none", "volatile" or "protected".
    pub write_cache: String,
    /// Whether a FLUSH makes nothing durable.
    pub flush_ignored: bool,
    /// The inside of the model, by name.
    pub gauges: BTreeMap<String, f64>,
    /// The fast part of the drive's room for writes, if it has one.
    pub fast_cache: Option<FastCache>,
    /// Faults that were put in.
    pub faults: Value,
    /// Requests that wait for their answer.
    pub in_flight: u64,
    /// Size of the disk.
    pub size_bytes: u64,
    /// What was written and still counts.
    pub content_bytes: u64,
    /// Of which not durable.
    pub unflushed_bytes: u64,
    /// Memory or room of a file that holds it, snapshots included.
    pub held_bytes: u64,
    /// The most that may be held.
    pub max_content_bytes: u64,
    /// Names of snapshots.
    pub snapshots: Vec<String>,
    /// Power cuts taken or waited for.
    pub cuts: Value,
    /// The trace that runs.
    pub trace: Value,
    /// CPU time of the disk's process.
    pub cpu_seconds: f64,
    /// What the host granted the process.
    #[serde(flatten)]
    pub granted: Option<DiskGranted>,
}

/// What the host granted the process of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DiskGranted {
    /// Whether its memory stays.
    pub locked_memory: bool,
    /// Whether the kernel knows that it serves a disk.
    pub io_flusher: bool,
    /// Whether it has a real-time priority.
    pub realtime: bool,
}

/// What a disk did, and how well it kept the model's times.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DiskRequests {
    /// Reads that came.
    pub reads: u64,
    /// Writes that came.
    pub writes: u64,
    /// Flushes that came.
    pub flushes: u64,
    /// Discards that came.
    pub discards: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub write_bytes: u64,
    /// From arrival to answer, by kind of request.
    pub service_ns: BTreeMap<Cow<'static, str>, Summary>,
    /// How long after they were to be there answers were.
    pub lateness_ns: Summary,
    /// What requests took from the block layer to the model.
    pub path_before_ns: Summary,
    /// How long before the model's time answers left.
    pub path_taken_ns: Summary,
    /// By how much requests took longer than the model's time.
    pub path_left_ns: Summary,
    /// By how much they took less.
    pub path_early_ns: Summary,
    /// Most requests at a time.
    pub queue_depth_max: u32,
    /// Writes for which there was no room.
    pub enospc_errors: u64,
    /// Requests that failed, by kind.
    pub errors: BTreeMap<Cow<'static, str>, u64>,
}

/// The fast part of a drive's room for writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FastCache {
    /// What it holds on a disk of this size.
    pub bytes: u64,
    /// What it holds on the whole drive.
    pub drive_bytes: Option<u64>,
    /// When a write first found it full, on the monotonic clock.
    pub ran_out_ns: Option<u64>,
    /// In a trial, which has no other clock: the same in seconds since measuring began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_out_s: Option<f64>,
}

// What the probe of the block trace reports.

/// What the requests of a window came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BlockTrace {
    /// What can be added up.
    #[serde(flatten)]
    pub sums: BlockSums,
    /// The window's start and end on the monotonic clock; none for all of the trace.
    pub window_ns: Option<[u64; 2]>,
    /// Empty writes that only asked for a flush.
    pub flushes_asked: u64,
    /// Events or records that were lost.
    pub lost: u64,
    /// Completions whose issue was not seen.
    pub unmatched: u64,
    /// Requests that are not done yet.
    pub open: u32,
    /// "block layer" or the file of an emulated disk's own trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// CPU time of the probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// The file that its events went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
}

/// Sums over a stretch of time; what is unknown is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BlockSums {
    /// Requests issued, by kind.
    pub requests: BTreeMap<Cow<'static, str>, u64>,
    /// Requests done, by kind.
    pub completed: BTreeMap<Cow<'static, str>, u64>,
    /// Bytes issued, by kind.
    pub bytes: BTreeMap<Cow<'static, str>, u64>,
    /// Requests that failed.
    pub errors: u64,
    /// From when the first bio of a request was queued until it was issued, by kind and of reads and writes together.
    pub queue_ms: BTreeMap<Cow<'static, str>, Summary<f64>>,
    /// From issue to completion, likewise.
    pub device_ms: BTreeMap<Cow<'static, str>, Summary<f64>>,
    /// Mean distance from the end of a request to the start of the next.
    pub seek_bytes_mean: Option<f64>,
    /// The share that began where the one before ended.
    pub sequential_ratio: Option<f64>,
    /// The share that did not go back.
    pub ascending_ratio: Option<f64>,
    /// Runs at ascending addresses.
    pub sorted_runs: u64,
    /// Requests of such a run.
    pub sorted_run_requests_mean: Option<f64>,
    /// Requests in the device when one is issued, itself included.
    pub device_depth: MeanAndMax,
    /// Bios that still wait then.
    pub waiting_bios: MeanAndMax,
    /// Bios of the requests issued.
    pub bios: u64,
}

/// What was met at each issue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MeanAndMax {
    /// Its mean.
    pub mean: Option<f64>,
    /// The most.
    pub max: Option<u32>,
}

/// What a recording of events has come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Recorded {
    /// Events written.
    pub events: u64,
    /// Bytes written.
    pub bytes: u64,
    /// From its begin to the last event.
    pub seconds: f64,
    /// Whether the file may not grow any more.
    pub full: bool,
    /// Why it can't be written.
    pub failed: Option<String>,
    /// In a trial: where in it measuring began and ended, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<[f64; 2]>,
}

// What the probe of a host measures.

/// What a host can do by itself.
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
    /// The processors between which it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<[usize; 2]>,
    /// Reads a second by many readers at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// How many readers these were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<usize>,
}

// What came of a simulated point.

/// What came of a point; times count from its warm-up's end unless said otherwise.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Outcome {
    /// The scheduler it had.
    pub scheduler: Cow<'static, str>,
    /// Time that was counted, seconds.
    pub measured_s: f64,
    /// The load came to its own end.
    pub has_ended: bool,
    /// Requests in the queue at the end.
    pub queued: u64,
    /// iostat's columns.
    pub columns: Columns,
    /// Reads.
    pub reads: DirectionFigures,
    /// Writes.
    pub writes: DirectionFigures,
    /// Flushes that the drive finished.
    pub flushes: u64,
    /// Commands that went to the drive, without flushes.
    pub commands: u64,
    /// What the load counted besides, by name.
    pub counts: BTreeMap<Cow<'static, str>, u64>,
    /// Distances between commands.
    pub seeks: Seeks,
    /// How it went.
    pub series: OutcomeSeries,
    /// Some commands, with their times since the load began.
    pub sample: Sample,
    /// What the results must be read with; how a trace was replayed, and what was odd about it.
    pub load: Map<String, Value>,
}

/// Counts of one direction.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DirectionFigures {
    /// Requests completed.
    pub requests: u64,
    /// Bios that joined a request.
    pub merges: u64,
    /// Sectors completed.
    pub sectors: u64,
    /// Of bios, from when they were meant to begin.
    pub latency: SimulatedLatencies,
}

/// Latencies as they leave the simulator.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SimulatedLatencies {
    /// What they come to.
    #[serde(flatten)]
    pub summary: SummaryNs,
    /// All of them: an `HdrHistogram` of three digits, version 2, compressed, in base64.
    pub histogram: String,
}

/// A value for each interval and column.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct OutcomeSeries {
    /// Length of an interval, seconds; the last may be shorter.
    pub interval_s: f64,
    /// When each ends, seconds since the load began.
    pub end_s: Vec<f64>,
    /// iostat's columns.
    pub columns: Vec<Columns>,
    /// Requests in the queue at its end.
    pub queued: Vec<u64>,
    /// What the load counts, a second.
    pub rates: BTreeMap<String, Vec<f64>>,
    /// How the load stands at its end.
    pub gauges: BTreeMap<Cow<'static, str>, Vec<u64>>,
}

/// Distances from the end of one command to the start of the next.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Seeks {
    /// Commands that begin where the one before ended.
    pub contiguous: u64,
    /// Commands ahead: at place k those from 2^k sectors on, and fewer than 2^(k+1).
    pub forward: Vec<u64>,
    /// Commands behind.
    pub backward: Vec<u64>,
    /// Commands one after the other without going back.
    pub ascending_runs: u64,
}

/// A sample of the commands that a drive got, a column each.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Sample {
    /// The share of all commands that it was drawn with.
    pub share: f64,
    /// When each went to the drive, seconds.
    pub at_s: Vec<f64>,
    /// Its first sector.
    pub sector: Vec<u64>,
    /// 1 for a write, 0 for a read.
    pub write: Vec<u8>,
}

/// The columns of `iostat -x`, as sysstat computes them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Columns {
    /// Reads completed a second (`r/s`).
    #[serde(rename = "r/s")]
    pub reads_per_s: f64,
    /// Writes completed a second (`w/s`).
    #[serde(rename = "w/s")]
    pub writes_per_s: f64,
    /// Reads merged a second (`rrqm/s`).
    #[serde(rename = "rrqm/s")]
    pub reads_merged_per_s: f64,
    /// Writes merged a second (`wrqm/s`).
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
    use crate::summary::PERCENTILES;

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
