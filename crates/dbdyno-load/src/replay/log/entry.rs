//! What a log says, an entry at a time, before its times are made sense of.

use std::collections::HashMap;

use crate::error::Error;

use super::super::not_sent::Met;
use super::stamp::Stamp;
use super::text::Text;

/// Most entries of a log.
const ENTRIES_MAX: usize = 10_000_000;

/// Most schemas that a log names.
const SCHEMAS_MAX: usize = 4096;

/// From here on a connection's number stands for who comes from where, as the log has no numbers.
pub const NUMBERLESS: u64 = 1 << 63;

/// Which of a statement's times a log's time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// When it came.
    Start,
    /// When it was done.
    End,
}

/// The default schema of what follows, by its place in [`Entries::schemas`]; 0 stands for one that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// That of the session, as it was.
    OfSession,
    /// As the log says with this entry.
    Said(u16),
}

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A statement: its place in the log's bytes.
    Statement {
        /// Offset.
        at: u32,
        /// Bytes, without the delimiter.
        length: u32,
        /// Who had it executed.
        by: By,
    },
    /// A session begins.
    Connect,
    /// It begins anew on the same connection: Change user, Reset Connection.
    Renew,
    /// It enters another schema: Init DB.
    Enter,
    /// It ends.
    Quit,
    /// A command without SQL.
    Command,
    /// A statement without its end.
    CutOff,
}

/// Who had a statement executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The client, as text.
    Client,
    /// The client, as a prepared statement; or the server, for the EXECUTE that the session sent before.
    Execute,
    /// A stored routine, a trigger or an event.
    Routine,
    /// The same, where the log has the call.
    Call,
}

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Line of the statement, or of the entry, from 1.
    pub line: u32,
    /// The server's number for the connection.
    pub thread: u64,
    /// As logged.
    pub stamp: Stamp,
    /// Which time that is.
    pub moment: Moment,
    /// How long the statement took, microseconds; 0 where the log does not say.
    pub duration_us: i64,
    /// The default schema from here on.
    pub schema: Within,
    /// What it is.
    pub what: What,
}

/// What of a log was not taken as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Lines of no entry, such as the end of one that an older file has.
    pub stray: Met,
    /// Times that none of the servers writes: the entry has that of the one before.
    pub times: Met,
    /// Entries before the first time: they have that.
    pub untimed: Met,
    /// Durations that can't be, as a server writes when its clock steps back: taken as 0.
    pub durations: Met,
}

/// All entries, in the log's order.
#[derive(Debug, Default)]
pub struct Entries {
    /// The entries.
    pub all: Vec<Entry>,
    /// Names of schemas; the first stands for none.
    pub schemas: Vec<Vec<u8>>,
    /// What was not taken as it stands.
    pub odd: Oddities,
    numbers: HashMap<Vec<u8>, u16>,
    /// How many entries at the start have no time yet.
    untimed: usize,
}

impl Entries {
    /// None yet.
    pub fn new() -> Self {
        Self { schemas: vec![Vec::new()], ..Self::default() }
    }

    /// One more; `stamp` is that of the entry, or else of one before.
    ///
    /// # Errors
    /// They are too many.
    pub fn push(&mut self, entry: Entry, stamp: Option<Stamp>, text: &Text<'_>) -> Result<(), Error> {
        if self.all.len() == ENTRIES_MAX {
            return Err(text.error(&format!("more than {ENTRIES_MAX} entries: replay a part of the log")));
        }
        match stamp {
            None => {
                self.untimed += 1;
                self.odd.untimed.at(entry.line);
            }
            Some(stamp) if self.untimed > 0 => {
                // What was written before the first time that the log has came at that, as far as one can tell.
                let count = std::mem::take(&mut self.untimed);
                self.all[..count].iter_mut().for_each(|entry| entry.stamp = stamp);
            }
            Some(_) => {}
        }
        self.all.push(Entry { stamp: stamp.unwrap_or(entry.stamp), ..entry });
        Ok(())
    }

    /// Sees that there are entries with times.
    ///
    /// # Errors
    /// There are none.
    pub fn check(&self, text: &Text<'_>) -> Result<(), Error> {
        if self.untimed > 0 {
            return Err(text.error("no entry up to here has a time: is the beginning of the log missing?"));
        }
        Ok(())
    }

    /// The number of a schema; 0 of an empty name.
    ///
    /// # Errors
    /// They are too many.
    pub fn schema(&mut self, name: &[u8], text: &Text<'_>) -> Result<u16, Error> {
        if name.is_empty() {
            return Ok(0);
        }
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u16::try_from(self.schemas.len()).unwrap_or(u16::MAX);
        if self.schemas.len() >= SCHEMAS_MAX {
            return Err(text.error(&format!("more than {SCHEMAS_MAX} schemas: replay a part of the log")));
        }
        self.schemas.push(name.to_vec());
        self.numbers.insert(name.to_vec(), number);
        Ok(number)
    }
}

/// A schema's name without its backticks.
pub fn unquoted(name: &[u8]) -> Vec<u8> {
    match name {
        [b'`', inner @ .., b'`'] => {
            let mut out = Vec::with_capacity(inner.len());
            let mut bytes = inner.iter().copied().peekable();
            while let Some(byte) = bytes.next() {
                if byte == b'`' {
                    bytes.next_if_eq(&b'`');
                }
                out.push(byte);
            }
            out
        }
        plain => plain.to_vec(),
    }
}

/// A whole number at the start of `text`, after blanks.
pub fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// What stands behind the last `key` in `line`.
pub fn behind<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = line.windows(key.len()).rposition(|part| part == key)?;
    Some(&line[at + key.len()..])
}
