//! The read cache: the rate of the interface, how many segments there are, and how far the drive reads ahead.

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::Bench;
use super::estimate::Estimate;
use super::rotation::{PROBE_BYTES, random_place};
use crate::error::DiskError;

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
    let counted = |found: (u64, u64), unit: u64| {
        let (low, high) = ((found.0 * unit) as f64, (found.1 * unit) as f64);
        (found.0 > 0).then(|| Estimate::new(low, low, high.max(low), VOTES as usize))
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

/// The last number for which a question that once becomes false is true, and the first for which it was found false; 0 if
/// it is for none. Doubles, then halves, to a part in sixteen.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_true_number_is_found() {
        for limit in [0, 1, 2, 3, 17, 60, 300] {
            let found = last_true(1, 256, |number| Ok(number <= limit)).unwrap();
            let wanted = limit.min(256);
            assert!(found.0 <= wanted && wanted <= found.1.max(found.0), "{limit}: {found:?}");
            assert!(found.1 - found.0 <= found.0 / 60, "{limit}: {found:?}");
        }
    }
}
