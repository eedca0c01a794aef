//! What a layer is made of, and what it answers.

use super::drive::Drive;
use super::flush::Flushing;
use super::plug::Plugging;
use super::pool::Sharing;
use crate::queue::Limits;
use crate::scheduler::Scheduler;

/// What a layer is made of.
pub struct Parts {
    /// How requests are held back.
    pub plugging: Plugging,
    /// Which requests share a pool.
    pub sharing: Sharing,
    /// Requests of a pool.
    pub nr_requests: usize,
    /// How far requests grow.
    pub limits: Limits,
    /// The drive has heads.
    pub rotational: bool,
    /// How writes that ask for flushes are served.
    pub flushing: Flushing,
    /// The drive takes writes with FUA; else a flush follows them.
    pub takes_fua: bool,
    /// Chooses what the drive gets.
    pub scheduler: Box<dyn Scheduler + Send>,
    /// Target of writeback throttling, nanoseconds; without it nothing is throttled.
    pub throttle_ns: Option<u64>,
    /// Serves it.
    pub drive: Drive,
}

/// What became of a bio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// It is queued.
    Queued,
    /// There is no request for it. Its process sleeps until [`Layer::next_woken`] names it.
    Asleep,
}
