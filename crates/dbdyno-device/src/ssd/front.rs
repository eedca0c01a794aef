//! The drive as the host sees it: commands, the write buffer, FLUSH. Reads are in `read`.

use super::dies::Job;
use super::event::Event;
use super::ftl::{Appended, Stream, Unit};
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
                self.read_ahead.forget(first..end.max(first));
                self.complete(slot, self.now_ns);
                self.reclaim();
            }
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

    pub(super) fn give_to_die(&mut self, unit: Unit, sequence: u64) {
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

    pub(super) fn complete(&mut self, slot: usize, at_ns: u64) {
        if let Some(active) = self.slots.try_remove(slot) {
            self.done.push(at_ns, active.command.id);
            self.events.push(at_ns, Event::Finished);
        }
    }
}
