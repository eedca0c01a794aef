//! Tracks, skews and heads, from the angles of sectors that lie one after the other.
//!
//! With the revolution known, the time at which a read ends says at which angle its sector lies. Within a track the angle
//! goes with the address, one turn a track; where a track ends it jumps by the skew (Talagala, Arpaci-Dusseau and
//! Patterson, "Microbenchmark-based extraction of local and global disk characteristics", 1999, see the same jumps in the
//! latencies of linear strides). A larger jump every so many tracks is the change of cylinder, and says how many heads
//! there are. Addresses are read downwards, as drives read ahead upwards.

use dbdyno_device::Kind;

use super::bench::Bench;
use super::estimate::Estimate;
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

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_common::random::Random;
    use proptest::prelude::*;

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
            let found = tracks(&made(track_bytes, heads, (track, track + more), noise, seed)).unwrap();
            prop_assert!((found.track_bytes.value / track_bytes - 1.0).abs() < 0.006, "{:?}", found.track_bytes);
            let skews = skews(&found).unwrap();
            prop_assert!((skews.track.value - track).abs() < 0.01, "{skews:?}");
            prop_assert!((skews.cylinder.unwrap().value - track - more).abs() < 0.01, "{skews:?}");
            prop_assert_eq!(skews.heads.unwrap().value as u64, heads);
        }
    }

    #[test]
    fn equal_skews_do_not_tell_the_heads() {
        let found = skews(&tracks(&made(1e6, 4, (0.1, 0.1), 0.001, 1)).unwrap()).unwrap();
        assert_eq!((found.heads, found.cylinder), (None, None));
        assert!((found.track.value - 0.1).abs() < 0.01);
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
