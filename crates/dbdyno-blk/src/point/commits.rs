//! A server with `InnoDB` as a load.

use serde_json::{Map, Value, json};

use super::figures::latencies;
use super::load::Load;
use super::spec::{Point, PointError, typed};
use crate::source::{Innodb, InnodbSettings};

impl Load for Innodb {
    fn ends(&self) -> bool {
        false
    }

    fn has_ended(&self, _queued: u64) -> bool {
        self.counts().ended_ns.is_some()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = Self::counts(self);
        vec![
            ("statements", counts.statements),
            ("commits", counts.commits),
            ("rows", counts.rows),
            ("log_flushes", counts.log_flushes),
            ("pages_read", counts.pages_read),
            ("pages_written", counts.pages_written),
        ]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        vec![("dirty_pages", self.dirty_pages() as u64), ("checkpoint_age_bytes", self.checkpoint_age_bytes())]
    }

    fn remarks(&self) -> Map<String, Value> {
        let counts = Self::counts(self);
        let statements = latencies(&counts.latencies).unwrap_or_default();
        let said = json!({
            "statements_since_the_start": statements,
            "log_waits": counts.log_waits,
            "frame_waits": counts.frame_waits,
            "is_full": counts.is_full,
        });
        if let Value::Object(said) = said { said } else { Map::new() }
    }
}

/// Makes the load of its fields.
pub(super) fn load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let settings: InnodbSettings = typed("load", fields.into())?;
    let server = Innodb::new(settings, point.seed).map_err(|error| {
        PointError::new(format!("load.{}", error.field), format!("{} {}", error.given, error.problem))
    })?;
    if server.end_bytes() > point.size_bytes {
        let problem =
            format!("{} is less than the {} bytes that this load needs", point.size_bytes, server.end_bytes());
        return Err(PointError::new("size_bytes", problem));
    }
    Ok(Box::new(server))
}
