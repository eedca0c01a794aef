//! Where a process of a job goes next, and how much it asks for there.

use dbdyno_common::random::Random;

use crate::queue::Class;

/// A job as fio has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// How many processes do the same (`numjobs`).
    pub processes: u32,
    /// Order of offsets (`rw`).
    pub pattern: Pattern,
    /// Percent of reads (`rwmixread`).
    pub read_percent: u32,
    /// Size of each, bytes, a multiple of 512 (`bs`).
    pub size_bytes: u64,
    /// Sizes of reads, where they differ (`bssplit`, `bsrange`).
    pub read_sizes: Sizes,
    /// Sizes of writes, where they differ.
    pub write_sizes: Sizes,
    /// Which offsets are preferred (`random_distribution`).
    pub spread: Spread,
    /// Percent of a random job's that leave for another offset instead of going on (`percentage_random`).
    pub random_percent: u32,
    /// How many a random job asks for behind each other before it leaves for another offset (`rw=randread:8`).
    pub run: u32,
    /// What a sequential job leaves out behind each, bytes; negative to go back (`rw=read:-8k`).
    pub gap_bytes: i64,
    /// How many a process has outstanding (`iodepth`).
    pub depth: u32,
    /// How many go to the kernel in one call (`iodepth_batch`); only these may be joined before the scheduler has them.
    pub batch: u32,
    /// Pause of a process after so many that finish (`thinktime`), nanoseconds.
    pub think_ns: u64,
    /// After how many (`thinktime_blocks`).
    pub think_every: u32,
    /// When it begins (`startdelay`), nanoseconds.
    pub start_ns: u64,
    /// How fast a process may go.
    pub rates: Rates,
    /// A flush after so many writes, when those are finished (`fsync`); 0 for none.
    pub fsync_every: u32,
    /// Where the range begins (`offset`), bytes.
    pub offset_bytes: u64,
    /// How long it is (`size`), bytes.
    pub range_bytes: u64,
    /// A process ends after so many (`number_ios`); 0 for never.
    pub ios: u64,
    /// Writes count as such that nobody waits for, as those of the page cache.
    pub asynchronous: bool,
    /// Class of the I/O priority (`prioclass`).
    pub class: Class,
    /// Priority in it (`prio`).
    pub priority: u8,
}

/// Rates of one process by direction, each 0 for none (`rate`, `rate_iops`). A process that was held up makes up for
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Bytes of reads a second.
    pub read_bytes: u64,
    /// Reads a second.
    pub read_ios: u64,
    /// Bytes of writes a second.
    pub write_bytes: u64,
    /// Writes a second.
    pub write_ios: u64,
    /// The times between them are exponential instead of equal (`rate_process=poisson`).
    pub poisson: bool,
}

impl Rates {
    /// How long after an I/O of so many bytes the next of its direction is due, nanoseconds; 0 without a rate.
    pub(super) fn gap_ns(self, ask: Access, random: &mut Random) -> u64 {
        let (bytes, ios) =
            if ask.is_read { (self.read_bytes, self.read_ios) } else { (self.write_bytes, self.write_ios) };
        let by = |amount: u64, rate: u64| if rate == 0 { 0.0 } else { amount as f64 / rate as f64 };
        let seconds = by(ask.size_bytes, bytes).max(by(1, ios));
        let factor = if self.poisson && seconds > 0.0 { random.exponential() } else { 1.0 };
        (seconds * factor * 1e9) as u64
    }

    pub(super) fn is_none(self) -> bool {
        self.read_bytes + self.read_ios + self.write_bytes + self.write_ios == 0
    }
}

impl Default for Job {
    fn default() -> Self {
        Self {
            processes: 1,
            pattern: Pattern::Random,
            read_percent: 100,
            size_bytes: 4096,
            read_sizes: Sizes::default(),
            write_sizes: Sizes::default(),
            spread: Spread::Uniform,
            random_percent: 100,
            run: 1,
            gap_bytes: 0,
            depth: 1,
            batch: 1,
            think_ns: 0,
            think_every: 1,
            start_ns: 0,
            rates: Rates::default(),
            fsync_every: 0,
            offset_bytes: 0,
            range_bytes: 1 << 30,
            ios: 0,
            asynchronous: false,
            class: Class::BestEffort,
            priority: 4,
        }
    }
}

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
pub(super) struct Access {
    pub is_read: bool,
    /// From the start of the job's range.
    pub offset_bytes: u64,
    pub size_bytes: u64,
}

impl Walk {
    pub fn new(rank: u64, random: Random) -> Self {
        Self { random, rank, at_bytes: 0, run_left: 0 }
    }

    pub fn next(&mut self, job: &Job) -> Access {
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
        Access { is_read, offset_bytes, size_bytes }
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
