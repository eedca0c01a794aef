//! What a run measures: latencies, errors and rows, per kind of statement and per interval.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use crate::latency::Latencies;
use crate::protocol::reply::ServerError;
use crate::statements::Kind;
use crate::statements::Statement;

/// How often the server answered with one error code to one kind of statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        let each = self.0.iter().map(|((code, kind), (error, count))| ErrorCount {
            code: *code,
            sqlstate: error.sqlstate.clone(),
            message: error.message.clone(),
            operation: kinds[usize::from(*kind)].name.clone(),
            count: *count,
        });
        each.collect()
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
#[path = "measure_tests.rs"]
mod tests;
