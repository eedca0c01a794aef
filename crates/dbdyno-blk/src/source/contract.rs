//! What every source of load promises.

use crate::layer::Pools;
use crate::queue::Bio;

/// What a process does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Asks for I/O.
    Submit(Bio),
    /// Returns from the kernel or waits: nothing it asked for is held back any longer.
    Unplug(u32),
    /// Ends.
    Exit(u32),
}

/// Processes that offer load.
///
/// A process that sleeps for a request takes no step until it is awake. One that submitted takes a [`Step::Unplug`]
/// after it, at the same time or later.
pub trait Source {
    /// When a process wants to take a step although nothing completes; `None` if none does.
    fn next_due(&self) -> Option<u64>;

    /// The layer's requests, before every step: a source may go by congestion.
    fn see(&mut self, _pools: &Pools) {}

    /// What some process does now; `None` if none does anything at `now_ns`.
    fn step(&mut self, now_ns: u64) -> Option<Step>;

    /// There was no request for the bio that the last step submitted: its process sleeps.
    fn asleep(&mut self, process: u32);

    /// A process that slept got its request.
    fn awake(&mut self, process: u32);

    /// A bio is finished.
    fn finished(&mut self, now_ns: u64, bio: &Bio);
}
