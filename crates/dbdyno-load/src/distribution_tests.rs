use super::*;
use proptest::prelude::*;

const DRAWS: u32 = 200_000;

fn sampled(distribution: Distribution, low: i64, high: i64) -> Vec<i64> {
    let sampler = Sampler::new(distribution, low, high);
    let mut random = Random::new(7);
    (0..DRAWS).map(|_| sampler.draw(&mut random)).collect()
}

/// Pearson's chi-square of draws from 1..=n against `probability`, over its expected value n - 1, in its standard
/// deviations.
fn surprise(distribution: Distribution, n: u32, probability: impl Fn(f64) -> f64) -> f64 {
    let mut counts = vec![0.0; n as usize];
    for value in sampled(distribution, 1, i64::from(n)) {
        counts[value as usize - 1] += 1.0;
    }
    let term = |(at, count): (usize, &f64)| {
        let expected = f64::from(DRAWS) * probability(at as f64 + 1.0);
        (count - expected).powi(2) / expected
    };
    let chi_square: f64 = counts.iter().enumerate().map(term).sum();
    let freedom = f64::from(n - 1);
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

fn moments(values: &[i64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|v| *v as f64).sum::<f64>() / count;
    let variance = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / count;
    (mean, variance)
}

#[test]
fn draws_follow_the_formula() {
    let n = 100;
    let size = f64::from(n);
    let uniform = surprise(Distribution::Uniform, n, |_| 1.0 / size);
    assert!(uniform.abs() < 4.0, "{uniform}");
    // From the distribution functions of both.
    let power = (0.8_f64).ln() / (0.2_f64).ln();
    let pareto = surprise(Distribution::PARETO, n, |r| (r / size).powf(power) - ((r - 1.0) / size).powf(power));
    assert!(pareto.abs() < 4.0, "{pareto}");
    let reach = 1.0 - (-3.0_f64).exp();
    let below = |x: f64| (1.0 - (-3.0 * x / size).exp()) / reach;
    let exponential = surprise(Distribution::Exponential { rate: 3.0 }, n, |r| below(r) - below(r - 1.0));
    assert!(exponential.abs() < 4.0, "{exponential}");
    for exponent in [0.0, 0.5, 0.8, 1.0, 1.0 + 1e-9, 1.2, 2.0] {
        let total: f64 = (1..=n).map(|r| f64::from(r).powf(-exponent)).sum();
        let zipf = surprise(Distribution::Zipfian { exponent }, n, |r| r.powf(-exponent) / total);
        assert!(zipf.abs() < 4.0, "{exponent}: {zipf}");
    }
}

#[test]
fn a_bell_has_the_moments_of_a_mean_of_uniform_draws() {
    let (mean, variance) = moments(&sampled(Distribution::GAUSSIAN, 1, 1_000_000));
    assert!((mean - 500_000.0).abs() < 1000.0, "{mean}");
    let expected = 1e12 / 12.0 / 12.0;
    assert!((variance / expected - 1.0).abs() < 0.02, "{variance}");
}

#[test]
fn special_hits_its_middle_as_often_as_sysbench() {
    let values = sampled(Distribution::SPECIAL, 1, 1_000_000);
    let within = |low: i64, high: i64| {
        let inside = values.iter().filter(|value| (low..high).contains(*value)).count();
        inside as f64 / f64::from(DRAWS)
    };
    // The bell's density at its middle is 4.8 (Irwin-Hall, n = 12), times a quarter of the draws.
    let background = 0.25 * 4.8 * 0.0025;
    assert!((within(497_500, 505_000) - 0.75 - 3.0 * background).abs() < 0.005, "{}", within(497_500, 505_000));
    assert!((within(495_000, 497_500) - background).abs() < 0.001, "{}", within(495_000, 497_500));
    assert!((within(497_500, 500_000) - within(502_500, 505_000)).abs() < 0.01);
}

#[test]
fn the_first_fifth_gets_four_fifths_of_a_pareto_beyond_32_bits() {
    let size = 1_i64 << 40;
    let values = sampled(Distribution::PARETO, 1, size);
    let hot = values.iter().filter(|value| **value <= size / 5).count();
    assert!((hot as f64 / f64::from(DRAWS) - 0.8).abs() < 0.01);
}

#[test]
fn a_zipfian_beyond_32_bits_has_its_median_where_the_integral_says() {
    // H(x) is the sum to a fraction that vanishes: half of it lies below n^(1/2) for an exponent of 1, and below
    // n / 2^(1/0.2) for 0.8.
    for (exponent, median) in [(1.0, (1_i64 << 20) as f64), (0.8, (1_i64 << 35) as f64)] {
        let values = sampled(Distribution::Zipfian { exponent }, 1, 1 << 40);
        let below = values.iter().filter(|value| (**value as f64) < median).count();
        let share = below as f64 / f64::from(DRAWS);
        assert!((share - 0.5).abs() < 0.02, "{exponent}: {share}");
    }
}

#[test]
fn flags_set_parameters_and_mistakes_name_them() {
    let parse = |flags: &[(&'static str, &'static str)]| {
        Distribution::parse(&Values::of(flags), Distribution::SPECIAL).map_err(|error| error.to_string())
    };
    assert_eq!(parse(&[]), Ok(Distribution::SPECIAL));
    let special = Distribution::Special { iterations: 3, percent: 5.0, hits: 90.0 };
    assert_eq!(parse(&[("rand-spec-iter", "3"), ("rand-spec-pct", "5"), ("rand-spec-res", "90")]), Ok(special));
    let zipfian = [("rand-type", "zipfian"), ("rand-zipfian-exp", "1.1")];
    assert_eq!(parse(&zipfian), Ok(Distribution::Zipfian { exponent: 1.1 }));
    for (flags, said) in [
        (&[("rand-type", "unifrom")][..], "did you mean uniform?"),
        (&[("rand-spec-iter", "0")], "--rand-spec-iter=0"),
        (&[("rand-spec-res", "101")], "--rand-spec-res=101"),
        (&[("rand-type", "pareto"), ("rand-pareto-h", "1")], "between 0 and 1"),
        (&[("rand-type", "zipfian"), ("rand-zipfian-exp", "-1")], "--rand-zipfian-exp=-1"),
        (&[("rand-type", "exponential"), ("rand-exponential-rate", "nan")], "above 0"),
    ] {
        let text = parse(flags).unwrap_err();
        assert!(text.contains(said), "{text}");
    }
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Uniform),
        (1u32..20).prop_map(|iterations| Distribution::Gaussian { iterations }),
        (1u32..20, 0.0..=100.0, 0.0..=100.0).prop_map(|(iterations, percent, hits)| Distribution::Special {
            iterations,
            percent,
            hits
        }),
        (0.001..0.999).prop_map(|h| Distribution::Pareto { h }),
        (0.0..=100.0).prop_map(|exponent| Distribution::Zipfian { exponent }),
        (0.001..=100.0).prop_map(|rate| Distribution::Exponential { rate }),
    ]
}

fn any_range() -> impl Strategy<Value = (i64, i64)> {
    let narrow = (any::<i64>(), 0i64..5).prop_map(|(low, more)| (low, low.saturating_add(more)));
    let any = (any::<i64>(), any::<i64>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![narrow, any, Just((i64::MIN, i64::MAX)), Just((1, 10_000))]
}

proptest! {
    #[test]
    fn draws_stay_in_range_and_seeds_repeat_them(
        distribution in any_distribution(), (low, high) in any_range(), seed: u64
    ) {
        prop_assert!(distribution.check().is_ok());
        let sampler = Sampler::new(distribution, low, high);
        let (mut random, mut again) = (Random::new(seed), Random::new(seed));
        for _ in 0..100 {
            let value = sampler.draw(&mut random);
            prop_assert!((low..=high).contains(&value), "{value}");
            prop_assert_eq!(value, sampler.draw(&mut again));
        }
    }
}
