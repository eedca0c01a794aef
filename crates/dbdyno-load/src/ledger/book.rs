//! What was sent, beside what was found after a crash: a pure function of both and of the cut says what was lost.
//!
//! Of a transaction that was acknowledged before the cut all must be there. One that was sent before the end of the cut and
//! not acknowledged before it may be there or not, whole. Whatever else is there is a ghost.

use std::collections::BTreeMap;

use super::content::Key;
use super::record::{End, Record};
use super::verdict::{Counts, Cut, Entry, Example, Extent, Finding, Seen, Verdict};

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
    strays: BTreeMap<Key, Seen>,
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
        entries.push(Entry { invoke_ns: record.invoke_ns, end: record.end, seen: Seen::default() });
        Ok(())
    }

    /// Nothing is missing from what was sent.
    pub fn is_complete(&mut self) {
        self.is_whole = true;
    }

    /// Where what is found of a transaction goes; `None` if that is of an earlier run, or of no use.
    fn seen(&mut self, key: Key) -> Option<&mut Seen> {
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

    /// A row of the ledger was found. `odd_tag` is its tag if that is not what it was to be; `is_right` whether the rest is.
    pub fn row(&mut self, key: Key, tag: i64, is_odd: bool, is_right: bool) {
        if key.connection < self.first {
            self.earlier.0 += 1;
            self.earlier.1 = self.earlier.1.wrapping_add(fingerprint(key, tag));
            return;
        }
        let Some(seen) = self.seen(key) else { return };
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
        let Some(seen) = self.seen(key) else { return };
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
        let Some(seen) = self.seen(key) else { return };
        match u32::try_from(part).ok().and_then(|part| 1_u16.checked_shl(part)) {
            Some(bit) if seen.parts & bit == 0 => seen.parts |= bit,
            _ => seen.again = seen.again.saturating_add(1),
        }
        seen.wrong |= !is_right;
    }

    /// Counts everything and gives some examples; with what became of DDL, and when the youngest of it was sent that is there.
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

    fn extent(&self, seen: Seen) -> Extent {
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

    fn index_of(&self, key: Key, seen: Seen, verdict: &mut Verdict) {
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
#[path = "book_tests.rs"]
mod tests;
