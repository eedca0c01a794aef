//! How short of an answer's time the completion thread wakes: by what waking takes on this host.
//!
//! The rest of the wait is spun away, within a budget: the host's processors belong to the database server.

use std::time::Duration;

/// Closer to its time than this a thread need not fall asleep, because that and waking take about as long.
pub const LEAST_NS: u64 = 8_000;

/// A sleep that ends later than this met something else than a slow wake-up.
const MOST_NS: u64 = 200_000;

/// Of one processor, over a second at most.
const SPIN_SHARE_MAX: f64 = 0.05;
const SPIN_NS_MAX: f64 = SPIN_SHARE_MAX * 1e9;

/// Of the sleeps, how many end by the time that the margin leaves them.
const IN_TIME: f64 = 0.9;

/// Follows the lateness of sleeps, and what was spun.
#[derive(Debug)]
pub struct Margin {
    late_ns: f64,
    /// What may be spun now.
    left_ns: f64,
    seen_ns: u64,
    spun: Duration,
}

impl Margin {
    pub fn new() -> Self {
        Self { late_ns: LEAST_NS as f64, left_ns: SPIN_NS_MAX, seen_ns: 0, spun: Duration::ZERO }
    }

    /// How short to sleep.
    pub fn ns(&self) -> u64 {
        if self.left_ns > 0.0 { LEAST_NS.max(self.late_ns as u64) } else { LEAST_NS }
    }

    /// A sleep that nothing cut short ended so much too late. The estimate is of a quantile: for a sleep that was later it goes
    /// up nine times as far as it goes down for one that was not (Robbins and Monro 1951).
    pub fn overslept(&mut self, late_ns: u64) {
        let step = self.late_ns / 32.0;
        let late_ns = late_ns.min(MOST_NS) as f64;
        self.late_ns += if late_ns > self.late_ns { step * IN_TIME } else { -step * (1.0 - IN_TIME) };
        self.late_ns = self.late_ns.clamp(LEAST_NS as f64, MOST_NS as f64);
    }

    /// So much was spun, up to now.
    pub fn spun(&mut self, now_ns: u64, spun_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.seen_ns) as f64;
        self.seen_ns = now_ns;
        self.left_ns = (self.left_ns + SPIN_SHARE_MAX * passed_ns).min(SPIN_NS_MAX) - spun_ns as f64;
        self.spun += Duration::from_nanos(spun_ns);
    }

    /// Spun since the start.
    pub fn spun_seconds(&self) -> f64 {
        self.spun.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_common::random::Random;

    #[test]
    fn most_sleeps_end_in_time() {
        let (mut margin, mut random) = (Margin::new(), Random::new(1));
        let mut late = |margin: &mut Margin| {
            let late_ns = 20_000 + random.below(60_000);
            margin.overslept(late_ns);
            late_ns
        };
        for _ in 0..2_000 {
            late(&mut margin);
        }
        let in_time = (0..10_000).filter(|_| margin.ns() >= late(&mut margin)).count();
        assert!((8_500..=9_500).contains(&in_time), "{in_time} of 10,000");
    }

    #[test]
    fn what_a_stall_took_does_not_stay() {
        let mut margin = Margin::new();
        margin.overslept(50_000_000);
        (0..200).for_each(|_| margin.overslept(5_000));
        assert_eq!(margin.ns(), LEAST_NS);
    }

    #[test]
    fn no_more_is_spun_than_the_budget_has() {
        let mut margin = Margin::new();
        (0..1_000).for_each(|_| margin.overslept(100_000));
        assert!(margin.ns() > 50_000);
        let (mut now_ns, mut spun_ns) = (0, 0);
        while now_ns < 10_000_000_000 {
            let turn_ns = if margin.ns() > LEAST_NS { 100_000 } else { 0 };
            now_ns += 300_000;
            spun_ns += turn_ns;
            margin.spun(now_ns, turn_ns);
        }
        assert!(spun_ns as f64 <= SPIN_SHARE_MAX * 11e9 + 1e6, "{spun_ns}");
        assert!(spun_ns as f64 >= SPIN_SHARE_MAX * 9e9, "{spun_ns}");
        assert!((margin.spun_seconds() - spun_ns as f64 / 1e9).abs() < 1e-9);
    }
}
