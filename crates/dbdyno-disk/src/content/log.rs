//! Every write since it was last durable, in order and with its data: what the states after a power cut are made of.
//!
//! Beside the live content there is an image of what is surely durable; the live content is that image with all logged
//! writes applied. Writes leave the log at its front, in order, so that an older write never comes over a younger one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::store::{Chunk, Image, Store, Usage, ZEROS, parts};

/// How much may be logged: 128 MiB. What is beyond counts as written to the medium; drives have caches of 8 to 256 MiB.
pub const LOGGED_BYTES_MAX: u64 = 128 << 20;

/// How much there is that is not durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AtRisk {
    /// Each write counts in full, also where it went over another.
    pub bytes: u64,
    pub writes: u64,
}

impl AtRisk {
    fn made_durable(&mut self, write: &mut Write, now_ns: u64) {
        if write.durable_ns.is_none() {
            write.durable_ns = Some(now_ns);
            self.bytes -= write.length_bytes;
            self.writes -= 1;
        }
    }

    fn raise(&mut self, other: Self) {
        self.bytes = self.bytes.max(other.bytes);
        self.writes = self.writes.max(other.writes);
    }
}

/// The writes that are kept, oldest first, over what is durable.
pub struct Log {
    pub base: Image,
    pub writes: Writes,
    /// How long a write that is durable is kept all the same.
    pub hold_ns: u64,
    /// Whether an answer alone makes nothing durable.
    pub volatile: bool,
    pub at_risk: AtRisk,
    pub peak: AtRisk,
    /// The number of the first write; numbers only grow, and are above 0.
    first: u64,
    /// Answers and arrivals of FLUSH so far: a FLUSH makes durable what was answered before it arrived.
    events: u64,
    flushes: BTreeSet<u64>,
    /// How many logged writes touch a chunk; where none does, base and live content share it.
    touched: HashMap<usize, u32>,
    logged_bytes: u64,
    /// The event after which, and the time until which, something is missing here because there was too much.
    limited: (Option<u64>, u64),
    usage: Usage,
}

impl Log {
    /// A log whose numbers begin at `first`, over content that is durable.
    pub fn new(base: Image, first: u64, hold_ns: u64, volatile: bool, usage: Usage) -> Self {
        Self {
            base,
            writes: Writes::default(),
            hold_ns,
            volatile,
            at_risk: AtRisk::default(),
            peak: AtRisk::default(),
            first,
            events: first,
            flushes: BTreeSet::new(),
            touched: HashMap::new(),
            logged_bytes: 0,
            limited: (None, 0),
            usage,
        }
    }

    /// Whether a write, by its number, was logged here.
    pub fn knows(&self, number: u64) -> bool {
        number >= self.first && number < self.next()
    }

    /// The number of the next write. Events are no fewer than writes, so a later log's numbers may begin after both.
    pub fn next(&self) -> u64 {
        self.first + self.writes.len() as u64
    }

    /// Where the numbers of a log after this one may begin.
    pub fn after(&self) -> u64 {
        self.next().max(self.events) + 1
    }

    /// How many FLUSH commands have arrived and not completed.
    pub fn flushes_in_flight(&self) -> usize {
        self.flushes.len()
    }

    /// Bytes that the log takes.
    pub fn logged_bytes(&self) -> u64 {
        self.logged_bytes
    }

    /// Whether something that a cut at this time might take counts as durable because there was too much.
    pub fn is_limited(&self, now_ns: u64) -> bool {
        self.limited.0.is_some() || now_ns < self.limited.1
    }

    /// A write has arrived: its length and data, `None` for a discard. It must be made on the live content after that.
    /// Returns its number.
    pub fn arrived(&mut self, now_ns: u64, offset_bytes: u64, what: (u64, Option<&[u8]>), live: &dyn Store) -> u64 {
        let (length_bytes, data) = what;
        let data = data.map(|data| Arc::new(Chunk::new(data.into(), &self.usage)));
        let write = Write::new(offset_bytes, length_bytes, data, now_ns, None);
        self.logged_bytes += write.logged_bytes();
        while self.logged_bytes > LOGGED_BYTES_MAX && self.destage(now_ns, live) {}
        for (index, ..) in parts(offset_bytes, length_bytes as usize) {
            *self.touched.entry(index).or_default() += 1;
        }
        self.at_risk.bytes += length_bytes;
        self.at_risk.writes += 1;
        self.peak.raise(self.at_risk);
        self.writes.push(write);
        self.next() - 1
    }

    /// A write has been made, as far as it could be, and is about to be answered. `forced` makes it durable.
    pub fn answered(&mut self, now_ns: u64, number: u64, forced: bool, live: &dyn Store) {
        self.events += 1;
        let at = number.wrapping_sub(self.first) as usize;
        let Some(write) = self.writes.get_mut(at) else { return };
        write.answered = Some(self.events);
        if forced || !self.volatile {
            self.at_risk.made_durable(write, now_ns);
        }
        self.prune(now_ns, live);
    }

    /// A FLUSH has arrived; returns what to give [`Log::flushed`].
    pub fn flush_arrived(&mut self) -> u64 {
        self.events += 1;
        self.flushes.insert(self.events);
        self.events
    }

    /// A FLUSH is about to be answered; with `ignored` it makes nothing durable.
    pub fn flushed(&mut self, now_ns: u64, flush: u64, ignored: bool, live: &dyn Store) {
        if !self.flushes.remove(&flush) || ignored {
            return;
        }
        let Self { writes, at_risk, .. } = self;
        let covered =
            |write: &Write| write.durable_ns.is_none() && write.answered.is_some_and(|answered| answered < flush);
        writes.change(covered, |write| at_risk.made_durable(write, now_ns));
        if self.limited.0.is_some_and(|event| event < flush) {
            self.limited = (None, now_ns.saturating_add(self.hold_ns));
        }
        self.prune(now_ns, live);
    }

    /// Counts the oldest write as durable for want of room; false if there is none.
    pub fn destage(&mut self, now_ns: u64, live: &dyn Store) -> bool {
        let Some(write) = self.writes.get_mut(0) else { return false };
        if write.durable_ns.is_none() {
            self.limited.0 = Some(self.events);
        }
        self.limited.1 = now_ns.saturating_add(self.hold_ns);
        self.at_risk.made_durable(write, now_ns);
        self.settle_first(live);
        true
    }

    fn prune(&mut self, now_ns: u64, live: &dyn Store) {
        let over = |write: &Write| {
            write.durable_ns.is_some_and(|durable_ns| durable_ns.saturating_add(self.hold_ns) <= now_ns)
        };
        let over = self.writes.iter().take_while(|write| over(write)).count();
        for _ in 0..over {
            self.settle_first(live);
        }
    }

    /// Takes the oldest write into the base. A chunk that no other logged write touches equals the live content, and
    /// the base shares it.
    fn settle_first(&mut self, live: &dyn Store) {
        let Some(write) = self.writes.pop() else { return };
        self.first += 1;
        self.logged_bytes -= write.logged_bytes();
        for (index, within, bytes) in write.parts() {
            let last = match self.touched.get_mut(&index) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                _ => self.touched.remove(&index).is_some(),
            };
            match live.chunk(index) {
                Ok(chunk) if last => drop(self.base.put(index, chunk)),
                _ => drop(self.base.write(index, within, bytes, &self.usage, || true)),
            }
        }
    }
}

/// Writes are kept in segments: a fork copies a reference for each, and the first change of a segment after that copies
/// it.
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
    pub fn new(
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
        Write::new(number, 0, None, 0, None)
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
                        let offset_bytes = writes.get_mut(at).map(|write| &mut write.offset_bytes);
                        prop_assert_eq!(offset_bytes.as_deref(), plain.get(at));
                        for number in offset_bytes.into_iter().chain(plain.get_mut(at)) {
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
