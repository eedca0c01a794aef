//! The arm and the spindle: how long it takes from where the head is to a sector.
//!
//! A seek or a head switch, which includes the settle of a read, plus a further settle for writes; then the wait until
//! the sector comes round.
//!
//! The dirty extents that the drive chooses among stand by the angle at which they begin. A search for the one that the
//! head reaches soonest looks at angles in the order in which they pass under it, and at each only at what the arm has
//! reached by then. It finds exactly what a look at all finds, and looks at few: of hundreds of candidates, some are
//! always near enough to be met within a part of a revolution.

use std::cmp::Ordering;

use super::geometry::{Geometry, SectorPosition, fraction};
use super::seek::Seek;
use super::spec::HddSpec;
use crate::write_cache::Window;

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

/// Parts of a revolution; a bit each in a word says which of them have candidates.
const PARTS: usize = 64;
/// Steps of time within a part for which is known how far the arm comes.
const STEPS: usize = 4;
/// Revolutions for which that is known. Later everything counts as within reach.
const TURNS: usize = 4;
/// Bands of cylinders; for each part of a revolution, a bit each in a word says which of them have candidates.
const BANDS: u32 = 64;
/// Remainders by which candidates are counted by cylinder.
const CYLINDERS: usize = 2048;

/// An extent that waits to be written.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    slot: u32,
    start: u64,
    target: Target,
}

#[derive(Debug)]
pub(super) struct Candidates {
    by_angle: [Vec<Candidate>; PARTS],
    /// Which of `by_angle` are not empty.
    occupied: u64,
    /// Where the candidates of each of `by_angle` are, by band.
    bands: [u64; PARTS],
    /// A cylinder shifted by so many bits is its band.
    band_bits: u32,
    /// How many candidates lie on the cylinders of each remainder. Where there is none on the arm's own, nothing is
    /// reached within the shortest seek.
    by_cylinder: Vec<u32>,
    shortest_ns: f64,
    /// By steps of time: the farthest cylinder within reach. What is not here is.
    reach: Vec<u32>,
}

fn part_of(target: Target) -> usize {
    (target.angle * PARTS as f64) as usize % PARTS
}

impl Window for Candidates {
    type Place = Target;

    fn add(&mut self, slot: u32, start: u64, target: Target) {
        let part = part_of(target);
        self.by_angle[part].push(Candidate { slot, start, target });
        self.occupied |= 1 << part;
        self.bands[part] |= 1 << self.band_of(target.cylinder);
        self.by_cylinder[target.cylinder as usize % CYLINDERS] += 1;
    }

    fn remove(&mut self, slot: u32, target: Target) {
        let part = part_of(target);
        let here = &mut self.by_angle[part];
        if let Some(index) = here.iter().position(|candidate| candidate.slot == slot) {
            here.swap_remove(index);
            self.by_cylinder[target.cylinder as usize % CYLINDERS] -= 1;
        }
        if here.is_empty() {
            self.occupied &= !(1 << part);
        }
        let left = self.by_angle[part].iter().map(|candidate| 1 << self.band_of(candidate.target.cylinder));
        self.bands[part] = left.fold(0, |bands, band: u64| bands | band);
    }
}

impl Candidates {
    /// None yet, for an arm that writes on cylinders up to this one.
    pub(super) fn new(arm: &Arm, last_cylinder: u32) -> Self {
        let step_ns = arm.revolution_ns / (PARTS * STEPS) as f64;
        let mut reach = Vec::with_capacity(TURNS * PARTS * STEPS);
        let mut cylinders = 0;
        for step in 0..TURNS * PARTS * STEPS {
            cylinders = farthest(arm, cylinders, step as f64 * step_ns + SLACK_NS);
            reach.push(cylinders);
        }
        Self {
            by_angle: std::array::from_fn(|_| Vec::new()),
            occupied: 0,
            bands: [0; PARTS],
            band_bits: (u32::BITS - last_cylinder.leading_zeros()).saturating_sub(BANDS.ilog2()),
            by_cylinder: vec![0; CYLINDERS],
            shortest_ns: arm.least_beyond_ns(1),
            reach,
        }
    }

    fn band_of(&self, cylinder: u32) -> u32 {
        (cylinder >> self.band_bits).min(BANDS - 1)
    }

    /// The bands of the cylinders that are no more than `reach` away from one.
    fn bands_within(&self, cylinder: u32, reach: u32) -> u64 {
        let first = self.band_of(cylinder.saturating_sub(reach));
        let last = self.band_of(cylinder.saturating_add(reach));
        u64::MAX << first & u64::MAX >> (BANDS - 1 - last)
    }

    /// The slot of the candidate that a write reaches soonest, and when, if that is before `limit_ns`. Of equals it is
    /// the nearer, and then the one farther inwards.
    pub(super) fn nearest(&self, arm: &Arm, moment: Moment, limit_ns: f64) -> Option<(u32, f64)> {
        let part_ns = arm.revolution_ns / PARTS as f64;
        let turned = moment.angle * PARTS as f64;
        let now_part = turned as u32 as usize;
        let into_part = turned - now_part as f64;
        // Parts are counted from the one that is under the head now.
        let part_at = |ns: f64| (ns / part_ns + into_part) as u32 as usize;
        let on_cylinder = self.by_cylinder[arm.cylinder as usize % CYLINDERS] > 0;
        let first = if on_cylinder { 0 } else { part_at(self.shortest_ns - SLACK_NS) };
        let end_step = ((1.0 - into_part) * STEPS as f64) as usize + 1;
        let coming = self.occupied.rotate_right(now_part as u32);
        let (mut best, mut best_ns): (Option<&Candidate>, f64) = (None, limit_ns);
        let mut last = part_at(limit_ns + SLACK_NS);
        // Once all counts as within reach, one more turn passes all.
        let first_turn = first / PARTS;
        for turn in first_turn..=first_turn + TURNS + 1 {
            let mut left = coming;
            if turn * PARTS < first {
                left &= u64::MAX << (first % PARTS);
            }
            while left != 0 {
                let part = turn * PARTS + left.trailing_zeros() as usize;
                left &= left - 1;
                if part > last {
                    return best.map(|candidate| (candidate.slot, best_ns));
                }
                let reach = self.reach.get(part * STEPS + end_step).copied().unwrap_or(u32::MAX);
                let here = (now_part + part) % PARTS;
                if self.bands[here] & self.bands_within(arm.cylinder, reach) == 0 {
                    continue;
                }
                for candidate in &self.by_angle[here] {
                    if candidate.target.cylinder.abs_diff(arm.cylinder) > reach {
                        continue;
                    }
                    let ns = arm.positioning_ns(moment, &candidate.target, true);
                    let wins = match ns.total_cmp(&best_ns) {
                        Ordering::Less => true,
                        Ordering::Equal => best.is_some_and(|best| preference(arm, candidate) < preference(arm, best)),
                        Ordering::Greater => false,
                    };
                    if wins {
                        (best, best_ns) = (Some(candidate), ns);
                        last = part_at(ns + SLACK_NS);
                    }
                }
            }
        }
        best.map(|candidate| (candidate.slot, best_ns))
    }
}

/// Lower for the candidate that is chosen among those that are reached at the same time.
fn preference(arm: &Arm, candidate: &Candidate) -> (u32, bool, u64) {
    let cylinder = candidate.target.cylinder;
    let outwards = cylinder < arm.cylinder;
    let order = if outwards { u64::MAX - candidate.start } else { candidate.start };
    (cylinder.abs_diff(arm.cylinder), outwards, order)
}

/// How far the arm can seek for a write within a time, at least `from`, which it does reach.
fn farthest(arm: &Arm, from: u32, within_ns: f64) -> u32 {
    let (mut reached, mut step) = (from, 1_u32);
    let beyond = |reached: u32, step: u32| {
        let next = reached.saturating_add(step);
        (next > reached && arm.least_beyond_ns(next) <= within_ns).then_some(next)
    };
    while let Some(next) = beyond(reached, step) {
        (reached, step) = (next, step.saturating_mul(2));
    }
    while step > 0 {
        reached = beyond(reached, step).unwrap_or(reached);
        step /= 2;
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdd::geometry::Geometry;
    use crate::hdd::spec::HddSpec;

    fn finds_what_a_look_at_all_finds(change: impl Fn(&mut HddSpec)) {
        let file: toml::Table = include_str!("../../drives/hdd-15k.toml").parse().unwrap();
        let mut spec: HddSpec = file["hdd"].clone().try_into().unwrap();
        change(&mut spec);
        let geometry = Geometry::new(&spec, spec.capacity_bytes);
        let mut arm = Arm::new(&spec, &geometry, 0.3);
        let mut random = dbdyno_common::random::Random::new(1);
        let all = spec.capacity_bytes / spec.sector_bytes;
        for round in 0..400_u64 {
            // Over the whole drive, or over few cylinders.
            let below = if round % 3 == 0 { all } else { 3000 << (round % 10) };
            let mut candidates = Candidates::new(&arm, geometry.locate(all - 1).cylinder as u32);
            let targets: Vec<Target> = (0..round % 150).map(|_| geometry.locate(random.below(below)).into()).collect();
            for (slot, target) in (0..).zip(&targets) {
                candidates.add(slot, u64::from(slot), *target);
            }
            for slot in (0..targets.len()).step_by(5) {
                candidates.remove(slot as u32, targets[slot]);
            }
            arm.go_to(&geometry.locate(random.below(below)));
            let moment = arm.moment(random.below(1 << 40));
            let kept = (0_u32..).zip(&targets).filter(|(slot, _)| slot % 5 > 0);
            let times = kept.map(|(slot, target)| (slot, arm.positioning_ns(moment, target, true)));
            let wanted = times.min_by(|(_, left), (_, right)| left.total_cmp(right));
            let wanted_ns = wanted.map(|(_, ns)| ns);
            let chosen = candidates.nearest(&arm, moment, f64::INFINITY);
            assert_eq!(chosen.map(|(_, ns)| ns), wanted_ns, "round {round}");
            let limit_ns = random.unit() * 8e6;
            let below_limit = candidates.nearest(&arm, moment, limit_ns).map(|(_, ns)| ns);
            assert_eq!(below_limit, wanted_ns.filter(|ns| *ns < limit_ns), "round {round}, limit {limit_ns}");
        }
    }

    #[test]
    fn the_search_by_angle_finds_what_a_look_at_all_finds() {
        finds_what_a_look_at_all_finds(|_| ());
        // A curve whose pieces do not meet, as fitted ones often don't.
        finds_what_a_look_at_all_finds(|spec| spec.seek_c_ms = spec.seek_c_ms.map(|ms| ms - 0.5));
        finds_what_a_look_at_all_finds(|spec| spec.write_settle_ms = -1.0);
        finds_what_a_look_at_all_finds(|spec| spec.head_switch_ms = 9.0);
        // Moves of many revolutions, and none that takes time.
        finds_what_a_look_at_all_finds(|spec| spec.seek_a_ms = Some(40.0));
        finds_what_a_look_at_all_finds(|spec| {
            (spec.seek_a_ms, spec.seek_b_ms, spec.seek_c_ms, spec.seek_e_ms) =
                (Some(0.0), Some(0.0), Some(0.0), Some(0.0));
        });
    }
}
