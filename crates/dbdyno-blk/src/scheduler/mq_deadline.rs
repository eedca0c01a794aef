//! mq-deadline: deadline as it is in blk-mq, with a set of queues for each class of priority (since 5.14).
//!
//! A batch goes on with the first request that starts where the last one did or behind it. A class is served only if
//! none above has requests queued or at the drive, or if its oldest has waited for `prio_aging_expire`.
//!
//! Cannot: zoned devices.

use super::contract::{Scheduler, SchedulerError, Settings, Tunable, Unit};
use crate::queue::{Bio, Direction, Fifo, Queue, Request, RequestId, Side, Sorted};

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("read_expire", 500, Unit::Milliseconds),
    Tunable::new("write_expire", 5000, Unit::Milliseconds),
    Tunable::new("writes_starved", 2, Unit::Count),
    Tunable::new("front_merges", 1, Unit::Switch),
    Tunable::new("fifo_batch", 16, Unit::Count),
    Tunable::new("async_depth", 0, Unit::Count),
    Tunable::new("prio_aging_expire", 10_000, Unit::Milliseconds),
];

#[derive(Default)]
struct Waiting {
    fifo: Fifo,
    sorted: Sorted,
    /// Where the request dispatched last starts.
    latest: u64,
}

/// What belongs to one class of priority.
#[derive(Default)]
struct Level {
    waiting: [Waiting; 2],
    /// Dispatched and not finished.
    in_flight: usize,
}

impl Level {
    fn len(&self) -> usize {
        self.waiting[0].fifo.len() + self.waiting[1].fifo.len()
    }
}

pub(super) struct MqDeadline {
    expire_ns: [u64; 2],
    writes_starved: u64,
    front_merges: bool,
    fifo_batch: u64,
    async_depth: usize,
    aging_ns: u64,
    levels: [Level; 3],
    last_direction: Direction,
    batching: u64,
    starved: u64,
}

impl MqDeadline {
    pub(super) fn new(overrides: &[(&str, u64)]) -> Result<Self, SchedulerError> {
        let settings = Settings::new("mq-deadline", TUNABLES, overrides)?;
        Ok(Self {
            expire_ns: [settings.ns("read_expire"), settings.ns("write_expire")],
            writes_starved: settings.get("writes_starved"),
            front_merges: settings.get("front_merges") == 1,
            fifo_batch: settings.get("fifo_batch"),
            async_depth: settings.get("async_depth") as usize,
            aging_ns: settings.ns("prio_aging_expire"),
            levels: Default::default(),
            last_direction: Direction::Read,
            batching: 0,
            starved: 0,
        })
    }

    /// What a lower class is served because it waited too long behind the others.
    fn aged(&mut self, queue: &Queue) -> Option<RequestId> {
        let latest_ns = queue.now_ns.checked_sub(self.aging_ns)?;
        if self.levels.iter().filter(|level| level.len() + level.in_flight > 0).count() < 2 {
            return None;
        }
        (1..self.levels.len()).find_map(|at| self.choose_in_level(queue, at, latest_ns))
    }

    /// What a class is to be served next, if it came by `latest_ns`.
    fn choose_in_level(&mut self, queue: &Queue, at: usize, latest_ns: u64) -> Option<RequestId> {
        let came_by_then = |id: &RequestId| queue.requests[*id].arrived_ns <= latest_ns;
        let waiting = &self.levels[at].waiting;
        let follows = |direction: Direction| {
            let waiting = &waiting[direction.index()];
            waiting.sorted.at_or_after(waiting.latest)
        };
        if self.batching < self.fifo_batch
            && let Some(id) = follows(self.last_direction)
        {
            return Some(id).filter(came_by_then);
        }
        let direction = match (waiting[0].fifo.is_empty(), waiting[1].fifo.is_empty()) {
            (true, true) => return None,
            (true, false) => Direction::Write,
            (false, true) => Direction::Read,
            (false, false) if self.starved >= self.writes_starved => Direction::Write,
            (false, false) => {
                self.starved += 1;
                Direction::Read
            }
        };
        if direction == Direction::Write {
            self.starved = 0;
        }
        let oldest = waiting[direction.index()].fifo.head()?;
        let is_expired = queue.requests[oldest].expires_ns <= queue.now_ns;
        let chosen = follows(direction).filter(|_| !is_expired).unwrap_or(oldest);
        self.last_direction = direction;
        self.batching = 0;
        Some(chosen).filter(came_by_then)
    }

    fn choose(&mut self, queue: &Queue) -> Option<RequestId> {
        if let Some(aged) = self.aged(queue) {
            return Some(aged);
        }
        for at in 0..self.levels.len() {
            if let Some(id) = self.choose_in_level(queue, at, queue.now_ns) {
                return Some(id);
            }
            if self.levels[at].in_flight > 0 {
                return None;
            }
        }
        None
    }

    fn waiting(&mut self, request: &Request) -> &mut Waiting {
        &mut self.levels[request.class as usize].waiting[request.direction.index()]
    }
}

impl Scheduler for MqDeadline {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let expires_ns = queue.now_ns + self.expire_ns[queue.requests[id].direction.index()];
        queue.requests[id].expires_ns = expires_ns;
        let waiting = self.waiting(&queue.requests[id]);
        waiting.sorted.insert(&queue.requests, id);
        waiting.fifo.push(&mut queue.requests, id);
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        queue.find_last_merge(bio).or_else(|| queue.find_back(bio, |_| true)).or_else(|| {
            let sorted = &self.levels[bio.class as usize].waiting[bio.direction.index()].sorted;
            let id = sorted.starts_at(bio.end_sector())?;
            let side = queue.side(id, bio)?;
            self.front_merges.then_some((id, side))
        })
    }

    fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
        if queue.requests[id].start_sector != old_start {
            self.waiting(&queue.requests[id]).sorted.moved(&queue.requests, id, old_start);
        }
    }

    fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
        let request = &queue.requests[id];
        let sorted = &self.levels[request.class as usize].waiting[request.direction.index()].sorted;
        match side {
            Side::Back => sorted.successor(request),
            Side::Front => sorted.predecessor(request),
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
        let earlier_ns = queue.requests[gone].expires_ns;
        let is_older = earlier_ns < queue.requests[id].expires_ns;
        let waiting = self.waiting(&queue.requests[gone]);
        waiting.sorted.remove(&queue.requests, gone);
        if is_older {
            queue.requests[id].expires_ns = earlier_ns;
            waiting.fifo.take_place(&mut queue.requests, id, gone);
        } else {
            waiting.fifo.remove(&mut queue.requests, gone);
        }
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let Some(id) = self.choose(queue) else { return false };
        let request = &queue.requests[id];
        self.batching += 1;
        self.levels[request.class as usize].in_flight += 1;
        let waiting = self.waiting(request);
        waiting.latest = request.start_sector;
        waiting.sorted.remove(&queue.requests, id);
        waiting.fifo.remove(&mut queue.requests, id);
        queue.dispatch_last(id);
        true
    }

    fn completed(&mut self, _queue: &mut Queue, request: &Request) {
        self.levels[request.class as usize].in_flight -= 1;
    }

    fn tag_limit(&self, bio: &Bio, tags: usize) -> usize {
        if bio.sync && bio.direction == Direction::Read {
            return tags;
        }
        // 0 stands for all there are.
        if self.async_depth == 0 { tags } else { self.async_depth.min(tags) }
    }

    fn len(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }
}
