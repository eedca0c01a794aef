//! What is found of a hard disk, stage by stage.

use dbdyno_device::Kind;

use super::bench::{Bench, Load};
use super::cache::{ReadCache, read_cache};
use super::estimate::Estimate;
use super::local::{WithoutSeek, without_seek};
use super::rotation::PROBE_BYTES;
use super::seek::{Reach, curve};
use super::tracks::{Skews, Tracks, skews};
use super::writes::{Writes, writes};
use super::zones::{Known, Layout, sequential_rate, survey, zones};
use crate::error::DiskError;

/// Where heads are not found: two platters.
pub const HEADS: u64 = 4;
/// A quarter of the shortest revolution: whatever takes longer is no hit.
const HIT_NS_MAX: f64 = 1e6;
const DEPTHS: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Tracks that are surveyed for skews and heads.
const TRACKS: f64 = 40.0;

/// Everything that was found; what is `None` could not be.
#[derive(Debug)]
pub struct Hdd {
    pub revolution_ns: Estimate,
    pub hit: Estimate,
    pub layout: Layout,
    pub skews: Option<Skews>,
    pub without_seek: Option<WithoutSeek>,
    pub curve: Vec<Reach>,
    pub cache: ReadCache,
    /// Reads a second by depth.
    pub queue: Vec<(u64, Estimate)>,
    /// Sustained at the beginning and at the end, bytes a second.
    pub sequential: (f64, f64),
    pub writes: Option<Writes>,
    /// Stages that time did not allow in full.
    pub cut_short: Vec<&'static str>,
}

/// Says that a stage begins.
pub type Say<'a> = &'a mut dyn FnMut(&'static str) -> Result<(), DiskError>;

/// Looks at a disk that turns. `None` where its addresses show no tracks.
pub fn hdd(
    bench: &mut dyn Bench,
    revolution_ns: Estimate,
    hit: Estimate,
    (limit_ns, seed): (u64, u64),
    say: Say,
) -> Result<Option<Hdd>, DiskError> {
    let hit_limit_ns = hit_limit_ns(hit);
    let until = |part: f64| (limit_ns as f64 * part) as u64;
    let known = |part: f64| Known { revolution_ns: revolution_ns.value, hit_limit_ns, until_ns: until(part) };
    say("tracks")?;
    let size = bench.size_bytes();
    let rate = sequential_rate(bench, 0, 24)?;
    let inner_rate = sequential_rate(bench, (size - (32 << 20)).min(size * 9 / 10) / PROBE_BYTES * PROBE_BYTES, 24)?;
    let guess = rate * revolution_ns.value / 1e9 * 1.1;
    let Some(reference) = reference(bench, known(0.3), guess)? else { return Ok(None) };
    let skews = skews(&reference);
    say("zones")?;
    let found = zones(bench, known(0.3), reference.track_bytes.value)?;
    if found.is_empty() {
        return Ok(None);
    }
    let heads = skews.as_ref().and_then(|skews| skews.heads).map_or(HEADS, |heads| heads.value as u64);
    let layout = Layout { zones: found, heads };
    say("cache")?;
    let cache = read_cache(bench, hit, hit_limit_ns, rate, seed)?;
    say("seeks")?;
    let without_seek = match &skews {
        Some(skews) => without_seek(bench, known(0.5), &reference, skews)?,
        None => None,
    };
    let curve = curve(bench, known(0.75), &layout, cylinder_turns(skews.as_ref(), heads), seed)?;
    let mut cut_short = Vec::new();
    if bench.now_ns() > until(0.75) {
        cut_short.push("seek_table");
    }
    say("queue")?;
    let queue = queue(bench, limit_ns, seed)?;
    let writes = if bench.may_write() {
        say("writes")?;
        Some(writes(bench, known(0.95), &layout, (cylinder_turns(skews.as_ref(), heads), &curve), seed)?)
    } else {
        None
    };
    let sequential = (rate, inner_rate);
    Ok(Some(Hdd {
        revolution_ns,
        hit,
        layout,
        skews,
        without_seek,
        curve,
        cache,
        queue,
        sequential,
        writes,
        cut_short,
    }))
}

/// What takes no longer came from the cache: the least move takes longer on every drive. The median is meant, as on a busy
/// host some answers come late.
pub fn hit_limit_ns(hit: Estimate) -> f64 {
    (1.3 * hit.value + 40_000.0).min(HIT_NS_MAX)
}

/// The turns by which a cylinder's first sector lies after that of the one before.
fn cylinder_turns(skews: Option<&Skews>, heads: u64) -> f64 {
    skews.map_or(0.0, |skews| (heads - 1) as f64 * skews.track.value + skews.cylinder.unwrap_or(skews.track).value)
}

/// Many tracks at the beginning of the disk, from a first look at few.
fn reference(bench: &mut dyn Bench, known: Known, guess: f64) -> Result<Option<Tracks>, DiskError> {
    let size = bench.size_bytes() as f64;
    let top = |tracks: f64, track: f64| ((tracks + 1.0) * track * 1.1).min(size - 4096.0) as u64 / 4096 * 4096;
    let mut track = guess;
    for _ in 0..2 {
        let Some(found) = survey(bench, known, top(2.0 * TRACKS, track), track, 4.0)? else { return Ok(None) };
        track = found.track_bytes.value;
    }
    survey(bench, known, top(TRACKS, track), track, TRACKS)
}

/// Random reads a second by depth, in turns.
pub fn queue(bench: &mut dyn Bench, limit_ns: u64, seed: u64) -> Result<Vec<(u64, Estimate)>, DiskError> {
    let (mut rates, rounds) = (vec![Vec::new(); DEPTHS.len()], 3);
    let each_ns = (limit_ns / 60).clamp(200_000_000, 4_000_000_000);
    for round in 0..rounds {
        for (rates, depth) in rates.iter_mut().zip(DEPTHS) {
            let range = (0, bench.size_bytes());
            let load = Load {
                kind: Kind::Read,
                bytes: PROBE_BYTES,
                depth,
                sequential: false,
                range,
                requests: 300 + 20 * depth,
                limit_ns: each_ns,
                seed: seed ^ (round << 8) ^ depth,
            };
            rates.push(bench.load(&load)?.rate());
        }
    }
    let found = DEPTHS.into_iter().zip(&rates);
    Ok(found.filter_map(|(depth, rates)| Some((depth, Estimate::median(rates)?))).collect())
}
