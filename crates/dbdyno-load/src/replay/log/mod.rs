//! A server's log as statements of sessions, each with its start.
//!
//! Data flows one way: bytes ([`text`]) -> entries ([`slow`], [`general`], [`table`]) -> starts ([`timing`]) ->
//! sessions and what their statements are. A session is from a connection's start to its end, with the schema that it
//! is in and what its statements are.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use self::entry::{Entries, Entry, NUMBERLESS, What, Within};
use self::text::{Text, has};
use super::not_sent::{NotSent, Occurrences, Reason};
use super::statement::{self, Class, classified, is_only_of_routine};
use crate::error::Error;
use crate::names::put_digits;

mod entry;
mod general;
mod slow;
mod table;
mod text;
mod timing;

pub use self::text::Quotes;
pub use entry::{By, Form, Oddities};

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
        let followed = follow(&mut entries, &times.starts_us, form, &text)?;
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

/// What a server writes in place of a variable of a routine, and no client ever does.
const OF_ROUTINE: &[u8] = b"NAME_CONST(";

/// Whether a value stands in it in place of a routine's variable.
fn has_variable(sql: &[u8]) -> bool {
    sql.contains(&b'_') && has(sql, OF_ROUTINE)
}

/// A statement as it was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedStatement {
    /// When it started, microseconds since 1970.
    pub start_us: i64,
    /// How long it took, microseconds; 0 where the log does not say.
    pub duration_us: i64,
    /// Its line in the file, from 1.
    pub line: u32,
    /// Offset of its text.
    pub at: u32,
    /// Bytes of its text.
    pub length: u32,
    /// Its session, by its place among [`Log::sessions`].
    pub session: u32,
    /// Its default schema, by its place among [`Log::schemas`]; 0 where it is not known.
    pub schema: u16,
    /// Its kind, by its place among [`statement::kinds`].
    pub kind: u16,
    /// Whether and when it may be sent.
    pub class: Class,
    /// Who had it executed.
    pub by: By,
    /// It came in one packet with the statement before it in its session.
    pub continues_packet: bool,
}

/// A connection that the server had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// The server's number for it.
    pub thread: u64,
    /// Until when it is known to have been there, microseconds since 1970; `None` for one that was never ended.
    pub quit_us: Option<i64>,
    /// The session before on the same connection, which began anew.
    pub continues: Option<u32>,
    /// The log has its Connect, which the server's own sessions have not.
    pub is_connected: bool,
}

/// What the entries come to.
#[derive(Debug, Default)]
struct Followed {
    /// The statements, in the order of the entries.
    pub statements: Vec<LoggedStatement>,
    /// Their sessions.
    pub sessions: Vec<Session>,
    /// The entries that are no statements.
    pub others: NotSent,
    is_general: bool,
    /// Of each statement the one before it in its session.
    previous: Vec<Option<u32>>,
}

/// A session that goes on.
#[derive(Clone, Copy)]
struct Open {
    number: u32,
    /// When its last statement ended.
    ended_us: i64,
    schema: u16,
    last: Option<u32>,
}

/// Follows the sessions; `starts` are those of the entries.
///
/// In a session no statement starts before the one before it ended: where times are whole seconds, it is put off until
/// then. Where a log has no numbers of connections, several may stand for one session, and nothing is put off.
///
/// # Errors
/// There are too many schemas.
fn follow(entries: &mut Entries, starts: &[i64], form: Form, text: &Text<'_>) -> Result<Followed, Error> {
    let mut followed = Followed { is_general: form == Form::General, ..Followed::default() };
    let mut open: HashMap<u64, Open> = HashMap::new();
    for (entry, logged_us) in std::mem::take(&mut entries.all).iter().zip(starts) {
        let thread = entry.thread;
        match entry.what {
            What::Connect | What::Renew => {
                followed.others.add(Reason::Sessions, entry.line);
                let before = open.get(&thread).copied().filter(|_| entry.what == What::Renew);
                let mut session = followed.begin(thread, before.map(|before| before.number), true);
                session.schema = before.map_or(0, |before| before.schema);
                session.enter(entry.schema);
                open.insert(thread, session);
            }
            What::Quit => {
                followed.others.add(Reason::Sessions, entry.line);
                if let Some(session) = open.remove(&thread) {
                    followed.sessions[session.number as usize].quit_us = Some((*logged_us).max(session.ended_us));
                }
            }
            What::Enter => {
                followed.others.add(Reason::Sessions, entry.line);
                open.entry(thread).or_insert_with(|| followed.begin(thread, None, false)).enter(entry.schema);
            }
            What::Command => followed.others.add(Reason::AdministratorCommands, entry.line),
            What::CutOff => followed.others.add(Reason::CutOff, entry.line),
            What::Statement { at, length, by } => {
                let session = open.entry(thread).or_insert_with(|| followed.begin(thread, None, false));
                session.enter(entry.schema);
                let follows_last = !entry.stamp.is_exact && thread < NUMBERLESS;
                let start_us = if follows_last { (*logged_us).max(session.ended_us) } else { *logged_us };
                let sql = &text.from(at as usize)[..length as usize];
                let (kind, class) = classified(sql);
                let Entry { line, duration_us, .. } = *entry;
                let (number, schema) = (session.number, session.schema);
                let logged = LoggedStatement {
                    start_us,
                    duration_us,
                    line,
                    at,
                    length,
                    session: number,
                    schema,
                    kind,
                    class,
                    by,
                    continues_packet: false,
                };
                match if class == Class::Several { statement::parts(sql) } else { None } {
                    None => followed.statement(session, logged, sql, entries, text)?,
                    Some(parts) => {
                        // All but the last are over at once, as far as the log says.
                        let last = parts.last().map_or(0, |part| part.start);
                        let before_packet = session.last;
                        for part in parts {
                            let blanks = sql[part.clone()].len() - sql[part.clone()].trim_ascii_start().len();
                            let part = part.start + blanks..part.end;
                            let lines = sql[..part.start].iter().map(|byte| u32::from(*byte == b'\n')).sum::<u32>();
                            let (kind, class) = classified(&sql[part.clone()]);
                            let logged = LoggedStatement {
                                duration_us: if part.start >= last { duration_us } else { 0 },
                                line: line.saturating_add(lines),
                                at: at + part.start as u32,
                                length: part.len() as u32,
                                schema: session.schema,
                                kind,
                                class,
                                continues_packet: session.last != before_packet,
                                ..logged
                            };
                            followed.statement(session, logged, &sql[part], entries, text)?;
                        }
                    }
                }
                session.ended_us = start_us + duration_us;
            }
        }
    }
    Ok(followed)
}

impl Open {
    fn enter(&mut self, schema: Within) {
        if let Within::Schema(schema) = schema {
            self.schema = schema;
        }
    }
}

impl Followed {
    fn begin(&mut self, thread: u64, continues: Option<u32>, is_connected: bool) -> Open {
        self.sessions.push(Session { thread, quit_us: None, continues, is_connected });
        let number = self.sessions.len() as u32 - 1;
        Open { number, ended_us: i64::MIN, schema: 0, last: None }
    }

    fn statement(
        &mut self,
        session: &mut Open,
        mut logged: LoggedStatement,
        sql: &[u8],
        entries: &mut Entries,
        text: &Text<'_>,
    ) -> Result<(), Error> {
        if logged.class == Class::Use {
            self.others.add(Reason::Sessions, logged.line);
            if let Some(name) = statement::used_schema(sql) {
                session.schema = entries.schema(&name, text)?;
            }
            return Ok(());
        }
        let is_call = logged.kind == statement::CALL;
        let may_be_routines = self.is_general && logged.by == By::Client;
        if may_be_routines && (is_only_of_routine(sql, logged.class) || session.last.is_some() && has_variable(sql)) {
            logged.by = By::Call;
        } else if is_call || session.last.is_some_and(|last| self.statements[last as usize].by == By::Routine) {
            self.find_routine(session.last, &mut logged, text);
        }
        self.previous.push(session.last);
        session.last = Some(self.statements.len() as u32);
        self.statements.push(logged);
        Ok(())
    }

    /// Finds among the statements before `outer`, of which `last` is the session's last, those that a routine ran for
    /// it: a slow log has them before their call, MariaDB and Percona Server with a line that says so.
    fn find_routine(&mut self, last: Option<u32>, outer: &mut LoggedStatement, text: &Text<'_>) {
        let is_call = outer.kind == statement::CALL;
        let is_numbered = self.sessions[outer.session as usize].thread < NUMBERLESS;
        let outer_end_us = outer.start_us + outer.duration_us;
        let mut at = last;
        while let Some(number) = at {
            let inner = &mut self.statements[number as usize];
            let is_within = || {
                let is_nested = is_numbered
                    && inner.duration_us > 0
                    && inner.start_us >= outer.start_us
                    && inner.start_us + inner.duration_us <= outer_end_us;
                is_nested || has(&text.from(inner.at as usize)[..inner.length as usize], OF_ROUTINE)
            };
            let is_of_call = match inner.by {
                By::Call => true,
                By::Routine => inner.duration_us <= outer.duration_us,
                By::Client | By::Execute => is_call && is_within(),
            };
            if !is_of_call {
                break;
            }
            if inner.by != By::Call {
                inner.by = By::Call;
                // Of whole seconds, the call was put off until these were done.
                outer.start_us = outer.start_us.min(inner.start_us);
            }
            at = self.previous[number as usize];
        }
    }
}
