//! How many requests there may be, and who waits for one.
//!
//! To 2.6.29 reads and writes, later synchronous and asynchronous requests, each have a pool of `nr_requests`. It is congested from
//! nr - nr/8 + 1 requests on and clear below nr - nr/8 - nr/16 - 1, which steers writeback; it blocks none. A process that
//! fills it, or slept and is woken, is a *batcher*: it may take 32 more within 20 ms, up to one and a half times
//! `nr_requests`; all others sleep, first come first served. In blk-mq all share the tags.

use std::collections::VecDeque;

use crate::queue::{Bio, Direction};
use crate::scheduler::May;

/// Requests that a batcher may take.
const BATCH: u32 = 32;
/// How long a process stays a batcher, nanoseconds.
const BATCH_NS: u64 = 20_000_000;

/// Which requests share a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Reads have one, writes another (to 2.6.29).
    Direction,
    /// Reads and synchronous writes have one, asynchronous writes another.
    Sync,
    /// One for all: the tags of blk-mq, with no more than there are.
    Tags,
}

#[derive(Debug, Default)]
struct Pool {
    count: usize,
    congested: bool,
    full: bool,
    sleepers: VecDeque<Bio>,
}

/// What a process may take of a full pool.
#[derive(Debug, Clone, Copy, Default)]
struct Batcher {
    left: u32,
    since_ns: u64,
}

impl Batcher {
    fn is_one(self, now_ns: u64) -> bool {
        // One who has not begun stays a batcher however late it begins.
        self.left == BATCH || (self.left > 0 && now_ns < self.since_ns + BATCH_NS)
    }
}

/// The pools of one device.
#[derive(Debug)]
pub struct Pools {
    sharing: Sharing,
    nr_requests: usize,
    each: [Pool; 2],
    batchers: Vec<Batcher>,
}

impl Pools {
    /// Empty ones of `nr_requests` each.
    pub fn new(sharing: Sharing, nr_requests: usize) -> Self {
        Self { sharing, nr_requests, each: Default::default(), batchers: Vec::new() }
    }

    /// Requests from which on a pool counts as congested.
    pub fn congestion_on(nr_requests: usize) -> usize {
        nr_requests - nr_requests / 8 + 1
    }

    /// Requests below which a congested pool is clear again.
    pub fn congestion_off(nr_requests: usize) -> usize {
        (nr_requests - nr_requests / 8 - nr_requests / 16).saturating_sub(1)
    }

    /// Which pool a bio's request comes from.
    #[inline]
    pub(super) fn index(&self, direction: Direction, sync: bool) -> usize {
        match self.sharing {
            Sharing::Direction => direction.index(),
            Sharing::Sync => usize::from(direction == Direction::Write && !sync),
            Sharing::Tags => 0,
        }
    }

    /// The pool that a bio's request comes from is congested: who must not block should write elsewhere.
    pub fn is_congested(&self, direction: Direction, sync: bool) -> bool {
        self.each[self.index(direction, sync)].congested
    }

    /// Requests allocated, of all pools.
    pub fn allocated(&self) -> usize {
        self.each.iter().map(|pool| pool.count).sum()
    }

    /// Bios that wait for a request.
    pub fn sleepers(&self) -> usize {
        self.each.iter().map(|pool| pool.sleepers.len()).sum()
    }

    /// Takes a request for a bio, if there is one; `tag_limit` is the scheduler's, of [`Sharing::Tags`].
    pub(super) fn take(&mut self, now_ns: u64, bio: &Bio, may: May, tag_limit: usize) -> bool {
        if may == May::No {
            return false;
        }
        let at = self.index(bio.direction, bio.sync);
        if self.sharing == Sharing::Tags {
            let free = self.each[0].count < tag_limit.min(self.nr_requests);
            self.each[0].count += usize::from(free);
            return free;
        }
        let nr_requests = self.nr_requests;
        let next = self.each[at].count + 1;
        if next >= Self::congestion_on(nr_requests) {
            if next >= nr_requests {
                let is_batcher = self.batcher(bio.process).is_one(now_ns);
                if !self.each[at].full {
                    self.each[at].full = true;
                    self.begin_batch(now_ns, bio.process);
                } else if may != May::Must && !is_batcher {
                    return false;
                }
            }
            self.each[at].congested = true;
        }
        if self.each[at].count >= nr_requests * 3 / 2 {
            return false;
        }
        self.each[at].count = next;
        let batcher = self.batcher(bio.process);
        if batcher.is_one(now_ns) {
            batcher.left -= 1;
        }
        true
    }

    /// Gives a request back.
    pub(super) fn give_back(&mut self, at: usize) {
        let off = Self::congestion_off(self.nr_requests);
        let pool = &mut self.each[at];
        pool.count -= 1;
        if pool.count < off {
            pool.congested = false;
        }
        if pool.count < self.nr_requests {
            pool.full = false;
        }
    }

    /// Has a bio wait for a request.
    pub(super) fn sleep(&mut self, bio: Bio) {
        let at = self.index(bio.direction, bio.sync);
        self.each[at].sleepers.push_back(bio);
    }

    /// The process that waits longest in a pool that has requests.
    pub(super) fn first_sleeper(&self, at: usize) -> Option<Bio> {
        let pool = &self.each[at];
        (pool.count < self.nr_requests).then(|| pool.sleepers.front().copied())?
    }

    /// Wakes the first sleeper of a pool, who becomes a batcher and takes a request, if it may have one.
    pub(super) fn wake(&mut self, now_ns: u64, at: usize, may: May, tag_limit: usize) -> Option<Bio> {
        let bio = self.first_sleeper(at)?;
        let before = *self.batcher(bio.process);
        self.begin_batch(now_ns, bio.process);
        if self.take(now_ns, &bio, may, tag_limit) {
            return self.each[at].sleepers.pop_front();
        }
        *self.batcher(bio.process) = before;
        None
    }

    fn batcher(&mut self, process: u32) -> &mut Batcher {
        let process = process as usize;
        if process >= self.batchers.len() {
            self.batchers.resize(process + 1, Batcher::default());
        }
        &mut self.batchers[process]
    }

    fn begin_batch(&mut self, now_ns: u64, process: u32) {
        *self.batcher(process) = Batcher { left: BATCH, since_ns: now_ns };
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
