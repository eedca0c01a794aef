//! The figures of a point: latencies of a direction, a sample of the drive's commands for a picture, the distances between
//! them, and the course of time in a bounded number of intervals.

use dbdyno_common::random::Random;
use dbdyno_common::results::{OutcomeSeries, Sample, Seeks, SimulatedLatencies};
use dbdyno_common::summary::{Exact, Summary, SummaryNs, encode};
use hdrhistogram::Histogram;

use super::load::Load;
use super::spec::PointError;
use crate::statistics::{Totals, columns_between};

/// What a histogram of latencies comes to, and the histogram itself.
pub(super) fn latencies(histogram: &Histogram<u64>) -> Result<SimulatedLatencies, PointError> {
    let text = encode(histogram).map_err(|error| PointError::new("latencies", error.to_string()))?;
    Ok(SimulatedLatencies { summary: SummaryNs(Summary::from_histogram(histogram, Exact::default())), histogram: text })
}

/// Commands drawn with one probability, halved whenever there are too many.
#[derive(Debug, Clone)]
pub struct Sampling {
    random: Random,
    most: usize,
    /// One of 2^`halvings` is kept.
    halvings: u32,
    /// When, where, whether it is a write, and what was drawn for it.
    kept: Vec<(u64, u64, bool, u64)>,
}

impl Sampling {
    pub(super) fn new(seed: u64, most: usize) -> Self {
        Self { random: Random::new(!seed), most, halvings: 0, kept: Vec::new() }
    }

    pub(super) fn add(&mut self, now_ns: u64, sector: u64, is_write: bool) {
        if self.most == 0 {
            return;
        }
        let drawn = self.random.bits();
        if drawn.trailing_zeros() < self.halvings {
            return;
        }
        self.kept.push((now_ns, sector, is_write, drawn));
        if self.kept.len() > self.most {
            self.halvings += 1;
            let least = self.halvings;
            self.kept.retain(|(.., drawn)| drawn.trailing_zeros() >= least);
        }
    }

    pub(super) fn sample(&self) -> Sample {
        // Microseconds are finer than any picture.
        let at_s = self.kept.iter().map(|(at_ns, ..)| (at_ns / 1000) as f64 / 1e6).collect();
        Sample {
            share: 0.5_f64.powi(self.halvings.cast_signed()),
            at_s,
            sector: self.kept.iter().map(|(_, sector, ..)| *sector).collect(),
            write: self.kept.iter().map(|(.., is_write, _)| u8::from(*is_write)).collect(),
        }
    }
}

/// Distances so far; of each direction a place for every power of two.
#[derive(Debug, Clone)]
pub struct Distances {
    counted: Seeks,
    end_sector: Option<u64>,
}

impl Default for Distances {
    fn default() -> Self {
        let counted = Seeks { contiguous: 0, forward: vec![0; 64], backward: vec![0; 64], ascending_runs: 0 };
        Self { counted, end_sector: None }
    }
}

impl Distances {
    pub(super) fn add(&mut self, start_sector: u64, end_sector: u64) {
        let counted = &mut self.counted;
        match self.end_sector.replace(end_sector) {
            None => counted.ascending_runs = 1,
            Some(last) if last == start_sector => counted.contiguous += 1,
            Some(last) if start_sector > last => counted.forward[(start_sector - last).ilog2() as usize] += 1,
            Some(last) => {
                counted.backward[(last - start_sector).ilog2() as usize] += 1;
                counted.ascending_runs += 1;
            }
        }
    }

    /// Without the empty places at the end.
    pub(super) fn trimmed(&self) -> Seeks {
        let mut found = self.counted.clone();
        for counts in [&mut found.forward, &mut found.backward] {
            let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
            counts.truncate(used);
        }
        found
    }
}

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

    pub(super) fn series(&self) -> OutcomeSeries {
        let mut series = OutcomeSeries { interval_s: self.interval_ns as f64 / 1e9, ..OutcomeSeries::default() };
        for pair in self.kept.windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            series.end_s.push(to.totals.at_ns as f64 / 1e9);
            series.columns.push(columns_between(&from.totals, &to.totals));
            series.queued.push(to.queued);
            for (name, value) in &to.gauges {
                series.gauges.entry((*name).into()).or_default().push(*value);
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
