//! What happens to a command when it comes: answered from a cache, taken into one, or queued for the arm.

use super::read_ahead::Ahead;
use super::read_cache::Lookup;
use super::{Blocked, Flush, Hdd, Waiting, Work};
use crate::contract::{Command, Kind};
use crate::dirty::Extent;

impl Hdd {
    pub(super) fn accept(&mut self, command: Command) {
        let extent = self.extent(&command);
        match command.kind {
            Kind::Flush if self.spec.flush_ignored => self.deliver(&command, 0),
            Kind::Flush => self.flush = Some(Flush { id: command.id, wrote: self.is_destaging() }),
            Kind::Discard => self.deliver(&command, 0),
            Kind::Read | Kind::Write if extent.sectors == 0 => self.deliver(&command, 0),
            Kind::Read => self.accept_read(command, extent),
            Kind::Write => {
                self.reads.invalidate(self.now_ns, extent.start, extent.end());
                if command.fua && self.cache.enabled() {
                    self.cache.discard(extent, |sector| self.geometry.locate(sector).into());
                    self.plan_with_other_dirty();
                    self.enqueue(command, extent);
                    self.plan_with_youngest();
                    // What it made stale may have been all that a large write was waiting for.
                    self.admit_writes();
                } else if self.cache.enabled() {
                    self.blocked.push_back(Blocked { since_ns: self.now_ns, command, extent });
                    self.admit_writes();
                    if self.blocked.len() == 1 {
                        self.plan_with_other_dirty();
                    }
                } else {
                    self.enqueue(command, extent);
                    self.plan_with_youngest();
                }
            }
        }
        if matches!(command.kind, Kind::Read | Kind::Write) {
            self.after_write = command.kind == Kind::Write;
        }
    }

    /// Whether dirty sectors are on their way to the medium.
    fn is_destaging(&self) -> bool {
        matches!(self.current, Some((_, Work::Destage(_))))
    }

    fn accept_read(&mut self, command: Command, extent: Extent) {
        let waiting = self.queue.len();
        self.answer_or_enqueue(command, extent);
        if self.queue.len() > waiting {
            self.plan_with_youngest();
        }
    }

    fn answer_or_enqueue(&mut self, command: Command, extent: Extent) {
        let range = (extent.start, extent.end());
        if self.cache.covers(range.0, range.1) {
            return self.deliver(&command, command.length_bytes);
        }
        // Where others wait, or the head is busy reading on, what it comes to next is for the drive to choose.
        let streams = matches!(self.current, Some((_, Work::Stream)));
        let has_rivals = streams || !self.queue.is_empty() || !self.blocked.is_empty();
        if has_rivals && self.reads.run_on(self.now_ns).is_some_and(|run| run.is_followed_by(range)) {
            return self.enqueue(command, extent);
        }
        match self.look_up(range) {
            Lookup::Hit => {
                // It may read on for longer now.
                self.planned = None;
                self.deliver(&command, command.length_bytes);
            }
            Lookup::Coming(at_ns) => self.stream_until(at_ns, &command),
            Lookup::Part(cached_end) => {
                self.enqueue(command, extent);
                let (ready_ns, target) = (self.hit_ready_ns(), self.geometry.locate(cached_end).into());
                if let Some(waiting) = self.queue.back_mut() {
                    *waiting = waiting.rest(cached_end, ready_ns, target);
                }
            }
            Lookup::Miss => self.enqueue(command, extent),
        }
    }

    pub(super) fn look_up(&mut self, range: (u64, u64)) -> Lookup {
        let ready_ns = self.now_ns + self.overheads.miss_ns(Kind::Read, self.after_write);
        let rotation_ns =
            |sector| ready_ns - self.now_ns + self.arm.rotation_ns(ready_ns, self.geometry.locate(sector).angle);
        let ahead = Ahead::new(&self.spec, self.size_bytes, &self.geometry);
        self.reads.look_up(self.now_ns, range, &ahead, rotation_ns)
    }

    /// When the transfer of a read from the cache can begin that comes now.
    pub(super) fn hit_ready_ns(&self) -> u64 {
        self.now_ns + self.overheads.hit_ns(Kind::Read, self.after_write)
    }

    /// The head reads on to the end of a read.
    pub(super) fn stream_until(&mut self, at_ns: u64, command: &Command) {
        self.planned = None;
        self.current = Some((at_ns, Work::Stream));
        self.deliver_read(command, self.hit_ready_ns(), at_ns, self.spec.sector_bytes);
    }

    fn enqueue(&mut self, command: Command, extent: Extent) {
        let target = self.geometry.locate(extent.start).into();
        let ready_ns = self.now_ns + self.overheads.miss_ns(command.kind, self.after_write);
        self.queue.push_back(Waiting { command, since_ns: self.now_ns, ready_ns, extent, target, cached_ns: None });
    }

    pub(super) fn admit_writes(&mut self) {
        let waited = self.blocked.len();
        while let Some(Blocked { command, extent, .. }) = self.blocked.front().copied() {
            if !self.cache.has_room(extent.sectors) || !self.has_write_segment(&extent) {
                break;
            }
            self.blocked.pop_front();
            self.cache.insert(extent, |sector| self.geometry.locate(sector).into());
            self.deliver(&command, command.length_bytes);
        }
        if self.blocked.len() < waited {
            self.plan_with_other_dirty();
        }
    }

    /// True if a write continues dirty sectors or finds a segment free of them.
    fn has_write_segment(&self, extent: &Extent) -> bool {
        let Some(segments) = self.spec.write_segments else { return true };
        let writing = match &self.current {
            Some((_, Work::Destage(extent))) => Some(extent),
            _ => None,
        };
        self.cache.len() + usize::from(writing.is_some()) < segments
            || writing.is_some_and(|writing| writing.end() == extent.start)
            || self.cache.ends_at(extent.start)
    }
}
