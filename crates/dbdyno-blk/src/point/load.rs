//! What a kind of load promises.

use serde_json::{Map, Value};

use super::spec::PointError;
use crate::source::Source;

/// A source of load with what a point asks of it besides.
pub trait Load: Source {
    /// Whether it ends by itself.
    fn ends(&self) -> bool;

    /// Whether it has ended, with so many requests in the queue.
    fn has_ended(&self, queued: u64) -> bool {
        queued == 0 && self.next_due().is_none()
    }

    /// What it counts besides I/O since time 0, by name: rows, commits.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// How it stands now, by name: dirty pages, age of the log.
    fn gauges(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// What its results must be read with.
    fn remarks(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Why it could not go on, if it couldn't.
    fn failure(&self) -> Option<PointError> {
        None
    }
}
