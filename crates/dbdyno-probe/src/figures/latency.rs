//! Times of requests: a mean that is exact, and percentiles from a histogram.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde_json::{Value, json};

/// Two significant digits: percentiles are right within 1 %.
const DIGITS: u8 = 2;

/// Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    pub count: u64,
    pub sum_ns: u64,
    max_ns: u64,
    histogram: Option<Histogram<u32>>,
    /// The histogram of a slice that is over, in the library's compact format.
    packed: Vec<u8>,
}

impl Latency {
    /// One more time.
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.open().saturating_record(ns.max(1));
    }

    /// Gives up the open histogram's memory.
    pub fn pack(&mut self) {
        if let Some(histogram) = self.histogram.take() {
            let mut bytes = Vec::new();
            match V2Serializer::new().serialize(&histogram, &mut bytes) {
                Ok(_) => self.packed = bytes,
                Err(_) => self.histogram = Some(histogram),
            }
        }
    }

    /// Adds another's times.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        // Same digits, and both grow as they need: an addition can't fail.
        if let Some(histogram) = other.unpacked() {
            let _ = self.open().add(histogram);
        }
    }

    fn unpacked(&self) -> Option<Histogram<u32>> {
        self.histogram.clone().or_else(|| Deserializer::new().deserialize(&mut self.packed.as_slice()).ok())
    }

    fn open(&mut self) -> &mut Histogram<u32> {
        let packed = std::mem::take(&mut self.packed);
        self.histogram.get_or_insert_with(|| {
            let unpacked = Deserializer::new().deserialize(&mut packed.as_slice()).ok();
            // An hour is longer than any request may take before the kernel gives it up.
            unpacked
                .or_else(|| Histogram::new_with_bounds(1, 3_600_000_000_000, DIGITS).ok())
                .unwrap_or_else(|| unreachable!("the bounds are those of a valid histogram"))
        })
    }

    /// Mean in milliseconds; null where there is no time.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e6)
    }

    /// Count, mean and percentiles; null but for the count where there is no time.
    pub fn json(&self) -> Value {
        let histogram = self.unpacked().filter(|_| self.count > 0);
        let percentile =
            |share: f64| histogram.as_ref().map(|found| found.value_at_quantile(share).min(self.max_ns) as f64 / 1e6);
        json!({
            "count": self.count, "mean": self.mean_ms(), "p50": percentile(0.5), "p95": percentile(0.95),
            "p99": percentile(0.99), "max": (self.count > 0).then(|| self.max_ns as f64 / 1e6),
        })
    }
}
