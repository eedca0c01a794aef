//! The drives of an array, and the tasks they work on together.

use slab::Slab;

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
    finished: Vec<Completion>,
}

impl<Task> Members<Task> {
    pub(super) fn new(models: Vec<Box<dyn DeviceModel + Send>>, layout: Layout) -> Self {
        let member = |model| Member { model, due_ns: None, outstanding: 0, end_bytes: 0 };
        Self {
            drives: models.into_iter().map(member).collect(),
            layout,
            pending: Slab::new(),
            waiting_for: WaitingFor::new(),
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

    fn send_to(&mut self, member: usize, now_ns: u64, slot: usize, command: Command) {
        let member = &mut self.drives[member];
        member.outstanding += 1;
        if command.kind != Kind::Flush {
            member.end_bytes = command.end_bytes();
        }
        member.model.submit(now_ns, Command { id: slot as u64, ..command });
        member.due_ns = member.model.next_due();
    }

    /// When a member is to be polled next.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        self.drives.iter().filter_map(|member| member.due_ns).min()
    }

    /// The earliest time at which a task may end: not before the last of the members it waits for may answer.
    pub(super) fn next_end_ns(&self) -> Option<u64> {
        self.waiting_for.earliest(|member| self.drives[member].due_ns)
    }

    /// Appends the tasks that have ended by `now_ns`, and when, in the order of the members' last parts.
    pub(super) fn poll(&mut self, now_ns: u64, ended: &mut Vec<(Task, u64)>) {
        for (index, member) in self.drives.iter_mut().enumerate() {
            if member.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            member.model.poll(now_ns, &mut self.finished);
            member.due_ns = member.model.next_due();
            member.outstanding -= self.finished.len();
            for Completion { id, at_ns } in self.finished.drain(..) {
                let slot = id as usize;
                let Some(pending) = self.pending.get_mut(slot) else { continue };
                let before = pending.left;
                pending.left.remove(index);
                pending.at_ns = pending.at_ns.max(at_ns);
                self.waiting_for.change(before, pending.left);
                if pending.left == MemberSet::NONE {
                    let Pending { task, at_ns, .. } = self.pending.remove(slot);
                    ended.push((task, at_ns));
                }
            }
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
