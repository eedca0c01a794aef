//! Zones: bytes of a track across the disk, and where they change.

use dbdyno_device::Kind;

use super::bench::Bench;
use super::estimate::Estimate;
use super::tracks::{Tracks, angles, tracks};
use crate::error::DiskError;

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
pub struct Known {
    pub revolution_ns: f64,
    pub hit_limit_ns: f64,
    /// When to be done, on the bench's clock; a coarser answer is given then.
    pub until_ns: u64,
}

/// Bytes a second of sequential reads from a place on.
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
    known: Known,
    top_bytes: u64,
    guess_bytes: f64,
    wanted: f64,
) -> Result<Option<Tracks>, DiskError> {
    // Not a part of the track, so that the places of several tracks lie between each other.
    let step = ((guess_bytes / 11.3 / 4096.0).round() as u64).max(1) * 4096;
    let count = (wanted * 11.3).ceil() as u64;
    Ok(tracks(&angles(bench, known.revolution_ns, top_bytes, (count, step), known.hit_limit_ns)?))
}

/// The zones from the beginning of the disk to its end; none where no place shows tracks.
pub fn zones(bench: &mut dyn Bench, known: Known, guess_bytes: f64) -> Result<Vec<Zone>, DiskError> {
    let size = bench.size_bytes();
    let least = (guess_bytes * 4.0) as u64;
    let places = PLACES.min(size / (2 * least).max(1)).max(2);
    let mut found: Vec<Place> = Vec::new();
    for index in 0..places {
        let top = (size - least - 4096) / (places - 1) * index + least;
        found.extend(place(bench, known, top / 4096 * 4096, last_guess(&found, guess_bytes))?);
        if bench.now_ns() > known.until_ns && found.len() > 2 {
            break;
        }
    }
    let mut changes = Vec::new();
    for pair in found.clone().windows(2) {
        between(bench, known, (pair[0], pair[1]), &mut found, &mut changes)?;
    }
    Ok(joined(found, &changes, size))
}

fn last_guess(found: &[Place], guess_bytes: f64) -> f64 {
    found.last().map_or(guess_bytes, |place| place.track_bytes.value)
}

fn place(bench: &mut dyn Bench, known: Known, top: u64, guess: f64) -> Result<Option<Place>, DiskError> {
    let found = survey(bench, known, top, guess, 2.4)?;
    // The middle of what was read.
    let offset_bytes = top - (guess * 1.2) as u64;
    Ok(found.map(|found| Place { offset_bytes, track_bytes: found.track_bytes }))
}

fn alike(one: &Place, other: &Place) -> bool {
    let errors = |place: &Place| (place.track_bytes.high - place.track_bytes.low) / 2.0;
    let apart = (one.track_bytes.value - other.track_bytes.value).abs();
    apart < (ALIKE * one.track_bytes.value).max(errors(one) + errors(other))
}

/// Looks for the changes between two places by halves; adds what it finds on the way.
fn between(
    bench: &mut dyn Bench,
    known: Known,
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
    let measured = if near || bench.now_ns() > known.until_ns {
        None
    } else {
        place(bench, known, (middle + (low.track_bytes.value * 1.2) as u64) / 4096 * 4096, low.track_bytes.value)?
    };
    let Some(measured) = measured else {
        changes.push(middle);
        return Ok(());
    };
    if !alike(&low, &measured) && !alike(&high, &measured) && apart as f64 > 0.02 * bench.size_bytes() as f64 {
        found.push(measured);
    }
    if alike(&low, &measured) {
        return between(bench, known, (measured, high), found, changes);
    }
    between(bench, known, (low, measured), found, changes)?;
    between(bench, known, (measured, high), found, changes)
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
