//! Tracks, skews, heads and zones, from the angles of sectors that lie one after the other; and seek times.
//!
//! With the revolution known, the time at which a read ends says at which angle its sector lies. Within a track the
//! angle goes with the address, one turn a track; where a track ends it jumps by the skew (Talagala, Arpaci-Dusseau and
//! Patterson, "Microbenchmark-based extraction of local and global disk characteristics", 1999, see the same jumps in
//! the latencies of linear strides). A larger jump every so many tracks is the change of cylinder, and says how many
//! heads there are. Addresses are read downwards, as drives read ahead upwards.
//!
//! A seek time is the least time from a request to its data over the angles of the target, for a distance. A read that
//! ends after R has not been reached in time one revolution T earlier: the time to be on the track, s, is above R - T,
//! and at most R. Targets whose angle comes up in the middle of what is left halve it each time (Worthington et al.
//! 1995 call the least time over all targets the minimum time between request completions).

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::Bench;
use super::drive_file::Estimate;
use super::rotation::PROBE_BYTES;
use crate::error::DiskError;

/// Jumps smaller than this, in turns, are no skew.
const JUMP_MIN: f64 = 0.012;
/// A jump that differs from the usual by more turns is of a late answer.
const LATE: f64 = 0.25;
/// Angles further from a line, in turns, follow none.
const NOISE_MAX: f64 = 0.06;

/// A sector and the angle of its end, turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Angle {
    pub offset_bytes: f64,
    pub turns: f64,
}

/// Where the angle jumps: between two addresses, by how many turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jump {
    pub after_bytes: f64,
    pub before_bytes: f64,
    pub turns: f64,
}

/// What the angles of one stretch say.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracks {
    pub track_bytes: Estimate,
    pub jumps: Vec<Jump>,
}

/// The jumps of a stretch, by kind; turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Skews {
    pub track: Estimate,
    /// `None` where all jumps are alike.
    pub cylinder: Option<Estimate>,
    pub heads: Option<Estimate>,
    /// An address at which a cylinder begins.
    pub cylinder_bytes: f64,
}

/// Reads `count` places, `step_bytes` apart, downwards from `top_bytes`; in order of address.
pub fn angles(
    bench: &mut dyn Bench,
    revolution_ns: f64,
    top_bytes: u64,
    (count, step_bytes): (u64, u64),
    hit_limit_ns: f64,
) -> Result<Vec<Angle>, DiskError> {
    let (mut angles, mut first_ns) = (Vec::new(), None);
    for index in 0..count.min(top_bytes / step_bytes) {
        let offset_bytes = top_bytes - index * step_bytes;
        let answer = bench.ask(Kind::Read, offset_bytes, PROBE_BYTES)?;
        if answer.latency_ns() > hit_limit_ns {
            let since = *first_ns.get_or_insert(answer.done_ns);
            let turns = (answer.done_ns - since) as f64 / revolution_ns;
            angles.push(Angle { offset_bytes: offset_bytes as f64, turns: turns.rem_euclid(1.0) });
        }
    }
    angles.reverse();
    Ok(angles)
}

/// Bytes of a track and the jumps between tracks; `None` where there are too few angles or they follow no line. Two
/// neighbours must be less than half a track apart.
pub fn tracks(angles: &[Angle]) -> Option<Tracks> {
    let steps: Vec<(Angle, Angle, f64)> =
        angles.windows(2).map(|pair| (pair[0], pair[1], (pair[1].turns - pair[0].turns).rem_euclid(1.0))).collect();
    let apart = |step: &(Angle, Angle, f64)| step.1.offset_bytes - step.0.offset_bytes;
    let slopes: Vec<f64> = steps.iter().map(|step| step.2 / apart(step)).collect();
    let slope = Estimate::median(&slopes).filter(|slope| slope.n >= 5 && slope.value > 0.0)?;
    let deviations: Vec<f64> = steps.iter().map(|step| (step.2 - slope.value * apart(step)).abs()).collect();
    let noise = Estimate::median(&deviations).filter(|noise| noise.value < NOISE_MAX)?.value;
    let limit = JUMP_MIN.max(5.0 * noise);
    let plain = |step: &&(Angle, Angle, f64)| (step.2 - slope.value * apart(step)).abs() < limit;
    // Sums over neighbours that lie on one track: what is between the first and the last of a run cancels out.
    let (turns, bytes) = steps.iter().filter(plain).fold((0.0, 0.0), |sum, step| (sum.0 + step.2, sum.1 + apart(step)));
    let count = steps.iter().filter(plain).count();
    if count * 3 < steps.len() || turns <= 0.0 {
        return None;
    }
    let runs = 1.0 + (steps.len() - count) as f64;
    let error = 2.0 * 1.48 * noise * (runs / 2.0).sqrt() / turns;
    let track_bytes = bytes / turns;
    let jumps = steps
        .iter()
        .filter(|step| !plain(step))
        .map(|step| Jump {
            after_bytes: step.0.offset_bytes,
            before_bytes: step.1.offset_bytes,
            turns: (step.2 - apart(step) / track_bytes).rem_euclid(1.0),
        })
        .collect();
    let estimate = Estimate::new(track_bytes, track_bytes * (1.0 - error), track_bytes * (1.0 + error), count);
    Some(Tracks { track_bytes: estimate, jumps })
}

/// The skews, and how many heads a cylinder has; `None` where fewer than four tracks end.
pub fn skews(tracks: &Tracks) -> Option<Skews> {
    let all: Vec<f64> = tracks.jumps.iter().map(|jump| jump.turns).collect();
    let usual = Estimate::median(&all)?.value;
    let mut sizes: Vec<f64> = all.into_iter().filter(|turns| (turns - usual).abs() < LATE).collect();
    sizes.sort_by(f64::total_cmp);
    if sizes.len() < 4 {
        return None;
    }
    // Where two groups differ most (Otsu, "A threshold selection method from gray-level histograms", 1979).
    let mean = |sizes: &[f64]| sizes.iter().sum::<f64>() / sizes.len() as f64;
    let between = |cut: &usize| {
        let (low, high) = sizes.split_at(*cut);
        (mean(high) - mean(low)).powi(2) * (low.len() * high.len()) as f64
    };
    let cut = (1..sizes.len()).max_by(|left, right| between(left).total_cmp(&between(right)))?;
    let (low, high) = sizes.split_at(cut);
    let (small, large) = (Estimate::median(low)?, Estimate::median(high)?);
    let deviation =
        |sizes: &[f64], middle: f64| sizes.iter().map(|size| (size - middle).abs()).sum::<f64>() / sizes.len() as f64;
    let within = deviation(low, small.value).max(deviation(high, large.value));
    let alike = || {
        Some(Skews {
            track: Estimate::median(&sizes)?,
            cylinder: None,
            heads: None,
            cylinder_bytes: tracks.jumps.first()?.before_bytes,
        })
    };
    if large.value - small.value < 0.004_f64.max(5.0 * within) || high.len() < 2 || low.len() < 2 {
        return alike();
    }
    // Changes of cylinder are the rarer ones; of two heads, those that take longer.
    let larger = high.len() <= low.len() + 2;
    let (track, cylinder) = if larger { (small, large) } else { (large, small) };
    let edge = high[0];
    let is_cylinder = |jump: &Jump| (jump.turns - usual).abs() < LATE && (jump.turns >= edge) == larger;
    let changes: Vec<&Jump> = tracks.jumps.iter().filter(|jump| is_cylinder(jump)).collect();
    let heads: Vec<f64> = changes
        .windows(2)
        .map(|pair| ((pair[1].after_bytes - pair[0].after_bytes) / tracks.track_bytes.value).round())
        .collect();
    let median = Estimate::median(&heads)?;
    // Changes of cylinder come at even distances.
    let even = heads.iter().filter(|heads| (**heads - median.value).abs() < 0.5).count() * 5 >= heads.len() * 3;
    if !even {
        return alike();
    }
    let heads = median;
    Some(Skews { track, cylinder: Some(cylinder), heads: Some(heads), cylinder_bytes: changes.last()?.before_bytes })
}

/// Places that are surveyed before the changes between them are looked for.
const PLACES: u64 = 64;
/// A change of zone is found this near, as a part of the disk.
pub const RESOLUTION: f64 = 1.0 / 4096.0;
/// Tracks that differ by less are of one zone.
const ALIKE: f64 = 0.004;
const SEQUENTIAL_BYTES: u64 = 1 << 20;

/// A run of tracks of one length.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_field_names, reason = "the unit belongs into the name")]
pub struct Zone {
    pub first_bytes: u64,
    pub end_bytes: u64,
    pub track_bytes: Estimate,
}

/// A place and what its tracks hold.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset_bytes: u64,
    track_bytes: Estimate,
}

/// What a survey needs to know.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "the unit belongs into the name")]
pub struct Timing {
    pub revolution_ns: f64,
    pub hit_limit_ns: f64,
    /// When to be done, on the bench's clock; a coarser answer is given then.
    pub until_ns: u64,
}

/// Bytes a second of sequential reads that begin at an offset.
pub fn sequential_rate(bench: &mut dyn Bench, offset_bytes: u64, requests: u64) -> Result<f64, DiskError> {
    let room = (bench.size_bytes() - offset_bytes) / SEQUENTIAL_BYTES;
    let began_ns = bench.ask(Kind::Read, offset_bytes, SEQUENTIAL_BYTES)?.done_ns;
    let mut done_ns = began_ns;
    let requests = requests.clamp(1, room.max(2) - 1);
    for index in 1..=requests {
        done_ns = bench.ask(Kind::Read, offset_bytes + index * SEQUENTIAL_BYTES, SEQUENTIAL_BYTES)?.done_ns;
    }
    Ok((requests * SEQUENTIAL_BYTES) as f64 * 1e9 / (done_ns - began_ns).max(1) as f64)
}

/// The tracks below a place: so many of them, with eleven angles of each, if a track has about `guess_bytes`.
pub fn survey(
    bench: &mut dyn Bench,
    timing: Timing,
    top_bytes: u64,
    guess_bytes: f64,
    wanted: f64,
) -> Result<Option<Tracks>, DiskError> {
    // Not a part of the track, so that the places of several tracks lie between each other.
    let step = ((guess_bytes / 11.3 / 4096.0).round() as u64).max(1) * 4096;
    let count = (wanted * 11.3).ceil() as u64;
    Ok(tracks(&angles(bench, timing.revolution_ns, top_bytes, (count, step), timing.hit_limit_ns)?))
}

/// The zones from the beginning of the disk to its end; none where no place shows tracks.
pub fn zones(bench: &mut dyn Bench, timing: Timing, guess_bytes: f64) -> Result<Vec<Zone>, DiskError> {
    let size = bench.size_bytes();
    let least = (guess_bytes * 4.0) as u64;
    let places = PLACES.min(size / (2 * least).max(1)).max(2);
    let mut surveys: Vec<Place> = Vec::new();
    for index in 0..places {
        let top = (size - least - 4096) / (places - 1) * index + least;
        surveys.extend(place(bench, timing, top / 4096 * 4096, last_guess(&surveys, guess_bytes))?);
        if bench.now_ns() > timing.until_ns && surveys.len() > 2 {
            break;
        }
    }
    let mut changes = Vec::new();
    for pair in surveys.clone().windows(2) {
        between(bench, timing, (pair[0], pair[1]), &mut surveys, &mut changes)?;
    }
    Ok(joined(surveys, &changes, size))
}

fn last_guess(surveys: &[Place], guess_bytes: f64) -> f64 {
    surveys.last().map_or(guess_bytes, |place| place.track_bytes.value)
}

fn place(bench: &mut dyn Bench, timing: Timing, top: u64, guess: f64) -> Result<Option<Place>, DiskError> {
    let estimate = survey(bench, timing, top, guess, 2.4)?;
    // The middle of what was read.
    let offset_bytes = top - (guess * 1.2) as u64;
    Ok(estimate.map(|estimate| Place { offset_bytes, track_bytes: estimate.track_bytes }))
}

fn alike(first: &Place, second: &Place) -> bool {
    let errors = |place: &Place| (place.track_bytes.high - place.track_bytes.low) / 2.0;
    let apart = (first.track_bytes.value - second.track_bytes.value).abs();
    apart < (ALIKE * first.track_bytes.value).max(errors(first) + errors(second))
}

/// Looks for the changes between two places by halves; adds what it finds on the way.
fn between(
    bench: &mut dyn Bench,
    timing: Timing,
    (low, high): (Place, Place),
    surveys: &mut Vec<Place>,
    changes: &mut Vec<u64>,
) -> Result<(), DiskError> {
    if alike(&low, &high) {
        return Ok(());
    }
    let apart = high.offset_bytes - low.offset_bytes;
    let middle = low.offset_bytes + apart / 2;
    let near = (apart as f64) < (RESOLUTION * bench.size_bytes() as f64).max(8.0 * low.track_bytes.value);
    let measured = if near || bench.now_ns() > timing.until_ns {
        None
    } else {
        place(bench, timing, (middle + (low.track_bytes.value * 1.2) as u64) / 4096 * 4096, low.track_bytes.value)?
    };
    let Some(measured) = measured else {
        changes.push(middle);
        return Ok(());
    };
    if !alike(&low, &measured) && !alike(&high, &measured) && apart as f64 > 0.02 * bench.size_bytes() as f64 {
        surveys.push(measured);
    }
    if alike(&low, &measured) {
        return between(bench, timing, (measured, high), surveys, changes);
    }
    between(bench, timing, (low, measured), surveys, changes)?;
    between(bench, timing, (measured, high), surveys, changes)
}

fn joined(mut surveys: Vec<Place>, changes: &[u64], size: u64) -> Vec<Zone> {
    surveys.sort_by_key(|place| place.offset_bytes);
    let mut edges = changes.to_vec();
    edges.sort_unstable();
    edges.push(size);
    let mut zones: Vec<Zone> = Vec::new();
    let mut first_bytes = 0;
    for end_bytes in edges {
        let here: Vec<f64> = surveys
            .iter()
            .filter(|place| (first_bytes..end_bytes).contains(&place.offset_bytes))
            .map(|place| place.track_bytes.value)
            .collect();
        let Some(track_bytes) = Estimate::median(&here) else { continue };
        match zones.last_mut() {
            Some(last) if (last.track_bytes.value / track_bytes.value).ln().abs() < ALIKE => last.end_bytes = end_bytes,
            _ => zones.push(Zone { first_bytes, end_bytes, track_bytes }),
        }
        first_bytes = end_bytes;
    }
    // What lies behind the last survey belongs to the last zone.
    if let Some(last) = zones.last_mut() {
        last.end_bytes = size;
    }
    zones
}

/// Zones with heads: where cylinders lie.
#[derive(Debug, Clone)]
pub struct Layout {
    pub zones: Vec<Zone>,
    pub heads: u64,
}

impl Layout {
    pub fn cylinders(&self) -> u64 {
        self.zones.iter().map(|zone| self.cylinders_of(zone)).sum()
    }

    pub fn cylinders_of(&self, zone: &Zone) -> u64 {
        let bytes = (zone.end_bytes - zone.first_bytes) as f64;
        ((bytes / (zone.track_bytes.value * self.heads as f64)).round() as u64).max(1)
    }

    /// Where a cylinder begins, and the bytes of its tracks.
    pub fn place(&self, cylinder: u64) -> (f64, f64) {
        let mut first = 0;
        for zone in &self.zones {
            let here = self.cylinders_of(zone);
            if cylinder < first + here {
                let track = zone.track_bytes.value;
                return (zone.first_bytes as f64 + (cylinder - first) as f64 * self.heads as f64 * track, track);
            }
            first += here;
        }
        self.zones.last().map_or((0.0, 1.0), |zone| (zone.end_bytes as f64, zone.track_bytes.value))
    }
}

/// Pairs of places for one distance: with six, their least and greatest hold the median with 97 %.
const PAIRS: u64 = 6;
/// Reads for one pair at most.
const READS: u64 = 24;
/// Enough, as a part of a revolution.
const NEAR: f64 = 1.0 / 300.0;
/// Turns by which an answer that was aimed at comes at another time than it should.
const MISSED: f64 = 0.03;

/// The time to be on a track over a distance, ns; transfer and overhead included.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    pub cylinders: u64,
    pub ns: Estimate,
}

/// From where to where; the target may be so many bytes further on.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub from_bytes: u64,
    pub to_bytes: f64,
}

/// What aiming needs: bytes of the target's track, those of it that may be aimed at, and the turns by which the target
/// of the next way lies further on than that of the one before.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub track_bytes: f64,
    pub room_bytes: f64,
    pub shift_turns: f64,
    /// It is written and flushed, not read.
    pub written: bool,
}

impl Target {
    /// So many turns on from a place that may be aimed at, by the shortest way: where tracks end the angle jumps. Where
    /// a way led over the end of one, by another.
    fn near(&self, at_bytes: f64, turns: f64, way: usize) -> Option<f64> {
        let nearest = turns - turns.round();
        let may = |at: &f64| (0.0..self.room_bytes).contains(at);
        let mut ways = [nearest, nearest + 1.0, nearest - 1.0];
        ways.rotate_left(way);
        ways.map(|turns| at_bytes + turns * self.track_bytes).into_iter().find(may)
    }
}

/// Between which times s lies for ways that are alike; `None` if the cache answered all.
pub fn reach(
    bench: &mut dyn Bench,
    timing: Timing,
    target: Target,
    ways: &[Way],
) -> Result<Option<(f64, f64)>, DiskError> {
    let turn = timing.revolution_ns;
    let kind = if target.written { Kind::Write } else { Kind::Read };
    let mut seen: Vec<f64> = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    let mut missed = false;
    for (way, index) in ways.iter().zip(0_u64..) {
        let began = bench.ask(Kind::Read, way.from_bytes, PROBE_BYTES)?.done_ns as f64;
        let (low, high) = bounds(&seen, turn).unwrap_or((0.0, turn));
        // Without a target that was seen: around the track.
        let around = (0.38 * index as f64).fract() * target.room_bytes;
        let at = last.map_or(around, |(done, at)| {
            let turns = (began + f64::midpoint(low, high) - done) / turn - target.shift_turns;
            target.near(at, turns, if missed { (index / 2) as usize % 3 } else { 0 }).unwrap_or(around)
        });
        let mut answer = bench.ask(kind, sector(way.to_bytes + at), PROBE_BYTES)?;
        if target.written {
            let flush = bench.ask(Kind::Flush, 0, 0)?;
            answer.done_ns = flush.done_ns;
            // The sector passed before FLUSH came, which then had nothing to write.
            if flush.latency_ns() <= timing.hit_limit_ns {
                continue;
            }
        } else if answer.latency_ns() <= timing.hit_limit_ns {
            continue;
        }
        last = Some((answer.done_ns as f64, at));
        let off = (answer.latency_ns() - f64::midpoint(low, high)) / turn;
        missed = (off - off.round()).abs() > MISSED;
        seen.push(answer.latency_ns());
        if bounds(&seen, turn).is_some_and(|(low, high)| seen.len() > 3 && high - low < NEAR * turn) {
            break;
        }
    }
    Ok(bounds(&seen, turn))
}

/// Above what and up to what s is, after these latencies. An answer that came late bounds nothing.
fn bounds(seen: &[f64], turn: f64) -> Option<(f64, f64)> {
    let high = seen.iter().copied().reduce(f64::min)?;
    let low = seen.iter().map(|latency| latency - turn).filter(|low| *low < high).fold(0.0, f64::max);
    Some((low, high))
}

pub fn sector(bytes: f64) -> u64 {
    (bytes.max(0.0) / 4096.0).round() as u64 * 4096
}

/// Distances from one cylinder to all of them, each about 1.6 times the one before.
pub fn distances(cylinders: u64) -> Vec<u64> {
    let mut distances = vec![];
    let mut next = 1;
    while next < cylinders {
        distances.push(next);
        next = (next * 8 / 5).max(next + 1);
    }
    if let Some(last) = distances.last_mut().filter(|last| **last * 5 > cylinders * 4 || **last == cylinders - 1) {
        *last = cylinders - 1;
    } else if cylinders > 1 {
        distances.push(cylinders - 1);
    }
    distances
}

/// The time to reach a track for each distance, as far as time allows: every other distance first.
pub fn curve(
    bench: &mut dyn Bench,
    timing: Timing,
    layout: &Layout,
    cylinder_turns: f64,
    seed: u64,
) -> Result<Vec<Reach>, DiskError> {
    let cylinders = layout.cylinders().saturating_sub(READS);
    let all = distances(cylinders);
    let (even, odd): (Vec<_>, Vec<_>) = all.iter().rev().zip(0..).partition(|(_, index)| index % 2 == 0);
    let mut random = Random::new(seed);
    let mut reaches = Vec::new();
    for (distance, _) in even.into_iter().chain(odd) {
        if bench.now_ns() > timing.until_ns && reaches.len() > 1 {
            break;
        }
        let estimate = over(bench, timing, layout, (cylinder_turns, *distance, false), random.bits())?;
        reaches.extend(estimate.map(|ns| Reach { cylinders: *distance, ns }));
    }
    reaches.sort_by_key(|reach| reach.cylinders);
    Ok(reaches)
}

/// The time to reach a track over a distance, from several places; with a write and its flush, if so asked.
pub fn over(
    bench: &mut dyn Bench,
    timing: Timing,
    layout: &Layout,
    (cylinder_turns, distance, written): (f64, u64, bool),
    seed: u64,
) -> Result<Option<Estimate>, DiskError> {
    let cylinders = layout.cylinders().saturating_sub(READS);
    let (mut random, mut pairs) = (Random::new(seed), Vec::new());
    for _ in 0..PAIRS {
        let low = random.below(cylinders.saturating_sub(distance).max(1));
        let (from, to) = if random.chance(0.5) { (low, low + distance) } else { (low + distance, low) };
        let track_bytes = layout.place(to).1;
        // Each time a cylinder further, so that the cache has neither place.
        let ways: Vec<Way> = (0..READS)
            .map(|index| Way {
                from_bytes: sector(layout.place(from + index).0 + layout.place(from).1 / 2.0),
                to_bytes: layout.place(to + index).0,
            })
            .collect();
        let target = Target { track_bytes, room_bytes: 2.0 * track_bytes, shift_turns: cylinder_turns, written };
        pairs.extend(reach(bench, timing, target, &ways)?);
    }
    Ok(median_of_pairs(&pairs))
}

/// The median over pairs, and an interval that holds what each left open as well. Pairs that were left much more open
/// than the others say nothing.
pub fn median_of_pairs(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let widths: Vec<f64> = pairs.iter().map(|(low, high)| high - low).collect();
    let limit = 3.0 * Estimate::median(&widths)?.value;
    let pairs: Vec<(f64, f64)> = pairs.iter().copied().filter(|(low, high)| high - low <= limit).collect();
    let middles: Vec<f64> = pairs.iter().map(|(low, high)| f64::midpoint(*low, *high)).collect();
    let widths: Vec<f64> = pairs.iter().map(|(low, high)| (high - low) / 2.0).collect();
    let (middle, width) = (Estimate::median(&middles)?, Estimate::median(&widths)?.value);
    Some(Estimate::new(middle.value, middle.low - width, middle.high + width, middle.n))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(track_bytes: f64, heads: u64, skews: (f64, f64), noise: f64, seed: u64) -> Vec<Angle> {
        let mut random = Random::new(seed);
        let step = track_bytes / 11.3;
        (0..500)
            .map(|index| {
                let offset_bytes = f64::from(index) * step;
                let track = (offset_bytes / track_bytes).floor();
                let cylinder = (track / heads as f64).floor();
                let skewed = (track - cylinder) * skews.0 + cylinder * skews.1;
                let turns = offset_bytes / track_bytes + skewed + random.normal() * noise;
                Angle { offset_bytes, turns: turns.rem_euclid(1.0) }
            })
            .collect()
    }

    proptest! {
        #[test]
        fn tracks_skews_and_heads_come_back(
            track_bytes in 1e5..3e6_f64, heads in 2..9_u64, track in 0.03..0.2_f64, more in 0.03..0.2_f64,
            noise in 0.0..0.002_f64, seed in 0..1000_u64,
        ) {
            let measured = tracks(&made(track_bytes, heads, (track, track + more), noise, seed)).unwrap();
            prop_assert!((measured.track_bytes.value / track_bytes - 1.0).abs() < 0.006, "{:?}", measured.track_bytes);
            let skews = skews(&measured).unwrap();
            prop_assert!((skews.track.value - track).abs() < 0.01, "{skews:?}");
            prop_assert!((skews.cylinder.unwrap().value - track - more).abs() < 0.01, "{skews:?}");
            prop_assert_eq!(skews.heads.unwrap().value as u64, heads);
        }
    }

    #[test]
    fn equal_skews_do_not_tell_the_heads() {
        let measured = skews(&tracks(&made(1e6, 4, (0.1, 0.1), 0.001, 1)).unwrap()).unwrap();
        assert_eq!((measured.heads, measured.cylinder), (None, None));
        assert!((measured.track.value - 0.1).abs() < 0.01);
    }

    #[test]
    fn angles_without_order_are_no_tracks() {
        let mut random = Random::new(2);
        let angles: Vec<Angle> =
            (0..200).map(|index| Angle { offset_bytes: f64::from(index) * 1e5, turns: random.unit() }).collect();
        assert!(tracks(&angles).is_none_or(|tracks| tracks.jumps.len() > 60));
        assert_eq!(tracks(&angles[..4]), None);
    }

    #[test]
    fn distances_reach_from_one_cylinder_to_all() {
        for cylinders in [2, 3, 10, 333_000] {
            let all = distances(cylinders);
            assert_eq!((all[0], all[all.len() - 1]), (1, cylinders - 1), "{all:?}");
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        }
        assert!(distances(1).is_empty());
    }

    #[test]
    fn a_late_answer_does_not_bound_from_below() {
        assert_eq!(bounds(&[5e6, 9e6, 40e6], 8e6), Some((1e6, 5e6)));
        assert_eq!(bounds(&[], 8e6), None);
    }
}
