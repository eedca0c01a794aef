//! Things that happen at a known time, taken out in order of time, then of insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::contract::Completion;

/// A queue of `T` by time. Equal times come out in the order they went in, which keeps models deterministic.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    /// Time, place in the order of insertion, and what happens then; no two places are equal, so `T` is never compared.
    heap: BinaryHeap<Reverse<(u64, u64, T)>>,
    inserted: u64,
}

impl<T: Ord> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), inserted: 0 }
    }

    pub(crate) fn push(&mut self, at_ns: u64, what: T) {
        self.inserted += 1;
        self.heap.push(Reverse((at_ns, self.inserted, what)));
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// The earliest entry, if its time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse((at_ns, _, what))| (at_ns, what))
    }
}

impl Agenda<u64> {
    /// Moves every command id whose time has come to `finished`.
    pub(crate) fn finish(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        while let Some((at_ns, id)) = self.pop_due(now_ns) {
            finished.push(Completion { id, at_ns });
        }
    }
}
