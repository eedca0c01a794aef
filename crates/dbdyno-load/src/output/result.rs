//! The result of a run, as its JSON file has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::Cpu;
use crate::error::Error;
use crate::latency::{Latencies, Summary};
use crate::measure::{ErrorCount, Gauges, Span, Tally};
use crate::run_options::{Loop, Spacing};
use crate::statements::Kind;

/// Version of the file's format.
const VERSION: u32 = 2;

/// When things happened; nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Clock {
    /// Always `CLOCK_MONOTONIC`.
    pub source: &'static str,
    /// All clients were released.
    pub measure_start_ns: u64,
    /// The last reply was complete.
    pub measure_end_ns: u64,
    /// Time it took to connect and log in all clients.
    pub connect_ns: u64,
    /// Time of the warm-up before the start; 0 for none.
    pub warmup_ns: u64,
}

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Phase {
    name: String,
    start_ns: u64,
    end_ns: u64,
}

impl Phase {
    /// Of this name, from its first statement to the end of its last.
    pub fn new(name: &str, span: Span) -> Self {
        Self { name: name.into(), start_ns: span.start_ns, end_ns: span.end_ns }
    }

    /// Its length.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// One measured run: one engine, one number of clients, one iteration.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Workload.
    pub kind: &'static str,
    /// Which load of it.
    pub load: String,
    /// Storage engine, as the server reports it.
    pub engine: Option<String>,
    /// Storage engine as asked for.
    pub engine_asked: Option<String>,
    /// From 1.
    pub iteration: u32,
    /// Connections.
    pub clients: usize,
    /// When events started.
    pub pace: Loop,
    /// Kinds of statement.
    pub kinds: Arc<[Kind]>,
    /// Queries asked for; `None` for a run bounded by time.
    pub queries_planned: Option<u64>,
    /// Queries that an even split among the clients left out.
    pub queries_dropped: u64,
    /// Queries of the warm-up; in no other number.
    pub warmup_queries: u64,
    /// What was counted.
    pub tally: Tally,
    /// The open loop at its end.
    pub gauges: Gauges,
    /// How long after they were due events started for which a client was free: our own lateness.
    pub lateness: Latencies,
    /// Refused and lost statements.
    pub errors: Vec<ErrorCount>,
    /// Phases that came.
    pub phases: Vec<Phase>,
    /// Why it ended early.
    pub aborted: Option<String>,
    /// When.
    pub clock: Clock,
    /// CPU time of this process between start and end.
    pub cpu: Cpu,
    /// What waited for the sockets.
    pub io: &'static str,
    /// Why it was not the better one.
    pub io_note: Option<String>,
    /// Threads that shared the connections.
    pub io_threads: usize,
    /// Version text of the server.
    pub server_version: String,
}

impl RunResult {
    /// Queries answered without an error.
    pub fn queries(&self) -> u64 {
        self.tally.queries(&self.kinds)
    }

    /// Length of the measurement, seconds.
    pub fn seconds_real(&self) -> f64 {
        self.clock.measure_end_ns.saturating_sub(self.clock.measure_start_ns) as f64 / 1e9
    }

    /// Per second of the run.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds_real().max(1e-9)
    }

    /// Events that an open loop offered per second, of the time in which it did.
    pub fn offered_per_second(&self) -> f64 {
        self.gauges.offered as f64 * 1e9 / (self.gauges.offered_for_ns as f64).max(1.0)
    }

    fn json(&self) -> RunJson<'_> {
        let counted = self.kinds.iter().zip(&self.tally.kinds);
        let open = matches!(self.pace, Loop::Open { .. });
        RunJson {
            version: VERSION,
            kind: self.kind,
            load: &self.load,
            engine: self.engine.as_deref(),
            iteration: self.iteration,
            clients: self.clients,
            pace: self.pace.into(),
            offered: open.then_some(self.gauges.offered),
            offered_per_second: open.then(|| self.offered_per_second()),
            achieved_per_second: self.per_second(self.tally.events.count()),
            backlog_max: open.then_some(self.gauges.backlog_max),
            backlog_end: open.then_some(self.gauges.backlog),
            start_lateness_ns: (self.lateness.count() > 0).then(|| self.lateness.summary()),
            events: self.tally.events.count(),
            queries: self.queries(),
            rows: self.tally.rows,
            queries_planned: self.queries_planned,
            queries_dropped: self.queries_dropped,
            warmup_queries: self.warmup_queries,
            errors: &self.errors,
            reconnects: self.tally.reconnects,
            aborted: self.aborted.as_deref(),
            clock: self.clock,
            seconds_real: self.seconds_real(),
            seconds_user: self.cpu.user_us as f64 / 1e6,
            seconds_sys: self.cpu.sys_us as f64 / 1e6,
            io: self.io,
            io_threads: self.io_threads,
            latency_ns: self.tally.events.summary(),
            operations: counted
                .filter(|(_, latencies)| latencies.count() > 0)
                .map(|(kind, latencies)| (kind.name.as_str(), latencies.summary()))
                .collect(),
            phases: &self.phases,
            server_version: &self.server_version,
        }
    }
}

/// How events started.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum LoopJson {
    Closed { think_seconds: f64, spacing: &'static str },
    Open { rate: f64, spacing: &'static str },
}

impl From<Loop> for LoopJson {
    fn from(pace: Loop) -> Self {
        let name = |spacing| if spacing == Spacing::Fixed { "fixed" } else { "exponential" };
        match pace {
            Loop::Closed { think, spacing } => {
                Self::Closed { think_seconds: think.as_secs_f64(), spacing: name(spacing) }
            }
            Loop::Open { rate, spacing } => Self::Open { rate, spacing: name(spacing) },
        }
    }
}

#[derive(Serialize)]
struct RunJson<'a> {
    version: u32,
    kind: &'a str,
    load: &'a str,
    engine: Option<&'a str>,
    iteration: u32,
    clients: usize,
    #[serde(rename = "loop")]
    pace: LoopJson,
    offered: Option<u64>,
    offered_per_second: Option<f64>,
    achieved_per_second: f64,
    backlog_max: Option<u64>,
    backlog_end: Option<u64>,
    start_lateness_ns: Option<Summary>,
    events: u64,
    queries: u64,
    rows: u64,
    queries_planned: Option<u64>,
    queries_dropped: u64,
    warmup_queries: u64,
    errors: &'a [ErrorCount],
    reconnects: u64,
    aborted: Option<&'a str>,
    clock: Clock,
    seconds_real: f64,
    seconds_user: f64,
    seconds_sys: f64,
    io: &'a str,
    io_threads: usize,
    latency_ns: Summary,
    operations: BTreeMap<&'a str, Summary>,
    phases: &'a [Phase],
    server_version: &'a str,
}

#[derive(Serialize)]
struct FileJson<'a> {
    version: u32,
    kind: &'a str,
    runs: Vec<RunJson<'a>>,
}

/// Writes `runs` to `path` as JSON.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, kind: &str, runs: &[RunResult]) -> Result<(), Error> {
    let file = FileJson { version: VERSION, kind, runs: runs.iter().map(RunResult::json).collect() };
    let failed = |error: std::io::Error| Error::File(path.to_owned(), error);
    let mut text = serde_json::to_string_pretty(&file).map_err(|error| failed(error.into()))?;
    text.push('\n');
    fs::write(path, text).map_err(failed)
}
