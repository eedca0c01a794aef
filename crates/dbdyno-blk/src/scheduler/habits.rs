//! What anticipatory and cfq know of a process: how long it thinks between two requests, how far they lie apart.

/// A mean that forgets: every sample takes one eighth of the weight. Fixed point with eight binary digits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fading {
    /// Weight of what was seen; 256 is full.
    samples: u64,
    total: u64,
    mean: u64,
}

impl Fading {
    pub(super) fn add(&mut self, sample: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * sample) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    /// The weight of what was seen, 0 before the first sample; over 80 after three.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    pub(super) fn mean(&self) -> u64 {
        self.mean
    }
}

/// Distances of a process's requests, sectors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seeks {
    mean: Fading,
    last_end: u64,
}

impl Seeks {
    /// A request from `start` to `end`. One odd jump does not count for more than four times the mean and a margin.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        let distance = start.abs_diff(self.last_end);
        let margin = if self.mean.samples() <= 60 { 2_097_152 } else { 131_072 };
        self.mean.add(distance.min(self.mean.mean() * 4 + margin));
        self.last_end = end;
    }

    pub(super) fn samples(&self) -> u64 {
        self.mean.samples()
    }

    /// Sectors.
    pub(super) fn mean(&self) -> u64 {
        self.mean.mean()
    }

    /// Where the last request ends.
    pub(super) fn last_end(&self) -> u64 {
        self.last_end
    }
}

/// How far back a head may go, and what that costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nearness {
    /// Sectors behind the head within which one is a choice at all.
    pub back_most: u64,
    /// How many times as far a sector behind counts as one ahead.
    pub penalty: u64,
}

impl Nearness {
    /// Whether a request at `one` is better than one at `other` for a head at `head`. Of two that are far behind, the lower
    /// one is: the head goes back to the start.
    pub(super) fn prefers(self, head: u64, one: u64, other: u64) -> bool {
        match (self.cost(head, one), self.cost(head, other)) {
            (Some(this), Some(that)) if this != that => this < that,
            (Some(_), Some(_)) => one > other,
            (None, None) => one < other,
            (this, _) => this.is_some(),
        }
    }

    /// What it costs to go there; `None` is too far behind.
    fn cost(self, head: u64, start: u64) -> Option<u64> {
        if start >= head {
            Some(start - head)
        } else if start + self.back_most >= head {
            Some((head - start) * self.penalty)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ahead_is_better_than_behind_unless_twice_as_far() {
        let nearness = Nearness { back_most: 1000, penalty: 2 };
        assert!(nearness.prefers(5000, 5100, 4940));
        assert!(nearness.prefers(5000, 4960, 5100));
        assert!(nearness.prefers(5000, 9000, 3000), "3000 is too far behind");
        assert!(nearness.prefers(5000, 10, 3000), "both are: from the start");
    }

    #[test]
    fn a_fading_mean_comes_to_what_it_sees() {
        let mut mean = Fading::default();
        (0..100).for_each(|_| mean.add(1000));
        assert!((990..=1040).contains(&mean.mean()), "{mean:?}");
        (0..3).for_each(|_| mean.add(0));
        assert!((550..750).contains(&mean.mean()), "{mean:?}");
    }
}
