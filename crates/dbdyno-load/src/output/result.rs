//! The result of a run, as its JSON file has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::Cpu;
use crate::error::Error;
use crate::latency::Latencies;
use crate::measure::{ErrorCount, Gauges, Tally};
use crate::network::Network;
use crate::own_thread::Scheduled;
use crate::run_options::{Loop, Spacing};
use crate::run_plan::Plan;
use crate::share::Share;
use crate::statements::Kind;

/// Version of the file's format.
const VERSION: u32 = 2;

/// When things happened; nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Clock {
    /// Always `CLOCK_MONOTONIC`.
    pub source: &'static str,
    /// When the start was asked for by `--start-file`.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// A phase of a run, from its first statement to the end of its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub end_ns: u64,
}

impl Phase {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }
}

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
    pub clock: Clock,
    /// CPU time of this process between start and end.
    pub cpu: Cpu,
    /// Of each thread that served connections, between start and end.
    pub threads: Vec<Scheduled>,
    /// Of the connections, where they are by TCP.
    pub network: Option<Network>,
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

    /// Which part of a load it was; null where it was all of it.
    fn share(&self) -> Value {
        let share = (self.plan.share != Share::ALL).then(|| self.plan.share.text());
        share.map_or(Value::Null, |part| json!({"part": part, "clients_of_all": self.plan.clients_of_all}))
    }

    fn json(&self) -> Value {
        let counted = self.kinds.iter().zip(&self.tally.kinds).filter(|(_, latencies)| latencies.count() > 0);
        let operations: BTreeMap<_, _> = counted.map(|(kind, latencies)| (&kind.name, latencies.summary())).collect();
        let (plan, spacing_name) =
            (&self.plan, |spacing| if spacing == Spacing::Fixed { "fixed" } else { "exponential" });
        let (open, pace) = match plan.pace {
            Loop::Closed { think, spacing } => (
                None,
                json!({"kind": "closed", "think_seconds": think.as_secs_f64(), "spacing": spacing_name(spacing)}),
            ),
            Loop::Logged { speed } => (None, json!({"kind": "logged", "speed": speed})),
            Loop::Open { rate, spacing } => {
                (Some(&self.gauges), json!({"kind": "open", "rate": rate, "spacing": spacing_name(spacing)}))
            }
        };
        let mut result = json!({
            "version": VERSION,
            "kind": plan.verb,
            "load": self.load,
            "engine": plan.engine,
            "iteration": plan.iteration,
            "clients": plan.clients,
            "loop": pace,
            "offered": open.map(|gauges| gauges.offered),
            "offered_per_second": open.map(|_| self.offered_per_second()),
            "achieved_per_second": self.per_second(self.tally.events.count()),
            "backlog_max": open.map(|gauges| gauges.backlog_max),
            "backlog_end": open.map(|gauges| gauges.backlog),
            "start_lateness_ns": (self.lateness.count() > 0).then(|| self.lateness.summary()),
            "events": self.tally.events.count(),
            "queries": self.queries(),
            "rows": self.tally.rows,
            "queries_planned": plan.queries_planned,
            "queries_dropped": plan.queries_dropped,
            "warmup_queries": self.warmup_queries,
            "warmup_steady": self.warmup_steady,
            "errors": self.errors,
            "reconnects": self.tally.reconnects,
            "aborted": self.aborted,
            "clock": self.clock,
            "seconds_real": self.seconds_real(),
            "seconds_user": self.cpu.user_us as f64 / 1e6,
            "seconds_sys": self.cpu.sys_us as f64 / 1e6,
            "share": self.share(), "io": self.io,
            "io_threads": self.io_threads,
            "threads": self.threads,
            "network": self.network,
            "latency_ns": self.tally.events.summary(),
            "operations": operations,
            "phases": self.phases,
            "server_version": self.server_version,
        });
        if self.behind.count() > 0 {
            result["behind_ns"] = json!(self.behind.summary());
        }
        if let Some((key, value)) = &self.particulars {
            result[*key] = value.clone();
        }
        result
    }
}

/// Writes `runs` to `path` as JSON.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, kind: &str, runs: &[RunResult]) -> Result<(), Error> {
    let runs: Vec<_> = runs.iter().map(RunResult::json).collect();
    let file = json!({"version": VERSION, "kind": kind, "runs": runs});
    fs::write(path, format!("{file:#}\n")).map_err(|error| Error::File(path.to_owned(), error))
}
