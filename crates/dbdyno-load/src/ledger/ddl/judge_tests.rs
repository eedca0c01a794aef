//! The judge of DDL on random histories, and on planted faults.

use dbdyno_common::random::Random;
use proptest::prelude::*;

use super::super::content::Key;
use super::super::record::{End, Record};
use super::super::verdict::{Cut, Fate};
use super::judge::{Judged, Observed, State, judged};
use super::steps::{Object, Step};

const CUT: Cut = Cut { begin_ns: 5000, end_ns: 5010 };

/// Statements of which so many were acknowledged before the cut and so many more sent, ten nanoseconds each.
fn sent(acked: u64, unknown: u64, later: u64) -> Vec<Record> {
    let record = |number: u64| {
        let key = Key { connection: 0, sequence: number };
        let (invoke_ns, end) = if number <= acked {
            (number * 10, End::Acked(number * 10 + 9))
        } else if number <= acked + unknown {
            (CUT.begin_ns, End::Acked(CUT.end_ns + 1))
        } else {
            (CUT.end_ns + number, End::Acked(CUT.end_ns + number + 1))
        };
        Record { key, invoke_ns, end }
    };
    (1..=acked + unknown + later).map(record).collect()
}

/// The tables after the first so many statements.
fn state_after(count: u64) -> Observed {
    let mut observed = Observed::new();
    for number in 1..=count {
        let step = Step::of(number);
        let state = match step {
            Step::Create(round) => {
                observed.insert(Object::Rows(round), State::Empty);
                State::Made
            }
            Step::Alter(_) => State::Altered,
            Step::Rename(_) => State::Renamed,
            Step::Drop(round) => {
                // The rows of a table that is not there are not looked at.
                observed.remove(&Object::Rows(round));
                State::Absent
            }
            Step::Fill(value) | Step::FillPartition(_, value) => State::Full(value),
            Step::Truncate(_) => State::Empty,
        };
        observed.insert(step.object(), state);
    }
    observed
}

fn judge(records: &[Record], observed: &Observed) -> Judged {
    judged(records, CUT, |object| match object {
        Object::Table(_) => Some(observed.get(&object).cloned().unwrap_or(State::Absent)),
        Object::Rows(_) => observed.get(&object).cloned(),
        Object::Partition(_) => Some(observed.get(&object).cloned().unwrap_or(State::Empty)),
    })
}

fn count(judged: &Judged, of: impl Fn(Fate) -> bool) -> usize {
    judged.findings.iter().filter(|finding| of(finding.fate)).count()
}

fn is_bad(fate: Fate) -> bool {
    matches!(fate, Fate::Lost(_) | Fate::Ghost | Fate::Wrong)
}

proptest! {
    #[test]
    fn what_the_statements_leave_is_right(acked in 0_u64..60, unknown in 0_u64..2, later in 0_u64..9, seed: u64) {
        let applied = acked + Random::new(seed).below(unknown + 1);
        let judged = judge(&sent(acked, unknown, later), &state_after(applied));
        prop_assert_eq!(count(&judged, is_bad), 0, "{:?}", judged);
        prop_assert!(count(&judged, |fate| fate == Fate::Kept) <= acked as usize);
    }

    #[test]
    fn a_lost_end_is_found(acked in 1_u64..60, lost in 1_u64..5) {
        let lost = lost.min(acked);
        let judged = judge(&sent(acked, 0, 0), &state_after(acked - lost));
        // A filled and truncated partition looks as before; rows of a table that is not there are not looked at.
        let shows = |number: u64| !matches!(Step::of(number), Step::Truncate(_) | Step::FillPartition(..) | Step::Fill(_));
        let least = (acked - lost + 1..=acked).filter(|number| shows(*number)).count();
        prop_assert!(count(&judged, |fate| matches!(fate, Fate::Lost(_))) >= least, "{judged:?}");
        prop_assert_eq!(count(&judged, |fate| matches!(fate, Fate::Ghost | Fate::Wrong)), 0);
    }
}

#[test]
fn a_truncated_partition_that_is_full_again_is_a_loss() {
    // 4: renamed, 5: partition 0 filled with the value 5, 6: truncated.
    let mut observed = state_after(6);
    observed.insert(Object::Partition(0), State::Full(5));
    let judged = judge(&sent(6, 0, 0), &observed);
    let lost: Vec<u64> = judged.findings.iter().filter(|one| is_bad(one.fate)).map(|one| one.key.sequence).collect();
    assert_eq!(lost, [6]);
    assert!(judged.findings.iter().any(|one| one.text.contains("TRUNCATE PARTITION p0")));
    // The INSERT is there for sure, but not what came after: the rename is older.
    assert_eq!(judged.newest_invoke_ns, Some(50));
}

#[test]
fn what_comes_of_no_statement_is_wrong() {
    for (object, state) in [
        (Object::Partition(0), State::Full(99)),
        (Object::Rows(0), State::Strange("7 rows of 100".into())),
        (Object::Table(0), State::Strange("both names are there".into())),
    ] {
        let mut observed = state_after(6);
        observed.insert(object, state);
        let judged = judge(&sent(6, 0, 0), &observed);
        assert_eq!(count(&judged, |fate| fate == Fate::Wrong), 1, "{judged:?}");
    }
}

#[test]
fn what_was_sent_after_the_cut_is_a_ghost() {
    let judged = judge(&sent(2, 0, 2), &state_after(4));
    assert_eq!(count(&judged, |fate| fate == Fate::Ghost), 2);
    assert_eq!(count(&judged, |fate| matches!(fate, Fate::Lost(_) | Fate::Wrong)), 0);
}

#[test]
fn a_refused_statement_changes_nothing() {
    let mut records = sent(6, 0, 0);
    records[5].end = End::Refused;
    let judged = judge(&records, &state_after(5));
    assert_eq!((count(&judged, is_bad), count(&judged, |fate| fate == Fate::Refused)), (0, 1));
}
