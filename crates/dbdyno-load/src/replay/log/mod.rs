//! A server's log as statements of sessions, each with its start.
//!
//! Data flows one way: bytes ([`text`]) -> entries ([`slow`], [`general`], [`table`]) -> starts ([`timing`]) -> sessions and what
//! their statements are ([`sessions`]).

mod entry;
mod general;
mod sessions;
mod slow;
mod table;
mod text;
mod timing;

pub use self::text::Quotes;
pub use entry::{By, Form, Oddities};
pub use sessions::{LoggedStatement, Session};

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::names::put_digits;

use super::not_sent::{NotSent, Occurrences};
use text::Text;

/// Largest log, which is held in memory.
const SIZE_MAX: u64 = 2 << 30;

/// How a file begins that gzip packed.
const GZIP: &[u8] = b"\x1f\x8b";

/// How files begin that other programs packed, with their names.
const COMPRESSED: [(&[u8], &str); 3] = [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz"), (b"BZh", "bzip2")];

/// How text begins that is not of single bytes, and the mark that editors set before text that is.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A log that was read.
pub struct Log {
    /// All of it, or the texts of the statements of a table.
    bytes: Vec<u8>,
    /// The sum of the file, where the bytes are not the file's.
    sum: Option<Sum>,
    /// Which it is.
    pub form: Form,
    /// Whether its times are whole seconds: of any statement.
    pub has_whole_seconds: bool,
    /// In the order of the log.
    pub statements: Vec<LoggedStatement>,
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
    pub set_back: Occurrences,
}

/// What tells a file from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Size.
    pub bytes: usize,
}

impl Sum {
    fn new(bytes: &[u8]) -> Self {
        let mut sha256 = String::new();
        put_digits(&Sha256::digest(bytes), &mut sha256);
        Self { sha256, bytes: bytes.len() }
    }
}

impl Log {
    /// Reads a file, which gzip may have packed.
    ///
    /// # Errors
    /// It cannot be read, is too large, or is no log; with file and line.
    pub fn read(path: &str) -> Result<Self, Error> {
        let failed = |error| Error::File(path.into(), error);
        let file = File::open(Path::new(path)).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::Usage(format!("{path} is not a regular file")));
        }
        let mut bytes = Vec::new();
        file.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if !bytes.starts_with(GZIP) {
            return Self::parse(path, bytes);
        }
        let (mut log, packed) = (Vec::new(), Sum::new(&bytes));
        if let Err(error) = MultiGzDecoder::new(&*bytes).take(SIZE_MAX + 1).read_to_end(&mut log) {
            return Err(Error::Usage(format!(
                "{path} is damaged or cut off: gzip unpacks {} bytes of it ({error}): replay these, for example with gzip -dc {path} > part.log",
                log.len()
            )));
        }
        Ok(Self { sum: Some(packed), ..Self::parse(path, log)? })
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
        let (form, (mut entries, texts)) = match form(&text)? {
            Kind::Slow => (Form::Slow, (slow::read(&mut text)?, None)),
            Kind::General(columns) => (Form::General, (general::read(&mut text, columns)?, None)),
            Kind::Table(layout) => {
                let (entries, texts) = table::read(&mut text, layout)?;
                (if layout.is_slow { Form::Slow } else { Form::General }, (entries, Some(texts)))
            }
        };
        entries.check(&text)?;
        if entries.all.is_empty() {
            return Err(text.error(NO_ENTRY));
        }
        let times = timing::times(&entries.all);
        let mut set_back = Occurrences::default();
        times.set_back.iter().for_each(|number| set_back.at(entries.all[*number].line));
        let sum = texts.as_ref().map(|_| Sum::new(&bytes));
        let bytes = texts.unwrap_or(bytes);
        let text = Text::new(name, &bytes);
        let has_whole_seconds = entries.all.iter().any(|entry| !entry.stamp.is_exact);
        let followed = sessions::follow(&mut entries, &times.starts_us, form, &text)?;
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
            sum,
            bytes,
        })
    }

    /// The text of a statement.
    pub fn sql(&self, statement: &LoggedStatement) -> &[u8] {
        &self.bytes[statement.at as usize..][..statement.length as usize]
    }

    /// What tells the log's file from others.
    pub fn sum(&self) -> Sum {
        self.sum.clone().unwrap_or_else(|| Sum::new(&self.bytes))
    }
}

const NO_ENTRY: &str = "no entry of a slow query log (`# User@Host:`), of a general query log (time, thread, `Query`) or of a log table \
                        (mysql.slow_log, mysql.general_log) in the file";

/// Which log it is, and how its entries stand on their lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Slow,
    General(general::Columns),
    Table(table::Layout),
}

/// Which log it is, by the first line that begins an entry.
fn form(text: &Text<'_>) -> Result<Kind, Error> {
    if let Some((_, program)) = COMPRESSED.iter().find(|(start, _)| text.from(0).starts_with(start)) {
        return Err(
            text.error(&format!("the file is compressed: unpack it first, for example with {program} -dc FILE > log"))
        );
    }
    if UTF_16.iter().any(|start| text.from(0).starts_with(start)) && !text.from(0).starts_with(b"\xff\xfe\0\0") {
        return Err(text.error(
            "the file is UTF-16, as written by a Windows shell: convert it first, for example with iconv -f UTF-16 -t UTF-8",
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
        if let Some(layout) = table::layout(line) {
            return Ok(Kind::Table(layout));
        }
        at = text.after_line(at);
    }
    Err(text.error(NO_ENTRY))
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
