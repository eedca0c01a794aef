//! The bus between an array's controller and its members, where they share one.
//!
//! It carries one transfer at a time, in the order in which they ask for it: a write when it is sent, a read when its
//! member has it. A member's own time has a transfer at its own interface's rate in it, which goes on while the bus
//! carries the data: a read is late only if the bus was taken, or if it is slower than the member.

use std::collections::{HashMap, VecDeque};

use crate::contract::Command;
use crate::due::{Agenda, earlier};

/// A write on its way to a member.
#[derive(Debug)]
pub(super) struct Held {
    pub at_ns: u64,
    pub member: usize,
    pub command: Command,
}

/// What a read has the bus carry, once its member has it.
#[derive(Debug)]
struct Reading {
    sent_ns: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Bus<Task> {
    ns_per_byte: f64,
    /// The end of all transfers so far.
    free_ns: u64,
    /// Writes whose members get them when the bus is theirs, in the order of that.
    held: VecDeque<Held>,
    /// By member and by the id of the command there.
    reading: HashMap<(usize, u64), Reading>,
    /// What members have done and the bus has not.
    late: Agenda<Task>,
}

impl<Task> Bus<Task> {
    pub(super) fn new(mb_s: f64) -> Self {
        let (held, reading) = (VecDeque::new(), HashMap::new());
        Self { ns_per_byte: 1e3 / mb_s, free_ns: 0, held, reading, late: Agenda::new() }
    }

    /// The bus carries so much from `from_ns` on or as soon as it is free, but is not done with it before `least_ns`; when
    /// it begins and ends.
    fn carry(&mut self, from_ns: u64, bytes: u64, least_ns: u64) -> (u64, u64) {
        let begin_ns = from_ns.max(self.free_ns);
        let end_ns = begin_ns.saturating_add((bytes as f64 * self.ns_per_byte).ceil() as u64).max(least_ns);
        self.free_ns = end_ns;
        (begin_ns, end_ns)
    }

    /// A write that is sent to a member: whether it has to wait until [`Bus::next_held`] gives it, and when the bus is done
    /// with it.
    pub(super) fn write(&mut self, now_ns: u64, member: usize, command: &Command) -> (bool, u64) {
        let (at_ns, end_ns) = self.carry(now_ns, command.length_bytes, 0);
        let waits = at_ns > now_ns;
        if waits {
            self.held.push_back(Held { at_ns, member, command: *command });
        }
        (waits, end_ns)
    }

    /// A write whose turn has come.
    pub(super) fn next_held(&mut self, now_ns: u64) -> Option<Held> {
        if self.held.front()?.at_ns > now_ns {
            return None;
        }
        self.held.pop_front()
    }

    /// A read is sent to a member.
    pub(super) fn read(&mut self, sent_ns: u64, member: usize, command: &Command) {
        self.reading.insert((member, command.id), Reading { sent_ns, bytes: command.length_bytes });
    }

    /// A member has done a command at `at_ns`: when the bus has, too.
    pub(super) fn done(&mut self, at_ns: u64, member: usize, id: u64) -> u64 {
        match self.reading.remove(&(member, id)) {
            Some(Reading { sent_ns, bytes }) => self.carry(sent_ns, bytes, at_ns).1,
            None => at_ns,
        }
    }

    /// A task ends when the bus has done its part.
    pub(super) fn end_later(&mut self, at_ns: u64, task: Task) {
        self.late.push(at_ns, task);
    }

    /// The next task that has ended so, and when.
    pub(super) fn next_ended(&mut self, now_ns: u64) -> Option<(u64, Task)> {
        self.late.pop_due(now_ns)
    }

    /// When it does something next.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        earlier(self.held.front().map(|held| held.at_ns), self.late.next_ns())
    }
}
