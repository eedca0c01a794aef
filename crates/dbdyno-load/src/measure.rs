//! What a run measures: latencies (a histogram, and what is known exactly beside it), errors and rows, per kind of
//! statement and per interval.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use dbdyno_common::histogram::{Exact, Summary};
use dbdyno_common::results::ErrorCount;
use hdrhistogram::Histogram;

use crate::protocol::reply::ServerError;
use crate::statements::{Kind, Statement};

/// Longest latency resolved, in nanoseconds (24 h); longer ones count as this.
const LATENCY_MAX_NS: u64 = 24 * 3_600 * 1_000_000_000;

const SIGNIFICANT_DIGITS: u8 = 3;

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
        // It grows with the largest value, so that short latencies cost little to add up and clear.
        // The number of digits is a constant that the constructor accepts (a test makes one).
        let histogram = Histogram::new(SIGNIFICANT_DIGITS)
            .unwrap_or_else(|error| unreachable!("constant histogram precision: {error}"));
        Self { histogram, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Latencies {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        // Cannot fail: the histogram grows.
        let _ = self.histogram.record(latency_ns.min(LATENCY_MAX_NS));
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
        // Cannot fail: the histogram grows.
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
        let sum = Some(self.sum_ns as f64);
        Summary::from_histogram(&self.histogram, Exact { min: Some(self.min_ns), max: Some(self.max_ns), sum })
    }
}

/// Errors by code and kind of statement.
#[derive(Debug, Clone, Default)]
pub struct Errors(BTreeMap<(u16, u16), (ServerError, u64)>);

impl Errors {
    fn record(&mut self, kind: u16, error: &ServerError) {
        self.0.entry((error.code, kind)).or_insert_with(|| (error.clone(), 0)).1 += 1;
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: Self) {
        for (key, (error, count)) in other.0 {
            self.0.entry(key).or_insert((error, 0)).1 += count;
        }
    }

    /// All, in order of code.
    pub fn list(&self, kinds: &[Kind]) -> Vec<ErrorCount> {
        let counts = self.0.iter().map(|((code, kind), (error, count))| ErrorCount {
            code: *code,
            sqlstate: error.sqlstate.clone(),
            message: error.message.clone(),
            operation: kinds[usize::from(*kind)].name.clone(),
            count: *count,
        });
        counts.collect()
    }
}

/// What was counted in some time.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Latencies of answered statements by kind, in the order of the workload's kinds.
    pub kinds: Vec<Latencies>,
    /// Latencies of finished events from their intended start.
    pub events: Latencies,
    /// Rows added.
    pub rows: u64,
    /// Refused statements.
    pub errors: u64,
    /// New connections in place of old ones.
    pub reconnects: u64,
    /// Phases in which statements were answered, a bit each.
    pub phases: u32,
}

impl Tally {
    fn new(kinds: usize) -> Self {
        Self { kinds: vec![Latencies::default(); kinds], ..Self::default() }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        self.kinds.resize(other.kinds.len().max(self.kinds.len()), Latencies::default());
        for (mine, others) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.add(others);
        }
        self.events.add(&other.events);
        self.rows += other.rows;
        self.errors += other.errors;
        self.reconnects += other.reconnects;
        self.phases |= other.phases;
    }

    fn clear(&mut self) {
        self.kinds.iter_mut().for_each(Latencies::clear);
        self.events.clear();
        (self.rows, self.errors, self.reconnects, self.phases) = (0, 0, 0, 0);
    }

    /// Answered statements that are queries.
    pub fn queries(&self, kinds: &[Kind]) -> u64 {
        let counted = kinds.iter().zip(&self.kinds);
        counted.filter(|(kind, _)| kind.is_query).map(|(_, latencies)| latencies.count()).sum()
    }
}

/// How an open loop stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Events that were due so far.
    pub offered: u64,
    /// Events that are due and wait for a client.
    pub backlog: u64,
    /// Most that waited at a time so far.
    pub backlog_max: u64,
    /// How long events have been offered, ns: to the end, or until all were.
    pub offered_for_ns: u64,
}

impl Gauges {
    /// Adds those of another thread; the maximum becomes an upper bound.
    pub fn add(&mut self, other: Self) {
        self.offered += other.offered;
        self.backlog += other.backlog;
        self.backlog_max += other.backlog_max;
        self.offered_for_ns = self.offered_for_ns.max(other.offered_for_ns);
    }
}

/// An interval of a run that is over.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    /// Number of the run in its invocation, from 0.
    pub run: usize,
    /// Number in its run, from 0.
    pub number: u64,
    /// `CLOCK_MONOTONIC` at its start and end, nanoseconds.
    pub start_ns: u64,
    /// See `start_ns`.
    pub end_ns: u64,
    /// What was counted in it.
    pub tally: Tally,
    /// At its end.
    pub gauges: Gauges,
}

/// Where intervals go during a run.
pub trait IntervalSink {
    /// Takes one interval.
    ///
    /// # Errors
    /// It could not be written.
    fn interval(&mut self, interval: &Interval) -> io::Result<()>;

    /// Takes note that `rows` had been added by `now_ns`, since `start_ns`.
    ///
    /// # Errors
    /// It could not be written.
    fn rows(&mut self, rows: u64, start_ns: u64, now_ns: u64) -> io::Result<()> {
        let _ = (rows, start_ns, now_ns);
        Ok(())
    }
}

/// A phase of a run: from its first statement's start to its last one's end, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub end_ns: u64,
}

impl Span {
    /// The least span over both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }
}

/// All of a finished run, as one thread saw it.
#[derive(Debug, Default)]
pub struct Totals {
    /// What was counted.
    pub tally: Tally,
    /// Errors by code and kind.
    pub errors: Errors,
    /// By phase; `None` for one that did not come.
    pub spans: Vec<Option<Span>>,
    /// At the end.
    pub gauges: Gauges,
    /// How long after they were due events started for which a client was free.
    pub lateness: Latencies,
    /// By a log: how long after they were due events started as their session was busy; 0 for most.
    pub behind: Latencies,
    /// What went wrong in writing.
    pub sink_error: Option<io::Error>,
}

impl Totals {
    /// Adds those of another thread.
    pub fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.errors.add(other.errors);
        self.gauges.add(other.gauges);
        self.lateness.add(&other.lateness);
        self.behind.add(&other.behind);
        self.spans.resize(other.spans.len(), None);
        for (mine, others) in self.spans.iter_mut().zip(other.spans) {
            *mine = match (*mine, others) {
                (Some(a), Some(b)) => Some(a.with(b)),
                (a, b) => a.or(b),
            };
        }
        self.sink_error = self.sink_error.take().or(other.sink_error);
    }
}

/// What a recorder is to know of its run.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Number of the run in its invocation.
    pub run: usize,
    /// Kinds of statement.
    pub kinds: Arc<[Kind]>,
    /// How many phases there are.
    pub phases: usize,
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// Report every so many rows.
    pub report_rows: Option<u64>,
}

/// Counts what happens in a run.
pub struct Recorder<'a> {
    terms: Terms,
    sink: Option<&'a mut dyn IntervalSink>,
    started_ns: u64,
    interval_end_ns: u64,
    current: Interval,
    totals: Totals,
}

impl<'a> Recorder<'a> {
    /// A recorder whose intervals go to `sink`.
    pub fn new(terms: Terms, sink: Option<&'a mut dyn IntervalSink>) -> Self {
        let current = Interval { run: terms.run, tally: Tally::new(terms.kinds.len()), ..Interval::default() };
        let totals =
            Totals { tally: Tally::new(terms.kinds.len()), spans: vec![None; terms.phases], ..Totals::default() };
        Self { terms, sink, started_ns: 0, interval_end_ns: u64::MAX, current, totals }
    }

    /// The run starts now.
    pub fn start(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.current.start_ns = now_ns;
        self.interval_end_ns = now_ns.saturating_add(self.terms.interval_ns);
    }

    /// Name of a kind.
    pub fn kind(&self, kind: u16) -> &str {
        &self.terms.kinds[usize::from(kind)].name
    }

    /// A statement that was meant to start at `start_ns` was answered at `now_ns`.
    #[inline]
    pub fn answered(&mut self, statement: Statement, start_ns: u64, now_ns: u64) {
        let tally = &mut self.current.tally;
        tally.kinds[usize::from(statement.kind)].record(now_ns.saturating_sub(start_ns));
        tally.rows += u64::from(statement.rows);
        if self.terms.phases > 0 {
            let phase = usize::from(statement.phase);
            tally.phases |= 1 << phase;
            let span = Span { start_ns, end_ns: now_ns };
            self.totals.spans[phase] = Some(self.totals.spans[phase].map_or(span, |before| before.with(span)));
        }
    }

    /// An event started so long after it was due, though a client was free for it.
    #[inline]
    pub fn started_late(&mut self, lateness_ns: u64) {
        self.totals.lateness.record(lateness_ns);
    }

    /// By a log, an event started so long after it was due, as its session was busy.
    #[inline]
    pub fn fell_behind(&mut self, behind_ns: u64) {
        self.totals.behind.record(behind_ns);
    }

    /// An event was finished, so long after its intended start; it may count as a kind of its own.
    #[inline]
    pub fn event(&mut self, latency_ns: u64, kind: Option<u16>) {
        let tally = &mut self.current.tally;
        tally.events.record(latency_ns);
        if let Some(kind) = kind {
            tally.kinds[usize::from(kind)].record(latency_ns);
        }
    }

    /// All threads together went from `before` rows to `added` more.
    #[inline]
    pub fn rows_passed(&mut self, before: u64, added: u64, now_ns: u64) {
        let Some(every) = self.terms.report_rows else { return };
        let after = before + added;
        if before / every == after / every {
            return;
        }
        if let (Some(sink), None) = (&mut self.sink, &self.totals.sink_error) {
            self.totals.sink_error = sink.rows(after, self.started_ns, now_ns).err();
        }
    }

    /// A statement was refused, or lost with its connection.
    pub fn refused(&mut self, kind: u16, error: &ServerError) {
        self.current.tally.errors += 1;
        self.totals.errors.record(kind, error);
    }

    /// A client has a new connection.
    pub fn reconnected(&mut self) {
        self.current.tally.reconnects += 1;
    }

    /// How the open loop stands.
    pub fn gauge(&mut self, gauges: Gauges) {
        self.current.gauges = gauges;
        self.totals.gauges = gauges;
    }

    /// The end of the open interval, if that is over.
    #[inline]
    pub fn interval_due(&self, now_ns: u64) -> Option<u64> {
        (now_ns >= self.interval_end_ns).then_some(self.interval_end_ns)
    }

    /// Closes the intervals that ended before `now_ns`.
    pub fn pass_time(&mut self, now_ns: u64) {
        while let Some(end_ns) = self.interval_due(now_ns) {
            self.close_interval(end_ns);
        }
    }

    /// The run is over: closes the open interval.
    pub fn finish(&mut self, now_ns: u64) {
        self.pass_time(now_ns);
        if now_ns > self.current.start_ns {
            self.close_interval(now_ns);
        }
        self.interval_end_ns = u64::MAX;
    }

    #[cold]
    fn close_interval(&mut self, end_ns: u64) {
        self.current.end_ns = end_ns;
        if let (Some(sink), None) = (&mut self.sink, &self.totals.sink_error) {
            self.totals.sink_error = sink.interval(&self.current).err();
        }
        self.totals.tally.add(&self.current.tally);
        self.current.tally.clear();
        self.current.number += 1;
        self.current.start_ns = end_ns;
        self.interval_end_ns = end_ns.saturating_add(self.terms.interval_ns);
    }

    /// All of a finished run.
    pub fn into_totals(self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::Part;

    #[test]
    fn a_summary_keeps_three_digits() {
        let mut latencies = Latencies::default();
        for value in 1..=100_000 {
            latencies.record(value * 1000);
        }
        let summary = latencies.summary();
        assert_eq!((summary.min, summary.max), (Some(1000), Some(100_000_000)));
        let p99 = summary.p99().unwrap() as f64;
        assert!((p99 / 99_000_000.0 - 1.0).abs() < 1e-3, "{p99}");
        assert_eq!(Latencies::default().summary(), Summary::default());
    }

    #[test]
    fn a_longer_latency_than_any_counts() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX / 2);
        latencies.record(0);
        assert_eq!(latencies.count(), 2);
        assert_eq!(latencies.histogram.len(), 2);
    }

    #[derive(Default)]
    struct Seen {
        intervals: Vec<(u64, u64, u64, u64)>,
        rows: Vec<u64>,
    }

    fn kinds() -> Arc<[Kind]> {
        Arc::new([Kind::query("insert"), Kind::query("select"), Kind::apart("commit")])
    }

    impl IntervalSink for Seen {
        fn interval(&mut self, i: &Interval) -> io::Result<()> {
            self.intervals.push((i.start_ns, i.end_ns, i.tally.queries(&kinds()), i.tally.errors));
            Ok(())
        }

        fn rows(&mut self, rows: u64, _: u64, _: u64) -> io::Result<()> {
            self.rows.push(rows);
            Ok(())
        }
    }

    fn terms() -> Terms {
        Terms { run: 0, kinds: kinds(), phases: 2, interval_ns: 100, report_rows: Some(10) }
    }

    fn statement(kind: u16, phase: u8) -> Statement {
        Statement { kind, part: Part::Last, rows: 0, phase }
    }

    #[test]
    fn every_answer_is_in_one_interval_and_silence_is_shown() {
        let mut seen = Seen::default();
        let mut recorder = Recorder::new(terms(), Some(&mut seen));
        recorder.start(1000);
        recorder.answered(statement(0, 0), 1000, 1005);
        recorder.answered(statement(1, 0), 1000, 1099);
        recorder.answered(statement(2, 0), 1000, 1099);
        recorder.pass_time(1350);
        recorder.answered(statement(0, 1), 1100, 1350);
        let error = ServerError::parse(b"\xff\x26\x04#23000dup", 12).unwrap();
        recorder.refused(0, &error);
        recorder.finish(1380);
        let totals = recorder.into_totals();
        assert_eq!(seen.intervals, [(1000, 1100, 2, 0), (1100, 1200, 0, 0), (1200, 1300, 0, 0), (1300, 1380, 1, 1)]);
        assert_eq!(totals.tally.kinds[0].count(), 2);
        assert_eq!(totals.tally.kinds[0].summary().max, Some(250));
        assert_eq!(totals.errors.list(&kinds())[0].count, 1);
        let spans = [Some(Span { start_ns: 1000, end_ns: 1099 }), Some(Span { start_ns: 1100, end_ns: 1350 })];
        assert_eq!(totals.spans, spans);
    }

    #[test]
    fn rows_are_told_of_when_they_pass_a_multiple() {
        let mut seen = Seen::default();
        let mut recorder = Recorder::new(terms(), Some(&mut seen));
        for before in [0, 4, 8, 12, 16] {
            recorder.rows_passed(before, 4, 0);
        }
        assert_eq!(seen.rows, [12, 20]);
    }

    #[test]
    fn threads_add_up() {
        let mut sum = Totals::default();
        for start in [1000, 2000] {
            let mut recorder = Recorder::new(terms(), None);
            recorder.start(start);
            recorder.answered(statement(1, 0), start, start + 7);
            recorder.gauge(Gauges { offered: 3, backlog: 1, backlog_max: 2, offered_for_ns: start });
            recorder.started_late(start);
            recorder.finish(start + 50);
            sum.add(recorder.into_totals());
        }
        assert_eq!((sum.tally.queries(&kinds()), sum.tally.kinds[1].count()), (2, 2));
        assert_eq!(sum.gauges, Gauges { offered: 6, backlog: 2, backlog_max: 4, offered_for_ns: 2000 });
        assert_eq!((sum.lateness.count(), sum.lateness.summary().max), (2, Some(2000)));
        assert_eq!(sum.spans, [Some(Span { start_ns: 1000, end_ns: 2007 }), None]);
    }
}
