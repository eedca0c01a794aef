//! When each statement started, from the times of a log.
//!
//! Servers write an entry when its statement is done (a slow log) or comes (a general log), so the times of those
//! moments never fall from entry to entry. What does not fit was not the clock's: a session had set `timestamp`.

use super::entry::{Entry, Moment};
use super::stamp::SECOND_US;

/// When statements started, and how many of their times did not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct Times {
    /// Start of each entry's statement, microseconds since 1970.
    pub starts_us: Vec<i64>,
    /// Entries whose time is that of the entry before, as their own is out of order.
    pub out_of_order: u64,
}

/// The starts of all entries.
///
/// A time of whole seconds says of a moment only in which second it was: the moments of a second are spread over it
/// evenly, in the log's order.
pub fn times(entries: &[Entry]) -> Times {
    let mut written: Vec<i64> = entries.iter().map(written_us).collect();
    let fits = fitting(&written);
    spread(&mut written, entries, &fits);
    take_from_before(&mut written, &fits);
    let starts_us = written.iter().zip(entries).map(|(written, entry)| written - entry.duration_us).collect();
    Times { starts_us, out_of_order: fits.iter().filter(|fits| !**fits).count() as u64 }
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

/// Which times can be those of a clock that never goes back, give or take some seconds: as many as can be.
fn fitting(times: &[i64]) -> Vec<bool> {
    let mut latest = i64::MIN;
    let is_in_order = times.iter().all(|time| {
        latest = latest.max(*time);
        time + SLACK_US >= latest
    });
    if is_in_order {
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
    latest = i64::MIN;
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
    use super::super::entry::What;
    use super::super::stamp::Stamp;
    use super::*;
    use proptest::prelude::*;

    fn entry(us: i64, is_exact: bool, moment: Moment, duration_us: i64) -> Entry {
        let stamp = Stamp { us, is_exact };
        Entry { line: 1, thread: 1, stamp, moment, duration_us, schema: 0, what: What::Other }
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
        let found = starts(&[at(5), long, at(5)]);
        assert!(found[0] < found[1] + 2_700_000 && found[1] + 2_700_000 < found[2], "{found:?}");
        assert!((3 * SECOND_US..4 * SECOND_US).contains(&found[1]), "{found:?}");
    }

    #[test]
    fn a_time_that_a_session_had_set_is_not_the_clocks() {
        let at = |us: i64| entry(us, true, Moment::End, 0);
        for wrong in [1_000_000_000, 1_795_438_747_000_000 * 2] {
            let base = 1_795_438_747_000_000;
            let found = times(&[at(base), at(base + 10), at(wrong), at(base + 20), at(base + 30)]);
            assert_eq!(found.starts_us, [base, base + 10, base + 10, base + 20, base + 30]);
            assert_eq!(found.out_of_order, 1);
            assert_eq!(times(&[at(base + wrong), at(base), at(base)]).starts_us, [base; 3]);
        }
        // Microseconds in another order are no mistake.
        assert_eq!(
            times(&[at(50), at(40), at(5_000_000)]),
            Times { starts_us: vec![50, 40, 5_000_000], out_of_order: 0 }
        );
    }

    proptest! {
        #[test]
        fn seconds_of_a_clock_are_kept(steps in prop::collection::vec((0i64..3, 0i64..4_000_000), 1..60)) {
            let mut second = 1_000;
            let entries: Vec<Entry> = steps.iter().map(|(step, duration)| {
                second += step;
                entry(second * SECOND_US, false, Moment::End, *duration)
            }).collect();
            let found = times(&entries);
            prop_assert_eq!(found.out_of_order, 0);
            let ends: Vec<i64> = found.starts_us.iter().zip(&entries).map(|(start, entry)| start + entry.duration_us).collect();
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
