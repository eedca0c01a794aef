//! The requests of one process, or of all asynchronous ones of a priority, in cfq.

use super::habits::Nearness;
use crate::queue::{Fifo, Queue, Request, RequestId, Side, Sorted};

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
    pub fn moved(&mut self, queue: &Queue, id: RequestId, old_start: u64, nearness: Nearness) {
        self.sorted.moved(&queue.requests, id, old_start);
        self.prefer(queue, id, nearness);
    }

    /// What lies beside a request.
    pub fn neighbour(&self, request: &Request, side: Side) -> Option<RequestId> {
        match side {
            Side::Back => self.sorted.successor(request),
            Side::Front => self.sorted.predecessor(request),
        }
    }

    /// Has `id` take the place of `gone` in the queue by age, if that one is older, with its expiry.
    pub fn inherit(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
        let earlier_ns = queue.requests[gone].expires_ns;
        if earlier_ns < queue.requests[id].expires_ns {
            queue.requests[id].expires_ns = earlier_ns;
            self.fifo.remove(&mut queue.requests, id);
            self.fifo.insert_after(&mut queue.requests, gone, id);
        }
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
