//! A solid-state drive: host link, firmware, write buffer, translation layer, channels and dies.
//!
//! A read waits for the firmware, then for each flash page's plane and channel, then crosses the link. A write crosses the
//! link, waits for the firmware and for room in the buffer, and is done; the buffer is programmed a full unit at a time,
//! around the dies. FLUSH programs what is left, short units included, and waits for it; a forced write (FUA) waits for
//! its own. Data is mapped by pages of 4 KiB (`ftl`). Beside the host's work goes that of `reclaim`: garbage collection,
//! which takes the block with the fewest valid pages, and the emptying of the cache of single-bit blocks. Both read,
//! program and erase on the same dies; the host's writes wait when they would leave collection no free blocks.
//!
//! A disk smaller than the drive is a smaller drive with the same dies, planes, times and ratio of spare area: it fills
//! in proportionally less time (`geometry` says how). Its cache is the drive's, as what lies behind the disk is unwritten
//! on a fresh drive, and written on a steady one; with `slc.scaled` it is a cache, and a drive, in proportion.
//!
//! Cannot: wear that grows with what is written, failing blocks, parity across dies, compression (`SandForce`), a mapping table that does
//! not fit the drive's memory, data that moves to cold blocks by how often it changes.

mod dies;
mod divisor;
mod event;
mod front;
mod ftl;
mod geometry;
#[cfg(test)]
mod invariants;
mod read;
mod read_ahead;
mod reclaim;
mod retry;
mod spec;
mod steady;
mod thermal;

use std::collections::VecDeque;

use slab::Slab;

use self::dies::{Dies, Job, Reader};
use self::event::Event;
use self::ftl::Ftl;
use self::geometry::Geometry;
use self::read_ahead::ReadAhead;
use self::retry::Retries;
use self::spec::PAGE_BYTES;
pub(crate) use self::spec::SsdSpec;
use self::thermal::Thermal;
use crate::contract::{Command, Completion, DeviceModel, FastCache, WriteCache};
use crate::due::{Agenda, earlier};
use crate::info::DriveState;

/// A command the drive works on.
#[derive(Debug, Clone, Copy)]
struct Active {
    command: Command,
    /// Flash pages still to come, for a read; programs still to come, for a flush or a forced write.
    remaining: u64,
    /// Latest time at which one of its parts was done.
    done_ns: u64,
    /// For what waits for programs: those up to this one belong to it.
    covers: u64,
    /// For a write: the first page of the disk that is not in the buffer yet.
    next_page: u64,
}

#[derive(Debug, Clone, Copy)]
struct Victim {
    block: u32,
    /// The next of its pages to look at, and the first after it.
    next_page: u32,
    end_page: u32,
    reads: u32,
    is_cache: bool,
}

/// Whether the host writes, as far as that makes the drive empty its cache.
#[derive(Debug, Default, PartialEq, Eq)]
enum Host {
    /// It has written nothing yet.
    #[default]
    Silent,
    /// It has written; an [`Event::Idle`] is on its way to look whether it still does.
    Watched,
    /// It has written nothing for long enough.
    Idle,
}

#[derive(Debug, Default)]
struct Reclaim {
    victim: Option<Victim>,
    /// Flash pages read that are not written elsewhere yet, and how many of their pages were valid.
    arrived: VecDeque<(u32, u64)>,
    /// Pages that are being read to move, or are in `arrived`; those overwritten meanwhile count until then.
    moving: u64,
    programs: u32,
    /// Blocks and the dies that have not erased them yet.
    erasing: Vec<(u32, u32)>,
    erasing_data: u64,
    /// The cache is full and being emptied under load.
    draining: bool,
    /// Before then, the host writes nothing beside the cache.
    pace_ns: u64,
    /// An [`Event::Paced`] is on its way.
    paced: bool,
    host_wrote_ns: u64,
    host: Host,
    fold_after_ns: u64,
}

/// What was done since the start, in pages unless the name says otherwise.
#[derive(Debug, Default)]
struct Counts {
    /// Written by the host, with what it overwrote in the buffer, which is never programmed.
    host_bytes: u64,
    /// Programmed, with moved pages and padding.
    programmed: u64,
    collected: u64,
    folded: u64,
    discarded: u64,
}

pub(crate) struct Ssd {
    spec: SsdSpec,
    size_bytes: u64,
    /// Of the latest call. The drive's own time is ahead of it while the drive can take no command.
    host_ns: u64,
    now_ns: u64,
    events: Agenda<Event>,
    /// Commands that the firmware will have understood (a write's data is in by then), reads and the others apart: each
    /// is in order of time.
    ready_reads: VecDeque<(u64, usize)>,
    ready_writes: VecDeque<(u64, usize)>,
    /// When commands that are through will be done; [`Event::Finished`] makes room for others then.
    done: Agenda<u64>,
    slots: Slab<Active>,
    /// Commands the drive has not taken yet.
    waiting: VecDeque<Command>,
    /// Commands taken and not finished.
    active: usize,
    /// A flush is in flight that nothing may pass.
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
    read_ahead: ReadAhead,
    retries: Retries,
    counts: Counts,
    /// Pages of the drive behind the disk's end that nothing was written to.
    unwritten_behind: u64,
    cache_ran_out_ns: Option<u64>,
}

impl Ssd {
    pub(crate) fn new(spec: &SsdSpec, size_bytes: u64, seed: u64, state: DriveState) -> Self {
        let geometry = Geometry::new(spec, size_bytes);
        let dies = Dies::new(spec, geometry.block_scale);
        let mut ftl = Ftl::new(geometry);
        if state == DriveState::Steady {
            steady::precondition(&mut ftl, spec.slc.as_ref(), seed);
        }
        Self {
            size_bytes,
            host_ns: 0,
            now_ns: 0,
            events: Agenda::new(),
            ready_reads: VecDeque::new(),
            ready_writes: VecDeque::new(),
            done: Agenda::new(),
            slots: Slab::new(),
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
            read_ahead: ReadAhead::new(spec.read_ahead_bytes),
            retries: Retries::new(spec.read_retry.clone(), seed),
            counts: Counts::default(),
            unwritten_behind: match &spec.slc {
                Some(slc) if !slc.scaled && state == DriveState::Fresh => {
                    (spec.capacity_bytes - size_bytes) / PAGE_BYTES
                }
                _ => 0,
            },
            cache_ran_out_ns: None,
            spec: spec.clone(),
            dies,
            ftl,
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        let at_ns = self.next_ready_ns().min(self.events.next_ns().unwrap_or(u64::MAX));
        (at_ns < u64::MAX).then_some(at_ns)
    }

    /// When the firmware understands the next command, `u64::MAX` for never.
    fn next_ready_ns(&self) -> u64 {
        let ready = |queue: &VecDeque<(u64, usize)>| queue.front().map_or(u64::MAX, |(at_ns, _)| *at_ns);
        ready(&self.ready_reads).min(ready(&self.ready_writes))
    }

    /// Lets everything happen that happens up to `to_ns`, and, while the drive can take no command, up to when it can: what
    /// the host sends meanwhile changes nothing, and need not be waited for.
    fn advance(&mut self, to_ns: u64) {
        self.host_ns = self.host_ns.max(to_ns);
        while let Some(at_ns) = self.next_event_ns() {
            if at_ns > self.host_ns && (!self.is_shut() || self.makes_room_next()) {
                break;
            }
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
        self.now_ns = self.now_ns.max(self.host_ns);
    }

    /// No command can be taken before another is done.
    fn is_shut(&self) -> bool {
        self.barrier || self.active >= self.spec.queue_depth
    }

    /// What happens next is that a command is done.
    fn makes_room_next(&self) -> bool {
        self.events.next().is_some_and(|(at_ns, event)| event == Event::Finished && at_ns < self.next_ready_ns())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Read { die, lane } => {
                if let Some((read, across_ns)) = self.dies.read_ended(die, lane, self.now_ns) {
                    self.thermal.read(read.bytes);
                    match read.reader {
                        Reader::Host(slot) => self.page_arrived(slot, read.bytes, across_ns),
                        Reader::Ahead(first) => {
                            self.ahead_arrived(first, (read.bytes / PAGE_BYTES) as u32, across_ns);
                        }
                        Reader::Moved(flash_page) => self.moved_page_arrived(flash_page, read.bytes / PAGE_BYTES),
                    }
                }
                self.dies.start(die, self.now_ns, &mut self.events);
            }
            Event::Job { die, generation } => {
                match self.dies.job_ended(die, generation) {
                    Some(Job::Program { unit, sequence, bytes, .. }) => {
                        self.ftl.programmed(unit);
                        self.thermal.programmed(bytes);
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
            Event::Finished => {
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
        self.advance(now_ns);
        self.waiting.push_back(command.within(self.size_bytes));
        self.take_waiting();
    }

    fn next_due(&self) -> Option<u64> {
        // What goes on in the background needs no attention while no command waits.
        let idle = self.active == 0 && self.waiting.is_empty();
        let event_ns = if idle { None } else { self.next_event_ns() };
        earlier(self.done.next_ns(), event_ns)
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.advance(now_ns);
        self.done.finish(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.done.finish(u64::MAX, finished);
    }

    fn write_cache(&self) -> WriteCache {
        if self.spec.power_loss_protected { WriteCache::Protected } else { WriteCache::Volatile }
    }

    fn ignores_flush(&self) -> bool {
        self.spec.flush_ignored
    }

    fn fast_cache(&self) -> Option<FastCache> {
        let slc = self.spec.slc.as_ref()?;
        let bytes = slc.bytes_on(self.size_bytes, self.spec.capacity_bytes);
        Some(FastCache { bytes, ran_out_ns: self.cache_ran_out_ns })
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let bytes = |pages: u64| (pages * PAGE_BYTES) as f64;
        let mut gauges = vec![
            ("host_written_bytes", self.counts.host_bytes as f64),
            ("flash_written_bytes", bytes(self.counts.programmed)),
            ("collected_bytes", bytes(self.counts.collected)),
            ("discarded_bytes", bytes(self.counts.discarded)),
            ("write_amplification", bytes(self.counts.programmed) / self.counts.host_bytes.max(1) as f64),
            ("mapped_bytes", bytes(u64::from(self.ftl.mapped))),
            ("free_bytes", bytes(self.ftl.free_pages())),
            ("buffer_used_bytes", bytes(self.buffer_used)),
        ];
        if self.spec.slc.is_some() {
            gauges.push(("slc_cache_free_bytes", bytes(self.cache_free_pages())));
            gauges.push(("folded_bytes", bytes(self.counts.folded)));
        }
        if self.retries.is_modelled() {
            gauges.push(("read_retried_pages", self.retries.pages as f64));
        }
        if self.thermal.is_modelled() {
            gauges.push(("temperature_c", self.thermal.temperature_c));
            gauges.push(("throttled", f64::from(u8::from(self.thermal.throttled))));
        }
        gauges
    }
}
