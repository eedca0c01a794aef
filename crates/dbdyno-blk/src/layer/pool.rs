//! How many requests there may be, and who waits for one.
//!
//! To 2.6.29 reads and writes, later synchronous and asynchronous requests, each have a pool of `nr_requests`. It is
//! congested from nr - nr/8 + 1 requests on and clear below nr - nr/8 - nr/16 - 1, which steers writeback; it blocks
//! none. A process that fills it, or slept and is woken, is a *batcher*: it may take 32 more within 20 ms, up to one
//! and a half times `nr_requests`; all others sleep, first come first served. In blk-mq all share the tags.

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
    fn is_current(self, now_ns: u64) -> bool {
        // One who has not begun stays a batcher however late it begins.
        self.left == BATCH || (self.left > 0 && now_ns < self.since_ns + BATCH_NS)
    }
}

/// The pools of one device.
#[derive(Debug)]
pub struct Pools {
    sharing: Sharing,
    nr_requests: usize,
    pools: [Pool; 2],
    batchers: Vec<Batcher>,
}

impl Pools {
    /// Empty ones of `nr_requests` each.
    pub fn new(sharing: Sharing, nr_requests: usize) -> Self {
        Self { sharing, nr_requests, pools: Default::default(), batchers: Vec::new() }
    }

    /// A pool with this many requests or more counts as congested.
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
        self.pools[self.index(direction, sync)].congested
    }

    /// Requests allocated, of all pools.
    pub fn allocated(&self) -> usize {
        self.pools.iter().map(|pool| pool.count).sum()
    }

    /// Bios that wait for a request.
    pub fn sleepers(&self) -> usize {
        self.pools.iter().map(|pool| pool.sleepers.len()).sum()
    }

    /// Takes a request for a bio, if there is one; `tag_limit` is the scheduler's, of [`Sharing::Tags`].
    pub(super) fn take(&mut self, now_ns: u64, bio: &Bio, may: May, tag_limit: usize) -> bool {
        if may == May::No {
            return false;
        }
        let at = self.index(bio.direction, bio.sync);
        if self.sharing == Sharing::Tags {
            let free = self.pools[0].count < tag_limit.min(self.nr_requests);
            self.pools[0].count += usize::from(free);
            return free;
        }
        let nr_requests = self.nr_requests;
        let next = self.pools[at].count + 1;
        if next >= Self::congestion_on(nr_requests) {
            if next >= nr_requests {
                let is_batcher = self.batcher(bio.process).is_current(now_ns);
                if !self.pools[at].full {
                    self.pools[at].full = true;
                    self.begin_batch(now_ns, bio.process);
                } else if may != May::Must && !is_batcher {
                    return false;
                }
            }
            self.pools[at].congested = true;
        }
        if self.pools[at].count >= nr_requests * 3 / 2 {
            return false;
        }
        self.pools[at].count = next;
        let batcher = self.batcher(bio.process);
        if batcher.is_current(now_ns) {
            batcher.left -= 1;
        }
        true
    }

    /// Gives a request back.
    pub(super) fn give_back(&mut self, at: usize) {
        let off = Self::congestion_off(self.nr_requests);
        let pool = &mut self.pools[at];
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
        self.pools[at].sleepers.push_back(bio);
    }

    /// The process that waits longest in a pool that has requests.
    pub(super) fn first_sleeper(&self, at: usize) -> Option<Bio> {
        let pool = &self.pools[at];
        (pool.count < self.nr_requests).then(|| pool.sleepers.front().copied())?
    }

    /// Wakes the first sleeper of a pool, who becomes a batcher and takes a request, if it may have one.
    pub(super) fn wake(&mut self, now_ns: u64, at: usize, may: May, tag_limit: usize) -> Option<Bio> {
        let bio = self.first_sleeper(at)?;
        let before = *self.batcher(bio.process);
        self.begin_batch(now_ns, bio.process);
        if self.take(now_ns, &bio, may, tag_limit) {
            return self.pools[at].sleepers.pop_front();
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(process: u32) -> Bio {
        Bio::new(process, Direction::Write, 0, 8)
    }

    /// Takes requests for new processes, none of which is a batcher, and gives them back; where it becomes congested
    /// and clear.
    fn thresholds(nr_requests: usize) -> (usize, usize) {
        let mut pools = Pools::new(Sharing::Direction, nr_requests);
        let mut on = 0;
        while !pools.is_congested(Direction::Write, false) {
            assert!(pools.take(0, &write(0), May::Yes, 0));
            on += 1;
        }
        let mut off = on;
        while pools.is_congested(Direction::Write, false) {
            pools.give_back(Direction::Write.index());
            off -= 1;
        }
        (on, off + 1)
    }

    #[test]
    fn congestion_begins_and_ends_at_the_kernel_s_thresholds() {
        // The kernel is clear when the count is below the second.
        assert_eq!(thresholds(128), (113, 103));
        assert_eq!(thresholds(100_000), (87_501, 81_249));
    }

    #[test]
    fn who_fills_a_pool_takes_a_batch_and_others_sleep() {
        let mut pools = Pools::new(Sharing::Direction, 128);
        let mut take = |process, now_ns| pools.take(now_ns, &write(process), May::Yes, 0);
        for taken in 0..127 {
            assert!(take(taken, 0));
        }
        assert!(take(7, 0), "who fills the pool gets its last request");
        assert!(!take(8, 0), "who comes later sleeps");
        let batch = (0..100).take_while(|_| take(7, 1)).count();
        assert_eq!(batch, 31, "32 with the one that filled it");
    }

    #[test]
    fn a_batch_ends_after_20_ms() {
        let mut pools = Pools::new(Sharing::Direction, 4);
        let mut take = |now_ns| pools.take(now_ns, &write(1), May::Yes, 0);
        assert!((0..5).all(|_| take(0)));
        assert!(!take(BATCH_NS));
    }

    #[test]
    fn no_batch_takes_more_than_one_and_a_half_times_the_pool() {
        let mut pools = Pools::new(Sharing::Direction, 20);
        assert_eq!((0..100).take_while(|_| pools.take(0, &write(1), May::Yes, 0)).count(), 30);
        assert!(pools.take(0, &Bio::new(1, Direction::Read, 0, 8), May::Yes, 0), "reads have their own");
    }

    #[test]
    fn synchronous_writes_share_with_reads_in_later_kernels() {
        let mut pools = Pools::new(Sharing::Sync, 4);
        let asynchronous = Bio { sync: false, ..write(2) };
        assert_eq!((0..9).take_while(|_| pools.take(0, &write(1), May::Yes, 0)).count(), 6);
        assert!(!pools.take(0, &Bio::new(2, Direction::Read, 0, 8), May::Yes, 0));
        assert!(pools.take(0, &asynchronous, May::Yes, 0));
    }

    proptest! {
        #[test]
        fn sleepers_are_woken_in_the_order_they_came(nr in 4_usize..200, sleepers in 1_u32..100) {
            let mut pools = Pools::new(Sharing::Direction, nr);
            while pools.take(0, &write(0), May::Yes, 0) {}
            for process in 1..=sleepers {
                prop_assert!(!pools.take(0, &write(process), May::Yes, 0));
                pools.sleep(write(process));
            }
            let mut woken = Vec::new();
            while pools.sleepers() > 0 {
                pools.give_back(Direction::Write.index());
                woken.extend(pools.wake(0, Direction::Write.index(), May::Yes, 0).map(|bio| bio.process));
                prop_assert!(pools.allocated() <= nr * 3 / 2);
            }
            prop_assert_eq!(woken, (1..=sleepers).collect::<Vec<_>>());
        }

        #[test]
        fn tags_are_never_more_than_there_are(nr in 1_usize..64, tries in 0_usize..200) {
            let mut pools = Pools::new(Sharing::Tags, nr);
            let taken = (0..tries).filter(|at| pools.take(0, &write(*at as u32), May::Yes, nr)).count();
            prop_assert_eq!(taken, tries.min(nr));
        }
    }
}
