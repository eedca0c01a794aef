//! What of a log is not sent, by the reason.

use serde_json::{Map, Value, json};

/// Most lines that are named of a kind.
pub const LINES_NAMED_MAX: usize = 5;

/// How often something odd was met, and in which lines first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How often.
    pub count: u64,
    /// The first lines, from 1.
    pub lines: Vec<u32>,
}

impl Occurrences {
    /// Once more, in this line.
    pub fn at(&mut self, line: u32) {
        self.count += 1;
        if self.lines.len() < LINES_NAMED_MAX || self.lines.last().is_some_and(|last| line < *last) {
            self.lines.insert(self.lines.partition_point(|before| *before <= line), line);
            self.lines.truncate(LINES_NAMED_MAX);
        }
    }

    /// The first lines.
    pub fn in_words(&self) -> String {
        let named = self.lines.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let word = if self.count == 1 { "line" } else { "lines" };
        let more = if self.count > self.lines.len() as u64 { ", ..." } else { "" };
        format!("{word} {named}{more}")
    }
}

/// Why something of a log is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It writes, or may.
    Writes,
    /// It reads, by functions that may do more than that: waiting, locking, or whatever a user's own does.
    Functions,
    /// Its default schema is another.
    OtherSchemas,
    /// It has no end.
    CutOff,
    /// It has `?` in place of values.
    Placeholders,
    /// It needs a file of the client's.
    LocalFiles,
    /// It reads or writes a file of the server's.
    ServerFiles,
    /// It runs a text that the log does not show.
    Hidden,
    /// It needs a table, a prepared statement or a savepoint whose making was not sent, or came before the log begins.
    Unmade,
    /// A stored routine, a trigger or an event ran it, and does so again.
    Routines,
    /// The log has it a second time: what an EXECUTE executed that is sent.
    Repeated,
    /// It is several statements, and where one ends depends on the server.
    Several,
    /// KILL, SHUTDOWN, FLUSH, SET GLOBAL, GRANT and their like, and protocol commands without SQL, such as Ping.
    AdministratorCommands,
    /// Connect, Quit, Change user, Init DB and USE, which the replay does by itself.
    Sessions,
    /// It begins with no word that is known.
    Unknown,
}

/// Each reason, its key in JSON, its words, and whether the report names the first lines.
const REASONS: [(Reason, &str, &str, bool); 15] = [
    (Reason::Writes, "writes", "writes", false),
    (Reason::Functions, "functions", "with functions that may do more than read", false),
    (Reason::OtherSchemas, "other_schemas", "of other schemas", false),
    (Reason::CutOff, "cut_off", "cut off", true),
    (Reason::Placeholders, "placeholders", "with ? for values", false),
    (Reason::LocalFiles, "local_files", "with a local file", false),
    (Reason::ServerFiles, "server_files", "with a file of the server", false),
    (Reason::Hidden, "hidden", "with a text that the log does not show", false),
    (Reason::Unmade, "unmade", "of a table, prepared statement or savepoint that is not there", true),
    (Reason::Routines, "routines", "that a routine, trigger or event runs again", false),
    (Reason::Repeated, "repeated", "logged a second time", false),
    (Reason::Several, "several", "several in one", true),
    (Reason::AdministratorCommands, "administrator_commands", "administrator commands", false),
    (Reason::Sessions, "sessions", "of sessions (Connect, USE, Quit)", false),
    (Reason::Unknown, "unknown", "not known", true),
];

/// Statements and other entries that are not sent, by the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotSent([Occurrences; REASONS.len()]);

impl NotSent {
    /// One more, in this line.
    pub fn add(&mut self, reason: Reason, line: u32) {
        self.0[reason as usize].at(line);
    }

    /// How many for this reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.0[reason as usize].count
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|met| met.count).sum()
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, bool, &Occurrences)> {
        REASONS.iter().map(|(reason, key, words, is_named)| (*key, *words, *is_named, &self.0[*reason as usize]))
    }

    /// The number for each reason.
    pub fn json(&self) -> Value {
        self.all().map(|(key, _, _, met)| (key.to_owned(), json!(met.count))).collect::<Map<_, _>>().into()
    }

    /// The first lines for each reason that there is.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, &[u32])> {
        self.all().filter(|(_, _, _, met)| met.count > 0).map(|(key, _, _, met)| (key, met.lines.as_slice()))
    }

    /// All that are not 0.
    pub fn in_words(&self) -> String {
        let some = self.all().filter(|(_, _, _, met)| met.count > 0);
        let describe = |(_, words, is_named, met): (_, &str, _, &Occurrences)| {
            let lines = if is_named { format!(" ({})", met.in_words()) } else { String::new() };
            format!("{} {words}{lines}", met.count)
        };
        let text = some.map(describe).collect::<Vec<_>>().join(", ");
        if text.is_empty() { "none".into() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_stands_at_its_place() {
        assert!(REASONS.iter().enumerate().all(|(at, (reason, ..))| *reason as usize == at));
        let mut not = NotSent::default();
        (1..8).for_each(|line| not.add(Reason::CutOff, line));
        not.add(Reason::Writes, 9);
        assert_eq!(not.in_words(), "1 writes, 7 cut off (lines 1, 2, 3, 4, 5, ...)");
        assert_eq!((not.total(), not.json()["cut_off"].as_u64()), (8, Some(7)));
        assert_eq!(NotSent::default().in_words(), "none");
    }
}
