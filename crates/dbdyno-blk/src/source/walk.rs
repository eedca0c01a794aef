//! Where a process of a job goes next, and how much it asks for there.

use dbdyno_common::random::Random;

use super::job::Job;

/// The order of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One behind the other, from the start of the job's range; each process has its part of it.
    Sequential,
    /// Anywhere in the range.
    Random,
}

/// Which offsets a random job prefers (`random_distribution`).
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Spread {
    /// None.
    #[default]
    Uniform,
    /// Few blocks most of the time: the one of rank r in proportion to 1 / r^theta, scattered over the range.
    Zipf(f64),
    /// The same in shares: a share h of the blocks has 1 - h of the accesses, and so within it.
    Pareto(f64),
    /// A bell of so many percent of the range, scattered over it.
    Normal(f64),
    /// Parts of the range, one behind the other: percent of the accesses, and percent of the range.
    Zones(Vec<(u32, u32)>),
}

/// How large each I/O of one direction is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sizes(
    /// Bytes, and how often relative to the others; empty: all have the job's one size.
    pub Vec<(u64, u32)>,
);

impl Sizes {
    /// The smallest and the largest, if there are several.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let sizes = self.0.iter().map(|(bytes, _)| *bytes);
        Some((sizes.clone().min()?, sizes.max()?))
    }

    fn draw(&self, random: &mut Random, otherwise: u64) -> u64 {
        let all: u64 = self.0.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if all == 0 {
            return otherwise;
        }
        let mut at = random.below(all);
        for (bytes, weight) in &self.0 {
            match at.checked_sub(u64::from(*weight)) {
                None => return *bytes,
                Some(left) => at = left,
            }
        }
        otherwise
    }
}

impl Spread {
    /// One of `blocks` blocks.
    fn draw(&self, random: &mut Random, blocks: u64) -> u64 {
        let n = blocks as f64;
        match self {
            Self::Uniform => random.below(blocks),
            Self::Zipf(theta) => scattered(zipf(random, n, *theta) - 1, blocks),
            Self::Pareto(h) => {
                let at = (n - 1.0) * random.unit().powf(h.ln() / (1.0 - h).ln());
                scattered(at as u64, blocks)
            }
            Self::Normal(percent) => {
                let at = n / 2.0 + random.normal() * n * percent / 100.0;
                scattered(at.rem_euclid(n) as u64, blocks)
            }
            Self::Zones(zones) => {
                let mut at = random.below(100) as u32;
                let mut start = 0;
                for (accesses, range) in zones {
                    let end = start + range;
                    if at < *accesses {
                        let part = |percent: u32| blocks * u64::from(percent) / 100;
                        let size = part(end) - part(start);
                        return if size == 0 { part(start).min(blocks - 1) } else { part(start) + random.below(size) };
                    }
                    (at, start) = (at - accesses, end);
                }
                random.below(blocks)
            }
        }
    }
}

/// Puts a rank somewhere else, the same one always at the same place.
fn scattered(rank: u64, blocks: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (rank + 1).wrapping_mul(GOLDEN);
    ((u128::from(hash ^ (hash >> 32)) * u128::from(blocks)) >> 64) as u64
}

/// A rank from 1 to `n`, by inversion of the integral of 1 / x^theta and rejection (Hörmann and Derflinger, 1996).
fn zipf(random: &mut Random, n: f64, theta: f64) -> u64 {
    let is_one = (theta - 1.0).abs() < 1e-9;
    let integral = |x: f64| if is_one { x.ln() } else { (x.powf(1.0 - theta) - 1.0) / (1.0 - theta) };
    let inverse = |y: f64| if is_one { y.exp() } else { (1.0 + y * (1.0 - theta)).powf(1.0 / (1.0 - theta)) };
    let (low, high) = (integral(1.5) - 1.0, integral(n + 0.5));
    loop {
        let y = low + random.unit() * (high - low);
        let rank = inverse(y).round().clamp(1.0, n);
        if y >= integral(rank + 0.5) - rank.powf(-theta) {
            return rank as u64;
        }
    }
}

/// Where a process is on its way.
#[derive(Debug)]
pub(super) struct Walk {
    /// Its share of the job's randomness.
    pub random: Random,
    /// Its place in the job.
    rank: u64,
    /// Where it goes on, bytes from the start of its part, or behind the last it asked for.
    at_bytes: u64,
    /// How many go on there before it leaves for another offset.
    run_left: u32,
}

/// What is asked for next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub is_read: bool,
    /// From the start of the job's range.
    pub offset_bytes: u64,
    pub size_bytes: u64,
}

impl Walk {
    pub fn new(rank: u64, random: Random) -> Self {
        Self { random, rank, at_bytes: 0, run_left: 0 }
    }

    pub fn next(&mut self, job: &Job) -> Ask {
        let random = &mut self.random;
        let is_read = job.read_percent == 100 || random.below(100) < u64::from(job.read_percent);
        let sizes = if is_read { &job.read_sizes } else { &job.write_sizes };
        let size_bytes = sizes.draw(random, job.size_bytes);
        let offset_bytes = match job.pattern {
            Pattern::Random => {
                let goes_on =
                    self.run_left > 0 || (job.random_percent < 100 && random.below(100) >= job.random_percent.into());
                if goes_on && self.at_bytes + size_bytes <= job.range_bytes {
                    self.run_left = self.run_left.saturating_sub(1);
                } else {
                    let align = sizes.bounds().map_or(job.size_bytes, |(least, _)| least);
                    self.at_bytes = job.spread.draw(random, (job.range_bytes - size_bytes) / align + 1) * align;
                    self.run_left = job.run - 1;
                }
                let offset_bytes = self.at_bytes;
                self.at_bytes += size_bytes;
                offset_bytes
            }
            Pattern::Sequential => {
                let part_bytes = job.range_bytes / u64::from(job.processes) / job.size_bytes * job.size_bytes;
                let offset_bytes = if self.at_bytes + size_bytes > part_bytes { 0 } else { self.at_bytes };
                let step = size_bytes.cast_signed() + job.gap_bytes;
                self.at_bytes =
                    offset_bytes.cast_signed().wrapping_add(step).rem_euclid(part_bytes.cast_signed()).cast_unsigned();
                self.rank * part_bytes + offset_bytes
            }
        };
        Ask { is_read, offset_bytes, size_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(spread: &Spread, blocks: u64, counted: impl Fn(u64) -> bool) -> f64 {
        let mut random = Random::new(7);
        let draws = 20_000;
        (0..draws).filter(|_| counted(spread.draw(&mut random, blocks))).count() as f64 / f64::from(draws)
    }

    #[test]
    fn zones_have_their_shares() {
        let zones = Spread::Zones(vec![(60, 10), (30, 20), (8, 30), (2, 40)]);
        assert!((share(&zones, 1000, |at| at < 100) - 0.6).abs() < 0.02);
        assert!((share(&zones, 1000, |at| at >= 600) - 0.02).abs() < 0.01);
        assert!(share(&zones, 3, |at| at < 3) >= 1.0);
    }

    #[test]
    fn few_blocks_are_hot_and_none_is_beyond() {
        for (spread, hottest) in [(Spread::Zipf(1.2), 0.2), (Spread::Zipf(1.0), 0.1), (Spread::Pareto(0.2), 0.05)] {
            let mut counts = vec![0_u32; 1000];
            let mut random = Random::new(3);
            for _ in 0..20_000 {
                counts[spread.draw(&mut random, 1000) as usize] += 1;
            }
            let most = f64::from(*counts.iter().max().unwrap()) / 20_000.0;
            assert!(most > hottest, "{spread:?}: {most}");
        }
        assert!(share(&Spread::Normal(5.0), 10, |at| at < 10) >= 1.0);
    }

    #[test]
    fn a_rank_of_zipf_comes_as_often_as_it_should() {
        let mut random = Random::new(1);
        let sum: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank).powf(0.8)).sum();
        let draws = 50_000;
        let first = (0..draws).filter(|_| zipf(&mut random, 100.0, 0.8) == 1).count() as f64 / f64::from(draws);
        assert!((first - 1.0 / sum).abs() < 0.01, "{first} {}", 1.0 / sum);
    }

    #[test]
    fn sizes_come_as_often_as_they_say_and_stay_in_the_range() {
        let job = Job { read_sizes: Sizes(vec![(4096, 60), (16384, 40)]), range_bytes: 20480, ..Job::default() };
        let mut walk = Walk::new(0, Random::new(5));
        let asks: Vec<_> = (0..10_000).map(|_| walk.next(&job)).collect();
        assert!(asks.iter().all(|ask| ask.offset_bytes + ask.size_bytes <= 20480 && ask.offset_bytes % 4096 == 0));
        let small = asks.iter().filter(|ask| ask.size_bytes == 4096).count();
        assert!((5800..6200).contains(&small), "{small}");
    }

    #[test]
    fn runs_gaps_and_a_way_back() {
        let offsets = |job: &Job, count| {
            let mut walk = Walk::new(0, Random::new(5));
            (0..count).map(|_| walk.next(job).offset_bytes / 4096).collect::<Vec<_>>()
        };
        let runs = offsets(&Job { run: 4, range_bytes: 1 << 30, ..Job::default() }, 8);
        assert!(runs[1] == runs[0] + 1 && runs[3] == runs[0] + 3 && runs[5] == runs[4] + 1 && runs[4] != runs[3] + 1);
        let sequential = Job { pattern: Pattern::Sequential, range_bytes: 8 * 4096, ..Job::default() };
        assert_eq!(offsets(&Job { gap_bytes: 4096, ..sequential.clone() }, 5), [0, 2, 4, 6, 0]);
        assert_eq!(offsets(&Job { gap_bytes: -8192, ..sequential }, 3), [0, 7, 6]);
        let mostly = offsets(&Job { random_percent: 0, ..Job::default() }, 3);
        assert_eq!(mostly, [0, 1, 2]);
    }
}
