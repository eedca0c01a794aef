//! cfq of 2.6.32, and of 2.6.33 to 4.20: queues by key in service trees, one request at a time.
//!
//! 2.6.32 has one tree. Later there is one for asynchronous queues, one for those not worth idling for, and one for the
//! rest; each is served for its share of `target_latency`. A slice begins with its first completion.
//!
//! Behind a write that asks for it (`no_idle`: those of `fsync`) the drive does not idle; from 2.6.33 its queue is
//! among those that share their idling, and another of these may use it.
//!
//! Cannot: groups (`group_idle` acts on none), queues merged because their processes cooperate.

use std::collections::BTreeSet;

use super::contract::{May, Scheduler, SchedulerError, Settings, Tunable, Unit};
use super::process::{
    ASYNC_QUEUES, Fading, Nearness, ProcessQueue, Seeks, by_cfq_process, by_process, find_own, place,
};
use crate::queue::{Bio, Class, Queue, Request, RequestId, Side};

const SEEKY_IDLE_NS: u64 = 2_000_000;

pub(super) struct CfqTrees {
    one_tree: bool,
    quantum: usize,
    expire_ns: [u64; 2],
    nearness: Nearness,
    slice_ns: [u64; 2],
    async_requests: u64,
    idle_ns: u64,
    low_latency: bool,
    target_ns: u64,
    served: Vec<Served>,
    trees: ServiceTrees,
    active: Option<u32>,
    idle_until_ns: Option<u64>,
    /// Queues that hold requests: asynchronous, synchronous.
    nonempty: [usize; 2],
    /// Requests at the drive: asynchronous, synchronous.
    in_flight: [usize; 2],
    last_sync_end_ns: u64,
    depth: DriveDepth,
    length: usize,
}

impl CfqTrees {
    pub(super) fn new(overrides: &[(&str, u64)], one_tree: bool) -> Result<Self, SchedulerError> {
        let settings = Settings::new("cfq", if one_tree { TUNABLES_2_6_32 } else { TUNABLES }, overrides)?;
        Ok(Self {
            one_tree,
            quantum: settings.get("quantum").max(1) as usize,
            expire_ns: [settings.ns("fifo_expire_async"), settings.ns("fifo_expire_sync")],
            nearness: Nearness {
                back_most: settings.get("back_seek_max") * 2,
                penalty: settings.get("back_seek_penalty").max(1),
            },
            slice_ns: [settings.ns("slice_async"), settings.ns("slice_sync").max(1)],
            async_requests: settings.get("slice_async_rq"),
            idle_ns: settings.ns("slice_idle"),
            low_latency: settings.get("low_latency") == 1,
            target_ns: if one_tree { u64::MAX } else { settings.ns("target_latency") },
            served: (0..ASYNC_QUEUES).map(|level| Served::new(false, Class::BestEffort, level as u8)).collect(),
            trees: ServiceTrees::default(),
            active: None,
            idle_until_ns: None,
            nonempty: [0, 0],
            in_flight: [0, 0],
            last_sync_end_ns: 0,
            depth: DriveDepth::default(),
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

    /// Queues with requests, the active one included; all, and synchronous ones.
    fn busy(&self) -> (usize, usize) {
        let active = self.active.map(|at| &self.served[at as usize]).filter(|active| active.backlog.is_empty());
        let [asyncs, syncs] = self.nonempty;
        let active_sync = active.is_some_and(|active| active.sync);
        (asyncs + syncs + usize::from(active.is_some()), syncs + usize::from(active_sync))
    }

    fn base_slice_ns(&self, sync: bool, priority: u8) -> u64 {
        let base_ns = self.slice_ns[usize::from(sync)];
        (base_ns + base_ns / 5 * 4).saturating_sub(base_ns / 5 * u64::from(priority))
    }

    /// A slice, shortened so that all are served within the target.
    fn slice_length_ns(&self, at: u32) -> u64 {
        let served = &self.served[at as usize];
        let slice_ns = self.base_slice_ns(served.sync, served.priority);
        let expected_ns = self.slice_ns[1] * self.busy().1 as u64;
        if !self.low_latency || expected_ns <= self.target_ns {
            return slice_ns;
        }
        let least_ns = slice_ns.min(2 * self.idle_ns * slice_ns / self.slice_ns[1]);
        (slice_ns * self.target_ns / expected_ns).max(least_ns)
    }

    fn enqueue(&mut self, now_ns: u64, at: u32, first: bool) {
        let busy = self.busy().0 as u64;
        let served = &self.served[at as usize];
        let (class, service) = (served.class, served.service(self.one_tree));
        let own_ns = self.base_slice_ns(served.sync, served.priority);
        let behind_ns = busy.saturating_sub(1) * self.base_slice_ns(true, 0).saturating_sub(own_ns);
        let key_ns = if first {
            self.trees.before_first(class, service)
        } else {
            (now_ns + behind_ns).cast_signed() - served.residue_ns
        };
        let served = &mut self.served[at as usize];
        served.residue_ns = 0;
        served.waits = Some((key_ns, class, service));
        self.trees.add(key_ns, at, class, service);
    }

    fn leave_tree(&mut self, at: u32) {
        if let Some((key_ns, class, service)) = self.served[at as usize].waits.take() {
            self.trees.remove(key_ns, at, class, service);
        }
    }

    fn expire(&mut self, now_ns: u64) {
        self.idle_until_ns = None;
        let Some(at) = self.active.take() else { return };
        let served = &mut self.served[at as usize];
        served.residue_ns = served.slice_end_ns.map_or(0, |end_ns| end_ns.cast_signed() - now_ns.cast_signed());
        (served.slice_end_ns, served.dispatched, served.looked) = (None, 0, false);
        if !served.backlog.is_empty() {
            self.enqueue(now_ns, at, false);
        }
    }

    /// The drive is to idle behind this queue.
    fn should_idle(&self, queue: &Queue, at: u32) -> bool {
        let served = &self.served[at as usize];
        if !served.sync || served.class == Class::Idle || self.idle_ns == 0 || served.has_exited {
            return false;
        }
        if !queue.rotational && self.depth.queues() {
            return false;
        }
        served.idles || (!self.one_tree && self.trees.count(served.class, Service::NoIdle) == 0)
    }

    fn idle(&mut self, queue: &Queue, at: u32) -> bool {
        let served = &self.served[at as usize];
        if served.in_flight > 0 || !self.should_idle(queue, at) {
            return false;
        }
        let left_ns = served.slice_end_ns.map(|end_ns| end_ns.saturating_sub(queue.now_ns));
        if left_ns.is_some_and(|left_ns| left_ns == 0 || served.think_ns() > left_ns) {
            return false;
        }
        let is_short = self.one_tree && served.is_seeky(true);
        self.idle_until_ns = Some(queue.now_ns + if is_short { self.idle_ns.min(SEEKY_IDLE_NS) } else { self.idle_ns });
        true
    }

    fn select(&mut self, queue: &Queue) -> Option<u32> {
        if let Some(at) = self.active {
            let served = &self.served[at as usize];
            let is_over = served.slice_end_ns.is_some_and(|end_ns| queue.now_ns > end_ns);
            if !is_over && !served.backlog.is_empty() {
                return Some(at);
            }
            let waits = match self.idle_until_ns {
                Some(until_ns) => queue.now_ns < until_ns,
                None if served.in_flight > 0 => self.should_idle(queue, at),
                None => self.idle(queue, at),
            };
            if !is_over && waits {
                return None;
            }
            self.expire(queue.now_ns);
        }
        let (target_ns, idle_ns, slices) = (self.target_ns, self.idle_ns, self.slice_ns);
        let share_ns = |service: Service, own: usize, all: usize| {
            let share_ns = target_ns / all.max(1) as u64 * own as u64;
            match service {
                _ if target_ns == u64::MAX => 0,
                Service::Async => (u128::from(share_ns) * u128::from(slices[0]) / u128::from(slices[1])) as u64,
                _ => share_ns.max(2 * idle_ns),
            }
        };
        self.active = self.trees.next(queue.now_ns, share_ns);
        if let Some(at) = self.active {
            self.served[at as usize].waits = None;
        }
        self.active
    }

    fn give(&mut self, queue: &mut Queue, at: u32, id: RequestId) {
        let head = queue.requests[id].end_sector();
        let served = &mut self.served[at as usize];
        served.backlog.remove(queue, id, self.nearness, head);
        served.in_flight += 1;
        served.dispatched += 1;
        self.in_flight[usize::from(served.sync)] += 1;
        self.nonempty[usize::from(served.sync)] -= usize::from(served.backlog.is_empty());
        self.length -= 1;
        queue.dispatch_sorted(id);
    }

    /// The queue may have one more at the drive.
    fn may_dispatch(&self, queue: &Queue, at: u32) -> bool {
        let served = &self.served[at as usize];
        let [asyncs, syncs] = self.in_flight;
        if (asyncs > 0 && self.should_idle(queue, at)) || (syncs > 0 && !served.sync) {
            return false;
        }
        let (busy, busy_sync) = self.busy();
        let is_alone = busy == 1 || (!self.one_tree && served.sync && busy_sync == 1);
        let mut most = match (self.one_tree, is_alone) {
            _ if served.class == Class::Idle => 1,
            (true, true) => self.quantum * 4,
            (true, false) => self.quantum,
            (false, true) => usize::MAX,
            (false, false) => {
                let ends_soon = served
                    .slice_end_ns
                    .is_some_and(|end_ns| queue.now_ns + self.idle_ns * served.in_flight as u64 > end_ns);
                if ends_soon { (self.quantum / 2).max(1) } else { self.quantum }
            }
        };
        if !served.sync && self.low_latency {
            let depth = (queue.now_ns - self.last_sync_end_ns) / self.slice_ns[1];
            most = most.min((depth as usize).max(usize::from(served.in_flight == 0)));
        }
        served.in_flight < most
    }
}

impl Scheduler for CfqTrees {
    by_process!();
    by_cfq_process!();

    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let at = self.queue_index(&queue.requests[id]);
        let served = &mut self.served[at as usize];
        let was_empty = served.backlog.is_empty();
        if was_empty && served.sync {
            (served.class, served.priority) = (queue.requests[id].class, queue.requests[id].priority);
        }
        served.learn(queue, &queue.requests[id], self.idle_ns, self.one_tree);
        let request = &mut queue.requests[id];
        (request.owner, request.expires_ns) = (at, queue.now_ns + self.expire_ns[usize::from(served.sync)]);
        served.backlog.insert(queue, id, self.nearness);
        self.nonempty[usize::from(served.sync)] += usize::from(was_empty);
        self.length += 1;
        if self.active == Some(at) {
            self.idle_until_ns = None;
            return;
        }
        if was_empty {
            self.enqueue(queue.now_ns, at, false);
        }
        let Some(active) = self.active.map(|active| &self.served[active as usize]) else { return };
        let new = &self.served[at as usize];
        let has_higher_class = new.class < active.class;
        let is_sync_over_async = new.class == active.class && new.sync && !active.sync;
        let shares_idling = self.idle_until_ns.is_some()
            && [active, new].iter().all(|served| served.service(self.one_tree) == Service::NoIdle)
            && self.trees.count(new.class, Service::NoIdle) == 1;
        if has_higher_class || is_sync_over_async || shares_idling {
            self.expire(queue.now_ns);
            self.leave_tree(at);
            self.enqueue(queue.now_ns, at, true);
        }
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        let at = place(bio.process, bio.sync, bio.priority);
        find_own(queue, bio, at, self.served.get(at as usize).map(|served| &served.backlog))
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let Some(at) = self.select(queue).filter(|at| self.may_dispatch(queue, *at)) else { return false };
        let served = &mut self.served[at as usize];
        let oldest = served.backlog.fifo.head().filter(|_| !std::mem::replace(&mut served.looked, true));
        let expired = oldest.filter(|id| queue.requests[*id].expires_ns < queue.now_ns);
        let Some(id) = expired.or(served.backlog.next) else { return false };
        self.give(queue, at, id);
        let served = &self.served[at as usize];
        let async_most = 2 * self.async_requests * (8 - u64::from(served.priority));
        let has_had_its_turn = (!served.sync && served.dispatched >= async_most) || served.class == Class::Idle;
        if has_had_its_turn && self.busy().0 > 1 {
            self.expire(queue.now_ns);
        }
        true
    }

    fn drain(&mut self, queue: &mut Queue) {
        self.expire(queue.now_ns);
        for at in 0..self.served.len() as u32 {
            self.leave_tree(at);
            while let Some(id) = self.served[at as usize].backlog.fifo.head() {
                self.give(queue, at, id);
            }
            self.served[at as usize].dispatched = 0;
        }
    }

    fn started(&mut self, queue: &mut Queue, _id: RequestId) {
        self.depth.started(queue.in_driver);
    }

    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        let (at, now_ns) = (request.owner, queue.now_ns);
        let active = self.active.map(|at| &self.served[at as usize]).filter(|active| active.idles);
        self.depth.completed(
            queue.in_driver,
            self.length,
            active.map(|active| active.in_flight + active.backlog.fifo.len()),
        );
        let length_ns = self.slice_length_ns(at);
        let served = &mut self.served[at as usize];
        served.in_flight -= 1;
        self.in_flight[usize::from(served.sync)] -= 1;
        if served.sync {
            served.last_end_ns = now_ns;
            self.last_sync_end_ns = now_ns;
        }
        if self.active != Some(at) {
            return;
        }
        let end_ns = *served.slice_end_ns.get_or_insert(now_ns + length_ns);
        let (is_empty, is_last) = (served.backlog.is_empty(), served.in_flight == 0);
        let is_over = now_ns > end_ns || served.class == Class::Idle;
        let may_idle = !(self.one_tree && request.no_idle);
        if is_over || (is_empty && is_last && !(may_idle && self.idle(queue, at))) {
            self.expire(now_ns);
        }
    }

    fn timer(&mut self, queue: &mut Queue) {
        if let Some(at) = self.active {
            self.served[at as usize].came_too_late();
        }
        self.expire(queue.now_ns);
    }
}

/// From 2.6.33.
pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("quantum", 8, Unit::Count),
    Tunable::new("fifo_expire_async", 250, Unit::Milliseconds),
    Tunable::new("fifo_expire_sync", 125, Unit::Milliseconds),
    Tunable::new("back_seek_max", 16_384, Unit::Kibibytes),
    Tunable::new("back_seek_penalty", 2, Unit::Count),
    Tunable::new("slice_sync", 100, Unit::Milliseconds),
    Tunable::new("slice_async", 40, Unit::Milliseconds),
    Tunable::new("slice_async_rq", 2, Unit::Count),
    Tunable::new("slice_idle", 8, Unit::Milliseconds),
    Tunable::new("group_idle", 8, Unit::Milliseconds),
    Tunable::new("low_latency", 1, Unit::Switch),
    Tunable::new("target_latency", 300, Unit::Milliseconds),
];

/// Of 2.6.32.
pub(super) const TUNABLES_2_6_32: &[Tunable] = &[
    Tunable::new("quantum", 4, Unit::Count),
    Tunable::new("fifo_expire_async", 250, Unit::Milliseconds),
    Tunable::new("fifo_expire_sync", 125, Unit::Milliseconds),
    Tunable::new("back_seek_max", 16_384, Unit::Kibibytes),
    Tunable::new("back_seek_penalty", 2, Unit::Count),
    Tunable::new("slice_sync", 100, Unit::Milliseconds),
    Tunable::new("slice_async", 40, Unit::Milliseconds),
    Tunable::new("slice_async_rq", 2, Unit::Count),
    Tunable::new("slice_idle", 8, Unit::Milliseconds),
    Tunable::new("low_latency", 1, Unit::Switch),
];

/// Milliseconds are what think times are kept in.
const TICK_NS: u64 = 1_000_000;
/// A jump of more sectors counts as a seek.
const JUMP: u64 = 800;
/// On a drive without heads a request of fewer sectors does.
const SMALL: u32 = 64;
/// So many of the last 32 make a queue seeky.
const SEEKS_MOST: u32 = 4;
/// To 2.6.32 a mean distance above this did, sectors.
const DISTANCE_MOST: u64 = 8192;
/// A queue with this many requests in flight is worth idling for, although it seeks.
const DEEP: usize = 4;

/// A queue with its place in the trees.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each stands for something of its own
pub(super) struct Served {
    pub backlog: ProcessQueue,
    pub sync: bool,
    pub class: Class,
    pub priority: u8,
    /// The tree and key it waits with.
    pub waits: Option<(i64, Class, Service)>,
    /// Dispatched and not finished.
    pub in_flight: usize,
    /// In this slice.
    pub dispatched: u64,
    /// Set by the slice's first completion.
    pub slice_end_ns: Option<u64>,
    /// What was left of the last slice, negative if it was overrun.
    pub residue_ns: i64,
    pub looked: bool,
    pub idles: bool,
    pub has_exited: bool,
    is_deep: bool,
    think: Fading,
    seeks: Seeks,
    jumps: u32,
    pub last_end_ns: u64,
}

impl Served {
    pub fn new(sync: bool, class: Class, priority: u8) -> Self {
        Self {
            backlog: ProcessQueue::default(),
            sync,
            class,
            priority,
            waits: None,
            in_flight: 0,
            dispatched: 0,
            slice_end_ns: None,
            residue_ns: 0,
            looked: false,
            idles: sync && class != Class::Idle,
            has_exited: false,
            is_deep: false,
            think: Fading::default(),
            seeks: Seeks::default(),
            jumps: 0,
            last_end_ns: 0,
        }
    }

    /// Which tree it belongs in.
    pub fn service(&self, one_tree: bool) -> Service {
        match self.sync {
            _ if one_tree => Service::Sync,
            false => Service::Async,
            true if self.idles => Service::Sync,
            true => Service::NoIdle,
        }
    }

    pub fn is_seeky(&self, by_distance: bool) -> bool {
        if by_distance { self.seeks.mean() > DISTANCE_MOST } else { self.jumps.count_ones() > SEEKS_MOST }
    }

    pub fn think_ns(&self) -> u64 {
        if self.think.samples() > 0 { self.think.mean() * TICK_NS } else { 0 }
    }

    /// Learns from a request that arrives, and decides whether the drive is to idle for the queue.
    pub fn learn(&mut self, queue: &Queue, request: &Request, idle_ns: u64, by_distance: bool) {
        if !self.sync || self.class == Class::Idle {
            return;
        }
        let think_ns = (queue.now_ns - self.last_end_ns).min(2 * idle_ns);
        self.think.add(think_ns / TICK_NS);
        let is_far = request.start_sector.abs_diff(self.seeks.last_end()) > JUMP;
        let jumped = if queue.rotational { is_far } else { request.sectors < SMALL };
        self.jumps = self.jumps << 1 | u32::from(jumped);
        self.seeks.add(request.start_sector, request.end_sector());
        self.is_deep |= self.backlog.fifo.len() >= DEEP;
        let is_seeky = self.is_seeky(by_distance) && (by_distance || !self.is_deep);
        if idle_ns == 0 || self.has_exited || is_seeky || (request.no_idle && !by_distance) {
            self.idles = false;
        } else if self.think.samples() > 80 {
            self.idles = self.think.mean() * TICK_NS <= idle_ns;
        }
    }

    /// The drive idled for it, and no request came.
    pub fn came_too_late(&mut self) {
        self.is_deep = false;
    }
}

/// How a queue is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// Asynchronous writes.
    Async,
    /// Synchronous, not worth waiting for one by one; the drive idles behind the last of them only.
    NoIdle,
    /// Synchronous, with a drive that idles for its next request.
    Sync,
}

/// Queues that have requests, except for the one that is served.
#[derive(Debug, Default)]
struct ServiceTrees {
    /// By class, then service: key in nanoseconds, and the queue.
    trees: [[BTreeSet<(i64, u32)>; 3]; 3],
    /// The class and service that are being served, and until when.
    serving: Option<(Class, Service, u64)>,
}

const SERVICES: [Service; 3] = [Service::Async, Service::NoIdle, Service::Sync];

impl ServiceTrees {
    pub fn add(&mut self, key_ns: i64, at: u32, class: Class, service: Service) {
        self.tree(class, service).insert((key_ns, at));
    }

    pub fn remove(&mut self, key_ns: i64, at: u32, class: Class, service: Service) {
        self.tree(class, service).remove(&(key_ns, at));
    }

    /// The key of the queue that would be first, less one.
    pub fn before_first(&self, class: Class, service: Service) -> i64 {
        let tree = &self.trees[class as usize][service as usize];
        tree.first().map_or(0, |(key_ns, _)| key_ns - 1)
    }

    /// Queues that wait in a tree.
    pub fn count(&self, class: Class, service: Service) -> usize {
        self.trees[class as usize][service as usize].len()
    }

    /// The queue that is next; it no longer waits. `share_ns` is how long a service may go on, by its queues and all of
    /// the class.
    pub fn next(&mut self, now_ns: u64, share_ns: impl Fn(Service, usize, usize) -> u64) -> Option<u32> {
        let class = [Class::RealTime, Class::BestEffort, Class::Idle]
            .into_iter()
            .find(|class| self.trees[*class as usize].iter().any(|tree| !tree.is_empty()))?;
        let goes_on = self.serving.filter(|(serving, service, end_ns)| {
            *serving == class && now_ns < *end_ns && self.count(class, *service) > 0
        });
        let service = if let Some((_, service, _)) = goes_on {
            service
        } else {
            let trees = &self.trees[class as usize];
            let service = SERVICES.into_iter().filter(|service| !trees[*service as usize].is_empty());
            let service = service.min_by_key(|service| trees[*service as usize].first().map(|(key_ns, _)| *key_ns))?;
            let all = trees.iter().map(BTreeSet::len).sum();
            let end_ns = now_ns + share_ns(service, self.count(class, service), all);
            self.serving = Some((class, service, end_ns));
            service
        };
        self.tree(class, service).pop_first().map(|(_, at)| at)
    }

    fn tree(&mut self, class: Class, service: Service) -> &mut BTreeSet<(i64, u32)> {
        &mut self.trees[class as usize][service as usize]
    }
}

/// Commands at once that show it.
const QUEUEING: usize = 5;
/// Looks at a drive that could have had as many, after which it counts as known.
const LOOKS: u32 = 50;

/// What was seen of a drive. It counts as one that queues until it is known better: only so can it show it.
#[derive(Debug, Default)]
struct DriveDepth {
    most: usize,
    looks: u32,
}

impl DriveDepth {
    pub fn queues(&self) -> bool {
        self.looks < LOOKS || self.most >= QUEUEING
    }

    pub fn started(&mut self, in_driver: usize) {
        self.most = self.most.max(in_driver);
    }

    /// A request is finished while so many wait; `own` are the waiting ones and those at the drive of a queue that has
    /// the drive for itself.
    pub fn completed(&mut self, in_driver: usize, waiting: usize, own: Option<usize>) {
        let holds_back = own.is_some_and(|own| own < QUEUEING) && in_driver < QUEUEING;
        self.looks += u32::from(waiting > QUEUEING && !holds_back);
    }
}
