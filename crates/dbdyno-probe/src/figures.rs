//! What the requests of a block trace come to: one definition of every figure, for the kernel's trace and for an emulated
//! disk's own. The columns of iostat are in `probe/iostat.py`.
//!
//! - *time in the queue* (Q2D): from when the first bio of a request was queued until the request was issued to the
//!   driver.
//! - *time in the device* (D2C): from issue to completion.
//! - *seek*: bytes between the end of a request and the start of the next one issued, either way. Flushes don't count.
//! - *run*: requests issued one after another at ascending addresses. Random order has runs of 2.
//! - *depth*: requests in the device when one is issued, itself included; *waiting*: bios that still wait then.
//!
//! Sums are kept for slices of a tenth of a second and can be added up, so that figures of any window can be had
//! afterwards. Times of requests have an exact mean, and percentiles from a histogram.

use std::collections::VecDeque;

use dbdyno_common::histogram::{Exact, Summary};
use dbdyno_common::results::{BlockSums, BlockTrace, MeanAndMax};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::requests::{Completed, Issued};
use crate::tracefs::event::Kind;

/// Length of a slice, and of an interval of the series.
pub const SLICE_NS: u64 = 100_000_000;

/// Slices that are kept: ten hours. What is older no longer counts for a window.
const SLICES_MAX: usize = 360_000;

/// Everything counted so far.
#[derive(Debug, Default)]
pub struct Figures {
    /// Number of the oldest slice, counted from time 0 of the clock.
    first: u64,
    slices: VecDeque<Sums>,
    /// Where the last request ended and began, in bytes.
    last: Option<(u64, u64)>,
    whole: Counts,
}

/// What is known of the whole trace alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Events or records that were lost.
    pub lost: u64,
    /// Completions whose issue was not seen.
    pub unmatched: u64,
    /// Empty writes that only asked for a flush.
    pub flushes_asked: u64,
}

impl Figures {
    /// A request was handed to the device.
    pub fn issued(&mut self, issued: &Issued) {
        let moves = matches!(issued.kind, Kind::Read | Kind::Write | Kind::Discard);
        let start = issued.sector * 512;
        let last = self.last;
        self.at(issued.at_ns, |sums| {
            sums.issued(issued);
            if moves {
                sums.moved(last, start);
            }
        });
        if moves {
            self.last = Some((start.saturating_add(issued.bytes), start));
        }
    }

    /// A request was done.
    pub fn completed(&mut self, completed: &Completed) {
        self.at(completed.at_ns, |sums| sums.completed(completed));
    }

    /// What is known of the whole trace alone.
    pub fn counts(&mut self) -> &mut Counts {
        &mut self.whole
    }

    fn at(&mut self, at_ns: u64, add: impl FnOnce(&mut Sums)) {
        let number = at_ns / SLICE_NS;
        if self.slices.is_empty() {
            self.first = number;
        }
        // What comes late, or from before the first slice, is counted in the nearest there is.
        let mut place = number.saturating_sub(self.first) as usize;
        if place >= self.slices.len() + SLICES_MAX {
            self.slices.clear();
            (self.first, place) = (number, 0);
        }
        while self.slices.len() <= place {
            if let Some(done) = self.slices.len().checked_sub(2).and_then(|index| self.slices.get_mut(index)) {
                done.pack();
            }
            self.slices.push_back(Sums::default());
        }
        add(&mut self.slices[place]);
        while self.slices.len() > SLICES_MAX {
            self.slices.pop_front();
            self.first += 1;
        }
    }

    /// Slices with the ends of their time, oldest first.
    pub fn slices(&self) -> impl Iterator<Item = (u64, &Sums)> {
        (self.first..).map(|number| (number + 1) * SLICE_NS).zip(&self.slices)
    }

    /// The sum of the slices of which at least one half lies inside a window; of all without one.
    pub fn within(&self, window_ns: Option<(u64, u64)>) -> Sums {
        let mut sum = Sums::default();
        for (end_ns, slice) in self.slices() {
            let middle = end_ns - SLICE_NS / 2;
            if window_ns.is_none_or(|(start, end)| start <= middle && middle < end) {
                sum.add(slice);
            }
        }
        sum
    }

    /// The figures of a window, or of the whole trace. `open` is the number of requests that are not done yet.
    pub fn figures(&self, window_ns: Option<(u64, u64)>, open: u32) -> BlockTrace {
        BlockTrace {
            sums: self.within(window_ns).figures(),
            window_ns: window_ns.map(|(start, end)| [start, end]),
            flushes_asked: self.whole.flushes_asked,
            lost: self.whole.lost,
            unmatched: self.whole.unmatched,
            open,
            source: None,
            device: None,
            cpu_seconds: None,
            recorded: None,
        }
    }
}

/// Two significant digits: percentiles are right within 1 %.
const DIGITS: u8 = 2;

/// Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    pub count: u64,
    pub sum_ns: u64,
    max_ns: u64,
    histogram: Option<Histogram<u32>>,
    /// The histogram of a slice that is over, in the library's compact format.
    packed: Vec<u8>,
}

impl Latency {
    /// One more time.
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.open().saturating_record(ns.max(1));
    }

    /// Gives up the open histogram's memory.
    pub fn pack(&mut self) {
        if let Some(histogram) = self.histogram.take() {
            let mut bytes = Vec::new();
            match V2Serializer::new().serialize(&histogram, &mut bytes) {
                Ok(_) => self.packed = bytes,
                Err(_) => self.histogram = Some(histogram),
            }
        }
    }

    /// Adds another's times.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        // Same digits, and both grow as they need: an addition can't fail.
        if let Some(histogram) = other.unpacked() {
            let _ = self.open().add(histogram);
        }
    }

    fn unpacked(&self) -> Option<Histogram<u32>> {
        self.histogram.clone().or_else(|| Deserializer::new().deserialize(&mut self.packed.as_slice()).ok())
    }

    fn open(&mut self) -> &mut Histogram<u32> {
        let packed = std::mem::take(&mut self.packed);
        self.histogram.get_or_insert_with(|| {
            let unpacked = Deserializer::new().deserialize(&mut packed.as_slice()).ok();
            // An hour is longer than any request may take before the kernel gives it up.
            unpacked
                .or_else(|| Histogram::new_with_bounds(1, 3_600_000_000_000, DIGITS).ok())
                .unwrap_or_else(|| unreachable!("the bounds are those of a valid histogram"))
        })
    }

    /// Mean in milliseconds; null where there is no time.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e6)
    }

    /// What they come to, in milliseconds.
    pub fn summary_ms(&self) -> Summary<f64> {
        let exact = Exact { min: None, max: Some(self.max_ns), sum: Some(self.sum_ns as f64) };
        let histogram = self.unpacked().filter(|_| self.count > 0);
        histogram.map_or_else(Summary::default, |histogram| Summary::from_histogram(&histogram, exact).in_ms())
    }
}

const KINDS: usize = Kind::ALL.len();

/// What requests of one kind came to.
#[derive(Debug, Clone, Default)]
struct OfKind {
    issued: u64,
    completed: u64,
    bytes: u64,
    errors: u64,
    queue: Latency,
    device: Latency,
}

/// A sum and a maximum of what was met at each issue.
#[derive(Debug, Clone, Copy, Default)]
struct MeanCount {
    sum: u64,
    max: u32,
}

impl MeanCount {
    fn meet(&mut self, value: u32) {
        self.sum += u64::from(value);
        self.max = self.max.max(value);
    }

    fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn figures(self, count: u64) -> MeanAndMax {
        MeanAndMax { mean: mean(self.sum as f64, count), max: (count > 0).then_some(self.max) }
    }
}

/// Everything that can be added up.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    kinds: [OfKind; KINDS],
    depth: MeanCount,
    waiting: MeanCount,
    bios: u64,
    /// Requests with an address, and those of them that had one before them.
    moves: u64,
    steps: u64,
    seek_bytes: f64,
    sequential: u64,
    ascending: u64,
}

impl Sums {
    /// A request was handed to the device.
    pub fn issued(&mut self, issued: &Issued) {
        let kind = &mut self.kinds[issued.kind as usize];
        kind.issued += 1;
        kind.bytes += issued.bytes;
        if let Some(queued_ns) = issued.queued_ns {
            kind.queue.record(issued.at_ns.saturating_sub(queued_ns));
        }
        self.depth.meet(issued.depth);
        self.waiting.meet(issued.waiting);
        self.bios += u64::from(issued.bios);
    }

    /// A request with an address began at byte `start`, the one before it (if any) ended and began at `last`.
    pub fn moved(&mut self, last: Option<(u64, u64)>, start: u64) {
        self.moves += 1;
        if let Some((end, began)) = last {
            self.steps += 1;
            self.seek_bytes += start.abs_diff(end) as f64;
            self.sequential += u64::from(start == end);
            self.ascending += u64::from(start >= began);
        }
    }

    /// A request was done.
    pub fn completed(&mut self, completed: &Completed) {
        let kind = &mut self.kinds[completed.issued.kind as usize];
        kind.completed += 1;
        kind.errors += u64::from(completed.failed);
        kind.device.record(completed.at_ns.saturating_sub(completed.issued.at_ns));
    }

    /// Gives up what memory it can: nothing more is likely to come.
    pub fn pack(&mut self) {
        for kind in &mut self.kinds {
            kind.queue.pack();
            kind.device.pack();
        }
    }

    /// Adds another's sums.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.kinds.iter_mut().zip(&other.kinds) {
            own.issued += others.issued;
            own.completed += others.completed;
            own.bytes += others.bytes;
            own.errors += others.errors;
            own.queue.add(&others.queue);
            own.device.add(&others.device);
        }
        self.depth.add(other.depth);
        self.waiting.add(other.waiting);
        self.bios += other.bios;
        self.moves += other.moves;
        self.steps += other.steps;
        self.seek_bytes += other.seek_bytes;
        self.sequential += other.sequential;
        self.ascending += other.ascending;
    }

    /// Mean times of reads and writes in ms, mean seek in bytes, mean run in requests, mean depth; requests issued.
    pub fn row(&self) -> (u64, [Option<f64>; 5]) {
        let issued = self.issued_in_all();
        let runs = self.runs();
        let means = [
            self.together(|kind| &kind.queue).mean_ms(),
            self.together(|kind| &kind.device).mean_ms(),
            mean(self.seek_bytes, self.steps),
            mean(self.moves as f64, runs),
            mean(self.depth.sum as f64, issued),
        ];
        (issued, means)
    }

    /// Runs at ascending addresses: one more than there are steps back, and at least one where anything was issued.
    fn runs(&self) -> u64 {
        if self.moves == 0 { 0 } else { self.steps - self.ascending + 1 }
    }

    fn issued_in_all(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.issued).sum()
    }

    /// Reads and writes as one.
    fn together(&self, part: impl Fn(&OfKind) -> &Latency) -> Latency {
        let mut all = part(&self.kinds[Kind::Read as usize]).clone();
        all.add(part(&self.kinds[Kind::Write as usize]));
        all
    }

    /// All figures; what is unknown is null.
    pub fn figures(&self) -> BlockSums {
        let by_kind = |part: fn(&OfKind) -> u64| {
            Kind::ALL.iter().map(|(kind, word)| ((*word).into(), part(&self.kinds[*kind as usize]))).collect()
        };
        let times = |part: fn(&OfKind) -> &Latency| {
            let timed = Kind::ALL.iter().filter(|(_, word)| matches!(*word, "read" | "write" | "flush"));
            let latencies = timed.map(|(kind, word)| ((*word).into(), part(&self.kinds[*kind as usize]).summary_ms()));
            latencies.chain([("all".into(), self.together(part).summary_ms())]).collect()
        };
        let (issued, runs) = (self.issued_in_all(), self.runs());
        BlockSums {
            requests: by_kind(|kind| kind.issued),
            completed: by_kind(|kind| kind.completed),
            bytes: by_kind(|kind| kind.bytes),
            errors: self.kinds.iter().map(|kind| kind.errors).sum(),
            queue_ms: times(|kind| &kind.queue),
            device_ms: times(|kind| &kind.device),
            seek_bytes_mean: mean(self.seek_bytes, self.steps),
            sequential_ratio: mean(self.sequential as f64, self.steps),
            ascending_ratio: mean(self.ascending as f64, self.steps),
            sorted_runs: runs,
            sorted_run_requests_mean: mean(self.moves as f64, runs),
            device_depth: self.depth.figures(issued),
            waiting_bios: self.waiting.figures(issued),
            bios: self.bios,
        }
    }
}

fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn issued(at_ns: u64, sector: u64, sectors: u64) -> Issued {
        let (kind, bytes) = (Kind::Write, sectors * 512);
        Issued { at_ns, kind, sector, bytes, queued_ns: Some(at_ns - at_ns / 4), bios: 1, depth: 3, waiting: 1 }
    }

    fn figures(sectors: &[u64]) -> Figures {
        let mut figures = Figures::default();
        for (number, sector) in (1..).zip(sectors) {
            figures.issued(&issued(number * 1_000_000, *sector, 8));
        }
        figures
    }

    #[test]
    fn runs_and_distances_are_those_of_the_definition() {
        // Three runs: 0 8 80, 16 24, 0. Distances in sectors from end to start: 0, 64, 72, 0, 32.
        let summary = json!(figures(&[0, 8, 80, 16, 24, 0]).figures(None, 0));
        assert_eq!((&summary["sorted_runs"], &summary["sorted_run_requests_mean"]), (&json!(3), &json!(2.0)));
        assert_eq!(summary["seek_bytes_mean"], json!(168.0 * 512.0 / 5.0));
        assert_eq!((&summary["sequential_ratio"], &summary["ascending_ratio"]), (&json!(0.4), &json!(0.6)));
        assert_eq!(summary["device_depth"], json!({"mean": 3.0, "max": 3}));
    }

    #[test]
    fn random_order_has_runs_of_two() {
        let mut state = 1u64;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 40
        });
        let summary = json!(figures(&random.take(4000).collect::<Vec<_>>()).figures(None, 0));
        let mean = summary["sorted_run_requests_mean"].as_f64().unwrap();
        assert!((1.9..2.1).contains(&mean), "{mean}");
    }

    #[test]
    fn a_window_takes_whole_slices() {
        let mut figures = Figures::default();
        for slice in 10..20 {
            figures.issued(&issued(slice * SLICE_NS + 1, slice * 8, 8));
        }
        let of = |start: u64, end: u64| json!(figures.figures(Some((start, end)), 0))["requests"]["write"].as_u64();
        assert_eq!(of(12 * SLICE_NS, 15 * SLICE_NS), Some(3));
        assert_eq!(of(12 * SLICE_NS + 40_000_000, 15 * SLICE_NS + 40_000_000), Some(3));
        assert_eq!(of(12 * SLICE_NS + 60_000_000, 15 * SLICE_NS), Some(2));
        assert_eq!(figures.figures(None, 2).open, 2);
    }

    #[test]
    fn a_trace_of_nothing_has_no_figures() {
        let summary = json!(Figures::default().figures(None, 0));
        for name in ["seek_bytes_mean", "sorted_run_requests_mean", "sequential_ratio"] {
            assert_eq!(summary[name], Value::Null, "{name}");
        }
        assert_eq!(summary["device_ms"]["all"]["p99"], Value::Null);
    }

    #[test]
    fn what_comes_after_a_jump_of_the_clock_is_counted() {
        let mut figures = figures(&[0, 8]);
        figures.issued(&issued(u64::MAX / 2, 16, 8));
        assert_eq!(json!(figures.figures(None, 0))["requests"]["write"], 1);
        assert_eq!(figures.slices().count(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Means are exact and percentiles within 1 % of those of the sorted times, over slices and however they are
        /// packed.
        #[test]
        fn times_are_right(times in proptest::collection::vec(1u64..5_000_000_000, 1..300), slices in 1u64..9) {
            let mut figures = Figures::default();
            for (number, time) in (0..).zip(&times) {
                let request = issued(number % slices * SLICE_NS, 0, 8);
                figures.completed(&Completed { at_ns: request.at_ns + time, issued: request, failed: false });
            }
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let latency = &json!(figures.figures(None, 0))["device_ms"]["write"];
            let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6;
            prop_assert!((latency["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
            for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                let exact = sorted[((share * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1] as f64 / 1e6;
                let ratio = latency[name].as_f64().unwrap() / exact;
                prop_assert!((0.989..1.011).contains(&ratio), "{} is {} times what it should be", name, ratio);
            }
        }

        /// Adding slices up gives what one stretch would have given.
        #[test]
        fn windows_add_up(sectors in proptest::collection::vec(0u64..1000, 1..60)) {
            let mut figures = Figures::default();
            for (number, sector) in (1..).zip(&sectors) {
                figures.issued(&issued(number * 30_000_000, *sector, 8));
            }
            let of = |window| json!(figures.within(window).figures())["requests"]["write"].as_u64().unwrap();
            let middle = 10 * SLICE_NS;
            prop_assert_eq!(of(Some((0, middle))) + of(Some((middle, u64::MAX))), of(None));
            prop_assert_eq!(of(None) as usize, sectors.len());
        }
    }
}
