//! Slow query logs: MySQL 5.0 to 9, MariaDB, Percona Server.
//!
//! ```text
//! # Time: 2026-11-23T12:59:07.302094Z
//! # User@Host: app[app] @ web1 [10.0.0.2]  Id:     7
//! # Query_time: 0.000089  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0
//! use shop;
//! SET timestamp=1795438747;
//! SELECT 1;
//! ```
//!
//! MySQL 5.0 writes no `SET timestamp`, and a server may write any number of further lines that begin with `#` before
//! the statement.

use crate::dialect;
use crate::error::Error;

use super::entry::{
    By, Entries, Entry, Moment, NUMBERLESS, SECOND_US, Stamp, What, Within, behind, number, seconds_us, stamp, unquoted,
};
use super::text::{Cut, Mark, Text};

const TIME: &[u8] = b"# Time:";
const USER: &[u8] = b"# User@Host:";
const QUERY_TIME: &[u8] = b"# Query_time:";
const COMMAND: &[u8] = b"# administrator command: ";

/// Most lines between `# User@Host:` and `# Query_time:`.
const LINES_MAX: usize = 16;

/// Whether this line begins an entry.
pub fn begins_entry(line: &[u8]) -> bool {
    line.starts_with(TIME) || line.starts_with(USER)
}

/// Reads all entries.
///
/// # Errors
/// No time at all, or too much of something; with file and line.
pub fn read(text: &mut Text<'_>) -> Result<Entries, Error> {
    text.is_delimited = true;
    let mut reader = Reader { entries: Entries::new(), time: None, is_own_time: false, schema: 0 };
    while !text.is_over() {
        let line = text.line_at(text.at);
        // A server that died may have begun the line on which the next one went on with its own.
        let banner = if begins_entry(line) { 0 } else { text.banner_lines(text.at) };
        if banner > 0 {
            text.skip_lines(banner);
            // The server forgets which schema it named last.
            reader.schema = 0;
        } else if let Some(time) = line.strip_prefix(TIME) {
            match stamp(time) {
                Some(time) => (reader.time, reader.is_own_time) = (Some(time), true),
                None => reader.entries.odd.times.at(text.line),
            }
            text.take_line();
        } else if line.starts_with(USER) {
            reader.entry(text)?;
        } else {
            if !line.trim_ascii().is_empty() {
                reader.entries.odd.stray.at(text.line);
            }
            text.take_line();
        }
    }
    Ok(reader.entries)
}

struct Reader {
    entries: Entries,
    /// Of the last `# Time:`, which MariaDB, Percona Server and MySQL 5.6 write only when it has changed.
    time: Option<Stamp>,
    /// Whether that is the time of the entry that comes next.
    is_own_time: bool,
    /// Of the last `use`, which MySQL writes only when it is another than in the entry before.
    schema: u16,
}

/// The lines before a statement.
#[derive(Default)]
struct Header<'a> {
    thread: Option<u64>,
    duration_us: i64,
    /// Its times are those of the start, not of the end.
    is_stamped_at_start: bool,
    schema: Option<&'a [u8]>,
    /// MySQL with log_slow_extra.
    start: Option<Stamp>,
    /// Of `SET timestamp=`.
    second: Option<i64>,
    used: Option<Vec<u8>>,
    is_of_routine: bool,
}

impl Reader {
    fn entry(&mut self, text: &mut Text<'_>) -> Result<(), Error> {
        let mut header = Header::default();
        header.user(text.take_line());
        while !text.is_over() {
            let line = text.line_at(text.at);
            if !line.starts_with(b"#") || begins_entry(line) || line.starts_with(COMMAND) {
                break;
            }
            if !header.field(line) {
                self.entries.odd.durations.at(text.line);
            }
            text.take_line();
        }
        header.before_statement(text);
        let (line, start) = (text.line, text.at);
        let cut = text.statement_end(start, |at, line| mark(text, at, line));
        text.go_to(cut.end);
        self.finish(text, &header, line, start, cut)
    }

    fn finish(&mut self, text: &Text<'_>, header: &Header<'_>, line: u32, start: usize, cut: Cut) -> Result<(), Error> {
        if let Some(name) = &header.used {
            self.schema = self.entries.schema(name, text)?;
        }
        let mut schema = Within::Schema(match header.schema {
            Some(name) => self.entries.schema(name, text)?,
            None => self.schema,
        });
        let body = text.from(start);
        let body = body[..cut.end - start].trim_ascii_end();
        let is_ended = body.ends_with(b";");
        let body = body.strip_suffix(b";").unwrap_or(body);
        let what = if let Some(command) = body.strip_prefix(COMMAND) {
            match command {
                b"Quit" => What::Quit,
                // The schema that the log has is that of before.
                b"Change user" => {
                    schema = Within::Schema(0);
                    What::Renew
                }
                b"Reset Connection" | b"Reset connection" => What::Renew,
                _ => What::Command,
            }
        } else if cut.is_whole && is_ended && !body.is_empty() {
            let by = if header.is_of_routine { By::Routine } else { By::Client };
            What::Statement { at: start as u32, length: body.len() as u32, by }
        } else {
            What::CutOff
        };
        let (stamp, moment) = self.stamp(header);
        let thread = header.thread.unwrap_or(NUMBERLESS);
        let (duration_us, whole) = (header.duration_us, Stamp { us: 0, is_exact: false });
        let entry = Entry { line, thread, stamp: stamp.unwrap_or(whole), moment, duration_us, schema, what };
        self.is_own_time = false;
        self.entries.push(entry, stamp, text)
    }

    /// The most exact of an entry's times, and which of the statement's it is.
    fn stamp(&self, header: &Header<'_>) -> (Option<Stamp>, Moment) {
        if let Some(start) = header.start {
            return (Some(start), Moment::Start);
        }
        let moment = if header.is_stamped_at_start { Moment::Start } else { Moment::End };
        let second = || header.second.map(|second| Stamp { us: second * SECOND_US, is_exact: false });
        let stamp = match self.time {
            Some(time) if time.is_exact && self.is_own_time => Some(time),
            // Percona Server names a time of microseconds once in a second.
            Some(time) if time.is_exact => {
                Some(Stamp { us: time.us.div_euclid(SECOND_US) * SECOND_US, is_exact: false })
            }
            // Of whole seconds that since 1970 has no time zone.
            time => second().or(time),
        };
        (stamp, moment)
    }
}

impl<'a> Header<'a> {
    /// `# User@Host: app[app] @ web1 [10.0.0.2]  Id:     7`: the name may hold anything, so the last number counts.
    fn user(&mut self, line: &[u8]) {
        self.thread = behind(line, b"]  Id: ").and_then(number);
        if self.thread.is_none() && !line.ends_with(b"Id:") {
            // MySQL 5.5 has no numbers: who comes from where stands for one. MariaDB's is in the next line.
            self.thread = Some(number_of_user(line));
        }
    }

    /// Takes what a line has; whether its duration, if that is what it has, is one.
    fn field(&mut self, line: &'a [u8]) -> bool {
        if let Some(rest) = line.strip_prefix(b"# Thread_id: ") {
            self.thread = number(rest);
        }
        self.is_stamped_at_start |= behind(line, dialect::STAMPS_AT_START).is_some();
        self.is_of_routine |= line.starts_with(b"# Stored_routine:") || line.starts_with(b"# Stored routine:");
        if let Some(rest) = line.strip_prefix(b"# Schema: ").or_else(|| behind(line, b"  Schema: ")) {
            let end = [&b"  QC_hit: "[..], b"  Last_errno: "].into_iter().find_map(|key| position(rest, key));
            self.schema = Some(rest[..end.unwrap_or(rest.len())].trim_ascii());
        }
        let Some(rest) = line.strip_prefix(QUERY_TIME) else { return true };
        if let Some(start) = behind(rest, b" Start: ") {
            self.start = stamp(start.split(|byte| *byte == b' ').next().unwrap_or_default());
        }
        let value = rest.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let duration_us = seconds_us(value);
        self.duration_us = duration_us.unwrap_or(0);
        duration_us.is_some()
    }

    /// `use shop;` and `SET timestamp=...;`, which the server writes before the statement. What stands alone is the
    /// statement.
    fn before_statement(&mut self, text: &mut Text<'_>) {
        let next_at = text.after_line(text.at);
        let next = text.line_at(next_at);
        let is_alone = next.is_empty() || begins_entry(next) || text.banner_lines(next_at) > 0;
        if let Some(name) = used(text.line_at(text.at)) {
            self.used = Some(unquoted(name));
            if is_alone {
                return;
            }
            text.take_line();
        }
        let settings = text.line_at(text.at);
        if is_settings(settings) {
            self.second = second(settings);
            text.take_line();
        }
    }
}

/// The number of connections that have none: of all of a user at a host the same.
pub fn number_of_user(user: &[u8]) -> u64 {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    user.iter().fold(0xcbf2_9ce4_8422_2325, hash) | NUMBERLESS
}

fn position(line: &[u8], key: &[u8]) -> Option<usize> {
    line.windows(key.len()).position(|part| part == key)
}

/// The schema of ``use `shop`;``.
fn used(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"use ")?.trim_ascii_end().strip_suffix(b";")
}

/// Whether the line is the server's `SET last_insert_id=4,insert_id=5,timestamp=1795438747;`, of which it writes what
/// it knows.
fn is_settings(line: &[u8]) -> bool {
    let assignments = line.strip_prefix(b"SET ").and_then(|line| line.trim_ascii_end().strip_suffix(b";"));
    assignments.is_some_and(|all| {
        all.split(|byte| *byte == b',').all(|part| {
            let name =
                [&b"last_insert_id="[..], b"insert_id=", b"timestamp="].into_iter().find(|name| part.starts_with(name));
            let value = name.map_or(&b""[..], |name| &part[name.len()..]);
            (1..=20).contains(&value.len()) && value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        })
    })
}

/// The seconds of `timestamp` among such settings, up to the year 9999.
fn second(line: &[u8]) -> Option<i64> {
    let seconds = i64::try_from(number(behind(line, b"timestamp=")?)?).ok()?;
    (seconds < 253_402_300_800).then_some(seconds)
}

/// What begins at a line within a statement, or in its place.
fn mark(text: &Text<'_>, at: usize, line: &[u8]) -> Mark {
    if line.first() != Some(&b'#') || !begins_entry(line) {
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
        if !line.starts_with(b"#") || begins_entry(line) {
            return false;
        }
    }
    false
}
