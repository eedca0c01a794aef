//! What runs on the page cache, as a load.

use std::fmt::Display;

use super::error::PointError;
use super::load::Load;
use super::spec::Point;
use crate::layer::Pools;
use crate::queue::Bio;
use crate::source::{Application, Cached, Source, Step};

/// What an application counts, by name.
type Counts<A> = Box<dyn Fn(&A) -> Vec<(&'static str, u64)>>;

/// An application on the page cache, on a drive of some size.
pub(super) struct OnCache<A> {
    cached: Cached<A>,
    counts: Counts<A>,
    ends: bool,
    size_bytes: u64,
}

impl<A: Application> OnCache<A> {
    /// Refuses files that end beyond the drive.
    pub(super) fn new(
        point: &Point,
        cached: Cached<A>,
        ends: bool,
        counts: impl Fn(&A) -> Vec<(&'static str, u64)> + 'static,
    ) -> Result<Self, PointError> {
        let size_bytes = point.size_bytes;
        let load = Self { cached, counts: Box::new(counts), ends, size_bytes };
        load.beyond("of its files at the start").map_or(Ok(load), Err)
    }

    fn beyond(&self, which: impl Display) -> Option<PointError> {
        let (size_bytes, end_bytes) = (self.size_bytes, self.cached.end_bytes());
        let problem = || format!("{size_bytes} is less than the {end_bytes} bytes {which}");
        (end_bytes > size_bytes).then(|| PointError::new("size_bytes", problem()))
    }
}

impl<A: Application> Source for OnCache<A> {
    fn next_due(&self) -> Option<u64> {
        self.cached.next_due()
    }

    fn see(&mut self, pools: &Pools) {
        self.cached.see(pools);
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.cached.step(now_ns)
    }

    fn asleep(&mut self, process: u32) {
        self.cached.asleep(process);
    }

    fn awake(&mut self, process: u32) {
        self.cached.awake(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.cached.finished(now_ns, bio);
    }
}

impl<A: Application> Load for OnCache<A> {
    fn ends(&self) -> bool {
        self.ends
    }

    fn has_ended(&self, _queued: u64) -> bool {
        self.cached.have_ended()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = (self.counts)(self.cached.application());
        counts.push(("journal_commits", self.cached.commits()));
        counts
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        vec![("dirty_pages", self.cached.dirty_pages().0)]
    }

    fn failure(&self) -> Option<PointError> {
        self.beyond("that its files grew to; give more, or a shorter time")
    }
}
