//! What every scheduler promises.

use crate::queue::{Bio, Queue, Request, RequestId, Side};

/// Whether a process may have a request, apart from how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// Like anyone else.
    Yes,
    /// Even if the pool is full: the scheduler waits for it.
    Must,
    /// Not now.
    No,
}

/// Decides what the drive gets next.
///
/// Every request that is inserted is dispatched exactly once, or absorbed by another; none waits for ever while the drive
/// serves others; while a scheduler has requests it dispatches one when asked, unless it waits on purpose, and then
/// [`Scheduler::next_due`] says until when or a completion ends it. The same calls give the same order.
pub trait Scheduler {
    /// Takes a request. It is in no list, and is held until it is dispatched.
    fn insert(&mut self, queue: &mut Queue, id: RequestId);

    /// A request held here that a bio may join.
    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)>;

    /// A bio joined a request held here; before, it started at `old_start`.
    fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
        let _ = (queue, id, old_start);
    }

    /// What lies next to a request held here, behind it or before it, and could become one with it.
    fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
        let _ = (queue, id, side);
        None
    }

    /// Forgets `gone`, which becomes a part of `id`; both are held here.
    fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
        let _ = (queue, id, gone);
    }

    /// Moves at least one request to the dispatch list; false if there is none to move, or it waits on purpose.
    fn dispatch(&mut self, queue: &mut Queue) -> bool;

    /// Moves all requests to the dispatch list, without waiting for any: a barrier comes behind them.
    fn drain(&mut self, queue: &mut Queue) {
        while self.dispatch(queue) {}
    }

    /// The driver issued a request.
    fn started(&mut self, queue: &mut Queue, id: RequestId) {
        let _ = (queue, id);
    }

    /// The drive finished a request, which is about to go.
    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        let _ = (queue, request);
    }

    /// When [`Scheduler::timer`] is to be called.
    fn next_due(&self) -> Option<u64> {
        None
    }

    /// The time of [`Scheduler::next_due`] has come; the driver will ask for a request afterwards.
    fn timer(&mut self, queue: &mut Queue) {
        let _ = queue;
    }

    /// Whether the process of a bio may have a request for it.
    fn may_queue(&self, queue: &Queue, bio: &Bio) -> May {
        let _ = (queue, bio);
        May::Yes
    }

    /// Most tags of the device that may be in use for this bio to get one.
    fn tag_limit(&self, bio: &Bio, tags: usize) -> usize {
        let _ = bio;
        tags
    }

    /// A process is gone for good.
    fn exited(&mut self, queue: &mut Queue, process: u32) {
        let _ = (queue, process);
    }

    /// Requests held here.
    fn len(&self) -> usize;

    /// None is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
