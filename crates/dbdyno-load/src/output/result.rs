//! The result of a run, as its JSON file has it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dbdyno_common::results::{
    ErrorCount, LoadClock, LoadFile, LoadNetwork, LoadRun, LoadShare, Pace, Phase, ThreadTime,
};
use serde_json::Value;

use crate::clock::Cpu;
use crate::error::Error;
use crate::measure::{Gauges, Latencies, Tally};
use crate::run_options::{Loop, Plan, Spacing};
use crate::share::Share;
use crate::statements::Kind;

/// Version of the file's format.
const VERSION: u32 = 2;

/// One measured run: one engine, one number of clients, one iteration.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// What was to be done.
    pub plan: Plan,
    /// Which load of the verb.
    pub load: String,
    /// Kinds of statement.
    pub kinds: Arc<[Kind]>,
    /// Queries of the warm-up; in no other number.
    pub warmup_queries: u64,
    /// Of a warm-up until steady: whether it was, before its bound.
    pub warmup_steady: Option<bool>,
    /// What was counted.
    pub tally: Tally,
    /// The open loop at its end.
    pub gauges: Gauges,
    /// How long after they were due events started for which a client was free: our own lateness.
    pub lateness: Latencies,
    /// By a log: how long events waited for their session after they were due.
    pub behind: Latencies,
    /// What only this load reports, and under which key.
    pub particulars: Option<(&'static str, Value)>,
    /// Refused and lost statements.
    pub errors: Vec<ErrorCount>,
    /// Phases that came.
    pub phases: Vec<Phase>,
    /// Why it ended early.
    pub aborted: Option<String>,
    /// When.
    pub clock: LoadClock,
    /// CPU time of this process between start and end.
    pub cpu: Cpu,
    /// Of each thread that served connections, between start and end.
    pub threads: Vec<ThreadTime>,
    /// Of the connections, where they are by TCP.
    pub network: Option<LoadNetwork>,
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

    /// The run as programs exchange it.
    pub fn to_load_run(&self) -> LoadRun {
        let (plan, open) = (&self.plan, matches!(self.plan.pace, Loop::Open { .. }).then_some(&self.gauges));
        let counted = self.kinds.iter().zip(&self.tally.kinds).filter(|(_, latencies)| latencies.count() > 0);
        let some = |latencies: &Latencies| (latencies.count() > 0).then(|| latencies.summary());
        LoadRun {
            version: VERSION,
            kind: plan.verb.into(),
            load: self.load.clone(),
            engine: plan.engine.clone(),
            iteration: plan.iteration,
            clients: plan.clients as u64,
            pace: pace(plan.pace),
            offered: open.map(|gauges| gauges.offered),
            offered_per_second: open.map(|_| self.offered_per_second()),
            achieved_per_second: self.per_second(self.tally.events.count()),
            backlog_max: open.map(|gauges| gauges.backlog_max),
            backlog_end: open.map(|gauges| gauges.backlog),
            start_lateness_ns: some(&self.lateness),
            behind_ns: some(&self.behind),
            events: self.tally.events.count(),
            queries: self.queries(),
            rows: self.tally.rows,
            queries_planned: plan.queries_planned,
            queries_dropped: plan.queries_dropped,
            warmup_queries: self.warmup_queries,
            warmup_steady: self.warmup_steady,
            errors: self.errors.clone(),
            reconnects: self.tally.reconnects,
            aborted: self.aborted.clone(),
            clock: self.clock.clone(),
            seconds_real: self.seconds_real(),
            seconds_user: self.cpu.user_us as f64 / 1e6,
            seconds_sys: self.cpu.sys_us as f64 / 1e6,
            share: (plan.share != Share::ALL)
                .then(|| LoadShare { part: plan.share.text(), clients_of_all: plan.clients_of_all as u64 }),
            io: Some(self.io.into()),
            io_threads: self.io_threads as u64,
            threads: self.threads.clone(),
            network: self.network.clone(),
            latency_ns: self.tally.events.summary(),
            operations: counted.map(|(kind, latencies)| (kind.name.clone(), latencies.summary())).collect(),
            phases: self.phases.clone(),
            server_version: self.server_version.clone(),
            client_hosts: None,
            particulars: self.particulars.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        }
    }
}

/// When events start, as it is written.
fn pace(pace_of_load: Loop) -> Pace {
    let name = |spacing| Some(if spacing == Spacing::Fixed { "fixed" } else { "exponential" }.into());
    let none = Pace { kind: "closed".into(), rate: None, think_seconds: None, spacing: None, speed: None };
    match pace_of_load {
        Loop::Closed { think, spacing } => {
            Pace { think_seconds: Some(think.as_secs_f64()), spacing: name(spacing), ..none }
        }
        Loop::Logged { speed } => Pace { kind: "logged".into(), speed: Some(speed), ..none },
        Loop::Open { rate, spacing } => Pace { kind: "open".into(), rate: Some(rate), spacing: name(spacing), ..none },
    }
}

/// Writes `runs` to `path` as JSON.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, kind: &str, runs: Vec<LoadRun>) -> Result<(), Error> {
    let file = LoadFile { version: VERSION, kind: kind.into(), runs };
    // A value sorts its keys.
    let value = serde_json::to_value(file).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
    fs::write(path, format!("{value:#}\n")).map_err(|error| Error::File(path.to_owned(), error))
}
