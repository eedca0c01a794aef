//! A `MyISAM` table that takes rows, on the page cache, as a load.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::{PointError, typed};
use super::load::Load;
use super::on_cache::OnCache;
use super::spec::Point;
use crate::source::{CacheConfig, Ingest, IngestConfig};

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
