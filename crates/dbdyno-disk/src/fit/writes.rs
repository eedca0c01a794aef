//! What only writes show of a hard disk: what a write needs to settle, what FLUSH adds, and how much the cache takes.

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::Bench;
use super::estimate::Estimate;
use super::rotation::{PROBE_BYTES, random_place};
use super::seek::{Reach, over};
use super::zones::{Known, Layout};
use crate::error::DiskError;

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
    known: Known,
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
    let cached = write.is_some_and(|write| write.value < known.revolution_ns / 4.0);
    let cache_bytes = if cached { cache_bytes(bench, &mut random)? } else { Some(Estimate::new(0.0, 0.0, 0.0, 1)) };
    bench.ask(Kind::Flush, 0, 0)?;
    let mut beyond_a_read = None;
    if let Some(reach) = curve.get(curve.len() / 2) {
        let flushed = over(bench, known, layout, (cylinder_turns, reach.cylinders, true), seed)?;
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
    let mut found = Vec::new();
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
            let each_ns = Estimate::mean(&latencies[writes..]).map_or(1.0, |each| each.value);
            let on_the_medium = after_ns as f64 / each_ns;
            found.push((writes as f64 - on_the_medium).max(0.0) * WRITE_BYTES as f64);
        }
    }
    Ok(Estimate::median(&found).map(|found| {
        Estimate::new(found.value, found.low - WRITE_BYTES as f64, found.high + WRITE_BYTES as f64, found.n)
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

#[cfg(test)]
mod tests {
    use super::*;

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
