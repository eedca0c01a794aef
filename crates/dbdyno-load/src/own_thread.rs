//! What the kernel gave one thread of the load: CPU, and the time that it was kept waiting for it.

use std::fs;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

/// Time on a processor, and in the queue for one; seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Scheduled {
    /// It ran.
    pub cpu_seconds: f64,
    /// It could have run, and others did; `None` where the kernel does not count it.
    pub wait_seconds: Option<f64>,
}

impl Scheduled {
    /// Of the calling thread, since it was made.
    pub fn so_far() -> Self {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Self::of_schedstat(&text).unwrap_or_else(|| {
            let used = getrusage(UsageWho::RUSAGE_THREAD)
                .map_or(0, |usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds());
            Self { cpu_seconds: used as f64 / 1e6, wait_seconds: None }
        })
    }

    /// Nanoseconds run, nanoseconds waited, and how often it was given a processor.
    fn of_schedstat(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (ran, waited) = (numbers.next()??, numbers.next()??);
        // A kernel without these statistics shows zeros.
        (ran > 0).then(|| Self { cpu_seconds: ran as f64 / 1e9, wait_seconds: Some(waited as f64 / 1e9) })
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let waited = self.wait_seconds.zip(earlier.wait_seconds).map(|(now, then)| (now - then).max(0.0));
        Self { cpu_seconds: (self.cpu_seconds - earlier.cpu_seconds).max(0.0), wait_seconds: waited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ns;

    #[test]
    fn schedstat_is_read() {
        let read = Scheduled::of_schedstat("2000000000 500000000 7\n");
        assert_eq!(read, Some(Scheduled { cpu_seconds: 2.0, wait_seconds: Some(0.5) }));
        for none in ["", "0 0 0", "ran waited"] {
            assert_eq!(Scheduled::of_schedstat(none), None);
        }
    }

    #[test]
    fn a_thread_that_spins_has_used_cpu() {
        let before = Scheduled::so_far();
        let until = now_ns() + 20_000_000;
        while now_ns() < until {}
        let spent = Scheduled::so_far().since(before);
        // Others may have the processor for part of the time, which is then waited for.
        assert!(spent.cpu_seconds > 0.001 && spent.cpu_seconds < 0.1, "{spent:?}");
    }
}
