//! What a log says, an entry at a time, before its times are made sense of.

use std::collections::HashMap;

use crate::error::Error;

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

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A statement: its place in the log's bytes.
    Statement {
        /// Offset.
        at: u32,
        /// Bytes, without the delimiter.
        length: u32,
    },
    /// A session begins.
    Connect,
    /// It ends.
    Quit,
    /// Nothing of its own, but its time is one of the session's.
    Other,
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
    /// The default schema, by its place in [`Entries::schemas`]; 0 where it is not known.
    pub schema: u16,
    /// What it is.
    pub what: What,
}

/// What of a log can't be sent, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Connect, Ping, Close stmt and other commands without SQL.
    pub commands: u64,
    /// Statements without their end.
    pub cut_off: u64,
    /// Lines before the first entry: the end of one that an older file has.
    pub stray_lines: u64,
}

/// All entries, in the log's order.
#[derive(Debug, Default)]
pub struct Entries {
    /// The entries.
    pub all: Vec<Entry>,
    /// Names of schemas; the first stands for none.
    pub schemas: Vec<Vec<u8>>,
    /// What is not among them.
    pub unusable: Unusable,
    numbers: HashMap<Vec<u8>, u16>,
}

impl Entries {
    /// None yet.
    pub fn new() -> Self {
        Self { schemas: vec![Vec::new()], ..Self::default() }
    }

    /// One more.
    ///
    /// # Errors
    /// They are too many.
    pub fn push(&mut self, entry: Entry, text: &Text<'_>) -> Result<(), Error> {
        if self.all.len() == ENTRIES_MAX {
            return Err(text.error(&format!("more than {ENTRIES_MAX} entries: replay a part of the log")));
        }
        self.all.push(entry);
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
