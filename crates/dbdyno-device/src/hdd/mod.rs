//! A hard disk: zoned recording, seek and rotation, a queue, a write cache and read-ahead.
//!
//! One arm does one thing at a time. Whenever it is free the drive chooses the next move by shortest positioning time
//! among the oldest `queue_depth` host commands and the oldest `destage_window` dirty extents; host commands have a
//! head start. Writes complete into the cache while it has room. Reads that continue where the head is reading, whether
//! they arrive in time or wait in the queue, and dirty extents that continue where it is writing, stream at media rate;
//! the others get their turn by their age. FLUSH waits for every command before it and for the cache to be written out,
//! and holds up all commands behind it, as ATA's does. Where the drive file has a watermark, transfers overlap with the
//! medium, as on a bus that is slower than it.
//!
//! Of ten measured disks the distribution of response times comes out as near as with the simulator for which their
//! parameters were extracted (`make bench-models`).
//!
//! Cannot: defects and remapping, thermal recalibration, idle states, several actuators, shingled recording.

use std::collections::VecDeque;

use dbdyno_common::random::Random;

use self::arm::{Arm, Candidates, Moment, Target};
use self::geometry::{Geometry, SectorPosition};
use self::read_cache::{Ahead, Lookup, ReadCache};
use self::spec::{Overheads, ms};
use crate::contract::{Agenda, Command, Completion, DeviceModel, Kind, WriteCache, earlier};
use crate::write_cache::{DirtyExtents, Extent};

mod arm;
mod choice;
mod geometry;
mod read_cache;
mod seek;
mod spec;

pub(crate) use self::spec::HddSpec;

/// A host command that needs the arm.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    command: Command,
    since_ns: u64,
    /// When the arm can begin to move for it.
    ready_ns: u64,
    /// What the arm must go to; of a read of which the first part is in the cache, the rest.
    extent: Extent,
    target: Target,
    /// When the transfer of the part in the cache can begin.
    cached_ns: Option<u64>,
}

/// What the drive may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Move to the command at this place in the queue.
    Host(usize),
    /// Read on to the end of the command at this place in the queue.
    Coming(usize),
    /// The dirty extent in this slot of the cache.
    Destage(u32),
}

/// What the arm is doing.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// Nothing yet: choosing what to do next takes `choose_ms`, and what arrives meanwhile can be chosen.
    Choose,
    Host(Waiting, Passage),
    Destage(Extent),
    /// Reading on; the commands concerned already have their completion times.
    Stream,
    Flush,
}

/// How sectors pass under the head.
#[derive(Debug, Clone, Copy)]
struct Passage {
    end_ns: u64,
    /// As much of a read as the watermark asks for has been read.
    watermark_ns: u64,
    /// The last byte of a read to reach the cache is followed, in the order of addresses, by this many bytes with its
    /// own sector's.
    behind_bytes: u64,
    /// The first sector that was read.
    from: u64,
    /// Rate at which sectors pass there.
    sectors_per_ns: f64,
}

/// A move from its beginning to its end.
#[derive(Debug, Clone, Copy)]
struct Way {
    start_ns: u64,
    passage: Passage,
    /// Where the last sector lies.
    last: SectorPosition,
}

/// How the candidates for the next move stand to each other at one moment.
#[derive(Debug, Clone, Copy)]
struct Standing {
    at_ns: u64,
    moment: Moment,
    /// A write has waited too long for room: no host command is chosen.
    starved_write: bool,
    /// The host command of the lowest score, by its place in the queue. Minus infinity says that it has waited too
    /// long.
    host: Option<(usize, f64)>,
    /// The dirty extent that goes before it, by its slot, and when it is reached.
    dirty: Option<(u32, f64)>,
}

/// The next move, unless something else comes.
#[derive(Debug, Clone, Copy)]
struct Plan {
    standing: Standing,
    choice: Choice,
    way: Way,
}

/// A write that the cache has no room for.
#[derive(Debug, Clone, Copy)]
struct Blocked {
    since_ns: u64,
    command: Command,
    extent: Extent,
}

#[derive(Debug, Clone, Copy)]
struct Flush {
    id: u64,
    /// True once there was something to write, be it what was on its way to the medium when FLUSH came.
    wrote: bool,
}

pub(crate) struct Hdd {
    spec: HddSpec,
    size_bytes: u64,
    now_ns: u64,
    geometry: Geometry,
    arm: Arm,
    overheads: Overheads,
    /// The last read or write to arrive was a write.
    after_write: bool,
    current: Option<(u64, Work)>,
    queue: VecDeque<Waiting>,
    cache: DirtyExtents<Candidates>,
    /// Writes the cache has no room for.
    blocked: VecDeque<Blocked>,
    flush: Option<Flush>,
    /// While the drive chooses.
    planned: Option<Plan>,
    /// Commands behind a flush.
    flush_queue: VecDeque<Command>,
    reads: ReadCache,
    /// Since when the head has read on from one place.
    turn_from_ns: u64,
    interface_free_ns: u64,
    done: Agenda<u64>,
}

impl Hdd {
    pub(crate) fn new(spec: HddSpec, size_bytes: u64, seed: u64) -> Self {
        let geometry = Geometry::new(&spec, size_bytes);
        let arm = Arm::new(&spec, &geometry, Random::new(seed).unit());
        let cache_bytes = spec.write_cache_bytes;
        let last_cylinder = geometry.locate(size_bytes.div_ceil(spec.sector_bytes).max(1) - 1).cylinder;
        let candidates = Candidates::new(&arm, last_cylinder as u32);
        let cache = DirtyExtents::new(cache_bytes, spec.sector_bytes, candidates, spec.destage_window);
        Self {
            size_bytes,
            now_ns: 0,
            arm,
            geometry,
            overheads: Overheads::new(spec.overheads.as_ref(), spec.overhead_ms),
            after_write: false,
            current: None,
            queue: VecDeque::new(),
            cache,
            blocked: VecDeque::new(),
            flush: None,
            planned: None,
            flush_queue: VecDeque::new(),
            reads: ReadCache::new(&spec),
            turn_from_ns: 0,
            interface_free_ns: 0,
            done: Agenda::new(),
            spec,
        }
    }

    /// Lets everything happen that happens up to `to_ns`.
    fn advance(&mut self, to_ns: u64) {
        while let Some((end_ns, work)) = self.current.take_if(|(end_ns, _)| *end_ns <= to_ns) {
            self.now_ns = self.now_ns.max(end_ns);
            self.finish(work);
            self.start_next();
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

    /// Lets the drive choose its next move if the arm is free and there is anything to do.
    fn start_next(&mut self) {
        let idle = self.queue.is_empty() && self.cache.is_empty() && self.flush.is_none();
        if self.current.is_none() && !idle {
            self.current = Some((self.now_ns + ms(self.spec.choose_ms), Work::Choose));
        }
        self.plan();
    }

    fn start_chosen(&mut self) {
        if let Some(plan) = self.planned.take() {
            return self.go_as_planned(&plan);
        }
        let run = self.answer_what_was_read();
        match self.choose(run) {
            Some(Choice::Coming(index)) => self.stream(index),
            Some(Choice::Host(index)) => {
                if let Some(waiting) = self.queue.remove(index) {
                    self.move_to_host(waiting);
                }
            }
            Some(Choice::Destage(slot)) => {
                if let Some(way) = self.way_to_dirty(self.now_ns, slot) {
                    self.move_to_dirty(slot, &way);
                }
            }
            None => {
                if let Some(flush) = self.flush {
                    let more_ns = if flush.wrote { ms(self.spec.flush_ms) } else { 0 };
                    self.current = Some((self.now_ns + more_ns, Work::Flush));
                }
            }
        }
    }

    /// Goes on writing where the head is, if what follows is dirty and no command waits: sequential writes stream.
    fn write_on(&mut self, sector: u64) {
        if !self.queue.is_empty() {
            return;
        }
        if let Some(extent) = self.cache.starting_at(sector).and_then(|slot| self.cache.take(slot)) {
            let pass_ns = self.geometry.read_on_ns(extent.start, extent.sectors) as u64;
            self.arm.go_to(&self.geometry.locate(extent.end() - 1));
            self.current = Some((self.now_ns + pass_ns, Work::Destage(extent)));
        }
    }

    fn finish(&mut self, work: Work) {
        match work {
            Work::Choose => self.start_chosen(),
            Work::Host(waiting, passage) => {
                self.finish_host(&waiting, passage);
                self.read_on();
            }
            Work::Destage(extent) => {
                // The head may have read what lay there before while this waited.
                self.reads.invalidate(self.now_ns, extent.start, extent.end());
                if self.spec.read_written {
                    self.reads.keep_written((extent.start, extent.end()));
                }
                self.cache.written(extent.sectors);
                self.admit_writes();
                self.write_on(extent.end());
            }
            Work::Stream => self.read_on(),
            Work::Flush => {
                if let Some(flush) = self.flush.take() {
                    // Completions before it may still be on their way over the interface.
                    self.done.push(self.now_ns.max(self.interface_free_ns), flush.id);
                }
                while self.flush.is_none() {
                    let Some(command) = self.flush_queue.pop_front() else { break };
                    self.accept(command);
                }
            }
        }
    }

    fn extent(&self, command: &Command) -> Extent {
        Extent::touched(command.offset_bytes, command.length_bytes, self.spec.sector_bytes)
    }
}

impl DeviceModel for Hdd {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.advance(now_ns);
        let command = command.within(self.size_bytes);
        if self.flush.is_some() {
            self.flush_queue.push_back(command);
        } else {
            self.accept(command);
        }
        self.start_next();
    }

    fn next_due(&self) -> Option<u64> {
        earlier(self.done.next_ns(), self.arm_due_ns())
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.advance(now_ns);
        self.done.finish(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.done.finish(u64::MAX, finished);
    }

    fn write_cache(&self) -> WriteCache {
        if self.cache.enabled() { WriteCache::Volatile } else { WriteCache::None }
    }

    fn ignores_flush(&self) -> bool {
        self.spec.flush_ignored
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("queue_depth", self.queue.len() as f64),
            ("destage_depth", self.cache.len() as f64),
            ("write_cache_dirty_bytes", (self.cache.used_sectors() * self.spec.sector_bytes) as f64),
        ]
    }
}

impl Hdd {
    fn accept(&mut self, command: Command) {
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

    fn look_up(&mut self, range: (u64, u64)) -> Lookup {
        let ready_ns = self.now_ns + self.overheads.miss_ns(Kind::Read, self.after_write);
        let rotation_ns =
            |sector| ready_ns - self.now_ns + self.arm.rotation_ns(ready_ns, self.geometry.locate(sector).angle);
        let ahead = Ahead::new(&self.spec, self.size_bytes, &self.geometry);
        self.reads.look_up(self.now_ns, range, &ahead, rotation_ns)
    }

    /// When the transfer of a read from the cache can begin that comes now.
    fn hit_ready_ns(&self) -> u64 {
        self.now_ns + self.overheads.hit_ns(Kind::Read, self.after_write)
    }

    /// The head reads on to the end of a read.
    fn stream_until(&mut self, at_ns: u64, command: &Command) {
        self.planned = None;
        self.current = Some((at_ns, Work::Stream));
        self.deliver_read(command, self.hit_ready_ns(), at_ns, self.spec.sector_bytes);
    }

    fn enqueue(&mut self, command: Command, extent: Extent) {
        let target = self.geometry.locate(extent.start).into();
        let ready_ns = self.now_ns + self.overheads.miss_ns(command.kind, self.after_write);
        self.queue.push_back(Waiting { command, since_ns: self.now_ns, ready_ns, extent, target, cached_ns: None });
    }

    fn admit_writes(&mut self) {
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
