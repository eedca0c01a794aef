//! What requests come to: one definition of every figure, for the kernel's trace and for an emulated disk's own.
//!
//! - *time in the queue* (Q2D): from when the first bio of a request was queued until the request was issued to the driver.
//! - *time in the device* (D2C): from issue to completion.
//! - *seek*: bytes between the end of a request and the start of the next one issued, either way. Flushes don't count.
//! - *run*: requests issued one after another at ascending addresses. Random order has runs of 2.
//! - *depth*: requests in the device when one is issued, itself included; *waiting*: bios that still wait then.
//!
//! Sums are kept for slices of a tenth of a second, so that figures of any window can be had afterwards.

mod latency;
mod sums;

use std::collections::VecDeque;

use serde_json::{Value, json};

pub use sums::Sums;

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

    /// The figures of a window, or of the whole trace, as JSON. `open` is the number of requests that are not done yet.
    pub fn json(&self, window_ns: Option<(u64, u64)>, open: u32) -> Value {
        let mut found = self.within(window_ns).json();
        found["window_ns"] = json!(window_ns.map(|(start, end)| [start, end]));
        found["flushes_asked"] = json!(self.whole.flushes_asked);
        found["lost"] = json!(self.whole.lost);
        found["unmatched"] = json!(self.whole.unmatched);
        found["open"] = json!(open);
        found
    }
}

#[cfg(test)]
mod tests;
