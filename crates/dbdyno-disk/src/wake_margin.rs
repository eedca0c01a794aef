//! How short of an answer's time the completion thread wakes: by what waking takes on this host, and by how many of its
//! processors are idle.
//!
//! The rest of the wait is spun away, within a budget: the host's processors belong to the database server. Where
//! processors idle it is larger. What is left of it shortens the spinning step by step, so that all sleeps get their
//! part of it.
//!
//! Source: `/proc/stat` (proc(5)): ticks of each processor by what it did. Only processors that this process may use
//! count.
//!
//! Cannot: tell an idle processor from one that pollers keep awake, which counts as busy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::process::monotonic_ns;

/// Closer to its time than this a thread need not fall asleep, because that and waking take about as long.
pub const LEAST_NS: u64 = 8_000;

/// Falling asleep for less than this would end late for certain.
const NEAR_NS: u64 = 2_000;

/// A sleep that ends later than this met something else than a slow wake-up.
const MOST_NS: u64 = 200_000;

/// The budget, of one processor: a quarter of what idles, and within these bounds.
const OF_IDLE: f64 = 0.25;
const SHARE_MIN: f64 = 0.05;
const SHARE_MAX: f64 = 0.25;

/// From so many idle processors on there is one that waits of less than [`LEAST_NS`] may have.
const ONE_IDLE: f64 = 0.75;

/// For how long the budget can be saved up, ns.
const SAVED_NS: f64 = 1e9;

/// Of the sleeps, how many end by the time that the margin leaves them.
const IN_TIME: f64 = 0.98;

/// Follows the lateness of sleeps, what was spun, and how idle the host is.
#[derive(Debug)]
pub struct Margin {
    late_ns: f64,
    /// The budget, of one processor.
    share: f64,
    one_idle: bool,
    /// What may be spun, as of `seen_ns`.
    left_ns: f64,
    seen_ns: u64,
    spun: Duration,
    /// When the host was last looked at, and what had been spun by then.
    host: Option<(u64, Duration)>,
}

impl Margin {
    pub fn new() -> Self {
        Self {
            late_ns: LEAST_NS as f64,
            share: SHARE_MIN,
            one_idle: false,
            left_ns: SHARE_MIN * SAVED_NS,
            seen_ns: 0,
            spun: Duration::ZERO,
            host: None,
        }
    }

    /// How short to sleep.
    pub fn ns(&mut self, now_ns: u64) -> u64 {
        self.earn(now_ns);
        let least_ns = if self.one_idle { LEAST_NS } else { NEAR_NS };
        // All of it while half of the budget is left.
        let afforded = (2.0 * self.left_ns / (self.share * SAVED_NS)).clamp(0.0, 1.0);
        least_ns.max((self.late_ns * afforded) as u64)
    }

    /// A sleep that nothing cut short ended so much too late. The estimate is of a quantile: for a sleep that was later
    /// it goes up so much further than it goes down for one that was not (Robbins and Monro 1951).
    pub fn overslept(&mut self, late_ns: u64) {
        let step = self.late_ns / 16.0;
        let late_ns = late_ns.min(MOST_NS) as f64;
        self.late_ns += if late_ns > self.late_ns { step * IN_TIME } else { -step * (1.0 - IN_TIME) };
        self.late_ns = self.late_ns.clamp(LEAST_NS as f64, MOST_NS as f64);
    }

    /// So much was spun, up to now.
    pub fn spun(&mut self, now_ns: u64, spun_ns: u64) {
        self.earn(now_ns);
        self.left_ns -= spun_ns as f64;
        self.spun += Duration::from_nanos(spun_ns);
    }

    /// So many processors were idle since this was last said. What was spun meanwhile would have been idle too.
    pub fn host_idled(&mut self, now_ns: u64, processors: f64) {
        if let Some((then_ns, spun)) = self.host.filter(|(then_ns, _)| *then_ns < now_ns) {
            self.earn(now_ns);
            let passed_seconds = (now_ns - then_ns) as f64 / 1e9;
            let idle = processors + (self.spun.saturating_sub(spun)).as_secs_f64() / passed_seconds;
            self.share = (OF_IDLE * idle).clamp(SHARE_MIN, SHARE_MAX);
            self.one_idle = idle >= ONE_IDLE;
        }
        self.host = Some((now_ns, self.spun));
    }

    fn earn(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.seen_ns) as f64;
        self.seen_ns = self.seen_ns.max(now_ns);
        self.left_ns = (self.left_ns + self.share * passed_ns).min(self.share * SAVED_NS);
    }

    /// Spun since the start.
    pub fn spun_seconds(&self) -> f64 {
        self.spun.as_secs_f64()
    }

    /// How much of one processor may be spun now.
    pub fn share(&self) -> f64 {
        self.share
    }
}

/// Ticks are 4 to 10 ms: shorter looks are coarse, longer ones see a load begin late.
const EVERY: Duration = Duration::from_millis(250);

/// Where the ticks of `idle` and `iowait` stand behind the processor's name.
const IDLE_AT: [usize; 2] = [3, 4];

const NO_NEWS: u64 = u64::MAX;

/// The newest look. Without a lock: the thread that looks has no real-time priority, and no other may wait for it.
#[derive(Debug)]
pub struct Idle(AtomicU64);

impl Idle {
    pub fn new() -> Self {
        Self(AtomicU64::new(NO_NEWS))
    }

    /// How many processors were idle between the two last looks, once for each look.
    pub fn news(&self) -> Option<f64> {
        let looked = self.0.load(Ordering::Relaxed) != NO_NEWS;
        let bits = if looked { self.0.swap(NO_NEWS, Ordering::Relaxed) } else { NO_NEWS };
        (bits != NO_NEWS).then(|| f64::from_bits(bits))
    }

    fn store(&self, processors: f64) {
        self.0.store(processors.to_bits(), Ordering::Relaxed);
    }
}

/// Looks again and again, for as long as anybody wants to know.
pub fn watch(idle: &Arc<Idle>) -> impl FnOnce() + Send + 'static {
    let idle = Arc::downgrade(idle);
    move || while_wanted(&idle)
}

fn while_wanted(idle: &Weak<Idle>) {
    let mut before = None;
    while let Some(idle) = idle.upgrade() {
        let seen = look();
        if let (Some((then_ns, then_seconds)), Some((now_ns, now_seconds))) = (before, seen) {
            let passed_seconds = (now_ns - then_ns) as f64 / 1e9;
            idle.store(f64::max(0.0, now_seconds - then_seconds) / passed_seconds);
        }
        before = seen;
        drop(idle);
        sleep(EVERY);
    }
}

/// When, and how many seconds processors have idled by then; `None` where the host does not show it.
fn look() -> Option<(u64, f64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let usable = sched_getaffinity(None).ok()?;
    Some((monotonic_ns(), idle_ticks(&text, &usable) as f64 / clock_ticks_per_second() as f64))
}

fn idle_ticks(stat: &str, usable: &CpuSet) -> u64 {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let number = words.next()?.parse::<usize>().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let usable = number < CpuSet::MAX_CPU && usable.is_set(number);
        usable.then(|| IDLE_AT.iter().filter_map(|at| ticks.get(*at)).sum::<u64>())
    };
    // The sum of all stands first, as "cpu " without a number, whose first word is then not one of a processor.
    stat.lines().filter(|line| !line.starts_with("cpu ")).filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;
    use proptest::prelude::*;

    use super::*;

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
        let in_time = (0..10_000).filter(|_| margin.ns(0) >= late(&mut margin)).count();
        assert!((9_500..=9_950).contains(&in_time), "{in_time} of 10,000");
    }

    #[test]
    fn what_a_stall_took_does_not_stay() {
        let mut margin = Margin::new();
        margin.overslept(50_000_000);
        (0..1_000).for_each(|_| margin.overslept(5_000));
        margin.host_idled(1, 2.0);
        margin.host_idled(2, 2.0);
        assert_eq!(margin.ns(3), LEAST_NS);
    }

    /// Spins as far as the margin lets it, before answers so far apart; gives what it spun of ten seconds.
    fn spun_share(idle: f64, gap_ns: u64) -> f64 {
        let mut margin = Margin::new();
        (0..1_000).for_each(|_| margin.overslept(100_000));
        let (mut now_ns, mut spun_ns, mut looked_ns) = (0, 0, 0);
        while now_ns < 10_000_000_000 {
            if now_ns >= looked_ns {
                margin.host_idled(now_ns, idle);
                looked_ns += 250_000_000;
            }
            now_ns += gap_ns;
            let turn_ns = margin.ns(now_ns).min(gap_ns);
            spun_ns += turn_ns;
            margin.spun(now_ns, turn_ns);
        }
        assert!((margin.spun_seconds() - spun_ns as f64 / 1e9).abs() < 1e-9);
        spun_ns as f64 / 10e9
    }

    #[test]
    fn a_busy_host_spins_a_twentieth_and_an_idle_one_a_quarter() {
        let (busy, idle) = (spun_share(0.0, 300_000), spun_share(2.0, 300_000));
        assert!((0.045..=0.056).contains(&busy), "{busy}");
        assert!((0.23..=0.28).contains(&idle), "{idle}");
    }

    #[test]
    fn short_waits_are_slept_on_a_busy_host_and_spun_where_a_processor_idles() {
        let (busy, idle) = (spun_share(0.2, 7_000), spun_share(1.5, 7_000));
        assert!(busy < 0.35 && idle > 0.95, "{busy} {idle}");
    }

    #[test]
    fn what_it_spins_itself_does_not_make_the_host_busy() {
        let mut margin = Margin::new();
        margin.host_idled(0, 1.0);
        for second in 1..20 {
            let now_ns = second * 1_000_000_000;
            margin.spun(now_ns, 250_000_000);
            margin.host_idled(now_ns, 0.75);
            assert!((margin.share() - SHARE_MAX).abs() < 1e-6, "{}", margin.share());
        }
    }

    proptest! {
        #[test]
        fn the_budget_grows_with_what_idles_and_stays_within_its_bounds(first in 0.0..64.0_f64, second in 0.0..64.0_f64) {
            let share = |idle: f64| {
                let mut margin = Margin::new();
                margin.host_idled(1, idle);
                margin.host_idled(1_000_000_001, idle);
                margin.share()
            };
            let (less, more) = (share(first.min(second)), share(first.max(second)));
            prop_assert!((SHARE_MIN..=SHARE_MAX).contains(&less) && less <= more && more <= SHARE_MAX);
        }

        #[test]
        fn it_never_sleeps_shorter_than_sleeps_are_late(late in prop::collection::vec(0..400_000_u64, 0..200)) {
            let mut margin = Margin::new();
            for late_ns in late {
                margin.overslept(late_ns);
            }
            prop_assert!((NEAR_NS..=MOST_NS).contains(&margin.ns(5_000_000_000)));
        }
    }

    const STAT: &str = "cpu  60 2 30 1500 25 0 4 1 0 0\ncpu0 10 1 10 700 5 0 2 0 0 0\ncpu1 20 0 10 500 20 0 1 1 0 0\n\
                    cpu2 30 1 10 300 0 0 1 0 0 0\nintr 12345 1 2 3\nctxt 99\n";

    #[test]
    fn idle_ticks_are_those_of_processors_that_may_be_used() {
        let mut usable = CpuSet::new();
        assert_eq!(idle_ticks(STAT, &usable), 0);
        usable.set(1);
        assert_eq!(idle_ticks(STAT, &usable), 520);
        usable.set(0);
        assert_eq!(idle_ticks(STAT, &usable), 520 + 705);
    }

    #[test]
    fn a_look_is_news_once() {
        let idle = Idle::new();
        assert_eq!(idle.news(), None);
        idle.store(1.0);
        idle.store(0.0);
        assert_eq!((idle.news(), idle.news()), (Some(0.0), None));
    }

    #[test]
    fn what_is_not_as_expected_counts_as_busy() {
        let mut usable = CpuSet::new();
        usable.set(0);
        for stat in ["", "cpu0", "cpu0 1 2 3", "cpux 1 2 3 4 5", "cpu99999 1 1 1 7 7", "cpu0 a b c d e"] {
            assert_eq!(idle_ticks(stat, &usable), 0, "{stat}");
        }
    }

    #[test]
    fn this_host_shows_it_and_it_never_goes_back() {
        let (then_ns, idle) = look().unwrap_or_else(|| panic!("/proc/stat"));
        let (now_ns, idle_now) = look().unwrap_or_else(|| panic!("/proc/stat"));
        // The kernel's own sums of iowait may go back by a tick or two (proc(5)).
        assert!(now_ns >= then_ns && idle_now >= idle - 0.1, "{idle} {idle_now}");
    }
}
