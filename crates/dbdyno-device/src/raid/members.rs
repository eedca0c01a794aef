//! The members of an array: which of them have a range, when a task of several is done, and the bus they share.

use std::collections::{HashMap, VecDeque};

use slab::Slab;

use crate::contract::{Agenda, Command, Completion, DeviceModel, Kind, WriteCache, earlier};

/// Where a byte of the array lies: stripes go over the *sets* in turn; the members of a set are mirrors. With parity it
/// says how much of a row is data; `Rows` says where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub sets: u64,
    pub mirrors: usize,
    pub stripe_bytes: u64,
}

/// The part of a command that one set serves; always one range, as neighbouring stripes of a set are adjacent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    pub set: u64,
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

impl Layout {
    pub(super) fn row_bytes(&self) -> u64 {
        self.stripe_bytes * self.sets
    }

    /// The parts of a range of at least one byte.
    fn parts(&self, offset_bytes: u64, length_bytes: u64) -> impl Iterator<Item = Part> + use<> {
        let layout = *self;
        let end_bytes = offset_bytes + length_bytes;
        // From the set that has the first byte; a short range does not reach them all.
        let first = offset_bytes / self.stripe_bytes % self.sets;
        (first..first + self.sets).map(move |set| set % layout.sets).filter_map(move |set| {
            let start = layout.bytes_before(set, offset_bytes);
            let length_bytes = layout.bytes_before(set, end_bytes) - start;
            (length_bytes > 0).then_some(Part { set, offset_bytes: start, length_bytes })
        })
    }

    /// How much of the array's first `end_bytes` a set holds.
    fn bytes_before(&self, set: u64, end_bytes: u64) -> u64 {
        if self.sets == 1 {
            return end_bytes;
        }
        let (rows, rest) = (end_bytes / self.row_bytes(), end_bytes % self.row_bytes());
        rows * self.stripe_bytes + rest.saturating_sub(set * self.stripe_bytes).min(self.stripe_bytes)
    }
}

/// How much more a mirror may have to read than the least busy before what continues its last read goes to the other:
/// a few times what a disk reads in the time that another takes to find its place.
const LEAD_BYTES_MAX: u64 = 4 << 20;

struct Member {
    model: Box<dyn DeviceModel + Send>,
    /// The model's `next_due`, which changes only where it is called.
    due_ns: Option<u64>,
    outstanding: usize,
    /// Where its last command ended, which is where a disk's head is.
    end_bytes: u64,
}

impl Member {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.model.submit(now_ns, command);
        self.due_ns = self.model.next_due();
    }
}

/// Something that is done when all its parts are.
struct Pending<Task> {
    task: Task,
    /// The members that still work on it.
    left: MemberSet,
    /// When the last part so far was done.
    at_ns: u64,
}

pub(super) struct Members<Task> {
    drives: Vec<Member>,
    layout: Layout,
    /// A member has at most one part of a task, so the task's place here is the part's id there.
    pending: Slab<Pending<Task>>,
    waiting_for: WaitingFor,
    bus: Option<Bus<Task>>,
    finished: Vec<Completion>,
}

impl<Task> Members<Task> {
    /// `bus_mb_s` is the rate of the bus they share, if they do.
    pub(super) fn new(models: Vec<Box<dyn DeviceModel + Send>>, layout: Layout, bus_mb_s: Option<f64>) -> Self {
        let member = |model| Member { model, due_ns: None, outstanding: 0, end_bytes: 0 };
        Self {
            drives: models.into_iter().map(member).collect(),
            layout,
            pending: Slab::new(),
            waiting_for: WaitingFor::new(),
            bus: bus_mb_s.map(Bus::new),
            finished: Vec::new(),
        }
    }

    /// Sends a command's parts to the members that have them; `task` ends with the last.
    pub(super) fn send(&mut self, now_ns: u64, command: &Command, task: Task) {
        let slot = self.pending.insert(Pending { task, left: MemberSet::NONE, at_ns: 0 });
        let members = if command.kind == Kind::Flush {
            let everywhere = 0..self.drives.len();
            everywhere.clone().for_each(|member| self.send_to(member, now_ns, slot, *command));
            MemberSet::range(everywhere)
        } else if command.length_bytes == 0 {
            self.send_to(0, now_ns, slot, Command { offset_bytes: 0, ..*command });
            MemberSet::range(0..1)
        } else {
            self.send_parts(now_ns, slot, command)
        };
        self.pending[slot].left = members;
        self.waiting_for.add(members);
    }

    /// Sends members a command each; `task` ends with the last.
    pub(super) fn send_each(&mut self, now_ns: u64, each: impl Iterator<Item = (usize, Command)>, task: Task) {
        let slot = self.pending.insert(Pending { task, left: MemberSet::NONE, at_ns: 0 });
        let mut sent = MemberSet::NONE;
        for (member, command) in each {
            sent.add(MemberSet::range(member..member + 1));
            self.send_to(member, now_ns, slot, command);
        }
        self.pending[slot].left = sent;
        self.waiting_for.add(sent);
    }

    fn send_parts(&mut self, now_ns: u64, slot: usize, command: &Command) -> MemberSet {
        let mut sent = MemberSet::NONE;
        for part in self.layout.parts(command.offset_bytes, command.length_bytes) {
            let own = Command { offset_bytes: part.offset_bytes, length_bytes: part.length_bytes, ..*command };
            let mirrors = part.set as usize * self.layout.mirrors..(part.set as usize + 1) * self.layout.mirrors;
            if command.kind == Kind::Read {
                let chosen = self.reader(mirrors, &part);
                self.send_to(chosen, now_ns, slot, own);
                sent.add(MemberSet::range(chosen..chosen + 1));
            } else {
                sent.add(MemberSet::range(mirrors.clone()));
                mirrors.for_each(|member| self.send_to(member, now_ns, slot, own));
            }
        }
        sent
    }

    /// The mirror that shall read a part: the one that it continues on, so that a scan with commands queued does not
    /// alternate between disks that each skip every other piece; else the least busy, then the nearest, then the first.
    fn reader(&self, mirrors: std::ops::Range<usize>, part: &Part) -> usize {
        let first = mirrors.start;
        let least = mirrors.clone().map(|index| self.drives[index].outstanding).min().unwrap_or(0);
        let leads_by = |member: &Member| (member.outstanding - least) as u64 * part.length_bytes;
        let continues = |member: &Member| member.end_bytes == part.offset_bytes && leads_by(member) <= LEAD_BYTES_MAX;
        if let Some(index) = mirrors.clone().find(|index| continues(&self.drives[*index])) {
            return index;
        }
        let busy_and_far = |member: &Member| (member.outstanding, member.end_bytes.abs_diff(part.offset_bytes));
        mirrors.min_by_key(|index| busy_and_far(&self.drives[*index])).unwrap_or(first)
    }

    fn send_to(&mut self, index: usize, now_ns: u64, slot: usize, command: Command) {
        let command = Command { id: slot as u64, ..command };
        let member = &mut self.drives[index];
        member.outstanding += 1;
        if command.kind != Kind::Flush {
            member.end_bytes = command.end_bytes();
        }
        if self.goes_now(index, now_ns, slot, &command) {
            self.drives[index].submit(now_ns, command);
        }
    }

    /// Whether a member gets a command at once; else it waits for the bus.
    fn goes_now(&mut self, index: usize, now_ns: u64, slot: usize, command: &Command) -> bool {
        let Some(bus) = self.bus.as_mut().filter(|_| command.length_bytes > 0) else { return true };
        match command.kind {
            Kind::Write => {
                let (waits, end_ns) = bus.write(now_ns, index, command);
                let pending = &mut self.pending[slot];
                pending.at_ns = pending.at_ns.max(end_ns);
                !waits
            }
            Kind::Read => {
                bus.read(now_ns, index, command);
                true
            }
            Kind::Flush | Kind::Discard => true,
        }
    }

    pub(super) fn bus_ns(&self) -> Option<u64> {
        self.bus.as_ref()?.next_event_ns()
    }

    /// When a member is to be polled next, or the bus.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        self.drives.iter().filter_map(|member| member.due_ns).chain(self.bus_ns()).min()
    }

    /// The earliest time at which a task may end: not before the last of the members it waits for may answer.
    pub(super) fn next_end_ns(&self) -> Option<u64> {
        let answered_ns = self.waiting_for.earliest(|member| self.drives[member].due_ns);
        answered_ns.into_iter().chain(self.bus_ns()).min()
    }

    /// Appends the tasks that have ended by `now_ns`, and when, in the order of the members' last parts.
    pub(super) fn poll(&mut self, now_ns: u64, ended: &mut Vec<(Task, u64)>) {
        for index in 0..self.drives.len() {
            let member = &mut self.drives[index];
            if member.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            let mut finished = std::mem::take(&mut self.finished);
            member.model.poll(now_ns, &mut finished);
            member.due_ns = member.model.next_due();
            member.outstanding -= finished.len();
            for completion in finished.drain(..) {
                self.take(index, now_ns, completion, ended);
            }
            self.finished = finished;
        }
        self.poll_bus(now_ns, ended);
    }

    /// A member has done its part of a task.
    fn take(&mut self, index: usize, now_ns: u64, completion: Completion, ended: &mut Vec<(Task, u64)>) {
        let Completion { id, at_ns } = completion;
        let at_ns = self.bus.as_mut().map_or(at_ns, |bus| bus.completion_ns(at_ns, index, id));
        let Some(pending) = self.pending.get_mut(id as usize) else { return };
        let before = pending.left;
        pending.left.remove(index);
        pending.at_ns = pending.at_ns.max(at_ns);
        self.waiting_for.change(before, pending.left);
        if pending.left == MemberSet::NONE {
            let Pending { task, at_ns, .. } = self.pending.remove(id as usize);
            match &mut self.bus {
                Some(bus) if at_ns > now_ns => bus.end_later(at_ns, task),
                _ => ended.push((task, at_ns)),
            }
        }
    }

    /// Lets the bus do what it does by `now_ns`.
    fn poll_bus(&mut self, now_ns: u64, ended: &mut Vec<(Task, u64)>) {
        let Some(bus) = &mut self.bus else { return };
        while let Some((at_ns, task)) = bus.next_ended(now_ns) {
            ended.push((task, at_ns));
        }
        while let Some(WaitingWrite { member, command, .. }) = bus.next_write(now_ns) {
            self.drives[member].submit(now_ns, command);
        }
    }

    /// Commands the members work on.
    pub(super) fn outstanding(&self) -> usize {
        self.drives.iter().map(|member| member.outstanding).sum()
    }

    /// The sum of a gauge over all members; `None` where one of them has none of that name.
    pub(super) fn gauge_sum(&self, name: &str) -> Option<f64> {
        let of = |member: &Member| member.model.gauges().into_iter().find(|(gauge, _)| *gauge == name);
        self.drives.iter().map(|member| of(member).map(|(_, value)| value)).sum()
    }

    /// The smallest fast cache of a member, and when the first of them ran out.
    pub(super) fn fast_cache(&self) -> Option<(u64, Option<u64>)> {
        let caches = || self.drives.iter().filter_map(|member| member.model.fast_cache());
        Some((caches().map(|cache| cache.bytes).min()?, caches().filter_map(|cache| cache.ran_out_ns).min()))
    }

    /// Whether any of them ignores FLUSH.
    pub(super) fn ignore_flush(&self) -> bool {
        self.drives.iter().any(|member| member.model.ignores_flush())
    }

    /// What a power cut takes: as much as of the least safe member.
    pub(super) fn write_cache(&self) -> WriteCache {
        let kinds = || self.drives.iter().map(|member| member.model.write_cache());
        if kinds().any(|kind| kind == WriteCache::Volatile) {
            WriteCache::Volatile
        } else if kinds().any(|kind| kind == WriteCache::Protected) {
            WriteCache::Protected
        } else {
            WriteCache::None
        }
    }
}

/// Above so many different sets the first member to answer counts, not the last of a set.
const SETS_MAX: usize = 64;

/// A set of members of an array, which has 64 at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MemberSet(u64);

impl MemberSet {
    const NONE: Self = Self(0);

    fn range(members: std::ops::Range<usize>) -> Self {
        Self(members.fold(0, |bits, member| bits | 1 << member))
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn remove(&mut self, member: usize) {
        self.0 &= !(1 << member);
    }

    fn members(self) -> impl Iterator<Item = usize> {
        let rest = std::iter::successors(Some(self.0), |bits| Some(bits & bits.wrapping_sub(1)));
        rest.take_while(|bits| *bits != 0).map(|bits| bits.trailing_zeros() as usize)
    }
}

/// How many tasks wait for each set of members. A task of two mirrors that one of them has answered waits for the
/// other: the array need not be polled before that may answer.
#[derive(Debug)]
struct WaitingFor {
    /// In order of the sets; no count is 0.
    counts: Vec<(MemberSet, usize)>,
}

impl WaitingFor {
    fn new() -> Self {
        Self { counts: Vec::new() }
    }

    fn add(&mut self, members: MemberSet) {
        if members == MemberSet::NONE {
            return;
        }
        match self.counts.binary_search_by_key(&members, |(set, _)| *set) {
            Ok(index) => self.counts[index].1 += 1,
            Err(index) => self.counts.insert(index, (members, 1)),
        }
    }

    /// A task that waited for some now waits for others, or for none.
    fn change(&mut self, from: MemberSet, to: MemberSet) {
        if let Ok(index) = self.counts.binary_search_by_key(&from, |(set, _)| *set) {
            self.counts[index].1 -= 1;
            if self.counts[index].1 == 0 {
                self.counts.remove(index);
            }
        }
        self.add(to);
    }

    /// The earliest time at which a task may end, by the time at which a member may answer next.
    fn earliest(&self, due_ns: impl Fn(usize) -> Option<u64>) -> Option<u64> {
        let sets = self.counts.iter().map(|(set, _)| set.members().map(&due_ns));
        if self.counts.len() > SETS_MAX {
            return sets.flatten().flatten().min();
        }
        sets.filter_map(|dues| dues.flatten().max()).min()
    }
}

/// A write on its way to a member.
#[derive(Debug)]
struct WaitingWrite {
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

/// The bus between an array's controller and its members, where they share one.
///
/// It carries one transfer at a time, in the order in which they ask for it: a write when it is sent, a read when its
/// member has it. A member's own time has a transfer at its own interface's rate in it, which goes on while the bus
/// carries the data: a read is late only if the bus was taken, or if it is slower than the member.
#[derive(Debug)]
struct Bus<Task> {
    ns_per_byte: f64,
    /// The end of all transfers so far.
    free_ns: u64,
    /// Writes whose members get them when the bus is theirs, in the order of that.
    write_queue: VecDeque<WaitingWrite>,
    /// By member and by the id of the command there.
    reading: HashMap<(usize, u64), Reading>,
    /// What members have done and the bus has not.
    late: Agenda<Task>,
}

impl<Task> Bus<Task> {
    fn new(mb_s: f64) -> Self {
        let (write_queue, reading) = (VecDeque::new(), HashMap::new());
        Self { ns_per_byte: 1e3 / mb_s, free_ns: 0, write_queue, reading, late: Agenda::new() }
    }

    /// Carries so many bytes over the bus: from `from_ns`, or later when the bus is free, to `least_ns` at the
    /// earliest. Returns when that begins and ends.
    fn carry(&mut self, from_ns: u64, bytes: u64, least_ns: u64) -> (u64, u64) {
        let begin_ns = from_ns.max(self.free_ns);
        let end_ns = begin_ns.saturating_add((bytes as f64 * self.ns_per_byte).ceil() as u64).max(least_ns);
        self.free_ns = end_ns;
        (begin_ns, end_ns)
    }

    /// A write that is sent to a member: whether it has to wait until [`Bus::next_write`] gives it, and when the bus is
    /// done with it.
    fn write(&mut self, now_ns: u64, member: usize, command: &Command) -> (bool, u64) {
        let (at_ns, end_ns) = self.carry(now_ns, command.length_bytes, 0);
        let waits = at_ns > now_ns;
        if waits {
            self.write_queue.push_back(WaitingWrite { at_ns, member, command: *command });
        }
        (waits, end_ns)
    }

    /// A write whose turn has come.
    fn next_write(&mut self, now_ns: u64) -> Option<WaitingWrite> {
        if self.write_queue.front()?.at_ns > now_ns {
            return None;
        }
        self.write_queue.pop_front()
    }

    /// A read is sent to a member.
    fn read(&mut self, sent_ns: u64, member: usize, command: &Command) {
        self.reading.insert((member, command.id), Reading { sent_ns, bytes: command.length_bytes });
    }

    /// A member has done a command at `at_ns`: when the bus has, too.
    fn completion_ns(&mut self, at_ns: u64, member: usize, id: u64) -> u64 {
        match self.reading.remove(&(member, id)) {
            Some(Reading { sent_ns, bytes }) => self.carry(sent_ns, bytes, at_ns).1,
            None => at_ns,
        }
    }

    /// A task ends when the bus has done its part.
    fn end_later(&mut self, at_ns: u64, task: Task) {
        self.late.push(at_ns, task);
    }

    /// The next task that has ended so, and when.
    fn next_ended(&mut self, now_ns: u64) -> Option<(u64, Task)> {
        self.late.pop_due(now_ns)
    }

    /// When it does something next.
    fn next_event_ns(&self) -> Option<u64> {
        earlier(self.write_queue.front().map(|write| write.at_ns), self.late.next_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sets: u64) -> Layout {
        Layout { sets, mirrors: 1, stripe_bytes: 65_536 }
    }

    #[test]
    fn a_range_within_a_stripe_is_one_part() {
        let parts: Vec<Part> = layout(3).parts(4 * 65_536 + 100, 4096).collect();
        assert_eq!(parts, [Part { set: 1, offset_bytes: 65_536 + 100, length_bytes: 4096 }]);
    }

    #[test]
    fn every_byte_is_in_one_place_of_its_own() {
        for sets in 1..5 {
            let layout = layout(sets);
            let mut places = std::collections::BTreeSet::new();
            for block in 0..16 * 40 {
                let parts: Vec<Part> = layout.parts(block * 4096, 4096).collect();
                assert_eq!(parts.iter().map(|part| part.length_bytes).sum::<u64>(), 4096);
                assert!(parts.iter().all(|part| places.insert((part.set, part.offset_bytes))), "{parts:?}");
            }
            // A long range is the sum of its blocks.
            for part in layout.parts(0, 4096 * 16 * 40) {
                assert_eq!(part.offset_bytes, 0);
                assert_eq!(part.length_bytes, 4096 * places.iter().filter(|(set, _)| *set == part.set).count() as u64);
            }
        }
    }

    #[test]
    fn a_task_ends_with_its_last_member_and_the_first_such_counts() {
        let due_ns = |member: usize| [Some(50), Some(20), None, Some(70)][member];
        let mut waiting = WaitingFor::new();
        assert_eq!(waiting.earliest(due_ns), None);
        waiting.add(MemberSet::range(0..2));
        waiting.add(MemberSet::range(3..4));
        assert_eq!(waiting.earliest(due_ns), Some(50));
        let mut rest = MemberSet::range(0..2);
        rest.remove(0);
        waiting.change(MemberSet::range(0..2), rest);
        assert_eq!(waiting.earliest(due_ns), Some(20));
        waiting.change(rest, MemberSet::NONE);
        assert_eq!(waiting.earliest(due_ns), Some(70));
        waiting.change(MemberSet::range(3..4), MemberSet::NONE);
        assert_eq!((waiting.earliest(due_ns), waiting.counts.len()), (None, 0));
    }

    #[test]
    fn many_sets_are_bounded_from_below() {
        let mut waiting = WaitingFor::new();
        let sets = (0..12_usize).flat_map(|first| (first + 1..12).map(move |end| MemberSet::range(first..end)));
        sets.for_each(|set| waiting.add(set));
        assert!(waiting.counts.len() > SETS_MAX);
        assert_eq!(waiting.earliest(|member| Some(100 - member as u64)), Some(90));
    }
}
