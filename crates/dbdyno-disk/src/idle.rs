//! How many of the host's processors do nothing, by which the completion thread's budget for spinning goes.
//!
//! Source: `/proc/stat` (proc(5)): ticks of each processor by what it did. Only processors that this process may use count.
//!
//! Cannot: tell an idle processor from one that pollers keep awake, which counts as busy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::process::monotonic_ns;

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

    fn seen(&self, processors: f64) {
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
            idle.seen(f64::max(0.0, now_seconds - then_seconds) / passed_seconds);
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
    use super::*;

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
        idle.seen(1.0);
        idle.seen(0.0);
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
