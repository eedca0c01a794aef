use proptest::prelude::*;

use super::*;

fn issued(at_ns: u64, sector: u64, sectors: u64) -> Issued {
    let (kind, bytes) = (Kind::Write, sectors * 512);
    Issued { at_ns, kind, sector, bytes, queued_ns: Some(at_ns - at_ns / 4), bios: 1, depth: 3, waiting: 1 }
}

fn figures(sectors: &[u64]) -> Figures {
    let mut figures = Figures::default();
    for (number, sector) in (1..).zip(sectors) {
        figures.issued(&issued(number * 1_000_000, *sector, 8));
    }
    figures
}

#[test]
fn runs_and_distances_are_those_of_the_definition() {
    // Three runs: 0 8 80, 16 24, 0. Distances in sectors from end to start: 0, 64, 72, 0, 32.
    let found = figures(&[0, 8, 80, 16, 24, 0]).json(None, 0);
    assert_eq!((&found["sorted_runs"], &found["sorted_run_requests_mean"]), (&json!(3), &json!(2.0)));
    assert_eq!(found["seek_bytes_mean"], json!(168.0 * 512.0 / 5.0));
    assert_eq!((&found["sequential_ratio"], &found["ascending_ratio"]), (&json!(0.4), &json!(0.6)));
    assert_eq!(found["device_depth"], json!({"mean": 3.0, "max": 3}));
}

#[test]
fn random_order_has_runs_of_two() {
    let mut state = 1u64;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 40
    });
    let found = figures(&random.take(4000).collect::<Vec<_>>()).json(None, 0);
    let mean = found["sorted_run_requests_mean"].as_f64().unwrap();
    assert!((1.9..2.1).contains(&mean), "{mean}");
}

#[test]
fn a_window_takes_whole_slices() {
    let mut figures = Figures::default();
    for slice in 10..20 {
        figures.issued(&issued(slice * SLICE_NS + 1, slice * 8, 8));
    }
    let of = |start: u64, end: u64| figures.json(Some((start, end)), 0)["requests"]["write"].as_u64();
    assert_eq!(of(12 * SLICE_NS, 15 * SLICE_NS), Some(3));
    assert_eq!(of(12 * SLICE_NS + 40_000_000, 15 * SLICE_NS + 40_000_000), Some(3));
    assert_eq!(of(12 * SLICE_NS + 60_000_000, 15 * SLICE_NS), Some(2));
    assert_eq!(figures.json(None, 2)["open"], 2);
}

#[test]
fn a_trace_of_nothing_has_no_figures() {
    let found = Figures::default().json(None, 0);
    for name in ["seek_bytes_mean", "sorted_run_requests_mean", "sequential_ratio"] {
        assert_eq!(found[name], Value::Null, "{name}");
    }
    assert_eq!(found["device_ms"]["all"]["p99"], Value::Null);
}

#[test]
fn what_comes_after_a_jump_of_the_clock_is_counted() {
    let mut figures = figures(&[0, 8]);
    figures.issued(&issued(u64::MAX / 2, 16, 8));
    assert_eq!(figures.json(None, 0)["requests"]["write"], 1);
    assert_eq!(figures.slices().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Means are exact and percentiles within 1 % of those of the sorted times, over slices and however they are packed.
    #[test]
    fn times_are_right(times in proptest::collection::vec(1u64..5_000_000_000, 1..300), slices in 1u64..9) {
        let mut figures = Figures::default();
        for (number, time) in (0..).zip(&times) {
            let one = issued(number % slices * SLICE_NS, 0, 8);
            figures.completed(&Completed { at_ns: one.at_ns + time, issued: one, failed: false });
        }
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let found = &figures.json(None, 0)["device_ms"]["write"];
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6;
        prop_assert!((found["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
        for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            let exact = sorted[((share * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1] as f64 / 1e6;
            let ratio = found[name].as_f64().unwrap() / exact;
            prop_assert!((0.989..1.011).contains(&ratio), "{} is {} times what it should be", name, ratio);
        }
    }

    /// Adding slices up gives what one stretch would have given.
    #[test]
    fn windows_add_up(sectors in proptest::collection::vec(0u64..1000, 1..60)) {
        let mut figures = Figures::default();
        for (number, sector) in (1..).zip(&sectors) {
            figures.issued(&issued(number * 30_000_000, *sector, 8));
        }
        let of = |window| figures.within(window).json()["requests"]["write"].as_u64().unwrap();
        let middle = 10 * SLICE_NS;
        prop_assert_eq!(of(Some((0, middle))) + of(Some((middle, u64::MAX))), of(None));
        prop_assert_eq!(of(None) as usize, sectors.len());
    }
}
