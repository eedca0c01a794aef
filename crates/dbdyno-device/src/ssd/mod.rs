//! A solid-state drive: host link, firmware, write buffer, translation layer, channels and dies.
//!
//! A read waits for the firmware, then for each flash page's plane and channel, then crosses the link. A write crosses
//! the link, waits for the firmware and for room in the buffer, and is done; the buffer is programmed a full unit at a
//! time, around the dies. FLUSH programs what is left, short units included, and waits for it; a forced write (FUA)
//! waits for its own. Data is mapped by pages of 4 KiB (`ftl`). Beside the host's work goes that of `reclaim`: garbage
//! collection, which takes the block with the fewest valid pages, and the emptying of the cache of single-bit blocks.
//! Both read, program and erase on the same dies; the host's writes wait when they would leave collection no free
//! blocks.
//!
//! A disk smaller than the drive is a smaller drive with the same dies, planes, times and ratio of spare area: it fills
//! in proportionally less time (`geometry` says how). Its cache is the drive's, as what lies behind the disk is
//! unwritten on a fresh drive, and written on a steady one; with `slc.scaled` it is a cache, and a drive, in
//! proportion.
//!
//! Heat is one capacity that the flash's work charges and the air drains.
//!
//! A read that begins where one of the last [`STREAMS`] reads ended continues it. The drive then fetches what follows,
//! in whole flash pages, up to `read_ahead_bytes` behind its end, with the priority of the host's reads. A page is kept
//! until it was read to its end, written or discarded, or until its stream is forgotten.
//!
//! Cannot: wear that grows with what is written, failing blocks, parity across dies, compression (`SandForce`), a
//! mapping table that does not fit the drive's memory, data that moves to cold blocks by how often it changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use slab::Slab;

use self::dies::{Dies, Event, Job, PageRead, Reader, Retries};
use self::ftl::{Appended, Ftl, PagePlace, Stream, Unit};
use self::geometry::Geometry;
use self::spec::{PAGE_BYTES, ThermalSpec, transfer_ns, us};
use crate::contract::{Agenda, Command, Completion, DeviceModel, FastCache, Kind, WriteCache, earlier};
use crate::info::DriveState;

mod dies;
mod ftl;
mod geometry;
#[cfg(test)]
mod invariants;
mod reclaim;
mod spec;

pub(crate) use self::spec::SsdSpec;

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
            ftl::precondition(&mut ftl, spec.slc.as_ref(), seed);
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

    /// Lets everything happen that happens up to `to_ns`, and, while the drive can take no command, up to when it can:
    /// what the host sends meanwhile changes nothing, and need not be waited for.
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

impl Ssd {
    /// Takes commands from the host while there is room in the queue and no barrier.
    fn take_waiting(&mut self) {
        while let Some(command) = self.waiting.front().copied() {
            let barrier = command.kind == Kind::Flush && self.spec.flush_is_a_barrier;
            if self.barrier || self.active >= self.spec.queue_depth || (barrier && self.active > 0) {
                return;
            }
            self.waiting.pop_front();
            self.barrier = barrier;
            self.active += 1;
            self.take(command);
        }
    }

    fn take(&mut self, command: Command) {
        let next_page = command.offset_bytes / PAGE_BYTES;
        let active = Active { command, remaining: 0, done_ns: self.now_ns, covers: 0, next_page };
        let slot = self.slots.insert(active);
        let slowdown = self.thermal.slowdown(self.now_ns);
        let slower = |time_ns: u64| (time_ns as f64 * slowdown) as u64;
        let (mut ready_ns, is_write) = (self.now_ns, command.kind == Kind::Write);
        if is_write {
            self.link_in_free_ns =
                ready_ns.max(self.link_in_free_ns) + slower(transfer_ns(command.length_bytes, self.spec.link_mb_s));
            ready_ns = self.link_in_free_ns;
        }
        let (command_us, firmware_us) = if is_write {
            (self.spec.write_command_us, self.spec.write_firmware_us)
        } else {
            (self.spec.read_command_us, self.spec.read_firmware_us)
        };
        // The next command can begin after this one's share of the firmware, whether or not its data has come.
        let start_ns = self.now_ns.max(self.firmware_free_ns);
        self.firmware_free_ns = start_ns + slower(us(command_us));
        let at_ns = start_ns.max(ready_ns) + us(firmware_us);
        let queue = if is_write { &mut self.ready_writes } else { &mut self.ready_reads };
        queue.push_back((at_ns, slot));
    }

    fn ready(&mut self, slot: usize) {
        let Some(active) = self.slots.get(slot).copied() else { return };
        match active.command.kind {
            Kind::Read => self.read(slot, active.command),
            Kind::Write => {
                self.blocked.push_back(slot);
                self.admit_writes();
            }
            Kind::Flush => self.flush(slot),
            Kind::Discard => {
                let first = active.command.offset_bytes.div_ceil(PAGE_BYTES) as u32;
                let end = (active.command.end_bytes() / PAGE_BYTES) as u32;
                let before = self.ftl.mapped;
                self.ftl.discard(first, end.max(first));
                self.counts.discarded += u64::from(before - self.ftl.mapped);
                self.read_ahead.forget(first..end.max(first));
                self.complete(slot, self.now_ns);
                self.reclaim();
            }
        }
    }

    /// Puts writes into the buffer page by page, in the order they came, while it has room and so has the flash.
    fn admit_writes(&mut self) {
        let buffer_pages = self.spec.buffer_bytes / PAGE_BYTES;
        while let Some(slot) = self.blocked.front().copied() {
            let Some(active) = self.slots.get(slot).copied() else { return };
            let end_page = active.command.end_bytes().div_ceil(PAGE_BYTES);
            let mut page = active.next_page;
            while page < end_page && self.buffer_used < buffer_pages {
                let Some(stream) = self.stream_of_host() else { break };
                self.append(stream, page as u32);
                self.counts.host_bytes += active.command.bytes_before((page + 1) * PAGE_BYTES)
                    - active.command.bytes_before(page * PAGE_BYTES);
                page += 1;
            }
            if let Some(active) = self.slots.get_mut(slot) {
                active.next_page = page;
            }
            if page < end_page {
                break;
            }
            self.blocked.pop_front();
            self.host_wrote();
            if active.command.fua && !self.spec.power_loss_protected {
                self.wait_for_programs(slot);
            } else {
                self.complete(slot, self.now_ns);
            }
        }
        self.reclaim();
    }

    fn append(&mut self, stream: Stream, page: u32) {
        self.read_ahead.forget(page..page + 1);
        match self.ftl.append(stream, page) {
            Appended::Merged => return,
            Appended::Buffered => {}
            Appended::Filled(unit) => self.program(unit),
        }
        self.buffer_used += 1;
    }

    fn program(&mut self, unit: Unit) {
        self.programs_made += 1;
        self.give_to_die(unit, self.programs_made);
    }

    fn give_to_die(&mut self, unit: Unit, sequence: u64) {
        let place = self.ftl.geometry.place_of(unit.first_page);
        let pages = self.ftl.geometry.unit_pages_at(place);
        self.counts.programmed += u64::from(pages);
        let program_ns = self.dies.program_ns(place);
        let job = Job::Program { unit, sequence, bytes: u64::from(pages) * PAGE_BYTES, program_ns };
        self.dies.add_job(place.die, job, self.now_ns, &mut self.events);
    }

    fn flush(&mut self, slot: usize) {
        if self.spec.power_loss_protected || self.spec.flush_ignored {
            self.complete(slot, self.now_ns);
        } else {
            self.wait_for_programs(slot);
        }
    }

    /// Programs what the host has in the buffer, short units included, and completes the command after that.
    fn wait_for_programs(&mut self, slot: usize) {
        for stream in [Stream::Host, Stream::Cache] {
            if let Some(unit) = self.ftl.close_unit(stream) {
                self.program(unit);
            }
        }
        let outstanding = self.programs_made - self.programs_ended;
        if outstanding == 0 {
            return self.complete(slot, self.now_ns);
        }
        if let Some(active) = self.slots.get_mut(slot) {
            active.remaining = outstanding;
            active.covers = self.programs_made;
        }
        self.flushes.push(slot);
    }

    /// `pages` of the host's data are on the flash.
    fn host_programmed(&mut self, sequence: u64, pages: u32) {
        self.programs_ended += 1;
        self.buffer_used -= u64::from(pages);
        let mut index = 0;
        while index < self.flushes.len() {
            let slot = self.flushes[index];
            let done = self.slots.get_mut(slot).is_some_and(|active| {
                active.remaining -= u64::from(sequence <= active.covers);
                active.remaining == 0
            });
            if !done {
                index += 1;
                continue;
            }
            self.flushes.remove(index);
            let is_flush = self.slots.get(slot).is_some_and(|active| active.command.kind == Kind::Flush);
            let tables_ns = if is_flush { us(self.spec.flush_us) } else { 0 };
            self.complete(slot, self.now_ns + tables_ns);
        }
        self.admit_writes();
    }

    fn complete(&mut self, slot: usize, at_ns: u64) {
        if let Some(active) = self.slots.try_remove(slot) {
            self.done.push(at_ns, active.command.id);
            self.events.push(at_ns, Event::Finished);
        }
    }
}

/// Pages of flash to read at once for one reader: the first, and how many bytes are wanted.
type Run = Option<(u32, u64)>;

impl Ssd {
    /// Reads each flash page once for all neighbouring pages of the command that it holds.
    fn read(&mut self, slot: usize, command: Command) {
        let (end, reader) = (command.end_bytes(), Reader::Host(slot));
        let (mut at, mut parts, mut at_once, mut ready_ns) = (command.offset_bytes, 0, 0, self.now_ns);
        let mut run: Run = None;
        while at < end {
            let page = (at / PAGE_BYTES) as u32;
            let next = end.min((u64::from(page) + 1) * PAGE_BYTES);
            let bytes = next - at;
            at = next;
            let PagePlace::Flash(flash_page) = self.ftl.find(page) else {
                at_once += bytes;
                continue;
            };
            match self.read_ahead.take(page, (slot, bytes), next.is_multiple_of(PAGE_BYTES)) {
                Prefetch::Missing => parts += u64::from(self.add_to_run(&mut run, flash_page, bytes, reader)),
                Prefetch::Coming => parts += 1,
                Prefetch::Ready(at_ns) => {
                    at_once += bytes;
                    ready_ns = ready_ns.max(at_ns);
                }
            }
        }
        if let Some((first, bytes)) = run {
            self.read_flash(first, bytes, reader);
        }
        if let Some(active) = self.slots.get_mut(slot) {
            // One more for what needs no flash.
            active.remaining = parts + 1;
        }
        self.page_arrived(slot, at_once, ready_ns);
        if self.read_ahead.is_on() {
            self.fetch_ahead(&command);
        }
    }

    /// Adds a page to those that are read at once, or reads those and begins anew; returns whether it did the latter.
    fn add_to_run(&mut self, run: &mut Run, flash_page: u32, bytes: u64, reader: Reader) -> bool {
        let flash_pages = self.ftl.geometry.flash_pages;
        match run {
            Some((first, all)) if flash_page / flash_pages == *first / flash_pages => {
                *all += bytes;
                false
            }
            _ => {
                if let Some((first, bytes)) = run.replace((flash_page, bytes)) {
                    self.read_flash(first, bytes, reader);
                }
                true
            }
        }
    }

    /// Reads of a flash page what is wanted of it.
    fn read_flash(&mut self, page: u32, bytes: u64, reader: Reader) {
        let place = self.ftl.geometry.place_of(page);
        let read_ns = self.dies.read_ns(place);
        let more_ns = if place.is_slc { 0 } else { self.retries.more_ns(self.ftl.geometry.block_of(page), read_ns) };
        let read = PageRead { reader, bytes, read_ns: read_ns + more_ns };
        self.dies.add_read(place, read, self.now_ns, &mut self.events);
    }

    /// Fetches what the host will read next if it reads on in order.
    fn fetch_ahead(&mut self, command: &Command) {
        let geometry = &self.ftl.geometry;
        let pages = self.read_ahead.follow(command, geometry.flash_pages, geometry.logical_pages);
        let mut run: Option<(u32, u32, u64)> = None;
        for page in pages {
            let PagePlace::Flash(flash_page) = self.ftl.find(page) else { continue };
            if !self.read_ahead.expect(page) {
                continue;
            }
            let flash_pages = self.ftl.geometry.flash_pages;
            match &mut run {
                // Neighbours on the disk and on the flash.
                Some((first, flash, bytes))
                    if flash_page / flash_pages == *flash / flash_pages
                        && u64::from(page - *first) * PAGE_BYTES == *bytes =>
                {
                    *bytes += PAGE_BYTES;
                }
                _ => {
                    if let Some((first, flash, bytes)) = run.replace((page, flash_page, PAGE_BYTES)) {
                        self.read_flash(flash, bytes, Reader::Ahead(first));
                    }
                }
            }
        }
        if let Some((first, flash, bytes)) = run {
            self.read_flash(flash, bytes, Reader::Ahead(first));
        }
    }

    /// Pages of the disk that were read ahead have come; commands may wait for them.
    fn ahead_arrived(&mut self, first: u32, pages: u32, across_ns: u64) {
        for page in first..first + pages {
            for (slot, bytes) in self.read_ahead.arrived(page, across_ns) {
                self.page_arrived(slot, bytes, across_ns);
            }
        }
    }

    /// Part of a read has come from the flash, or from memory.
    fn page_arrived(&mut self, slot: usize, bytes: u64, across_ns: u64) {
        let slowdown = if self.thermal.throttled { self.thermal.slowdown(self.now_ns) } else { 1.0 };
        if bytes > 0 {
            let crossing_ns = (transfer_ns(bytes, self.spec.link_mb_s) as f64 * slowdown) as u64;
            self.link_out_free_ns = across_ns.max(self.link_out_free_ns) + crossing_ns;
        }
        let Some(active) = self.slots.get_mut(slot) else { return };
        active.remaining -= 1;
        active.done_ns = active.done_ns.max(if bytes > 0 { self.link_out_free_ns } else { across_ns });
        if active.remaining == 0 {
            let done_ns = active.done_ns;
            self.complete(slot, done_ns);
        }
    }
}

/// The temperature is brought up to date no more often than this.
const STEP_NS: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Thermal {
    spec: Option<ThermalSpec>,
    pub temperature_c: f64,
    pub throttled: bool,
    updated_ns: u64,
    /// Joules since then, without those of being on.
    spent_j: f64,
}

impl Thermal {
    /// Starts at the temperature of an idle drive.
    pub(super) fn new(spec: Option<ThermalSpec>) -> Self {
        let temperature_c = spec.as_ref().map_or(0.0, |spec| spec.ambient_c + spec.idle_w * spec.rise_c_per_w);
        Self { spec, temperature_c, throttled: false, updated_ns: 0, spent_j: 0.0 }
    }

    pub(super) fn is_modelled(&self) -> bool {
        self.spec.is_some()
    }

    pub(super) fn read(&mut self, bytes: u64) {
        self.spent_j += self.spec.as_ref().map_or(0.0, |spec| spec.read_j_per_gb) * bytes as f64 / 1e9;
    }

    pub(super) fn programmed(&mut self, bytes: u64) {
        self.spent_j += self.spec.as_ref().map_or(0.0, |spec| spec.program_j_per_gb) * bytes as f64 / 1e9;
    }

    /// By how much the drive is slower at `now_ns`.
    ///
    /// Newton's cooling over the step at its mean power P: T goes to `T_air + P R` by the factor `exp(-dt / tau)`.
    pub(super) fn slowdown(&mut self, now_ns: u64) -> f64 {
        let Some(spec) = &self.spec else { return 1.0 };
        if now_ns >= self.updated_ns + STEP_NS {
            let step_s = (now_ns - self.updated_ns) as f64 / 1e9;
            let goal_c = spec.ambient_c + (spec.idle_w + self.spent_j / step_s) * spec.rise_c_per_w;
            self.temperature_c = goal_c + (self.temperature_c - goal_c) * (-step_s / spec.time_constant_s).exp();
            let limit_c = if self.throttled { spec.resume_below_c } else { spec.throttle_above_c };
            self.throttled = self.temperature_c > limit_c;
            (self.updated_ns, self.spent_j) = (now_ns, 0.0);
        }
        if self.throttled { spec.slowdown } else { 1.0 }
    }
}

/// How many hosts may read on in order at the same time.
const STREAMS: usize = 8;

/// A command that waits for a page, by its slot, and what it wants of the page, bytes.
type Waiter = (usize, u64);

/// What a read finds of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefetch {
    Missing,
    /// It is on its way; the reader waits for it.
    Coming,
    /// It is, or will by this time be, in the drive's memory.
    Ready(u64),
}

#[derive(Debug, Default)]
struct Fetched {
    ready_ns: Option<u64>,
    waiters: Vec<Waiter>,
    /// It need not be kept when it has come.
    done: bool,
}

#[derive(Debug)]
struct ReadStream {
    end_bytes: u64,
    /// The first page that was not asked for ahead.
    ahead: u32,
}

#[derive(Debug)]
struct ReadAhead {
    /// How far, pages; 0: not at all.
    pages: u32,
    /// The one that was read last at the end.
    streams: VecDeque<ReadStream>,
    fetched: BTreeMap<u32, Fetched>,
}

impl ReadAhead {
    fn new(bytes: u64) -> Self {
        Self { pages: (bytes / PAGE_BYTES) as u32, streams: VecDeque::new(), fetched: BTreeMap::new() }
    }

    fn is_on(&self) -> bool {
        self.pages > 0
    }

    /// Looks for a page that is read; `to_end`: no later part of it will be.
    fn take(&mut self, page: u32, waiter: Waiter, to_end: bool) -> Prefetch {
        let Some(fetched) = self.fetched.get_mut(&page) else { return Prefetch::Missing };
        let Some(ready_ns) = fetched.ready_ns else {
            fetched.waiters.push(waiter);
            fetched.done |= to_end;
            return Prefetch::Coming;
        };
        if to_end {
            self.fetched.remove(&page);
        }
        Prefetch::Ready(ready_ns)
    }

    /// The pages to fetch after a read.
    fn follow(&mut self, command: &Command, flash_pages: u32, logical_pages: u32) -> Range<u32> {
        let end_bytes = command.end_bytes();
        let end_page = end_bytes.div_ceil(PAGE_BYTES) as u32;
        let continued = self.streams.iter().position(|stream| stream.end_bytes == command.offset_bytes);
        let Some(mut stream) = continued.and_then(|index| self.streams.remove(index)) else {
            if self.streams.len() == STREAMS {
                self.streams.pop_front().into_iter().for_each(|stream| self.forget_stream(&stream));
            }
            self.streams.push_back(ReadStream { end_bytes, ahead: end_page });
            return 0..0;
        };
        let first = stream.ahead.max(end_page);
        let limit = end_page.saturating_add(self.pages) / flash_pages * flash_pages;
        stream.end_bytes = end_bytes;
        stream.ahead = limit.min(logical_pages).max(first);
        let pages = first..stream.ahead;
        self.streams.push_back(stream);
        pages
    }

    /// Says that a page will be fetched; false if it is there or on its way.
    fn expect(&mut self, page: u32) -> bool {
        let is_new = !self.fetched.contains_key(&page);
        self.fetched.entry(page).or_default();
        is_new
    }

    /// A page has come; returns who waits for it.
    fn arrived(&mut self, page: u32, at_ns: u64) -> Vec<Waiter> {
        let Some(fetched) = self.fetched.get_mut(&page).filter(|fetched| fetched.ready_ns.is_none()) else {
            return Vec::new();
        };
        fetched.ready_ns = Some(at_ns);
        let waiters = std::mem::take(&mut fetched.waiters);
        if fetched.done {
            self.fetched.remove(&page);
        }
        waiters
    }

    /// Drops pages, which were written or discarded; those on their way when they have come.
    fn forget(&mut self, pages: Range<u32>) {
        if self.fetched.is_empty() {
            return;
        }
        let known: Vec<u32> = self.fetched.range(pages).map(|(page, _)| *page).collect();
        for page in known {
            match self.fetched.get_mut(&page) {
                Some(fetched) if fetched.ready_ns.is_none() => fetched.done = true,
                _ => drop(self.fetched.remove(&page)),
            }
        }
    }

    fn forget_stream(&mut self, stream: &ReadStream) {
        let end_page = (stream.end_bytes / PAGE_BYTES) as u32;
        self.forget(end_page..stream.ahead.max(end_page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thermal() -> Thermal {
        Thermal::new(Some(ThermalSpec {
            ambient_c: 30.0,
            idle_w: 1.0,
            read_j_per_gb: 1.0,
            program_j_per_gb: 2.0,
            rise_c_per_w: 10.0,
            time_constant_s: 60.0,
            throttle_above_c: 70.0,
            resume_below_c: 60.0,
            slowdown: 2.0,
        }))
    }

    #[test]
    fn it_throttles_above_the_limit_and_resumes_below_the_lower_one() {
        // 2 GB/s of programs: 4 W above 1 W, so 30 + 50 = 80 C in the end; 70 C is passed at 60 ln(40/10) = 83 s.
        let mut drive = thermal();
        assert!((drive.temperature_c - 40.0).abs() < 1e-9);
        let mut throttled_at_s = None;
        for step in 1..2_000_u64 {
            drive.programmed(200_000_000);
            if drive.slowdown(step * 100_000_000) > 1.0 {
                throttled_at_s = throttled_at_s.or(Some(step / 10));
            }
        }
        assert!((82..=85).contains(&throttled_at_s.unwrap()), "{throttled_at_s:?}");
        assert!(drive.slowdown(200 * 1_000_000_000 + 5_000_000_000) > 1.0, "still above 60 C");
        assert!(drive.slowdown(300 * 1_000_000_000) < 1.5, "{}", drive.temperature_c);
    }

    #[test]
    fn a_drive_without_heat_is_never_slow() {
        let mut drive = Thermal::new(None);
        drive.programmed(u64::MAX / 2);
        assert!((drive.slowdown(u64::MAX) - 1.0).abs() < 1e-9);
    }
}
