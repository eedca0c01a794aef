//! What came of a point.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::latencies::Latencies;
use super::sample::Sample;
use super::seeks::Seeks;
use super::series::Series;
use crate::statistics::Columns;

/// What came of a point; times count from its warm-up's end unless said otherwise.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The scheduler it had.
    pub scheduler: &'static str,
    /// Time that was counted, seconds.
    pub measured_s: f64,
    /// The load came to its own end.
    pub has_ended: bool,
    /// Requests in the queue at the end.
    pub queued: u64,
    /// iostat's columns.
    pub columns: Columns,
    /// Reads.
    pub reads: Direction,
    /// Writes.
    pub writes: Direction,
    /// Flushes that the drive finished.
    pub flushes: u64,
    /// Commands that went to the drive, without flushes.
    pub commands: u64,
    /// What the load counted besides, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// Distances between commands.
    pub seeks: Seeks,
    /// How it went.
    pub series: Series,
    /// Some commands, with their times since the load began.
    pub sample: Sample,
    /// What the results must be read with; how a trace was replayed, and what was odd about it.
    pub load: Map<String, Value>,
}

/// Counts of one direction.
#[derive(Debug, Clone, Serialize)]
pub struct Direction {
    /// Requests completed.
    pub requests: u64,
    /// Bios that joined a request.
    pub merges: u64,
    /// Sectors completed.
    pub sectors: u64,
    /// Of bios, from when they were meant to begin.
    pub latency: Latencies,
}
