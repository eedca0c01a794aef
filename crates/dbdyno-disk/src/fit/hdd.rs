//! The parameters of a hard disk, found stage by stage, and its drive file.

use std::fmt::Write;

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::{Bench, Load, ModelBench};
use super::drive_file::{DriveFile, Estimate, Figure, Source, number};
use super::rotation::{PROBE_BYTES, random_place};
use super::tracks::{
    Layout, RESOLUTION, Reach, Skews, Target, Timing, Tracks, Way, curve, median_of_pairs, over, reach, sector,
    sequential_rate, skews, survey, zones,
};
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
    let timing = |part: f64| Timing { revolution_ns: revolution_ns.value, hit_limit_ns, until_ns: until(part) };
    say("tracks")?;
    let size = bench.size_bytes();
    let rate = sequential_rate(bench, 0, 24)?;
    let inner_rate = sequential_rate(bench, (size - (32 << 20)).min(size * 9 / 10) / PROBE_BYTES * PROBE_BYTES, 24)?;
    let guess = rate * revolution_ns.value / 1e9 * 1.1;
    let Some(reference) = reference(bench, timing(0.3), guess)? else { return Ok(None) };
    let skews = skews(&reference);
    say("zones")?;
    let zone_layout = zones(bench, timing(0.3), reference.track_bytes.value)?;
    if zone_layout.is_empty() {
        return Ok(None);
    }
    let heads = skews.as_ref().and_then(|skews| skews.heads).map_or(HEADS, |heads| heads.value as u64);
    let layout = Layout { zones: zone_layout, heads };
    say("cache")?;
    let cache = read_cache(bench, hit, hit_limit_ns, rate, seed)?;
    say("seeks")?;
    let without_seek = match &skews {
        Some(skews) => without_seek(bench, timing(0.5), &reference, skews)?,
        None => None,
    };
    let curve = curve(bench, timing(0.75), &layout, cylinder_turns(skews.as_ref(), heads), seed)?;
    let mut cut_short = Vec::new();
    if bench.now_ns() > until(0.75) {
        cut_short.push("seek_table");
    }
    say("queue")?;
    let queue = queue(bench, limit_ns, seed)?;
    let writes = if bench.may_write() {
        say("writes")?;
        Some(writes(bench, timing(0.95), &layout, (cylinder_turns(skews.as_ref(), heads), &curve), seed)?)
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

/// What takes no longer came from the cache: the least move takes longer on every drive. The median is meant, as on a
/// busy host some answers come late.
pub fn hit_limit_ns(hit: Estimate) -> f64 {
    (1.3 * hit.value + 40_000.0).min(HIT_NS_MAX)
}

/// The turns by which a cylinder's first sector lies after that of the one before.
fn cylinder_turns(skews: Option<&Skews>, heads: u64) -> f64 {
    skews.map_or(0.0, |skews| (heads - 1) as f64 * skews.track.value + skews.cylinder.unwrap_or(skews.track).value)
}

/// Many tracks at the beginning of the disk, from a first look at few.
fn reference(bench: &mut dyn Bench, timing: Timing, guess: f64) -> Result<Option<Tracks>, DiskError> {
    let size = bench.size_bytes() as f64;
    let top = |tracks: f64, track: f64| ((tracks + 1.0) * track * 1.1).min(size - 4096.0) as u64 / 4096 * 4096;
    let mut track = guess;
    for _ in 0..2 {
        let Some(tracks) = survey(bench, timing, top(2.0 * TRACKS, track), track, 4.0)? else { return Ok(None) };
        track = tracks.track_bytes.value;
    }
    survey(bench, timing, top(TRACKS, track), track, TRACKS)
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
    let rates_by_depth = DEPTHS.into_iter().zip(&rates);
    Ok(rates_by_depth.filter_map(|(depth, rates)| Some((depth, Estimate::median(rates)?))).collect())
}

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
    timing: Timing,
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
        pairs.extend(reach(bench, timing, target, &ways)?);
    }
    Ok(median_of_pairs(&pairs))
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
    timing: Timing,
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
    let Some(same_track) = back(bench, timing, ends, (top, heads, 0), (turns, false))? else { return Ok(None) };
    let second = top + 2.0 * ends.track_bytes - cylinder;
    let other_head = if heads > 1 { back(bench, timing, ends, (second, heads, 1), (turns, false))? } else { None };
    let flushed = if bench.may_write() { back(bench, timing, ends, (top, heads, 0), (turns, true))? } else { None };
    Ok(Some(WithoutSeek { same_track, other_head, flushed }))
}

/// More segments than this are not looked for.
const SEGMENTS_MAX: u64 = 512;
/// Nor read-ahead further than this.
const AHEAD_BYTES_MAX: u64 = 64 << 20;
const LARGE_BYTES: u64 = 256 << 10;
/// How often each question is put; the majority counts.
const VOTES: u64 = 3;

/// What was found.
#[derive(Debug, Clone, Copy)]
pub struct ReadCache {
    /// Bytes a second over the interface, if reads of two sizes are answered from the cache.
    pub interface: Option<Estimate>,
    /// Places that are still in the cache after as many reads; `None` where even the last is not.
    pub segments: Option<Estimate>,
    /// Bytes that are in the cache after a read and a pause; `None` where nothing is read ahead.
    pub ahead_bytes: Option<Estimate>,
}

/// Looks at the cache of a drive that answers `hit` (4 KiB, ns) from it, and reads `rate` bytes a second.
pub fn read_cache(
    bench: &mut dyn Bench,
    hit: Estimate,
    hit_limit_ns: f64,
    rate: f64,
    seed: u64,
) -> Result<ReadCache, DiskError> {
    let mut random = Random::new(seed);
    let large = super::rotation::hit_ns(bench, LARGE_BYTES, seed)?;
    let interface = large
        .filter(|large| large.value < 2.0 * hit_limit_ns + 4e6 && large.value > hit.value)
        .map(|large| large.map(|large_ns| (LARGE_BYTES - PROBE_BYTES) as f64 * 1e9 / (large_ns - hit.value).max(1.0)));
    let segments =
        last_true(1, SEGMENTS_MAX, |segments| votes(|| is_kept(bench, segments, hit_limit_ns, &mut random)))?;
    let units = last_true(1, AHEAD_BYTES_MAX / PROBE_BYTES, |units| {
        votes(|| is_read_ahead(bench, units * PROBE_BYTES, hit_limit_ns, rate, &mut random))
    })?;
    let counted = |bounds: (u64, u64), unit: u64| {
        let (low, high) = ((bounds.0 * unit) as f64, (bounds.1 * unit) as f64);
        (bounds.0 > 0).then(|| Estimate::new(low, low, high.max(low), VOTES as usize))
    };
    Ok(ReadCache { interface, segments: counted(segments, 1), ahead_bytes: counted(units, PROBE_BYTES) })
}

fn votes(mut ask: impl FnMut() -> Result<bool, DiskError>) -> Result<bool, DiskError> {
    let mut yes = 0;
    for _ in 0..VOTES {
        yes += u64::from(ask()?);
    }
    Ok(yes * 2 > VOTES)
}

/// The last number for which a question that once becomes false is true, and the first for which it was found false; 0
/// if it is for none. Doubles, then halves, to a part in sixteen.
fn last_true(
    first: u64,
    last: u64,
    mut is: impl FnMut(u64) -> Result<bool, DiskError>,
) -> Result<(u64, u64), DiskError> {
    let (mut low, mut high) = (0, first);
    while is(high)? {
        low = high;
        if high >= last {
            return Ok((low, low));
        }
        high = (high * 2).min(last);
    }
    while high - low > 1.max(low / 64) && low > 0 {
        let middle = u64::midpoint(low, high);
        if is(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok((low, high - 1))
}

/// Whether a place is still in the cache after so many reads, its own included.
fn is_kept(bench: &mut dyn Bench, reads: u64, limit_ns: f64, random: &mut Random) -> Result<bool, DiskError> {
    let size = bench.size_bytes();
    let place = random_place(size, PROBE_BYTES, random);
    bench.ask(Kind::Read, place, PROBE_BYTES)?;
    for _ in 1..reads {
        let other = random_place(size, PROBE_BYTES, random);
        bench.ask(Kind::Read, other, PROBE_BYTES)?;
    }
    Ok(bench.ask(Kind::Read, place, PROBE_BYTES)?.latency_ns() <= limit_ns)
}

/// Whether, after a read and the time to read on so far, the last page of so many bytes is in the cache.
fn is_read_ahead(
    bench: &mut dyn Bench,
    bytes: u64,
    limit_ns: f64,
    rate: f64,
    random: &mut Random,
) -> Result<bool, DiskError> {
    let place = random_place(bench.size_bytes(), bytes + 2 * PROBE_BYTES, random);
    bench.ask(Kind::Read, place, PROBE_BYTES)?;
    bench.pause((bytes as f64 / rate * 2.5e9) as u64 + 5_000_000);
    Ok(bench.ask(Kind::Read, place + bytes, PROBE_BYTES)?.latency_ns() <= limit_ns)
}

const WRITE_BYTES: u64 = 512 << 10;
/// A cache that takes more is not looked for.
const CACHE_BYTES_MAX: u64 = 512 << 20;
const FLUSHES: u64 = 9;
/// Writes that are looked at together.
const WINDOW: usize = 8;

/// What was found, in ns and bytes.
#[derive(Debug, Clone, Copy)]
pub struct Writes {
    /// What a write over a seek and its flush take longer than a read over the same.
    pub beyond_a_read: Option<Estimate>,
    /// A write that is not flushed.
    pub write: Option<Estimate>,
    /// 0 where each write waits for the medium.
    pub cache_bytes: Option<Estimate>,
    /// FLUSH after one and after eight writes at random places.
    pub flush_after: [Option<Estimate>; 2],
}

/// Writes and flushes at random places.
pub fn writes(
    bench: &mut dyn Bench,
    timing: Timing,
    layout: &Layout,
    (cylinder_turns, curve): (f64, &[Reach]),
    seed: u64,
) -> Result<Writes, DiskError> {
    let mut random = Random::new(seed);
    let mut flush_after = [None; 2];
    let mut single = Vec::new();
    for (flush_after, count) in flush_after.iter_mut().zip([1, 8]) {
        let mut flushes = Vec::new();
        for _ in 0..FLUSHES {
            for _ in 0..count {
                let place = random_place(bench.size_bytes(), PROBE_BYTES, &mut random);
                single.push(bench.ask(Kind::Write, place, PROBE_BYTES)?.latency_ns());
            }
            flushes.push(bench.ask(Kind::Flush, 0, 0)?.latency_ns());
        }
        *flush_after = Estimate::median(&flushes);
    }
    let write = Estimate::median(&single);
    let cached = write.is_some_and(|write| write.value < timing.revolution_ns / 4.0);
    let cache_bytes = if cached { cache_bytes(bench, &mut random)? } else { Some(Estimate::new(0.0, 0.0, 0.0, 1)) };
    bench.ask(Kind::Flush, 0, 0)?;
    let mut beyond_a_read = None;
    if let Some(reach) = curve.get(curve.len() / 2) {
        let flushed = over(bench, timing, layout, (cylinder_turns, reach.cylinders, true), seed)?;
        beyond_a_read = flushed.map(|flushed| {
            let reads = (reach.ns.high - reach.ns.low) / 2.0;
            let least = flushed.map(|ns| ns - reach.ns.value);
            Estimate::new(least.value, least.low - reads, least.high + reads, least.n)
        });
    }
    Ok(Writes { beyond_a_read, write, cache_bytes, flush_after })
}

/// How much is written at random places until a write has to wait, less what reached the medium meanwhile.
fn cache_bytes(bench: &mut dyn Bench, random: &mut Random) -> Result<Option<Estimate>, DiskError> {
    let mut sizes = Vec::new();
    for _ in 0..3 {
        bench.ask(Kind::Flush, 0, 0)?;
        let began_ns = bench.now_ns();
        let (mut latencies, mut ends): (Vec<f64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut full = None;
        while full.is_none_or(|(writes, _)| latencies.len() < writes + 24)
            && (latencies.len() as u64) < CACHE_BYTES_MAX / WRITE_BYTES
        {
            let place = random_place(bench.size_bytes(), WRITE_BYTES, random);
            let answer = bench.ask(Kind::Write, place, WRITE_BYTES)?;
            latencies.push(answer.latency_ns());
            ends.push(answer.done_ns - began_ns);
            full = full.or_else(|| first_to_wait(&latencies).map(|first| (first, ends[first])));
        }
        if let Some((writes, after_ns)) = full {
            let mean_ns = Estimate::mean(&latencies[writes..]).map_or(1.0, |mean| mean.value);
            let on_the_medium = after_ns as f64 / mean_ns;
            sizes.push((writes as f64 - on_the_medium).max(0.0) * WRITE_BYTES as f64);
        }
    }
    Ok(Estimate::median(&sizes).map(|median| {
        Estimate::new(median.value, median.low - WRITE_BYTES as f64, median.high + WRITE_BYTES as f64, median.n)
    }))
}

/// The first write that had to wait, once most of the last ones had to; a late answer alone shows nothing.
fn first_to_wait(latencies: &[f64]) -> Option<usize> {
    let usual = Estimate::median(latencies.get(..WINDOW)?)?.value;
    let from = latencies.len().checked_sub(WINDOW).filter(|from| *from >= WINDOW)?;
    let waits = |latency: &f64| *latency > 3.0 * usual + 1e6;
    let recent = &latencies[from..];
    let most = recent.iter().filter(|latency| waits(latency)).count() * 2 > WINDOW;
    let first = from + recent.iter().position(waits)?;
    most.then_some(first)
}

const READ_ONLY: &str = "only writes show it, and the device was only read";
const NO_ENDS: &str = "no ends of tracks were found, which writes have to be aimed at";

/// All of the drive file but what only running the model shows.
pub fn file_of(hdd: &Hdd, size_bytes: u64) -> DriveFile {
    let (general, zones) = (general(hdd, size_bytes), zone_sections(hdd));
    let mut sections = vec![("[hdd]".to_owned(), general)];
    sections.extend(zones.into_iter().map(|zone| ("[[hdd.zone]]".to_owned(), zone)));
    DriveFile { title: String::new(), notes: Vec::new(), sections }
}

fn general(hdd: &Hdd, size_bytes: u64) -> Vec<Figure> {
    let ms = |estimate: Estimate| estimate.map(|ns| ns / 1e6);
    let skews = hdd.skews.as_ref();
    let (sector_bytes, why) = sector_bytes(hdd);
    let reported = |field: &str, text: String| Figure { field: field.into(), text, source: Source::Reported };
    let mut figures = vec![
        reported("capacity_bytes", size_bytes.to_string()),
        Figure { field: "sector_bytes".into(), text: sector_bytes.to_string(), source: why },
        Figure::measured("rpm", hdd.revolution_ns.map(|ns| 60e9 / ns)),
        Figure::or_whole(
            "heads",
            skews.and_then(|skews| skews.heads),
            &HEADS.to_string(),
            "no change of cylinder stands out from the changes of track",
        ),
        seek_table(hdd),
    ];
    let head_switch = hdd.without_seek.and_then(|times| Some((times.other_head?, times.same_track)));
    let head_switch = head_switch.map(|(other, same)| less(other, same));
    figures.push(write_settle(hdd));
    figures.push(Figure::or("head_switch_ms", head_switch.map(ms), "0.5", "no two tracks of a cylinder were found"));
    figures.push(Figure::measured("overhead_ms", ms(overhead(hdd))));
    let choose = hdd.without_seek.map(|times| ms(choose(hdd, times.same_track)));
    figures.push(Figure::or("choose_ms", choose, "0.0", "contained in the seek times; no ends of tracks were found"));
    let interface = hdd.cache.interface.map(|rate| rate.map(|rate| rate / 1e6));
    figures.push(Figure::or("interface_mb_s", interface, "550.0", "the cache answered no reads of 256 KiB"));
    figures.extend([
        Figure::default("queue_depth", "32", "not fitted"),
        Figure::default("age_weight", "0.05", "not fitted"),
        Figure::default("age_limit_ms", "2000.0", "no response time shows it"),
    ]);
    figures.extend(cache(hdd));
    figures
}

fn cache(hdd: &Hdd) -> Vec<Figure> {
    let writes = hdd.writes.as_ref();
    let none = "fewer than 512 reads push nothing out of the cache, or none is kept";
    let mut figures = vec![
        Figure::or_whole(
            "write_cache_bytes",
            writes.and_then(|writes| writes.cache_bytes),
            "33554432",
            writes.map_or(READ_ONLY, |_| "no write had to wait, up to 512 MiB"),
        ),
        Figure::default("destage_window", "64", "not fitted"),
        Figure::default("destage_handicap_ms", "5.0", "reads and writes were not mixed"),
        flush(hdd),
        Figure::or_whole("read_segments", hdd.cache.segments, "16", none),
    ];
    let ahead = hdd.cache.ahead_bytes;
    figures.push(Figure::or_whole("read_segment_bytes", ahead, "524288", "nothing is read ahead after a single read"));
    let always = if ahead.is_some() { "\"always\"" } else { "\"sequential\"" };
    let source =
        ahead.map_or_else(|| Source::Default("nothing is read ahead after a single read".into()), Source::Measured);
    figures.push(Figure { field: "read_ahead".into(), text: always.into(), source });
    figures
}

/// The difference of two estimates that were made apart.
fn less(left: Estimate, right: Estimate) -> Estimate {
    let value = left.value - right.value;
    let half = |estimate: Estimate| (estimate.high - estimate.low) / 2.0;
    let error = (half(left).powi(2) + half(right).powi(2)).sqrt();
    Estimate::new(value.max(0.0), (value - error).max(0.0), (value + error).max(0.0), left.n.min(right.n))
}

fn transfer_ns(hdd: &Hdd) -> f64 {
    hdd.cache.interface.map_or(0.0, |rate| PROBE_BYTES as f64 * 1e9 / rate.value)
}

fn overhead(hdd: &Hdd) -> Estimate {
    hdd.hit.map(|ns| (ns - transfer_ns(hdd)).max(0.0))
}

/// What a read without a move takes beside the passage of its sector and the transfer.
fn choose(hdd: &Hdd, same_track: Estimate) -> Estimate {
    let track = hdd.layout.zones.first().map_or(f64::INFINITY, |zone| zone.track_bytes.value);
    let pass_ns = PROBE_BYTES as f64 / track * hdd.revolution_ns.value;
    same_track.map(|ns| (ns - pass_ns - transfer_ns(hdd)).max(0.0))
}

fn flush(hdd: &Hdd) -> Figure {
    // A flushed write: the move is chosen, the sector passes, that nothing is left is seen, and the flush ends.
    let extra = hdd.without_seek.and_then(|times| {
        let flushed = times.flushed?;
        Some(less(less(flushed, times.same_track), choose(hdd, times.same_track)))
    });
    let shown = extra.filter(|extra| extra.value > 0.01 * hdd.revolution_ns.value);
    let why = match extra {
        Some(_) => "a single write was on the medium before FLUSH came",
        None => not_written(hdd),
    };
    Figure::or("flush_ms", shown.map(|extra| extra.map(|ns| ns / 1e6)), "4.0", why)
}

fn write_settle(hdd: &Hdd) -> Figure {
    let beyond = hdd.writes.as_ref().and_then(|writes| writes.beyond_a_read);
    let settle = hdd.without_seek.and_then(|times| Some(less(beyond?, less(times.flushed?, times.same_track))));
    Figure::or("write_settle_ms", settle.map(|settle| settle.map(|ns| ns / 1e6)), "0.5", not_written(hdd))
}

/// Why what aimed writes show is not known.
fn not_written(hdd: &Hdd) -> &'static str {
    if hdd.writes.is_some() { NO_ENDS } else { READ_ONLY }
}

/// Rows of cylinders and ms, less what a read takes without a seek; rising.
fn seek_table(hdd: &Hdd) -> Figure {
    let without = hdd.without_seek.map_or(0.0, |times| times.same_track.value);
    let (mut rows, mut least, mut widest, mut n) = (String::from("[\n"), 0.0_f64, 0.0_f64, usize::MAX);
    for reach in &hdd.curve {
        let ms = (reach.ns.value - without).max(0.0) / 1e6;
        least = least.max(ms);
        widest = widest.max((reach.ns.high - reach.ns.low) / 2e6);
        n = n.min(reach.ns.n);
        let (low, high) = (number((reach.ns.low - without) / 1e6), number((reach.ns.high - without) / 1e6));
        let raised = if least > ms { "; raised to the row before" } else { "" };
        let n = reach.ns.n;
        let _ = writeln!(rows, "  [{}, {}], # {low} to {high}, n = {n}{raised}", reach.cylinders, number(least));
    }
    let source = match hdd.curve.len() {
        0 => Source::Default("no distance could be timed".into()),
        _ => Source::Measured(Estimate::new(least, least - widest, least + widest, n)),
    };
    let text = if hdd.curve.is_empty() { "[[1, 1.0]]".into() } else { rows + "]" };
    Figure { field: "seek_table".into(), text, source }
}

/// 4096 where all tracks hold whole sectors of that size, else 512.
fn sector_bytes(hdd: &Hdd) -> (u64, Source) {
    let tracks = hdd.layout.zones.iter().map(|zone| zone.track_bytes);
    let whole = |track: Estimate| {
        let sectors = track.value / 4096.0;
        (sectors - sectors.round()).abs() < 0.06
    };
    let exact = hdd.layout.zones.iter().all(|zone| zone.track_bytes.high - zone.track_bytes.low < 400.0);
    let alike = tracks.clone().all(whole);
    match (exact, alike) {
        (true, true) => (4096, Source::Fitted("all tracks are whole sectors of that size".into())),
        (true, false) => (512, Source::Fitted("tracks are not whole sectors of 4096 bytes".into())),
        (false, _) => (4096, Source::Default("tracks are not known to a sector".into())),
    }
}

fn zone_sections(hdd: &Hdd) -> Vec<Vec<Figure>> {
    let sector = sector_bytes(hdd).0 as f64;
    let skews = hdd.skews.as_ref();
    let mut first = 0;
    let last_zone = hdd.layout.zones.len() - 1;
    let size = hdd.layout.zones[last_zone].end_bytes as f64;
    let zones = hdd.layout.zones.iter().enumerate().map(|(index, zone)| {
        let per_track = zone.track_bytes.map(|bytes| (bytes / sector).round());
        // Rounding must not leave the zones short of the capacity.
        let cylinders = hdd.layout.cylinders_of(zone) + if index == last_zone { last_zone as u64 + 2 } else { 0 };
        let cylinder = |number: u64| {
            let near = (RESOLUTION * size / (hdd.layout.heads as f64 * zone.track_bytes.value)).ceil();
            let timing = if number == 0 || index == last_zone && number > first { 0.0 } else { near };
            Estimate::new(number as f64, number as f64 - timing, number as f64 + timing, zone.track_bytes.n)
        };
        let skew = |turns: Option<Estimate>| turns.map(|turns| turns.map(|turns| turns * per_track.value));
        let figures = vec![
            Figure::whole("first_cylinder", cylinder(first)),
            Figure::whole("last_cylinder", cylinder(first + cylinders - 1)),
            Figure::whole("sectors_per_track", per_track),
            Figure::or("track_skew_sectors", skew(skews.map(|skews| skews.track)), "0.0", "too few ends of tracks"),
            Figure::or(
                "cylinder_skew_sectors",
                skew(skews.map(|skews| skews.cylinder.unwrap_or(skews.track))),
                "0.0",
                "too few ends of tracks",
            ),
        ];
        first += cylinders;
        figures
    });
    zones.collect()
}

/// Runs the model with several depths and weights of its queue, and takes those whose gains are nearest.
pub fn fit_queue(file: &mut DriveFile, hdd: &Hdd, (size_bytes, seed): (u64, u64)) -> Result<(), DiskError> {
    let gains = |rates: &[(u64, Estimate)]| -> Vec<f64> {
        let alone = rates.first().map_or(1.0, |(_, rate)| rate.value);
        rates.iter().skip(1).map(|(_, rate)| (rate.value / alone).ln()).collect()
    };
    let wanted = gains(&hdd.queue);
    let mut best: Option<(f64, u64, f64)> = None;
    for depth in [1, 2, 4, 8, 16, 32] {
        for weight in [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5] {
            let mut tried = file.clone();
            tried.set("queue_depth", &depth.to_string(), &Source::Reported);
            tried.set("age_weight", &number(weight), &Source::Reported);
            let got = gains(&model_queue(&tried, size_bytes, seed)?);
            let error: f64 = wanted.iter().zip(&got).map(|(wanted, got)| (wanted - got).powi(2)).sum();
            if best.is_none_or(|(least, ..)| error < least) {
                best = Some((error, depth, weight));
            }
            if depth == 1 {
                break;
            }
        }
    }
    if let Some((error, depth, weight)) = best {
        let off = (error / wanted.len().max(1) as f64).sqrt() * 100.0;
        let how = Source::Fitted(format!("gain of depths 2 to 32 over 1, {off:.1} % off"));
        file.set("queue_depth", &depth.to_string(), &how);
        file.set("age_weight", &number(weight), &how);
    }
    Ok(())
}

/// Random reads a second by depth, of the model that a drive file makes.
pub fn model_queue(file: &DriveFile, size_bytes: u64, seed: u64) -> Result<Vec<(u64, Estimate)>, DiskError> {
    let model = dbdyno_device::model_of_text(&file.text(), size_bytes, seed)?;
    let mut bench = ModelBench::new(model, size_bytes, false);
    let bench: &mut dyn Bench = &mut bench;
    queue(bench, 240_000_000_000, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_true_number_is_found() {
        for limit in [0, 1, 2, 3, 17, 60, 300] {
            let last = last_true(1, 256, |number| Ok(number <= limit)).unwrap();
            let wanted = limit.min(256);
            assert!(last.0 <= wanted && wanted <= last.1.max(last.0), "{limit}: {last:?}");
            assert!(last.1 - last.0 <= last.0 / 60, "{limit}: {last:?}");
        }
    }

    #[test]
    fn a_late_answer_does_not_say_that_the_cache_is_full() {
        let (quick, slow) = (0.9e6, 8e6);
        let mut latencies = vec![quick; 30];
        latencies[12] = 40e6;
        assert_eq!(first_to_wait(&latencies), None);
        latencies.extend([slow; 4]);
        assert_eq!(first_to_wait(&latencies), None, "half of the last ones");
        latencies.extend([quick, slow]);
        assert_eq!(first_to_wait(&latencies), Some(30));
        assert_eq!(first_to_wait(&latencies[..7]), None);
    }
}
