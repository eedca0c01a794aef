//! What of an answer's time is the host's own: how late it wakes a program that waits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What is slept for, and how often.
const SLEEP: Duration = Duration::from_micros(200);
const SLEEPS: usize = 250;
/// Above this part of the shortest time that is to be measured the host's lateness shows in the figures.
const LATENESS_SHARE_MAX: f64 = 0.1;

/// Single reads of a drive that has nothing else to do, on a host that has nothing else to do, do not differ so much.
const UNEVEN: f64 = 3.0;

/// A warning if latencies of single reads differ as they do where something else is at work.
pub fn uneven(reads_ns: &[f64]) -> Option<String> {
    let mut sorted = reads_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let us = |percent: usize| sorted.get(sorted.len() * percent / 100).map(|ns| ns / 1e3);
    let (low, high) = (us(10)?, us(90)?);
    (high > UNEVEN * low).then(|| {
        format!(
            "single reads of 4 KiB took {low:.0} to {high:.0} us (10th and 90th percentile), as where the drive or the host is \
             busy with something else: measure again when nothing else runs"
        )
    })
}

/// How late sleeps ended, ns.
#[derive(Debug, Clone, Default)]
pub struct Lateness(Vec<f64>);

impl Lateness {
    /// Sleeps for a while, and adds how late each sleep ended.
    pub fn look(&mut self) {
        self.0.extend((0..SLEEPS).map(|_| {
            let began = Instant::now();
            std::thread::sleep(SLEEP);
            began.elapsed().saturating_sub(SLEEP).as_nanos() as f64
        }));
        self.0.sort_by(f64::total_cmp);
    }

    fn percentile_us(&self, percent: usize) -> f64 {
        let index = self.0.len() * percent / 100;
        self.0.get(index).map_or(0.0, |ns| ns / 1e3)
    }

    pub fn json(&self) -> Value {
        json!({"late_us_p50": self.percentile_us(50), "late_us_p95": self.percentile_us(95)})
    }

    /// A line for the drive file.
    pub fn said(&self) -> String {
        let (median, high) = (self.percentile_us(50), self.percentile_us(95));
        format!("The host woke a program that waits {median:.0} us late (median; 95th percentile {high:.0} us).")
    }

    /// A warning, if that is much of the shortest time that is measured.
    pub fn warning(&self, what: &str, shortest_ns: f64) -> Option<String> {
        let (late, shortest) = (self.percentile_us(95), shortest_ns / 1e3);
        (late > LATENESS_SHARE_MAX * shortest).then(|| {
            format!(
                "this host wakes programs up to {late:.0} us late (95th percentile), and {what} takes {shortest:.0} us: \
                 figures and intervals have the host's time in them; measure again when nothing else runs on it"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_heard_where_it_is_late_by_a_tenth() {
        let late = Lateness((0..100).map(|index| f64::from(index) * 1e3).collect());
        assert_eq!(late.json(), json!({"late_us_p50": 50.0, "late_us_p95": 95.0}));
        assert!(late.warning("a read", 960e3).is_none());
        assert!(
            late.warning("a read", 940e3).is_some_and(|said| said.contains("95 us late") && said.contains("940 us"))
        );
    }

    #[test]
    fn single_reads_that_differ_much_are_said_to() {
        let reads = |slow: f64| [vec![90e3; 80], vec![slow; 20]].concat();
        assert_eq!(uneven(&reads(250e3)), None);
        assert!(uneven(&reads(300e3)).is_some_and(|said| said.contains("90 to 300 us")));
        assert_eq!(uneven(&[]), None);
    }

    #[test]
    fn a_sleep_is_looked_at() {
        let mut late = Lateness::default();
        late.look();
        assert_eq!(late.0.len(), SLEEPS);
        assert!(late.0[0] >= 0.0 && late.percentile_us(95) >= late.percentile_us(50));
    }
}
