//! noop: requests go to the drive as they come.
//!
//! To 2.6.18 a bio can join only the request that was merged with last, and one that becomes that by being inserted
//! while there is none: a stream with gaps stops merging until the drive takes that request. Later any request whose
//! end it continues.
//!
//! Cannot: join requests when a process hands over what it held back (from 2.6.39); only bios join.

use super::contract::{Scheduler, Tunable};
use crate::queue::{Bio, Fifo, Queue, RequestId, Side};

pub(super) const TUNABLES: &[Tunable] = &[];

pub(super) struct Noop {
    /// Bios are merged with the request merged with last, and no other.
    only_last_merge: bool,
    fifo: Fifo,
}

impl Noop {
    pub(super) fn new(only_last_merge: bool) -> Self {
        Self { only_last_merge, fifo: Fifo::default() }
    }
}

impl Scheduler for Noop {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        self.fifo.push(&mut queue.requests, id);
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        let last = queue.find_last_merge(bio);
        if self.only_last_merge { last } else { last.or_else(|| queue.find_back(bio, |_| true)) }
    }

    fn absorbed(&mut self, queue: &mut Queue, _id: RequestId, gone: RequestId) {
        self.fifo.remove(&mut queue.requests, gone);
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let next = self.fifo.pop(&mut queue.requests);
        next.inspect(|id| queue.dispatch_sorted(*id)).is_some()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }
}
