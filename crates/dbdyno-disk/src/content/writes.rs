//! Logged writes in order, which forks share.

use std::collections::VecDeque;
use std::sync::Arc;

use super::chunk::{Chunk, ZEROS, parts};

/// Writes are kept in segments: a fork copies a reference for each, and the first change of a segment after that copies it.
const SEGMENT_WRITES: usize = 64;

/// What a write takes in the log beside its data.
const WRITE_BYTES: u64 = 128;

/// A write, or a discard, as a power cut may meet it.
#[derive(Clone)]
pub struct Write {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// `None` for a discard.
    pub data: Option<Arc<Chunk>>,
    pub arrived_ns: u64,
    /// When it was made durable, by a FLUSH or its own answer; `None` if it is not.
    pub durable_ns: Option<u64>,
    /// The event that its answer was.
    pub answered: Option<u64>,
}

impl Write {
    /// A write of a cut that was taken.
    pub fn taken(
        offset_bytes: u64,
        length_bytes: u64,
        data: Option<Arc<Chunk>>,
        arrived_ns: u64,
        durable_ns: Option<u64>,
    ) -> Self {
        Self { offset_bytes, length_bytes, data, arrived_ns, durable_ns, answered: None }
    }

    /// Its parts by chunk: chunk, offset within it, bytes.
    pub fn parts(&self) -> impl Iterator<Item = (usize, usize, &[u8])> {
        let mut done = 0;
        parts(self.offset_bytes, self.length_bytes as usize).map(move |(index, within, part)| {
            let bytes = self.data.as_ref().map_or(&ZEROS[..part], |data| &data.bytes[done..done + part]);
            done += part;
            (index, within, bytes)
        })
    }

    /// Whether it touches one of these ranges (first byte, first byte after), which are apart and in order.
    pub fn touches_any(&self, ranges_bytes: &[(u64, u64)]) -> bool {
        let at = ranges_bytes.partition_point(|(_, after)| *after <= self.offset_bytes);
        ranges_bytes.get(at).is_some_and(|(first, _)| *first < self.offset_bytes + self.length_bytes)
    }

    /// What it takes in memory.
    pub fn logged_bytes(&self) -> u64 {
        WRITE_BYTES + self.data.as_ref().map_or(0, |_| self.length_bytes)
    }
}

/// Writes, oldest first. A copy shares what neither has changed.
#[derive(Clone, Default)]
pub struct Writes {
    /// All but the first and the last have [`SEGMENT_WRITES`].
    segments: VecDeque<Arc<VecDeque<Write>>>,
    /// How many were taken out of the first.
    popped: usize,
    count: usize,
}

impl Writes {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.segments.iter().flat_map(|segment| segment.iter())
    }

    pub fn last(&self) -> Option<&Write> {
        self.segments.back()?.back()
    }

    pub fn push(&mut self, write: Write) {
        if (self.popped + self.count).is_multiple_of(SEGMENT_WRITES) {
            self.segments.push_back(Arc::default());
        }
        if let Some(segment) = self.segments.back_mut() {
            Arc::make_mut(segment).push_back(write);
            self.count += 1;
        }
    }

    /// Takes out the oldest.
    pub fn pop(&mut self) -> Option<Write> {
        let write = Arc::make_mut(self.segments.front_mut()?).pop_front()?;
        self.count -= 1;
        self.popped += 1;
        if self.popped == SEGMENT_WRITES {
            self.segments.pop_front();
            self.popped = 0;
        }
        Some(write)
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut Write> {
        let place = at.checked_add(self.popped)?;
        let (segment, within) = (place / SEGMENT_WRITES, place % SEGMENT_WRITES);
        let within = if segment == 0 { within - self.popped } else { within };
        Arc::make_mut(self.segments.get_mut(segment)?).get_mut(within)
    }

    /// Changes the writes of which `chosen` is true.
    pub fn change(&mut self, chosen: impl Fn(&Write) -> bool, mut how: impl FnMut(&mut Write)) {
        for segment in self.segments.iter_mut().filter(|segment| segment.iter().any(&chosen)) {
            Arc::make_mut(segment).iter_mut().filter(|write| chosen(write)).for_each(&mut how);
        }
    }
}

impl FromIterator<Write> for Writes {
    fn from_iter<I: IntoIterator<Item = Write>>(writes: I) -> Self {
        let mut all = Self::default();
        writes.into_iter().for_each(|write| all.push(write));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(number: u64) -> Write {
        Write::taken(number, 0, None, 0, None)
    }

    proptest! {
        /// Against a plain queue, with copies taken on the way that must not change.
        #[test]
        fn writes_are_a_queue_whose_copies_stay(steps in prop::collection::vec((0_u8..8, 0_usize..300), 1..600)) {
            let (mut writes, mut plain, mut copies) = (Writes::default(), VecDeque::new(), Vec::new());
            for (round, (what, at)) in (0..).zip(steps) {
                match what {
                    0..=3 => {
                        writes.push(numbered(round));
                        plain.push_back(round);
                    }
                    4 => prop_assert_eq!(writes.pop().map(|write| write.offset_bytes), plain.pop_front()),
                    5 => {
                        let found = writes.get_mut(at).map(|write| &mut write.offset_bytes);
                        prop_assert_eq!(found.as_deref(), plain.get(at));
                        for number in found.into_iter().chain(plain.get_mut(at)) {
                            *number += 1000;
                        }
                    }
                    6 => {
                        writes.change(|write| write.offset_bytes % 3 == 0, |write| write.offset_bytes += 1);
                        plain.iter_mut().filter(|number| **number % 3 == 0).for_each(|number| *number += 1);
                    }
                    _ => copies.push((writes.clone(), plain.clone())),
                }
                prop_assert_eq!((writes.len(), writes.last().map(|write| write.offset_bytes)), (plain.len(), plain.back().copied()));
            }
            copies.push((writes, plain));
            for (writes, plain) in copies {
                prop_assert!(writes.iter().map(|write| write.offset_bytes).eq(plain));
            }
        }
    }
}
