//! The result of a run, as its JSON file has it, and the report for people: mysqlslap's block, then what that lacks.

use std::fmt::Write as _;
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
use crate::run_options::{Loop, Plan, Share, Spacing};
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

/// Mean, least and greatest time of some runs, seconds.
fn spread(runs: &[RunResult]) -> [f64; 3] {
    let times = || runs.iter().map(RunResult::seconds_real);
    [times().sum::<f64>() / runs.len() as f64, times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max)]
}

/// What each client of a run was to do, or did if the run was bounded by time.
fn queries_per_client(run: &RunResult) -> u64 {
    run.plan.queries_planned.unwrap_or_else(|| run.queries()) / run.plan.clients as u64
}

/// mysqlslap's CSV line for the iterations of one engine and number of clients.
pub fn csv_line(runs: &[RunResult]) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    let [average, least, greatest] = spread(runs);
    format!(
        "{},{},{average:.3},{least:.3},{greatest:.3},{},{}\n",
        first.plan.engine_choice.as_deref().unwrap_or_default(),
        first.load,
        first.plan.clients,
        queries_per_client(first)
    )
}

/// The report on the iterations of one engine and number of clients.
pub fn block(runs: &[RunResult]) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    let mut text = String::from("Benchmark\n");
    // Writing to a string cannot fail, here and below.
    if let Some(engine) = &first.plan.engine_choice {
        let _ = writeln!(text, "\tRunning for engine {engine}");
    }
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "\t{label}: {value}");
    };
    for (name, seconds) in ["Average", "Minimum", "Maximum"].into_iter().zip(spread(runs)) {
        line(&format!("{name} number of seconds to run all queries"), format!("{seconds:.3} seconds"));
    }
    line("Number of clients running queries", first.plan.clients.to_string());
    line("Average number of queries per client", queries_per_client(first).to_string());
    if first.plan.queries_dropped > 0 {
        line(
            "Queries left out, because they cannot be divided among the clients",
            first.plan.queries_dropped.to_string(),
        );
    }
    write_rates(runs, &mut line);
    text.push('\n');
    text
}

/// The report on one run.
pub fn summary(run: &RunResult) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{} {}: {}, {} ({}, {})",
        run.plan.verb,
        run.load,
        with_noun(run.plan.clients, "client"),
        pace_in_words(run),
        run.io,
        with_noun(run.io_threads, "thread")
    );
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "    {label:<22} {value}");
    };
    let count = |count: u64| format!("{count} ({:.2} per second)", run.per_second(count));
    line("time", format!("{:.3} s", run.seconds_real()));
    line("events", count(run.tally.events.count()));
    line("queries", count(run.queries()));
    if run.tally.rows > 0 {
        line("rows", count(run.tally.rows));
    }
    if let Loop::Open { .. } = run.plan.pace {
        line("offered", format!("{} ({:.2} per second)", run.gauges.offered, run.offered_per_second()));
        let (end, most) = (run.gauges.backlog, run.gauges.backlog_max);
        line("queue", format!("{end} at the end, {most} at most"));
        // A few that wait as the time ends are chance; one in a hundred is a server that does not keep up.
        if end > run.plan.clients as u64 && end >= run.gauges.offered / 100 {
            line("", "latencies are too small: events that never started have none".into());
        }
    }
    if run.lateness.count() > 0 {
        let s = run.lateness.summary();
        let [p50, p99, max] = [s.p50(), s.p99(), s.max].map(milliseconds);
        line("started late by", format!("{p50} / {p99} / {max} ms (p50 / p99 / max)"));
    }
    if run.behind.count() > 0 {
        let s = run.behind.summary();
        let [p50, p99, max] = [s.p50(), s.p99(), s.max].map(milliseconds);
        line("waited for session", format!("{p50} / {p99} / {max} ms (p50 / p99 / max)"));
    }
    if run.tally.reconnects > 0 {
        line("reconnects", run.tally.reconnects.to_string());
    }
    for phase in &run.phases {
        let seconds = (phase.end_ns - phase.start_ns) as f64 / 1e9;
        line(&format!("phase {}", phase.name), format!("{seconds:.3} s"));
    }
    line("client CPU", cpu(run.cpu.user_us, run.cpu.sys_us, run.queries()));
    latency_table(run, &mut text);
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "    {label:<22} {value}");
    };
    trouble(run, &mut line);
    text.push('\n');
    text
}

/// When events start, in words.
fn pace_in_words(run: &RunResult) -> String {
    match run.plan.pace {
        Loop::Closed { think, .. } if think.is_zero() => "closed loop".to_owned(),
        Loop::Closed { think, .. } => format!("closed loop, {} s think time", think.as_secs_f64()),
        Loop::Logged { speed } if speed <= 0.0 => "each session as fast as it can".to_owned(),
        Loop::Logged { speed } => format!("{speed} times as fast as logged"),
        Loop::Open { rate, .. } => format!("open loop, {rate} events per second offered"),
    }
}

/// Latencies of events and of each kind of statement, milliseconds.
fn latency_table(run: &RunResult, text: &mut String) {
    let _ = writeln!(
        text,
        "    {:<22} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "latency, ms", "count", "p50", "p95", "p99", "p99.9", "max"
    );
    let mut row = |name: &str, latencies: &Latencies| {
        let s = latencies.summary();
        let _ = write!(text, "      {name:<20} {:>10}", s.count);
        for value in [s.p50(), s.p95(), s.p99(), s.p999(), s.max] {
            let _ = write!(text, " {:>9}", milliseconds(value));
        }
        text.push('\n');
    };
    let kinds: Vec<_> = run.kinds.iter().zip(&run.tally.kinds).filter(|(_, some)| some.count() > 0).collect();
    // Where each event is one statement of the only kind, its line would say the same again.
    if !matches!(kinds.as_slice(), [(_, only)] if only.summary() == run.tally.events.summary()) {
        row("event", &run.tally.events);
    }
    for (kind, latencies) in kinds {
        row(&kind.name, latencies);
    }
}

fn write_rates(runs: &[RunResult], line: &mut impl FnMut(&str, String)) {
    let queries: u64 = runs.iter().map(RunResult::queries).sum();
    let seconds: f64 = runs.iter().map(RunResult::seconds_real).sum();
    let user: u64 = runs.iter().map(|run| run.cpu.user_us).sum();
    let sys: u64 = runs.iter().map(|run| run.cpu.sys_us).sum();
    line("Queries per second", format!("{:.1}", queries as f64 / seconds.max(1e-9)));
    if runs.iter().any(|run| matches!(run.plan.pace, Loop::Open { .. })) {
        let offered: u64 = runs.iter().map(|run| run.gauges.offered).sum();
        let backlog: u64 = runs.iter().map(|run| run.gauges.backlog).sum();
        line("Queries offered / never started", format!("{offered} / {backlog}"));
    }
    let mut sum = Tally::default();
    for run in runs {
        sum.add(&run.tally);
    }
    line("Latency p50 / p95 / p99 / max", latency(&sum.events));
    let kinds: Vec<_> = runs[0].kinds.iter().zip(&sum.kinds).filter(|(_, latencies)| latencies.count() > 0).collect();
    if kinds.len() > 1 {
        for (kind, latencies) in kinds {
            line(&format!("  {} ({} times)", kind.name, latencies.count()), latency(latencies));
        }
    }
    line("Client CPU user / sys", cpu(user, sys, queries));
    for run in runs {
        trouble(run, line);
    }
}

fn cpu(user_us: u64, sys_us: u64, queries: u64) -> String {
    let per_query_us = (user_us + sys_us) as f64 / (queries as f64).max(1.0);
    format!("{:.3} / {:.3} s ({per_query_us:.1} us per query)", user_us as f64 / 1e6, sys_us as f64 / 1e6)
}

fn trouble(run: &RunResult, line: &mut impl FnMut(&str, String)) {
    for error in &run.errors {
        let ErrorCount { count, code, sqlstate, operation, message } = error;
        line("Error", format!("{count} times {code} ({sqlstate}) on {operation}: {message}"));
    }
    if let Some(cause) = &run.aborted {
        line("Ended early", cause.clone());
    }
}

fn with_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn milliseconds(value: Option<u64>) -> String {
    value.map_or_else(|| "-".into(), |ns| format!("{:.3}", ns as f64 / 1e6))
}

fn latency(latencies: &Latencies) -> String {
    let s = latencies.summary();
    let [p50, p95, p99, max] = [s.p50(), s.p95(), s.p99(), s.max].map(milliseconds);
    format!("{p50} / {p95} / {p99} / {max} ms")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::statements::Statement;

    fn run(seconds: u64, engine: Option<&str>) -> RunResult {
        let mut tally = Tally { kinds: vec![Latencies::default(); 2], ..Tally::default() };
        for _ in 0..9 {
            tally.kinds[usize::from(Statement::alone(0).kind)].record(2_000_000);
            tally.events.record(2_000_000);
        }
        RunResult {
            plan: Plan {
                verb: "slap",
                number: 0,
                iteration: 1,
                step: 0,
                clients: 3,
                share: Share::ALL,
                first_client: 0,
                clients_of_all: 3,
                pace: Loop::Closed { think: Duration::ZERO, spacing: Spacing::Fixed },
                engine_choice: engine.map(str::to_owned),
                engine: Some("InnoDB".into()),
                duration: None,
                events: None,
                queries_planned: Some(9),
                queries_dropped: 1,
            },
            load: "write".into(),
            kinds: Arc::new([Kind::query("insert"), Kind::apart("commit")]),
            warmup_queries: 0,
            warmup_steady: None,
            tally,
            gauges: Gauges::default(),
            lateness: Latencies::default(),
            behind: Latencies::default(),
            particulars: None,
            errors: Vec::new(),
            phases: Vec::new(),
            aborted: None,
            clock: LoadClock {
                source: "CLOCK_MONOTONIC".into(),
                start_asked_ns: None,
                measure_start_ns: 5,
                measure_end_ns: 5 + seconds * 1_000_000_000,
                connect_ns: 1,
                warmup_ns: 0,
            },
            cpu: Cpu { user_us: 9, sys_us: 18 },
            threads: Vec::new(),
            network: None,
            io: "epoll",
            io_note: None,
            io_threads: 1,
            server_version: "10.11".into(),
        }
    }

    #[test]
    fn the_block_is_that_of_mysqlslap_and_more() {
        let text = block(&[run(1, Some("innodb")), run(3, Some("innodb"))]);
        let expected = "Benchmark
\tRunning for engine innodb
\tAverage number of seconds to run all queries: 2.000 seconds
\tMinimum number of seconds to run all queries: 1.000 seconds
\tMaximum number of seconds to run all queries: 3.000 seconds
\tNumber of clients running queries: 3
\tAverage number of queries per client: 3
\tQueries left out, because they cannot be divided among the clients: 1
\tQueries per second: 4.5
\tLatency p50 / p95 / p99 / max: 2.000 / 2.000 / 2.000 / 2.000 ms
\tClient CPU user / sys: 0.000 / 0.000 s (3.0 us per query)

";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_csv_line_is_that_of_mysqlslap() {
        assert_eq!(csv_line(&[run(1, None), run(2, None)]), ",write,1.500,1.000,2.000,3,3\n");
    }

    #[test]
    fn an_open_loop_tells_of_its_queue() {
        let mut overloaded = run(2, None);
        overloaded.plan.pace = Loop::Open { rate: 100.0, spacing: Spacing::Fixed };
        overloaded.gauges = Gauges { offered: 200, backlog: 191, backlog_max: 191, offered_for_ns: 1_600_000_000 };
        overloaded.lateness.record(50_000);
        let text = summary(&overloaded);
        for expected in [
            "slap write: 3 clients, open loop, 100 events per second offered (epoll, 1 thread)",
            "offered                200 (125.00 per second)",
            "started late by        0.050 / 0.050 / 0.050 ms (p50 / p99 / max)",
            "queue                  191 at the end, 191 at most\n                           latencies are too small: events that never started have none",
            "events                 9 (4.50 per second)",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        overloaded.gauges.backlog = 3;
        let text = summary(&overloaded);
        assert!(!text.contains("never started"), "no more than there are clients: {text}");
    }
}
