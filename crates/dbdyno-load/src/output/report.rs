//! The report for people: mysqlslap's block, then what it never said.

use std::fmt::Write as _;

use super::result::RunResult;
use crate::measure::{Latencies, Operation};

/// Least, mean and greatest time of some runs, seconds.
struct Spread {
    average: f64,
    least: f64,
    greatest: f64,
}

fn spread(runs: &[RunResult]) -> Spread {
    let times = || runs.iter().map(RunResult::seconds_real);
    Spread {
        average: times().sum::<f64>() / runs.len() as f64,
        least: times().fold(f64::INFINITY, f64::min),
        greatest: times().fold(0.0, f64::max),
    }
}

/// What each client of a run was to do, or did if the run was bounded by time.
fn queries_per_client(run: &RunResult) -> u64 {
    run.queries_planned.unwrap_or_else(|| run.queries()) / run.clients as u64
}

/// mysqlslap's CSV line for the iterations of one engine and number of clients.
pub fn csv_line(runs: &[RunResult]) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    let spread = spread(runs);
    format!(
        "{},{},{:.3},{:.3},{:.3},{},{}\n",
        first.engine_asked.as_deref().unwrap_or_default(),
        first.load,
        spread.average,
        spread.least,
        spread.greatest,
        first.clients,
        queries_per_client(first)
    )
}

/// The report on the iterations of one engine and number of clients.
pub fn block(runs: &[RunResult]) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    let times = spread(runs);
    let mut text = String::from("Benchmark\n");
    // Writing to a string cannot fail, here and below.
    if let Some(engine) = &first.engine_asked {
        let _ = writeln!(text, "\tRunning for engine {engine}");
    }
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "\t{label}: {value}");
    };
    for (name, seconds) in [("Average", times.average), ("Minimum", times.least), ("Maximum", times.greatest)] {
        line(&format!("{name} number of seconds to run all queries"), format!("{seconds:.3} seconds"));
    }
    line("Number of clients running queries", first.clients.to_string());
    line("Average number of queries per client", queries_per_client(first).to_string());
    if first.queries_dropped > 0 {
        line("Queries left out, as they do not divide among the clients", first.queries_dropped.to_string());
    }
    beyond_mysqlslap(runs, &mut line);
    text.push('\n');
    text
}

fn beyond_mysqlslap(runs: &[RunResult], line: &mut impl FnMut(&str, String)) {
    let queries: u64 = runs.iter().map(RunResult::queries).sum();
    let seconds: f64 = runs.iter().map(RunResult::seconds_real).sum();
    let user: u64 = runs.iter().map(|run| run.cpu.user_us).sum();
    let sys: u64 = runs.iter().map(|run| run.cpu.sys_us).sum();
    line("Queries per second", format!("{:.1}", queries as f64 / seconds.max(1e-9)));
    let mut all = Latencies::default();
    for run in runs {
        all.add(&run.latencies());
    }
    line("Latency p50 / p95 / p99 / max", latency(&all));
    let mut kinds: Vec<(Operation, Latencies)> = Vec::new();
    for operation in Operation::ALL {
        let mut sum = Latencies::default();
        for run in runs {
            sum.add(&run.operations[operation as usize]);
        }
        if sum.count() > 0 {
            kinds.push((operation, sum));
        }
    }
    if kinds.len() > 1 {
        for (operation, sum) in &kinds {
            line(&format!("  {} ({} times)", operation.name(), sum.count()), latency(sum));
        }
    }
    line(
        "Client CPU user / sys",
        format!(
            "{:.3} / {:.3} s ({:.1} us per query)",
            user as f64 / 1e6,
            sys as f64 / 1e6,
            (user + sys) as f64 / (queries as f64).max(1.0)
        ),
    );
    for run in runs {
        for error in &run.errors {
            line(
                "Error",
                format!(
                    "{} times {} ({}) on {}: {}",
                    error.count,
                    error.code,
                    error.sqlstate,
                    error.operation.name(),
                    error.message
                ),
            );
        }
        if let Some(cause) = &run.aborted {
            line("Ended early", cause.clone());
        }
    }
}

fn latency(latencies: &Latencies) -> String {
    let summary = latencies.summary();
    let ms = |value: Option<u64>| value.map_or_else(|| "-".into(), |ns| format!("{:.3}", ns as f64 / 1e6));
    format!("{} / {} / {} / {} ms", ms(summary.p50), ms(summary.p95), ms(summary.p99), ms(summary.max))
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
