//! Things that happen at a known time, taken out in order of time, then of insertion.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::contract::Completion;

/// The earlier of two times that may not come.
pub(crate) fn earlier(one_ns: Option<u64>, other_ns: Option<u64>) -> Option<u64> {
    match (one_ns, other_ns) {
        (Some(one_ns), Some(other_ns)) => Some(one_ns.min(other_ns)),
        (one_ns, other_ns) => one_ns.or(other_ns),
    }
}

/// Time in the upper half, place in the order of insertion in the lower: one comparison orders both, and no two are equal.
#[derive(Debug)]
struct Entry<T> {
    key: u128,
    what: T,
}

impl<T> Entry<T> {
    fn at_ns(&self) -> u64 {
        (self.key >> 64) as u64
    }
}

/// The earliest is the greatest, which a heap gives first.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

/// A queue of `T` by time. Equal times come out in the order they went in, which keeps models deterministic.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Entry<T>>,
    inserted: u64,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), inserted: 0 }
    }

    pub(crate) fn push(&mut self, at_ns: u64, what: T) {
        self.inserted += 1;
        self.heap.push(Entry { key: u128::from(at_ns) << 64 | u128::from(self.inserted), what });
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(Entry::at_ns)
    }

    /// The earliest entry.
    pub(crate) fn next(&self) -> Option<(u64, T)>
    where
        T: Copy,
    {
        self.heap.peek().map(|entry| (entry.at_ns(), entry.what))
    }

    /// The earliest entry, if its time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at_ns(), entry.what))
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
