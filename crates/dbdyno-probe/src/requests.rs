//! From events to requests: which bio went into which request, when it was issued and when it was done.
//!
//! A bio is known by its first sector. A request that is issued covers the bios that were merged into it, and takes them
//! along; a bio that was split leaves its rest behind. A request's time in the queue begins with the earliest of its bios.

use std::collections::{HashMap, VecDeque};

use crate::tracefs::event::{Event, Kind, Step};

/// Bios that never became a request, after which all that wait are forgotten: something was not understood.
const WAITING_MAX: usize = 1 << 20;

/// A request that was handed to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    pub at_ns: u64,
    pub kind: Kind,
    pub sector: u64,
    pub bytes: u64,
    /// When its first bio was queued; `None` where that was not seen.
    pub queued_ns: Option<u64>,
    /// Bios that went into it.
    pub bios: u32,
    /// Requests in the device, itself included.
    pub depth: u32,
    /// Bios that still wait in the block layer.
    pub waiting: u32,
}

/// A request that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    pub at_ns: u64,
    pub issued: Issued,
    pub failed: bool,
}

/// What an event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Issued(Issued),
    Completed(Completed),
    /// An empty write that only asked for a flush was done; the kernel's statistics count it as a write.
    FlushAsked,
    /// A request was done whose issue was not seen.
    Unmatched,
}

#[derive(Debug, Clone, Copy)]
struct Bio {
    queued_ns: u64,
    sectors: u32,
}

/// Everything in flight.
#[derive(Debug, Default)]
pub struct Requests {
    bios: HashMap<u64, VecDeque<Bio>>,
    waiting: u32,
    /// When the first asked for the flush that has not been issued yet.
    flush_asked_ns: Option<u64>,
    in_device: HashMap<u64, Vec<Issued>>,
    flushes: VecDeque<Issued>,
    depth: u32,
    /// Processors of which events are being lost.
    blind: u32,
}

impl Requests {
    /// Requests that were issued and not done.
    pub fn open(&self) -> u32 {
        self.depth
    }

    /// Forgets all that is in flight: events were lost, and what has become of it is unknown.
    fn forget(&mut self) {
        *self = Self { blind: self.blind, ..Self::default() };
    }

    /// Takes an event. While events are being lost, those that are there have no meaning.
    pub fn take(&mut self, event: &Event) -> Option<Happened> {
        match event.step {
            Step::Blind => {
                self.blind += 1;
                self.forget();
                None
            }
            Step::Seeing => {
                self.blind = self.blind.saturating_sub(1);
                self.forget();
                None
            }
            // Which bios a request carries is known from its sectors.
            Step::BackMerge | Step::FrontMerge => None,
            _ if self.blind > 0 => None,
            Step::Queue => {
                self.queue(event);
                None
            }
            Step::Issue => self.issue(event).map(Happened::Issued),
            Step::Requeue => {
                self.requeue(event);
                None
            }
            Step::Complete => self.complete(event),
        }
    }

    fn queue(&mut self, event: &Event) {
        if event.flush_first {
            self.flush_asked_ns.get_or_insert(event.at_ns);
        }
        if event.sectors == 0 {
            return;
        }
        if self.waiting as usize >= WAITING_MAX {
            self.bios.clear();
            self.waiting = 0;
        }
        self.wait(event.sector, Bio { queued_ns: event.at_ns, sectors: event.sectors });
    }

    fn wait(&mut self, sector: u64, bio: Bio) {
        self.bios.entry(sector).or_default().push_back(bio);
        self.waiting += 1;
    }

    fn issue(&mut self, event: &Event) -> Option<Issued> {
        let flush = event.kind == Kind::Flush;
        if event.sectors == 0 && !flush {
            return None; // it moves no data: passed through to the driver
        }
        let (queued_ns, bios) =
            if flush { (self.flush_asked_ns.take(), 0) } else { self.taken(event.sector, event.sectors) };
        self.depth += 1;
        let issued = Issued {
            at_ns: event.at_ns,
            kind: event.kind,
            sector: event.sector,
            bytes: u64::from(event.sectors) * 512,
            queued_ns,
            bios,
            depth: self.depth,
            waiting: self.waiting,
        };
        if flush {
            self.flushes.push_back(issued);
        } else {
            self.in_device.entry(event.sector).or_default().push(issued);
        }
        Some(issued)
    }

    /// Takes the bios that cover a request; returns when the earliest was queued, and how many they were.
    fn taken(&mut self, first: u64, sectors: u32) -> (Option<u64>, u32) {
        let end = first.saturating_add(u64::from(sectors));
        let (mut at, mut earliest, mut bios) = (first, None, 0);
        while at < end {
            let Some(bio) = self.take_bio(at) else { break };
            earliest = Some(earliest.map_or(bio.queued_ns, |known: u64| known.min(bio.queued_ns)));
            bios += 1;
            let behind = at.saturating_add(u64::from(bio.sectors));
            if behind > end {
                self.wait(end, Bio { sectors: (behind - end) as u32, ..bio });
            }
            at = behind;
        }
        (earliest, bios)
    }

    fn take_bio(&mut self, sector: u64) -> Option<Bio> {
        let waiting = self.bios.get_mut(&sector)?;
        let bio = waiting.pop_front()?;
        if waiting.is_empty() {
            self.bios.remove(&sector);
        }
        self.waiting -= 1;
        Some(bio)
    }

    fn requeue(&mut self, event: &Event) {
        let Some(issued) = self.take_issued(event) else { return };
        let queued_ns = issued.queued_ns.unwrap_or(issued.at_ns);
        if issued.kind == Kind::Flush {
            self.flush_asked_ns = Some(queued_ns);
        } else {
            self.wait(event.sector, Bio { queued_ns, sectors: event.sectors });
        }
    }

    fn complete(&mut self, event: &Event) -> Option<Happened> {
        if event.sectors == 0 && event.kind != Kind::Flush {
            // A write that was flushed around ends twice, the second time behind its last sector.
            return (event.kind == Kind::Write && event.sector == 0).then_some(Happened::FlushAsked);
        }
        let Some(issued) = self.take_issued(event) else { return Some(Happened::Unmatched) };
        let done = u64::from(event.sectors) * 512;
        if done < issued.bytes {
            // The driver did a part of it; the rest goes on from there.
            let rest = Issued {
                sector: issued.sector.saturating_add(u64::from(event.sectors)),
                bytes: issued.bytes - done,
                ..issued
            };
            self.in_device.entry(rest.sector).or_default().push(rest);
            self.depth += 1;
            return None;
        }
        Some(Happened::Completed(Completed { at_ns: event.at_ns, issued, failed: event.failed }))
    }

    /// Takes the request that an event speaks of out of the device: of several at one sector, that of the event's length.
    fn take_issued(&mut self, event: &Event) -> Option<Issued> {
        let found = if event.kind == Kind::Flush {
            self.flushes.pop_front()?
        } else {
            let there = self.in_device.get_mut(&event.sector)?;
            let bytes = u64::from(event.sectors) * 512;
            let alike = |issued: &Issued| issued.kind == event.kind && issued.bytes == bytes;
            let longer = |issued: &Issued| issued.kind == event.kind && issued.bytes > bytes;
            let place = there.iter().position(alike).or_else(|| there.iter().position(longer))?;
            let found = there.remove(place);
            if there.is_empty() {
                self.in_device.remove(&event.sector);
            }
            found
        };
        self.depth -= 1;
        Some(found)
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
