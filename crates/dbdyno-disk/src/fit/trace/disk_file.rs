//! The drive file of a disk that turns, from what a trace shows of it.

use std::fmt::Write;

use dbdyno_device::Kind;

use super::disk::{Disk, Turn};
use super::profile::{Class, Profile, error, of_model};
use super::requests::Request;
use crate::error::DiskError;
use crate::fit::drive_file::{DriveFile, Figure, Source, number};
use crate::fit::estimate::Estimate;

const HEADS: u64 = 4;
/// Where a trace shows no others: what lies between two tracks, and between two cylinders.
const TRACK_SKEW_MS: f64 = 0.6;
const CYLINDER_SKEW_MS: f64 = 0.8;
const MEDIA_MB_S: f64 = 150.0;
const NO_LAYOUT: &str = "a trace does not show how tracks lie";
const HIDDEN: &str = "no response time shows it";
/// Speeds that disks have, revolutions a minute.
const USUAL_RPM: [f64; 7] = [4200.0, 5400.0, 5900.0, 7200.0, 10_000.0, 10_520.0, 15_000.0];
/// Where no seek shows: parts of the stroke, and ms.
const USUAL_SEEKS: [(f64, f64); 4] = [(0.0, 1.0), (0.05, 4.0), (0.33, 8.5), (1.0, 15.0)];
/// How often FLUSH must have been sent, and how many requests outstanding together.
const FLUSHES_MIN: usize = 10;
const DEEP: u32 = 4;

/// All of the drive file but what only running the model shows.
pub fn file_of(found: &Disk, requests: &[Request], capacity: Figure, size_bytes: u64) -> DriveFile {
    let mut figures = vec![capacity, sector_bytes(requests), rpm(found)];
    figures.extend(layout(found));
    figures.push(seek_table(found, size_bytes));
    figures.extend(times(found));
    figures.extend(cache(found));
    DriveFile { sections: vec![("[hdd]".to_owned(), figures)], ..DriveFile::default() }
}

fn sector_bytes(requests: &[Request]) -> Figure {
    let odd = requests.iter().filter(|request| (request.offset_bytes | request.bytes) % 4096 > 0).count();
    let fitted = |how: String| Source::Fitted(how);
    let (text, source) = match odd {
        0 => ("4096", fitted("all requests are whole sectors of that size".into())),
        odd => ("512", fitted(format!("{odd} requests are no whole sectors of 4096 bytes"))),
    };
    Figure { field: "sector_bytes".into(), text: text.into(), source }
}

fn rpm(found: &Disk) -> Figure {
    match found.turn {
        Turn::Repeated(turn) => Figure::measured("rpm", turn.map(|ns| 60e9 / ns)),
        Turn::Spread(turn) => {
            let rpm = 60e9 / turn.value;
            let near = |usual: &f64| (usual / rpm).ln().abs();
            let usual = USUAL_RPM.into_iter().min_by(|one, other| near(one).total_cmp(&near(other))).unwrap_or(rpm);
            let (low, high) = (turn.low / 1e6, turn.high / 1e6);
            let how = format!("the usual speed nearest to how far latencies spread, {low:.2} to {high:.2} ms");
            Figure { field: "rpm".into(), text: number(usual), source: Source::Fitted(how) }
        }
    }
}

/// The revolution that the drive file says, ms.
fn turn_ms(found: &Disk) -> f64 {
    60e3 / rpm(found).text.parse::<f64>().unwrap_or(7200.0)
}

/// What a revolution and the change of track after it take, for a revolution.
fn with_skews(found: &Disk) -> f64 {
    let skew_ms = ((HEADS - 1) as f64 * TRACK_SKEW_MS + CYLINDER_SKEW_MS) / HEADS as f64;
    1.0 + skew_ms / turn_ms(found)
}

/// Rates within a track at the beginning and at the end, MB/s.
fn media(found: &Disk) -> [Option<Estimate>; 2] {
    let longer = with_skews(found);
    [found.rates.0, found.rates.1].map(|rate| rate.map(|rate| rate.map(|rate| rate * longer / 1e6)))
}

fn layout(found: &Disk) -> Vec<Figure> {
    let (assumed, unseen) = (number(MEDIA_MB_S), "no sequential reads kept the drive busy");
    let [outer, inner] = media(found);
    vec![
        Figure::default("heads", &HEADS.to_string(), NO_LAYOUT),
        Figure::default("zones", if found.rates.0 == found.rates.1 { "1" } else { "16" }, NO_LAYOUT),
        Figure::or("outer_mb_s", outer, &assumed, unseen),
        Figure::or("inner_mb_s", inner, &assumed, unseen),
        Figure::default("head_switch_ms", "0.5", NO_LAYOUT),
        Figure::default("track_skew_ms", &number(TRACK_SKEW_MS), NO_LAYOUT),
        Figure::default("cylinder_skew_ms", &number(CYLINDER_SKEW_MS), NO_LAYOUT),
    ]
}

/// Bytes of a cylinder, all heads together, of the layout that the drive file has.
fn cylinder_bytes(found: &Disk) -> f64 {
    let [outer, inner] = media(found).map(|rate| rate.map_or(MEDIA_MB_S, |rate| rate.value));
    HEADS as f64 * f64::midpoint(outer, inner) * turn_ms(found) * 1e3
}

/// Rows of cylinders and ms, rising.
fn seek_table(found: &Disk, size_bytes: u64) -> Figure {
    let field = "seek_table".to_owned();
    let cylinder = cylinder_bytes(found);
    if found.reaches.is_empty() {
        let stroke = size_bytes as f64 / cylinder;
        let row = |(part, ms): (f64, f64)| format!("[{}, {}]", (part * stroke).round().max(1.0), number(ms));
        let text = format!("[{}]", USUAL_SEEKS.map(row).join(", "));
        return Figure { field, text, source: Source::Default("too few single reads at known distances".into()) };
    }
    let (mut text, mut longest, mut widest, mut n, mut before) = (String::from("[\n"), 0.0, 0.0_f64, usize::MAX, 0);
    for reach in &found.reaches {
        let cylinders = (reach.bytes / cylinder).round().max(1.0) as u64;
        if cylinders <= before {
            continue;
        }
        before = cylinders;
        let ms = reach.ns.map(|ns| (ns / 1e6).max(0.0));
        longest = ms.value;
        (widest, n) = (widest.max((ms.high - ms.low) / 2.0), n.min(ms.n));
        let (low, high) = (number(ms.low), number(ms.high));
        let _ = writeln!(text, "  [{cylinders}, {}], # {low} to {high}, n = {}", number(longest), ms.n);
    }
    let source = Source::Measured(Estimate::new(longest, longest - widest, longest + widest, n));
    Figure { field, text: text + "]", source }
}

fn times(found: &Disk) -> Vec<Figure> {
    let no_hits = "no single request was answered by a cache";
    let overhead = found.overhead.map(|ns| ns.map(|ns| ns / 1e6));
    let interface = found.interface.map(|rate| rate.map(|rate| rate / 1e6));
    let one_size = "no requests of two sizes were answered by a cache";
    let alone = "no requests were outstanding together";
    vec![
        Figure::default("write_settle_ms", "0.5", "writes at known distances were not compared with reads"),
        Figure::or("overhead_ms", overhead, "0.1", no_hits),
        Figure::default("choose_ms", "0.0", "contained in the seek times"),
        Figure::or("interface_mb_s", interface, "550.0", one_size),
        Figure::default("queue_depth", "32", alone),
        Figure::default("age_weight", "0.05", alone),
        Figure::default("age_limit_ms", "2000.0", HIDDEN),
    ]
}

fn cache(found: &Disk) -> Vec<Figure> {
    let [first, later] = found.ahead;
    vec![
        write_cache(found),
        Figure::default("destage_window", "64", HIDDEN),
        Figure::default("destage_handicap_ms", "5.0", HIDDEN),
        Figure::default("flush_ms", "4.0", "too few FLUSHes"),
        Figure::default("read_segments", "16", "reads are not repeated on purpose"),
        Figure::default("read_segment_bytes", "524288", "reads are not repeated on purpose"),
        read_ahead(first, later),
    ]
}

fn write_cache(found: &Disk) -> Figure {
    let field = "write_cache_bytes";
    let Some((taken, ns)) = found.write_cache else {
        return Figure::default(field, "33554432", "too few single writes");
    };
    let ms = ns.value / 1e6;
    if taken {
        let why = format!("single writes take {ms:.3} ms, so there is a cache; how large it is does not show");
        return Figure::default(field, "33554432", &why);
    }
    let source = Source::Fitted(format!("single writes take {ms:.3} ms, as those to the medium do"));
    Figure { field: field.into(), text: "0".into(), source }
}

fn read_ahead(first: (usize, usize), later: (usize, usize)) -> Figure {
    const READS_MIN: usize = 10;
    let most = |(hits, all): (usize, usize)| all >= READS_MIN && hits * 2 > all;
    let (word, (hits, all), what) = if most(first) {
        ("always", first, "reads that continue a single one")
    } else if most(later) {
        ("sequential", later, "reads that continue two")
    } else if first.1 >= READS_MIN {
        ("never", first, "reads that continue one")
    } else {
        return Figure::default("read_ahead", "\"always\"", "too few reads continue one after a pause");
    };
    let source = Source::Fitted(format!("{hits} of {all} {what} were in the cache"));
    Figure { field: "read_ahead".into(), text: format!("\"{word}\""), source }
}

fn model_profile(file: &DriveFile, requests: &[Request], (size_bytes, seed): (u64, u64)) -> Result<Profile, DiskError> {
    let mut model = dbdyno_device::model_of_text(&file.text(), size_bytes, seed)?;
    Ok(of_model(&mut *model, requests))
}

/// Plays the trace on the model with several depths and weights of its queue, and takes those whose latencies of queued
/// reads are nearest.
pub fn fit_queue(
    file: &mut DriveFile,
    requests: &[Request],
    drive: &Profile,
    size_and_seed: (u64, u64),
) -> Result<(), DiskError> {
    let queued = |class: Class| class.is_read() && class.depth >= DEEP;
    if !drive.keys().any(|class| queued(*class)) {
        return Ok(());
    }
    let mut best: Option<(f64, u64, f64)> = None;
    for depth in [1, 4, 8, 16, 32, 64] {
        for weight in [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5] {
            let mut tried = file.clone();
            tried.set("queue_depth", &depth.to_string(), &Source::Reported);
            tried.set("age_weight", &number(weight), &Source::Reported);
            let off = error(drive, &model_profile(&tried, requests, size_and_seed)?, Class::is_read);
            if best.is_none_or(|(least, ..)| off < least) {
                best = Some((off, depth, weight));
            }
            if depth == 1 {
                break;
            }
        }
    }
    if let Some((off, depth, weight)) = best {
        let how = Source::Fitted(format!("latencies of reads by depth, {:.1} % off", off * 100.0));
        file.set("queue_depth", &depth.to_string(), &how);
        file.set("age_weight", &number(weight), &how);
    }
    Ok(())
}

/// FLUSH takes what the model's writing out of the cache does not explain: its mean rises evenly with `flush_ms`.
pub fn fit_flush(
    file: &mut DriveFile,
    requests: &[Request],
    drive: &Profile,
    size_and_seed: (u64, u64),
) -> Result<(), DiskError> {
    const TRIED_MS: f64 = 8.0;
    let count = requests.iter().filter(|request| request.kind == Kind::Flush).count();
    let mean = |profile: &Profile| {
        let flushes = profile.iter().filter(|(class, _)| class.is_flush());
        flushes.max_by_key(|(_, found)| found.mean.n).map(|(_, found)| found.mean)
    };
    let Some(wanted) = mean(drive).filter(|_| count >= FLUSHES_MIN) else { return Ok(()) };
    let mut with = |ms: f64| -> Result<f64, DiskError> {
        file.set("flush_ms", &number(ms), &Source::Reported);
        Ok(mean(&model_profile(file, requests, size_and_seed)?).map_or(0.0, |found| found.value))
    };
    let (none, more) = (with(0.0)?, with(TRIED_MS)?);
    let slope = (more - none) / TRIED_MS;
    if slope < 1e3 {
        file.set("flush_ms", "4.0", &Source::Default("the model's FLUSHes have nothing to write".into()));
        return Ok(());
    }
    let ms = wanted.map(|ns| ((ns - none) / slope).max(0.0));
    file.set("flush_ms", &number(ms.value), &Source::Measured(ms));
    Ok(())
}
