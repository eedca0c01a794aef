//! When a rate counts as steady.

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
