//! A drive file from a trace whose requests say how long they took.
//!
//! `requests` reads it and counts how many were outstanding; `disk` and `flash` look for what single requests show,
//! `disk_file` and `flash` make the drive file. What only many outstanding requests show is
//! fitted: the trace is played on the model (`replay`), and latencies by kind, size and depth (`profile`) are compared.
//!
//! Cannot: tracks, skews and zones of a disk, how large a write cache or a buffer is, garbage collection, changes of the
//! drive's state over the trace, times before a request was issued where the format tells of no other.

mod disk;
mod disk_file;
mod flash;
mod profile;
mod replay;
mod requests;
#[cfg(test)]
mod tests;

use dbdyno_blk::trace::Format;
use serde_json::Value;

use self::profile::Profile;
use self::requests::{Request, Requests};
use super::drive_file::{DriveFile, Figure, Source};
use super::hdd::Say;
use super::outcome::{Outcome, SIZE_BYTES_MIN, gb, name_file};
use crate::error::DiskError;
use crate::fit::args::FitArgs;

/// So many requests are played on each of the models that are compared, and on the one that is found.
const COMPARED: usize = 20_000;
const CHECKED: usize = 200_000;
/// What counts as outstanding together.
const DEEP: u32 = 4;

/// The drive file of a trace and its figures, and what its model makes of the same requests.
pub fn fitted(args: &FitArgs, say: Say) -> Result<Outcome, DiskError> {
    say("trace")?;
    let format = args.format.as_deref().map(|name| Format::by_name(name).ok_or_else(|| unknown(name))).transpose()?;
    let requests = requests::read(&args.trace, format, args.size_bytes)?;
    let name = args.trace.first().map_or_else(String::new, |path| path.display().to_string());
    let found = of_requests(&requests, &name, (args.size_bytes, args.seed), say)?;
    Ok(Outcome {
        file: found.file,
        checks: found.checks,
        elapsed_ns: requests.all.iter().map(|request| request.done_ns).max().unwrap_or(0),
        cut_short: vec![],
        notes: vec![],
        shortest: ("nothing", f64::INFINITY),
        late: None,
    })
}

fn unknown(name: &str) -> DiskError {
    let names = Format::ALL.map(|(name, _)| name).join(", ");
    DiskError::Usage(format!("--format {name} is no format of a trace; there are {names}"))
}

/// A drive file, and how near its model comes.
struct Found {
    file: DriveFile,
    checks: Vec<Value>,
}

fn of_requests(
    requests: &Requests,
    name: &str,
    (size_bytes, seed): (Option<u64>, u64),
    say: Say,
) -> Result<Found, DiskError> {
    let capacity = capacity(requests, size_bytes);
    let bytes = size_bytes.unwrap_or_else(|| rounded(requests.end_bytes));
    let (all, with) = (requests.all.as_slice(), (bytes, seed));
    let compared = most_queued(all);
    let drive = profile::of_trace(compared);
    say("single requests")?;
    let mut file = if let Some(found) = disk::disk(all, requests.end_bytes) {
        let mut file = disk_file::file_of(&found, all, capacity, bytes);
        say("model")?;
        name_file(&mut file, format!("Hard disk fitted from the trace {name}: {}", gb(bytes)));
        disk_file::fit_queue(&mut file, compared, &drive, with)?;
        let flushed = flushed(all);
        disk_file::fit_flush(&mut file, flushed, &profile::of_trace(flushed), with)?;
        file
    } else {
        let none = || DiskError::Usage(format!("{name}: no single reads of one size, 20 at the least, show a drive"));
        let found = flash::flash(all).ok_or_else(none)?;
        let mut file = flash::file_of(&found, capacity);
        say("model")?;
        name_file(&mut file, format!("Solid-state drive fitted from the trace {name}: {}", gb(bytes)));
        flash::fit_build(&mut file, compared, &drive, with)?;
        flash::fit_read(&mut file, densest(all, |request| request.alone), &found, with)?;
        flash::fit_flush(&mut file, flushed(all), &found, with)?;
        file
    };
    file.notes.extend(requests.notes.iter().cloned());
    let checks = checks(&file, all, with)?;
    Ok(Found { file, checks })
}

fn checks(file: &DriveFile, all: &[Request], (bytes, seed): (u64, u64)) -> Result<Vec<Value>, DiskError> {
    let all = &all[..all.len().min(CHECKED)];
    let mut model = dbdyno_device::model_of_text(&file.text(), bytes, seed)?;
    let (drive, model): (Profile, Profile) = (profile::of_trace(all), profile::of_model(&mut *model, all));
    Ok(profile::checks(&drive, &model))
}

fn capacity(requests: &Requests, size_bytes: Option<u64>) -> Figure {
    let field = "capacity_bytes";
    match size_bytes {
        Some(bytes) => Figure { field: field.into(), text: bytes.to_string(), source: Source::Reported },
        None => Figure::default(
            field,
            &rounded(requests.end_bytes).to_string(),
            "the end of the farthest request; give --size if you know it",
        ),
    }
}

/// The least that can be fitted, or more in MiB.
fn rounded(bytes: u64) -> u64 {
    bytes.max(SIZE_BYTES_MIN).next_multiple_of(1 << 20)
}

/// Requests in a row with the most that were sent while others were outstanding.
fn most_queued(all: &[Request]) -> &[Request] {
    densest(all, |request| request.depth >= DEEP)
}

fn flushed(all: &[Request]) -> &[Request] {
    densest(all, |request| request.kind == dbdyno_device::Kind::Flush)
}

/// The first [`COMPARED`] requests in a row of which most are such.
fn densest(all: &[Request], is: impl Fn(&Request) -> bool) -> &[Request] {
    let (mut count, mut best, mut from) = (0_usize, 0_usize, 0_usize);
    for (index, request) in all.iter().enumerate() {
        count += usize::from(is(request));
        let first = (index + 1).saturating_sub(COMPARED);
        count -= usize::from(first > 0 && is(&all[first - 1]));
        if count > best {
            (best, from) = (count, first);
        }
    }
    &all[from..(from + COMPARED).min(all.len())]
}
