//! An array of drives: striped, mirrored, both, or striped with rotating parity, with or without a battery-backed
//! write-back cache.
//!
//! A command is split into one part for each set it touches. A read goes to the mirror whose last command it continues,
//! unless that one is far behind; else to the one with the fewest commands outstanding, and among equals to the one
//! whose last command ended nearest. A write goes to all mirrors and is done when the last of them is. FLUSH goes to
//! every member. With a cache, writes complete into it while it has room, and it is written out in order of address,
//! forced through the members' own caches (FUA): nothing acknowledged is ever lost, and FLUSH has nothing to do. Where
//! members share a bus, it carries one transfer at a time, in the order in which they ask for it: a write when it is
//! sent, a read when its member has it.
//!
//! With parity (levels 5 and 6, `raid/parity.rs`) a small write takes four or six commands to members, or fewer in an
//! array of few; a write of whole rows takes one to each and reads nothing. A cache is written out by rows: whole rows
//! where it has them, else all that is dirty in one. A discard reaches the rows that it covers as a whole.
//!
//! Cannot: a failed member, rebuilding, and so the write hole (parity that a power cut left behind its data does no
//! harm while all members are there), write intent logs, read-ahead and read caching of the controller (what a write
//! must read comes from the members), waiting for a row to fill before it is written out, a limit of its processor,
//! what commands and arbitration take of a shared bus beside the data.

use std::collections::VecDeque;
use std::ops::Range;

use serde::Deserialize;

use crate::contract::{Agenda, Command, Completion, DeviceModel, FastCache, Kind, WriteCache, earlier};
use crate::info::{above_zero, fields, within};
use crate::write_cache::{DirtyExtents, Extent};

use self::members::{Layout, Members};
use self::parity::{Parity, Rows, Step};

mod members;
mod parity;

/// The cache keeps data in pieces of this size.
const CACHE_SECTOR_BYTES: u64 = 512;

/// Of whole rows an array with parity writes out so much at once, or one row where that is larger.
const DESTAGE_SECTORS: u64 = (1 << 20) / CACHE_SECTOR_BYTES;

/// What members work on together.
#[derive(Debug, Clone, Copy)]
enum Task {
    /// A command of the host.
    Host(u64),
    /// So many sectors of the cache on their way to the members.
    Destage(u64),
    /// Part of another task, in an array with parity.
    Step(Step),
}

impl From<Step> for Task {
    fn from(step: Step) -> Self {
        Self::Step(step)
    }
}

pub(crate) struct Raid {
    spec: RaidSpec,
    size_bytes: u64,
    now_ns: u64,
    members: Members<Task>,
    /// What an array with parity works on.
    parity: Option<Parity<Task>>,
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
            parity: spec.rows().map(Parity::new),
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
            let mut index = 0;
            while let Some((task, at_ns)) = ended.get(index).copied() {
                self.end(task, at_ns, &mut ended);
                index += 1;
            }
            ended.clear();
            self.ended = ended;
            self.admit_writes();
            self.destage();
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

    /// A task has ended; what ends with it is appended.
    fn end(&mut self, task: Task, at_ns: u64, ended: &mut Vec<(Task, u64)>) {
        match task {
            Task::Host(id) => {
                self.host_tasks -= 1;
                self.done.push(at_ns, id);
            }
            Task::Destage(sectors) => {
                self.destaging -= 1;
                self.cache.written(sectors);
            }
            Task::Step(step) => {
                if let Some(parity) = &mut self.parity {
                    parity.go_on(self.now_ns, &mut self.members, (step, at_ns), ended);
                }
            }
        }
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
                self.send(&command, Task::Host(command.id));
            }
        }
    }

    /// Has the members do a command.
    fn send(&mut self, command: &Command, task: Task) {
        match &mut self.parity {
            Some(parity) => parity.send(self.now_ns, &mut self.members, command, task),
            None => self.members.send(self.now_ns, command, task),
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
            self.destaging += 1;
            match self.parity.as_ref().map(|parity| parity.rows.row_bytes() / CACHE_SECTOR_BYTES) {
                Some(row_sectors) => self.destage_rows(extent, row_sectors),
                None => self.destage_extent(extent),
            }
        }
    }

    fn destage_extent(&mut self, extent: Extent) {
        self.destage_from = extent.end();
        let command = Command {
            id: 0,
            kind: Kind::Write,
            offset_bytes: extent.start * CACHE_SECTOR_BYTES,
            length_bytes: extent.sectors * CACHE_SECTOR_BYTES,
            fua: true,
        };
        self.send(&command.within(self.size_bytes), Task::Destage(extent.sectors));
    }

    /// Writes whole rows, if `first` and what goes on from it begins with one, else all that is dirty from there to the
    /// end of the row. What goes on into a row that is not whole stays in the cache, where it may become so.
    fn destage_rows(&mut self, first: Extent, row_sectors: u64) {
        let (mut run, row) = (first, first.start / row_sectors);
        let row_end = (row + 1) * row_sectors;
        while run.end() < row_end.max(run.start + DESTAGE_SECTORS)
            && let Some(next) = self.cache.starting_at(run.end()).and_then(|slot| self.cache.take(slot))
        {
            run.sectors += next.sectors;
        }
        let whole_end = run.end() / row_sectors * row_sectors;
        if run.start.is_multiple_of(row_sectors) && whole_end > run.start {
            let whole = self.cut(run, whole_end);
            return self.destage_extent(whole);
        }
        let (mut new, mut sectors, mut next) = (Vec::new(), 0, Some(run));
        while let Some(extent) = next {
            let extent = self.cut(extent, row_end);
            sectors += extent.sectors;
            new.push(self.in_row(extent, row * row_sectors));
            let slot = self.cache.first_from(extent.end()).filter(|slot| {
                extent.end() < row_end && self.cache.at(*slot).is_some_and(|(extent, ())| extent.start < row_end)
            });
            next = slot.and_then(|slot| self.cache.take(slot));
        }
        self.destage_from = row_end;
        if let Some(parity) = &mut self.parity {
            parity.write_row(self.now_ns, &mut self.members, (row, new), true, Task::Destage(sectors));
        }
    }

    /// What of an extent taken out of the cache lies before a sector; the rest goes back.
    fn cut(&mut self, extent: Extent, end: u64) -> Extent {
        let rest = Extent { start: end, sectors: extent.end().saturating_sub(end), ..extent };
        if rest.sectors > 0 {
            self.cache.written(rest.sectors);
            self.cache.insert(rest, |_| ());
        }
        Extent { sectors: extent.sectors - rest.sectors, ..extent }
    }

    /// The bytes of an extent in its row.
    fn in_row(&self, extent: Extent, row_start: u64) -> Range<u64> {
        let in_row = |sector: u64| (sector * CACHE_SECTOR_BYTES).min(self.size_bytes) - row_start * CACHE_SECTOR_BYTES;
        in_row(extent.start)..in_row(extent.end())
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

/// What is meant where a file or name gives no stripe.
const STRIPE_BYTES: u64 = 64 << 10;

/// An array. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RaidSpec {
    /// 0: striped; 1: each member has everything; 10: striped over pairs of mirrors; 5 and 6: striped with one or two
    /// members' worth of rotating parity.
    pub level: u32,
    /// The drives: names, or paths of drive files relative to this one.
    pub members: Vec<String>,
    /// What lies on one member before the next begins, bytes; without meaning at level 1.
    #[serde(default = "default_stripe_bytes")]
    pub stripe_bytes: u64,
    /// Rate of the one bus that all members share, MB/s; none: each has its own.
    pub bus_mb_s: Option<f64>,
    /// The controller's write-back cache, kept by a battery, bytes; 0: none.
    #[serde(default)]
    pub write_cache_bytes: u64,
    /// How many pieces of the cache are written to the members at once.
    #[serde(default = "default_destage_depth")]
    pub destage_depth: usize,
    /// What a command costs that the cache answers, us.
    #[serde(default = "default_cache_us")]
    pub cache_us: f64,
    /// Rate at which the cache takes and gives data, MB/s.
    #[serde(default = "default_cache_mb_s")]
    pub cache_mb_s: f64,
}

fn default_stripe_bytes() -> u64 {
    STRIPE_BYTES
}

fn default_destage_depth() -> usize {
    32
}

fn default_cache_us() -> f64 {
    50.0
}

fn default_cache_mb_s() -> f64 {
    1500.0
}

impl RaidSpec {
    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        let members = self.members.len();
        match self.level {
            0 | 1 if members < 2 => return Err(format!("members are {members}; an array needs at least 2")),
            10 if members < 4 || members % 2 == 1 => {
                return Err(format!("members are {members}; level 10 needs an even number, at least 4"));
            }
            5 | 6 if members < self.level as usize - 2 => {
                return Err(format!("members are {members}; level {} needs at least {}", self.level, self.level - 2));
            }
            0 | 1 | 5 | 6 | 10 => {}
            level => return Err(format!("level = {level} is not 0, 1, 5, 6 or 10")),
        }
        if members > 64 {
            return Err(format!("members are {members}; at most 64 are possible"));
        }
        if self.stripe_bytes < 4096 || !self.stripe_bytes.is_power_of_two() {
            return Err(format!("stripe_bytes = {} is not a power of two of at least 4096", self.stripe_bytes));
        }
        above_zero(&fields! { self; destage_depth })?;
        within(&(0.0..=1e9), &fields! { self; cache_us })?;
        within(&(0.001..=1e9), &fields! { self; cache_mb_s })?;
        self.bus_mb_s.map_or(Ok(()), |mb_s| within(&(0.001..=1e9), &[("bus_mb_s", mb_s)]))
    }

    fn layout(&self) -> Layout {
        let members = self.members.len();
        let (sets, mirrors) = match self.level {
            0 => (members, 1),
            1 => (1, members),
            10 => (members / 2, 2),
            _ => (members - self.parities(), 1),
        };
        Layout { sets: sets as u64, mirrors, stripe_bytes: self.stripe_bytes }
    }

    /// Members' worth of parity.
    fn parities(&self) -> usize {
        match self.level {
            5 => 1,
            6 => 2,
            _ => 0,
        }
    }

    /// Where an array with parity has what.
    fn rows(&self) -> Option<Rows> {
        let (members, parities) = (self.members.len(), self.parities());
        (parities > 0).then_some(Rows { members, parities, stripe_bytes: self.stripe_bytes })
    }

    /// What an array of members of `member_bytes` holds.
    pub(crate) fn capacity_bytes(&self, member_bytes: u64) -> u64 {
        let layout = self.layout();
        if layout.sets == 1 {
            return member_bytes;
        }
        (member_bytes - member_bytes % layout.stripe_bytes).saturating_mul(layout.sets)
    }

    /// What each member must hold for an array of `size_bytes`.
    pub(crate) fn member_bytes(&self, size_bytes: u64) -> u64 {
        let layout = self.layout();
        if layout.sets == 1 { size_bytes } else { size_bytes.div_ceil(layout.row_bytes()) * layout.stripe_bytes }
    }
}
