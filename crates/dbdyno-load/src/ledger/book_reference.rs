//! Random histories, ways to spoil them, and a reference of the classifier that is made of the definitions alone.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_common::random::Random;

use super::book::Book;
use super::content::Key;
use super::record::{End, Record};
use super::verdict::{Counts, Cut, Example};

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

/// What is in the tables after a cut that took only what it may take: all that was acknowledged before it, and some of the
/// rest that was sent by then.
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
        self.judged_in(true, true)
    }

    pub fn judged_in(&self, transactional: bool, is_whole: bool) -> (Counts, Vec<Example>) {
        let mut book = Book::new(1, 4, PARTS, transactional);
        self.records.iter().for_each(|record| book.sent(*record).unwrap());
        if is_whole {
            book.is_complete();
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
    let (Some(found), Some(any)) = (pick(&there, random), pick(&sent, random)) else { return };
    let database = &mut history.database;
    match random.below(10) {
        0 => database.remove(found),
        1 => database.rows.retain(|(key, ..)| *key != found),
        2 => database.parts.retain(|(key, part, _)| *key != found || *part != 1),
        3 => database.index.retain(|(key, _)| *key != found),
        4 if !there.contains(&any) => database.add(any),
        5 => database.add(Key { connection: 9, sequence: random.below(3) + 1 }),
        6 => database.rows.iter_mut().filter(|(key, ..)| *key == found).for_each(|row| row.2 = false),
        7 => database.parts.iter_mut().filter(|(key, ..)| *key == found).for_each(|part| part.2 = false),
        8 => database.parts.push((found, 0, true)),
        _ => {
            let turn = random.below(database.rows.len().max(1) as u64) as usize;
            let turn = turn.min(database.rows.len());
            database.rows.rotate_left(turn);
            database.index.reverse();
        }
    }
}
