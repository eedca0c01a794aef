//! What can be told at one place where the tracks' ends are known: the time of a command that needs no move, and that of
//! a change of head.

use super::bench::Bench;
use super::estimate::Estimate;
use super::seek::{Target, Way, of_pairs, reach, sector};
use super::tracks::{Skews, Tracks};
use super::zones::Known;
use crate::error::DiskError;

const PAIRS: u64 = 6;
const READS: u64 = 12;

/// Ends of tracks: the first, and how far it may lie from the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(clippy::struct_field_names, reason = "the unit belongs into the name")]
pub struct Ends {
    pub first_bytes: f64,
    pub within_bytes: f64,
    pub track_bytes: f64,
}

/// Where tracks begin, from the jumps of many: each bounds all.
pub fn ends(tracks: &Tracks) -> Option<Ends> {
    let track = tracks.track_bytes.value;
    let first = tracks.jumps.first()?.before_bytes;
    let number = |bytes: f64| ((bytes - first) / track).round();
    let low = tracks.jumps.iter().map(|jump| jump.after_bytes - number(jump.before_bytes) * track).fold(0.0, f64::max);
    let highs = tracks.jumps.iter().map(|jump| jump.before_bytes - number(jump.before_bytes) * track);
    let high = highs.fold(f64::INFINITY, f64::min);
    let within_bytes = (high - low).abs() / 2.0 + 4096.0;
    let plausible = within_bytes < track / 8.0;
    plausible.then(|| Ends { first_bytes: f64::midpoint(low, high), within_bytes, track_bytes: track })
}

/// From the end of a track to places of one some tracks before it, a cylinder further down each time.
fn back(
    bench: &mut dyn Bench,
    known: Known,
    ends: Ends,
    (top_bytes, heads, tracks_back): (f64, u64, u64),
    (shift_turns, written): (f64, bool),
) -> Result<Option<Estimate>, DiskError> {
    let cylinder = heads as f64 * ends.track_bytes;
    let (margin, mut pairs) = (ends.within_bytes, Vec::new());
    for pair in 0..PAIRS {
        let ways: Vec<Way> = (0..READS)
            .map(|index| top_bytes - (pair * READS + index) as f64 * cylinder)
            .map(|end| Way {
                from_bytes: sector(end - margin - 4096.0),
                to_bytes: end - ends.track_bytes * (tracks_back + 1) as f64 + margin,
            })
            .collect();
        let target = Target {
            track_bytes: ends.track_bytes,
            room_bytes: ends.track_bytes - 2.0 * margin - 4096.0,
            shift_turns: -shift_turns,
            written,
        };
        pairs.extend(reach(bench, known, target, &ways)?);
    }
    Ok(of_pairs(&pairs))
}

/// Times to be on a track without a seek, ns.
#[derive(Debug, Clone, Copy)]
pub struct WithoutSeek {
    pub same_track: Estimate,
    /// On another track of the cylinder.
    pub other_head: Option<Estimate>,
    /// A write on the same track, and its flush; if the disk may be written.
    pub flushed: Option<Estimate>,
}

/// Looks for them where a survey found the ends of tracks; `None` where there is no room for it.
pub fn without_seek(
    bench: &mut dyn Bench,
    known: Known,
    tracks: &Tracks,
    skews: &Skews,
) -> Result<Option<WithoutSeek>, DiskError> {
    let Some(ends) = ends(tracks) else { return Ok(None) };
    let heads = skews.heads.map_or(1, |heads| heads.value as u64);
    let cylinder = ends.track_bytes * heads as f64;
    let needed = cylinder * (PAIRS * READS + 2) as f64;
    // The first beginning of a cylinder with room below.
    let tracks_on = ((skews.cylinder_bytes - ends.first_bytes) / ends.track_bytes).round();
    let begins = ends.first_bytes + tracks_on * ends.track_bytes;
    let top = begins + ((needed - begins) / cylinder).ceil().max(0.0) * cylinder;
    if top + cylinder > bench.size_bytes() as f64 {
        return Ok(None);
    }
    let turns = (heads - 1) as f64 * skews.track.value + skews.cylinder.unwrap_or(skews.track).value;
    let Some(same_track) = back(bench, known, ends, (top, heads, 0), (turns, false))? else { return Ok(None) };
    let second = top + 2.0 * ends.track_bytes - cylinder;
    let other_head = if heads > 1 { back(bench, known, ends, (second, heads, 1), (turns, false))? } else { None };
    let flushed = if bench.may_write() { back(bench, known, ends, (top, heads, 0), (turns, true))? } else { None };
    Ok(Some(WithoutSeek { same_track, other_head, flushed }))
}
