//! What is counted, and which examples are given: a pure function of what was sent, what is there, and the cut.

use serde::Serialize;

use super::record::{End, Key};

/// Examples of one kind, and of all kinds.
const EXAMPLES_OF_KIND: u64 = 4;
pub const EXAMPLES_MAX: usize = 20;

/// When the power was cut: what was acknowledged before `begin_ns` must be there, what was sent at or after `end_ns`
/// can't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// `CLOCK_MONOTONIC`, ns.
    pub begin_ns: u64,
    /// See there.
    pub end_ns: u64,
}

/// What was counted. Transactions, but for `index_differences`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Acknowledged before the cut.
    pub acked: u64,
    /// Sent before the end of the cut and not acknowledged before it: kept or not, never judged.
    pub unknown: u64,
    /// Refused by the server, or given up before their COMMIT was sent.
    pub refused: u64,
    /// Acknowledged, and all of it is there.
    pub kept: u64,
    /// Acknowledged, and nothing of it is there.
    pub lost: u64,
    /// Of the lost: one that was sent after their acknowledgement is there.
    pub holes: u64,
    /// There, though refused, sent after the cut or never; or there twice.
    pub ghost: u64,
    /// There in part, be they acknowledged or unknown.
    pub torn: u64,
    /// There with other content than was sent.
    pub wrong: u64,
    /// When the oldest of the lost was acknowledged.
    pub oldest_lost_ack_ns: Option<u64>,
    /// Entries of the index without their row, and rows without their entry.
    pub index_differences: u64,
}

/// One that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Which.
    pub connection: u32,
    /// Its number there.
    pub sequence: u64,
    /// As the field of [`Counts`].
    pub what: &'static str,
    /// In words.
    pub text: String,
}

/// What is found of one transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traces {
    /// Its row.
    pub row: bool,
    /// The entry of the index.
    pub indexed: bool,
    /// With other content than was sent.
    pub wrong: bool,
    /// Rows beyond the first.
    pub again: u8,
    /// A bit for each part of the transfer.
    pub parts: u16,
}

/// One transaction.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// When it was sent.
    pub invoke_ns: u64,
    /// What came of it.
    pub end: End,
    /// What is there.
    pub seen: Traces,
}

/// How much of a transaction is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// None of it.
    Nothing,
    /// Not all of it.
    Part,
    /// All.
    Whole,
}

/// What became of a DDL statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was refused.
    Refused,
    /// Sent, and not acknowledged before the cut.
    Unknown,
    /// Acknowledged, and its effect is there.
    Kept,
    /// Acknowledged at this time, and its effect is not there.
    Lost(u64),
    /// Its effect is there and can't be.
    Ghost,
    /// What is there no sequence of the statements leaves behind.
    Wrong,
}

/// Of one DDL statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its number, on connection 0.
    pub key: Key,
    /// What became of it.
    pub fate: Fate,
    /// In words, for an example.
    pub text: String,
}

/// Counts.
#[derive(Debug)]
pub struct Verdict {
    cut: Cut,
    /// When the youngest was sent that is there and may be.
    newest_invoke_ns: Option<u64>,
    /// So far.
    pub counts: Counts,
    /// So far.
    pub examples: Vec<Example>,
}

impl Verdict {
    /// Of a cut; `newest_invoke_ns` is when the youngest was sent that is there and may be.
    pub fn new(cut: Cut, newest_invoke_ns: Option<u64>) -> Self {
        Self { cut, newest_invoke_ns, counts: Counts::default(), examples: Vec::new() }
    }

    /// Counts a DDL statement, or what comes with them.
    pub fn ddl(&mut self, Finding { key, fate, text }: &Finding) {
        match *fate {
            Fate::Refused => self.counts.refused += 1,
            Fate::Unknown => self.counts.unknown += 1,
            Fate::Kept => {
                self.counts.acked += 1;
                self.counts.kept += 1;
            }
            Fate::Lost(ack_ns) => {
                self.counts.acked += 1;
                self.lost(*key, ack_ns, text);
            }
            Fate::Ghost => self.ghost(*key, text),
            Fate::Wrong => {
                self.counts.wrong += 1;
                self.example(*key, "wrong", self.counts.wrong, text.clone());
            }
        }
    }

    /// Counts a transaction of which so much is there.
    pub fn entry(&mut self, key: Key, entry: &Entry, extent: Extent) {
        let was_seen = entry.seen.row || entry.seen.parts != 0;
        for _ in 0..entry.seen.again {
            self.ghost(key, "is there more than once");
        }
        match entry.end {
            End::Refused | End::Unsent => {
                self.counts.refused += 1;
                let refused = entry.end == End::Refused;
                if was_seen {
                    self.ghost(key, if refused { "was refused" } else { "was given up before its COMMIT was sent" });
                }
                return;
            }
            _ if entry.invoke_ns >= self.cut.end_ns => {
                if was_seen {
                    self.ghost(key, "was sent after the cut");
                }
                return;
            }
            End::Acked(ack_ns) if ack_ns < self.cut.begin_ns => self.acked(key, ack_ns, extent),
            End::Acked(_) | End::Unanswered => self.counts.unknown += 1,
        }
        if extent == Extent::Part {
            self.counts.torn += 1;
            let part = if entry.seen.row {
                "its row is there, but not all of its transfer"
            } else {
                "its transfer is there, but not its row"
            };
            self.example(key, "torn", self.counts.torn, part.into());
        }
        if entry.seen.wrong {
            self.counts.wrong += 1;
            self.example(key, "wrong", self.counts.wrong, "is there with content other than what was sent".into());
        }
    }

    fn acked(&mut self, key: Key, ack_ns: u64, extent: Extent) {
        self.counts.acked += 1;
        match extent {
            Extent::Whole => self.counts.kept += 1,
            Extent::Part => {}
            Extent::Nothing => self.lost(key, ack_ns, ""),
        }
    }

    /// One that was acknowledged is gone; `which` says which, if its key does not.
    fn lost(&mut self, key: Key, ack_ns: u64, which: &str) {
        self.counts.lost += 1;
        let oldest = self.counts.oldest_lost_ack_ns.get_or_insert(ack_ns);
        *oldest = ack_ns.min(*oldest);
        let before = match self.cut.begin_ns {
            u64::MAX => String::new(),
            cut => format!(" {:.3} ms before the cut", (cut - ack_ns) as f64 / 1e6),
        };
        if self.newest_invoke_ns.is_some_and(|newest| ack_ns < newest) {
            self.counts.holes += 1;
            let text = format!("{which}was acknowledged{before} and is gone, though one that was sent later is there");
            self.example(key, "holes", self.counts.holes, text);
        } else {
            let tail = self.counts.lost - self.counts.holes;
            self.example(key, "lost", tail, format!("{which}was acknowledged{before} and is gone"));
        }
    }

    /// Something is there that can't be.
    pub fn ghost(&mut self, key: Key, why: &str) {
        self.counts.ghost += 1;
        self.example(key, "ghost", self.counts.ghost, format!("{why}, and is there"));
    }

    /// Keeps it if there are few of its kind.
    pub fn example(&mut self, key: Key, what: &'static str, count: u64, text: String) {
        if count <= EXAMPLES_OF_KIND && self.examples.len() < EXAMPLES_MAX {
            self.examples.push(Example { connection: key.connection, sequence: key.sequence, what, text });
        }
    }
}
