//! none, of blk-mq: no scheduler. Requests go to the drive as they come; a bio joins one of the last eight that wait.
//!
//! Cannot: several software queues; all processes are on one CPU.

use super::contract::{Scheduler, Tunable};
use crate::queue::{Bio, Fifo, Queue, RequestId, Side};

pub(super) const TUNABLES: &[Tunable] = &[];

/// How many requests a bio is tried on, from the newest.
const TRIED: usize = 8;

#[derive(Default)]
pub(super) struct NoScheduler {
    fifo: Fifo,
}

impl Scheduler for NoScheduler {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        self.fifo.push(&mut queue.requests, id);
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        let mut recent = self.fifo.backwards(&queue.requests).take(TRIED);
        recent.find_map(|id| Some((id, queue.side(id, bio)?)))
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let next = self.fifo.pop(&mut queue.requests);
        next.inspect(|id| queue.dispatch_last(*id)).is_some()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }
}
