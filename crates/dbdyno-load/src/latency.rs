//! Latencies: a histogram and its summary.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest latency resolved, in nanoseconds (24 h); longer ones count as this.
const LATENCY_MAX_NS: u64 = 24 * 3_600 * 1_000_000_000;

const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies in nanoseconds: a histogram of three significant digits, with exact extremes and sum.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// The distribution.
    pub histogram: Histogram<u64>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        // It grows with the largest value, so that short latencies cost little to add up and clear.
        // The number of digits is a constant that the constructor accepts (a test makes one).
        let histogram = Histogram::new(SIGNIFICANT_DIGITS)
            .unwrap_or_else(|error| unreachable!("constant histogram precision: {error}"));
        Self { histogram, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Latencies {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        // Cannot fail: the histogram grows.
        let _ = self.histogram.record(latency_ns.min(LATENCY_MAX_NS));
        self.count += 1;
        self.sum_ns += latency_ns;
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        // Cannot fail: the histogram grows.
        let _ = self.histogram.add(&other.histogram);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.histogram.reset();
            (self.count, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The summary every output shows.
    pub fn summary(&self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        // A quantile is the upper end of its bucket, which may lie beyond what was seen.
        let at = |quantile| {
            let value = self.histogram.value_at_quantile(quantile);
            Some(value.clamp(self.min_ns, self.max_ns))
        };
        Summary {
            count: self.count,
            min: Some(self.min_ns),
            mean: Some(self.sum_ns as f64 / self.count as f64),
            p50: at(0.50),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: Some(self.max_ns),
        }
    }
}

/// Latencies in numbers, all in nanoseconds; `None` when there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub count: u64,
    pub min: Option<u64>,
    pub mean: Option<f64>,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_keeps_three_digits() {
        let mut latencies = Latencies::default();
        for value in 1..=100_000 {
            latencies.record(value * 1000);
        }
        let summary = latencies.summary();
        assert_eq!((summary.min, summary.max), (Some(1000), Some(100_000_000)));
        let p99 = summary.p99.unwrap() as f64;
        assert!((p99 / 99_000_000.0 - 1.0).abs() < 1e-3, "{p99}");
        assert_eq!(Latencies::default().summary(), Summary::default());
    }

    #[test]
    fn a_longer_latency_than_any_counts() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX / 2);
        latencies.record(0);
        assert_eq!(latencies.count(), 2);
        assert_eq!(latencies.histogram.len(), 2);
    }
}
