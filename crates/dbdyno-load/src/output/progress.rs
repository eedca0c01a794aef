//! Lines on the terminal during a run, in the manner of sysbench.

use std::fmt::Write as _;
use std::time::Duration;

use super::files::Names;
use super::print;
use crate::measure::Interval;

/// Prints a line every so often.
pub struct Progress {
    names: Names,
    every_ns: Option<u64>,
    clients: usize,
    run: usize,
    started_ns: u64,
    /// Intervals since the last line.
    since: Option<Interval>,
}

impl Progress {
    /// A line every `every`, if that is given, and for rows as they come.
    pub fn new(names: Names, every: Option<Duration>) -> Self {
        let every_ns = every.map(|every| every.as_nanos() as u64);
        Self { names, every_ns, clients: 0, run: usize::MAX, started_ns: 0, since: None }
    }

    /// The number of clients of the run that comes.
    pub fn set_clients(&mut self, clients: usize) {
        self.clients = clients;
    }

    /// Takes an interval.
    pub fn interval(&mut self, interval: &Interval) {
        let Some(every_ns) = self.every_ns else { return };
        if self.run != interval.run {
            (self.run, self.started_ns, self.since) = (interval.run, interval.start_ns, None);
        }
        let mut since = match self.since.take() {
            None => interval.clone(),
            Some(mut since) => {
                since.tally.add(&interval.tally);
                (since.end_ns, since.gauges) = (interval.end_ns, interval.gauges);
                since
            }
        };
        // The last interval of a run may be a short one.
        if since.end_ns - since.start_ns + 1_000_000 < every_ns {
            since.gauges = interval.gauges;
            self.since = Some(since);
            return;
        }
        print(&format!("{}\n", self.line(&since)));
    }

    fn line(&self, since: &Interval) -> String {
        let tally = &since.tally;
        let seconds = (since.end_ns - since.start_ns) as f64 / 1e9;
        let rate = |count: u64| count as f64 / seconds;
        let ms = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e6));
        let summary = tally.events.summary();
        let decimals = usize::from(!self.every_ns.unwrap_or_default().is_multiple_of(1_000_000_000));
        let mut line = format!(
            "[ {:.decimals$}s ] thds: {} tps: {:.2} qps: {:.2} lat (ms, 50/95/99/max): {}/{}/{}/{} err/s: {:.2} reconn/s: {:.2}",
            (since.end_ns - self.started_ns) as f64 / 1e9,
            self.clients,
            rate(tally.events.count()),
            rate(tally.queries(&self.names.kinds)),
            ms(summary.p50),
            ms(summary.p95),
            ms(summary.p99),
            ms(summary.max),
            rate(tally.errors),
            rate(tally.reconnects),
        );
        // Writing to a string cannot fail.
        if tally.rows > 0 {
            let _ = write!(line, " rows/s: {:.0}", rate(tally.rows));
        }
        if since.gauges.offered > 0 {
            let _ = write!(line, " queue: {}", since.gauges.backlog);
        }
        line
    }

    /// Takes note of rows.
    pub fn rows(&self, rows: u64, start_ns: u64, now_ns: u64) {
        let seconds = now_ns.saturating_sub(start_ns) as f64 / 1e9;
        print(&format!("{rows} rows after {seconds:.1} s ({:.0} rows/s)\n", rows as f64 / seconds.max(1e-9)));
    }
}
