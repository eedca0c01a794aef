//! The drive as the host sees it: commands, the write buffer, FLUSH.

use super::dies::{Job, PageRead, Reader};
use super::event::Event;
use super::ftl::{Appended, Found, Stream, Unit};
use super::spec::PAGE_BYTES;
use super::spec::{transfer_ns, us};
use super::{Active, Ssd};
use crate::contract::{Command, Kind};

impl Ssd {
    /// Takes commands from the host while there is room in the queue and no barrier.
    pub(super) fn take_waiting(&mut self) {
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

    pub(super) fn ready(&mut self, slot: usize) {
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
                self.complete(slot, self.now_ns);
                self.reclaim();
            }
        }
    }

    /// Reads each flash page once for all neighbouring pages of the command that it holds.
    fn read(&mut self, slot: usize, command: Command) {
        let geometry = &self.ftl.geometry;
        let (end, flash_pages) = (command.end_bytes(), geometry.flash_pages);
        let (mut at, mut reads, mut at_once) = (command.offset_bytes, 0, 0);
        let mut last: Option<(u32, PageRead)> = None;
        while at < end {
            let bytes = end.min((at / PAGE_BYTES + 1) * PAGE_BYTES) - at;
            if let Found::Flash(page) = self.ftl.find((at / PAGE_BYTES) as u32) {
                match &mut last {
                    Some((first, read)) if page / flash_pages == *first / flash_pages => read.bytes += bytes,
                    _ => {
                        let place = self.ftl.geometry.place_of(page);
                        let read = PageRead { reader: Reader::Host(slot), bytes, read_ns: self.dies.read_ns(place) };
                        if let Some((first, read)) = last.replace((page, read)) {
                            self.read_flash(first, read);
                        }
                        reads += 1;
                    }
                }
            } else {
                at_once += bytes;
            }
            at += bytes;
        }
        if let Some((first, read)) = last {
            self.read_flash(first, read);
        }
        if let Some(active) = self.slots.get_mut(slot) {
            // One more for what needs no flash.
            active.remaining = reads + 1;
        }
        self.page_arrived(slot, at_once, self.now_ns);
    }

    fn read_flash(&mut self, page: u32, read: PageRead) {
        let place = self.ftl.geometry.place_of(page);
        self.dies.add_read(place, read, self.now_ns, &mut self.events);
    }

    /// Part of a read has come from the flash, or from memory.
    pub(super) fn page_arrived(&mut self, slot: usize, bytes: u64, across_ns: u64) {
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

    /// Puts writes into the buffer page by page, in the order they came, while it has room and so has the flash.
    pub(super) fn admit_writes(&mut self) {
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
        match self.ftl.append(stream, page) {
            Appended::Merged => return,
            Appended::Buffered => {}
            Appended::Filled(unit) => self.program(unit),
        }
        self.buffer_used += 1;
    }

    fn program(&mut self, unit: Unit) {
        self.programs_made += 1;
        self.counts.programmed += u64::from(unit.all_pages);
        let job = Job::Program { unit, sequence: self.programs_made };
        self.dies.add_job(unit.place.die, job, self.now_ns, &mut self.events);
    }

    fn flush(&mut self, slot: usize) {
        if self.spec.power_loss_protected {
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
    pub(super) fn host_programmed(&mut self, sequence: u64, pages: u32) {
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
