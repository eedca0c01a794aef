//! Things that happen at a known time, taken out in order of time, then of insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::contract::Completion;

/// A queue of `T` by time. Equal times come out in the order they went in, which keeps models deterministic.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    inserted: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at_ns: u64,
    sequence: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.sequence) == (other.at_ns, other.sequence)
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.sequence).cmp(&(other.at_ns, other.sequence))
    }
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), inserted: 0 }
    }

    pub(crate) fn push(&mut self, at_ns: u64, what: T) {
        self.inserted += 1;
        self.heap.push(Reverse(Entry { at_ns, sequence: self.inserted, what }));
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at_ns)
    }

    /// The earliest entry, if its time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at_ns, entry.what))
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
