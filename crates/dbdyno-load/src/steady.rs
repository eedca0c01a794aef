//! When a warm-up was long enough: the rate of events no longer drifts.
//!
//! The rule: the line that fits the last half of the intervals best in least squares rises or falls from its first
//! interval to its last by no more than 3 % of their mean, and by no more than 10 % with 95 % certainty (Student's t of
//! the slope, residuals taken as independent). The 10 % are those of SNIA's Solid State Storage Performance Test
//! Specification 2.0, 2.1.24, which asks them of the line alone, as fio's `steadystate=iops_slope` does; with the
//! interval of the slope a rate that is too noisy to tell goes on instead of passing. The last half, and not a window
//! of some length, since how slow a drift is to be looked for grows with how long it has lasted already.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::drive::Shared;
use crate::measure::{Interval, IntervalSink};

/// Length of an interval.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Fewest intervals that a line is fitted to; also the shortest warm-up, which `run_options` knows.
const LEAST: usize = 12;

/// Largest drift over the intervals looked at, of their mean: of the line, and of the far end of its interval.
const DRIFT_MAX: f64 = 0.03;
const DRIFT_END_MAX: f64 = 0.1;

/// Whether the rate no longer drifts, after intervals of one length with so many events.
pub fn is_steady(events: &[u64]) -> bool {
    if events.len() < LEAST {
        return false;
    }
    let looked_at = &events[events.len() - LEAST.max(events.len() / 2)..];
    let n = looked_at.len() as f64;
    let mean = looked_at.iter().sum::<u64>() as f64 / n;
    if mean <= 0.0 {
        return false; // a server that answers nothing is not steady
    }
    let centred = || looked_at.iter().enumerate().map(|(i, count)| (i as f64 - (n - 1.0) / 2.0, *count as f64 - mean));
    let squares = n * (n * n - 1.0) / 12.0;
    let slope = centred().map(|(x, y)| x * y).sum::<f64>() / squares;
    let residual = centred().map(|(x, y)| (y - slope * x).powi(2)).sum::<f64>() / (n - 2.0);
    let uncertainty = student_975(n - 2.0) * (residual / squares).sqrt();
    let drift = |slope: f64| slope * (n - 1.0) / mean;
    drift(slope.abs()) <= DRIFT_MAX && drift(slope.abs() + uncertainty) <= DRIFT_END_MAX
}

/// The 97.5 % point of Student's t, to .01 from 10 degrees of freedom on (Abramowitz and Stegun 26.7.5, two terms).
fn student_975(freedom: f64) -> f64 {
    1.95996 + 2.37227 / freedom + 2.8225 / (freedom * freedom)
}

/// Adds up what all threads counted, and ends the warm-up when it was long enough.
#[derive(Debug)]
pub struct Watch<'a> {
    warming: &'a Shared,
    threads: usize,
    /// Events of each interval, and how many threads told of it.
    counted: Mutex<(Vec<(u64, usize)>, bool)>,
}

impl<'a> Watch<'a> {
    /// Of a warm-up by so many threads.
    pub fn new(warming: &'a Shared, threads: usize) -> Self {
        Self { warming, threads, counted: Mutex::default() }
    }

    /// Whether the rate was steady at some moment.
    pub fn was_steady(&self) -> bool {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn count(&self, number: usize, events: u64) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (intervals, steady) = &mut *counted;
        if intervals.len() <= number {
            intervals.resize(number + 1, (0, 0));
        }
        intervals[number].0 += events;
        intervals[number].1 += 1;
        if intervals[number].1 < self.threads || *steady {
            return;
        }
        let whole: Vec<u64> =
            intervals.iter().take_while(|(_, told)| *told == self.threads).map(|(events, _)| *events).collect();
        *steady = is_steady(&whole);
        if *steady {
            self.warming.end();
        }
    }
}

/// One thread's part of a [`Watch`].
#[derive(Debug)]
pub struct Watcher<'a>(pub &'a Watch<'a>);

impl IntervalSink for Watcher<'_> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        // The one that is open at the end is shorter.
        if u128::from(interval.end_ns - interval.start_ns) >= INTERVAL.as_nanos() {
            self.0.count(interval.number as usize, interval.tally.events.count());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;
    use proptest::prelude::*;

    use super::*;

    /// After how many intervals a warm-up ends whose rate is `rate(i)`, with noise of `noise` to either side; `None`: later.
    fn ends_after(most: usize, noise: f64, seed: u64, rate: impl Fn(usize) -> f64) -> Option<usize> {
        let mut random = Random::new(seed);
        let mut events = Vec::new();
        (1..=most).find(|i| {
            let either = 2.0 * random.unit() - 1.0;
            events.push((rate(*i) * (1.0 + noise * either)).round() as u64);
            is_steady(&events)
        })
    }

    #[test]
    fn student_s_t_is_that_of_the_tables() {
        for (freedom, t) in [(10.0, 2.228), (12.0, 2.179), (20.0, 2.086), (60.0, 2.000), (1e9, 1.960)] {
            assert!((student_975(freedom) - t).abs() < 0.01, "{freedom}: {}", student_975(freedom));
        }
    }

    #[test]
    fn the_shortest_warm_up_is_that_of_the_flags() {
        assert_eq!(INTERVAL * LEAST as u32, crate::run_options::STEADY_SHORTEST);
    }

    #[test]
    fn a_rate_that_does_not_change_is_steady_at_once() {
        assert_eq!(ends_after(100, 0.0, 1, |_| 500.0), Some(LEAST));
    }

    #[test]
    fn a_server_that_answers_nothing_is_not_steady() {
        assert_eq!(ends_after(1000, 0.0, 1, |_| 0.0), None);
    }

    #[test]
    fn a_warm_up_ends_when_the_last_thread_has_told_of_steady_intervals() {
        let warming = Shared::new(None);
        let watch = Watch::new(&warming, 2);
        for number in 0..LEAST {
            watch.count(number, 50);
        }
        assert!(!watch.was_steady());
        for number in 0..LEAST {
            assert!(!warming.is_ended());
            watch.count(number, 150);
        }
        assert!(watch.was_steady() && warming.is_ended());
    }

    #[test]
    fn two_threads_that_drift_against_each_other_are_steady_together() {
        let warming = Shared::new(None);
        let watch = Watch::new(&warming, 2);
        for number in 0..LEAST {
            watch.count(number, 100 * number as u64);
            watch.count(number, 100 * (LEAST - number) as u64);
        }
        assert!(watch.was_steady());
    }

    proptest! {
        #[test]
        fn a_rate_that_only_fluctuates_is_steady_soon(seed: u64, rate in 200.0..1e6, noise in 0.0..0.05) {
            // Uniform, so the standard deviation is .58 of the noise.
            let ended = ends_after(60, noise, seed, |_| rate);
            prop_assert!(ended.is_some(), "not within 30 s");
        }

        #[test]
        fn a_ramp_is_not_steady_before_it_flattens(
            seed: u64, start in 0.05..0.5, top in 12usize..60, noise in 0.0..0.03, falls: bool,
        ) {
            let ended = ends_after(4 * top, noise, seed, |i| {
                let part = (i as f64 / top as f64).min(1.0);
                1e4 * if falls { 1.0 - (1.0 - start) * part } else { start + (1.0 - start) * part }
            });
            prop_assert!(ended.is_none_or(|i| i >= top), "{ended:?} of {top}");
        }

        #[test]
        fn no_series_is_steady_before_the_shortest_warm_up(events in prop::collection::vec(0u64..1000, 0..LEAST)) {
            prop_assert!(!is_steady(&events));
        }

        #[test]
        fn a_rate_that_nears_its_end_slowly_is_within_five_percent_of_it(seed: u64, slow in 12.0..100.0_f64, start in 0.1..0.5_f64) {
            let rate = |i: usize| 1e4 * (1.0 - (1.0 - start) * f64::exp(-(i as f64) / slow));
            let ended = ends_after(20 * slow as usize, 0.01, seed, rate);
            prop_assert!(ended.is_some_and(|i| rate(i) > 0.95e4), "{ended:?} of {slow}");
        }
    }
}
