//! Heat: one capacity, charged by what the flash does, that loses heat to the air.

use super::spec::ThermalSpec;

/// The temperature is brought up to date no more often than this.
const STEP_NS: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Thermal {
    spec: Option<ThermalSpec>,
    pub temperature_c: f64,
    pub throttled: bool,
    updated_ns: u64,
    /// Joules since then, without those of being on.
    spent_j: f64,
}

impl Thermal {
    /// Starts at the temperature of an idle drive.
    pub(super) fn new(spec: Option<ThermalSpec>) -> Self {
        let temperature_c = spec.as_ref().map_or(0.0, |spec| spec.ambient_c + spec.idle_w * spec.rise_c_per_w);
        Self { spec, temperature_c, throttled: false, updated_ns: 0, spent_j: 0.0 }
    }

    pub(super) fn is_modelled(&self) -> bool {
        self.spec.is_some()
    }

    pub(super) fn read(&mut self, bytes: u64) {
        self.spent_j += self.spec.as_ref().map_or(0.0, |spec| spec.read_j_per_gb) * bytes as f64 / 1e9;
    }

    pub(super) fn programmed(&mut self, bytes: u64) {
        self.spent_j += self.spec.as_ref().map_or(0.0, |spec| spec.program_j_per_gb) * bytes as f64 / 1e9;
    }

    /// By how much the drive is slower at `now_ns`.
    ///
    /// Newton's cooling over the step at its mean power P: T goes to `T_air + P R` by the factor `exp(-dt / tau)`.
    pub(super) fn slowdown(&mut self, now_ns: u64) -> f64 {
        let Some(spec) = &self.spec else { return 1.0 };
        if now_ns >= self.updated_ns + STEP_NS {
            let step_s = (now_ns - self.updated_ns) as f64 / 1e9;
            let goal_c = spec.ambient_c + (spec.idle_w + self.spent_j / step_s) * spec.rise_c_per_w;
            self.temperature_c = goal_c + (self.temperature_c - goal_c) * (-step_s / spec.time_constant_s).exp();
            let limit_c = if self.throttled { spec.resume_below_c } else { spec.throttle_above_c };
            self.throttled = self.temperature_c > limit_c;
            (self.updated_ns, self.spent_j) = (now_ns, 0.0);
        }
        if self.throttled { spec.slowdown } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thermal() -> Thermal {
        Thermal::new(Some(ThermalSpec {
            ambient_c: 30.0,
            idle_w: 1.0,
            read_j_per_gb: 1.0,
            program_j_per_gb: 2.0,
            rise_c_per_w: 10.0,
            time_constant_s: 60.0,
            throttle_above_c: 70.0,
            resume_below_c: 60.0,
            slowdown: 2.0,
        }))
    }

    #[test]
    fn it_throttles_above_the_limit_and_resumes_below_the_lower_one() {
        // 2 GB/s of programs: 4 W above 1 W, so 30 + 50 = 80 C in the end; 70 C is passed at 60 ln(40/10) = 83 s.
        let mut drive = thermal();
        assert!((drive.temperature_c - 40.0).abs() < 1e-9);
        let mut throttled_at_s = None;
        for step in 1..2_000_u64 {
            drive.programmed(200_000_000);
            if drive.slowdown(step * 100_000_000) > 1.0 {
                throttled_at_s = throttled_at_s.or(Some(step / 10));
            }
        }
        assert!((82..=85).contains(&throttled_at_s.unwrap()), "{throttled_at_s:?}");
        assert!(drive.slowdown(200 * 1_000_000_000 + 5_000_000_000) > 1.0, "still above 60 C");
        assert!(drive.slowdown(300 * 1_000_000_000) < 1.5, "{}", drive.temperature_c);
    }

    #[test]
    fn a_drive_without_heat_is_never_slow() {
        let mut drive = Thermal::new(None);
        drive.programmed(u64::MAX / 2);
        assert!((drive.slowdown(u64::MAX) - 1.0).abs() < 1e-9);
    }
}
