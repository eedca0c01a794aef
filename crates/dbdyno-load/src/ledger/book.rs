//! What was sent, beside what was found after a crash: a pure function of both and of the cut says what was lost.
//!
//! Of a transaction that was acknowledged before the cut all must be there. One that was sent before the end of the cut
//! and not acknowledged before it may be there or not, whole. Whatever else is there is a ghost.

use std::collections::BTreeMap;

use super::record::{End, Key, Record};
use super::verdict::{Counts, Cut, Entry, Example, Extent, Finding, Traces, Verdict};

/// Rows that belong to nothing that was sent: of more than so many only the number is kept.
const STRAYS_MAX: usize = 1_000_000;

/// All that was sent, and what was found of it.
#[derive(Debug)]
pub struct Book {
    transactional: bool,
    all_parts: u16,
    first: u32,
    connections: Vec<Vec<Entry>>,
    /// Whether nothing is missing from the records.
    is_whole: bool,
    strays: BTreeMap<Key, Traces>,
    uncounted_strays: u64,
    /// Tags that are not what they were to be, of rows.
    odd_tags: BTreeMap<Key, i64>,
    /// Rows of earlier runs less their entries in the index, and the same of a sum over all of them.
    earlier: (i64, u64),
    index_read: bool,
    index_strays: u64,
}

impl Book {
    /// For connections from `first` on whose transfers have so many parts.
    pub fn new(first: u32, connections: u32, parts: usize, transactional: bool) -> Self {
        Self {
            transactional,
            all_parts: ((1_u32 << parts) - 1) as u16,
            first,
            connections: vec![Vec::new(); connections as usize],
            is_whole: false,
            strays: BTreeMap::new(),
            uncounted_strays: 0,
            odd_tags: BTreeMap::new(),
            earlier: (0, 0),
            index_read: false,
            index_strays: 0,
        }
    }

    /// Adds what came of a transaction; a connection's come in their order.
    ///
    /// # Errors
    /// They do not, or the connection is none of this run.
    pub fn sent(&mut self, record: Record) -> Result<(), String> {
        let Key { connection, sequence } = record.key;
        let at = connection.checked_sub(self.first).and_then(|at| self.connections.get_mut(at as usize));
        let Some(entries) = at.filter(|entries| entries.len() as u64 + 1 == sequence) else {
            return Err(format!("has transaction {sequence} of connection {connection} out of order"));
        };
        entries.push(Entry { invoke_ns: record.invoke_ns, end: record.end, seen: Traces::default() });
        Ok(())
    }

    /// Nothing is missing from what was sent.
    pub fn mark_complete(&mut self) {
        self.is_whole = true;
    }

    /// Where what is found of a transaction goes; `None` if that is of an earlier run, or of no use.
    fn traces_of(&mut self, key: Key) -> Option<&mut Traces> {
        let at = key.connection.checked_sub(self.first)? as usize;
        let number = usize::try_from(key.sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        if let (Some(entries), Some(number)) = (self.connections.get_mut(at), number) {
            if let Some(entry) = entries.get_mut(number) {
                return Some(&mut entry.seen);
            }
            if !self.is_whole {
                return None;
            }
        }
        if self.strays.len() >= STRAYS_MAX && !self.strays.contains_key(&key) {
            self.uncounted_strays += 1;
            return None;
        }
        Some(self.strays.entry(key).or_default())
    }

    /// A row of the ledger was found. `odd_tag` is its tag if that is not what it was to be; `is_right` whether the
    /// rest is.
    pub fn row(&mut self, key: Key, tag: i64, is_odd: bool, is_right: bool) {
        if key.connection < self.first {
            self.earlier.0 += 1;
            self.earlier.1 = self.earlier.1.wrapping_add(fingerprint(key, tag));
            return;
        }
        let Some(seen) = self.traces_of(key) else { return };
        if seen.row {
            seen.again = seen.again.saturating_add(1);
        }
        seen.row = true;
        seen.wrong |= is_odd || !is_right;
        if is_odd {
            self.odd_tags.insert(key, tag);
        }
    }

    /// An entry of the index was found; all rows were before.
    pub fn index(&mut self, key: Key, tag: i64, is_odd: bool) {
        self.index_read = true;
        if key.connection < self.first {
            self.earlier.0 -= 1;
            self.earlier.1 = self.earlier.1.wrapping_sub(fingerprint(key, tag));
            return;
        }
        let fits = match self.odd_tags.get(&key) {
            Some(of_row) => *of_row == tag,
            None => !is_odd,
        };
        let Some(seen) = self.traces_of(key) else { return };
        if seen.row && fits && !seen.indexed {
            seen.indexed = true;
        } else {
            self.index_strays += 1;
        }
    }

    /// The index was read to its end.
    pub fn index_was_read(&mut self) {
        self.index_read = true;
    }

    /// A row of the transfers was found: its part, from 0, and whether it is what was sent.
    pub fn transferred(&mut self, key: Key, part: i64, is_right: bool) {
        let Some(seen) = self.traces_of(key) else { return };
        match u32::try_from(part).ok().and_then(|part| 1_u16.checked_shl(part)) {
            Some(bit) if seen.parts & bit == 0 => seen.parts |= bit,
            _ => seen.again = seen.again.saturating_add(1),
        }
        seen.wrong |= !is_right;
    }

    /// Counts everything and gives some examples; with what became of DDL, and when the youngest of it was sent that is
    /// there.
    pub fn judged(&self, cut: Cut, (ddl, ddl_newest_ns): (&[Finding], Option<u64>)) -> (Counts, Vec<Example>) {
        let mut verdict = Verdict::new(cut, self.newest_invoke_ns(cut).max(ddl_newest_ns));
        for finding in ddl {
            verdict.ddl(finding);
        }
        for (at, entries) in self.connections.iter().enumerate() {
            for (number, entry) in entries.iter().enumerate() {
                let key = Key { connection: self.first + at as u32, sequence: number as u64 + 1 };
                verdict.entry(key, entry, self.extent(entry.seen));
                self.index_of(key, entry.seen, &mut verdict);
            }
        }
        for (key, seen) in &self.strays {
            // An entry of the index alone is counted there.
            if seen.row || seen.parts != 0 {
                verdict.ghost(*key, "was never sent");
            }
            self.index_of(*key, *seen, &mut verdict);
        }
        verdict.counts.ghost += self.uncounted_strays;
        verdict.counts.index_differences += self.index_strays;
        if self.index_read && self.earlier != (0, 0) {
            verdict.counts.index_differences += self.earlier.0.unsigned_abs().max(1);
        }
        (verdict.counts, verdict.examples)
    }

    fn extent(&self, seen: Traces) -> Extent {
        let parts = if self.transactional { seen.parts } else { 0 };
        match (seen.row, parts) {
            (false, 0) => Extent::Nothing,
            (true, 0) if !self.transactional => Extent::Whole,
            (true, parts) if parts == self.all_parts => Extent::Whole,
            _ => Extent::Part,
        }
    }

    /// When the youngest transaction was sent that is there and may be.
    fn newest_invoke_ns(&self, cut: Cut) -> Option<u64> {
        let there = |entry: &&Entry| {
            matches!(entry.end, End::Acked(_) | End::Unanswered)
                && entry.invoke_ns < cut.end_ns
                && self.extent(entry.seen) == Extent::Whole
        };
        self.connections.iter().flatten().filter(there).map(|entry| entry.invoke_ns).max()
    }

    fn index_of(&self, key: Key, seen: Traces, verdict: &mut Verdict) {
        if self.index_read && seen.row && !seen.indexed {
            verdict.counts.index_differences += 1;
            let count = verdict.counts.index_differences;
            verdict.example(key, "index_differences", count, "has a row and no entry in the index by_tag".into());
        }
    }
}

/// Of a row or its entry in the index, so that sums over both can be compared.
fn fingerprint(key: Key, tag: i64) -> u64 {
    let mixed = u64::from(key.connection).rotate_left(40) ^ key.sequence ^ (tag as u64).rotate_left(17);
    dbdyno_common::random::Random::new(mixed).bits()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use dbdyno_common::random::Random;
    use proptest::prelude::*;

    use super::super::verdict::EXAMPLES_MAX;
    use super::*;
    use crate::ledger::record::{End, Key, Record};
    use crate::ledger::verdict::{Counts, Cut, Example};

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
            let is_index_different = examples.iter().any(|example| example.what == "index_differences");
            prop_assert_eq!(examples.is_empty(), lost + ghost + torn + wrong == 0 && !is_index_different);
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
                sequence: history.records.iter().filter(|record| record.key.connection == 1).count() as u64 + 1,
            };
            let invoke_ns = history.cut.end_ns;
            let at =
                history.records.iter().position(|record| record.key.connection == 2).unwrap_or(history.records.len());
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
        let row = planted(|history| history.database.rows[5].2 = false);
        let part = planted(|history| history.database.parts[5].2 = false);
        // Each of two swapped rows has the content of the other.
        let swapped = planted(|history| (5..7).for_each(|at| history.database.rows[at].2 = false));
        assert_eq!((row.wrong, part.wrong, swapped.wrong), (1, 1, 2));
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
        let (counts, examples) = history.verdict_in(false, true);
        assert_eq!((counts.kept, counts.torn, examples.len()), (counts.acked, 0, 0));
        let (_, key) = history.acked()[0];
        history.database.remove(key);
        let (counts, _) = history.verdict_in(false, true);
        assert_eq!((counts.lost, counts.holes), (1, 1));
    }

    #[test]
    fn what_a_file_cut_off_lacks_is_not_judged() {
        let mut history = long();
        history.database.add(Key { connection: 1, sequence: 10_000 });
        assert_eq!(history.verdict_in(true, false).0.ghost, 0);
        assert_eq!(history.verdict_in(true, true).0.ghost, 1);
        // A connection that there never was is none that a cut-off file lacks.
        history.database.add(Key { connection: 77, sequence: 1 });
        assert_eq!(history.verdict_in(true, false).0.ghost, 1);
    }

    #[test]
    fn rows_of_earlier_runs_are_left_alone_but_for_their_index() {
        let judged = |rows: &[i64], entries: &[i64]| {
            let mut book = Book::new(5, 1, PARTS, true);
            book.mark_complete();
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
        let record =
            |connection, sequence| Record { key: Key { connection, sequence }, invoke_ns: 1, end: End::Unsent };
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

    // Random histories, ways to spoil them, and a reference of the classifier that is made of the definitions alone.

    pub const PARTS: usize = 2;
    pub const TAG: i64 = 7;

    /// What the tables hold: rows by key and the parts of transfers by key.
    #[derive(Debug, Clone, Default)]
    pub struct Database {
        /// Key, tag, and whether the content is right.
        pub rows: Vec<(Key, i64, bool)>,
        pub index: Vec<(Key, i64)>,
        pub parts: Vec<(Key, i64, bool)>,
    }

    impl Database {
        pub fn add(&mut self, key: Key) {
            self.rows.push((key, TAG, true));
            self.index.push((key, TAG));
            self.parts.extend((0..PARTS as i64).map(|part| (key, part, true)));
        }

        pub fn remove(&mut self, key: Key) {
            self.rows.retain(|(of, ..)| *of != key);
            self.index.retain(|(of, _)| *of != key);
            self.parts.retain(|(of, ..)| *of != key);
        }

        fn rows_of(&self, key: Key) -> usize {
            self.rows.iter().filter(|(of, ..)| *of == key).count()
        }

        fn parts_of(&self, key: Key) -> Vec<i64> {
            self.parts.iter().filter(|(of, ..)| *of == key).map(|(_, part, _)| *part).collect()
        }

        fn is_whole(&self, key: Key) -> bool {
            let parts: BTreeSet<i64> = self.parts_of(key).into_iter().collect();
            self.rows_of(key) > 0 && parts == (0..PARTS as i64).collect()
        }

        fn is_there(&self, key: Key) -> bool {
            self.rows_of(key) > 0 || !self.parts_of(key).is_empty()
        }

        fn is_wrong(&self, key: Key) -> bool {
            self.rows.iter().any(|(of, tag, right)| *of == key && (!right || *tag != TAG))
                || self.parts.iter().any(|(of, _, right)| *of == key && !right)
        }

        /// Rows beyond the first of a kind.
        fn again(&self, key: Key) -> usize {
            let parts = self.parts_of(key);
            let once: BTreeSet<i64> = parts.iter().copied().collect();
            self.rows_of(key).saturating_sub(1) + parts.len() - once.len()
        }

        fn index_differences(&self) -> u64 {
            let mut entries: BTreeMap<(Key, i64), i64> = BTreeMap::new();
            for (key, tag, _) in &self.rows {
                // A second row under a key is a ghost; the index has one entry of both.
                entries.entry((*key, *tag)).or_insert(1);
            }
            for entry in &self.index {
                *entries.entry(*entry).or_default() -= 1;
            }
            entries.values().map(|left| left.unsigned_abs()).sum()
        }

        pub fn keys(&self) -> BTreeSet<Key> {
            self.rows.iter().map(|(key, ..)| *key).collect()
        }
    }

    /// Some connections that send at random times, and the tables after all of that.
    #[derive(Debug, Clone)]
    pub struct History {
        pub records: Vec<Record>,
        pub database: Database,
        pub cut: Cut,
    }

    /// What is in the tables after a cut that took only what it may take: all that was acknowledged before it, and some
    /// of the rest that was sent by then.
    pub fn history(seed: u64) -> History {
        let mut random = Random::new(seed);
        let cut = Cut { begin_ns: 5_000, end_ns: 5_000 + random.below(200) };
        let mut history = History { records: Vec::new(), database: Database::default(), cut };
        for connection in 1..=1 + random.below(4) as u32 {
            let mut now_ns = random.below(500);
            for sequence in 1..=random.below(40) {
                let key = Key { connection, sequence };
                let invoke_ns = now_ns + 1 + random.below(100);
                let ack_ns = invoke_ns + 1 + random.below(300);
                let end = match random.below(10) {
                    0 => End::Refused,
                    1 => End::Unsent,
                    2 => End::Unanswered,
                    _ => End::Acked(ack_ns),
                };
                now_ns = ack_ns;
                history.records.push(Record { key, invoke_ns, end });
                let must = matches!(end, End::Acked(ack_ns) if ack_ns < cut.begin_ns);
                let may = matches!(end, End::Acked(_) | End::Unanswered) && invoke_ns < cut.end_ns;
                if must || may && random.chance(0.5) {
                    history.database.add(key);
                }
            }
        }
        history
    }

    impl History {
        pub fn judged(&self) -> (Counts, Vec<Example>) {
            self.verdict_in(true, true)
        }

        pub fn verdict_in(&self, transactional: bool, is_whole: bool) -> (Counts, Vec<Example>) {
            let mut book = Book::new(1, 4, PARTS, transactional);
            self.records.iter().for_each(|record| book.sent(*record).unwrap());
            if is_whole {
                book.mark_complete();
            }
            for (key, tag, is_right) in &self.database.rows {
                book.row(*key, *tag, *tag != TAG, *is_right);
            }
            for (key, tag) in &self.database.index {
                book.index(*key, *tag, *tag != TAG);
            }
            book.index_was_read();
            for (key, part, is_right) in &self.database.parts {
                book.transferred(*key, *part, *is_right);
            }
            book.judged(self.cut, (&[], None))
        }

        /// Keys of what was acknowledged before the cut, by when that was.
        pub fn acked(&self) -> Vec<(u64, Key)> {
            let acked = self.records.iter().filter_map(|record| match record.end {
                End::Acked(ack_ns) if ack_ns < self.cut.begin_ns => Some((ack_ns, record.key)),
                _ => None,
            });
            let mut acked: Vec<_> = acked.collect();
            acked.sort_unstable();
            acked
        }

        pub fn record(&self, key: Key) -> &Record {
            self.records.iter().find(|record| record.key == key).unwrap()
        }
    }

    /// The definitions, one after the other, without a thought of speed.
    pub fn reference(history: &History) -> Counts {
        let History { records, database, cut } = history;
        let is_refused = |record: &Record| matches!(record.end, End::Refused | End::Unsent);
        let is_acked = |record: &Record| matches!(record.end, End::Acked(ack_ns) if ack_ns < cut.begin_ns);
        let is_late = |record: &Record| !is_refused(record) && record.invoke_ns >= cut.end_ns;
        let ack_ns = |record: &Record| if let End::Acked(ack_ns) = record.end { ack_ns } else { unreachable!() };
        let count = |of: &dyn Fn(&Record) -> bool| records.iter().filter(|record| of(record)).count() as u64;
        let judged = |record: &Record| !is_refused(record) && !is_late(record);
        let lost = |record: &Record| is_acked(record) && !database.is_there(record.key);
        let has_younger = |record: &Record| {
            lost(record)
                && records
                    .iter()
                    .any(|other| judged(other) && database.is_whole(other.key) && ack_ns(record) < other.invoke_ns)
        };
        let known: BTreeSet<Key> = records.iter().map(|record| record.key).collect();
        let all: BTreeSet<Key> =
            database.rows.iter().map(|row| row.0).chain(database.parts.iter().map(|part| part.0)).collect();
        let strays = all.difference(&known).count() as u64;
        let again: usize = records.iter().map(|record| database.again(record.key)).sum();
        Counts {
            acked: count(&is_acked),
            unknown: count(&|record| judged(record) && !is_acked(record)),
            refused: count(&is_refused),
            kept: count(&|record| is_acked(record) && database.is_whole(record.key)),
            lost: count(&lost),
            holes: count(&has_younger),
            ghost: count(&|record| !judged(record) && database.is_there(record.key)) + strays + again as u64,
            torn: count(&|record| judged(record) && database.is_there(record.key) && !database.is_whole(record.key)),
            wrong: count(&|record| judged(record) && database.is_wrong(record.key)),
            oldest_lost_ack_ns: records.iter().filter(|record| lost(record)).map(ack_ns).min(),
            index_differences: database.index_differences(),
        }
    }

    /// Spoils the tables in some random way.
    pub fn spoil(history: &mut History, random: &mut Random) {
        let there: Vec<Key> = history.database.keys().into_iter().collect();
        let sent: Vec<Key> = history.records.iter().map(|record| record.key).collect();
        let pick = |keys: &[Key], random: &mut Random| keys.get(random.below(keys.len() as u64) as usize).copied();
        let (Some(present), Some(any)) = (pick(&there, random), pick(&sent, random)) else { return };
        let database = &mut history.database;
        match random.below(10) {
            0 => database.remove(present),
            1 => database.rows.retain(|(key, ..)| *key != present),
            2 => database.parts.retain(|(key, part, _)| *key != present || *part != 1),
            3 => database.index.retain(|(key, _)| *key != present),
            4 if !there.contains(&any) => database.add(any),
            5 => database.add(Key { connection: 9, sequence: random.below(3) + 1 }),
            6 => database.rows.iter_mut().filter(|(key, ..)| *key == present).for_each(|row| row.2 = false),
            7 => database.parts.iter_mut().filter(|(key, ..)| *key == present).for_each(|part| part.2 = false),
            8 => database.parts.push((present, 0, true)),
            _ => {
                let turn = random.below(database.rows.len().max(1) as u64) as usize;
                let turn = turn.min(database.rows.len());
                database.rows.rotate_left(turn);
                database.index.reverse();
            }
        }
    }
}
