//! Tracks, skews, heads and zones, from the angles of sectors that lie one after the other.
//!
//! With the revolution known, the time at which a read ends says at which angle its sector lies. Within a track the angle
//! goes with the address, one turn a track; where a track ends it jumps by the skew (Talagala, Arpaci-Dusseau and
//! Patterson, "Microbenchmark-based extraction of local and global disk characteristics", 1999, see the same jumps in the
//! latencies of linear strides). A larger jump every so many tracks is the change of cylinder, and says how many heads
//! there are. Addresses are read downwards, as drives read ahead upwards.

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
    let (mut found, mut first_ns) = (Vec::new(), None);
    for index in 0..count.min(top_bytes / step_bytes) {
        let offset_bytes = top_bytes - index * step_bytes;
        let answer = bench.ask(Kind::Read, offset_bytes, PROBE_BYTES)?;
        if answer.latency_ns() > hit_limit_ns {
            let since = *first_ns.get_or_insert(answer.done_ns);
            let turns = (answer.done_ns - since) as f64 / revolution_ns;
            found.push(Angle { offset_bytes: offset_bytes as f64, turns: turns.rem_euclid(1.0) });
        }
    }
    found.reverse();
    Ok(found)
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
    let cut = (1..sizes.len()).max_by(|one, other| between(one).total_cmp(&between(other)))?;
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
    let mut found: Vec<Place> = Vec::new();
    for index in 0..places {
        let top = (size - least - 4096) / (places - 1) * index + least;
        found.extend(place(bench, timing, top / 4096 * 4096, last_guess(&found, guess_bytes))?);
        if bench.now_ns() > timing.until_ns && found.len() > 2 {
            break;
        }
    }
    let mut changes = Vec::new();
    for pair in found.clone().windows(2) {
        between(bench, timing, (pair[0], pair[1]), &mut found, &mut changes)?;
    }
    Ok(joined(found, &changes, size))
}

fn last_guess(found: &[Place], guess_bytes: f64) -> f64 {
    found.last().map_or(guess_bytes, |place| place.track_bytes.value)
}

fn place(bench: &mut dyn Bench, timing: Timing, top: u64, guess: f64) -> Result<Option<Place>, DiskError> {
    let estimate = survey(bench, timing, top, guess, 2.4)?;
    // The middle of what was read.
    let offset_bytes = top - (guess * 1.2) as u64;
    Ok(estimate.map(|estimate| Place { offset_bytes, track_bytes: estimate.track_bytes }))
}

fn alike(one: &Place, other: &Place) -> bool {
    let errors = |place: &Place| (place.track_bytes.high - place.track_bytes.low) / 2.0;
    let apart = (one.track_bytes.value - other.track_bytes.value).abs();
    apart < (ALIKE * one.track_bytes.value).max(errors(one) + errors(other))
}

/// Looks for the changes between two places by halves; adds what it finds on the way.
fn between(
    bench: &mut dyn Bench,
    timing: Timing,
    (low, high): (Place, Place),
    found: &mut Vec<Place>,
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
        found.push(measured);
    }
    if alike(&low, &measured) {
        return between(bench, timing, (measured, high), found, changes);
    }
    between(bench, timing, (low, measured), found, changes)?;
    between(bench, timing, (measured, high), found, changes)
}

fn joined(mut found: Vec<Place>, changes: &[u64], size: u64) -> Vec<Zone> {
    found.sort_by_key(|place| place.offset_bytes);
    let mut edges = changes.to_vec();
    edges.sort_unstable();
    edges.push(size);
    let mut zones: Vec<Zone> = Vec::new();
    let mut first_bytes = 0;
    for end_bytes in edges {
        let here: Vec<f64> = found
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

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;
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
        assert!(tracks(&angles).is_none_or(|found| found.jumps.len() > 60));
        assert_eq!(tracks(&angles[..4]), None);
    }
}
