//! cfq of 2.6.18: a queue for each process that waits, one per priority for all asynchronous writes, served in slices
//! of time.
//!
//! A slice begins with its first request. When a synchronous queue runs empty in it, the drive is left idle for
//! `slice_idle`, unless the process thinks longer than that, or seeks on a drive that takes several commands. Levels of
//! priority come in turn: 0; 0, 1; 0, 1, 2; and so on; within one the queue served longest ago is first.
//!
//! Cannot: queues that are merged because their processes cooperate (late RHEL 5), the grace period of the idle class.

use std::collections::VecDeque;

use super::contract::{May, Scheduler, SchedulerError, Settings, Tunable, Unit};
use super::process::{ASYNC_QUEUES, Fading, Nearness, ProcessQueue, Seeks, by_cfq_process, by_process, place};
use crate::queue::{Bio, Class, Queue, Request, RequestId, Side};

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("quantum", 4, Unit::Count),
    Tunable::new("fifo_expire_async", 250, Unit::Milliseconds),
    Tunable::new("fifo_expire_sync", 125, Unit::Milliseconds),
    Tunable::new("back_seek_max", 16_384, Unit::Kibibytes),
    Tunable::new("back_seek_penalty", 2, Unit::Count),
    Tunable::new("slice_sync", 100, Unit::Milliseconds),
    Tunable::new("slice_async", 40, Unit::Milliseconds),
    Tunable::new("slice_async_rq", 2, Unit::Count),
    Tunable::new("slice_idle", 8, Unit::Milliseconds),
];

/// A drive with this many commands in flight counts as one that queues them.
const QUEUEING: usize = 4;
/// A process whose requests lie farther apart than this in the mean seeks; sectors.
const SEEKY: u64 = 131_072;
/// How long the drive waits for one that seeks.
const SEEKY_IDLE_NS: u64 = 2_000_000;
const TICK_NS: u64 = 1_000_000;

/// One queue and what is known of who fills it.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each stands for something of its own
struct Served {
    backlog: ProcessQueue,
    sync: bool,
    class: Class,
    priority: u8,
    /// Dispatched and not finished.
    in_flight: usize,
    /// In this slice.
    dispatched: u64,
    /// When the slice ends; it begins with its first request.
    slice_end_ns: Option<u64>,
    /// Its oldest request was looked at in this slice.
    looked: bool,
    /// The drive may be left idle for it.
    idles: bool,
    think: Fading,
    seeks: Seeks,
    last_end_ns: u64,
    has_exited: bool,
}

impl Served {
    fn new(sync: bool, class: Class, priority: u8) -> Self {
        Self {
            backlog: ProcessQueue::default(),
            sync,
            class,
            priority,
            in_flight: 0,
            dispatched: 0,
            slice_end_ns: None,
            looked: false,
            idles: sync && class != Class::Idle,
            think: Fading::default(),
            seeks: Seeks::default(),
            last_end_ns: 0,
            has_exited: false,
        }
    }
}

pub(super) struct CfqSlices {
    quantum: u64,
    expire_ns: [u64; 2],
    nearness: Nearness,
    slice_ns: [u64; 2],
    async_requests: u64,
    idle_ns: u64,
    served: Vec<Served>,
    rotation: Rotation,
    active: Option<u32>,
    idle_until_ns: Option<u64>,
    /// More than a few commands were at the drive at once.
    drive_queues: bool,
    length: usize,
}

impl CfqSlices {
    pub(super) fn new(overrides: &[(&str, u64)]) -> Result<Self, SchedulerError> {
        let settings = Settings::new("cfq", TUNABLES, overrides)?;
        Ok(Self {
            quantum: settings.get("quantum").max(1),
            expire_ns: [settings.ns("fifo_expire_async"), settings.ns("fifo_expire_sync")],
            nearness: Nearness {
                back_most: settings.get("back_seek_max") * 2,
                penalty: settings.get("back_seek_penalty").max(1),
            },
            slice_ns: [settings.ns("slice_async"), settings.ns("slice_sync")],
            async_requests: settings.get("slice_async_rq"),
            idle_ns: settings.ns("slice_idle"),
            served: (0..ASYNC_QUEUES).map(|level| Served::new(false, Class::BestEffort, level as u8)).collect(),
            rotation: Rotation::default(),
            active: None,
            idle_until_ns: None,
            drive_queues: false,
            length: 0,
        })
    }

    fn queue_index(&mut self, request: &Request) -> u32 {
        let at = place(request.process, request.sync, request.priority);
        while self.served.len() as u32 <= at {
            self.served.push(Served::new(true, request.class, request.priority));
        }
        at
    }

    fn slice_length_ns(&self, at: u32) -> u64 {
        let served = &self.served[at as usize];
        let base_ns = self.slice_ns[usize::from(served.sync)];
        // A fifth for each level of priority above or below 4.
        (base_ns + base_ns / 5 * 4).saturating_sub(base_ns / 5 * u64::from(served.priority))
    }

    /// The active queue's turn is over; if it has requests it queues up again.
    fn expire(&mut self, now_ns: u64) {
        self.idle_until_ns = None;
        let Some(at) = self.active.take() else { return };
        let served = &mut self.served[at as usize];
        (served.slice_end_ns, served.dispatched, served.looked) = (None, 0, false);
        self.rotation.served(at, now_ns);
        if !served.backlog.is_empty() {
            self.enqueue(at);
        }
    }

    fn enqueue(&mut self, at: u32) {
        let served = &self.served[at as usize];
        self.rotation.add(at, served.class, served.priority, served.in_flight > 0);
    }

    /// Leaves the drive idle for the active queue, if that is worth while.
    fn idle(&mut self, now_ns: u64, at: u32) -> bool {
        let served = &self.served[at as usize];
        let left_ns = served.slice_end_ns.unwrap_or(now_ns).saturating_sub(now_ns);
        if !served.sync || !served.idles || served.has_exited || left_ns == 0 || self.idle_ns == 0 {
            return false;
        }
        let is_seeky = served.seeks.samples() > 0 && served.seeks.mean() > SEEKY;
        let most_ns = if is_seeky { self.idle_ns.min(SEEKY_IDLE_NS) } else { self.idle_ns };
        self.idle_until_ns = Some(now_ns + left_ns.min(most_ns));
        true
    }

    /// Whose turn it is; `None` if the drive is to stay as it is.
    fn select(&mut self, now_ns: u64) -> Option<u32> {
        if let Some(at) = self.active {
            let served = &self.served[at as usize];
            let is_over = served.slice_end_ns.is_some_and(|end_ns| now_ns > end_ns);
            if !is_over && !served.backlog.is_empty() {
                return Some(at);
            }
            if !is_over && self.idle_until_ns.is_some_and(|until_ns| now_ns < until_ns) {
                return None;
            }
            if !is_over && served.sync && served.in_flight > 0 {
                return None;
            }
            if !is_over && self.idle_until_ns.is_none() && self.idle(now_ns, at) {
                return None;
            }
            self.expire(now_ns);
        }
        self.active = self.rotation.next();
        self.active
    }

    fn choose(&mut self, queue: &Queue, at: u32) -> Option<RequestId> {
        let served = &mut self.served[at as usize];
        if !std::mem::replace(&mut served.looked, true) {
            let oldest = served.backlog.fifo.head()?;
            if queue.requests[oldest].expires_ns < queue.now_ns {
                return Some(oldest);
            }
        }
        served.backlog.next
    }

    fn give(&mut self, queue: &mut Queue, at: u32, id: RequestId) {
        let head = queue.requests[id].end_sector();
        let served = &mut self.served[at as usize];
        served.backlog.remove(queue, id, self.nearness, head);
        served.in_flight += 1;
        served.dispatched += 1;
        self.length -= 1;
        queue.dispatch_sorted(id);
    }

    fn learn(&mut self, queue: &Queue, at: u32, id: RequestId) {
        let (idle, drive_queues) = (self.idle_ns / TICK_NS, self.drive_queues);
        let served = &mut self.served[at as usize];
        if !served.sync || served.class == Class::Idle {
            return;
        }
        let think = ((queue.now_ns - served.last_end_ns) / TICK_NS).min(2 * idle);
        served.think.add(think);
        served.seeks.add(queue.requests[id].start_sector, queue.requests[id].end_sector());
        if idle == 0 || served.has_exited || (drive_queues && served.seeks.mean() > SEEKY) {
            served.idles = false;
        } else if served.think.samples() > 80 {
            served.idles = served.think.mean() <= idle;
        }
    }

    /// A request that came is to be served before what is active.
    fn preempts(&self, at: u32) -> bool {
        let Some(active) = self.active.map(|active| &self.served[active as usize]) else { return false };
        let new = &self.served[at as usize];
        if new.class == Class::Idle {
            return false;
        }
        active.class == Class::Idle || (new.class == Class::RealTime && active.class != Class::RealTime)
    }
}

impl Scheduler for CfqSlices {
    by_process!();
    by_cfq_process!();

    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let at = self.queue_index(&queue.requests[id]);
        self.learn(queue, at, id);
        let served = &mut self.served[at as usize];
        let request = &mut queue.requests[id];
        (request.owner, request.expires_ns) = (at, queue.now_ns + self.expire_ns[usize::from(served.sync)]);
        let was_empty = served.backlog.is_empty();
        if was_empty && served.sync {
            (served.class, served.priority) = (request.class, request.priority);
        }
        served.backlog.insert(queue, id, self.nearness);
        self.length += 1;
        if self.active == Some(at) {
            self.idle_until_ns = None;
            return;
        }
        if was_empty {
            self.enqueue(at);
        }
        if self.preempts(at) {
            self.expire(queue.now_ns);
            self.rotation.go_first(at);
        }
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        queue.find_last_merge(bio).or_else(|| queue.find_back(bio, |_| true)).or_else(|| {
            let at = place(bio.process, bio.sync, bio.priority);
            self.served.get(at as usize)?.backlog.find_front(queue, bio)
        })
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let Some(at) = self.select(queue.now_ns) else { return false };
        let most = if self.served[at as usize].class == Class::Idle { 1 } else { self.quantum };
        for _ in 0..most {
            let Some(id) = self.choose(queue, at) else { break };
            let length_ns = self.slice_length_ns(at);
            let served = &mut self.served[at as usize];
            served.slice_end_ns = served.slice_end_ns.or(Some(queue.now_ns + length_ns));
            self.give(queue, at, id);
        }
        let served = &self.served[at as usize];
        let async_most = 2 * (self.async_requests + self.async_requests * (7 - u64::from(served.priority)));
        if (!served.sync && served.dispatched >= async_most) || served.class == Class::Idle || !served.idles {
            self.expire(queue.now_ns);
        }
        true
    }

    fn drain(&mut self, queue: &mut Queue) {
        self.expire(queue.now_ns);
        for at in 0..self.served.len() as u32 {
            self.rotation.remove(at);
            while let Some(id) = self.served[at as usize].backlog.fifo.head() {
                self.give(queue, at, id);
            }
            self.served[at as usize].dispatched = 0;
        }
    }

    fn started(&mut self, queue: &mut Queue, _id: RequestId) {
        self.drive_queues |= queue.in_driver > QUEUEING;
    }

    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        let at = request.owner;
        let served = &mut self.served[at as usize];
        served.in_flight -= 1;
        served.last_end_ns = queue.now_ns;
        if served.in_flight == 0 && self.active != Some(at) && !served.backlog.is_empty() {
            // It need not wait among the busy ones any longer.
            self.rotation.served(at, queue.now_ns);
            self.rotation.remove(at);
            self.enqueue(at);
        } else if served.in_flight == 0 && self.active == Some(at) && served.backlog.is_empty() {
            let is_over = served.slice_end_ns.is_some_and(|end_ns| queue.now_ns > end_ns);
            if is_over || !self.idle(queue.now_ns, at) {
                self.expire(queue.now_ns);
            }
        }
    }

    fn timer(&mut self, queue: &mut Queue) {
        self.expire(queue.now_ns);
    }
}

/// Levels of priority.
const LEVELS: usize = 8;

/// Queues that have requests, except for the one that is served.
#[derive(Debug, Default)]
struct Rotation {
    waiting: [VecDeque<u32>; LEVELS],
    /// Those of the level whose turn it is.
    current: VecDeque<u32>,
    /// Those that have requests at the drive: last of all.
    busy: VecDeque<u32>,
    /// The idle class: after the last.
    idle: VecDeque<u32>,
    /// The next level, and the last of this sequence.
    level: usize,
    last_level: usize,
    /// When each queue was served last.
    served_ns: Vec<u64>,
}

impl Rotation {
    /// Adds a queue to those that wait for their turn.
    pub fn add(&mut self, at: u32, class: Class, priority: u8, is_busy: bool) {
        if self.served_ns.len() <= at as usize {
            self.served_ns.resize(at as usize + 1, 0);
        }
        match class {
            Class::RealTime => self.current.push_front(at),
            Class::Idle => self.idle.push_back(at),
            Class::BestEffort => {
                let list = if is_busy { &mut self.busy } else { &mut self.waiting[usize::from(priority) % LEVELS] };
                let own_ns = self.served_ns[at as usize];
                let later = list.iter().rev().take_while(|other| self.served_ns[**other as usize] > own_ns).count();
                list.insert(list.len() - later, at);
            }
        }
    }

    /// Takes a queue out, wherever it waits.
    pub fn remove(&mut self, at: u32) {
        let lists = self.waiting.iter_mut().chain([&mut self.current, &mut self.busy, &mut self.idle]);
        lists.for_each(|list| list.retain(|other| *other != at));
    }

    /// A queue was served until now.
    pub fn served(&mut self, at: u32, now_ns: u64) {
        if self.served_ns.len() <= at as usize {
            self.served_ns.resize(at as usize + 1, 0);
        }
        self.served_ns[at as usize] = now_ns;
    }

    /// Has a queue that waits go before all others.
    pub fn go_first(&mut self, at: u32) {
        self.remove(at);
        self.current.push_front(at);
    }

    /// The queue whose turn it is; it no longer waits.
    pub fn next(&mut self) -> Option<u32> {
        if self.current.is_empty() {
            self.next_level();
        }
        self.current.pop_front().or_else(|| self.busy.pop_front()).or_else(|| self.idle.pop_front())
    }

    fn next_level(&mut self) {
        // The sequences that begin at 0 and end at each level pass every level at least once.
        for _ in 0..LEVELS * (LEVELS + 1) / 2 + LEVELS {
            let level = self.level;
            self.level += 1;
            if self.level > self.last_level {
                self.level = 0;
                self.last_level = (self.last_level + 1) % LEVELS;
            }
            if !self.waiting[level].is_empty() {
                std::mem::swap(&mut self.current, &mut self.waiting[level]);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_in_growing_sequences() {
        let mut rotation = Rotation::default();
        let mut order = Vec::new();
        for priority in 0..4 {
            rotation.add(priority, Class::BestEffort, priority as u8, false);
        }
        for _ in 0..9 {
            let at = rotation.next().unwrap();
            order.push(at);
            rotation.add(at, Class::BestEffort, at as u8, false);
        }
        assert_eq!(order, [0, 0, 1, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn queues_with_requests_at_the_drive_and_idle_ones_come_last() {
        let mut rotation = Rotation::default();
        rotation.add(1, Class::Idle, 4, false);
        rotation.add(2, Class::BestEffort, 4, true);
        rotation.add(3, Class::BestEffort, 4, false);
        rotation.add(4, Class::RealTime, 4, false);
        let order: Vec<_> = std::iter::from_fn(|| rotation.next()).collect();
        assert_eq!(order, [4, 3, 2, 1]);
    }
}
