//! An array of drives: striped, mirrored, or both, with or without a battery-backed write-back cache.
//!
//! A command is split into one part for each set it touches. A read goes to the mirror whose last command it continues,
//! unless that one is far behind; else to the one with the fewest commands outstanding, and among equals to the one whose
//! last command ended nearest. A write goes to all mirrors and is done when
//! the last of them is. FLUSH goes to every member. With a cache, writes complete into it while it has room, and it is
//! written out in order of address, forced through the members' own caches (FUA): nothing acknowledged is ever lost, and
//! FLUSH has nothing to do. Where members share a bus, it carries one transfer at a time, in the order in which they ask
//! for it: a write when it is sent, a read when its member has it.
//!
//! Cannot: parity (RAID 5, 6), rebuilding, a failed member, write intent logs, read-ahead and read caching of the
//! controller, a limit of its processor, what commands and arbitration take of a shared bus beside the data.

mod members;
mod spec;

use std::collections::VecDeque;

use self::members::Members;
pub(crate) use self::spec::RaidSpec;
use crate::contract::{Command, Completion, DeviceModel, FastCache, Kind, WriteCache};
use crate::dirty::{DirtyExtents, Extent};
use crate::due::{Agenda, earlier};

/// The cache keeps data in pieces of this size.
const CACHE_SECTOR_BYTES: u64 = 512;

/// What members work on together.
#[derive(Debug, Clone, Copy)]
enum Task {
    /// A command of the host.
    Host(u64),
    /// A piece of the cache on its way to the members.
    Destage(Extent),
}

pub(crate) struct Raid {
    spec: RaidSpec,
    size_bytes: u64,
    now_ns: u64,
    members: Members<Task>,
    /// Commands of the host that members work on.
    host_tasks: usize,
    cache: DirtyExtents<()>,
    /// Pieces being written to the members, and where the next is looked for.
    destaging: usize,
    destage_from: u64,
    /// Writes the cache has no room for.
    blocked: VecDeque<Command>,
    cache_free_ns: u64,
    done: Agenda<u64>,
    ended: Vec<(Task, u64)>,
}

impl Raid {
    pub(crate) fn new(spec: RaidSpec, members: Vec<Box<dyn DeviceModel + Send>>, size_bytes: u64) -> Self {
        Self {
            size_bytes,
            now_ns: 0,
            members: Members::new(members, spec.layout(), spec.bus_mb_s),
            host_tasks: 0,
            cache: DirtyExtents::new(spec.write_cache_bytes, CACHE_SECTOR_BYTES, (), 0),
            destaging: 0,
            destage_from: 0,
            blocked: VecDeque::new(),
            cache_free_ns: 0,
            done: Agenda::new(),
            ended: Vec::new(),
            spec,
        }
    }

    /// Lets everything happen that happens up to `to_ns`.
    fn advance(&mut self, to_ns: u64) {
        while let Some(due_ns) = self.members.next_event_ns().filter(|due_ns| *due_ns <= to_ns) {
            self.now_ns = self.now_ns.max(due_ns);
            let mut ended = std::mem::take(&mut self.ended);
            self.members.poll(self.now_ns, &mut ended);
            for (task, at_ns) in ended.drain(..) {
                match task {
                    Task::Host(id) => {
                        self.host_tasks -= 1;
                        self.done.push(at_ns, id);
                    }
                    Task::Destage(extent) => {
                        self.destaging -= 1;
                        self.cache.written(extent.sectors);
                    }
                }
            }
            self.ended = ended;
            self.admit_writes();
            self.destage();
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

    fn accept(&mut self, command: Command) {
        let cached = self.cache.enabled();
        let extent = Extent::touched(command.offset_bytes, command.length_bytes, CACHE_SECTOR_BYTES);
        match command.kind {
            Kind::Write if cached => {
                self.blocked.push_back(command);
                self.admit_writes();
                self.destage();
            }
            Kind::Read if cached && self.cache.covers(extent.start, extent.end()) => {
                self.deliver(&command, command.length_bytes);
            }
            Kind::Flush if cached => self.deliver(&command, 0),
            _ => {
                self.host_tasks += 1;
                self.members.send(self.now_ns, &command, Task::Host(command.id));
            }
        }
    }

    fn admit_writes(&mut self) {
        while let Some(command) = self.blocked.front().copied() {
            let extent = Extent::touched(command.offset_bytes, command.length_bytes, CACHE_SECTOR_BYTES);
            if !self.cache.has_room(extent.sectors) {
                return;
            }
            self.blocked.pop_front();
            self.cache.insert(extent, |_| ());
            self.deliver(&command, command.length_bytes);
        }
    }

    /// Writes pieces of the cache to the members in order of address, from the end back to the beginning.
    fn destage(&mut self) {
        while self.destaging < self.spec.destage_depth {
            let next = self.cache.first_from(self.destage_from).or_else(|| self.cache.first_from(0));
            let Some(extent) = next.and_then(|slot| self.cache.take(slot)) else { return };
            self.destage_from = extent.end();
            self.destaging += 1;
            let command = Command {
                id: 0,
                kind: Kind::Write,
                offset_bytes: extent.start * CACHE_SECTOR_BYTES,
                length_bytes: extent.sectors * CACHE_SECTOR_BYTES,
                fua: true,
            };
            self.members.send(self.now_ns, &command.within(self.size_bytes), Task::Destage(extent));
        }
    }

    /// Completes a command from the cache.
    fn deliver(&mut self, command: &Command, bytes: u64) {
        let ready_ns = self.now_ns + (self.spec.cache_us * 1e3) as u64;
        self.cache_free_ns = ready_ns.max(self.cache_free_ns) + (bytes as f64 * 1e3 / self.spec.cache_mb_s) as u64;
        self.done.push(self.cache_free_ns, command.id);
    }
}

impl DeviceModel for Raid {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.advance(now_ns);
        self.accept(command.within(self.size_bytes));
    }

    fn next_due(&self) -> Option<u64> {
        // Writing the cache out needs no attention while no command waits.
        let members_matter = self.host_tasks > 0 || !self.blocked.is_empty();
        let members_ns = if members_matter { self.members.next_end_ns() } else { None };
        earlier(self.done.next_ns(), members_ns)
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.advance(now_ns);
        self.done.finish(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.done.finish(u64::MAX, finished);
    }

    fn write_cache(&self) -> WriteCache {
        if self.cache.enabled() { WriteCache::Protected } else { self.members.write_cache() }
    }

    fn ignores_flush(&self) -> bool {
        !self.cache.enabled() && self.members.ignore_flush()
    }

    fn fast_cache(&self) -> Option<FastCache> {
        let (least_bytes, ran_out_ns) = self.members.fast_cache()?;
        Some(FastCache { bytes: self.spec.capacity_bytes(least_bytes), ran_out_ns })
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut gauges = vec![("member_commands", self.members.outstanding() as f64)];
        // What its drives were sent and wrote, mirrors each by itself: their ratio is what wears them.
        for name in ["host_written_bytes", "flash_written_bytes"] {
            gauges.extend(self.members.gauge_sum(name).map(|bytes| (name, bytes)));
        }
        if self.cache.enabled() {
            gauges.push(("write_cache_dirty_bytes", (self.cache.used_sectors() * CACHE_SECTOR_BYTES) as f64));
            gauges.push(("destage_depth", (self.cache.len() + self.destaging) as f64));
        }
        gauges
    }
}
