//! Random keys: the distributions of sysbench's `--rand-type`, over any range of 64-bit integers.
//!
//! All but `exponential` follow sysbench 1.0.20 (zipfian: its successor), parameters and defaults included.

use dbdyno_common::random::Random;

use crate::error::Error;
use crate::flags::Flag;
use crate::values::Values;

/// The flags: the distribution and its parameters.
pub const FLAGS: &[Flag] = &[
    Flag::value("rand-type", "of ids and keys: special, uniform, gaussian, pareto, zipfian or exponential"),
    Flag::value("rand-spec-iter", "gaussian, special: uniform numbers averaged into one"),
    Flag::value("rand-spec-pct", "special: width of the hot middle, in percent"),
    Flag::value("rand-spec-res", "special: draws that hit the middle, in percent"),
    Flag::value("rand-pareto-h", "pareto: this share of the range gets all draws but this share"),
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
                // The same draw goes on to place the value, as in sysbench: the first (100 - hits) percent of the middle
                // are never hit by it.
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
#[path = "distribution_tests.rs"]
mod tests;
