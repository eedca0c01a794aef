//! Flushes of the drive's cache, and what must not go before them.
//!
//! To 2.6.36 a write that asks for a flush is a *barrier*: all before it is served first, then the flush, the write, and another flush
//! unless the write was sent with FUA; nothing else meanwhile. From 2.6.37 it is a *sequence* of the same steps beside all
//! other requests: one flush at a time serves all sequences that wait for one, and none begins while sequences write their data, for 5 s
//! at most. A bare flush is a barrier, or a sequence, of one step.

use crate::queue::{Fifo, Queue, RequestId};

/// How a kernel flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flushing {
    /// To 2.6.36.
    Barrier,
    /// From 2.6.37.
    Sequence,
}

/// A flush waits no longer than this for others' data, nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Sequences that wait for a flush.
#[derive(Debug, Default)]
pub(super) struct Flusher {
    pending: Fifo,
    pending_since_ns: u64,
    /// Those that the flush at the drive is for.
    running: Fifo,
    command: Option<RequestId>,
    /// Sequences that write their data.
    pub writing: usize,
}

impl Flusher {
    /// Has a sequence wait for a flush.
    pub fn add(&mut self, queue: &mut Queue, id: RequestId) {
        if self.pending.is_empty() {
            self.pending_since_ns = queue.now_ns;
        }
        self.pending.push(&mut queue.requests, id);
    }

    /// The flush to send now, if one is due.
    pub fn next_command(&mut self, queue: &mut Queue) -> Option<RequestId> {
        let is_patient = self.writing > 0 && queue.now_ns < self.pending_since_ns + PATIENCE_NS;
        if self.command.is_some() || self.pending.is_empty() || is_patient {
            return None;
        }
        self.running = std::mem::take(&mut self.pending);
        let command = queue.requests.allocate_flush(queue.now_ns);
        self.command = Some(command);
        Some(command)
    }

    /// Whether this is the flush at the drive.
    pub fn is_command(&self, id: RequestId) -> bool {
        self.command == Some(id)
    }

    /// The flush is finished: call until there is none for a sequence that it was for.
    pub fn next_flushed(&mut self, queue: &mut Queue) -> Option<RequestId> {
        let next = self.running.pop(&mut queue.requests);
        if next.is_none() {
            // Only now: a sequence woken meanwhile must not begin the next flush.
            self.command = None;
        }
        next
    }
}
