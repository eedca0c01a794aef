//! The arm and the spindle: how long it takes from where the head is to a sector.
//!
//! Seek: t = a + b sqrt(d) for d < D cylinders, else c + e d (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994), plus a settle for writes; then the wait until the sector comes round.

use super::geometry::{Geometry, Place, fraction};
use super::spec::{HddSpec, ms};

#[derive(Debug)]
pub(super) struct Arm {
    cylinder: u64,
    head: u64,
    /// Angle under the head at time 0, revolutions.
    angle_at_0: f64,
    revolution_ns: f64,
    head_switch_ns: u64,
    write_settle_ns: u64,
    short_cylinders: u64,
    seek_short_ns: (f64, f64),
    seek_long_ns: (f64, f64),
}

impl Arm {
    pub(super) fn new(spec: &HddSpec, geometry: &Geometry, angle_at_0: f64) -> Self {
        Self {
            cylinder: 0,
            head: 0,
            angle_at_0,
            revolution_ns: geometry.revolution_ns(),
            head_switch_ns: ms(spec.head_switch_ms),
            write_settle_ns: ms(spec.write_settle_ms),
            short_cylinders: spec.seek_short_cylinders,
            seek_short_ns: (spec.seek_a_ms * 1e6, spec.seek_b_ms * 1e6),
            seek_long_ns: (spec.seek_c_ms * 1e6, spec.seek_e_ms * 1e6),
        }
    }

    /// Time from `now_ns` until the head is at the beginning of `place`, nanoseconds.
    pub(super) fn positioning_ns(&self, now_ns: u64, place: &Place, write: bool) -> u64 {
        let mut move_ns = self.move_ns(place);
        if write && move_ns > 0 {
            move_ns += self.write_settle_ns;
        }
        move_ns + self.rotation_ns(now_ns + move_ns, place.angle)
    }

    /// Wait from `now_ns` until `angle` is under the head.
    pub(super) fn rotation_ns(&self, now_ns: u64, angle: f64) -> u64 {
        let ahead = angle - fraction(now_ns as f64 / self.revolution_ns + self.angle_at_0);
        ((if ahead < 0.0 { ahead + 1.0 } else { ahead }) * self.revolution_ns) as u64
    }

    pub(super) fn go_to(&mut self, place: &Place) {
        self.cylinder = place.cylinder;
        self.head = place.head;
    }

    fn move_ns(&self, place: &Place) -> u64 {
        let distance = self.cylinder.abs_diff(place.cylinder);
        if distance == 0 {
            return if self.head == place.head { 0 } else { self.head_switch_ns };
        }
        let (constant, variable) = if distance < self.short_cylinders {
            (self.seek_short_ns.0, self.seek_short_ns.1 * (distance as f64).sqrt())
        } else {
            (self.seek_long_ns.0, self.seek_long_ns.1 * distance as f64)
        };
        (constant + variable) as u64
    }
}
