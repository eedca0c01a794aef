//! What bounds a run, and what its threads share of that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::run_options::{Ignore, Loop};
use crate::share::Share;

/// When and why a run ends other than by the clients being done, and how events start.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// When the run starts (`CLOCK_MONOTONIC`, ns), for all threads: an open loop's events are due from then on.
    pub start_ns: u64,
    /// No event starts at or after this time (`CLOCK_MONOTONIC`, ns); those in flight finish.
    pub deadline_ns: Option<u64>,
    /// The run is given up after more refused statements than this.
    pub errors_max: u64,
    /// Errors that do not count towards it.
    pub ignore: &'a Ignore,
    /// The run is given up when no connection got a byte for this long, ns.
    pub stall_ns: u64,
    /// A connection on which a reply has begun and not ended for this long is given up, ns.
    pub reply_ns: u64,
    /// How long a lost connection is tried for again, ns; 0: its loss ends the run.
    pub reconnect_ns: u64,
    /// A connection that is lost, and not tried for again, ends the run as its deadline would.
    pub expects_loss: bool,
    /// When a client starts an event; the rate is that of all threads of all processes.
    pub pace: Loop,
    /// Of the random times.
    pub seed: u64,
    /// Number of this thread among `threads`.
    pub thread: usize,
    /// Threads that share the load of this process.
    pub threads: usize,
    /// The part of the load that is this process's.
    pub share: Share,
}

/// What the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    /// Events that may still start; `None` without a bound.
    pub(super) events_left: Option<AtomicU64>,
    /// Errors that counted.
    pub(super) errors: AtomicU64,
    /// A thread gave up.
    pub(super) given_up: AtomicBool,
    /// No event starts any more, before the deadline; those in flight finish.
    ended: AtomicBool,
    /// Rows added by all.
    pub rows: AtomicU64,
}

impl Shared {
    /// For a run of at most so many events.
    pub fn new(events: Option<u64>) -> Self {
        Self {
            events_left: events.map(AtomicU64::new),
            errors: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            rows: AtomicU64::new(0),
        }
    }

    /// Has all threads end early.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Whether a thread gave up.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Has all threads end now as they would at the deadline.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether they are to.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Takes one of the events that may still start.
    #[inline]
    pub(super) fn take_event(&self) -> bool {
        let Some(left) = &self.events_left else { return true };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}
