//! The classifier against its reference, on random histories with and without faults, and on planted faults.

use dbdyno_common::random::Random;
use proptest::prelude::*;

use super::super::book_reference::{History, PARTS, TAG, history, reference, spoil};
use super::super::verdict::EXAMPLES_MAX;
use super::*;

proptest! {
    #[test]
    fn nothing_is_found_where_nothing_is_wrong(seed: u64) {
        let history = history(seed);
        let (counts, examples) = history.judged();
        let acked = history.acked().len() as u64;
        let blank = Counts { acked, kept: acked, unknown: counts.unknown, refused: counts.refused, ..Counts::default() };
        prop_assert_eq!(&counts, &blank);
        prop_assert!(examples.is_empty());
        prop_assert_eq!(counts, reference(&history));
    }

    #[test]
    fn faults_are_counted_as_by_the_definitions(seed: u64, faults in 1_usize..30) {
        let mut history = history(seed);
        let mut random = Random::new(!seed);
        (0..faults).for_each(|_| spoil(&mut history, &mut random));
        let (counts, examples) = history.judged();
        prop_assert_eq!(&counts, &reference(&history));
        prop_assert!(examples.len() <= EXAMPLES_MAX);
        let Counts { lost, ghost, torn, wrong, .. } = counts;
        prop_assert_eq!(examples.is_empty(), lost + ghost + torn + wrong == 0 && !examples.iter().any(|one| one.what == "index_differences"));
    }

    #[test]
    fn a_later_cut_never_forgives(seed: u64) {
        // What is lost of an earlier cut is lost of a later one, as the same must be there and more.
        let mut history = history(seed);
        let mut random = Random::new(seed);
        (0..9).for_each(|_| spoil(&mut history, &mut random));
        let before = history.judged().0;
        history.cut = Cut { begin_ns: u64::MAX, end_ns: u64::MAX };
        let after = history.judged().0;
        prop_assert!(after.lost >= before.lost && after.acked >= before.acked && after.ghost <= before.ghost);
    }
}

/// A history in which enough happened.
fn long() -> History {
    (0..100).map(history).find(|history| history.acked().len() > 60).unwrap()
}

/// What a fault changes in the counts, beside what is kept.
fn planted(fault: impl FnOnce(&mut History)) -> Counts {
    let mut history = long();
    fault(&mut history);
    let (counts, _) = history.judged();
    assert_eq!(counts, reference(&history));
    counts
}

#[test]
fn a_commit_dropped_in_the_middle_is_a_hole() {
    let counts = planted(|history| {
        let (_, key) = history.acked()[10];
        history.database.remove(key);
    });
    assert_eq!((counts.lost, counts.holes, counts.index_differences), (1, 1, 0));
    assert!(counts.oldest_lost_ack_ns.is_some());
}

#[test]
fn a_dropped_tail_is_lost_without_a_hole() {
    let mut oldest = 0;
    let counts = planted(|history| {
        let acked = history.acked();
        oldest = acked[acked.len() - 7].0;
        let gone =
            |record: &&Record| record.invoke_ns >= oldest || matches!(record.end, End::Acked(at) if at >= oldest);
        let keys: Vec<Key> = history.records.iter().filter(gone).map(|record| record.key).collect();
        for key in keys {
            history.database.remove(key);
        }
    });
    assert_eq!((counts.lost, counts.holes, counts.oldest_lost_ack_ns), (7, 0, Some(oldest)));
}

#[test]
fn ghosts_are_of_three_kinds() {
    for end in [End::Refused, End::Unsent] {
        let counts = planted(|history| {
            let key = history.records.iter().find(|record| record.end == end).unwrap().key;
            history.database.add(key);
        });
        assert_eq!((counts.ghost, counts.lost, counts.torn, counts.wrong), (1, 0, 0, 0));
    }
    let never = planted(|history| history.database.add(Key { connection: 2, sequence: 1000 }));
    assert_eq!(never.ghost, 1);
    let late = planted(|history| {
        let key = Key {
            connection: 1,
            sequence: history.records.iter().filter(|one| one.key.connection == 1).count() as u64 + 1,
        };
        let invoke_ns = history.cut.end_ns;
        let at = history.records.iter().position(|record| record.key.connection == 2).unwrap_or(history.records.len());
        history.records.insert(at, Record { key, invoke_ns, end: End::Acked(invoke_ns + 5) });
        history.database.add(key);
    });
    assert_eq!(late.ghost, 1);
}

#[test]
fn a_late_acknowledgement_is_unknown_whether_it_is_there_or_not() {
    let of = |is_there: bool| {
        planted(|history| {
            let (_, key) = history.acked()[20];
            let cut_ns = history.cut.begin_ns;
            history
                .records
                .iter_mut()
                .filter(|record| record.key == key)
                .for_each(|record| record.end = End::Acked(cut_ns));
            if !is_there {
                history.database.remove(key);
            }
        })
    };
    let before = planted(|_| {});
    for counts in [of(true), of(false)] {
        assert_eq!((counts.acked, counts.unknown), (before.acked - 1, before.unknown + 1));
        assert_eq!((counts.lost, counts.ghost), (0, 0));
    }
}

#[test]
fn a_part_is_torn_either_way() {
    let without_transfer = planted(|history| {
        let (_, key) = history.acked()[3];
        history.database.parts.retain(|(of, ..)| *of != key);
    });
    let without_row = planted(|history| {
        let (_, key) = history.acked()[3];
        history.database.rows.retain(|(of, ..)| *of != key);
        history.database.index.retain(|(of, _)| *of != key);
    });
    let before = planted(|_| {});
    for counts in [without_transfer, without_row] {
        assert_eq!((counts.torn, counts.lost, counts.kept), (1, 0, before.kept - 1));
    }
}

#[test]
fn content_of_another_is_wrong() {
    let one = planted(|history| history.database.rows[5].2 = false);
    let part = planted(|history| history.database.parts[5].2 = false);
    // Each of two swapped rows has the content of the other.
    let swapped = planted(|history| (5..7).for_each(|at| history.database.rows[at].2 = false));
    assert_eq!((one.wrong, part.wrong, swapped.wrong), (1, 1, 2));
}

#[test]
fn the_index_is_held_against_the_table() {
    let missing = planted(|history| _ = history.database.index.remove(4));
    assert_eq!((missing.index_differences, missing.lost), (1, 0));
    let stray = planted(|history| history.database.index.push((Key { connection: 3, sequence: 500 }, TAG)));
    assert_eq!((stray.index_differences, stray.ghost), (1, 0));
    let another = planted(|history| history.database.index[4].1 = 99);
    assert_eq!(another.index_differences, 2);
    // A tag that is wrong in both is no difference between them.
    let both = planted(|history| {
        let key = history.database.rows[4].0;
        history.database.rows[4].1 = 99;
        history.database.index.iter_mut().filter(|(of, _)| *of == key).for_each(|entry| entry.1 = 99);
    });
    assert_eq!((both.index_differences, both.wrong), (0, 1));
}

#[test]
fn a_row_that_comes_twice_is_a_ghost() {
    let counts = planted(|history| {
        let again = history.database.rows[2];
        history.database.rows.push(again);
    });
    assert_eq!((counts.ghost, counts.lost, counts.wrong), (1, 0, 0));
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let counts = planted(|history| {
        history.database.rows.reverse();
        history.database.index.rotate_left(7);
        history.database.parts.reverse();
    });
    assert_eq!(counts, planted(|_| {}));
}

#[test]
fn without_transactions_only_rows_are_judged() {
    let mut history = long();
    history.database.parts.clear();
    let (counts, examples) = history.judged_in(false, true);
    assert_eq!((counts.kept, counts.torn, examples.len()), (counts.acked, 0, 0));
    let (_, key) = history.acked()[0];
    history.database.remove(key);
    let (counts, _) = history.judged_in(false, true);
    assert_eq!((counts.lost, counts.holes), (1, 1));
}

#[test]
fn what_a_file_cut_off_lacks_is_not_judged() {
    let mut history = long();
    history.database.add(Key { connection: 1, sequence: 10_000 });
    assert_eq!(history.judged_in(true, false).0.ghost, 0);
    assert_eq!(history.judged_in(true, true).0.ghost, 1);
    // A connection that there never was is none that a cut-off file lacks.
    history.database.add(Key { connection: 77, sequence: 1 });
    assert_eq!(history.judged_in(true, false).0.ghost, 1);
}

#[test]
fn rows_of_earlier_runs_are_left_alone_but_for_their_index() {
    let judged = |rows: &[i64], entries: &[i64]| {
        let mut book = Book::new(5, 1, PARTS, true);
        book.is_complete();
        let key = |sequence: &i64| Key { connection: 4, sequence: *sequence as u64 };
        for sequence in rows {
            book.row(key(sequence), TAG, false, true);
        }
        for sequence in entries {
            book.index(key(sequence), TAG, false);
        }
        book.index_was_read();
        book.judged(Cut { begin_ns: u64::MAX, end_ns: u64::MAX }, (&[], None)).0
    };
    assert_eq!(judged(&[1, 2, 3], &[3, 1, 2]), Counts::default());
    assert_eq!(judged(&[1, 2, 3], &[3, 1]).index_differences, 1);
    assert_eq!(judged(&[1, 2], &[3, 1]).index_differences, 1);
}

#[test]
fn records_out_of_order_are_refused() {
    let record = |connection, sequence| Record { key: Key { connection, sequence }, invoke_ns: 1, end: End::Unsent };
    let mut book = Book::new(3, 2, PARTS, true);
    assert!(book.sent(record(3, 1)).is_ok() && book.sent(record(3, 2)).is_ok() && book.sent(record(4, 1)).is_ok());
    for wrong in [record(3, 2), record(3, 4), record(2, 1), record(5, 1), record(4, 0)] {
        assert!(book.sent(wrong).unwrap_err().contains("out of order"));
    }
}

#[test]
fn examples_say_when() {
    let mut history = long();
    let (ack_ns, key) = history.acked()[10];
    history.database.remove(key);
    let (_, examples) = history.judged();
    let before = (history.cut.begin_ns - ack_ns) as f64 / 1e6;
    assert!(examples[0].text.starts_with(&format!("was acknowledged {before:.3} ms before the cut and is gone")));
    assert_eq!(
        (examples[0].connection, examples[0].sequence, examples[0].what),
        (key.connection, key.sequence, "holes")
    );
    assert_eq!(history.record(key).key, key);
}
