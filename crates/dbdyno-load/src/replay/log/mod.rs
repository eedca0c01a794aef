//! A server's log as statements of sessions, each with its start.
//!
//! Data flows one way: bytes ([`text`], [`quotes`]) -> entries ([`slow`], [`general`]) -> starts ([`timing`]) -> sessions and what
//! their statements are ([`sessions`]).

mod entry;
mod general;
mod quotes;
mod sessions;
mod slow;
mod stamp;
mod text;
mod timing;

pub use entry::{By, Oddities};
pub use quotes::Quotes;
pub use sessions::{Logged, Session};

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::Error;

use super::not_sent::{Met, NotSent};
use text::Text;

/// Largest log, which is held in memory.
const SIZE_MAX: u64 = 2 << 30;

/// How a compressed file begins: gzip, zstd, xz, bzip2.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];

/// How text begins that is not of single bytes, and the mark that editors set before text that is.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
    /// Entries that are not among the statements.
    pub others: NotSent,
    /// What was not taken as it stands.
    pub odd: Oddities,
    /// Entries whose time was replaced.
    pub out_of_order: u64,
    /// Entries before which the server's clock was set back.
    pub set_back: Met,
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
        let mut text = Text::new(name, &bytes);
        if bytes.starts_with(BYTE_ORDER_MARK) {
            text.at = BYTE_ORDER_MARK.len();
        }
        let form = form(&text)?;
        let mut entries = match form {
            Kind::Slow => slow::read(&mut text)?,
            Kind::General(columns) => general::read(&mut text, columns)?,
        };
        entries.check(&text)?;
        if entries.all.is_empty() {
            return Err(text.error(NO_ENTRY));
        }
        let times = timing::times(&entries.all);
        let mut set_back = Met::default();
        times.set_back.iter().for_each(|number| set_back.at(entries.all[*number].line));
        let has_whole_seconds = entries.all.iter().any(|entry| !entry.stamp.is_exact);
        let followed = sessions::follow(&mut entries, &times.starts_us, &text)?;
        let form = if form == Kind::Slow { Form::Slow } else { Form::General };
        Ok(Self {
            form,
            has_whole_seconds,
            statements: followed.statements,
            sessions: followed.sessions,
            schemas: entries.schemas,
            others: followed.others,
            odd: entries.odd,
            out_of_order: times.out_of_order,
            set_back,
            bytes,
        })
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

const NO_ENTRY: &str =
    "no entry of a slow query log (`# User@Host:`) or of a general query log (time, thread, `Query`) in the file";

/// Which log it is, and how its entries stand on their lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Slow,
    General(general::Columns),
}

/// Which log it is, by the first line that begins an entry.
fn form(text: &Text<'_>) -> Result<Kind, Error> {
    if COMPRESSED.iter().any(|start| text.from(0).starts_with(start)) {
        return Err(text.error("the file is compressed: unpack it first"));
    }
    if UTF_16.iter().any(|start| text.from(0).starts_with(start)) && !text.from(0).starts_with(b"\xff\xfe\0\0") {
        return Err(text.error(
            "the file is UTF-16, as a shell of Windows writes it: convert it first, as by iconv -f UTF-16 -t UTF-8",
        ));
    }
    let mut at = text.at;
    while !text.from(at).is_empty() {
        let line = text.line_at(at);
        if slow::begins_entry(line) {
            return Ok(Kind::Slow);
        }
        if let Some(columns) = general::columns(line) {
            return Ok(Kind::General(columns));
        }
        at = text.after_line(at);
    }
    Err(text.error(NO_ENTRY))
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
