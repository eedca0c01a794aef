//! Random keys: the distributions of sysbench's `--rand-type`, over any range of 64-bit integers.
//!
//! All but `exponential` follow sysbench 1.0.20 (zipfian: its successor), parameters and defaults included.

use dbdyno_common::random::Random;

use crate::error::Error;
use crate::flags::Flag;
use crate::values::Values;

/// The flags: the distribution and its parameters.
pub const FLAGS: &[Flag] = &[
    Flag::value(
        "rand-type",
        "distribution of ids and keys: special, uniform, gaussian, pareto, zipfian or exponential",
    ),
    Flag::value("rand-spec-iter", "gaussian, special: uniform numbers averaged into one"),
    Flag::value("rand-spec-pct", "special: width of the hot middle, in percent"),
    Flag::value("rand-spec-res", "special: draws that hit the middle, in percent"),
    Flag::value("rand-pareto-h", "pareto: a share H of the range gets a share 1 - H of the draws"),
    Flag::value("rand-zipfian-exp", "zipfian: exponent"),
    Flag::value("rand-exponential-rate", "exponential: the density falls to exp(-rate) over the range"),
];

/// How draws are spread over a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All values alike.
    Uniform,
    /// The mean of some uniform draws: a bell around the middle.
    Gaussian {
        /// How many are averaged.
        iterations: u32,
    },
    /// Some draws in a narrow middle, the others as [`Self::Gaussian`].
    Special {
        /// Of the bell.
        iterations: u32,
        /// Width of the middle, in percent of the range.
        percent: f64,
        /// Draws that hit the middle, in percent.
        hits: f64,
    },
    /// A power of a uniform draw; small values are hot, and with h = 0.2 a fifth of the values gets four fifths of the
    /// draws.
    Pareto {
        /// The shape, between 0 and 1.
        h: f64,
    },
    /// Value number r, counted from 1, in proportion to r^-exponent.
    Zipfian {
        /// From 0, which is uniform.
        exponent: f64,
    },
    /// The density falls exponentially from the lowest value on.
    Exponential {
        /// By how many powers of e it falls over the whole range; above 0.
        rate: f64,
    },
}

impl Distribution {
    /// As `--rand-type=gaussian` alone.
    pub const GAUSSIAN: Self = Self::Gaussian { iterations: 12 };
    /// As `--rand-type=special` alone.
    pub const SPECIAL: Self = Self::Special { iterations: 12, percent: 1.0, hits: 75.0 };
    /// As `--rand-type=pareto` alone.
    pub const PARETO: Self = Self::Pareto { h: 0.2 };
    /// As `--rand-type=zipfian` alone.
    pub const ZIPFIAN: Self = Self::Zipfian { exponent: 0.8 };
    /// As `--rand-type=exponential` alone.
    pub const EXPONENTIAL: Self = Self::Exponential { rate: 10.0 };

    /// All of them with their usual parameters, by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("uniform", Self::Uniform),
        ("gaussian", Self::GAUSSIAN),
        ("special", Self::SPECIAL),
        ("pareto", Self::PARETO),
        ("zipfian", Self::ZIPFIAN),
        ("exponential", Self::EXPONENTIAL),
    ];

    /// Reads the flags above; `default` is for a command line without [`"rand-type"`].
    ///
    /// # Errors
    /// An unknown name, or a parameter that is no number or out of its range.
    pub fn parse(values: &Values<'_>, default: Self) -> Result<Self, Error> {
        // So that the defaults of all are known.
        for (_, other) in Self::ALL {
            let _ = other.with(values);
        }
        let distribution = values.choice("rand-type", &Self::ALL, default)?.with(values)?;
        distribution.check()?;
        Ok(distribution)
    }

    /// With the parameters that were given in place of its own.
    fn with(self, values: &Values<'_>) -> Result<Self, Error> {
        let number = |flag: &str, usual: f64| values.number(flag, usual);
        let iterations = |usual: u32| values.number("rand-spec-iter", usual);
        Ok(match self {
            Self::Uniform => Self::Uniform,
            Self::Gaussian { iterations: usual } => Self::Gaussian { iterations: iterations(usual)? },
            Self::Special { iterations: usual, percent, hits } => Self::Special {
                iterations: iterations(usual)?,
                percent: number("rand-spec-pct", percent)?,
                hits: number("rand-spec-res", hits)?,
            },
            Self::Pareto { h } => Self::Pareto { h: number("rand-pareto-h", h)? },
            Self::Zipfian { exponent } => Self::Zipfian { exponent: number("rand-zipfian-exp", exponent)? },
            Self::Exponential { rate } => Self::Exponential { rate: number("rand-exponential-rate", rate)? },
        })
    }

    /// Sees that the parameters make sense.
    ///
    /// # Errors
    /// One does not; names its flag.
    pub fn check(self) -> Result<(), Error> {
        const ITERATIONS_MAX: u32 = 1000;
        const STEEPEST: f64 = 100.0;
        let within = |flag: &str, value: f64, fits: bool, range: &str| {
            if fits { Ok(()) } else { Err(Error::Usage(format!("--{flag}={value}: give {range}"))) }
        };
        let bell = |iterations: u32| {
            let fits = (1..=ITERATIONS_MAX).contains(&iterations);
            within("rand-spec-iter", iterations.into(), fits, "1 to 1000")
        };
        let percentage = |flag, value: f64| within(flag, value, (0.0..=100.0).contains(&value), "0 to 100");
        match self {
            Self::Uniform => Ok(()),
            Self::Gaussian { iterations } => bell(iterations),
            Self::Special { iterations, percent, hits } => {
                bell(iterations)?;
                percentage("rand-spec-pct", percent)?;
                percentage("rand-spec-res", hits)
            }
            Self::Pareto { h } => within("rand-pareto-h", h, h > 0.0 && h < 1.0, "a number between 0 and 1"),
            Self::Zipfian { exponent } => {
                within("rand-zipfian-exp", exponent, (0.0..=STEEPEST).contains(&exponent), "0 to 100")
            }
            Self::Exponential { rate } => {
                let fits = rate > 0.0 && rate <= STEEPEST;
                within("rand-exponential-rate", rate, fits, "a number above 0, up to 100")
            }
        }
    }
}

/// Draws from a distribution over a range; all that can be computed ahead, is.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    low: i64,
    /// High - low, which a range of all 64-bit integers just fits.
    last: u64,
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Uniform,
    Bell { iterations: u32, scale: f64 },
    Special { iterations: u32, scale: f64, bell_share: f64, width: f64, start: f64 },
    Power { size: f64, power: f64 },
    Zipf(Zipf),
    Exponential { size_per_rate: f64, reach: f64 },
}

impl Sampler {
    /// Draws of `low..=high`; of `low` alone if `high` is less. The parameters must have passed
    /// [`Distribution::check`].
    pub fn new(distribution: Distribution, low: i64, high: i64) -> Self {
        let last = high.max(low).abs_diff(low);
        let size = last as f64 + 1.0;
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Gaussian { iterations } => Shape::Bell { iterations, scale: size / f64::from(iterations) },
            Distribution::Special { iterations, percent, hits } => {
                // sysbench's width is the range's less one, and never 0.
                let (width, share) = (last as f64, percent / 100.0);
                Shape::Special {
                    iterations,
                    scale: width / f64::from(iterations),
                    bell_share: 1.0 - hits / 100.0,
                    width: width * share + 1.0,
                    start: width * (1.0 - share) / 2.0,
                }
            }
            // Solves (h)^(1/power) = 1 - h: the first h of the range gets 1 - h of the draws.
            Distribution::Pareto { h } => Shape::Power { size, power: h.ln() / (1.0 - h).ln() },
            Distribution::Zipfian { exponent } => Shape::Zipf(Zipf::new(size, exponent)),
            Distribution::Exponential { rate } => {
                Shape::Exponential { size_per_rate: size / rate, reach: -(-rate).exp_m1() }
            }
        };
        Self { low, last, shape }
    }

    /// The next value.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> i64 {
        let offset = match self.shape {
            Shape::Uniform => {
                let offset = if self.last == u64::MAX { random.bits() } else { random.below(self.last + 1) };
                return self.low.wrapping_add_unsigned(offset);
            }
            Shape::Bell { iterations, scale } => bell(iterations, random) * scale,
            Shape::Special { iterations, scale, bell_share, width, start } => {
                let uniform = random.unit();
                // The same draw goes on to place the value, as in sysbench: the first (100 - hits) percent of the
                // middle are never hit by it.
                if uniform < bell_share { bell(iterations, random) * scale } else { start + uniform * width }
            }
            Shape::Power { size, power } => size * random.unit().powf(power),
            Shape::Zipf(zipf) => zipf.rank(random) - 1.0,
            // By inversion of (1 - exp(-rate x / size)) / reach.
            Shape::Exponential { size_per_rate, reach } => -size_per_rate * (-random.unit() * reach).ln_1p(),
        };
        // The conversion cuts fractions and what lies outside of 0..2^64; rounding may pass the end.
        self.low.wrapping_add_unsigned((offset as u64).min(self.last))
    }
}

/// The sum of `iterations` uniform draws from 0..1.
#[inline]
fn bell(iterations: u32, random: &mut Random) -> f64 {
    (0..iterations).map(|_| random.unit()).sum()
}

/// Ranks 1..=n with probabilities in proportion to h(r) = r^-q, by rejection inversion (W. Hörmann and G. Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996, 169-184): a
/// uniform draw under the integral H of h is inverted and rounded, and taken unless it fell into what the integral has
/// too much. Constant time and memory for every n.
///
/// With H(x) = (x^(1-q) - 1) / (1-q), whose limit for q = 1 is ln x, one formula serves all exponents.
#[derive(Debug, Clone, Copy)]
struct Zipf {
    /// 1 - q, or 0 for an exponent so near to 1 that the limit is as exact.
    alpha: f64,
    exponent: f64,
    n: f64,
    /// H(1.5) - h(1): the area starts here, so that rank 1 is never refused.
    from: f64,
    /// H(n + 1/2).
    to: f64,
    /// A draw this near below its rank is taken without computing more.
    sure: f64,
}

impl Zipf {
    fn new(n: f64, exponent: f64) -> Self {
        const NEAR: f64 = 1e-12;
        let alpha = if (1.0 - exponent).abs() < NEAR { 0.0 } else { 1.0 - exponent };
        let mut zipf = Self { alpha, exponent, n, from: 0.0, to: 0.0, sure: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(n + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    #[inline]
    fn rank(&self, random: &mut Random) -> f64 {
        loop {
            let area = self.to + random.unit() * (self.from - self.to);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    fn integral(&self, x: f64) -> f64 {
        if self.alpha == 0.0 { x.ln() } else { (self.alpha * x.ln()).exp_m1() / self.alpha }
    }

    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        if self.alpha == 0.0 { area.exp() } else { ((self.alpha * area).ln_1p() / self.alpha).exp() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        for (flags, expected) in [
            (&[("rand-type", "unifrom")][..], "Did you mean \"uniform\"?"),
            (&[("rand-spec-iter", "0")], "--rand-spec-iter=0"),
            (&[("rand-spec-res", "101")], "--rand-spec-res=101"),
            (&[("rand-type", "pareto"), ("rand-pareto-h", "1")], "between 0 and 1"),
            (&[("rand-type", "zipfian"), ("rand-zipfian-exp", "-1")], "--rand-zipfian-exp=-1"),
            (&[("rand-type", "exponential"), ("rand-exponential-rate", "nan")], "above 0"),
        ] {
            let text = parse(flags).unwrap_err();
            assert!(text.contains(expected), "{text}");
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
}
