//! How things went over time, in a bounded number of intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use super::load::Load;
use crate::statistics::{Columns, Totals};

/// What was counted at a moment.
#[derive(Debug, Clone)]
struct Moment {
    totals: Totals,
    queued: u64,
    counts: Vec<(&'static str, u64)>,
    gauges: Vec<(&'static str, u64)>,
}

/// Moments that are one interval apart.
#[derive(Debug)]
pub(super) struct Moments {
    interval_ns: u64,
    most: usize,
    kept: Vec<Moment>,
}

/// A value for each interval and column.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series {
    /// Length of an interval, seconds; the last may be shorter.
    pub interval_s: f64,
    /// When each ends, seconds since the load began.
    pub end_s: Vec<f64>,
    /// iostat's columns.
    pub columns: Vec<Columns>,
    /// Requests in the queue at its end.
    pub queued: Vec<u64>,
    /// What the load counts, a second.
    pub rates: BTreeMap<String, Vec<f64>>,
    /// How the load stands at its end.
    pub gauges: BTreeMap<&'static str, Vec<u64>>,
}

impl Moments {
    pub(super) fn new(interval_ns: u64, most: usize) -> Self {
        Self { interval_ns, most, kept: Vec::new() }
    }

    /// When the next is due.
    pub(super) fn next_ns(&self) -> u64 {
        self.kept.last().map_or(0, |last| last.totals.at_ns.saturating_add(self.interval_ns))
    }

    pub(super) fn add(&mut self, totals: Totals, queued: u64, load: &dyn Load) {
        if self.kept.last().is_some_and(|last| last.totals.at_ns >= totals.at_ns) {
            return;
        }
        self.kept.push(Moment { totals, queued, counts: load.counts(), gauges: load.gauges() });
        let intervals = self.kept.len() - 1;
        if intervals > self.most && intervals.is_multiple_of(2) {
            let mut is_odd = true;
            self.kept.retain(|_| {
                is_odd = !is_odd;
                !is_odd
            });
            self.interval_ns *= 2;
        }
    }

    pub(super) fn series(&self) -> Series {
        let mut series = Series { interval_s: self.interval_ns as f64 / 1e9, ..Series::default() };
        for pair in self.kept.windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            series.end_s.push(to.totals.at_ns as f64 / 1e9);
            series.columns.push(Columns::between(&from.totals, &to.totals));
            series.queued.push(to.queued);
            for (name, value) in &to.gauges {
                series.gauges.entry(name).or_default().push(*value);
            }
            let passed_s = (to.totals.at_ns - from.totals.at_ns) as f64 / 1e9;
            for ((name, before), (_, after)) in from.counts.iter().zip(&to.counts) {
                let rate = (after - before) as f64 / passed_s;
                series.rates.entry(format!("{name}/s")).or_default().push(rate);
            }
        }
        series
    }
}
