//! bfq: a queue for each process, served in turn for a budget of sectors, by weight (B-WF2Q+).
//!
//! Of the queues that have not had more than their share so far, the one that would finish its budget first is served
//! until the budget or `timeout_sync` is over, or it has nothing more. The drive is left idle up to `slice_idle_us` for
//! a process that asks in sequence, on a drive that gains by it. With `low_latency` a process that was idle weighs 30
//! times as much for some seconds.
//!
//! Cannot: groups, queues merged as their processes cooperate, others' requests injected into idling, bursts of new
//! processes, soft real time, how long a process weighs more by the drive's rate, fewer tags for writes meanwhile, waiting
//! for a second small request.

use super::contract::{Scheduler, SchedulerError, Settings, Tunable, Unit};
use super::process::{ASYNC_QUEUES, Nearness, ProcessQueue, by_process, find_own, place};
use crate::queue::{Bio, Class, Direction, Queue, Request, RequestId, Side};

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("fifo_expire_sync", 125, Unit::Milliseconds),
    Tunable::new("fifo_expire_async", 250, Unit::Milliseconds),
    Tunable::new("back_seek_max", 16_384, Unit::Kibibytes),
    Tunable::new("back_seek_penalty", 2, Unit::Count),
    Tunable::new("slice_idle", 8, Unit::Milliseconds),
    Tunable::new("slice_idle_us", 8000, Unit::Microseconds),
    Tunable::new("max_budget", 0, Unit::Count),
    Tunable::new("timeout_sync", 125, Unit::Milliseconds),
    Tunable::new("strict_guarantees", 0, Unit::Switch),
    Tunable::new("low_latency", 1, Unit::Switch),
];

/// Sectors of the largest budget, until the drive's rate is known.
const BUDGET_MOST: u64 = 16_384;
/// A drive with this many commands in flight counts as one that queues them.
const QUEUEING: usize = 4;
/// A process that did nothing for so long weighs more for a while.
const IDLE_NS: u64 = 2_000_000_000;
/// Why a queue's turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Empty,
    Budget,
    Time,
    Idled,
}

pub(super) struct Bfq {
    expire_ns: [u64; 2],
    nearness: Nearness,
    idle_ns: u64,
    max_budget: u64,
    timeout_ns: u64,
    strict: bool,
    low_latency: bool,
    served: Vec<Served>,
    /// Queues that have requests or are served.
    busy: Vec<u32>,
    active: Option<u32>,
    turn_began_ns: u64,
    idle_until_ns: Option<u64>,
    virtual_time: u64,
    /// Most sectors a second that a turn had.
    peak_sectors_per_s: u64,
    drive_queues: bool,
    length: usize,
}

impl Bfq {
    pub(super) fn new(overrides: &[(&str, u64)]) -> Result<Self, SchedulerError> {
        let settings = Settings::new("bfq", TUNABLES, overrides)?;
        // Two files of one value: the one that is written last counts.
        let idle = overrides.iter().rev().find_map(|(name, _)| name.starts_with("slice_idle").then_some(*name));
        let idle = idle.unwrap_or("slice_idle_us");
        Ok(Self {
            expire_ns: [settings.ns("fifo_expire_async"), settings.ns("fifo_expire_sync")],
            nearness: Nearness {
                back_most: settings.get("back_seek_max") * 2,
                penalty: settings.get("back_seek_penalty").max(1),
            },
            idle_ns: settings.ns(idle),
            max_budget: settings.get("max_budget"),
            timeout_ns: settings.ns("timeout_sync").max(1),
            strict: settings.get("strict_guarantees") == 1,
            low_latency: settings.get("low_latency") == 1,
            served: (0..ASYNC_QUEUES)
                .map(|level| Served::new(false, Class::BestEffort, level as u8, BUDGET_MOST))
                .collect(),
            busy: Vec::new(),
            active: None,
            turn_began_ns: 0,
            idle_until_ns: None,
            virtual_time: 0,
            peak_sectors_per_s: 0,
            drive_queues: false,
            length: 0,
        })
    }

    fn budget_most(&self) -> u64 {
        match (self.max_budget, self.peak_sectors_per_s) {
            (0, 0) => BUDGET_MOST,
            (0, peak) => (peak as u128 * u128::from(self.timeout_ns) / 1_000_000_000).max(64) as u64,
            (budget, _) => budget,
        }
    }

    /// Gives a queue that got its first request its place: not before the others, nor before its own last turn's end.
    fn activate(&mut self, queue: &Queue, at: u32, is_new: bool) {
        let now_ns = queue.now_ns;
        let served = &mut self.served[at as usize];
        let was_idle = is_new || now_ns > served.last_end_ns + IDLE_NS;
        if self.low_latency && served.sync && served.in_flight == 0 && was_idle {
            served.raise(now_ns, queue.rotational);
        }
        served.start = served.finish.max(self.virtual_time);
        served.finish = served.start + served.share(now_ns, served.budget);
        self.busy.push(at);
    }

    /// Ends the turn of the queue that is served.
    fn expire(&mut self, now_ns: u64, why: End) {
        self.idle_until_ns = None;
        let Some(at) = self.active.take() else { return };
        let most = self.budget_most();
        let took_ns = now_ns - self.turn_began_ns;
        let served = &mut self.served[at as usize];
        if why == End::Time {
            // Who is slow pays for the time.
            let by_time = u128::from(most) * u128::from(took_ns.min(self.timeout_ns)) / u128::from(self.timeout_ns);
            served.charged = served.charged.max(by_time as u64);
        }
        served.finish = served.start + served.share(now_ns, served.charged);
        let least = (most / 32).max(1);
        served.budget = match why {
            _ if !served.sync => most,
            End::Budget => served.budget.saturating_mul(4),
            End::Time => served.budget.saturating_mul(2),
            End::Idled => served.budget.saturating_sub(4 * least),
            End::Empty => served.budget,
        }
        .clamp(least, most);
        if !served.is_seeky() && took_ns >= self.timeout_ns / 8 && served.sync {
            let rate = (u128::from(served.charged) * 1_000_000_000 / u128::from(took_ns)) as u64;
            self.peak_sectors_per_s = self.peak_sectors_per_s.max(rate);
        }
        (served.charged, served.looked) = (0, false);
        served.start = served.finish;
        if served.backlog.is_empty() {
            self.busy.retain(|other| *other != at);
        } else {
            served.finish = served.start + served.share(now_ns, served.budget);
        }
    }

    /// The eligible queue of the highest class that would be done first; if none is, time goes on to the first that
    /// will be.
    fn next(&mut self, now_ns: u64) -> Option<u32> {
        let class = self.busy.iter().map(|at| self.served[*at as usize].class).min()?;
        let of_class = || self.busy.iter().copied().filter(|at| self.served[*at as usize].class == class);
        let earliest = of_class().map(|at| self.served[at as usize].start).min()?;
        self.virtual_time = self.virtual_time.max(earliest);
        let eligible = of_class().filter(|at| self.served[*at as usize].start <= self.virtual_time);
        let next = eligible.min_by_key(|at| self.served[*at as usize].finish);
        self.active = next;
        self.turn_began_ns = now_ns;
        next
    }

    /// The drive gains by waiting for the process's next request, or others would take what it is to have.
    fn should_idle(&self, queue: &Queue, at: u32) -> bool {
        let served = &self.served[at as usize];
        if !served.sync || served.class == Class::Idle || served.has_exited || self.idle_ns == 0 {
            return false;
        }
        let raised = self.busy.iter().filter(|at| self.served[**at as usize].is_raised(queue.now_ns)).count();
        let gains = (queue.rotational && !self.drive_queues)
            || ((queue.rotational || !self.drive_queues) && !served.is_seeky());
        self.strict || (gains && raised == 0) || (served.is_raised(queue.now_ns) && raised < self.busy.len())
    }

    fn select(&mut self, queue: &Queue) -> Option<u32> {
        let now_ns = queue.now_ns;
        if let Some(at) = self.active {
            let served = &self.served[at as usize];
            let next = served.backlog.next.map(|id| u64::from(queue.requests[id].sectors) * charge_of(served.sync));
            // Who weighs more for having been idle has as much more time.
            let timeout_ns = self.timeout_ns * if served.is_raised(now_ns) { RAISED } else { 1 };
            let is_late = now_ns >= self.turn_began_ns + timeout_ns;
            match next {
                _ if is_late => self.expire(now_ns, End::Time),
                // A request larger than the budget goes alone.
                Some(sectors) if served.charged > 0 && served.charged + sectors > served.budget => {
                    self.expire(now_ns, End::Budget);
                }
                Some(_) => return Some(at),
                None if self.idle_until_ns.is_some_and(|until_ns| now_ns < until_ns) => return None,
                // Its idling begins when the last is finished.
                None if served.in_flight > 0 && self.should_idle(queue, at) => return None,
                None => self.expire(now_ns, End::Empty),
            }
        }
        self.next(now_ns)
    }

    fn give(&mut self, queue: &mut Queue, at: u32, id: RequestId) {
        let head = queue.requests[id].end_sector();
        let sectors = u64::from(queue.requests[id].sectors);
        let weights: u64 = self.busy.iter().map(|at| self.served[*at as usize].weight(queue.now_ns)).sum();
        let served = &mut self.served[at as usize];
        served.backlog.remove(queue, id, self.nearness, head);
        self.virtual_time += (served.pay(sectors) << SCALE) / weights.max(1);
        self.length -= 1;
        queue.dispatch_last(id);
    }
}

fn charge_of(sync: bool) -> u64 {
    if sync { 1 } else { ASYNC_CHARGE }
}

impl Scheduler for Bfq {
    by_process!();

    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let request = &queue.requests[id];
        let (class, priority) = (request.class, request.priority);
        let at = place(request.process, request.sync, priority);
        let mut is_new = false;
        while self.served.len() as u32 <= at {
            is_new = true;
            self.served.push(Served::new(true, class, priority, self.budget_most() * 2 / 3));
        }
        let expires_ns = queue.now_ns + self.expire_ns[usize::from(self.served[at as usize].sync)];
        let served = &mut self.served[at as usize];
        let was_empty = served.backlog.is_empty();
        if was_empty && served.sync {
            (served.class, served.priority) = (class, priority);
        }
        served.learn(&queue.requests[id]);
        let request = &mut queue.requests[id];
        (request.owner, request.expires_ns) = (at, expires_ns);
        served.backlog.insert(queue, id, self.nearness);
        self.length += 1;
        if self.active == Some(at) {
            self.idle_until_ns = None;
        } else if was_empty {
            self.activate(queue, at, is_new);
        }
        let Some(active) = self.active.map(|active| &self.served[active as usize]) else { return };
        if class < active.class {
            self.expire(queue.now_ns, End::Empty);
        }
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        let at = place(bio.process, bio.sync, bio.priority);
        find_own(queue, bio, at, self.served.get(at as usize).map(|served| &served.backlog))
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let Some(at) = self.select(queue) else { return false };
        let served = &mut self.served[at as usize];
        let oldest = served.backlog.fifo.head().filter(|_| !std::mem::replace(&mut served.looked, true));
        let expired = oldest.filter(|id| queue.requests[*id].expires_ns <= queue.now_ns);
        let Some(id) = expired.or(served.backlog.next) else { return false };
        self.give(queue, at, id);
        true
    }

    fn started(&mut self, queue: &mut Queue, _id: RequestId) {
        self.drive_queues |= queue.in_driver >= QUEUEING;
    }

    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        let served = &mut self.served[request.owner as usize];
        served.in_flight -= 1;
        served.last_end_ns = queue.now_ns;
        if self.active != Some(request.owner) || !served.backlog.is_empty() || served.in_flight > 0 {
            return;
        }
        if self.should_idle(queue, request.owner) {
            self.idle_until_ns = Some(queue.now_ns + self.idle_ns);
        } else {
            self.expire(queue.now_ns, End::Empty);
        }
    }

    fn timer(&mut self, queue: &mut Queue) {
        self.expire(queue.now_ns, End::Idled);
    }

    fn tag_limit(&self, bio: &Bio, tags: usize) -> usize {
        match (bio.sync, bio.direction) {
            (true, Direction::Read) => tags,
            (true, Direction::Write) => (tags * 3 / 4).max(1),
            (false, _) => (tags / 2).max(1),
        }
    }

    fn exited(&mut self, queue: &mut Queue, process: u32) {
        let at = ASYNC_QUEUES + process;
        if let Some(served) = self.served.get_mut(at as usize) {
            served.has_exited = true;
            if self.active == Some(at) && self.idle_until_ns.is_some() {
                self.expire(queue.now_ns, End::Empty);
            }
        }
    }
}

/// How many times an asynchronous sector counts.
const ASYNC_CHARGE: u64 = 3;
/// A jump of more sectors counts as a seek, of more than so many of the last 32 a process seeks.
const JUMP: u64 = 800;
const SEEKS_MOST: u32 = 19;
/// By how much a process that was idle weighs more.
const RAISED: u64 = 30;
/// How long it does, on a drive with heads and without, as long as the drive's rate counts as two thirds of the usual;
/// and for how many sectors.
const RAISED_NS: [u64; 2] = [10_500_000_000, 3_750_000_000];
const RAISED_SECTORS: u64 = 120_000;
/// Binary digits behind the point of virtual times.
const SCALE: u32 = 22;

/// One queue, with its place in virtual time.
#[derive(Debug)]
pub(super) struct Served {
    pub backlog: ProcessQueue,
    pub sync: bool,
    pub class: Class,
    pub priority: u8,
    pub in_flight: usize,
    /// Virtual times: when it is eligible, when its budget would be over.
    pub start: u64,
    pub finish: u64,
    pub budget: u64,
    /// Sectors of this turn, as they are charged.
    pub charged: u64,
    jumps: u32,
    last_sector: u64,
    pub last_end_ns: u64,
    raised_until_ns: u64,
    pub has_exited: bool,
    /// What it may still have while it weighs more, sectors.
    raised_sectors: u64,
    /// Its oldest request was looked at in this turn.
    pub looked: bool,
}

impl Served {
    pub fn new(sync: bool, class: Class, priority: u8, budget: u64) -> Self {
        Self {
            backlog: ProcessQueue::default(),
            sync,
            class,
            priority,
            in_flight: 0,
            start: 0,
            finish: 0,
            budget,
            charged: 0,
            jumps: 0,
            last_sector: 0,
            last_end_ns: 0,
            raised_until_ns: 0,
            has_exited: false,
            raised_sectors: 0,
            looked: false,
        }
    }

    pub fn is_raised(&self, now_ns: u64) -> bool {
        now_ns < self.raised_until_ns && self.raised_sectors > 0
    }

    pub fn weight(&self, now_ns: u64) -> u64 {
        let own = if self.class == Class::Idle { 1 } else { 10 * u64::from(8 - self.priority.min(7)) };
        if self.is_raised(now_ns) { own * RAISED } else { own }
    }

    pub fn is_seeky(&self) -> bool {
        self.jumps.count_ones() > SEEKS_MOST
    }

    /// Has it weigh more for a while: it was idle.
    pub fn raise(&mut self, now_ns: u64, rotational: bool) {
        self.raised_until_ns = now_ns + RAISED_NS[usize::from(!rotational)];
        self.raised_sectors = RAISED_SECTORS;
    }

    /// A request arrives.
    pub fn learn(&mut self, request: &Request) {
        let is_far = request.start_sector.abs_diff(self.last_sector) > JUMP;
        self.jumps = self.jumps << 1 | u32::from(is_far);
        self.last_sector = request.end_sector();
    }

    /// Pays for a request that is dispatched; returns what it is charged, sectors.
    pub fn pay(&mut self, sectors: u64) -> u64 {
        let charged = sectors * if self.sync { 1 } else { ASYNC_CHARGE };
        self.in_flight += 1;
        self.charged += charged;
        self.raised_sectors = self.raised_sectors.saturating_sub(sectors);
        charged
    }

    /// Virtual time of so many sectors.
    pub fn share(&self, now_ns: u64, sectors: u64) -> u64 {
        (sectors << SCALE) / self.weight(now_ns)
    }
}
