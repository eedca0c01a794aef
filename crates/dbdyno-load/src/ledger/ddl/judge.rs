//! Whether what is left of the tables is what some of the statements leave behind, and of which: a pure function.
//!
//! The statements on one object come one after the other, so what is there must be the state after one of them: not before the
//! last that was acknowledged, not after the last that was sent.

use std::collections::BTreeMap;

use super::super::content::Key;
use super::super::record::{End, Record};
use super::super::verdict::{Cut, Fate, Finding};
use super::steps::{Object, Step};

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
pub struct Judged {
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
pub fn judged(records: &[Record], cut: Cut, seen: impl Fn(Object) -> Option<State>) -> Judged {
    let mut chains: BTreeMap<Object, Vec<&Record>> = BTreeMap::new();
    let mut judged = Judged::default();
    for record in records {
        if matches!(record.end, End::Refused | End::Unsent) {
            judged.add(record, Fate::Refused, String::new());
        } else {
            chains.entry(Step::of(record.key.sequence).object()).or_default().push(record);
        }
    }
    for (object, chain) in chains {
        if let Some(state) = seen(object) {
            judged.chain(object, &chain, &state, cut);
        }
    }
    judged
}

impl Judged {
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
            .chain(chain.iter().map(|record| after(Step::of(record.key.sequence))))
            .collect();
        let Some(there) = nearest(&states, state, least, most) else {
            let key = chain[least.saturating_sub(1)].key;
            let text = format!("{}: {}", Step::of(key.sequence).name(), words(state));
            self.findings.push(Finding { key, fate: Fate::Wrong, text });
            return;
        };
        for (number, record) in (1..).zip(chain) {
            let name = Step::of(record.key.sequence).name();
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
