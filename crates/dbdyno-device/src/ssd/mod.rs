//! A solid-state drive: host link, firmware, write buffer, translation layer, channels and dies.
//!
//! A read waits for the firmware, then for each flash page's plane and channel, then crosses the link. A write crosses the
//! link, waits for the firmware and for room in the buffer, and is done; the buffer is programmed a full unit at a time,
//! around the dies. FLUSH programs what is left, short units included, and waits for it; a forced write (FUA) waits for
//! its own. Data is mapped by pages of 4 KiB (`ftl`). Beside the host's work goes that of `reclaim`: garbage collection,
//! which takes the block with the fewest valid pages, and the emptying of the cache of single-bit blocks. Both read,
//! program and erase on the same dies; the host's writes wait when they would leave collection no free blocks.
//!
//! A disk smaller than the drive is a smaller drive with the same dies, planes, times and ratios of spare area and
//! cache: it fills, and reaches the end of its cache, in proportionally less time (`geometry` says how).
//!
//! Cannot: read-ahead, wear and failing blocks, parity across dies, compression (`SandForce`), a mapping table that does
//! not fit the drive's memory, data that moves to cold blocks by how often it changes.

mod dies;
mod front;
mod ftl;
mod geometry;
#[cfg(test)]
mod invariants;
mod reclaim;
mod spec;
mod steady;
mod thermal;

use std::collections::VecDeque;

use self::dies::{Dies, Job, Reader};
use self::front::Active;
use self::ftl::Ftl;
use self::geometry::{Geometry, PAGE_BYTES};
use self::reclaim::Reclaim;
pub(crate) use self::spec::SsdSpec;
use self::thermal::Thermal;
use crate::due::Agenda;
use crate::{Command, Completion, DeviceModel, State, WriteCache};

/// Something that happens inside the drive.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A plane has brought a flash page into its register.
    Read { die: u32, lane: u32 },
    /// A die has programmed or erased, unless it was suspended meanwhile.
    Job { die: u32, generation: u32 },
    /// A command is done.
    Finished { id: u64 },
    /// The host may write another page although the cache is being emptied.
    Paced,
    /// The host may have been idle for long enough to empty the cache.
    Idle,
}

/// What was done since the start, in pages.
#[derive(Debug, Default)]
struct Counts {
    /// Written by the host, without what was overwritten in the buffer.
    host: u64,
    /// Programmed, with moved pages and padding.
    programmed: u64,
    collected: u64,
    folded: u64,
    discarded: u64,
}

pub(crate) struct Ssd {
    spec: SsdSpec,
    size_bytes: u64,
    now_ns: u64,
    events: Agenda<Event>,
    /// Commands that the firmware will have understood (a write's data is in by then), reads and the others apart: each
    /// is in order of time.
    ready_reads: VecDeque<(u64, usize)>,
    ready_writes: VecDeque<(u64, usize)>,
    finished: Vec<Completion>,
    slots: Vec<Option<Active>>,
    free_slots: Vec<usize>,
    /// Commands the drive has not taken yet.
    waiting: VecDeque<Command>,
    /// Commands taken and not finished.
    active: usize,
    /// A flush is under way that nothing may pass.
    barrier: bool,
    firmware_free_ns: u64,
    link_in_free_ns: u64,
    link_out_free_ns: u64,
    buffer_used: u64,
    /// Writes understood that are not in the buffer yet, or not wholly.
    blocked: VecDeque<usize>,
    /// Programs of the host's data begun and ended.
    programs_made: u64,
    programs_ended: u64,
    /// Flushes and forced writes that wait for programs.
    flushes: Vec<usize>,
    dies: Dies,
    ftl: Ftl,
    reclaim: Reclaim,
    thermal: Thermal,
    counts: Counts,
}

impl Ssd {
    pub(crate) fn new(spec: &SsdSpec, size_bytes: u64, seed: u64, state: State) -> Self {
        let geometry = Geometry::new(spec, size_bytes);
        let dies = Dies::new(spec, geometry.block_scale);
        let mut ftl = Ftl::new(geometry);
        if state == State::Steady {
            steady::precondition(&mut ftl, seed);
        }
        Self {
            size_bytes,
            now_ns: 0,
            events: Agenda::new(),
            ready_reads: VecDeque::new(),
            ready_writes: VecDeque::new(),
            finished: Vec::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            waiting: VecDeque::new(),
            active: 0,
            barrier: false,
            firmware_free_ns: 0,
            link_in_free_ns: 0,
            link_out_free_ns: 0,
            buffer_used: 0,
            blocked: VecDeque::new(),
            programs_made: 0,
            programs_ended: 0,
            flushes: Vec::new(),
            reclaim: Reclaim::new(spec.slc.as_ref()),
            thermal: Thermal::new(spec.thermal.clone()),
            counts: Counts::default(),
            spec: spec.clone(),
            dies,
            ftl,
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        let ready = |queue: &VecDeque<(u64, usize)>| queue.front().map(|(at_ns, _)| *at_ns);
        [ready(&self.ready_reads), ready(&self.ready_writes), self.events.next_ns()].into_iter().flatten().min()
    }

    /// Lets everything happen that happens up to `to_ns`.
    fn advance(&mut self, to_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= to_ns) {
            self.now_ns = at_ns;
            let is_now = |queue: &VecDeque<(u64, usize)>| queue.front().is_some_and(|(ready_ns, _)| *ready_ns == at_ns);
            if is_now(&self.ready_reads) {
                self.ready_reads.pop_front().into_iter().for_each(|(_, slot)| self.ready(slot));
            } else if is_now(&self.ready_writes) {
                self.ready_writes.pop_front().into_iter().for_each(|(_, slot)| self.ready(slot));
            } else if let Some((_, event)) = self.events.pop_due(at_ns) {
                self.happen(event);
            }
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Read { die, lane } => {
                if let Some((read, across_ns)) = self.dies.read_ended(die, lane, self.now_ns) {
                    self.thermal.read(read.bytes);
                    match read.reader {
                        Reader::Host(slot) => self.page_arrived(slot, read.bytes, across_ns),
                        Reader::Moved(flash_page) => self.moved_page_arrived(flash_page, read.bytes / PAGE_BYTES),
                    }
                }
                self.dies.start(die, self.now_ns, &mut self.events);
            }
            Event::Job { die, generation } => {
                match self.dies.job_ended(die, generation) {
                    Some(Job::Program { unit, sequence }) => {
                        self.ftl.programmed(&unit);
                        self.thermal.programmed(u64::from(unit.all_pages) * PAGE_BYTES);
                        if sequence > 0 {
                            self.host_programmed(sequence, unit.pages);
                        } else {
                            self.moved_programmed();
                        }
                    }
                    Some(Job::Erase(block)) => self.die_erased(block),
                    None => return,
                }
                self.dies.start(die, self.now_ns, &mut self.events);
            }
            Event::Finished { id } => {
                self.finished.push(Completion { id, at_ns: self.now_ns });
                self.active -= 1;
                self.barrier &= self.active > 0;
                self.take_waiting();
            }
            Event::Paced => {
                self.reclaim.paced = false;
                self.admit_writes();
            }
            Event::Idle => self.idle_fold(),
        }
    }
}

impl DeviceModel for Ssd {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.advance(now_ns.max(self.now_ns));
        self.waiting.push_back(command.within(self.size_bytes));
        self.take_waiting();
    }

    fn next_due(&self) -> Option<u64> {
        if let Some(completion) = self.finished.first() {
            return Some(completion.at_ns);
        }
        // What goes on in the background needs no attention while no command waits.
        if self.active == 0 && self.waiting.is_empty() { None } else { self.next_event_ns() }
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.advance(now_ns.max(self.now_ns));
        let late = self.finished.iter().position(|completion| completion.at_ns > now_ns).unwrap_or(self.finished.len());
        finished.extend(self.finished.drain(..late));
    }

    fn write_cache(&self) -> WriteCache {
        if self.spec.power_loss_protected { WriteCache::Protected } else { WriteCache::Volatile }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let bytes = |pages: u64| (pages * PAGE_BYTES) as f64;
        let mut gauges = vec![
            ("host_written_bytes", bytes(self.counts.host)),
            ("flash_written_bytes", bytes(self.counts.programmed)),
            ("collected_bytes", bytes(self.counts.collected)),
            ("discarded_bytes", bytes(self.counts.discarded)),
            ("write_amplification", self.counts.programmed as f64 / self.counts.host.max(1) as f64),
            ("mapped_bytes", bytes(u64::from(self.ftl.mapped))),
            ("free_bytes", bytes(self.ftl.free_pages())),
            ("buffer_used_bytes", bytes(self.buffer_used)),
        ];
        if self.spec.slc.is_some() {
            gauges.push(("slc_cache_free_bytes", bytes(self.cache_free_pages())));
            gauges.push(("folded_bytes", bytes(self.counts.folded)));
        }
        if self.thermal.is_modelled() {
            gauges.push(("temperature_c", self.thermal.temperature_c));
            gauges.push(("throttled", f64::from(u8::from(self.thermal.throttled))));
        }
        gauges
    }
}
