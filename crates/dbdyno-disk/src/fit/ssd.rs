//! What is found of a drive that does not turn: latency by size, requests a second by depth, the link, and, if it may be
//! written, the write buffer and FLUSH (the questions of Bouganim, Jónsson and Bonnet, "uFLIP", CIDR 2009).

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::{Bench, Load};
use super::estimate::Estimate;
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
        read_latency.extend(Estimate::trimmed_mean(&latencies).map(|found| (bytes, found)));
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
    let mut found = vec![Vec::new(); DEPTHS.len()];
    for round in 0..rounds {
        for (rates, depth) in found.iter_mut().zip(DEPTHS) {
            let load = load(bench, Kind::Read, (PROBE_BYTES, depth), 200 * depth.min(16), limit_ns / 2, seed ^ round);
            rates.push(bench.load(&load)?.rate());
        }
    }
    let all = DEPTHS.into_iter().zip(&found);
    Ok(all.filter_map(|(depth, rates)| Some((depth, Estimate::median(rates)?))).collect())
}

fn sequential(bench: &mut dyn Bench, limit_ns: u64) -> Result<Estimate, DiskError> {
    let mut found = Vec::new();
    for round in 0..5 {
        let load = Load { sequential: true, ..load(bench, Kind::Read, (LARGE_BYTES, 32), 1600, limit_ns, round) };
        found.push(bench.load(&load)?.rate() * LARGE_BYTES as f64);
    }
    Ok(Estimate::median(&found).unwrap_or(Estimate::new(0.0, 0.0, 0.0, 0)))
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
    let held = |rate: f64| (all - rate * last_ns / 1e9).max(0.0);
    Ok((after, Some(slower.map(held))))
}

/// The medians of latencies that lie in up to three groups apart; one where they don't.
pub fn groups(latencies: &[f64]) -> Vec<f64> {
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
