//! What is counted: the columns of iostat, and latencies.
//!
//! A request is in the queue from its allocation to its completion, or until another absorbs it. Latency is a bio's:
//! from when its process meant to ask, so it holds the wait for a request, too.

use dbdyno_common::results::Columns;
use hdrhistogram::Histogram;

use crate::queue::{Bio, Direction, Request};

/// Latencies of the bios of one direction, in nanoseconds, to three digits; up to an hour.
type Latencies = Histogram<u64>;

/// An hour: what takes longer counts as an hour in the histogram.
const MOST_NS: u64 = 3_600_000_000_000;

/// Counts of one direction.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Requests completed.
    pub requests: u64,
    /// Bios that joined a request, and requests that others absorbed.
    pub merges: u64,
    /// Sectors completed.
    pub sectors: u64,
    /// Time from allocation to completion of all requests completed, nanoseconds.
    pub wait_ns: u128,
    /// Bios finished.
    pub bios: u64,
    /// Latencies of these, nanoseconds.
    pub latencies: Latencies,
}

impl Default for Counts {
    fn default() -> Self {
        // Constants that are within what a histogram takes.
        #[allow(clippy::unwrap_used)]
        let latencies = Histogram::new_with_bounds(1, MOST_NS, 3).unwrap();
        Self { requests: 0, merges: 0, sectors: 0, wait_ns: 0, bios: 0, latencies }
    }
}

/// Counts since time 0.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    directions: [Counts; 2],
    /// Flushes that the drive finished.
    pub flushes: u64,
    /// Requests there are.
    queued: u64,
    /// Until when `queue_ns` and `busy_ns` are counted.
    counted_ns: u64,
    /// Requests in the queue, summed over time.
    queue_ns: u128,
    /// Time with at least one request.
    busy_ns: u64,
    /// Time in the queue of all requests that left it, flushes and absorbed ones included.
    left_ns: u128,
    /// Requests that left it.
    left: u64,
}

impl Statistics {
    /// What was counted of one direction.
    pub fn of(&self, direction: Direction) -> &Counts {
        &self.directions[direction.index()]
    }

    /// Requests in the queue, summed over the time up to the last change: request-nanoseconds.
    pub fn queue_ns(&self) -> u128 {
        self.queue_ns
    }

    /// Time with at least one request, nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Requests that left the queue, and their time in it altogether, nanoseconds.
    pub fn left(&self) -> (u64, u128) {
        (self.left, self.left_ns)
    }

    /// Requests in the queue now.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// iostat's columns over the time from 0 to `end_ns`.
    pub fn columns(&self, end_ns: u64) -> Columns {
        columns_between(&Totals::default(), &self.totals(end_ns))
    }

    /// The counts at a time since when nothing has changed.
    pub fn totals(&self, at_ns: u64) -> Totals {
        let rest_ns = at_ns.saturating_sub(self.counted_ns);
        let by_direction = |count: fn(&Counts) -> u64| [count(&self.directions[0]), count(&self.directions[1])];
        Totals {
            at_ns,
            requests: by_direction(|counts| counts.requests),
            merges: by_direction(|counts| counts.merges),
            sectors: by_direction(|counts| counts.sectors),
            wait_ns: [self.directions[0].wait_ns, self.directions[1].wait_ns],
            queue_ns: self.queue_ns + u128::from(rest_ns) * u128::from(self.queued),
            busy_ns: self.busy_ns + if self.queued > 0 { rest_ns } else { 0 },
        }
    }

    pub(crate) fn arrived(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.queued += 1;
    }

    pub(crate) fn merged(&mut self, bio: &Bio) {
        self.directions[bio.direction.index()].merges += 1;
    }

    /// Two requests became one, which has been there since the first of them came.
    pub(crate) fn absorbed(&mut self, now_ns: u64, request: &Request, other: &Request) {
        self.leave(now_ns, request.arrived_ns.max(other.arrived_ns));
        self.directions[request.direction.index()].merges += 1;
    }

    pub(crate) fn completed(&mut self, now_ns: u64, request: &Request) {
        self.leave(now_ns, request.arrived_ns);
        if request.flush {
            return;
        }
        let counts = &mut self.directions[request.direction.index()];
        counts.requests += 1;
        counts.sectors += u64::from(request.sectors);
        counts.wait_ns += u128::from(now_ns - request.arrived_ns);
    }

    /// The drive finished a flush.
    pub(crate) fn flushed(&mut self) {
        self.flushes += 1;
    }

    pub(crate) fn finished(&mut self, now_ns: u64, bio: &Bio) {
        if bio.sectors == 0 {
            return;
        }
        let counts = &mut self.directions[bio.direction.index()];
        counts.bios += 1;
        counts.latencies.saturating_record((now_ns - bio.intended_ns).max(1));
    }

    fn leave(&mut self, now_ns: u64, arrived_ns: u64) {
        self.advance(now_ns);
        self.queued -= 1;
        self.left += 1;
        self.left_ns += u128::from(now_ns - arrived_ns);
    }

    fn advance(&mut self, now_ns: u64) {
        let passed_ns = now_ns - self.counted_ns;
        self.queue_ns += u128::from(passed_ns) * u128::from(self.queued);
        if self.queued > 0 {
            self.busy_ns += passed_ns;
        }
        self.counted_ns = now_ns;
    }
}

/// Counts at a moment; what those of two moments differ by happened between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// When.
    pub at_ns: u64,
    requests: [u64; 2],
    merges: [u64; 2],
    sectors: [u64; 2],
    wait_ns: [u128; 2],
    queue_ns: u128,
    busy_ns: u64,
}

/// iostat's columns over the time between two moments.
pub fn columns_between(from: &Totals, to: &Totals) -> Columns {
    let passed_ns = (to.at_ns - from.at_ns) as f64;
    let rate = |count: fn(&Totals) -> u64| ratio((count(to) - count(from)) as f64, passed_ns / 1e9);
    let requests = [0, 1].map(|place| to.requests[place] - from.requests[place]);
    let sectors = [0, 1].map(|place| to.sectors[place] - from.sectors[place]);
    let wait_ns = [0, 1].map(|place| to.wait_ns[place] - from.wait_ns[place]);
    let all = requests[0] + requests[1];
    let mean_ms = |ns: u128, requests: u64| ratio(ns as f64 / 1e6, requests as f64);
    let busy_ns = to.busy_ns - from.busy_ns;
    Columns {
        reads_per_s: rate(|totals| totals.requests[0]),
        writes_per_s: rate(|totals| totals.requests[1]),
        reads_merged_per_s: rate(|totals| totals.merges[0]),
        writes_merged_per_s: rate(|totals| totals.merges[1]),
        read_kib_per_s: rate(|totals| totals.sectors[0]) / 2.0,
        written_kib_per_s: rate(|totals| totals.sectors[1]) / 2.0,
        request_sectors_mean: ratio((sectors[0] + sectors[1]) as f64, all as f64),
        queue_requests_mean: ratio((to.queue_ns - from.queue_ns) as f64, passed_ns),
        wait_ms_mean: mean_ms(wait_ns[0] + wait_ns[1], all),
        read_wait_ms_mean: mean_ms(wait_ns[0], requests[0]),
        write_wait_ms_mean: mean_ms(wait_ns[1], requests[1]),
        service_ms_mean: mean_ms(u128::from(busy_ns), all),
        busy_percent: 100.0 * ratio(busy_ns as f64, passed_ns),
    }
}

/// 0 where there is nothing to divide by, as iostat prints it.
fn ratio(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}
