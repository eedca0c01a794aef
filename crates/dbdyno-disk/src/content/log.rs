//! Every write since it was last durable, in order and with its data: what the states after a power cut are made of.
//!
//! Beside the live content there is an image of what is surely durable; the live content is that image with all logged
//! writes applied. Writes leave the log at its front, in order, so that an older write never comes over a younger one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::chunk::{Chunk, Held, ZEROS, parts};
use super::image::Image;
use super::store::Store;

/// How much may be logged: 128 MiB. What is beyond counts as written to the medium; drives have caches of 8 to 256 MiB.
pub const LOGGED_BYTES_MAX: u64 = 128 << 20;

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
    answered: Option<u64>,
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

    fn logged_bytes(&self) -> u64 {
        WRITE_BYTES + self.data.as_ref().map_or(0, |_| self.length_bytes)
    }
}

/// How much there is that is not durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AtRisk {
    /// Each write counts in full, also where it went over another.
    pub bytes: u64,
    pub writes: u64,
}

impl AtRisk {
    fn raise(&mut self, other: Self) {
        self.bytes = self.bytes.max(other.bytes);
        self.writes = self.writes.max(other.writes);
    }
}

/// The writes that are kept, oldest first, over what is durable.
pub struct Log {
    pub base: Image,
    pub writes: VecDeque<Write>,
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
    held: Held,
}

impl Log {
    /// A log whose numbers begin at `first`, over content that is durable.
    pub fn new(base: Image, first: u64, hold_ns: u64, volatile: bool, held: Held) -> Self {
        Self {
            base,
            writes: VecDeque::new(),
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
            held,
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

    /// A write has arrived: its length and data, `None` for a discard. It must be made on the live content after that. Returns its
    /// number.
    pub fn arrived(&mut self, now_ns: u64, offset_bytes: u64, what: (u64, Option<&[u8]>), live: &dyn Store) -> u64 {
        let (length_bytes, data) = what;
        let data = data.map(|data| Arc::new(Chunk::new(data.into(), &self.held)));
        let write = Write::taken(offset_bytes, length_bytes, data, now_ns, None);
        self.logged_bytes += write.logged_bytes();
        while self.logged_bytes > LOGGED_BYTES_MAX && self.destage(now_ns, live) {}
        for (index, ..) in parts(offset_bytes, length_bytes as usize) {
            *self.touched.entry(index).or_default() += 1;
        }
        self.at_risk.bytes += length_bytes;
        self.at_risk.writes += 1;
        self.peak.raise(self.at_risk);
        self.writes.push_back(write);
        self.next() - 1
    }

    /// A write has been made, as far as it could be, and is about to be answered. `forced` makes it durable.
    pub fn answered(&mut self, now_ns: u64, number: u64, forced: bool, live: &dyn Store) {
        self.events += 1;
        let at = number.wrapping_sub(self.first) as usize;
        let Some(write) = self.writes.get_mut(at) else { return };
        write.answered = Some(self.events);
        if forced || !self.volatile {
            write.made_durable(now_ns, &mut self.at_risk);
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
        for write in &mut self.writes {
            if write.answered.is_some_and(|answered| answered < flush) {
                write.made_durable(now_ns, &mut self.at_risk);
            }
        }
        if self.limited.0.is_some_and(|event| event < flush) {
            self.limited = (None, now_ns.saturating_add(self.hold_ns));
        }
        self.prune(now_ns, live);
    }

    /// Counts the oldest write as durable for want of room; false if there is none.
    pub fn destage(&mut self, now_ns: u64, live: &dyn Store) -> bool {
        let Some(write) = self.writes.front_mut() else { return false };
        if write.durable_ns.is_none() {
            self.limited.0 = Some(self.events);
        }
        self.limited.1 = now_ns.saturating_add(self.hold_ns);
        write.made_durable(now_ns, &mut self.at_risk);
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

    /// Takes the oldest write into the base. A chunk that no other logged write touches is as in the live content, and from
    /// now on shared with it.
    fn settle_first(&mut self, live: &dyn Store) {
        let Some(write) = self.writes.pop_front() else { return };
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
                _ => drop(self.base.write(index, within, bytes, &self.held, || true)),
            }
        }
    }
}

impl Write {
    fn made_durable(&mut self, now_ns: u64, at_risk: &mut AtRisk) {
        if self.durable_ns.is_none() {
            self.durable_ns = Some(now_ns);
            at_risk.bytes -= self.length_bytes;
            at_risk.writes -= 1;
        }
    }
}
