//! Answers that wait for their time: each leaves before it, by what its way took and will take, in the order of the times.
//!
//! Cannot: give back time that is only known when it is too late.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is to leave, by number.
#[derive(Debug, Default)]
pub struct Leaving {
    /// The time, so that the least is on top; in order of arrival where it is the same; when it may leave; its number.
    waiting: BinaryHeap<Reverse<(u64, u64, u64, u64)>>,
    arrivals: u64,
    /// When the latest left.
    left_ns: u64,
}

/// What leaves now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub id: u64,
    /// Its time.
    pub at_ns: u64,
    /// How long before that it was to leave.
    pub taken_ns: u64,
}

impl Leaving {
    /// Takes in what has become known at `now_ns`: to leave `ahead_ns` before its time, or now if that has passed, and
    /// not before anything whose time is earlier.
    pub fn add(&mut self, now_ns: u64, id: u64, at_ns: u64, ahead_ns: u64) {
        let leaves_ns = at_ns.saturating_sub(ahead_ns).max(now_ns).min(at_ns);
        self.waiting.push(Reverse((at_ns, self.arrivals, leaves_ns, id)));
        self.arrivals += 1;
    }

    /// Takes out the next that may leave by `now_ns`.
    pub fn next(&mut self, now_ns: u64) -> Option<Left> {
        let Reverse((at_ns, _, leaves_ns, id)) = self.waiting.peek().copied().filter(|next| next.0.2 <= now_ns)?;
        self.waiting.pop();
        self.left_ns = self.left_ns.max(leaves_ns);
        Some(Left { id, at_ns, taken_ns: at_ns.saturating_sub(self.left_ns) })
    }

    /// When the next may leave; `u64::MAX` if nothing waits.
    pub fn next_ns(&self) -> u64 {
        self.waiting.peek().map_or(u64::MAX, |Reverse((_, _, leaves_ns, _))| *leaves_ns)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gap to the one before, time from now, ahead.
    type Step = (u64, u64, u64);

    /// Runs on a virtual clock that stops wherever something may leave: when each became known, and when it left.
    fn run(steps: &[Step]) -> (Vec<u64>, Vec<(u64, Left)>) {
        let (mut leaving, mut now_ns, mut known, mut left) = (Leaving::default(), 0, Vec::new(), Vec::new());
        for (id, &(gap_ns, time_ns, ahead_ns)) in (0..).zip(steps) {
            let next_ns = now_ns + gap_ns;
            while leaving.next_ns() <= next_ns {
                now_ns = leaving.next_ns().max(now_ns);
                left.extend(std::iter::from_fn(|| leaving.next(now_ns)).map(|one| (now_ns, one)));
            }
            now_ns = next_ns;
            known.push(now_ns);
            leaving.add(now_ns, id, now_ns + time_ns, ahead_ns);
        }
        while leaving.next_ns() < u64::MAX {
            now_ns = leaving.next_ns().max(now_ns);
            left.extend(std::iter::from_fn(|| leaving.next(now_ns)).map(|one| (now_ns, one)));
        }
        (known, left)
    }

    proptest! {
        #[test]
        fn all_leave_once_in_time_and_no_earlier_than_they_may(
            steps in prop::collection::vec((0..5_000_u64, 0..20_000_u64, 0..9_000_u64), 0..60),
        ) {
            let (known, left) = run(&steps);
            prop_assert_eq!(left.len(), steps.len());
            for (now_ns, one) in &left {
                let (_, time_ns, ahead_ns) = steps[one.id as usize];
                let known_ns = known[one.id as usize];
                prop_assert_eq!(one.at_ns, known_ns + time_ns);
                prop_assert!(*now_ns <= one.at_ns && *now_ns >= known_ns, "{now_ns} {one:?}");
                prop_assert!(now_ns + ahead_ns >= one.at_ns, "{now_ns} {one:?}");
                prop_assert_eq!(one.taken_ns, one.at_ns - now_ns);
            }
        }

        #[test]
        fn what_is_known_together_leaves_in_the_order_of_its_times(
            waiting in prop::collection::vec((0..20_000_u64, 0..9_000_u64), 0..60), step_ns in 1..2_000_u64,
        ) {
            let mut leaving = Leaving::default();
            for (id, &(at_ns, ahead_ns)) in (0..).zip(&waiting) {
                leaving.add(0, id, at_ns, ahead_ns);
            }
            let mut left = Vec::new();
            for now_ns in (0..=22_000).step_by(step_ns as usize) {
                left.extend(std::iter::from_fn(|| leaving.next(now_ns)).map(|one| (one.at_ns, one.id)));
            }
            prop_assert!(left.len() == waiting.len() && left.is_sorted(), "{left:?}");
        }
    }

    #[test]
    fn late_news_leave_at_once_and_count_from_their_time() {
        let mut leaving = Leaving::default();
        leaving.add(5_000, 1, 3_000, 1_000);
        assert_eq!(leaving.next_ns(), 3_000);
        assert_eq!(leaving.next(5_000), Some(Left { id: 1, at_ns: 3_000, taken_ns: 0 }));
        assert_eq!((leaving.next(u64::MAX), leaving.next_ns()), (None, u64::MAX));
    }
}
