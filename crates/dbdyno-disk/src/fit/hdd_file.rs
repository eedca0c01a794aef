//! The drive file of a hard disk, from what was found of it.

use std::fmt::Write;

use super::bench::Bench;
use super::drive_file::{DriveFile, Figure, Source, number};
use super::estimate::Estimate;
use super::hdd::{HEADS, Hdd, queue};
use super::model_bench::ModelBench;
use super::rotation::PROBE_BYTES;
use super::zones::RESOLUTION;
use crate::error::DiskError;

const READ_ONLY: &str = "only writes show it, and the device was only read";
const NO_ENDS: &str = "no ends of tracks were found, which writes have to be aimed at";

/// All of the drive file but what only running the model shows.
pub fn file_of(found: &Hdd, size_bytes: u64) -> DriveFile {
    let (general, zones) = (general(found, size_bytes), zones(found));
    let mut sections = vec![("[hdd]".to_owned(), general)];
    sections.extend(zones.into_iter().map(|zone| ("[[hdd.zone]]".to_owned(), zone)));
    DriveFile { title: String::new(), notes: Vec::new(), sections }
}

fn general(found: &Hdd, size_bytes: u64) -> Vec<Figure> {
    let ms = |estimate: Estimate| estimate.map(|ns| ns / 1e6);
    let skews = found.skews.as_ref();
    let (sector_bytes, why) = sector_bytes(found);
    let reported = |field: &str, text: String| Figure { field: field.into(), text, source: Source::Reported };
    let mut figures = vec![
        reported("capacity_bytes", size_bytes.to_string()),
        Figure { field: "sector_bytes".into(), text: sector_bytes.to_string(), source: why },
        Figure::measured("rpm", found.revolution_ns.map(|ns| 60e9 / ns)),
        Figure::or_counted(
            "heads",
            skews.and_then(|skews| skews.heads),
            &HEADS.to_string(),
            "no change of cylinder stands out from the changes of track",
        ),
        seek_table(found),
    ];
    let head_switch = found.without_seek.and_then(|times| Some((times.other_head?, times.same_track)));
    let head_switch = head_switch.map(|(other, same)| less(other, same));
    figures.push(write_settle(found));
    figures.push(Figure::or("head_switch_ms", head_switch.map(ms), "0.5", "no two tracks of a cylinder were found"));
    figures.push(Figure::measured("overhead_ms", ms(overhead(found))));
    let choose = found.without_seek.map(|times| ms(choose(found, times.same_track)));
    figures.push(Figure::or("choose_ms", choose, "0.0", "contained in the seek times; no ends of tracks were found"));
    let interface = found.cache.interface.map(|rate| rate.map(|rate| rate / 1e6));
    figures.push(Figure::or("interface_mb_s", interface, "550.0", "the cache answered no reads of 256 KiB"));
    figures.extend([
        Figure::default("queue_depth", "32", "not fitted"),
        Figure::default("age_weight", "0.05", "not fitted"),
        Figure::default("age_limit_ms", "2000.0", "no response time shows it"),
    ]);
    figures.extend(cache(found));
    figures
}

fn cache(found: &Hdd) -> Vec<Figure> {
    let writes = found.writes.as_ref();
    let none = "fewer than 512 reads push nothing out of the cache, or none is kept";
    let mut figures = vec![
        Figure::or_counted(
            "write_cache_bytes",
            writes.and_then(|writes| writes.cache_bytes),
            "33554432",
            writes.map_or(READ_ONLY, |_| "no write had to wait, up to 512 MiB"),
        ),
        Figure::default("destage_window", "64", "not fitted"),
        Figure::default("destage_handicap_ms", "5.0", "reads and writes were not mixed"),
        flush(found),
        Figure::or_counted("read_segments", found.cache.segments, "16", none),
    ];
    let ahead = found.cache.ahead_bytes;
    figures.push(Figure::or_counted(
        "read_segment_bytes",
        ahead,
        "524288",
        "nothing is read ahead after a single read",
    ));
    let always = if ahead.is_some() { "\"always\"" } else { "\"sequential\"" };
    let source =
        ahead.map_or_else(|| Source::Default("nothing is read ahead after a single read".into()), Source::Measured);
    figures.push(Figure { field: "read_ahead".into(), text: always.into(), source });
    figures
}

/// The difference of two estimates that were made apart.
fn less(one: Estimate, other: Estimate) -> Estimate {
    let value = one.value - other.value;
    let half = |estimate: Estimate| (estimate.high - estimate.low) / 2.0;
    let error = (half(one).powi(2) + half(other).powi(2)).sqrt();
    Estimate::new(value.max(0.0), (value - error).max(0.0), (value + error).max(0.0), one.n.min(other.n))
}

fn transfer_ns(found: &Hdd) -> f64 {
    found.cache.interface.map_or(0.0, |rate| PROBE_BYTES as f64 * 1e9 / rate.value)
}

fn overhead(found: &Hdd) -> Estimate {
    found.hit.map(|ns| (ns - transfer_ns(found)).max(0.0))
}

/// What a read without a move takes beside the passage of its sector and the transfer.
fn choose(found: &Hdd, same_track: Estimate) -> Estimate {
    let track = found.layout.zones.first().map_or(f64::INFINITY, |zone| zone.track_bytes.value);
    let pass_ns = PROBE_BYTES as f64 / track * found.revolution_ns.value;
    same_track.map(|ns| (ns - pass_ns - transfer_ns(found)).max(0.0))
}

fn flush(found: &Hdd) -> Figure {
    // A flushed write: the move is chosen, the sector passes, that nothing is left is seen, and the flush ends.
    let extra = found.without_seek.and_then(|times| {
        let flushed = times.flushed?;
        Some(less(less(flushed, times.same_track), choose(found, times.same_track)))
    });
    let shown = extra.filter(|extra| extra.value > 0.01 * found.revolution_ns.value);
    let why = match extra {
        Some(_) => "a single write was on the medium before FLUSH came",
        None => not_written(found),
    };
    Figure::or("flush_ms", shown.map(|extra| extra.map(|ns| ns / 1e6)), "4.0", why)
}

fn write_settle(found: &Hdd) -> Figure {
    let beyond = found.writes.as_ref().and_then(|writes| writes.beyond_a_read);
    let settle = found.without_seek.and_then(|times| Some(less(beyond?, less(times.flushed?, times.same_track))));
    Figure::or("write_settle_ms", settle.map(|settle| settle.map(|ns| ns / 1e6)), "0.5", not_written(found))
}

/// Why what aimed writes show is not known.
fn not_written(found: &Hdd) -> &'static str {
    if found.writes.is_some() { NO_ENDS } else { READ_ONLY }
}

/// Rows of cylinders and ms, less what a read takes without a seek; rising.
fn seek_table(found: &Hdd) -> Figure {
    let without = found.without_seek.map_or(0.0, |times| times.same_track.value);
    let (mut rows, mut least, mut widest, mut n) = (String::from("[\n"), 0.0_f64, 0.0_f64, usize::MAX);
    for reach in &found.curve {
        let ms = (reach.ns.value - without).max(0.0) / 1e6;
        least = least.max(ms);
        widest = widest.max((reach.ns.high - reach.ns.low) / 2e6);
        n = n.min(reach.ns.n);
        let (low, high) = (number((reach.ns.low - without) / 1e6), number((reach.ns.high - without) / 1e6));
        let raised = if least > ms { "; raised to the row before" } else { "" };
        let n = reach.ns.n;
        let _ = writeln!(rows, "  [{}, {}], # {low} to {high}, n = {n}{raised}", reach.cylinders, number(least));
    }
    let source = match found.curve.len() {
        0 => Source::Default("no distance could be timed".into()),
        _ => Source::Measured(Estimate::new(least, least - widest, least + widest, n)),
    };
    let text = if found.curve.is_empty() { "[[1, 1.0]]".into() } else { rows + "]" };
    Figure { field: "seek_table".into(), text, source }
}

/// 4096 where all tracks hold whole sectors of that size, else 512.
fn sector_bytes(found: &Hdd) -> (u64, Source) {
    let tracks = found.layout.zones.iter().map(|zone| zone.track_bytes);
    let whole = |track: Estimate| {
        let sectors = track.value / 4096.0;
        (sectors - sectors.round()).abs() < 0.06
    };
    let exact = found.layout.zones.iter().all(|zone| zone.track_bytes.high - zone.track_bytes.low < 400.0);
    let alike = tracks.clone().all(whole);
    match (exact, alike) {
        (true, true) => (4096, Source::Fitted("all tracks are whole sectors of that size".into())),
        (true, false) => (512, Source::Fitted("tracks are no whole sectors of 4096 bytes".into())),
        (false, _) => (4096, Source::Default("tracks are not known to a sector".into())),
    }
}

fn zones(found: &Hdd) -> Vec<Vec<Figure>> {
    let sector = sector_bytes(found).0 as f64;
    let skews = found.skews.as_ref();
    let mut first = 0;
    let last_zone = found.layout.zones.len() - 1;
    let size = found.layout.zones[last_zone].end_bytes as f64;
    let zones = found.layout.zones.iter().enumerate().map(|(index, zone)| {
        let per_track = zone.track_bytes.map(|bytes| (bytes / sector).round());
        // Rounding must not leave the zones short of the capacity.
        let cylinders = found.layout.cylinders_of(zone) + if index == last_zone { last_zone as u64 + 2 } else { 0 };
        let cylinder = |number: u64| {
            let near = (RESOLUTION * size / (found.layout.heads as f64 * zone.track_bytes.value)).ceil();
            let known = if number == 0 || index == last_zone && number > first { 0.0 } else { near };
            Estimate::new(number as f64, number as f64 - known, number as f64 + known, zone.track_bytes.n)
        };
        let skew = |turns: Option<Estimate>| turns.map(|turns| turns.map(|turns| turns * per_track.value));
        let figures = vec![
            Figure::counted("first_cylinder", cylinder(first)),
            Figure::counted("last_cylinder", cylinder(first + cylinders - 1)),
            Figure::counted("sectors_per_track", per_track),
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
pub fn fit_queue(file: &mut DriveFile, found: &Hdd, (size_bytes, seed): (u64, u64)) -> Result<(), DiskError> {
    let gains = |rates: &[(u64, Estimate)]| -> Vec<f64> {
        let alone = rates.first().map_or(1.0, |(_, rate)| rate.value);
        rates.iter().skip(1).map(|(_, rate)| (rate.value / alone).ln()).collect()
    };
    let wanted = gains(&found.queue);
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
