//! DDL beside the transactions (`--ddl=on`): tables made, filled, altered, renamed and dropped, partitions filled and
//! truncated. What each statement does follows from its number ([`Step`]), so that what must be there after a cut
//! follows from how many were acknowledged ([`judge_statements`]).
//!
//! The statements on one object come one after the other, so what is there must be the state after one of them: not
//! before the last that was acknowledged, not after the last that was sent.

use std::collections::BTreeMap;

use super::record::{End, Key, Record};
use super::verdict::{Cut, Fate, Finding};
use crate::names::quoted;

/// Partitions of the table [`PARTITIONED`].
pub const PARTITIONS: u64 = 4;

/// Rows that a table or a partition is filled with: more than a page of them.
pub const ROWS: u64 = 100;

/// Ids of a partition.
pub const IDS: u64 = 1000;

/// The table whose partitions are filled and truncated.
pub const PARTITIONED: &str = "ddl_parts";

/// What all tables of this part are called like.
pub const PREFIX: &str = "ddl_";

/// What marks them as ours, as it marks the tables of prepare.
const COMMENT: &str = "COMMENT = 'dbdyno ledger'";

/// Columns of a row, but for those that ALTER adds.
const COLUMNS: &str = "id BIGINT NOT NULL, value BIGINT NOT NULL, filler CHAR(200) NOT NULL, PRIMARY KEY (id)";

/// Statements of the first round; of the others, which also drop what the one before left.
const FIRST_ROUND: u64 = 6;
const ROUND: u64 = 7;

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// CREATE TABLE of this round.
    Create(u64),
    /// INSERT of its rows.
    Fill(u64),
    /// ALTER TABLE ... ADD COLUMN.
    Alter(u64),
    /// RENAME TABLE.
    Rename(u64),
    /// DROP TABLE of the round before, which is given.
    Drop(u64),
    /// INSERT of rows into a partition, with this value.
    FillPartition(u64, u64),
    /// ALTER TABLE ... TRUNCATE PARTITION.
    Truncate(u64),
}

/// What a statement changes; what it does to one does not depend on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// Name and columns of the table of a round.
    Table(u64),
    /// Its rows.
    Rows(u64),
    /// The rows of a partition.
    Partition(u64),
}

impl Step {
    /// The one with a number, from 1.
    pub fn from_number(number: u64) -> Self {
        let at = number - 1;
        let (round, place) = match at.checked_sub(FIRST_ROUND) {
            None => (0, at),
            Some(at) => (1 + at / ROUND, at % ROUND),
        };
        let partition = round % PARTITIONS;
        match place {
            0 => Self::Create(round),
            1 => Self::Fill(round),
            2 => Self::Alter(round),
            3 => Self::Rename(round),
            4 => Self::FillPartition(partition, number),
            5 => Self::Truncate(partition),
            _ => Self::Drop(round - 1),
        }
    }

    /// What it changes.
    pub fn object(self) -> Object {
        match self {
            Self::Create(round) | Self::Alter(round) | Self::Rename(round) | Self::Drop(round) => Object::Table(round),
            Self::Fill(round) => Object::Rows(round),
            Self::FillPartition(partition, _) | Self::Truncate(partition) => Object::Partition(partition),
        }
    }

    /// The round whose table it makes.
    pub fn makes(self) -> Option<u64> {
        if let Self::Create(round) = self { Some(round) } else { None }
    }

    /// Whether it is DDL, not an INSERT.
    pub fn is_ddl(self) -> bool {
        !matches!(self, Self::Fill(_) | Self::FillPartition(..))
    }

    /// In words.
    pub fn name(self) -> String {
        match self {
            Self::Create(round) => format!("CREATE TABLE {}", initial_name(round)),
            Self::Fill(round) => format!("INSERT INTO {}", initial_name(round)),
            Self::Alter(round) => format!("ALTER TABLE {} ADD COLUMN", initial_name(round)),
            Self::Rename(round) => format!("RENAME TABLE {}", initial_name(round)),
            Self::Drop(round) => format!("DROP TABLE {}", renamed(round)),
            Self::FillPartition(partition, _) => format!("INSERT INTO {PARTITIONED} PARTITION p{partition}"),
            Self::Truncate(partition) => format!("ALTER TABLE {PARTITIONED} TRUNCATE PARTITION p{partition}"),
        }
    }

    /// As SQL, in a schema and for an engine.
    pub fn sql(self, schema: &str, engine: &str) -> String {
        let of = |name: String| format!("{}.{}", quoted(schema), quoted(&name));
        let filled = |table: String, first: u64, value: u64| {
            let row = |id: u64| format!("({id}, {value}, '{}')", "x".repeat(200));
            let rows: Vec<String> = (first..first + ROWS).map(row).collect();
            format!("INSERT INTO {table} (id, value, filler) VALUES {}", rows.join(", "))
        };
        match self {
            Self::Create(round) => {
                format!("CREATE TABLE {} ({COLUMNS}) ENGINE = {engine} {COMMENT}", of(initial_name(round)))
            }
            Self::Fill(round) => filled(of(initial_name(round)), 1, round),
            Self::Alter(round) => {
                format!("ALTER TABLE {} ADD COLUMN added BIGINT NOT NULL DEFAULT {round}", of(initial_name(round)))
            }
            Self::Rename(round) => format!("RENAME TABLE {} TO {}", of(initial_name(round)), of(renamed(round))),
            Self::Drop(round) => format!("DROP TABLE {}", of(renamed(round))),
            Self::FillPartition(partition, value) => filled(of(PARTITIONED.into()), partition * IDS, value),
            Self::Truncate(partition) => {
                format!("ALTER TABLE {} TRUNCATE PARTITION p{partition}", of(PARTITIONED.into()))
            }
        }
    }
}

/// The partitioned table, made before the first statement.
pub fn partitioned(schema: &str, engine: &str) -> String {
    let part = |number: u64| format!("PARTITION p{number} VALUES LESS THAN ({})", (number + 1) * IDS);
    let parts: Vec<String> = (0..PARTITIONS).map(part).collect();
    format!(
        "CREATE TABLE {}.{} ({COLUMNS}) ENGINE = {engine} {COMMENT} PARTITION BY RANGE (id) ({})",
        quoted(schema),
        quoted(PARTITIONED),
        parts.join(", ")
    )
}

/// Name of a round's table at first.
pub fn initial_name(round: u64) -> String {
    format!("{PREFIX}{round}")
}

/// Its name after RENAME.
pub fn renamed(round: u64) -> String {
    format!("{PREFIX}{round}_renamed")
}

/// The state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// There is no such table.
    Absent,
    /// A table as it was made.
    Made,
    /// With its column more.
    Altered,
    /// And under its other name.
    Renamed,
    /// There are no rows, or the table is not there.
    Empty,
    /// All rows, with this value.
    Full(u64),
    /// Something else, in words.
    Strange(String),
}

/// What was seen on the server; of an object that is missing here nothing could be.
pub type Observed = BTreeMap<Object, State>;

/// What became of every statement.
#[derive(Debug, Default)]
pub struct DdlVerdict {
    /// Each.
    pub findings: Vec<Finding>,
    /// When the youngest was sent of which something is there for sure.
    pub newest_invoke_ns: Option<u64>,
}

/// The state of an object after a statement.
fn after(step: Step) -> State {
    match step {
        Step::Create(_) => State::Made,
        Step::Alter(_) => State::Altered,
        Step::Rename(_) => State::Renamed,
        Step::Drop(_) => State::Absent,
        Step::Fill(value) | Step::FillPartition(_, value) => State::Full(value),
        Step::Truncate(_) => State::Empty,
    }
}

fn before_all(object: Object) -> State {
    match object {
        Object::Table(_) => State::Absent,
        Object::Rows(_) | Object::Partition(_) => State::Empty,
    }
}

/// Judges all objects. `seen` says of one what is there, `None` where that could not be seen.
pub fn judge_statements(records: &[Record], cut: Cut, seen: impl Fn(Object) -> Option<State>) -> DdlVerdict {
    let mut chains: BTreeMap<Object, Vec<&Record>> = BTreeMap::new();
    let mut judged = DdlVerdict::default();
    for record in records {
        if matches!(record.end, End::Refused | End::Unsent) {
            judged.add(record, Fate::Refused, String::new());
        } else {
            chains.entry(Step::from_number(record.key.sequence).object()).or_default().push(record);
        }
    }
    for (object, chain) in chains {
        if let Some(state) = seen(object) {
            judged.chain(object, &chain, &state, cut);
        }
    }
    judged
}

impl DdlVerdict {
    fn add(&mut self, record: &Record, fate: Fate, text: String) {
        self.findings.push(Finding { key: record.key, fate, text });
    }

    fn chain(&mut self, object: Object, chain: &[&Record], state: &State, cut: Cut) {
        let acked_ns = |record: &Record| match record.end {
            End::Acked(ack_ns) if ack_ns < cut.begin_ns => Some(ack_ns),
            _ => None,
        };
        let least = chain.iter().rposition(|record| acked_ns(record).is_some()).map_or(0, |last| last + 1);
        let most = chain.iter().rposition(|record| record.invoke_ns < cut.end_ns).map_or(0, |last| last + 1).max(least);
        let states: Vec<State> = std::iter::once(before_all(object))
            .chain(chain.iter().map(|record| after(Step::from_number(record.key.sequence))))
            .collect();
        let Some(there) = nearest(&states, state, least, most) else {
            let key = chain[least.saturating_sub(1)].key;
            let text = format!("{}: {}", Step::from_number(key.sequence).name(), words(state));
            self.findings.push(Finding { key, fate: Fate::Wrong, text });
            return;
        };
        for (number, record) in (1..).zip(chain) {
            let name = Step::from_number(record.key.sequence).name();
            match acked_ns(record) {
                Some(_) if number <= there => self.add(record, Fate::Kept, name),
                Some(ack_ns) => self.add(record, Fate::Lost(ack_ns), format!("({name}) ")),
                None if number <= most => self.add(record, Fate::Unknown, name),
                None if number <= there => self.add(record, Fate::Ghost, format!("({name}) was sent after the cut")),
                None => {}
            }
        }
        let is_sure = states.iter().filter(|other| *other == state).count() == 1;
        if is_sure && (1..=most).contains(&there) {
            self.newest_invoke_ns = self.newest_invoke_ns.max(Some(chain[there - 1].invoke_ns));
        }
    }
}

/// Where in a chain of states one is: within what is allowed if it can be, else before that, else after.
fn nearest(states: &[State], state: &State, least: usize, most: usize) -> Option<usize> {
    let within = (least..=most).rev().find(|&at| states[at] == *state);
    let before = || (0..least).rev().find(|&at| states[at] == *state);
    within.or_else(before).or_else(|| (most + 1..states.len()).find(|&at| states[at] == *state))
}

fn words(state: &State) -> String {
    match state {
        State::Strange(text) => text.clone(),
        State::Full(value) => format!("there are rows with the value {value}, which were never sent"),
        other => format!("what is there ({other:?}) comes of no statement"),
    }
}

/// A finding that belongs to no statement that was sent.
pub fn stray(text: String) -> Finding {
    Finding { key: Key { connection: 0, sequence: 0 }, fate: Fate::Ghost, text }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;
    use proptest::prelude::*;

    use super::super::record::{End, Record};
    use super::super::verdict::{Cut, Fate};
    use super::{DdlVerdict, Object, Observed, State, Step, judge_statements};
    use crate::ledger::record::Key;

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
            let step = Step::from_number(number);
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

    fn judge(records: &[Record], observed: &Observed) -> DdlVerdict {
        judge_statements(records, CUT, |object| match object {
            Object::Table(_) => Some(observed.get(&object).cloned().unwrap_or(State::Absent)),
            Object::Rows(_) => observed.get(&object).cloned(),
            Object::Partition(_) => Some(observed.get(&object).cloned().unwrap_or(State::Empty)),
        })
    }

    fn count(judged: &DdlVerdict, of: impl Fn(Fate) -> bool) -> usize {
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
            let shows = |number: u64| !matches!(Step::from_number(number), Step::Truncate(_) | Step::FillPartition(..) | Step::Fill(_));
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
        let lost: Vec<u64> =
            judged.findings.iter().filter(|finding| is_bad(finding.fate)).map(|finding| finding.key.sequence).collect();
        assert_eq!(lost, [6]);
        assert!(judged.findings.iter().any(|finding| finding.text.contains("TRUNCATE PARTITION p0")));
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
}
