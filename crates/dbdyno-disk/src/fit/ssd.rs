//! The parameters of a solid-state drive and its drive file: latency by size, requests a second by depth, the link,
//! and, if it may be written, the write buffer and FLUSH (the questions of Bouganim, Jónsson and Bonnet, "uFLIP", CIDR
//! 2009).

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::{Bench, Load, ModelBench};
use super::drive_file::{DriveFile, Estimate, Figure, Source, number};
use super::hdd::Say;
use super::rotation::{PROBE_BYTES, random_place};
use crate::error::DiskError;

pub const SIZES: [u64; 7] = [4096, 8192, 16_384, 32_768, 65_536, 131_072, 1 << 20];
pub const DEPTHS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
const LARGE_BYTES: u64 = 128 << 10;
const SAMPLES: u64 = 200;
const ROUNDS: u64 = 3;
/// What is written to see the buffer fill: twice the largest there may be.
const BURST_BYTES: u64 = 256 << 20;
const WINDOW: usize = 8;

/// Bytes of a request, and its latency.
pub type BySize = Vec<(u64, Estimate)>;

/// Everything that was found; latencies in ns, rates in requests or bytes a second.
#[derive(Debug)]
pub struct Ssd {
    /// By size, one at a time.
    pub read_latency: BySize,
    /// Of 4 KiB, one at a time: all.
    pub reads_ns: Vec<f64>,
    pub read_rate: Vec<(u64, Estimate)>,
    pub sequential_read: Estimate,
    pub writes: Option<SsdWrites>,
}

/// What only writes show.
#[derive(Debug)]
pub struct SsdWrites {
    pub write_latency: Option<Estimate>,
    /// A read of what is in the write buffer.
    pub buffered_read: Option<Estimate>,
    pub write_rate: Estimate,
    /// Bytes a second once the buffer is full, and what it holds.
    pub after_full: Option<Estimate>,
    pub buffer_bytes: Option<Estimate>,
    pub flush: Option<Estimate>,
    /// Of a drive that has nothing to flush.
    pub idle_flush: Option<Estimate>,
}

/// Looks at a drive that does not turn.
pub fn ssd(bench: &mut dyn Bench, (limit_ns, seed): (u64, u64), say: Say) -> Result<Ssd, DiskError> {
    say("latency by size")?;
    let (read_latency, reads_ns) = latencies(bench, limit_ns, seed)?;
    say("reads by depth")?;
    let read_rate = rates(bench, (limit_ns, seed), ROUNDS)?;
    let sequential_read = sequential(bench, limit_ns)?;
    let writes = if bench.may_write() {
        say("writes")?;
        Some(writes(bench, (limit_ns, seed))?)
    } else {
        None
    };
    Ok(Ssd { read_latency, reads_ns, read_rate, sequential_read, writes })
}

fn load(bench: &dyn Bench, kind: Kind, (bytes, depth): (u64, u64), requests: u64, limit_ns: u64, seed: u64) -> Load {
    let range = (0, bench.size_bytes());
    Load { kind, bytes, depth, sequential: false, range, requests, limit_ns: limit_ns / 40, seed }
}

/// Latencies by size, one at a time, and all those of 4 KiB.
pub fn latencies(bench: &mut dyn Bench, limit_ns: u64, seed: u64) -> Result<(BySize, Vec<f64>), DiskError> {
    let (mut read_latency, mut reads_ns) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        let latencies = bench.load(&load(bench, Kind::Read, (bytes, 1), SAMPLES * 2, limit_ns, seed))?.latencies_ns;
        read_latency.extend(Estimate::trimmed_mean(&latencies).map(|mean| (bytes, mean)));
        if bytes == PROBE_BYTES {
            reads_ns = latencies;
        }
    }
    Ok((read_latency, reads_ns))
}

/// Random reads of 4 KiB a second by depth.
pub fn rates(
    bench: &mut dyn Bench,
    (limit_ns, seed): (u64, u64),
    rounds: u64,
) -> Result<Vec<(u64, Estimate)>, DiskError> {
    let mut rates_by_depth = vec![Vec::new(); DEPTHS.len()];
    for round in 0..rounds {
        for (rates, depth) in rates_by_depth.iter_mut().zip(DEPTHS) {
            let load = load(bench, Kind::Read, (PROBE_BYTES, depth), 200 * depth.min(16), limit_ns / 2, seed ^ round);
            rates.push(bench.load(&load)?.rate());
        }
    }
    let all = DEPTHS.into_iter().zip(&rates_by_depth);
    Ok(all.filter_map(|(depth, rates)| Some((depth, Estimate::median(rates)?))).collect())
}

fn sequential(bench: &mut dyn Bench, limit_ns: u64) -> Result<Estimate, DiskError> {
    let mut rates = Vec::new();
    for round in 0..5 {
        let load = Load { sequential: true, ..load(bench, Kind::Read, (LARGE_BYTES, 32), 1600, limit_ns, round) };
        rates.push(bench.load(&load)?.rate() * LARGE_BYTES as f64);
    }
    Ok(Estimate::median(&rates).unwrap_or(Estimate::new(0.0, 0.0, 0.0, 0)))
}

fn writes(bench: &mut dyn Bench, (limit_ns, seed): (u64, u64)) -> Result<SsdWrites, DiskError> {
    let mut random = Random::new(seed);
    let (mut alone, mut buffered, mut flushes, mut idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SAMPLES / 2 {
        let place = random_place(bench.size_bytes(), PROBE_BYTES, &mut random);
        alone.push(bench.ask(Kind::Write, place, PROBE_BYTES)?.latency_ns());
        buffered.push(bench.ask(Kind::Read, place, PROBE_BYTES)?.latency_ns());
        flushes.push(bench.ask(Kind::Flush, 0, 0)?.latency_ns());
        idle.push(bench.ask(Kind::Flush, 0, 0)?.latency_ns());
    }
    let mut at_depth = Vec::new();
    for round in 0..ROUNDS + 2 {
        bench.ask(Kind::Flush, 0, 0)?;
        // Fewer than fill the smallest buffer.
        let load = load(bench, Kind::Write, (PROBE_BYTES, 32), 600, limit_ns, seed ^ round);
        at_depth.push(bench.load(&load)?.rate());
    }
    bench.ask(Kind::Flush, 0, 0)?;
    let (after_full, buffer_bytes) = buffer(bench, limit_ns)?;
    Ok(SsdWrites {
        write_latency: Estimate::median(&alone),
        buffered_read: Estimate::median(&buffered),
        write_rate: Estimate::median(&at_depth).unwrap_or(Estimate::new(0.0, 0.0, 0.0, 0)),
        after_full,
        buffer_bytes,
        flush: Estimate::median(&flushes),
        idle_flush: Estimate::median(&idle),
    })
}

/// Writes one after the other until they have to wait: the rate from then on, and how much was taken in beyond what
/// went to the flash meanwhile.
fn buffer(bench: &mut dyn Bench, limit_ns: u64) -> Result<(Option<Estimate>, Option<Estimate>), DiskError> {
    let bytes = LARGE_BYTES;
    let (mut latencies, until_ns) = (Vec::new(), bench.now_ns() + limit_ns / 4);
    let (room, began_ns) = (bench.size_bytes() / bytes, bench.now_ns());
    let mut ends = Vec::new();
    for index in 0..(BURST_BYTES / bytes).min(room) {
        let answer = bench.ask(Kind::Write, index * bytes, bytes)?;
        latencies.push(answer.latency_ns());
        ends.push((answer.done_ns - began_ns) as f64);
        if bench.now_ns() > until_ns {
            break;
        }
    }
    bench.ask(Kind::Flush, 0, 0)?;
    let usual = Estimate::median(&latencies[..latencies.len().min(WINDOW)]).map_or(1.0, |usual| usual.value);
    let before = bytes as f64 * 1e9 / usual;
    let later = &latencies[latencies.len() / 2..];
    let windows: Vec<f64> = later
        .chunks_exact(latencies.len().div_ceil(16).max(WINDOW))
        .map(|window| window.len() as f64 * bytes as f64 * 1e9 / window.iter().sum::<f64>())
        .collect();
    let after = Estimate::median(&windows);
    let Some(slower) = after.filter(|after| after.value < 0.8 * before) else { return Ok((None, None)) };
    // The straight lines of the beginning and of the end cross where the buffer was full.
    let (last_ns, all) = (ends[ends.len() - 1], ends.len() as f64 * bytes as f64);
    let buffer_bytes = |rate: f64| (all - rate * last_ns / 1e9).max(0.0);
    Ok((after, Some(slower.map(buffer_bytes))))
}

/// The medians of latencies that lie in up to three groups apart; one where they don't.
fn groups(latencies: &[f64]) -> Vec<f64> {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let all = || Estimate::median(&sorted).map(|all| all.value).into_iter().collect();
    if n < 30 {
        return all();
    }
    // What stands in a queue behind another read is no group of its own.
    let kept = &sorted[..n * 97 / 100];
    let spread = kept[kept.len() - 1] - kept[0];
    let edge = |at: &usize| kept[*at] - kept[at - 1] > 0.15 * spread && kept[*at] - kept[at - 1] > 0.03 * kept[*at];
    let mut cuts: Vec<usize> = (1..kept.len()).filter(edge).collect();
    cuts.insert(0, 0);
    cuts.push(kept.len());
    let parts: Vec<&[f64]> = cuts.windows(2).map(|pair| &kept[pair[0]..pair[1]]).collect();
    if parts.len() > 3 || parts.iter().any(|part| part.len() * 6 < kept.len()) {
        return all();
    }
    parts.iter().filter_map(|part| Estimate::median(part)).map(|part| part.value).collect()
}

const READ_ONLY: &str = "only writes show it, and the device was only read";
const HIDDEN: &str = "no response time shows it by itself";
/// Where nothing shows how the flash is built: eight channels, two planes of 16 KiB pages.
const CHANNELS: u64 = 8;
const PLANES_BYTES: u64 = 32_768;
const PROGRAM_US: f64 = 500.0;
/// In virtual time.
const MODEL_NS: u64 = 3_600_000_000_000;

/// How the flash is built, as far as rates and latencies show it: dies of a channel, whether planes read by themselves,
/// and how many pages of a plane lie one after the other.
#[derive(Debug, Clone, Copy)]
struct Build {
    dies: u64,
    apart: bool,
    pages: u64,
}

const SIMPLEST: Build = Build { dies: 1, apart: true, pages: 1 };

impl Build {
    fn all() -> impl Iterator<Item = Self> {
        let dies = [1, 2, 4, 8].into_iter();
        dies.flat_map(|dies| [false, true].map(|apart| (dies, apart)))
            .flat_map(|(dies, apart)| [1, 2, 3].map(|pages| Self { dies, apart, pages }))
    }

    /// A die's block of 512 programs.
    fn block_bytes(self) -> u64 {
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

fn parts(ssd: &Ssd) -> Parts {
    let link = ssd.sequential_read.map(|rate| rate / 1e6);
    let ns_a_byte = 1e3 / link.value.max(1e-3);
    let link_ns = PROBE_BYTES as f64 * ns_a_byte;
    let latency = |bytes: u64| ssd.read_latency.iter().find(|(size, _)| *size == bytes).map(|(_, latency)| *latency);
    let small = latency(4096).unwrap_or(Estimate::new(1e5, 1e5, 1e5, 0));
    let channel = latency(16_384).and_then(|large| {
        let apart = large.map(|ns| (ns - small.value) / 12_288.0 - ns_a_byte);
        (apart.low > 0.0).then(|| apart.map(|ns| 1e3 / ns))
    });
    let channel_ns = PROBE_BYTES as f64 * 1e3 / channel.map_or(800.0, |channel| channel.value);
    let buffered = ssd.writes.as_ref().and_then(|writes| writes.buffered_read);
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
        read_us: groups(&ssd.reads_ns).into_iter().map(rest).collect(),
    }
}

/// All of the drive file but what only running the model shows.
pub fn file_of(ssd: &Ssd, size_bytes: u64) -> DriveFile {
    let parts = parts(ssd);
    let sections = [
        ("[ssd]", general(ssd, &parts, size_bytes)),
        ("[ssd.flash]", flash(ssd, &parts)),
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

fn general(ssd: &Ssd, parts: &Parts, size_bytes: u64) -> Vec<Figure> {
    let writes = ssd.writes.as_ref();
    let us = |estimate: Estimate, less_ns: f64| estimate.map(|ns| ((ns - less_ns) / 1e3).max(0.0));
    let figure = |field: &str, text: String, source| Figure { field: field.into(), text, source };
    let (best, saturated) = best_rate(ssd);
    let command = best.map(|rate| rate.map(|rate| 1e6 / rate));
    let protected = writes.and_then(|writes| Some(writes.flush?.value < 1.3 * writes.idle_flush?.value + 5e3));
    let flush = writes.and_then(|writes| Some(us(writes.flush?, program_us(ssd, SIMPLEST).unwrap_or(0.0) * 1e3)));
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
        Figure::or_whole(
            "buffer_bytes",
            writes.and_then(|writes| writes.buffer_bytes).map(|bytes| bytes.map(|bytes| bytes.max(1_048_576.0))),
            "16777216",
            if writes.is_some() { "no write had to wait" } else { READ_ONLY },
        ),
    ]
}

/// The most requests a second, and whether more depth brings no more.
fn best_rate(ssd: &Ssd) -> (Option<Estimate>, bool) {
    let rates: Vec<Estimate> = ssd.read_rate.iter().map(|(_, rate)| *rate).collect();
    let best = rates.iter().copied().max_by(|left, right| left.value.total_cmp(&right.value));
    let saturated = rates.len() >= 2 && rates[rates.len() - 1].value < 1.1 * rates[rates.len() - 2].value;
    (best, saturated)
}

/// The time of a program with which the dies write at the drive's rate, or else less than that of a FLUSH.
fn program_us(ssd: &Ssd, build: Build) -> Option<f64> {
    let writes = ssd.writes.as_ref()?;
    let taken_in = writes.after_full.map(|after| build.bytes_at_once() as f64 * 1e6 / after.value);
    taken_in.or_else(|| Some((0.8 * writes.flush?.value / 1e3).min(PROGRAM_US)))
}

fn flash(ssd: &Ssd, parts: &Parts) -> Vec<Figure> {
    let n = ssd.reads_ns.len();
    let times: Vec<String> = parts.read_us.iter().map(|us| number(*us)).collect();
    // Of several times what is known is how far their mean may be off.
    let alone = parts.read_us.len() == 1;
    let middle = if alone { Estimate::median(&ssd.reads_ns) } else { Estimate::mean(&ssd.reads_ns) };
    let of_read = middle.unwrap_or(Estimate::new(0.0, 0.0, 0.0, 0)).map(|ns| (ns - parts.beside_flash_ns) / 1e3);
    let unseen = "no response time shows how the flash is built";
    let program = program_us(ssd, SIMPLEST).map_or(number(PROGRAM_US), number);
    let why = if ssd.writes.is_some() { "the assumed dies program at the measured rate" } else { READ_ONLY };
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

/// Runs the model with the flash built in several ways, and takes the one whose rates by depth and latencies by size
/// are nearest.
pub fn fit_build(file: &mut DriveFile, ssd: &Ssd, (size_bytes, seed): (u64, u64)) -> Result<(), DiskError> {
    let mut best: Option<(f64, Build)> = None;
    // A flushed write takes a program at the least.
    let flush_us = ssd.writes.as_ref().and_then(|writes| writes.flush).map_or(f64::INFINITY, |flush| flush.value / 1e3);
    let may = |build: &Build| program_us(ssd, *build).is_none_or(|us| us * 1.1 < flush_us);
    for build in Build::all().filter(may).chain([SIMPLEST]) {
        let mut tried = file.clone();
        set_build(&mut tried, ssd, build, &Source::Reported);
        let model = dbdyno_device::model_of_text(&tried.text(), size_bytes, seed)?;
        let error = error_of(ssd, &mut ModelBench::new(model, size_bytes, false), seed)?;
        if best.is_none_or(|(least, _)| error < 0.99 * least) {
            best = Some((error, build));
        }
    }
    if let Some((error, build)) = best {
        let off = (error / (DEPTHS.len() + SIZES.len()) as f64).sqrt() * 100.0;
        let how = format!("reads a second by depth and latencies by size, {off:.1} % off");
        set_build(file, ssd, build, &Source::Fitted(how));
    }
    fit_flush(file, ssd, (size_bytes, seed))
}

/// Takes off FLUSH what the model does beside it, such as the transfer to the dies.
fn fit_flush(file: &mut DriveFile, ssd: &Ssd, (size_bytes, seed): (u64, u64)) -> Result<(), DiskError> {
    let flush = |ssd: &Ssd| ssd.writes.as_ref().and_then(|writes| writes.flush);
    let Some(drive) = flush(ssd) else { return Ok(()) };
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
fn error_of(ssd: &Ssd, model: &mut dyn Bench, seed: u64) -> Result<f64, DiskError> {
    let square =
        |((_, drive), (_, model)): (&(u64, Estimate), &(u64, Estimate))| (drive.value / model.value).ln().powi(2);
    let (sizes, _) = latencies(model, MODEL_NS, seed)?;
    let depths = rates(model, (MODEL_NS, seed), 1)?;
    let pairs = ssd.read_latency.iter().zip(&sizes).chain(ssd.read_rate.iter().zip(&depths));
    Ok(pairs.map(square).sum())
}

fn set_build(file: &mut DriveFile, ssd: &Ssd, build: Build, source: &Source) {
    file.set("dies_per_channel", &build.dies.to_string(), source);
    file.set("planes_read_apart", &build.apart.to_string(), source);
    file.set("pages_per_program", &build.pages.to_string(), source);
    file.set("block_bytes", &build.block_bytes().to_string(), &Source::Default("512 programs".into()));
    if let (Some(us), Some(writes)) = (program_us(ssd, build), &ssd.writes) {
        let how = if writes.after_full.is_some() { "the rate of long writes" } else { "less than a FLUSH" };
        file.set("program_us", &format!("[{}]", number(us)), &Source::Fitted(how.into()));
    }
}

/// The same questions to the model that a drive file makes.
pub fn model_of(file: &DriveFile, size_bytes: u64, writes: bool, seed: u64) -> Result<Ssd, DiskError> {
    let model = dbdyno_device::model_of_text(&file.text(), size_bytes, seed)?;
    ssd(&mut ModelBench::new(model, size_bytes, writes), (MODEL_NS, seed), &mut |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_in_groups_are_told_apart() {
        let mut random = Random::new(3);
        let mut drawn = |centres: &[f64], spread: f64| -> Vec<f64> {
            (0..300).map(|index| centres[index % centres.len()] + random.unit() * spread).collect()
        };
        assert_eq!(groups(&drawn(&[80e3, 90e3, 100e3], 1e3)).len(), 3);
        assert_eq!(groups(&drawn(&[80e3, 120e3], 2e3)).len(), 2);
        assert_eq!(groups(&drawn(&[80e3], 40e3)).len(), 1);
        assert_eq!(groups(&[1.0, 2.0]).len(), 1);
    }
}
