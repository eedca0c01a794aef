//! A `MyISAM` table that takes rows, on the page cache, as a load.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::{PointError, typed};
use super::load::Load;
use super::spec::Point;
use crate::layer::Pools;
use crate::queue::Bio;
use crate::source::{CacheConfig, Cached, Ingest, IngestConfig, Source, Step};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IngestSpec {
    cache: CacheConfig,
    table: IngestConfig,
}

/// The table, and what it began with.
struct Table {
    cached: Cached<Ingest>,
    initial_rows: u64,
    ends: bool,
}

impl Source for Table {
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

impl Load for Table {
    fn ends(&self) -> bool {
        self.ends
    }

    fn has_ended(&self, _queued: u64) -> bool {
        self.cached.have_ended()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let rows = self.cached.application().rows() - self.initial_rows;
        vec![("rows", rows), ("journal_commits", self.cached.commits())]
    }
}

/// Makes the load of its fields: `cache` is a [`CacheConfig`], `table` an [`IngestConfig`].
pub(super) fn load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let IngestSpec { cache, table } = typed("load", fields.into())?;
    let (initial_rows, ends) = (table.initial_rows, table.rows > 0);
    let cached = Ingest::cached(&point.kernel()?, &cache, table, point.seed).map_err(|error| {
        PointError::new(format!("load.{}", error.field), format!("{} {}", error.given, error.problem))
    })?;
    Ok(Box::new(Table { cached, initial_rows, ends }))
}
