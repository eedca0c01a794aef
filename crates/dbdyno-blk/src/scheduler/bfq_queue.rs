//! A queue of bfq, with its place in virtual time.

use super::process_queue::ProcessQueue;
use crate::queue::{Class, Request};

/// How many times an asynchronous sector counts.
pub(super) const ASYNC_CHARGE: u64 = 3;
/// A jump of more sectors counts as a seek, of more than so many of the last 32 a process seeks.
const JUMP: u64 = 800;
const SEEKS_MOST: u32 = 19;
/// By how much a process that was idle weighs more.
pub(super) const RAISED: u64 = 30;
/// How long it does, on a drive with heads and without, as long as the drive's rate counts as two thirds of the usual; and for how
/// many sectors.
const RAISED_NS: [u64; 2] = [10_500_000_000, 3_750_000_000];
const RAISED_SECTORS: u64 = 120_000;
/// Binary digits behind the point of virtual times.
pub(super) const SCALE: u32 = 22;

/// One queue, with its place in virtual time.
#[derive(Debug)]
pub(super) struct Served {
    pub held: ProcessQueue,
    pub sync: bool,
    pub class: Class,
    pub priority: u8,
    pub in_flight: usize,
    /// Virtual times: when it is eligible, when its budget would be over.
    pub start: u64,
    pub finish: u64,
    pub budget: u64,
    /// Sectors of this turn, as they are charged.
    pub charged: u64,
    jumps: u32,
    last_sector: u64,
    pub last_end_ns: u64,
    raised_until_ns: u64,
    pub has_exited: bool,
    /// What it may still have while it weighs more, sectors.
    raised_sectors: u64,
    /// Its oldest request was looked at in this turn.
    pub looked: bool,
}

impl Served {
    pub fn new(sync: bool, class: Class, priority: u8, budget: u64) -> Self {
        Self {
            held: ProcessQueue::default(),
            sync,
            class,
            priority,
            in_flight: 0,
            start: 0,
            finish: 0,
            budget,
            charged: 0,
            jumps: 0,
            last_sector: 0,
            last_end_ns: 0,
            raised_until_ns: 0,
            has_exited: false,
            raised_sectors: 0,
            looked: false,
        }
    }

    pub fn is_raised(&self, now_ns: u64) -> bool {
        now_ns < self.raised_until_ns && self.raised_sectors > 0
    }

    pub fn weight(&self, now_ns: u64) -> u64 {
        let own = if self.class == Class::Idle { 1 } else { 10 * u64::from(8 - self.priority.min(7)) };
        if self.is_raised(now_ns) { own * RAISED } else { own }
    }

    pub fn is_seeky(&self) -> bool {
        self.jumps.count_ones() > SEEKS_MOST
    }

    /// Has it weigh more for a while: it was idle.
    pub fn raise(&mut self, now_ns: u64, rotational: bool) {
        self.raised_until_ns = now_ns + RAISED_NS[usize::from(!rotational)];
        self.raised_sectors = RAISED_SECTORS;
    }

    /// A request arrives.
    pub fn learn(&mut self, request: &Request) {
        let is_far = request.start_sector.abs_diff(self.last_sector) > JUMP;
        self.jumps = self.jumps << 1 | u32::from(is_far);
        self.last_sector = request.end_sector();
    }

    /// Pays for a request that is dispatched; returns what it is charged, sectors.
    pub fn pay(&mut self, sectors: u64) -> u64 {
        let charged = sectors * if self.sync { 1 } else { ASYNC_CHARGE };
        self.in_flight += 1;
        self.charged += charged;
        self.raised_sectors = self.raised_sectors.saturating_sub(sectors);
        charged
    }

    /// Virtual time of so many sectors.
    pub fn share(&self, now_ns: u64, sectors: u64) -> u64 {
        (sectors << SCALE) / self.weight(now_ns)
    }
}
