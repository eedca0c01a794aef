//! What a run measures: latencies and errors, per operation and per interval.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

use crate::protocol::reply::ServerError;

/// Longest latency told apart, in nanoseconds (24 h); longer ones count as this.
const LATENCY_MAX_NS: u64 = 24 * 3_600 * 1_000_000_000;

const SIGNIFICANT_DIGITS: u8 = 3;

/// The kinds of statement that are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// INSERT or REPLACE.
    Insert,
    /// SELECT.
    Select,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// COMMIT; not one of the queries.
    Commit,
    /// Anything else.
    Other,
}

impl Operation {
    /// All of them, by their number.
    pub const ALL: [Self; 6] = [Self::Insert, Self::Select, Self::Update, Self::Delete, Self::Commit, Self::Other];

    /// Its name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Select => "select",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Commit => "commit",
            Self::Other => "other",
        }
    }

    /// By the first word of `sql`.
    pub fn of(sql: &str) -> Self {
        let word = sql.split_whitespace().next().unwrap_or_default();
        match word.to_ascii_lowercase().as_str() {
            "insert" | "replace" => Self::Insert,
            "select" => Self::Select,
            "update" => Self::Update,
            "delete" => Self::Delete,
            "commit" => Self::Commit,
            _ => Self::Other,
        }
    }

    /// Whether it is one of the queries, as opposed to what goes with them.
    pub fn is_query(self) -> bool {
        self != Self::Commit
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Latencies in nanoseconds: a histogram of three significant digits, with exact extremes and sum.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// The distribution.
    pub histogram: Histogram<u64>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        // The bounds are constants that the constructor accepts (a test makes one).
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, SIGNIFICANT_DIGITS)
            .unwrap_or_else(|error| unreachable!("constant histogram bounds: {error}"));
        Self { histogram, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Latencies {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
        self.count += 1;
        self.sum_ns += latency_ns;
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        // Cannot fail: the bounds are the same.
        let _ = self.histogram.add(&other.histogram);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.histogram.reset();
            (self.count, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The summary every output shows.
    pub fn summary(&self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        // A quantile is the upper end of its bucket, which may lie beyond what was seen.
        let at = |quantile| {
            let value = self.histogram.value_at_quantile(quantile);
            Some(value.clamp(self.min_ns, self.max_ns))
        };
        Summary {
            count: self.count,
            min: Some(self.min_ns),
            mean: Some(self.sum_ns as f64 / self.count as f64),
            p50: at(0.50),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: Some(self.max_ns),
        }
    }
}

/// Latencies in numbers, all in nanoseconds; `None` when there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub count: u64,
    pub min: Option<u64>,
    pub mean: Option<f64>,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
}

/// How often the server answered with one error code to one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// The server's code.
    pub code: u16,
    /// Five characters.
    pub sqlstate: String,
    /// The first message with this code.
    pub message: String,
    /// What was refused.
    pub operation: Operation,
    /// How often.
    pub count: u64,
}

/// Errors by code and operation.
#[derive(Debug, Clone, Default)]
pub struct Errors(BTreeMap<(u16, Operation), ErrorCount>);

impl Errors {
    fn record(&mut self, operation: Operation, error: &ServerError) {
        let entry = self.0.entry((error.code, operation));
        let count = entry.or_insert_with(|| ErrorCount {
            code: error.code,
            sqlstate: error.sqlstate.clone(),
            message: error.message.clone(),
            operation,
            count: 0,
        });
        count.count += 1;
    }

    /// All, in order of code.
    pub fn list(&self) -> Vec<ErrorCount> {
        self.0.values().cloned().collect()
    }

    /// How many.
    pub fn total(&self) -> u64 {
        self.0.values().map(|error| error.count).sum()
    }
}

/// An interval of a run that is over.
#[derive(Debug)]
pub struct Interval<'a> {
    /// Number of the run in its invocation, from 0.
    pub run: usize,
    /// `CLOCK_MONOTONIC` at its start and end, nanoseconds.
    pub start_ns: u64,
    /// See `start_ns`.
    pub end_ns: u64,
    /// Errors in it.
    pub errors: u64,
    /// Latencies by [`Operation`], in the order of [`Operation::ALL`].
    pub operations: &'a [Latencies; 6],
    /// Latencies of all queries.
    pub queries: &'a Latencies,
}

/// Where intervals go while a run is under way.
pub trait IntervalSink {
    /// Takes one interval.
    ///
    /// # Errors
    /// It could not be written.
    fn interval(&mut self, interval: &Interval<'_>) -> std::io::Result<()>;
}

/// Counts what happens in a run.
pub struct Recorder<'a> {
    sink: Option<&'a mut dyn IntervalSink>,
    run: usize,
    interval_ns: u64,
    started_ns: u64,
    interval_start_ns: u64,
    interval_end_ns: u64,
    current: [Latencies; 6],
    total: [Latencies; 6],
    /// All queries of the interval under way; kept, as it is large.
    queries: Latencies,
    errors: Errors,
    errors_before: u64,
    sink_error: Option<std::io::Error>,
}

impl<'a> Recorder<'a> {
    /// A recorder that closes an interval every `interval_ns`.
    pub fn new(run: usize, interval_ns: u64, sink: Option<&'a mut dyn IntervalSink>) -> Self {
        Self {
            sink,
            run,
            interval_ns,
            started_ns: 0,
            interval_start_ns: 0,
            interval_end_ns: u64::MAX,
            current: Default::default(),
            total: Default::default(),
            queries: Latencies::default(),
            errors: Errors::default(),
            errors_before: 0,
            sink_error: None,
        }
    }

    /// The run starts now.
    pub fn start(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.interval_start_ns = now_ns;
        self.interval_end_ns = now_ns + self.interval_ns;
    }

    /// A statement was answered `now_ns`, `latency_ns` after its intended start.
    #[inline]
    pub fn answered(&mut self, operation: Operation, latency_ns: u64, now_ns: u64) {
        self.pass_time(now_ns);
        self.current[operation as usize].record(latency_ns);
    }

    /// A statement was refused.
    pub fn refused(&mut self, operation: Operation, error: &ServerError, now_ns: u64) {
        self.pass_time(now_ns);
        self.errors.record(operation, error);
    }

    /// Closes the intervals that ended before `now_ns`.
    #[inline]
    pub fn pass_time(&mut self, now_ns: u64) {
        while now_ns >= self.interval_end_ns {
            self.close_interval(self.interval_end_ns);
        }
    }

    /// The run is over: closes the interval under way.
    pub fn finish(&mut self, now_ns: u64) {
        self.pass_time(now_ns);
        if now_ns > self.interval_start_ns {
            self.close_interval(now_ns);
        }
        self.interval_end_ns = u64::MAX;
    }

    #[cold]
    fn close_interval(&mut self, end_ns: u64) {
        self.queries.clear();
        for (operation, current) in Operation::ALL.iter().zip(&self.current) {
            if operation.is_query() {
                self.queries.add(current);
            }
        }
        let errors = self.errors.total();
        if let (Some(sink), None) = (&mut self.sink, &self.sink_error) {
            let interval = Interval {
                run: self.run,
                start_ns: self.interval_start_ns,
                end_ns,
                errors: errors - self.errors_before,
                operations: &self.current,
                queries: &self.queries,
            };
            self.sink_error = sink.interval(&interval).err();
        }
        for (total, current) in self.total.iter_mut().zip(&mut self.current) {
            total.add(current);
            current.clear();
        }
        self.errors_before = errors;
        self.interval_start_ns = end_ns;
        self.interval_end_ns = end_ns + self.interval_ns;
    }

    /// Refused statements so far.
    pub fn error_count(&self) -> u64 {
        self.errors.total()
    }

    /// All of a finished run: latencies by operation, errors, and what went wrong in writing.
    pub fn into_totals(self) -> ([Latencies; 6], Errors, Option<std::io::Error>) {
        (self.total, self.errors, self.sink_error)
    }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
