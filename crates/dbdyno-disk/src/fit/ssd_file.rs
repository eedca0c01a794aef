//! The drive file of a solid-state drive, from what was found of it.

use super::bench::Bench;
use super::drive_file::{DriveFile, Figure, Source, number};
use super::estimate::Estimate;
use super::model_bench::ModelBench;
use super::rotation::PROBE_BYTES;
use super::ssd::{DEPTHS, SIZES, Ssd, groups, latencies, rates, ssd};
use crate::error::DiskError;

const READ_ONLY: &str = "only writes show it, and the device was only read";
const HIDDEN: &str = "no response time shows it by itself";
/// Where nothing shows how the flash is built: eight channels, two planes of 16 KiB pages.
pub const CHANNELS: u64 = 8;
const PLANES_BYTES: u64 = 32_768;
const PROGRAM_US: f64 = 500.0;
/// In virtual time.
const MODEL_NS: u64 = 3_600_000_000_000;

/// How the flash is built, as far as rates and latencies show it: dies of a channel, whether planes read by themselves,
/// and how many pages of a plane lie one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    pub dies: u64,
    pub apart: bool,
    pub pages: u64,
}

const SIMPLEST: Build = Build { dies: 1, apart: true, pages: 1 };

impl Build {
    pub fn all() -> impl Iterator<Item = Self> {
        let dies = [1, 2, 4, 8].into_iter();
        dies.flat_map(|dies| [false, true].map(|apart| (dies, apart)))
            .flat_map(|(dies, apart)| [1, 2, 3].map(|pages| Self { dies, apart, pages }))
    }

    /// A die's block of 512 programs.
    pub fn block_bytes(self) -> u64 {
        PLANES_BYTES * self.pages * 512
    }

    /// What all dies program at once.
    fn bytes_at_once(self) -> u64 {
        CHANNELS * self.dies * PLANES_BYTES * self.pages
    }
}

/// What follows from the latencies.
struct Parts {
    link: Estimate,
    link_ns: f64,
    channel: Option<Estimate>,
    firmware_ns: f64,
    /// What a read takes beside the flash: firmware, channel and link.
    beside_flash_ns: f64,
    read_us: Vec<f64>,
}

fn parts(found: &Ssd) -> Parts {
    let link = found.sequential_read.map(|rate| rate / 1e6);
    let ns_a_byte = 1e3 / link.value.max(1e-3);
    let link_ns = PROBE_BYTES as f64 * ns_a_byte;
    let latency = |bytes: u64| found.read_latency.iter().find(|(size, _)| *size == bytes).map(|(_, latency)| *latency);
    let small = latency(4096).unwrap_or(Estimate::new(1e5, 1e5, 1e5, 0));
    let channel = latency(16_384).and_then(|large| {
        let apart = large.map(|ns| (ns - small.value) / 12_288.0 - ns_a_byte);
        (apart.low > 0.0).then(|| apart.map(|ns| 1e3 / ns))
    });
    let channel_ns = PROBE_BYTES as f64 * 1e3 / channel.map_or(800.0, |channel| channel.value);
    let buffered = found.writes.as_ref().and_then(|writes| writes.buffered_read);
    let quick = buffered.filter(|buffered| buffered.value < 0.9 * small.value);
    let firmware_ns = quick.map_or((0.3 * small.value).min(20e3), |buffered| (buffered.value - link_ns).max(0.0));
    let beside_flash_ns = firmware_ns + link_ns + channel_ns;
    let rest = |ns: f64| ((ns - beside_flash_ns) / 1e3).max(1.0);
    Parts {
        link,
        link_ns,
        channel,
        firmware_ns,
        beside_flash_ns,
        read_us: groups(&found.reads_ns).into_iter().map(rest).collect(),
    }
}

/// All of the drive file but what only running the model shows.
pub fn file_of(found: &Ssd, size_bytes: u64) -> DriveFile {
    let parts = parts(found);
    let sections = [
        ("[ssd]", general(found, &parts, size_bytes)),
        ("[ssd.flash]", flash(found, &parts)),
        (
            "[ssd.ftl]",
            vec![Figure::default("over_provisioning", "0.07", "it shows after the drive has been written over")],
        ),
    ];
    DriveFile {
        sections: sections.into_iter().map(|(name, figures)| (name.to_owned(), figures)).collect(),
        ..DriveFile::default()
    }
}

fn general(found: &Ssd, parts: &Parts, size_bytes: u64) -> Vec<Figure> {
    let writes = found.writes.as_ref();
    let us = |estimate: Estimate, less_ns: f64| estimate.map(|ns| ((ns - less_ns) / 1e3).max(0.0));
    let figure = |field: &str, text: String, source| Figure { field: field.into(), text, source };
    let (best, saturated) = best_rate(found);
    let command = best.map(|rate| rate.map(|rate| 1e6 / rate));
    let protected = writes.and_then(|writes| Some(writes.flush?.value < 1.3 * writes.idle_flush?.value + 5e3));
    let flush = writes.and_then(|writes| Some(us(writes.flush?, program_us(found, SIMPLEST).unwrap_or(0.0) * 1e3)));
    let shown = "the rate still grows at the greatest depth";
    let (firmware_us, sum) = (parts.firmware_ns / 1e3, "only its sum with the time of the flash was measured");
    let buffered = writes.and_then(|writes| writes.buffered_read).map(|buffered| us(buffered, parts.link_ns));
    let buffered = buffered.filter(|buffered| (buffered.value - firmware_us).abs() < 1e-6);
    vec![
        figure("capacity_bytes", size_bytes.to_string(), Source::Reported),
        Figure::default("queue_depth", if saturated { "32" } else { "1024" }, HIDDEN),
        Figure::default("flush_is_a_barrier", "false", "no other requests were in flight beside a FLUSH"),
        match protected {
            Some(yes) => figure(
                "power_loss_protected",
                yes.to_string(),
                Source::Fitted("whether FLUSH after a write takes longer than without".into()),
            ),
            None => Figure::default("power_loss_protected", "false", READ_ONLY),
        },
        Figure::or("flush_us", flush, "500.0", READ_ONLY),
        Figure::measured("link_mb_s", parts.link),
        Figure::or("read_firmware_us", buffered, &number(firmware_us), sum),
        Figure::or(
            "write_firmware_us",
            writes.and_then(|writes| writes.write_latency).map(|latency| us(latency, parts.link_ns)),
            "20.0",
            READ_ONLY,
        ),
        Figure::or(
            "read_command_us",
            command.filter(|_| saturated),
            &number(command.map_or(1.0, |us| us.value / 2.0)),
            shown,
        ),
        Figure::or("write_command_us", writes.map(|writes| writes.write_rate.map(|rate| 1e6 / rate)), "5.0", READ_ONLY),
        Figure::or_counted(
            "buffer_bytes",
            writes.and_then(|writes| writes.buffer_bytes).map(|bytes| bytes.map(|bytes| bytes.max(1_048_576.0))),
            "16777216",
            if writes.is_some() { "no write had to wait" } else { READ_ONLY },
        ),
    ]
}

/// The most requests a second, and whether more depth brings no more.
fn best_rate(found: &Ssd) -> (Option<Estimate>, bool) {
    let rates: Vec<Estimate> = found.read_rate.iter().map(|(_, rate)| *rate).collect();
    let best = rates.iter().copied().max_by(|one, other| one.value.total_cmp(&other.value));
    let saturated = rates.len() >= 2 && rates[rates.len() - 1].value < 1.1 * rates[rates.len() - 2].value;
    (best, saturated)
}

/// The time of a program with which the dies write at the drive's rate, or else less than that of a FLUSH.
fn program_us(found: &Ssd, build: Build) -> Option<f64> {
    let writes = found.writes.as_ref()?;
    let taken_in = writes.after_full.map(|after| build.bytes_at_once() as f64 * 1e6 / after.value);
    taken_in.or_else(|| Some((0.8 * writes.flush?.value / 1e3).min(PROGRAM_US)))
}

fn flash(found: &Ssd, parts: &Parts) -> Vec<Figure> {
    let n = found.reads_ns.len();
    let times: Vec<String> = parts.read_us.iter().map(|us| number(*us)).collect();
    // Of several times what is known is how far their mean may be off.
    let alone = parts.read_us.len() == 1;
    let middle = if alone { Estimate::median(&found.reads_ns) } else { Estimate::mean(&found.reads_ns) };
    let of_read = middle.unwrap_or(Estimate::new(0.0, 0.0, 0.0, 0)).map(|ns| (ns - parts.beside_flash_ns) / 1e3);
    let unseen = "no response time shows how the flash is built";
    let program = program_us(found, SIMPLEST).map_or(number(PROGRAM_US), number);
    let why = if found.writes.is_some() { "the assumed dies program at the measured rate" } else { READ_ONLY };
    vec![
        Figure::default("channels", &CHANNELS.to_string(), unseen),
        Figure::default("dies_per_channel", "1", "not fitted"),
        Figure::or("channel_mb_s", parts.channel, "800.0", "reads of 16 KiB take no longer than their transfer"),
        Figure::default("planes", "2", unseen),
        Figure::default("planes_read_apart", "true", "not fitted"),
        Figure::default("page_bytes", "16384", unseen),
        Figure::default("pages_per_program", "1", "not fitted"),
        Figure {
            field: "read_us".into(),
            text: format!("[{}]", times.join(", ")),
            source: Source::Measured(Estimate { n, ..of_read }),
        },
        Figure::default("program_us", &format!("[{program}]"), why),
        Figure::default("block_bytes", "16777216", unseen),
        Figure::default("erase_us", "3500.0", HIDDEN),
        Figure::default("suspends_max", "4", HIDDEN),
        Figure::default("suspend_us", "20.0", HIDDEN),
        Figure::default("reads_before_program", "16", HIDDEN),
    ]
}

/// Runs the model with the flash built in several ways, and takes the one whose rates by depth and latencies by size are
/// nearest.
pub fn fit_build(file: &mut DriveFile, found: &Ssd, (size_bytes, seed): (u64, u64)) -> Result<(), DiskError> {
    let mut best: Option<(f64, Build)> = None;
    // A flushed write takes a program at the least.
    let flush_us =
        found.writes.as_ref().and_then(|writes| writes.flush).map_or(f64::INFINITY, |flush| flush.value / 1e3);
    let may = |build: &Build| program_us(found, *build).is_none_or(|us| us * 1.1 < flush_us);
    for build in Build::all().filter(may).chain([SIMPLEST]) {
        let mut tried = file.clone();
        set_build(&mut tried, found, build, &Source::Reported);
        let model = dbdyno_device::model_of_text(&tried.text(), size_bytes, seed)?;
        let error = error_of(found, &mut ModelBench::new(model, size_bytes, false), seed)?;
        if best.is_none_or(|(least, _)| error < 0.99 * least) {
            best = Some((error, build));
        }
    }
    if let Some((error, build)) = best {
        let off = (error / (DEPTHS.len() + SIZES.len()) as f64).sqrt() * 100.0;
        let how = format!("reads a second by depth and latencies by size, {off:.1} % off");
        set_build(file, found, build, &Source::Fitted(how));
    }
    fit_flush(file, found, (size_bytes, seed))
}

/// Takes off FLUSH what the model does beside it, such as the transfer to the dies.
fn fit_flush(file: &mut DriveFile, found: &Ssd, (size_bytes, seed): (u64, u64)) -> Result<(), DiskError> {
    let flush = |found: &Ssd| found.writes.as_ref().and_then(|writes| writes.flush);
    let Some(drive) = flush(found) else { return Ok(()) };
    let set = |file: &mut DriveFile, less_ns: f64| {
        let us = drive.map(|ns| ((ns - less_ns) / 1e3).max(0.0));
        file.set("flush_us", &number(us.value), &Source::Measured(us));
    };
    set(file, drive.value);
    let beside = flush(&model_of(file, size_bytes, true, seed)?).map_or(0.0, |flush| flush.value);
    set(file, beside);
    Ok(())
}

/// How far a model is off, as the sum of squares of logarithms.
fn error_of(found: &Ssd, model: &mut dyn Bench, seed: u64) -> Result<f64, DiskError> {
    let square =
        |((_, drive), (_, model)): (&(u64, Estimate), &(u64, Estimate))| (drive.value / model.value).ln().powi(2);
    let (sizes, _) = latencies(model, MODEL_NS, seed)?;
    let depths = rates(model, (MODEL_NS, seed), 1)?;
    let pairs = found.read_latency.iter().zip(&sizes).chain(found.read_rate.iter().zip(&depths));
    Ok(pairs.map(square).sum())
}

fn set_build(file: &mut DriveFile, found: &Ssd, build: Build, source: &Source) {
    file.set("dies_per_channel", &build.dies.to_string(), source);
    file.set("planes_read_apart", &build.apart.to_string(), source);
    file.set("pages_per_program", &build.pages.to_string(), source);
    file.set("block_bytes", &build.block_bytes().to_string(), &Source::Default("512 programs".into()));
    if let (Some(us), Some(writes)) = (program_us(found, build), &found.writes) {
        let how = if writes.after_full.is_some() { "the rate of long writes" } else { "less than a FLUSH" };
        file.set("program_us", &format!("[{}]", number(us)), &Source::Fitted(how.into()));
    }
}

/// The same questions to the model that a drive file makes.
pub fn model_of(file: &DriveFile, size_bytes: u64, writes: bool, seed: u64) -> Result<Ssd, DiskError> {
    let model = dbdyno_device::model_of_text(&file.text(), size_bytes, seed)?;
    ssd(&mut ModelBench::new(model, size_bytes, writes), (MODEL_NS, seed), &mut |_| Ok(()))
}
