//! The requests of one process in cfq and bfq (or all asynchronous ones of a priority), and the habits of a process:
//! how long it thinks between two requests, and how far they lie apart.

use crate::queue::{Bio, Fifo, Queue, Request, RequestId, Side, Sorted};

/// The first queues are those of asynchronous requests, by priority.
pub(super) const ASYNC_QUEUES: u32 = 8;

/// Which queue has a process's synchronous requests, or all asynchronous ones of its priority.
pub(super) fn place(process: u32, sync: bool, priority: u8) -> u32 {
    if sync { ASYNC_QUEUES + process } else { u32::from(priority) }
}

/// A queue of requests with the one that is next for the head.
#[derive(Debug, Default)]
pub(super) struct ProcessQueue {
    pub fifo: Fifo,
    pub sorted: Sorted,
    pub next: Option<RequestId>,
}

impl ProcessQueue {
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Adds a request; it becomes the next if it is nearer to the head.
    pub fn insert(&mut self, queue: &mut Queue, id: RequestId, nearness: Nearness) {
        self.fifo.push(&mut queue.requests, id);
        self.sorted.insert(&queue.requests, id);
        self.prefer(queue, id, nearness);
    }

    /// Takes a request out; `head` is where the search for what follows begins.
    pub fn remove(&mut self, queue: &mut Queue, id: RequestId, nearness: Nearness, head: u64) {
        self.sorted.remove(&queue.requests, id);
        self.fifo.remove(&mut queue.requests, id);
        if self.next == Some(id) {
            self.next = self.follower(queue, &queue.requests[id], nearness, head);
        }
    }

    /// Gives a request that grew at its front its new place.
    pub fn merged(&mut self, queue: &Queue, id: RequestId, old_start: u64, nearness: Nearness) {
        if queue.requests[id].start_sector != old_start {
            self.sorted.moved(&queue.requests, id, old_start);
            self.prefer(queue, id, nearness);
        }
    }

    /// A request that begins where a bio ends.
    pub fn find_front(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        let id = self.sorted.starts_at(bio.end_sector())?;
        Some((id, queue.side(id, bio)?))
    }

    /// What lies beside a request.
    pub fn neighbour(&self, request: &Request, side: Side) -> Option<RequestId> {
        match side {
            Side::Back => self.sorted.successor(request),
            Side::Front => self.sorted.predecessor(request),
        }
    }

    /// Forgets `gone`, which becomes a part of `id`; if it is older, `id` takes its place in the queue by age, with its
    /// expiry.
    pub fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId, nearness: Nearness) {
        let earlier_ns = queue.requests[gone].expires_ns;
        if earlier_ns < queue.requests[id].expires_ns {
            queue.requests[id].expires_ns = earlier_ns;
            self.fifo.remove(&mut queue.requests, id);
            self.fifo.insert_after(&mut queue.requests, gone, id);
        }
        self.remove(queue, gone, nearness, queue.end_sector);
    }

    fn prefer(&mut self, queue: &Queue, id: RequestId, nearness: Nearness) {
        let start = |id: RequestId| queue.requests[id].start_sector;
        if self.next.is_none_or(|old| nearness.prefers(queue.end_sector, start(id), start(old))) {
            self.next = Some(id);
        }
    }

    fn follower(&self, queue: &Queue, of: &Request, nearness: Nearness, head: u64) -> Option<RequestId> {
        let after = self.sorted.successor(of).or_else(|| self.sorted.first())?;
        let Some(before) = self.sorted.predecessor(of) else { return Some(after) };
        let start = |id: RequestId| queue.requests[id].start_sector;
        Some(if nearness.prefers(head, start(before), start(after)) { before } else { after })
    }
}

/// A request that a bio may join, of those in the queue that it would be put into: `backlog`, which is number `at`.
pub(super) fn find_own(queue: &Queue, bio: &Bio, at: u32, backlog: Option<&ProcessQueue>) -> Option<(RequestId, Side)> {
    let is_own = |id: RequestId| queue.requests[id].owner == at;
    let last = queue.find_last_merge(bio).filter(|(id, _)| is_own(*id));
    last.or_else(|| queue.find_back(bio, is_own)).or_else(|| backlog?.find_front(queue, bio))
}

/// What cfq and bfq have in common of [`Scheduler`](super::contract::Scheduler): a queue for each process in `served`.
macro_rules! by_process {
    () => {
        fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
            let at = queue.requests[id].owner as usize;
            self.served[at].backlog.merged(queue, id, old_start, self.nearness);
        }

        fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
            let request = &queue.requests[id];
            self.served[request.owner as usize].backlog.neighbour(request, side)
        }

        fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
            let backlog = &mut self.served[queue.requests[gone].owner as usize].backlog;
            backlog.absorbed(queue, id, gone, self.nearness);
            self.length -= 1;
        }

        fn next_due(&self) -> Option<u64> {
            self.idle_until_ns
        }

        fn len(&self) -> usize {
            self.length
        }
    };
}

/// What all of cfq has in common: a process that is waited for may always queue, and is not waited for once it has
/// exited.
macro_rules! by_cfq_process {
    () => {
        fn may_queue(&self, _queue: &Queue, bio: &Bio) -> May {
            let at = place(bio.process, bio.sync, bio.priority);
            if self.idle_until_ns.is_some() && self.active == Some(at) { May::Must } else { May::Yes }
        }

        fn exited(&mut self, queue: &mut Queue, process: u32) {
            let at = ASYNC_QUEUES + process;
            if let Some(served) = self.served.get_mut(at as usize) {
                served.has_exited = true;
                if self.active == Some(at) && self.idle_until_ns.is_some() {
                    self.expire(queue.now_ns);
                }
            }
        }
    };
}

/// A mean that forgets: every sample takes one eighth of the weight. Fixed point with eight binary digits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fading {
    /// Weight of what was seen; 256 is full.
    samples: u64,
    total: u64,
    mean: u64,
}

impl Fading {
    pub(super) fn add(&mut self, sample: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * sample) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    /// The weight of what was seen, 0 before the first sample; over 80 after three.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    pub(super) fn mean(&self) -> u64 {
        self.mean
    }
}

/// Distances of a process's requests, sectors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seeks {
    mean: Fading,
    last_end: u64,
}

impl Seeks {
    /// A request from `start` to `end`. One odd jump does not count for more than four times the mean and a margin.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        let distance = start.abs_diff(self.last_end);
        let margin = if self.mean.samples() <= 60 { 2_097_152 } else { 131_072 };
        self.mean.add(distance.min(self.mean.mean() * 4 + margin));
        self.last_end = end;
    }

    pub(super) fn samples(&self) -> u64 {
        self.mean.samples()
    }

    /// Sectors.
    pub(super) fn mean(&self) -> u64 {
        self.mean.mean()
    }

    /// Where the last request ends.
    pub(super) fn last_end(&self) -> u64 {
        self.last_end
    }
}

/// How far back a head may go, and what that costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nearness {
    /// Sectors behind the head within which one is a choice at all.
    pub back_most: u64,
    /// How many times as far a sector behind counts as one ahead.
    pub penalty: u64,
}

impl Nearness {
    /// Whether a request at `sector` is better than one at `other_sector` for a head at `head`. Of two that are far
    /// behind, the lower one is: the head goes back to the start.
    pub(super) fn prefers(self, head: u64, sector: u64, other_sector: u64) -> bool {
        match (self.cost(head, sector), self.cost(head, other_sector)) {
            (Some(this), Some(that)) if this != that => this < that,
            (Some(_), Some(_)) => sector > other_sector,
            (None, None) => sector < other_sector,
            (this, _) => this.is_some(),
        }
    }

    /// What it costs to go there; `None` is too far behind.
    fn cost(self, head: u64, start: u64) -> Option<u64> {
        if start >= head {
            Some(start - head)
        } else if start + self.back_most >= head {
            Some((head - start) * self.penalty)
        } else {
            None
        }
    }
}

pub(super) use {by_cfq_process, by_process};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ahead_is_better_than_behind_unless_twice_as_far() {
        let nearness = Nearness { back_most: 1000, penalty: 2 };
        assert!(nearness.prefers(5000, 5100, 4940));
        assert!(nearness.prefers(5000, 4960, 5100));
        assert!(nearness.prefers(5000, 9000, 3000), "3000 is too far behind");
        assert!(nearness.prefers(5000, 10, 3000), "both are: from the start");
    }

    #[test]
    fn a_fading_mean_comes_to_what_it_sees() {
        let mut mean = Fading::default();
        (0..100).for_each(|_| mean.add(1000));
        assert!((990..=1040).contains(&mean.mean()), "{mean:?}");
        (0..3).for_each(|_| mean.add(0));
        assert!((550..750).contains(&mean.mean()), "{mean:?}");
    }
}
