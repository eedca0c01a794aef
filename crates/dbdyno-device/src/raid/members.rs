//! The drives of an array, and the tasks they work on together.

use slab::Slab;

use super::bus::{Bus, Held};
use super::member_set::{MemberSet, WaitingFor};
use super::spec::{Layout, Part};
use crate::contract::{Command, Completion, DeviceModel, Kind, WriteCache};

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
            MemberSet::of(everywhere)
        } else if command.length_bytes == 0 {
            self.send_to(0, now_ns, slot, Command { offset_bytes: 0, ..*command });
            MemberSet::of(0..1)
        } else {
            self.send_parts(now_ns, slot, command)
        };
        self.pending[slot].left = members;
        self.waiting_for.add(members);
    }

    fn send_parts(&mut self, now_ns: u64, slot: usize, command: &Command) -> MemberSet {
        let mut sent = MemberSet::NONE;
        for part in self.layout.parts(command.offset_bytes, command.length_bytes) {
            let own = Command { offset_bytes: part.offset_bytes, length_bytes: part.length_bytes, ..*command };
            let mirrors = part.set as usize * self.layout.mirrors..(part.set as usize + 1) * self.layout.mirrors;
            if command.kind == Kind::Read {
                let chosen = self.reader(mirrors, &part);
                self.send_to(chosen, now_ns, slot, own);
                sent.add(MemberSet::of(chosen..chosen + 1));
            } else {
                sent.add(MemberSet::of(mirrors.clone()));
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

    fn bus_ns(&self) -> Option<u64> {
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
        let at_ns = self.bus.as_mut().map_or(at_ns, |bus| bus.done(at_ns, index, id));
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
        while let Some(Held { member, command, .. }) = bus.next_held(now_ns) {
            self.drives[member].submit(now_ns, command);
        }
    }

    /// Commands the members work on.
    pub(super) fn outstanding(&self) -> usize {
        self.drives.iter().map(|member| member.outstanding).sum()
    }

    /// The sum of a gauge over all members; `None` where one of them has none of that name.
    pub(super) fn gauge_sum(&self, name: &str) -> Option<f64> {
        let of = |member: &Member| member.model.gauges().into_iter().find(|(found, _)| *found == name);
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
