//! Times of many requests, as a histogram.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The longest time that a histogram resolves, ns; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds with .1 % resolution. Made once: recording allocates nothing.
pub struct Times(Option<Histogram<u64>>);

impl Times {
    pub fn new() -> Self {
        // The bounds are constants that the crate accepts, so there is always a histogram.
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).ok())
    }

    pub fn record(&mut self, time_ns: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(time_ns);
        }
    }

    /// Takes in what another recorded.
    pub fn add(&mut self, other: &Self) {
        if let (Some(histogram), Some(other)) = (&mut self.0, &other.0) {
            histogram.add(other).unwrap_or_else(|error| unreachable!("both have the same bounds: {error}"));
        }
    }

    /// Every key is always there; the values are null while nothing was recorded.
    pub fn json(&self) -> Value {
        let recorded = self.0.as_ref().filter(|histogram| !histogram.is_empty());
        let quantile = |quantile| recorded.map(|histogram| histogram.value_at_quantile(quantile));
        json!({
            "count": recorded.map_or(0, Histogram::len),
            "min": recorded.map(Histogram::min),
            "mean": recorded.map(Histogram::mean),
            "p50": quantile(0.5),
            "p90": quantile(0.9),
            "p99": quantile(0.99),
            "p999": quantile(0.999),
            "max": recorded.map(Histogram::max),
        })
    }
}
