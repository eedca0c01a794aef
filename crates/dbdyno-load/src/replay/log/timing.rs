//! When each statement started, from the times of a log.
//!
//! Servers write an entry when its statement is done (a slow log) or comes (a general log), so the times of those
//! moments never fall from entry to entry, unless the clock was set back: then all times go on from there. What does
//! not fit either was not the clock's: a session had set `timestamp`, or the entry is damaged.

use super::entry::{Entry, Moment, SECOND_US};

/// When statements started, and how many of their times did not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct Times {
    /// Start of each entry's statement, microseconds since 1970.
    pub starts_us: Vec<i64>,
    /// Entries whose time is that of the entry before, as their own is out of order.
    pub out_of_order: u64,
    /// The first entries after the clock was set back.
    pub set_back: Vec<usize>,
}

/// The starts of all entries.
///
/// A time of whole seconds says of a moment only in which second it was: the moments of a second are spread over it
/// evenly, in the log's order.
pub fn times(entries: &[Entry]) -> Times {
    let mut written: Vec<i64> = entries.iter().map(written_us).collect();
    let set_back = set_forward_again(&mut written);
    let fits = fitting(&written);
    spread(&mut written, entries, &fits);
    take_from_before(&mut written, &fits);
    let starts_us = written.iter().zip(entries).map(|(written, entry)| written - entry.duration_us).collect();
    Times { starts_us, out_of_order: fits.iter().filter(|fits| !**fits).count() as u64, set_back }
}

/// When an entry was written; of whole seconds, at the earliest.
fn written_us(entry: &Entry) -> i64 {
    match entry.moment {
        Moment::Start => entry.stamp.us + entry.duration_us,
        Moment::End => entry.stamp.us,
    }
}

/// How far times may fall: of whole seconds they are that vague, and sessions do not wait for each other to write.
const SLACK_US: i64 = 10 * SECOND_US;

/// What clocks are set back by at the end of summer time: half an hour or an hour, and where the server's zone was
/// changed, more of these.
const ZONE_STEP_US: i64 = 1800 * SECOND_US;

/// The longest pause for which a clock that was set back by such a step is told from one that was set back by something
/// else.
const PAUSE_US: [i64; 2] = [60 * SECOND_US, 300 * SECOND_US];

/// The longest fall that is a clock's.
const FALL_MAX_US: i64 = 366 * 86_400 * SECOND_US;

/// Most times that the clock was set back.
const STEPS_MAX: usize = 32;

/// Most places that are looked at for one.
const TRIED_MAX: usize = 4;

/// How often all times are gone over in search of steps: a log made of nothing else must not take for ever.
const ROUNDS_MAX: usize = 8;

/// Fewest entries before and after a step.
const AROUND_MIN: usize = 2;

/// Takes back what the clock was set back by, and says at which entries it was.
fn set_forward_again(times: &mut [i64]) -> Vec<usize> {
    if is_in_order(times) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let (mut parts, mut looked_at) = (vec![(0, times.len())], 0);
    while let Some((start, end)) = parts.pop() {
        looked_at += end - start;
        if steps.len() == STEPS_MAX || looked_at > ROUNDS_MAX * times.len() {
            break;
        }
        if let Some(at) = step(&times[start..end]) {
            steps.push(start + at);
            parts.extend([(start, start + at), (start + at, end)]);
        }
    }
    steps.sort_unstable();
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
    let pause_max = pauses.filter(|pause| *pause <= PAUSE_US[1]).max().unwrap_or(0).max(PAUSE_US[0]);
    for at in &steps {
        let before = latest_fitting(&times[..*at]);
        let fall = before - earliest_fitting(&times[*at..]);
        let step = (fall + ZONE_STEP_US - 1) / ZONE_STEP_US * ZONE_STEP_US;
        let by = if step - fall <= pause_max { step } else { fall };
        times[*at..].iter_mut().for_each(|time| *time = time.saturating_add(by));
    }
    steps
}

/// Where the clock was set back, if it was: with a step there, more times fit than without, and none goes forward again
/// at once.
fn step(times: &[i64]) -> Option<usize> {
    if is_in_order(times) {
        return None;
    }
    let vague: Vec<i64> = times.iter().map(|time| time / SLACK_US).collect();
    let (up_to, from) = (rising_lengths(vague.iter().copied()), {
        let mut lengths = rising_lengths(vague.iter().rev().map(|time| -time));
        lengths.reverse();
        lengths
    });
    let without = *up_to.last()?;
    let last = times.len().saturating_sub(AROUND_MIN);
    let mut places: Vec<usize> = (AROUND_MIN..=last)
        .filter(|at| times[*at] + SLACK_US < times[*at - 1] && up_to[*at - 1] + from[*at] >= without + AROUND_MIN)
        .collect();
    places.sort_by_key(|at| std::cmp::Reverse(up_to[*at - 1] + from[*at]));
    places.into_iter().take(TRIED_MAX).find(|at| {
        let (before, after) = times.split_at(*at);
        let (high, low) = (latest_fitting(before), earliest_fitting(after));
        let fall = high - low;
        (SLACK_US..FALL_MAX_US).contains(&fall)
            && !jumps(before, low + SLACK_US, fall / 2)
            && !jumps(after, high - SLACK_US, fall / 2)
    })
}

/// Whether the times that fit come past `level` by more than `least` at once: then some of them were none of the
/// clock's.
fn jumps(times: &[i64], level: i64, least: i64) -> bool {
    let fits = fitting(times);
    let mut before: Option<i64> = None;
    for (time, _) in times.iter().zip(&fits).filter(|(_, fits)| **fits) {
        if before.is_some_and(|before| before <= level && *time > level && time - before > least) {
            return true;
        }
        before = before.max(Some(*time));
    }
    false
}

fn latest_fitting(times: &[i64]) -> i64 {
    let fits = fitting(times);
    times.iter().zip(&fits).filter(|(_, fits)| **fits).map(|(time, _)| *time).max().unwrap_or(0)
}

fn earliest_fitting(times: &[i64]) -> i64 {
    let fits = fitting(times);
    times.iter().zip(&fits).find(|(_, fits)| **fits).map_or(0, |(time, _)| *time)
}

fn is_in_order(times: &[i64]) -> bool {
    let mut latest = i64::MIN;
    times.iter().all(|time| {
        latest = latest.max(*time);
        time.saturating_add(SLACK_US) >= latest
    })
}

/// Of each beginning of the times the length of a longest subsequence that does not fall.
fn rising_lengths(times: impl Iterator<Item = i64>) -> Vec<usize> {
    let mut ends: Vec<i64> = Vec::new();
    let rising_length = |time: i64| {
        let length = ends.partition_point(|end| *end <= time);
        if length == ends.len() {
            ends.push(time);
        } else {
            ends[length] = time;
        }
        ends.len()
    };
    times.map(rising_length).collect()
}

/// Which times can be those of a clock that never goes back, give or take some seconds: as many as can be.
fn fitting(times: &[i64]) -> Vec<bool> {
    if is_in_order(times) {
        return vec![true; times.len()];
    }
    let vague: Vec<i64> = times.iter().map(|time| time / SLACK_US).collect();
    let mut fits = longest_rising(&vague);
    // Those that fall a little fit as well.
    let mut earliest_after = vec![i64::MAX; times.len()];
    let mut earliest = i64::MAX;
    for number in (0..times.len()).rev() {
        earliest_after[number] = earliest;
        if fits[number] {
            earliest = earliest.min(times[number]);
        }
    }
    let mut latest = i64::MIN;
    for (number, time) in times.iter().enumerate() {
        let after = earliest_after[number].saturating_add(SLACK_US);
        fits[number] |= time + SLACK_US >= latest && *time <= after;
        if fits[number] {
            latest = latest.max(*time);
        }
    }
    fits
}

/// The members of a longest subsequence that does not fall (patience sorting).
fn longest_rising(times: &[i64]) -> Vec<bool> {
    // Of each length the member with the least last time; of each member the one before it.
    let (mut ends, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::with_capacity(times.len()));
    for (number, time) in times.iter().enumerate() {
        let length = ends.partition_point(|end| times[*end] <= *time);
        before.push(if length == 0 { usize::MAX } else { ends[length - 1] });
        if length == ends.len() { ends.push(number) } else { ends[length] = number }
    }
    let mut rises = vec![false; times.len()];
    let mut member = ends.last().copied().unwrap_or(usize::MAX);
    while let Some(rising) = rises.get_mut(member) {
        *rising = true;
        member = before[member];
    }
    rises
}

/// Spreads what was written in one second over it.
fn spread(written: &mut [i64], entries: &[Entry], fits: &[bool]) {
    let coarse: Vec<usize> = (0..written.len()).filter(|at| fits[*at] && !entries[*at].stamp.is_exact).collect();
    let mut latest = i64::MIN;
    for at in &coarse {
        latest = latest.max(written[*at]);
        written[*at] = latest;
    }
    let second = |written: &[i64], at: usize| written[at].div_euclid(SECOND_US);
    let (mut from, mut before) = (0, i64::MIN);
    while from < coarse.len() {
        let of = second(written, coarse[from]);
        let count = coarse[from..].iter().take_while(|at| second(written, **at) == of).count();
        // So many shares of what is left of the second are still to come.
        for (at, shares) in coarse[from..from + count].iter().zip((2..=1 + count as u64).rev()) {
            let earliest = before.max(written[*at]);
            let left = u64::try_from((of + 1) * SECOND_US - earliest).unwrap_or(0);
            before = earliest.saturating_add_unsigned(left / shares);
            written[*at] = before;
        }
        from += count;
    }
}

/// Gives what does not fit the time of the entry before, or else of the first that fits.
fn take_from_before(written: &mut [i64], fits: &[bool]) {
    let Some(first) = fits.iter().position(|fits| *fits) else { return };
    let mut before = written[first];
    for (written, fits) in written.iter_mut().zip(fits) {
        if *fits {
            before = *written;
        } else {
            *written = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Stamp, What, Within};
    use super::*;
    use proptest::prelude::*;

    fn entry(us: i64, is_exact: bool, moment: Moment, duration_us: i64) -> Entry {
        let stamp = Stamp { us, is_exact };
        Entry { line: 1, thread: 1, stamp, moment, duration_us, schema: Within::OfSession, what: What::Command }
    }

    fn starts(entries: &[Entry]) -> Vec<i64> {
        times(entries).starts_us
    }

    #[test]
    fn exact_ends_give_exact_starts() {
        let entries = [entry(9_000_000, true, Moment::End, 2_700_000), entry(9_000_100, true, Moment::End, 90)];
        assert_eq!(starts(&entries), [6_300_000, 9_000_010]);
        assert_eq!(starts(&[entry(5, true, Moment::Start, 70)]), [5]);
    }

    #[test]
    fn a_second_is_shared_out() {
        let at = |second: i64| entry(second * SECOND_US, false, Moment::Start, 0);
        assert_eq!(starts(&[at(3), at(3), at(3), at(8)]), [3_250_000, 3_500_000, 3_750_000, 8_500_000]);
        // A long query is written after what began later.
        let long = entry(3 * SECOND_US, false, Moment::Start, 2_700_000);
        assert_eq!(times(&[at(5), long, at(5)]).out_of_order, 0);
        let starts_us = starts(&[at(5), long, at(5)]);
        assert!(starts_us[0] < starts_us[1] + 2_700_000 && starts_us[1] + 2_700_000 < starts_us[2], "{starts_us:?}");
        assert!((3 * SECOND_US..4 * SECOND_US).contains(&starts_us[1]), "{starts_us:?}");
    }

    #[test]
    fn a_time_that_a_session_had_set_is_not_the_clocks() {
        let at = |us: i64| entry(us, true, Moment::End, 0);
        for wrong in [1_000_000_000, 1_795_438_747_000_000 * 2] {
            let base = 1_795_438_747_000_000;
            let timing = times(&[at(base), at(base + 10), at(wrong), at(base + 20), at(base + 30)]);
            assert_eq!(timing.starts_us, [base, base + 10, base + 10, base + 20, base + 30]);
            assert_eq!(timing.out_of_order, 1);
            assert_eq!(times(&[at(base + wrong), at(base), at(base)]).starts_us, [base; 3]);
        }
        // Microseconds in another order are no mistake.
        assert_eq!(
            times(&[at(50), at(40), at(5_000_000)]),
            Times { starts_us: vec![50, 40, 5_000_000], out_of_order: 0, set_back: Vec::new() }
        );
    }

    /// One entry a minute, from so many minutes on.
    fn minutes(parts: &[(i64, i64)]) -> Vec<Entry> {
        let all = parts.iter().flat_map(|(from, to)| *from..*to);
        all.map(|minute| entry(minute * 60 * SECOND_US, false, Moment::Start, 0)).collect()
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        let pauses = |entries: &[Entry]| {
            let timing = times(entries);
            let pauses: Vec<i64> =
                timing.starts_us.windows(2).map(|pair| (pair[1] - pair[0] + SECOND_US / 2) / SECOND_US).collect();
            (pauses, timing.set_back, timing.out_of_order)
        };
        // The end of summer time, seen from long before it and from shortly before it; and twice in a log, as over a
        // year.
        for (parts, steps) in [
            (&[(150, 180), (120, 220)][..], vec![30]),
            (&[(177, 180), (120, 220)], vec![3]),
            (&[(0, 180), (120, 123)], vec![180]),
            (&[(100, 180), (150, 400), (370, 500)], vec![80, 330]),
        ] {
            let entries = minutes(parts);
            assert_eq!(pauses(&entries), (vec![60; entries.len() - 1], steps, 0), "{parts:?}");
        }
        // By an operator, by ten minutes: nobody knows how long the pause was.
        let mut entries = minutes(&[(100, 180)]);
        entries.extend((0..90).map(|at| entry((169 * 60 + 17 + at) * SECOND_US, false, Moment::Start, 0)));
        let (pauses_s, set_back, out_of_order) = pauses(&entries);
        assert!(pauses_s.iter().all(|pause| (0..=60).contains(pause)), "{pauses_s:?}");
        assert_eq!((set_back, out_of_order), (vec![80], 0));
    }

    #[test]
    fn times_that_come_and_go_are_not_the_clocks() {
        let now = minutes(&[(1000, 1100)]);
        for wrong in [&minutes(&[(3, 9)])[..], &minutes(&[(9000, 9006)]), &minutes(&[(3, 4)])] {
            let entries = [&now[..50], wrong, &now[50..]].concat();
            let timing = times(&entries);
            assert_eq!((timing.set_back.len(), timing.out_of_order), (0, wrong.len() as u64));
            assert_eq!(timing.starts_us.last().unwrap() - timing.starts_us[0], 99 * 60 * SECOND_US);
        }
    }

    proptest! {
        #[test]
        fn seconds_of_a_clock_are_kept(steps in prop::collection::vec((0i64..3, 0i64..4_000_000), 1..60)) {
            let mut second = 1_000;
            let entries: Vec<Entry> = steps.iter().map(|(step, duration)| {
                second += step;
                entry(second * SECOND_US, false, Moment::End, *duration)
            }).collect();
            let timing = times(&entries);
            prop_assert_eq!(timing.out_of_order, 0);
            let pairs = timing.starts_us.iter().zip(&entries);
            let ends: Vec<i64> = pairs.map(|(start, entry)| start + entry.duration_us).collect();
            prop_assert!(ends.is_sorted());
            prop_assert!(ends.iter().zip(&entries).all(|(end, entry)| end.div_euclid(SECOND_US) * SECOND_US == entry.stamp.us));
        }

        #[test]
        fn any_times_come_to_an_end(all in prop::collection::vec((0i64..i64::MAX / 4, any::<bool>()), 0..40)) {
            let entries: Vec<Entry> = all.iter().map(|(us, exact)| entry(*us, *exact, Moment::End, 5)).collect();
            prop_assert_eq!(times(&entries).starts_us.len(), all.len());
        }
    }
}
