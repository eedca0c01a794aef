//! `dbdyno-disk fit`: a drive file from a drive, by timing requests.
//!
//! A [`bench::Bench`] answers requests: a device in real time, or a model in virtual time, which must give back what its
//! drive file says. The rest is the same for both: `rotation`, `tracks`, `zones`, `seek`, `local`, `cache` and `writes`
//! each ask for what they need and make estimates of it; `hdd` goes through them in order, `ssd` does so for a drive that
//! does not turn, and `hdd_file` and `ssd_file` make a drive file of the estimates. `trace` asks nothing: it makes a drive
//! file of what a trace shows.
//!
//! Cannot: defects and spare sectors inside a zone, a disk that answers most reads from a cache of flash.

mod args;
mod bench;
mod cache;
mod checks;
mod device_bench;
mod drive_file;
mod estimate;
mod hdd;
mod hdd_file;
mod host;
mod local;
mod model_bench;
mod outcome;
mod rotation;
mod seek;
mod ssd;
mod ssd_file;
#[cfg(test)]
mod tests;
mod trace;
mod tracks;
mod writes;
mod zones;

use std::io::Write;

use serde_json::{Value, json};

pub use args::FitArgs;

use self::bench::Bench;
use self::device_bench::DeviceBench;
use self::host::Lateness;
use self::model_bench::ModelBench;
use self::outcome::{Outcome, SIZE_BYTES_MIN, gb, name_file};
use self::rotation::{PROBE_BYTES, hit_ns, revolution};
use crate::error::DiskError;

/// In virtual time there is as much of it as is needed.
const MODEL_NS: u64 = 24 * 3_600_000_000_000;

/// Fits a drive and prints a line of JSON when a stage begins, and the result as the last one.
pub fn fit(args: &FitArgs) -> Result<(), DiskError> {
    if !args.trace.is_empty() {
        return line(&trace::fitted(args, &mut |stage| line(&json!({"stage": stage})))?.json());
    }
    let (mut bench, name, limit_ns) = opened(args)?;
    if bench.size_bytes() < SIZE_BYTES_MIN {
        return Err(DiskError::Usage(format!("{name} has {} bytes; 256 MiB are needed", bench.size_bytes())));
    }
    let mut late = args.on.is_some().then(Lateness::default);
    late.iter_mut().for_each(Lateness::look);
    let stage = &mut |stage: &str| line(&json!({"stage": stage}));
    let mut fitted = fitted(&mut *bench, &name, (limit_ns, args.seed), stage)?;
    if let Some(late) = &mut late {
        late.look();
        fitted.add_lateness(late);
    }
    line(&fitted.json())
}

fn opened(args: &FitArgs) -> Result<(Box<dyn Bench>, String, u64), DiskError> {
    if let Some(path) = &args.on {
        let bench = DeviceBench::open(path, args.write)?;
        return Ok((Box::new(bench), path.display().to_string(), args.seconds * 1_000_000_000));
    }
    let name = args.model.clone().unwrap_or_default();
    let drive = dbdyno_device::drive(&name, 0)?;
    if ["cloud", "ideal"].contains(&drive.kind) {
        let what = "is neither a hard disk nor a solid-state drive, which alone can be fitted";
        return Err(DiskError::Usage(format!("{name} {what}; write a drive file of kind [{}] by hand", drive.kind)));
    }
    let whole = drive.capacity_bytes / PROBE_BYTES * PROBE_BYTES;
    let size_bytes = args.size_bytes.unwrap_or(whole);
    let model = dbdyno_device::model(&name, size_bytes, args.seed)?;
    Ok((Box::new(ModelBench::new(model, size_bytes, args.write)), name, MODEL_NS))
}

/// The drive file and its figures, and what the model that it makes comes to beside the drive.
fn fitted(
    bench: &mut dyn Bench,
    name: &str,
    (limit_ns, seed): (u64, u64),
    say: hdd::Say,
) -> Result<Outcome, DiskError> {
    let size_bytes = bench.size_bytes();
    say("rotation")?;
    let none = || DiskError::Usage(format!("{name} answers no reads"));
    let hit = hit_ns(bench, PROBE_BYTES, seed)?.ok_or_else(none)?;
    let Some(turn) = revolution(bench, hdd::hit_limit_ns(hit), (limit_ns / 10, seed))? else {
        let found = ssd::ssd(bench, (limit_ns, seed), say)?;
        say("model")?;
        let mut file = ssd_file::file_of(&found, size_bytes);
        name_file(&mut file, format!("Solid-state drive fitted from {name}: {}", gb(size_bytes)));
        ssd_file::fit_build(&mut file, &found, (size_bytes, seed))?;
        let model = ssd_file::model_of(&file, size_bytes, found.writes.is_some(), seed)?;
        let checks = checks::of_ssd(&found, &model);
        let mut notes = Vec::new();
        if bench.is_said_to_turn() {
            notes.push(format!(
                "the kernel says that {name} turns, but response times show no revolution; it is taken for a solid-state \
                 drive. If it is a disk, measure again when nothing else runs, or give more --time"
            ));
        }
        notes.extend(host::uneven(&found.reads_ns));
        let shortest = found.read_latency.first().map_or(0.0, |(_, latency)| latency.value);
        let shortest = ("a read of 4 KiB", shortest);
        return Ok(Outcome {
            file,
            checks,
            elapsed_ns: bench.now_ns(),
            cut_short: vec![],
            notes,
            shortest,
            late: None,
        });
    };
    let found = hdd::hdd(bench, turn, hit, (limit_ns, seed), say)?;
    let found = found.ok_or_else(|| DiskError::Usage(no_tracks(name)))?;
    say("model")?;
    let mut file = hdd_file::file_of(&found, size_bytes);
    let rpm = 60e9 / found.revolution_ns.value;
    name_file(&mut file, format!("Hard disk fitted from {name}: {rpm:.0} rpm, {}", gb(size_bytes)));
    hdd_file::fit_queue(&mut file, &found, (size_bytes, seed))?;
    let model = hdd_file::model_queue(&file, size_bytes, seed)?;
    Ok(Outcome {
        checks: checks::of_hdd(&found, &model),
        elapsed_ns: bench.now_ns(),
        cut_short: found.cut_short,
        notes: vec![],
        shortest: ("a tenth of a revolution", found.revolution_ns.value / 10.0),
        late: None,
        file,
    })
}

fn no_tracks(name: &str) -> String {
    format!(
        "{name} turns, but its addresses show no tracks: answers come too late and too unevenly. Measure again when nothing \
         else runs on this host or uses the disk, or give more --time"
    )
}

fn line(value: &Value) -> Result<(), DiskError> {
    let announce = |source| DiskError::Announce { source };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}").map_err(announce)?;
    out.flush().map_err(announce)
}
