//! The requests of one process, or of all asynchronous ones of a priority, in cfq and bfq.

use super::habits::Nearness;
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

    /// Forgets `gone`, which becomes a part of `id`; if it is older, `id` takes its place in the queue by age, with its expiry.
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

/// A request that a bio may join, of those in the queue that it would be put into: `held`, which is number `at`.
pub(super) fn find_own(queue: &Queue, bio: &Bio, at: u32, held: Option<&ProcessQueue>) -> Option<(RequestId, Side)> {
    let is_own = |id: RequestId| queue.requests[id].owner == at;
    let last = queue.find_last_merge(bio).filter(|(id, _)| is_own(*id));
    last.or_else(|| queue.find_back(bio, is_own)).or_else(|| held?.find_front(queue, bio))
}

/// What cfq and bfq have in common of [`Scheduler`](super::contract::Scheduler): a queue for each process in `served`.
macro_rules! by_process {
    () => {
        fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
            let at = queue.requests[id].owner as usize;
            self.served[at].held.merged(queue, id, old_start, self.nearness);
        }

        fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
            let request = &queue.requests[id];
            self.served[request.owner as usize].held.neighbour(request, side)
        }

        fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
            let held = &mut self.served[queue.requests[gone].owner as usize].held;
            held.absorbed(queue, id, gone, self.nearness);
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

/// What all of cfq has in common: a process that is waited for may always queue, and is not waited for once it has exited.
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

pub(super) use {by_cfq_process, by_process};
