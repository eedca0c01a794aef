//! Latencies of a direction, as they leave the simulator.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use super::error::PointError;

/// Latencies of the bios of one direction, nanoseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Latencies {
    /// How many.
    pub count: u64,
    /// Their mean; 0 of none, as the others.
    pub mean_ns: f64,
    /// What half of them do not exceed.
    pub p50_ns: u64,
    /// As above, 95 %.
    pub p95_ns: u64,
    /// As above, 99 %.
    pub p99_ns: u64,
    /// As above, 99.9 %.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them: an `HdrHistogram` of three digits, version 2, compressed, in base64.
    pub histogram: String,
}

impl Latencies {
    pub(super) fn new(histogram: &Histogram<u64>) -> Result<Self, PointError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .map_err(|error| PointError::new("latencies", format!("{error:?}")))?;
        let at = |share: f64| if histogram.is_empty() { 0 } else { histogram.value_at_quantile(share) };
        Ok(Self {
            count: histogram.len(),
            mean_ns: histogram.mean(),
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: if histogram.is_empty() { 0 } else { histogram.max() },
            histogram: STANDARD.encode(bytes),
        })
    }
}
