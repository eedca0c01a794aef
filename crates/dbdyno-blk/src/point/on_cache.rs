//! Loads on the page cache: any application, and a `MyISAM` table that takes rows.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::load::Load;
use super::spec::{Point, PointError, typed};
use crate::layer::Pools;
use crate::queue::Bio;
use crate::source::{Application, CacheConfig, Cached, Ingest, IngestConfig, Source, Step};

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
        load.beyond("that its files have at the start").map_or(Ok(load), Err)
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
        self.beyond("that its files grew to; give a larger device or a shorter time")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IngestSpec {
    cache: CacheConfig,
    table: IngestConfig,
}

/// Makes the load of its fields: `cache` is a [`CacheConfig`], `table` an [`IngestConfig`].
pub(super) fn load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let IngestSpec { cache, table } = typed("load", fields.into())?;
    let (initial_rows, ends) = (table.initial_rows, table.rows > 0);
    let cached = Ingest::cached(&point.kernel()?, &cache, table, point.seed).map_err(|error| {
        PointError::new(format!("load.{}", error.field), format!("{} {}", error.given, error.problem))
    })?;
    let counts = move |table: &Ingest| vec![("rows", table.rows() - initial_rows)];
    Ok(Box::new(OnCache::new(point, cached, ends, counts)?))
}
