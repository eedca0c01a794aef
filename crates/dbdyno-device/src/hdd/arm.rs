//! The arm and the spindle: how long it takes from where the head is to a sector.
//!
//! A seek or a head switch, which includes the settle of a read, plus a further settle for writes; then the wait until the
//! sector comes round.

use super::geometry::{Geometry, SectorPosition, fraction};
use super::spec::{HddSpec, Seek};

/// More than rounding makes of times.
pub(super) const SLACK_NS: f64 = 1.0;

/// Where a transfer begins: what choosing among many needs of a [`SectorPosition`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Target {
    pub cylinder: u32,
    head: u32,
    /// Revolutions, 0 to 1.
    pub angle: f64,
}

impl From<SectorPosition> for Target {
    fn from(place: SectorPosition) -> Self {
        Self { cylinder: place.cylinder as u32, head: place.head as u32, angle: place.angle }
    }
}

#[derive(Debug)]
pub(super) struct Arm {
    pub cylinder: u32,
    head: u32,
    /// Angle under the head at time 0, revolutions.
    angle_at_0: f64,
    pub revolution_ns: f64,
    revolutions_per_ns: f64,
    head_switch_ns: f64,
    write_settle_ns: f64,
    seek: Seek,
    /// Cylinders of the drive for one of the geometry, see [`Geometry::stretch`].
    stretch: f64,
}

/// The platters' angle at one moment: what all candidates for the next move are measured against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub angle: f64,
}

impl Arm {
    pub(super) fn new(spec: &HddSpec, geometry: &Geometry, angle_at_0: f64) -> Self {
        Self {
            cylinder: 0,
            head: 0,
            angle_at_0,
            revolution_ns: geometry.revolution_ns(),
            revolutions_per_ns: 1.0 / geometry.revolution_ns(),
            head_switch_ns: spec.head_switch_ms * 1e6,
            write_settle_ns: spec.write_settle_ms * 1e6,
            seek: Seek::new(spec.seek_curve(), &spec.seek_table),
            stretch: geometry.stretch(),
        }
    }

    pub(super) fn moment(&self, now_ns: u64) -> Moment {
        Moment { angle: fraction(now_ns as f64 / self.revolution_ns + self.angle_at_0) }
    }

    /// Time from `moment` until the head is at `target`, nanoseconds.
    pub(super) fn positioning_ns(&self, moment: Moment, target: &Target, write: bool) -> f64 {
        let move_ns = self.moving_ns(target, write);
        let ahead = target.angle - fraction(moment.angle + move_ns * self.revolutions_per_ns);
        move_ns + (if ahead < 0.0 { ahead + 1.0 } else { ahead }) * self.revolution_ns
    }

    /// What no way to `target` takes less than, but for rounding: until its angle is under the head.
    pub(super) fn turning_ns(&self, moment: Moment, target: &Target) -> f64 {
        let ahead = target.angle - moment.angle;
        (if ahead < 0.0 { ahead + 1.0 } else { ahead }) * self.revolution_ns
    }

    /// Time until the head is on the track of `target`, nanoseconds.
    pub(super) fn moving_ns(&self, target: &Target, write: bool) -> f64 {
        let move_ns = self.move_ns(target);
        if write && move_ns > 0.0 { (move_ns + self.write_settle_ns).max(0.0) } else { move_ns }
    }

    /// Wait from `now_ns` until `angle` is under the head.
    pub(super) fn rotation_ns(&self, now_ns: u64, angle: f64) -> u64 {
        let ahead = angle - self.moment(now_ns).angle;
        ((if ahead < 0.0 { ahead + 1.0 } else { ahead }) * self.revolution_ns) as u64
    }

    pub(super) fn go_to(&mut self, place: &SectorPosition) {
        self.cylinder = place.cylinder as u32;
        self.head = place.head as u32;
    }

    fn move_ns(&self, target: &Target) -> f64 {
        let distance = self.cylinder.abs_diff(target.cylinder);
        if distance == 0 {
            return if self.head == target.head { 0.0 } else { self.head_switch_ns };
        }
        self.seek_ns(distance)
    }

    fn seek_ns(&self, cylinders: u32) -> f64 {
        self.seek.ns(f64::from(cylinders) * self.stretch)
    }

    /// What no move of a write over this distance, above 0, or a longer one goes below.
    pub(super) fn least_beyond_ns(&self, cylinders: u32) -> f64 {
        let seek_ns = self.seek_ns(cylinders);
        let least_ns = self.seek.least_beyond_ns(f64::from(cylinders) * self.stretch, seek_ns);
        if least_ns > 0.0 { least_ns + self.write_settle_ns } else { least_ns }
    }
}
