//! An estimate with its interval.

use serde_json::{Value, json};

/// A figure, the interval that holds it with 95 %, and of how many samples it was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub n: usize,
}

impl Estimate {
    pub fn new(value: f64, low: f64, high: f64, n: usize) -> Self {
        Self { value, low, high, n }
    }

    /// The median, and the interval between order statistics: the number of samples below the median is binomial
    /// (David and Nagaraja, Order Statistics, 2003). Of fewer than six samples no two hold it with 95 %; the interval
    /// is then all of them. `None` of no samples.
    pub fn median(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let middle = sorted.get(n / 2)?;
        let value = if n % 2 == 1 { *middle } else { f64::midpoint(sorted[n / 2 - 1], *middle) };
        let below = (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()).floor().max(0.0) as usize;
        Some(Self::new(value, sorted[below.min(n / 2)], sorted[n - 1 - below.min(n / 2)], n))
    }

    /// The mean, with the interval of the normal approximation.
    pub fn mean(samples: &[f64]) -> Option<Self> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
        let error = 1.96 * (variance / n as f64).sqrt();
        Some(Self::new(mean, mean - error, mean + error, n))
    }

    /// The mean without the lowest and highest twentieth: of latencies in groups, the median would be in any of them.
    pub fn trimmed_mean(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let cut = sorted.len() / 20;
        Self::mean(&sorted[cut..sorted.len() - cut])
    }

    /// The same after a monotonic change of unit or of reference.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (one, other) = (change(self.low), change(self.high));
        Self::new(change(self.value), one.min(other), one.max(other), self.n)
    }

    pub fn json(&self) -> Value {
        json!({"value": self.value, "low": self.low, "high": self.high, "n": self.n})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_common::random::Random;

    #[test]
    fn the_interval_of_a_median_holds_it_as_often_as_it_says() {
        let mut random = Random::new(1);
        for n in [6, 20, 101] {
            let held = (0..2000).filter(|_| {
                let samples: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
                Estimate::median(&samples).is_some_and(|made| (made.low..=made.high).contains(&2.0_f64.ln()))
            });
            let share = held.count() as f64 / 2000.0;
            assert!((0.93..=0.995).contains(&share), "{n} samples: {share}");
        }
    }

    #[test]
    fn no_samples_give_no_estimate() {
        assert_eq!(Estimate::median(&[]), None);
        assert_eq!(Estimate::mean(&[]), None);
        assert_eq!(Estimate::median(&[3.0]), Some(Estimate::new(3.0, 3.0, 3.0, 1)));
    }
}
