//! Every write since it was last durable, in order and with its data: what the states after a power cut are made of.
//!
//! Beside the live content there is an image of what is surely durable; the live content is that image with all logged
//! writes applied. Writes leave the log at its front, in order, so that an older write never comes over a younger one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::chunk::{Chunk, Held, parts};
use super::image::Image;
use super::store::Store;
use super::writes::{Write, Writes};

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
    held: Held,
}

impl Log {
    /// A log whose numbers begin at `first`, over content that is durable.
    pub fn new(base: Image, first: u64, hold_ns: u64, volatile: bool, held: Held) -> Self {
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

    /// Takes the oldest write into the base. A chunk that no other logged write touches is as in the live content, and from
    /// now on shared with it.
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
                _ => drop(self.base.write(index, within, bytes, &self.held, || true)),
            }
        }
    }
}
