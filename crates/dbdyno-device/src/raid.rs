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

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use serde::Deserialize;
use slab::Slab;

use crate::contract::{Agenda, Command, Completion, DeviceModel, FastCache, Kind, WriteCache, earlier};
use crate::dirty::{DirtyExtents, Extent};
use crate::info::{above_zero, fields, within};

use self::parity::{Parity, Rows, Step};

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

pub(crate) struct Raid {
    spec: RaidSpec,
    size_bytes: u64,
    now_ns: u64,
    members: Members<Task>,
    /// What an array with parity works on.
    parity: Option<Parity>,
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

/// Where a byte of the array lies: stripes go over the *sets* in turn; the members of a set are mirrors. With parity it
/// says how much of a row is data; `Rows` says where.
#[derive(Debug, Clone, Copy)]
struct Layout {
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
    fn row_bytes(&self) -> u64 {
        self.stripe_bytes * self.sets
    }

    /// The parts of a range of at least one byte.
    fn parts(&self, offset_bytes: u64, length_bytes: u64) -> impl Iterator<Item = Part> + use<> {
        let layout = *self;
        let end_bytes = offset_bytes + length_bytes;
        // From the set that has the first byte; a short range does not reach them all.
        let first = offset_bytes / self.stripe_bytes % self.sets;
        (first..first + self.sets).map(move |set| set % layout.sets).filter_map(move |set| {
            let start = layout.held_before(set, offset_bytes);
            let length_bytes = layout.held_before(set, end_bytes) - start;
            (length_bytes > 0).then_some(Part { set, offset_bytes: start, length_bytes })
        })
    }

    /// How much of the array's first `end_bytes` a set holds.
    fn held_before(&self, set: u64, end_bytes: u64) -> u64 {
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

struct Members<Task> {
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
    fn new(models: Vec<Box<dyn DeviceModel + Send>>, layout: Layout, bus_mb_s: Option<f64>) -> Self {
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
    fn send(&mut self, now_ns: u64, command: &Command, task: Task) {
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
    fn send_each(&mut self, now_ns: u64, each: impl Iterator<Item = (usize, Command)>, task: Task) {
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

    fn bus_ns(&self) -> Option<u64> {
        self.bus.as_ref()?.next_event_ns()
    }

    /// When a member is to be polled next, or the bus.
    fn next_event_ns(&self) -> Option<u64> {
        self.drives.iter().filter_map(|member| member.due_ns).chain(self.bus_ns()).min()
    }

    /// The earliest time at which a task may end: not before the last of the members it waits for may answer.
    fn next_end_ns(&self) -> Option<u64> {
        let answered_ns = self.waiting_for.earliest(|member| self.drives[member].due_ns);
        answered_ns.into_iter().chain(self.bus_ns()).min()
    }

    /// Appends the tasks that have ended by `now_ns`, and when, in the order of the members' last parts.
    fn poll(&mut self, now_ns: u64, ended: &mut Vec<(Task, u64)>) {
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
    fn outstanding(&self) -> usize {
        self.drives.iter().map(|member| member.outstanding).sum()
    }

    /// The sum of a gauge over all members; `None` where one of them has none of that name.
    fn gauge_sum(&self, name: &str) -> Option<f64> {
        let of = |member: &Member| member.model.gauges().into_iter().find(|(gauge, _)| *gauge == name);
        self.drives.iter().map(|member| of(member).map(|(_, value)| value)).sum()
    }

    /// The smallest fast cache of a member, and when the first of them ran out.
    fn fast_cache(&self) -> Option<(u64, Option<u64>)> {
        let caches = || self.drives.iter().filter_map(|member| member.model.fast_cache());
        Some((caches().map(|cache| cache.bytes).min()?, caches().filter_map(|cache| cache.ran_out_ns).min()))
    }

    /// Whether any of them ignores FLUSH.
    fn ignore_flush(&self) -> bool {
        self.drives.iter().any(|member| member.model.ignores_flush())
    }

    /// What a power cut takes: as much as of the least safe member.
    fn write_cache(&self) -> WriteCache {
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
