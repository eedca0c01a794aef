//! The arm and the spindle: how long it takes from where the head is to a sector.
//!
//! A seek or a head switch, which includes the settle of a read, plus a further settle for writes; then the wait until the
//! sector comes round.

use super::geometry::{Geometry, SectorPosition, fraction};
use super::seek::Seek;
use super::spec::HddSpec;

/// Where a transfer begins: what choosing among many needs of a [`SectorPosition`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Target {
    cylinder: u32,
    head: u32,
    /// Revolutions, 0 to 1.
    angle: f64,
}

impl From<SectorPosition> for Target {
    fn from(place: SectorPosition) -> Self {
        Self { cylinder: place.cylinder as u32, head: place.head as u32, angle: place.angle }
    }
}

#[derive(Debug)]
pub(super) struct Arm {
    cylinder: u32,
    head: u32,
    /// Angle under the head at time 0, revolutions.
    angle_at_0: f64,
    revolution_ns: f64,
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
    angle: f64,
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
        self.arrival_ns(moment, target, self.move_ns(target), write)
    }

    /// Time until the head is on the track of `target`, nanoseconds.
    pub(super) fn moving_ns(&self, target: &Target, write: bool) -> f64 {
        self.settled_ns(self.move_ns(target), write)
    }

    fn settled_ns(&self, move_ns: f64, write: bool) -> f64 {
        if write && move_ns > 0.0 { (move_ns + self.write_settle_ns).max(0.0) } else { move_ns }
    }

    /// The same as [`Arm::positioning_ns`] where the time to move there is known.
    fn arrival_ns(&self, moment: Moment, target: &Target, move_ns: f64, write: bool) -> f64 {
        let move_ns = self.settled_ns(move_ns, write);
        let ahead = target.angle - fraction(moment.angle + move_ns * self.revolutions_per_ns);
        move_ns + (if ahead < 0.0 { ahead + 1.0 } else { ahead }) * self.revolution_ns
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

    /// The candidate that a write reaches soonest, and when, if that is before `limit_ns`. `candidates` are in order of
    /// their cylinders: the search goes outwards from the arm, and ends where the seek alone takes too long.
    pub(super) fn nearest_write(
        &self,
        moment: Moment,
        candidates: &[(u64, Target)],
        limit_ns: f64,
    ) -> Option<(u64, f64)> {
        let (mut best, mut best_ns) = (None, limit_ns);
        let mut outside = candidates.partition_point(|(_, target)| target.cylinder < self.cylinder);
        let mut inside = outside;
        let distance = |index: usize| {
            candidates.get(index).map_or(u32::MAX, |(_, target)| target.cylinder.abs_diff(self.cylinder))
        };
        // One below the first wraps round to beyond the last.
        let (mut inwards, mut outwards) = (distance(inside.wrapping_sub(1)), distance(outside));
        while inwards.min(outwards) < u32::MAX {
            let nearer = inwards.min(outwards);
            let (start, target) = if inwards < outwards {
                inside -= 1;
                inwards = distance(inside.wrapping_sub(1));
                &candidates[inside]
            } else {
                outside += 1;
                outwards = distance(outside);
                &candidates[outside - 1]
            };
            let move_ns = self.move_ns(target);
            // Head switches within the cylinder do not grow with distance.
            if nearer > 0 && self.least_beyond_ns(nearer, move_ns) >= best_ns {
                break;
            }
            let positioning_ns = self.arrival_ns(moment, target, move_ns, true);
            if positioning_ns < best_ns {
                (best, best_ns) = (Some((*start, positioning_ns)), positioning_ns);
            }
        }
        best
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

    /// What no move over this distance, which takes `move_ns`, or over a longer one goes below.
    fn least_beyond_ns(&self, cylinders: u32, move_ns: f64) -> f64 {
        self.seek.least_beyond_ns(f64::from(cylinders) * self.stretch, move_ns) + self.write_settle_ns.min(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_outwards_finds_what_a_look_at_all_finds() {
        let file: toml::Table = include_str!("../../drives/hdd-15k.toml").parse().unwrap();
        let mut spec: HddSpec = file["hdd"].clone().try_into().unwrap();
        // A curve whose pieces do not meet, as fitted ones often don't.
        spec.seek_c_ms = spec.seek_c_ms.map(|ms| ms - 0.5);
        let geometry = Geometry::new(&spec, spec.capacity_bytes);
        let mut arm = Arm::new(&spec, &geometry, 0.3);
        let mut random = dbdyno_common::random::Random::new(1);
        for round in 0..200_u64 {
            let mut starts: Vec<u64> = (0..round % 70).map(|_| random.below(spec.capacity_bytes / 512)).collect();
            starts.sort_unstable();
            let candidates: Vec<(u64, Target)> = starts.iter().map(|s| (*s, geometry.locate(*s).into())).collect();
            arm.go_to(&geometry.locate(random.below(spec.capacity_bytes / 512)));
            let moment = arm.moment(random.below(1 << 40));
            let all = candidates.iter().map(|(start, target)| (*start, arm.positioning_ns(moment, target, true)));
            let wanted = all.min_by(|(_, left), (_, right)| left.total_cmp(right));
            assert_eq!(arm.nearest_write(moment, &candidates, f64::INFINITY), wanted, "round {round}");
        }
    }
}
