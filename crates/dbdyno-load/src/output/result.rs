//! The result of a run, as its JSON file has it.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::clock::Cpu;
use crate::error::Error;
use crate::measure::{ErrorCount, Latencies, Operation, Summary};

/// Version of the file's format.
const VERSION: u32 = 1;

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
    /// Queries asked for; `None` for a run bounded by time.
    pub queries_planned: Option<u64>,
    /// Queries that an even split among the clients left out.
    pub queries_dropped: u64,
    /// Queries of the warm-up; in no other number.
    pub warmup_queries: u64,
    /// Refused statements.
    pub errors: Vec<ErrorCount>,
    /// Why it ended early.
    pub aborted: Option<String>,
    /// When.
    pub clock: Clock,
    /// CPU time of this process between start and end.
    pub cpu: Cpu,
    /// Latencies of answered statements in the order of [`Operation::ALL`].
    pub operations: [Latencies; 6],
    /// Version text of the server.
    pub server_version: String,
}

impl RunResult {
    /// Latencies of all queries.
    pub fn latencies(&self) -> Latencies {
        let mut all = Latencies::default();
        for (operation, latencies) in Operation::ALL.iter().zip(&self.operations) {
            if operation.is_query() {
                all.add(latencies);
            }
        }
        all
    }

    /// Queries answered without an error.
    pub fn queries(&self) -> u64 {
        let counted = Operation::ALL.iter().zip(&self.operations);
        counted.filter(|(operation, _)| operation.is_query()).map(|(_, latencies)| latencies.count()).sum()
    }

    /// Length of the measurement, seconds.
    pub fn seconds_real(&self) -> f64 {
        (self.clock.measure_end_ns - self.clock.measure_start_ns) as f64 / 1e9
    }

    /// Statements refused.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }

    fn json(&self) -> RunJson<'_> {
        let counted = Operation::ALL.iter().zip(&self.operations);
        RunJson {
            version: VERSION,
            kind: self.kind,
            load: &self.load,
            engine: self.engine.as_deref(),
            iteration: self.iteration,
            clients: self.clients,
            queries_planned: self.queries_planned,
            queries_dropped: self.queries_dropped,
            queries: self.queries(),
            warmup_queries: self.warmup_queries,
            errors: &self.errors,
            aborted: self.aborted.as_deref(),
            clock: self.clock,
            seconds_real: self.seconds_real(),
            seconds_user: self.cpu.user_us as f64 / 1e6,
            seconds_sys: self.cpu.sys_us as f64 / 1e6,
            latency_ns: self.latencies().summary(),
            operations: counted
                .filter(|(_, latencies)| latencies.count() > 0)
                .map(|(operation, latencies)| (operation.name(), latencies.summary()))
                .collect(),
            server_version: &self.server_version,
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
    queries_planned: Option<u64>,
    queries_dropped: u64,
    queries: u64,
    warmup_queries: u64,
    errors: &'a [ErrorCount],
    aborted: Option<&'a str>,
    clock: Clock,
    seconds_real: f64,
    seconds_user: f64,
    seconds_sys: f64,
    latency_ns: Summary,
    operations: std::collections::BTreeMap<&'static str, Summary>,
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
