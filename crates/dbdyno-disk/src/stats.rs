//! What the disk did and how well it kept the model's times; times of many requests are a histogram.

use dbdyno_common::histogram::{Exact, Summary};
use dbdyno_common::results::DiskRequests;
use dbdyno_device::Kind;
use hdrhistogram::Histogram;

use crate::trace::{NAMES, Record, index};

/// Counters since the start or the last reset.
pub struct Stats {
    counts: [u64; 4],
    read_bytes: u64,
    write_bytes: u64,
    service: [Times; 4],
    lateness: Times,
    path_before: Times,
    path_taken: Times,
    path_left: Times,
    path_early: Times,
    queue_depth_max: u32,
    enospc_errors: u64,
    /// Failed by kind, for whatever reason.
    errors: [u64; 4],
}

/// A request that was answered.
pub struct Answered {
    pub record: Record,
    /// `None` if no model was asked.
    pub timing: Option<Timing>,
}

impl Answered {
    /// From when it was to leave to when the block layer had it; `None` if it could not leave when it should have.
    pub fn way_ns(&self) -> Option<u64> {
        let free = self.timing.filter(|timing| timing.before_ns.is_some() && timing.taken_ns == timing.ahead_ns);
        free.map(|timing| timing.done_ns.saturating_sub(timing.at_ns - timing.taken_ns))
    }
}

/// How an answer kept the model's time.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "names end in their unit")]
pub struct Timing {
    /// When the block layer had it.
    pub done_ns: u64,
    /// When the model said, counted from when it was given the request.
    pub at_ns: u64,
    /// How long before that it was to leave.
    pub taken_ns: u64,
    /// How long it should have been.
    pub ahead_ns: u64,
    /// How long the request took from the block layer to the model, where that is known.
    pub before_ns: Option<u64>,
}

impl Timing {
    /// After when it was to be there: the model's time, less what its request's way took as far as that could be given
    /// back.
    pub fn late_ns(&self) -> u64 {
        let given_back_ns = self.before_ns.map_or(self.taken_ns, |before_ns| before_ns.min(self.taken_ns));
        self.done_ns.saturating_sub(self.at_ns - given_back_ns)
    }

    /// How much longer than the model's time the request took for the block layer; less than 0 if it took less.
    pub fn off_ns(&self) -> Option<i64> {
        let off_ns = |before_ns: u64| (self.done_ns + before_ns).cast_signed() - self.at_ns.cast_signed();
        self.before_ns.map(off_ns)
    }
}

impl Stats {
    pub fn new() -> Self {
        Self {
            counts: [0; 4],
            read_bytes: 0,
            write_bytes: 0,
            service: std::array::from_fn(|_| Times::new()),
            lateness: Times::new(),
            path_before: Times::new(),
            path_taken: Times::new(),
            path_left: Times::new(),
            path_early: Times::new(),
            queue_depth_max: 0,
            enospc_errors: 0,
            errors: [0; 4],
        }
    }

    pub fn arrived(&mut self, kind: Kind, bytes: u64, queue_depth: u32) {
        self.counts[index(kind)] += 1;
        match kind {
            Kind::Read => self.read_bytes += bytes,
            Kind::Write => self.write_bytes += bytes,
            Kind::Flush | Kind::Discard => {}
        }
        self.queue_depth_max = self.queue_depth_max.max(queue_depth);
    }

    /// What failed is counted apart.
    pub fn answered(&mut self, Answered { record, timing }: &Answered) {
        let kind = index(record.kind);
        if record.error {
            self.errors[kind] += 1;
            return;
        }
        self.service[kind].record(record.completion_ns - record.arrival_ns);
        let Some(timing) = timing else { return };
        self.lateness.record(timing.late_ns());
        self.path_taken.record(timing.taken_ns);
        if let (Some(before_ns), Some(off_ns)) = (timing.before_ns, timing.off_ns()) {
            self.path_before.record(before_ns);
            self.path_left.record(off_ns.max(0).unsigned_abs());
            self.path_early.record(off_ns.min(0).unsigned_abs());
        }
    }

    /// A request that failed on arrival.
    pub fn refused(&mut self, kind: Kind) {
        self.counts[index(kind)] += 1;
        self.errors[index(kind)] += 1;
    }

    pub fn refused_for_space(&mut self) {
        self.enospc_errors += 1;
    }

    /// All of it, as it is reported.
    pub fn figures(&self) -> DiskRequests {
        DiskRequests {
            reads: self.counts[0],
            writes: self.counts[1],
            flushes: self.counts[2],
            discards: self.counts[3],
            read_bytes: self.read_bytes,
            write_bytes: self.write_bytes,
            service_ns: NAMES
                .iter()
                .zip(&self.service)
                .map(|(name, times)| ((*name).into(), times.summary()))
                .collect(),
            lateness_ns: self.lateness.summary(),
            path_before_ns: self.path_before.summary(),
            path_taken_ns: self.path_taken.summary(),
            path_left_ns: self.path_left.summary(),
            path_early_ns: self.path_early.summary(),
            queue_depth_max: self.queue_depth_max,
            enospc_errors: self.enospc_errors,
            errors: NAMES.iter().zip(self.errors).map(|(name, errors)| ((*name).into(), errors)).collect(),
        }
    }
}

/// The longest time that a histogram resolves, ns; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds with .1 % resolution. Made once: recording allocates nothing.
pub struct Times(Option<Histogram<u64>>);

impl Times {
    pub fn new() -> Self {
        // The bounds are constants that the crate accepts, so there is always a histogram.
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).ok())
    }

    pub fn record(&mut self, time_ns: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(time_ns);
        }
    }

    /// Takes in what another recorded.
    pub fn add(&mut self, other: &Self) {
        if let (Some(histogram), Some(other)) = (&mut self.0, &other.0) {
            histogram.add(other).unwrap_or_else(|error| unreachable!("both have the same bounds: {error}"));
        }
    }

    /// What they come to.
    pub fn summary(&self) -> Summary {
        self.0.as_ref().map_or_else(Summary::default, |histogram| Summary::from_histogram(histogram, Exact::default()))
    }
}
