//! Seek times: the least time from a request to its data over the angles of the target, for a distance.
//!
//! A read that ends after R has not been reached in time one revolution T earlier: the time to be on the track, s, is above
//! R - T, and at most R. Targets whose angle comes up in the middle of what is left halve it each time (Worthington et al.
//! 1995 call the least time over all targets the minimum time between request completions).

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use super::bench::Bench;
use super::drive_file::Estimate;
use super::rotation::PROBE_BYTES;
use super::tracks::{Layout, Timing};
use crate::error::DiskError;

/// Pairs of places for one distance: with six, their least and greatest hold the median with 97 %.
const PAIRS: u64 = 6;
/// Reads for one pair at most.
const READS: u64 = 24;
/// Enough, as a part of a revolution.
const NEAR: f64 = 1.0 / 300.0;
/// Turns by which an answer that was aimed at comes at another time than it should.
const MISSED: f64 = 0.03;

/// The time to be on a track over a distance, ns; transfer and overhead included.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    pub cylinders: u64,
    pub ns: Estimate,
}

/// From where to where; the target may be so many bytes further on.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub from_bytes: u64,
    pub to_bytes: f64,
}

/// What aiming needs: bytes of the target's track, those of it that may be aimed at, and the turns by which the target of
/// the next way lies further on than that of the one before.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub track_bytes: f64,
    pub room_bytes: f64,
    pub shift_turns: f64,
    /// It is written and flushed, not read.
    pub written: bool,
}

impl Target {
    /// So many turns on from a place that may be aimed at, by the shortest way: where tracks end the angle jumps. Where
    /// a way led over the end of one, by another.
    fn near(&self, at_bytes: f64, turns: f64, way: usize) -> Option<f64> {
        let nearest = turns - turns.round();
        let may = |at: &f64| (0.0..self.room_bytes).contains(at);
        let mut ways = [nearest, nearest + 1.0, nearest - 1.0];
        ways.rotate_left(way);
        ways.map(|turns| at_bytes + turns * self.track_bytes).into_iter().find(may)
    }
}

/// Between which times s lies for ways that are alike; `None` if the cache answered all.
pub fn reach(
    bench: &mut dyn Bench,
    timing: Timing,
    target: Target,
    ways: &[Way],
) -> Result<Option<(f64, f64)>, DiskError> {
    let turn = timing.revolution_ns;
    let kind = if target.written { Kind::Write } else { Kind::Read };
    let mut seen: Vec<f64> = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    let mut missed = false;
    for (way, index) in ways.iter().zip(0_u64..) {
        let began = bench.ask(Kind::Read, way.from_bytes, PROBE_BYTES)?.done_ns as f64;
        let (low, high) = bounds(&seen, turn).unwrap_or((0.0, turn));
        // Without a target that was seen: around the track.
        let around = (0.38 * index as f64).fract() * target.room_bytes;
        let at = last.map_or(around, |(done, at)| {
            let turns = (began + f64::midpoint(low, high) - done) / turn - target.shift_turns;
            target.near(at, turns, if missed { (index / 2) as usize % 3 } else { 0 }).unwrap_or(around)
        });
        let mut answer = bench.ask(kind, sector(way.to_bytes + at), PROBE_BYTES)?;
        if target.written {
            let flush = bench.ask(Kind::Flush, 0, 0)?;
            answer.done_ns = flush.done_ns;
            // The sector passed before FLUSH came, which then had nothing to write.
            if flush.latency_ns() <= timing.hit_limit_ns {
                continue;
            }
        } else if answer.latency_ns() <= timing.hit_limit_ns {
            continue;
        }
        last = Some((answer.done_ns as f64, at));
        let off = (answer.latency_ns() - f64::midpoint(low, high)) / turn;
        missed = (off - off.round()).abs() > MISSED;
        seen.push(answer.latency_ns());
        if bounds(&seen, turn).is_some_and(|(low, high)| seen.len() > 3 && high - low < NEAR * turn) {
            break;
        }
    }
    Ok(bounds(&seen, turn))
}

/// Above what and up to what s is, after these latencies. An answer that came late bounds nothing.
fn bounds(seen: &[f64], turn: f64) -> Option<(f64, f64)> {
    let high = seen.iter().copied().reduce(f64::min)?;
    let low = seen.iter().map(|latency| latency - turn).filter(|low| *low < high).fold(0.0, f64::max);
    Some((low, high))
}

pub fn sector(bytes: f64) -> u64 {
    (bytes.max(0.0) / 4096.0).round() as u64 * 4096
}

/// Distances from one cylinder to all of them, each about 1.6 times the one before.
pub fn distances(cylinders: u64) -> Vec<u64> {
    let mut found = vec![];
    let mut next = 1;
    while next < cylinders {
        found.push(next);
        next = (next * 8 / 5).max(next + 1);
    }
    if let Some(last) = found.last_mut().filter(|last| **last * 5 > cylinders * 4 || **last == cylinders - 1) {
        *last = cylinders - 1;
    } else if cylinders > 1 {
        found.push(cylinders - 1);
    }
    found
}

/// The time to reach a track for each distance, as far as time allows: every other distance first.
pub fn curve(
    bench: &mut dyn Bench,
    timing: Timing,
    layout: &Layout,
    cylinder_turns: f64,
    seed: u64,
) -> Result<Vec<Reach>, DiskError> {
    let cylinders = layout.cylinders().saturating_sub(READS);
    let all = distances(cylinders);
    let (even, odd): (Vec<_>, Vec<_>) = all.iter().rev().zip(0..).partition(|(_, index)| index % 2 == 0);
    let mut random = Random::new(seed);
    let mut found = Vec::new();
    for (distance, _) in even.into_iter().chain(odd) {
        if bench.now_ns() > timing.until_ns && found.len() > 1 {
            break;
        }
        let found_here = over(bench, timing, layout, (cylinder_turns, *distance, false), random.bits())?;
        found.extend(found_here.map(|ns| Reach { cylinders: *distance, ns }));
    }
    found.sort_by_key(|reach| reach.cylinders);
    Ok(found)
}

/// The time to reach a track over a distance, from several places; with a write and its flush, if so asked.
pub fn over(
    bench: &mut dyn Bench,
    timing: Timing,
    layout: &Layout,
    (cylinder_turns, distance, written): (f64, u64, bool),
    seed: u64,
) -> Result<Option<Estimate>, DiskError> {
    let cylinders = layout.cylinders().saturating_sub(READS);
    let (mut random, mut pairs) = (Random::new(seed), Vec::new());
    for _ in 0..PAIRS {
        let low = random.below(cylinders.saturating_sub(distance).max(1));
        let (from, to) = if random.chance(0.5) { (low, low + distance) } else { (low + distance, low) };
        let track_bytes = layout.place(to).1;
        // Each time a cylinder further, so that the cache has neither place.
        let ways: Vec<Way> = (0..READS)
            .map(|index| Way {
                from_bytes: sector(layout.place(from + index).0 + layout.place(from).1 / 2.0),
                to_bytes: layout.place(to + index).0,
            })
            .collect();
        let target = Target { track_bytes, room_bytes: 2.0 * track_bytes, shift_turns: cylinder_turns, written };
        pairs.extend(reach(bench, timing, target, &ways)?);
    }
    Ok(of_pairs(&pairs))
}

/// The median over pairs, and an interval that holds what each left open as well. Pairs that were left much more open
/// than the others say nothing.
pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let widths: Vec<f64> = pairs.iter().map(|(low, high)| high - low).collect();
    let limit = 3.0 * Estimate::median(&widths)?.value;
    let pairs: Vec<(f64, f64)> = pairs.iter().copied().filter(|(low, high)| high - low <= limit).collect();
    let middles: Vec<f64> = pairs.iter().map(|(low, high)| f64::midpoint(*low, *high)).collect();
    let widths: Vec<f64> = pairs.iter().map(|(low, high)| (high - low) / 2.0).collect();
    let (middle, width) = (Estimate::median(&middles)?, Estimate::median(&widths)?.value);
    Some(Estimate::new(middle.value, middle.low - width, middle.high + width, middle.n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_reach_from_one_cylinder_to_all() {
        for cylinders in [2, 3, 10, 333_000] {
            let all = distances(cylinders);
            assert_eq!((all[0], all[all.len() - 1]), (1, cylinders - 1), "{all:?}");
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        }
        assert!(distances(1).is_empty());
    }

    #[test]
    fn a_late_answer_does_not_bound_from_below() {
        assert_eq!(bounds(&[5e6, 9e6, 40e6], 8e6), Some((1e6, 5e6)));
        assert_eq!(bounds(&[], 8e6), None);
    }
}
