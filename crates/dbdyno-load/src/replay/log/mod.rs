//! A server's log as statements of sessions, each with its start.
//!
//! Data flows one way: bytes ([`text`], [`quotes`]) -> entries ([`slow`], [`general`]) -> starts ([`timing`]) -> sessions.

mod entry;
mod general;
mod quotes;
mod sessions;
mod slow;
mod stamp;
mod text;
mod timing;

pub use entry::Unusable;
pub use quotes::Quotes;
pub use sessions::{Logged, Session};

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::Error;

use text::Text;

/// Largest log, which is held in memory.
const SIZE_MAX: u64 = 2 << 30;

/// How a compressed file begins: gzip, zstd, xz, bzip2.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];

/// Which log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The slow query log.
    Slow,
    /// The general query log.
    General,
}

/// A log that was read.
pub struct Log {
    /// All of it.
    bytes: Vec<u8>,
    /// Which it is.
    pub form: Form,
    /// Whether its times are whole seconds: of any statement.
    pub has_whole_seconds: bool,
    /// In the order of the log.
    pub statements: Vec<Logged>,
    /// Sessions, in the order of their first entries.
    pub sessions: Vec<Session>,
    /// Names of schemas; the first, which is empty, stands for one that is not known.
    pub schemas: Vec<Vec<u8>>,
    /// What is not among the statements.
    pub unusable: Unusable,
    /// Entries whose time was replaced.
    pub out_of_order: u64,
}

impl Log {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is too large, or is no log; with file and line.
    pub fn read(path: &str) -> Result<Self, Error> {
        let failed = |error| Error::File(path.into(), error);
        let file = File::open(Path::new(path)).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::Usage(format!("{path} is no regular file")));
        }
        let mut bytes = Vec::new();
        file.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::parse(path, bytes)
    }

    /// Reads a log's bytes; `name` is what errors call it.
    ///
    /// # Errors
    /// It is too large, or no log; with file and line.
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.len() as u64 > SIZE_MAX {
            return Err(Error::Usage(format!("{name} has more than {} MiB: replay a part of the log", SIZE_MAX >> 20)));
        }
        let text = Text::new(name, &bytes);
        let form = form(&text)?;
        let entries = match form {
            Form::Slow => slow::read(text)?,
            Form::General => general::read(text)?,
        };
        let times = timing::times(&entries.all);
        let (statements, sessions) = sessions::sessions(&entries.all, &times.starts_us);
        let has_whole_seconds = entries.all.iter().any(|entry| !entry.stamp.is_exact);
        let (schemas, unusable) = (entries.schemas, entries.unusable);
        let out_of_order = times.out_of_order;
        Ok(Self { bytes, form, has_whole_seconds, statements, sessions, schemas, unusable, out_of_order })
    }

    /// The text of a statement.
    pub fn sql(&self, statement: &Logged) -> &[u8] {
        &self.bytes[statement.at as usize..][..statement.length as usize]
    }

    /// All of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Which log it is, by the first line that begins an entry.
fn form(text: &Text<'_>) -> Result<Form, Error> {
    if COMPRESSED.iter().any(|start| text.from(0).starts_with(start)) {
        return Err(text.error("the file is compressed: unpack it first"));
    }
    let mut at = 0;
    while !text.from(at).is_empty() {
        let line = text.line_at(at);
        if slow::begins_entry(line) {
            return Ok(Form::Slow);
        }
        if general::begins_entry(line) {
            return Ok(Form::General);
        }
        at = text.after_line(at);
    }
    let what =
        "no entry of a slow query log (`# User@Host:`) or of a general query log (time, thread, `Query`) in the file";
    Err(text.error(what))
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
