//! The way of a request to the model and of its answer back, by which answers leave earlier.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an answer takes at first, until many have been seen.
const AFTER_NS: u64 = 8_000;

/// More than that is no answer's own time.
const AFTER_NS_MAX: u64 = 50_000;

/// By what share of it one answer changes what is known, and by how much at least.
const STEP_SHARE: u64 = 32;
const STEP_NS: u64 = 20;

/// What is known of the way.
#[derive(Debug)]
pub struct Path {
    /// All of it, of a request whose start is not known.
    estimated_ns: AtomicU64,
    /// From when an answer may leave to when the block layer has it.
    after_ns: AtomicU64,
}

impl Path {
    pub fn new() -> Self {
        Self { estimated_ns: AtomicU64::new(0), after_ns: AtomicU64::new(AFTER_NS) }
    }

    pub fn estimate(&self, estimated_ns: u64) {
        self.estimated_ns.store(estimated_ns, Ordering::Relaxed);
    }

    pub fn estimated_ns(&self) -> u64 {
        self.estimated_ns.load(Ordering::Relaxed)
    }

    /// How long before the model's time an answer should leave, whose request took so long to come.
    pub fn ahead_ns(&self, before_ns: Option<u64>) -> u64 {
        before_ns.map_or_else(|| self.estimated_ns(), |before_ns| before_ns + self.after_ns())
    }

    pub fn after_ns(&self) -> u64 {
        self.after_ns.load(Ordering::Relaxed)
    }

    /// An answer that nothing held up came so much later than the model's time, or earlier. Half of them shall: a step up
    /// for each that was later and down for each that was not ends at the median (Robbins and Monro 1951).
    pub fn came(&self, off_ns: i64) {
        let after_ns = self.after_ns();
        let step_ns = STEP_NS + after_ns / STEP_SHARE;
        let next_ns = if off_ns > 0 { after_ns + step_ns } else { after_ns.saturating_sub(step_ns) };
        // Two threads at once lose a step, which does not matter.
        self.after_ns.store(next_ns.min(AFTER_NS_MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_common::random::Random;

    #[test]
    fn half_of_the_answers_come_early() {
        let (path, mut random) = (Path::new(), Random::new(1));
        let mut off = |path: &Path| 12_000 + random.below(10_000).cast_signed() - path.after_ns().cast_signed();
        for _ in 0..2_000 {
            path.came(off(&path));
        }
        let mut late = 0;
        for _ in 0..4_000 {
            let off_ns = off(&path);
            late += usize::from(off_ns > 0);
            path.came(off_ns);
        }
        assert!((1_800..=2_200).contains(&late), "{late} of 4000");
    }

    #[test]
    fn stalls_take_it_no_further_than_an_answer_takes() {
        let path = Path::new();
        (0..100_000).for_each(|_| path.came(40_000_000));
        assert_eq!(path.after_ns(), AFTER_NS_MAX);
        (0..100_000).for_each(|_| path.came(-1));
        assert_eq!(path.after_ns(), 0);
    }

    #[test]
    fn a_request_without_a_start_has_the_estimate() {
        let path = Path::new();
        path.estimate(70_000);
        assert_eq!((path.ahead_ns(None), path.ahead_ns(Some(30_000))), (70_000, 30_000 + AFTER_NS));
    }
}
