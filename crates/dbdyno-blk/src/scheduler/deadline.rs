//! deadline: ascending batches of one direction; who waited too long begins the next one.
//!
//! To 2.6.24 a batch ends at the first gap between two requests, so the oldest request's age is looked at there: once
//! it is over its expiry, service is in order of arrival, with what continues each request behind it. From 2.6.25 gaps
//! stay in the batch.

use super::contract::{Scheduler, SchedulerError, Settings, Tunable, Unit};
use crate::queue::{Bio, Direction, Fifo, Queue, RequestId, Side, Sorted};

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("read_expire", 500, Unit::Milliseconds),
    Tunable::new("write_expire", 5000, Unit::Milliseconds),
    Tunable::new("writes_starved", 2, Unit::Count),
    Tunable::new("front_merges", 1, Unit::Switch),
    Tunable::new("fifo_batch", 16, Unit::Count),
];

#[derive(Default)]
struct Waiting {
    fifo: Fifo,
    sorted: Sorted,
    /// What follows the one dispatched last, if that was of this direction.
    next: Option<RequestId>,
}

pub(super) struct Deadline {
    expire_ns: [u64; 2],
    writes_starved: u64,
    front_merges: bool,
    fifo_batch: u64,
    /// A batch ends where a request does not begin at the end of the one before.
    gap_ends_batch: bool,
    waiting: [Waiting; 2],
    batching: u64,
    /// Times that reads went first while writes waited.
    starved: u64,
    /// Where the request dispatched last ends.
    last_end: u64,
}

impl Deadline {
    pub(super) fn new(overrides: &[(&str, u64)], gap_ends_batch: bool) -> Result<Self, SchedulerError> {
        let settings = Settings::new("deadline", TUNABLES, overrides)?;
        Ok(Self {
            expire_ns: [settings.ns("read_expire"), settings.ns("write_expire")],
            writes_starved: settings.get("writes_starved"),
            front_merges: settings.get("front_merges") == 1,
            fifo_batch: settings.get("fifo_batch"),
            gap_ends_batch,
            waiting: [Waiting::default(), Waiting::default()],
            batching: 0,
            starved: 0,
            last_end: 0,
        })
    }

    /// The next request of the batch, if that goes on.
    fn choose_in_batch(&mut self, queue: &Queue) -> Option<RequestId> {
        let [reads, writes] = &self.waiting;
        let next = writes.next.or(reads.next)?;
        if self.gap_ends_batch && queue.requests[next].start_sector != self.last_end {
            self.batching += self.fifo_batch;
        }
        (self.batching < self.fifo_batch).then_some(next)
    }

    /// The first request of a new batch.
    fn choose_in_new_batch(&mut self, queue: &Queue) -> Option<RequestId> {
        let [reads, writes] = &self.waiting;
        let direction = match (reads.fifo.is_empty(), writes.fifo.is_empty()) {
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
        self.batching = 0;
        let chosen = &self.waiting[direction.index()];
        let oldest = chosen.fifo.head()?;
        let is_expired = queue.requests[oldest].expires_ns < queue.now_ns;
        Some(chosen.next.filter(|_| !is_expired).unwrap_or(oldest))
    }

    fn forget(&mut self, queue: &mut Queue, id: RequestId) {
        let waiting = &mut self.waiting[queue.requests[id].direction.index()];
        if waiting.next == Some(id) {
            waiting.next = waiting.sorted.successor(&queue.requests[id]);
        }
        waiting.sorted.remove(&queue.requests, id);
        waiting.fifo.remove(&mut queue.requests, id);
    }
}

impl Scheduler for Deadline {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let at = queue.requests[id].direction.index();
        queue.requests[id].expires_ns = queue.now_ns + self.expire_ns[at];
        self.waiting[at].fifo.push(&mut queue.requests, id);
        self.waiting[at].sorted.insert(&queue.requests, id);
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        queue.find_last_merge(bio).or_else(|| queue.find_back(bio, |_| true)).or_else(|| {
            let id = self.waiting[bio.direction.index()].sorted.starts_at(bio.end_sector())?;
            let side = queue.side(id, bio)?;
            self.front_merges.then_some((id, side))
        })
    }

    fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
        if queue.requests[id].start_sector != old_start {
            self.waiting[queue.requests[id].direction.index()].sorted.moved(&queue.requests, id, old_start);
        }
    }

    fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
        let request = &queue.requests[id];
        let sorted = &self.waiting[request.direction.index()].sorted;
        match side {
            Side::Back => sorted.successor(request),
            Side::Front => sorted.predecessor(request),
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
        let (expires_ns, earlier_ns) = (queue.requests[id].expires_ns, queue.requests[gone].expires_ns);
        if earlier_ns >= expires_ns {
            return self.forget(queue, gone);
        }
        // The whole takes the older one's place in the queue.
        queue.requests[id].expires_ns = earlier_ns;
        let waiting = &mut self.waiting[queue.requests[gone].direction.index()];
        if waiting.next == Some(gone) {
            waiting.next = waiting.sorted.successor(&queue.requests[gone]);
        }
        waiting.sorted.remove(&queue.requests, gone);
        waiting.fifo.take_place(&mut queue.requests, id, gone);
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let Some(id) = self.choose_in_batch(queue).or_else(|| self.choose_in_new_batch(queue)) else { return false };
        let request = &queue.requests[id];
        let direction = request.direction;
        self.batching += 1;
        self.last_end = request.end_sector();
        self.waiting[direction.other().index()].next = None;
        self.waiting[direction.index()].next = Some(id);
        self.forget(queue, id);
        queue.dispatch_last(id);
        true
    }

    fn len(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.fifo.len()).sum()
    }
}
