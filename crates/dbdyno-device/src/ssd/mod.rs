//! A solid-state drive: host link, firmware, write buffer, channels and dies.
//!
//! A read waits for the firmware, then for each page's die (`read_us`) and channel, then crosses the link. A write
//! crosses the link, waits for the firmware and for room in the buffer, and is done; the buffer is programmed to the
//! dies in turn, a full unit at a time. On a die reads go before programs, but wait for a program under way. FLUSH
//! programs what is left, short units included, and waits for it.
//!
//! Cannot: garbage collection and over-provisioning, SLC caches, program suspend, reads served from the write buffer,
//! page types of different speed, thermal limits. A drive here is as a fresh one with free blocks at all times.

mod dies;
mod spec;

use std::collections::VecDeque;

use self::dies::{Dies, PageRead, Program, Work};
pub(crate) use self::spec::SsdSpec;
use self::spec::{transfer_ns, us};
use crate::due::Agenda;
use crate::{Command, Completion, DeviceModel, Kind, WriteCache};

/// Buffered data is kept in whole pieces of this size, so that one-sector writes cost what they cost a real drive.
const MAPPING_BYTES: u64 = 4096;

/// Something that happens inside the drive.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The firmware has understood the command in this slot (and a write's data is in).
    Ready(usize),
    /// A die has finished what it was doing.
    Die(usize),
}

/// A command the drive works on.
#[derive(Debug, Clone, Copy)]
struct Active {
    command: Command,
    /// Pages still to come, for a read; programs still to come, for a flush.
    remaining: u64,
    /// Latest time at which one of its parts was done.
    done_ns: u64,
    /// For a flush: programs up to this one belong to it.
    covers: u64,
}

pub(crate) struct Ssd {
    spec: SsdSpec,
    size_bytes: u64,
    now_ns: u64,
    events: Agenda<Event>,
    done: Agenda<u64>,
    slots: Vec<Option<Active>>,
    free_slots: Vec<usize>,
    /// Commands the drive has not taken yet.
    waiting: VecDeque<Command>,
    /// Commands taken and not finished, including those whose completion time is already known.
    active: usize,
    /// Completion times of commands that occupy a place in the queue until then.
    leaving: Agenda<()>,
    /// A flush is under way that nothing may pass.
    barrier: bool,
    firmware_free_ns: u64,
    link_in_free_ns: u64,
    link_out_free_ns: u64,
    buffer_used: u64,
    /// Writes understood for which the buffer has no room.
    blocked: VecDeque<usize>,
    /// Data in the buffer not yet given to a die.
    open_bytes: u64,
    programs_made: u64,
    programs_ended: u64,
    flushes: Vec<usize>,
    dies: Dies,
}

impl Ssd {
    pub(crate) fn new(spec: &SsdSpec, size_bytes: u64) -> Self {
        Self {
            spec: spec.clone(),
            size_bytes,
            now_ns: 0,
            events: Agenda::new(),
            done: Agenda::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            waiting: VecDeque::new(),
            active: 0,
            leaving: Agenda::new(),
            barrier: false,
            firmware_free_ns: 0,
            link_in_free_ns: 0,
            link_out_free_ns: 0,
            buffer_used: 0,
            blocked: VecDeque::new(),
            open_bytes: 0,
            programs_made: 0,
            programs_ended: 0,
            flushes: Vec::new(),
            dies: Dies::new(spec),
        }
    }

    /// Lets everything happen that happens up to `to_ns`.
    fn advance(&mut self, to_ns: u64) {
        loop {
            let event_ns = self.events.next_ns().unwrap_or(u64::MAX);
            let leaving_ns = self.leaving.next_ns().unwrap_or(u64::MAX);
            if event_ns.min(leaving_ns) > to_ns {
                break;
            }
            if leaving_ns <= event_ns {
                if let Some((at_ns, ())) = self.leaving.pop_due(to_ns) {
                    self.now_ns = at_ns;
                    self.active -= 1;
                    self.barrier &= self.active > 0;
                }
            } else if let Some((at_ns, event)) = self.events.pop_due(to_ns) {
                self.now_ns = at_ns;
                match event {
                    Event::Ready(slot) => self.ready(slot),
                    Event::Die(die) => self.die_ended(die),
                }
            }
            self.take_waiting();
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

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
        let active = Active { command, remaining: 0, done_ns: self.now_ns, covers: 0 };
        let slot = if let Some(slot) = self.free_slots.pop() {
            self.slots[slot] = Some(active);
            slot
        } else {
            self.slots.push(Some(active));
            self.slots.len() - 1
        };
        let mut ready_ns = self.now_ns;
        if command.kind == Kind::Write {
            self.link_in_free_ns =
                ready_ns.max(self.link_in_free_ns) + transfer_ns(command.length_bytes, self.spec.link_mb_s);
            ready_ns = self.link_in_free_ns;
        }
        self.firmware_free_ns = ready_ns.max(self.firmware_free_ns) + us(self.spec.command_us);
        self.events.push(self.firmware_free_ns + us(self.spec.firmware_us), Event::Ready(slot));
    }

    fn ready(&mut self, slot: usize) {
        let Some(active) = self.slots[slot] else { return };
        match active.command.kind {
            Kind::Read => self.read(slot, active.command),
            Kind::Write => {
                self.blocked.push_back(slot);
                self.admit_writes();
            }
            Kind::Flush => self.flush(slot),
            Kind::Discard => self.complete(slot, self.now_ns),
        }
    }

    fn read(&mut self, slot: usize, command: Command) {
        let page_bytes = self.spec.page_bytes;
        let end = command.end_bytes();
        let mut at = command.offset_bytes;
        let mut pages = 0;
        while at < end {
            let page = at / page_bytes;
            let bytes = end.min((page + 1) * page_bytes) - at;
            let die = self.dies.die_of(page);
            self.dies.add_read(die, PageRead { command: slot, bytes });
            self.start_die(die);
            pages += 1;
            at += bytes;
        }
        match &mut self.slots[slot] {
            Some(active) if pages > 0 => active.remaining = pages,
            _ => self.complete(slot, self.now_ns),
        }
    }

    /// Puts writes into the buffer in the order they came, while there is room. One larger than the whole buffer gets
    /// in when the buffer is empty.
    fn admit_writes(&mut self) {
        while let Some(slot) = self.blocked.front().copied() {
            let length = self.slots[slot].map_or(0, |active| buffered_bytes(&active.command));
            if self.buffer_used > 0 && self.buffer_used + length > self.spec.buffer_bytes {
                // A short unit is not programmed for its own sake, but must not keep a writer waiting for ever.
                if self.programs_ended == self.programs_made {
                    self.program_open(true);
                }
                return;
            }
            self.blocked.pop_front();
            self.buffer_used += length;
            self.open_bytes += length;
            self.complete(slot, self.now_ns);
            self.program_open(false);
        }
    }

    /// Gives full units to the dies, and the short one too if `all`.
    fn program_open(&mut self, all: bool) {
        let unit = self.spec.program_bytes;
        while self.open_bytes >= unit || (all && self.open_bytes > 0) {
            let data_bytes = self.open_bytes.min(unit);
            self.open_bytes -= data_bytes;
            self.programs_made += 1;
            let die = self.dies.add_program(Program { sequence: self.programs_made, data_bytes });
            self.start_die(die);
        }
    }

    fn flush(&mut self, slot: usize) {
        if self.spec.power_loss_protected {
            return self.complete(slot, self.now_ns);
        }
        self.program_open(true);
        let outstanding = self.programs_made - self.programs_ended;
        if outstanding == 0 {
            return self.complete(slot, self.now_ns);
        }
        if let Some(active) = &mut self.slots[slot] {
            active.remaining = outstanding;
            active.covers = self.programs_made;
        }
        self.flushes.push(slot);
    }

    fn start_die(&mut self, die: usize) {
        if let Some(end_ns) = self.dies.start(die, self.now_ns) {
            self.events.push(end_ns, Event::Die(die));
        }
    }

    fn die_ended(&mut self, die: usize) {
        match self.dies.end(die, self.now_ns) {
            Some((Work::Read(read), across_ns)) => self.page_arrived(read.command, across_ns),
            Some((Work::Program(program), _)) => self.programmed(program),
            None => {}
        }
        self.start_die(die);
    }

    fn page_arrived(&mut self, slot: usize, across_ns: u64) {
        let Some(active) = &mut self.slots[slot] else { return };
        active.remaining -= 1;
        active.done_ns = active.done_ns.max(across_ns);
        if active.remaining == 0 {
            let length_bytes = active.command.length_bytes;
            let start_ns = active.done_ns.max(self.link_out_free_ns);
            self.link_out_free_ns = start_ns + transfer_ns(length_bytes, self.spec.link_mb_s);
            self.complete(slot, self.link_out_free_ns);
        }
    }

    fn programmed(&mut self, program: Program) {
        self.programs_ended += 1;
        self.buffer_used -= program.data_bytes;
        let mut flushed = Vec::new();
        for &slot in &self.flushes {
            let Some(active) = &mut self.slots[slot] else { continue };
            if program.sequence <= active.covers {
                active.remaining -= 1;
                if active.remaining == 0 {
                    flushed.push(slot);
                }
            }
        }
        self.flushes.retain(|slot| !flushed.contains(slot));
        for slot in flushed {
            self.complete(slot, self.now_ns + us(self.spec.flush_us));
        }
        self.admit_writes();
    }

    fn complete(&mut self, slot: usize, at_ns: u64) {
        if let Some(active) = self.slots[slot].take() {
            self.free_slots.push(slot);
            self.done.push(at_ns, active.command.id);
            self.leaving.push(at_ns, ());
        }
    }
}

/// What a write occupies in the buffer: the mapping units it touches.
fn buffered_bytes(command: &Command) -> u64 {
    let end = command.end_bytes().max(command.offset_bytes + 1);
    (end.div_ceil(MAPPING_BYTES) - command.offset_bytes / MAPPING_BYTES) * MAPPING_BYTES
}

impl DeviceModel for Ssd {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.advance(now_ns.max(self.now_ns));
        self.waiting.push_back(command.within(self.size_bytes));
        self.take_waiting();
    }

    fn next_due(&self) -> Option<u64> {
        let done_ns = self.done.next_ns();
        // Programs in the background need no attention while no command waits.
        let idle = self.waiting.is_empty() && self.slots.len() == self.free_slots.len();
        if idle {
            return done_ns;
        }
        [done_ns, self.events.next_ns(), self.leaving.next_ns()].into_iter().flatten().min()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.advance(now_ns.max(self.now_ns));
        self.done.finish(now_ns, finished);
    }

    fn write_cache(&self) -> WriteCache {
        if self.spec.power_loss_protected { WriteCache::Protected } else { WriteCache::Volatile }
    }
}
