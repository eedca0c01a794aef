//! What a trace shows of a drive that does not turn, and its drive file.

use std::collections::BTreeMap;

use dbdyno_device::Kind;

use super::profile::{Class, Profile, error, of_model};
use super::requests::Request;
use crate::error::DiskError;
use crate::fit::drive_file::{DriveFile, Figure, Source, number};
use crate::fit::estimate::Estimate;
use crate::fit::ssd::groups;
use crate::fit::ssd_file::{Build, CHANNELS};

const HIDDEN: &str = "no response time shows it by itself";
const SAMPLES_MIN: usize = 20;
/// Reads up to this size are of one die.
const SMALL_BYTES: u64 = 16_384;
/// Reads from this size on spread over so many dies that the link counts.
const LARGE_BYTES: u64 = 64 << 10;
/// Latencies at a depth in so many parts of time, whose rates are samples.
const PARTS: usize = 12;
const PROGRAM_US: f64 = 500.0;

/// Everything that was found; what is `None` the trace does not show.
#[derive(Debug)]
pub struct Flash {
    /// Latencies of single reads by size, ns.
    pub reads: BTreeMap<u64, Estimate>,
    /// The smallest size of which there are enough, and all latencies of it.
    pub small: (u64, Vec<f64>),
    /// Of single writes of the most frequent size.
    pub write: Option<(u64, Estimate)>,
    /// Small requests a second by how many are outstanding.
    pub read_rate: Vec<(u32, Estimate)>,
    pub write_rate: Vec<(u32, Estimate)>,
    /// Bytes a second over the link.
    pub link: Option<Estimate>,
    /// FLUSH after writes, and after none.
    pub flush: [Option<Estimate>; 2],
    /// The most requests that were outstanding.
    pub depth: u32,
}

/// Looks at all requests; `None` where single reads show nothing.
pub fn flash(requests: &[Request]) -> Option<Flash> {
    let single = |kind: Kind| {
        let mut by_size = BTreeMap::<u64, Vec<f64>>::new();
        for request in requests.iter().filter(|request| request.alone && request.kind == kind && !request.fua) {
            by_size.entry(request.bytes).or_default().push(request.latency_ns());
        }
        by_size.retain(|_, taken| taken.len() >= SAMPLES_MIN);
        by_size
    };
    let (reads_ns, writes_ns) = (single(Kind::Read), single(Kind::Write));
    let small = reads_ns.iter().next().map(|(bytes, taken)| (*bytes, taken.clone()))?;
    let reads: BTreeMap<u64, Estimate> =
        reads_ns.iter().filter_map(|(bytes, taken)| Some((*bytes, Estimate::trimmed_mean(taken)?))).collect();
    let write = writes_ns.iter().max_by_key(|(_, taken)| taken.len());
    Some(Flash {
        link: link(&reads),
        reads,
        small,
        write: write.and_then(|(bytes, taken)| Some((*bytes, Estimate::median(taken)?))),
        read_rate: rates(requests, Kind::Read),
        write_rate: rates(requests, Kind::Write),
        flush: flushes(requests),
        depth: requests.iter().map(|request| request.depth).max().unwrap_or(1),
    })
}

/// Small requests a second by depth, of those that were sent with about as many of their kind outstanding (Little's law).
fn rates(requests: &[Request], kind: Kind) -> Vec<(u32, Estimate)> {
    let mut by_depth = BTreeMap::<u32, Vec<f64>>::new();
    for request in requests.iter().filter(|request| request.kind == kind && request.bytes <= SMALL_BYTES) {
        by_depth
            .entry(1 << request.depth.max(1).ilog2())
            .or_default()
            .push(request.latency_ns() / f64::from(request.depth));
    }
    let rate = |ns: &[f64]| ns.len() as f64 * 1e9 / ns.iter().sum::<f64>().max(1.0);
    let of = |(depth, ns): (u32, Vec<f64>)| {
        let parts: Vec<f64> = ns.chunks(ns.len().div_ceil(PARTS)).map(rate).collect();
        Some((depth, Estimate::median(&parts)?)).filter(|_| ns.len() >= SAMPLES_MIN * PARTS)
    };
    by_depth.into_iter().filter_map(of).collect()
}

/// What more bytes take longer where they come from many dies at once.
fn link(reads: &BTreeMap<u64, Estimate>) -> Option<Estimate> {
    let mut large = reads.range(LARGE_BYTES..);
    let (small, least) = large.next()?;
    let (most_bytes, most) = large.next_back().filter(|(bytes, _)| **bytes >= 2 * small)?;
    let more_bytes = (most_bytes - small) as f64;
    // Not f64::hypot: it needs glibc 2.35, which is newer than the wheel may ask for.
    let error_ns = ((most.high - most.value).powi(2) + (least.high - least.value).powi(2)).sqrt();
    let longer_ns = most.value - least.value;
    let rate = |ns: f64| more_bytes * 1e9 / ns;
    let n = most.n.min(least.n);
    (longer_ns > 2.0 * error_ns)
        .then(|| Estimate::new(rate(longer_ns), rate(longer_ns + error_ns), rate(longer_ns - error_ns), n))
}

/// The median FLUSH after writes, and after none since the last.
fn flushes(requests: &[Request]) -> [Option<Estimate>; 2] {
    let (mut taken, mut wrote) = ([Vec::new(), Vec::new()], true);
    for request in requests {
        if request.kind == Kind::Flush {
            taken[usize::from(!wrote)].push(request.latency_ns());
            wrote = false;
        }
        wrote |= request.kind == Kind::Write;
    }
    taken.map(|taken| Estimate::median(&taken).filter(|found| found.n >= SAMPLES_MIN / 2))
}

/// The most requests a second, and whether more depth brings no more: the knee.
fn knee(rates: &[(u32, Estimate)]) -> Option<(Estimate, bool)> {
    let best = rates.iter().map(|(_, rate)| *rate).max_by(|one, other| one.value.total_cmp(&other.value))?;
    let last = rates.len().checked_sub(2).map(|from| &rates[from..]);
    Some((best, last.is_some_and(|last| last[1].1.value < 1.1 * last[0].1.value)))
}

/// What follows from the latencies, ns.
struct Parts {
    link_ns_a_byte: f64,
    channel: Option<Estimate>,
    firmware: Option<Estimate>,
    firmware_ns: f64,
    beside_flash_ns: f64,
}

fn parts(found: &Flash) -> Parts {
    let link_ns_a_byte = 1e9 / found.link.map_or(DEFAULT_LINK, |rate| rate.value);
    let (bytes, latencies) = &found.small;
    let bytes = *bytes as f64;
    let least_ns = Estimate::median(latencies).map_or(0.0, |found| found.value);
    let of_page = found.reads.range(..=SMALL_BYTES).next_back().filter(|(large, _)| **large as f64 >= 2.0 * bytes);
    let channel = of_page.and_then(|(large, ns)| {
        let small_ns = found.reads.values().next()?.value;
        let apart = ns.map(|ns| (ns - small_ns) / (*large as f64 - bytes) - link_ns_a_byte);
        (apart.low > 0.0).then(|| apart.map(|ns| 1e3 / ns))
    });
    let channel_ns = bytes * 1e3 / channel.map_or(800.0, |channel| channel.value);
    // A FLUSH that has nothing to write is the firmware's time alone.
    let firmware = found.flush[1].filter(|idle| idle.value < 0.9 * least_ns);
    let firmware_ns = firmware.map_or((0.3 * least_ns).min(20e3), |idle| idle.value);
    Parts {
        link_ns_a_byte,
        channel,
        firmware,
        firmware_ns,
        beside_flash_ns: firmware_ns + bytes * link_ns_a_byte + channel_ns,
    }
}

const DEFAULT_LINK: f64 = 550e6;

/// All of the drive file but what only running the model shows.
pub fn file_of(found: &Flash, capacity: Figure) -> DriveFile {
    let parts = parts(found);
    let mut general = vec![capacity];
    general.extend(general_of(found, &parts));
    let sections = [
        ("[ssd]", general),
        ("[ssd.flash]", flash_of(found, &parts)),
        (
            "[ssd.ftl]",
            vec![Figure::default("over_provisioning", "0.07", "it shows after the drive has been written over")],
        ),
    ];
    let sections = sections.into_iter().map(|(name, figures)| (name.to_owned(), figures)).collect();
    DriveFile { sections, ..DriveFile::default() }
}

fn general_of(found: &Flash, parts: &Parts) -> Vec<Figure> {
    let (reads, writes) = (knee(&found.read_rate), knee(&found.write_rate));
    let saturated = reads.is_some_and(|(_, saturated)| saturated);
    let command = |field: &str, knee: Option<(Estimate, bool)>, text: &str| {
        let us = knee.map(|(rate, saturated)| (rate.map(|rate| 1e6 / rate), saturated));
        let text = us.map_or(text.to_owned(), |(us, _)| number(us.value / 2.0));
        let shown = us.filter(|(_, saturated)| *saturated).map(|(us, _)| us);
        Figure::or(field, shown, &text, "the rate still grows at the greatest depth there is enough of")
    };
    let write_us =
        found.write.map(|(bytes, ns)| ns.map(|ns| ((ns - bytes as f64 * parts.link_ns_a_byte) / 1e3).max(0.0)));
    let mut figures = vec![
        Figure::default("queue_depth", &if saturated { found.depth.max(32) } else { 1024 }.to_string(), HIDDEN),
        Figure::default("flush_is_a_barrier", "false", "what was outstanding beside a FLUSH was not compared"),
        protected(found),
        Figure::default("flush_us", "500.0", "too few FLUSHes after writes"),
        Figure::or(
            "link_mb_s",
            found.link.map(|rate| rate.map(|rate| rate / 1e6)),
            &number(DEFAULT_LINK / 1e6),
            "no single reads of two sizes from 64 KiB on",
        ),
        Figure::or(
            "read_firmware_us",
            parts.firmware.map(|ns| ns.map(|ns| ns / 1e3)),
            &number(parts.firmware_ns / 1e3),
            "only its sum with the time of the flash shows, as no FLUSHes had nothing to write",
        ),
        Figure::or("write_firmware_us", write_us, "20.0", "too few single writes"),
    ];
    figures.push(command("read_command_us", reads, "1.0"));
    figures.push(command("write_command_us", writes, "5.0"));
    figures.push(Figure::default("buffer_bytes", "16777216", "which write had to wait for the flash does not show"));
    figures
}

/// Where FLUSH takes as long after writes as after none, writes need no FLUSH.
fn protected(found: &Flash) -> Figure {
    let field = "power_loss_protected";
    let [Some(after_writes), Some(idle)] = found.flush else {
        return Figure::default(field, "false", "too few FLUSHes after writes, or after none");
    };
    let yes = after_writes.value < 1.3 * idle.value + 5e3;
    let how = "whether FLUSH after a write takes longer than after none";
    Figure { field: field.into(), text: yes.to_string(), source: Source::Fitted(how.into()) }
}

/// What the flash takes of the latencies of small reads, by the cell's bits if they lie in groups.
fn read_us(found: &Flash, beside_flash_ns: f64) -> Figure {
    let latencies = &found.small.1;
    let us = |ns: f64| ((ns - beside_flash_ns) / 1e3).max(1.0);
    let times: Vec<String> = groups(latencies).into_iter().map(|ns| number(us(ns))).collect();
    let middle = if times.len() == 1 { Estimate::median(latencies) } else { Estimate::mean(latencies) };
    let middle = middle.unwrap_or(Estimate::new(0.0, 0.0, 0.0, 0)).map(us);
    Figure { field: "read_us".into(), text: format!("[{}]", times.join(", ")), source: Source::Measured(middle) }
}

fn flash_of(found: &Flash, parts: &Parts) -> Vec<Figure> {
    let bytes = found.small.0;
    let unseen = "no response time shows how the flash is built";
    vec![
        Figure::default("channels", &CHANNELS.to_string(), unseen),
        Figure::default("dies_per_channel", "1", "no reads were outstanding together"),
        Figure::or("channel_mb_s", parts.channel, "800.0", &format!("reads of {bytes} bytes alone do not show it")),
        Figure::default("planes", "2", unseen),
        Figure::default("planes_read_apart", "true", "no reads were outstanding together"),
        Figure::default("page_bytes", "16384", unseen),
        Figure::default("pages_per_program", "1", unseen),
        read_us(found, parts.beside_flash_ns),
        Figure::default("program_us", &format!("[{}]", number(PROGRAM_US)), HIDDEN),
        Figure::default("block_bytes", "16777216", unseen),
        Figure::default("erase_us", "3500.0", HIDDEN),
        Figure::default("suspends_max", "4", HIDDEN),
        Figure::default("suspend_us", "20.0", HIDDEN),
        Figure::default("reads_before_program", "16", HIDDEN),
    ]
}

/// Plays the trace on the model with the flash built in several ways, and takes the one whose latencies of reads by size
/// and depth are nearest.
pub fn fit_build(
    file: &mut DriveFile,
    requests: &[Request],
    drive: &Profile,
    (size_bytes, seed): (u64, u64),
) -> Result<(), DiskError> {
    if !drive.keys().any(|class| class.is_read() && class.depth >= 2) {
        return Ok(());
    }
    let mut best: Option<(f64, Build)> = None;
    for build in Build::all() {
        let mut tried = file.clone();
        set(&mut tried, build, &Source::Reported);
        let mut model = dbdyno_device::model_of_text(&tried.text(), size_bytes, seed)?;
        let off = error(drive, &of_model(&mut *model, requests), Class::is_read);
        if best.is_none_or(|(least, _)| off < 0.99 * least) {
            best = Some((off, build));
        }
    }
    if let Some((off, build)) = best {
        let how = format!("latencies of reads by size and depth, {:.1} % off", off * 100.0);
        set(file, build, &Source::Fitted(how));
    }
    Ok(())
}

fn set(file: &mut DriveFile, build: Build, source: &Source) {
    file.set("dies_per_channel", &build.dies.to_string(), source);
    file.set("planes_read_apart", &build.apart.to_string(), source);
    file.set("pages_per_program", &build.pages.to_string(), source);
    file.set("block_bytes", &build.block_bytes().to_string(), &Source::Default("512 programs".into()));
}

/// The requests with the times that the model takes for them.
fn replayed(file: &DriveFile, requests: &[Request], (size_bytes, seed): (u64, u64)) -> Result<Vec<Request>, DiskError> {
    let mut model = dbdyno_device::model_of_text(&file.text(), size_bytes, seed)?;
    let took_ns = super::replay::replay(&mut *model, requests);
    let with = |(request, ns): (&Request, f64)| Request { done_ns: request.at_ns + ns as u64, ..*request };
    Ok(requests.iter().zip(took_ns).map(with).collect())
}

/// Takes off `read_us` what the model takes beside the flash for single reads of the smallest size, such as transfers
/// that do not overlap.
pub fn fit_read(
    file: &mut DriveFile,
    requests: &[Request],
    found: &Flash,
    size_and_seed: (u64, u64),
) -> Result<(), DiskError> {
    let single = |requests: &[Request]| -> Vec<f64> {
        let of_size =
            |request: &&Request| request.alone && (request.kind, request.bytes) == (Kind::Read, found.small.0);
        requests.iter().filter(of_size).map(Request::latency_ns).collect()
    };
    let beside_ns = parts(found).beside_flash_ns;
    let means = (
        Estimate::trimmed_mean(&single(requests)),
        Estimate::trimmed_mean(&single(&replayed(file, requests, size_and_seed)?)),
    );
    if let (Some(drive), Some(model)) = means {
        let Figure { field, text, source } = read_us(found, beside_ns + model.value - drive.value);
        file.set(&field, &text, &source);
    }
    Ok(())
}

/// Takes for `flush_us` what FLUSH after writes lacks on the model to the median of the trace.
pub fn fit_flush(
    file: &mut DriveFile,
    requests: &[Request],
    found: &Flash,
    size_and_seed: (u64, u64),
) -> Result<(), DiskError> {
    let Some(wanted) = found.flush[0] else { return Ok(()) };
    file.set("flush_us", "0.0", &Source::Reported);
    let beside_ns = flushes(&replayed(file, requests, size_and_seed)?)[0].map_or(0.0, |found| found.value);
    let us = wanted.map(|ns| ((ns - beside_ns) / 1e3).max(0.0));
    file.set("flush_us", &number(us.value), &Source::Measured(us));
    Ok(())
}
