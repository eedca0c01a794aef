//! Slow query logs: MySQL 5.5 to 9, MariaDB, Percona Server.
//!
//! ```text
//! # Time: 2026-11-23T12:59:07.302094Z
//! # User@Host: app[app] @ web1 [10.0.0.2]  Id:     7
//! # Query_time: 0.000089  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0
//! use shop;
//! SET timestamp=1795438747;
//! SELECT 1;
//! ```

use crate::error::Error;

use super::entry::{Entries, Entry, Moment, NUMBERLESS, What, behind, number, unquoted};
use super::stamp::{SECOND_US, Stamp, seconds_us, stamp};
use super::text::{Cut, Mark, Text};

const TIME: &[u8] = b"# Time: ";
const USER: &[u8] = b"# User@Host: ";
const QUERY_TIME: &[u8] = b"# Query_time: ";
const COMMAND: &[u8] = b"# administrator command: ";

/// Most lines between `# User@Host:` and the statement.
const LINES_MAX: usize = 16;

/// Whether this line begins an entry.
pub fn begins_entry(line: &[u8]) -> bool {
    line.starts_with(TIME) || line.starts_with(USER)
}

/// Reads all entries.
///
/// # Errors
/// A line that no server writes, or too much of something; with file and line.
pub fn read(mut text: Text<'_>) -> Result<Entries, Error> {
    text.is_delimited = true;
    let mut reader = Reader { entries: Entries::new(), time: None, schema: 0 };
    while !text.is_over() {
        if text.is_server_header(text.at) {
            text.skip_server_header();
            // The server forgets which schema it named last.
            (reader.schema, reader.time) = (0, None);
            continue;
        }
        let line = text.line_at(text.at);
        if let Some(time) = line.strip_prefix(TIME) {
            reader.time =
                Some(stamp(time).ok_or_else(|| text.error("the time of `# Time:` is none that servers write"))?);
            text.take_line()?;
        } else if line.starts_with(USER) {
            reader.entry(&mut text)?;
        } else {
            if !line.trim_ascii().is_empty() {
                reader.entries.unusable.stray_lines += 1;
            }
            let end = text.after_line(text.at);
            text.go_to(end);
        }
    }
    Ok(reader.entries)
}

struct Reader {
    entries: Entries,
    /// Of the last `# Time:`, which MariaDB and MySQL 5.6 write only when it has changed.
    time: Option<Stamp>,
    /// Of the last `use`, which MySQL writes only when it is another than in the entry before.
    schema: u16,
}

/// The lines before a statement.
#[derive(Default)]
struct Header<'a> {
    thread: Option<u64>,
    duration_us: i64,
    /// MariaDB, whose times are those of the start.
    is_mariadb: bool,
    schema: Option<&'a [u8]>,
    /// MySQL with log_slow_extra.
    start: Option<Stamp>,
    /// Of `SET timestamp=`.
    second: Option<i64>,
    used: Option<Vec<u8>>,
}

impl Reader {
    fn entry(&mut self, text: &mut Text<'_>) -> Result<(), Error> {
        let mut header = Header::default();
        header.user(text.take_line()?);
        while !text.is_over() && text.line_at(text.at).starts_with(b"# ") && !begins_entry(text.line_at(text.at)) {
            if text.line_at(text.at).starts_with(COMMAND) {
                break;
            }
            header.field(text)?;
        }
        header.before_statement(text)?;
        let (line, start) = (text.line, text.at);
        let cut = text.statement_end(start, |at| mark(text, at))?;
        text.go_to(cut.end);
        self.finish(text, &header, line, start, cut)
    }

    fn finish(&mut self, text: &Text<'_>, header: &Header<'_>, line: u32, start: usize, cut: Cut) -> Result<(), Error> {
        if let Some(name) = &header.used {
            self.schema = self.entries.schema(name, text)?;
        }
        let schema = match header.schema {
            Some(name) => self.entries.schema(name, text)?,
            None => self.schema,
        };
        let Some((stamp, moment)) = self.stamp(header) else {
            return Err(text.error(
                "the entry before this line has no time, nor any before it: is the beginning of the log missing?",
            ));
        };
        let body = text.from(start);
        let body = body[..cut.end - start].trim_ascii_end();
        let is_ended = body.ends_with(b";");
        let body = body.strip_suffix(b";").unwrap_or(body);
        let what = if let Some(command) = body.strip_prefix(COMMAND) {
            self.entries.unusable.commands += 1;
            if command == b"Quit" { What::Quit } else { What::Other }
        } else if cut.is_whole && is_ended && !body.is_empty() {
            What::Statement { at: start as u32, length: body.len() as u32 }
        } else {
            self.entries.unusable.cut_off += 1;
            What::Other
        };
        let thread = header.thread.unwrap_or(NUMBERLESS);
        let entry = Entry { line, thread, stamp, moment, duration_us: header.duration_us, schema, what };
        self.entries.push(entry, text)
    }

    /// The most exact of an entry's times, and which of the statement's it is.
    fn stamp(&self, header: &Header<'_>) -> Option<(Stamp, Moment)> {
        if let Some(start) = header.start {
            return Some((start, Moment::Start));
        }
        let moment = if header.is_mariadb { Moment::Start } else { Moment::End };
        let second = || header.second.map(|second| Stamp { us: second * SECOND_US, is_exact: false });
        // Of whole seconds that since 1970 has no time zone.
        let stamp = self.time.filter(|time| time.is_exact).or_else(second).or(self.time)?;
        Some((stamp, moment))
    }
}

impl<'a> Header<'a> {
    /// `# User@Host: app[app] @ web1 [10.0.0.2]  Id:     7`: the name may hold anything, so the last number counts.
    fn user(&mut self, line: &[u8]) {
        self.thread = behind(line, b"]  Id: ").and_then(number);
        if self.thread.is_none() && !line.ends_with(b"Id:") {
            // MySQL 5.5 has no numbers: who comes from where stands for one. MariaDB's is in the next line.
            self.thread = Some(
                line.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                    (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                }) | NUMBERLESS,
            );
        }
    }

    fn field(&mut self, text: &mut Text<'a>) -> Result<(), Error> {
        let line = text.line_at(text.at);
        if let Some(rest) = line.strip_prefix(b"# Thread_id: ") {
            self.thread = number(rest);
        }
        self.is_mariadb |= behind(line, b"QC_hit: ").is_some();
        if let Some(rest) = line.strip_prefix(b"# Schema: ").or_else(|| behind(line, b"  Schema: ")) {
            let end = [&b"  QC_hit: "[..], b"  Last_errno: "].into_iter().find_map(|key| position(rest, key));
            self.schema = Some(rest[..end.unwrap_or(rest.len())].trim_ascii());
        }
        if let Some(rest) = line.strip_prefix(QUERY_TIME) {
            let value = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
            let wrong = || text.error("`# Query_time:` is not a number of seconds");
            self.duration_us = seconds_us(value).ok_or_else(wrong)?;
            if let Some(start) = behind(rest, b" Start: ") {
                self.start = stamp(start.split(|byte| *byte == b' ').next().unwrap_or_default());
            }
        }
        text.take_line().map(|_| ())
    }

    /// `use shop;` and `SET timestamp=...;`, which the server writes before the statement.
    fn before_statement(&mut self, text: &mut Text<'_>) -> Result<(), Error> {
        let first = text.line_at(text.at);
        let next = text.line_at(text.after_line(text.at));
        if let Some(name) = used(first).filter(|_| second(next).is_some()) {
            self.used = Some(unquoted(name));
            text.take_line()?;
        }
        if let Some(seconds) = second(text.line_at(text.at)) {
            self.second = Some(seconds);
            text.take_line()?;
        }
        Ok(())
    }
}

fn position(line: &[u8], key: &[u8]) -> Option<usize> {
    line.windows(key.len()).position(|part| part == key)
}

/// The schema of ``use `shop`;``.
fn used(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"use ")?.strip_suffix(b";")
}

/// The seconds of `SET timestamp=1795438747;`, before which `last_insert_id=4,insert_id=5,` may stand.
fn second(line: &[u8]) -> Option<i64> {
    let assignments = line.strip_prefix(b"SET ")?.strip_suffix(b";")?;
    let mut parts = assignments.split(|byte| *byte == b',').map(|part| {
        let at = part.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&part[..at], &part[at + 1..]);
        let is_number = (1..=20).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
        let known = [&b"last_insert_id"[..], b"insert_id", b"timestamp"].contains(&name);
        (is_number && known).then_some((name, value))
    });
    let (name, value) = parts.try_fold(None, |_, part| part.map(Some))??;
    let seconds = std::str::from_utf8(value).ok()?.parse::<i64>().ok()?;
    // Up to the year 9999.
    (name == b"timestamp" && seconds < 253_402_300_800).then_some(seconds)
}

/// What begins at a line within a statement.
fn mark(text: &Text<'_>, at: usize) -> Mark {
    let line = text.line_at(at);
    if !begins_entry(line) {
        return Mark::None;
    }
    if is_whole_entry(text, at) {
        return Mark::WholeEntry;
    }
    // A comment in a statement may begin so; a statement ends with a delimiter.
    let before = text.before(at).trim_ascii_end();
    if before.ends_with(b";") { Mark::Entry } else { Mark::None }
}

fn is_whole_entry(text: &Text<'_>, at: usize) -> bool {
    let mut at = at;
    if let Some(time) = text.line_at(at).strip_prefix(TIME) {
        if stamp(time).is_none() {
            return false;
        }
        at = text.after_line(at);
    }
    if !text.line_at(at).starts_with(USER) {
        return false;
    }
    for _ in 0..LINES_MAX {
        at = text.after_line(at);
        let line = text.line_at(at);
        if line.starts_with(QUERY_TIME) {
            return true;
        }
        if !line.starts_with(b"# ") {
            return false;
        }
    }
    false
}
