//! The time of one revolution, from when the same sectors are read again.
//!
//! A sector that is not in the cache is read when it passes under the head. So two reads of it end a whole number of
//! revolutions apart, wherever the arm was between them (Worthington, Ganger, Patt and Wilkes, "On-line extraction of
//! SCSI disk drive parameters", SIGMETRICS 1995). The longest time of which all those differences are multiples is the
//! revolution.

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::Bench;
use super::drive_file::Estimate;
use crate::error::DiskError;

/// What is read to see when a sector passes: the least that a page cache or a drive of 4096-byte sectors reads.
pub const PROBE_BYTES: u64 = 4096;
/// Revolutions that drives have had, ms: 24,000 to 3,300 a minute.
const SHORTEST_MS: f64 = 2.5;
const LONGEST_MS: f64 = 18.0;
/// Fewer sectors may all be in the cache when they are read again.
const SECTORS_MIN: u64 = 96;
const SECTORS_MAX: u64 = 1600;
const ROUNDS: usize = 5;
/// The shortest differences are searched for a period; longer ones only make it more exact.
const SEARCHED_MAX: usize = 100;
/// Steps of the search, those of reads a quarter of an hour apart.
const STEPS_MAX: f64 = 2.5e6;
/// Above this the differences are multiples of one time; those of unrelated times are near 1 / sqrt(count).
const COHERENCE_MIN: f64 = 0.5;

/// The median latency of a read that the drive's cache answers, ns.
pub fn hit_ns(bench: &mut dyn Bench, bytes: u64, seed: u64) -> Result<Option<Estimate>, DiskError> {
    let (mut random, mut hits) = (Random::new(seed), Vec::new());
    for _ in 0..9 {
        let place = random_place(bench.size_bytes(), bytes, &mut random);
        bench.ask(Kind::Read, place, bytes)?;
        hits.push(bench.ask(Kind::Read, place, bytes)?.latency_ns());
    }
    Ok(Estimate::median(&hits))
}

/// A place on the drive that begins a sector.
pub fn random_place(size_bytes: u64, bytes: u64, random: &mut Random) -> u64 {
    random.below(((size_bytes - bytes) / PROBE_BYTES).max(1)) * PROBE_BYTES
}

/// The revolution in ns; `None` where reads show none. What took no longer than `hit_limit_ns` came from the cache.
pub fn revolution(
    bench: &mut dyn Bench,
    hit_limit_ns: f64,
    (until_ns, seed): (u64, u64),
) -> Result<Option<Estimate>, DiskError> {
    let mut sectors = SECTORS_MIN;
    loop {
        let (rounds, hits) = repeated(bench, sectors, hit_limit_ns, seed)?;
        let enough = hits * 3 < sectors as usize * ROUNDS;
        if enough || sectors >= SECTORS_MAX || bench.now_ns() > until_ns {
            return Ok(period(&rounds));
        }
        sectors *= 4;
    }
}

/// When each of so many sectors was read, round by round; and how many reads the cache answered.
fn repeated(
    bench: &mut dyn Bench,
    sectors: u64,
    hit_limit_ns: f64,
    seed: u64,
) -> Result<(Vec<Vec<f64>>, usize), DiskError> {
    let mut random = Random::new(seed);
    let places: Vec<u64> = (0..sectors).map(|_| random_place(bench.size_bytes(), PROBE_BYTES, &mut random)).collect();
    let (mut times, mut hits) = (vec![Vec::new(); places.len()], 0);
    let mut order: Vec<usize> = (0..places.len()).collect();
    for _ in 0..ROUNDS {
        // In the same order all would be the same number of revolutions apart, which any part of that time divides.
        random.shuffle(&mut order);
        for index in &order {
            let answer = bench.ask(Kind::Read, places[*index], PROBE_BYTES)?;
            if answer.latency_ns() > hit_limit_ns {
                times[*index].push(answer.done_ns as f64);
            } else {
                hits += 1;
            }
        }
    }
    Ok((times, hits))
}

/// The longest time of which the differences of each list are multiples.
fn period(times: &[Vec<f64>]) -> Option<Estimate> {
    let apart = |rounds: usize| -> Vec<f64> {
        times.iter().flat_map(|times| times.windows(rounds + 1).map(|pair| pair[rounds] - pair[0])).collect()
    };
    let mut near = apart(1);
    near.sort_by(f64::total_cmp);
    let short = &near[..near.len().min(SEARCHED_MAX)];
    let longest_ms = short.last().copied().unwrap_or(0.0) / 1e6;
    let (from, to) = (1.0 / LONGEST_MS, 1.0 / SHORTEST_MS);
    // Even steps of frequency, eight for a turn of the longest difference: between wider ones a period would be missed,
    // and its half taken for it.
    let count = ((to - from) * longest_ms * 8.0).ceil().max(200.0);
    if count > STEPS_MAX {
        return None;
    }
    let of_step = |step: f64| 1e6 / (from + (to - from) * step / count);
    let coherences: Vec<(f64, f64)> =
        (0..=count as u64).map(|step| of_step(step as f64)).map(|period| (coherence(short, period), period)).collect();
    let best = coherences.iter().map(|(coherent, _)| *coherent).fold(0.0, f64::max);
    // What unrelated times reach by chance in one of so many steps, once in a thousand times.
    let by_chance = ((count.ln() + 7.0) / short.len().max(1) as f64).sqrt();
    if near.len() < 20 || best < COHERENCE_MIN.max(by_chance) {
        return None;
    }
    // A half or a third of it divides the differences as well: the longest is meant.
    let first = coherences.iter().position(|(coherent, _)| *coherent > 0.85 * best)?;
    let rising = coherences[first..].windows(2).take_while(|pair| pair[1].0 >= pair[0].0).count();
    let mut turn = refined(short, coherences[first + rising].1)?;
    turn = refined(&near, turn.value).unwrap_or(turn);
    for rounds in 2..ROUNDS {
        turn = refined(&apart(rounds), turn.value).unwrap_or(turn);
    }
    Some(turn)
}

/// How well differences are multiples of a period: 1 where they are, near 0 where they have nothing to do with it.
fn coherence(apart: &[f64], period: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for apart in apart {
        let (sin, cos) = (std::f64::consts::TAU * apart / period).sin_cos();
        (x, y) = (x + cos, y + sin);
    }
    (x * x + y * y).sqrt() / apart.len().max(1) as f64
}

/// Least squares of the differences over their numbers of periods, without those that a late answer has spoilt.
fn refined(apart: &[f64], mut period: f64) -> Option<Estimate> {
    let mut estimate = None;
    for tolerance in [0.2, 0.1, 0.05] {
        let multiples: Vec<(f64, f64)> = apart
            .iter()
            .map(|apart| (*apart, (apart / period).round()))
            .filter(|(apart, count)| *count > 0.0 && (apart / period - count).abs() < tolerance)
            .collect();
        let squares: f64 = multiples.iter().map(|(_, count)| count * count).sum();
        if multiples.len() < 10 {
            return estimate;
        }
        period = multiples.iter().map(|(apart, count)| apart * count).sum::<f64>() / squares;
        let residue: f64 = multiples.iter().map(|(apart, count)| (apart - count * period).powi(2)).sum();
        let error = 1.96 * (residue / multiples.len() as f64 / squares).sqrt();
        estimate = Some(Estimate::new(period, period - error, period + error, multiples.len()));
    }
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times at which sectors pass, `noise` ns late at most, with some answers much later; reads are up to `pause` ns
    /// apart.
    fn passing(period: f64, noise: f64, pause: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut random = Random::new(seed);
        let mut now = 0.0;
        let mut times = vec![Vec::new(); 96];
        let angles: Vec<f64> = (0..96).map(|_| random.unit()).collect();
        let mut order: Vec<usize> = (0..96).collect();
        for _ in 0..ROUNDS {
            random.shuffle(&mut order);
            for index in &order {
                let (times, angle) = (&mut times[*index], angles[*index]);
                now += 2e6 + random.unit() * pause;
                now = ((now / period - angle).ceil() + angle) * period;
                let late = if random.chance(0.05) { random.unit() * 3e6 } else { 0.0 };
                times.push(now + random.unit() * noise + late);
            }
        }
        times
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
        #[test]
        fn a_period_is_found_within_a_thousandth(
            ms in 3.0..12.0_f64,
            noise in 0.0..200e3_f64,
            pause in prop_oneof![Just(6e6), 6e6..400e6],
            seed in 0..1000_u64,
        ) {
            let estimate = period(&passing(ms * 1e6, noise, pause, seed)).unwrap();
            prop_assert!((estimate.value / ms / 1e6 - 1.0).abs() < 1e-3, "{estimate:?}");
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }
    }

    #[test]
    fn times_without_one_show_none() {
        let mut random = Random::new(5);
        let mut now = 0.0;
        let mut times = vec![Vec::new(); 96];
        for _ in 0..ROUNDS {
            for times in &mut times {
                now += 1e5 + random.unit() * 9e6;
                times.push(now);
            }
        }
        assert_eq!(period(&times), None);
    }
}
