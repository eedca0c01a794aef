//! General query logs: MySQL and MariaDB, with times of whole seconds or of microseconds.
//!
//! Where `>` is a tabulator, an entry begins in one of these ways:
//!
//! ```text
//! 261123 12:58:53>    6 Connect>app@web1 on shop using TCP/IP
//! >>    6 Query>SELECT 1
//! 2026-11-23T12:59:07.302048Z>    7 Query>SELECT 1
//! ```

use std::collections::HashMap;

use crate::error::Error;

use super::entry::{Entries, Entry, Moment, What, behind, number};
use super::stamp::{Stamp, stamp, stamp_length};
use super::text::{Mark, Text};

/// Longest name of a command.
const COMMAND_MAX: usize = 24;

/// The start of an entry.
struct Start<'a> {
    /// Where the line has it; else it is that of the entry before.
    stamp: Option<Stamp>,
    thread: u64,
    command: &'a [u8],
    /// Length of all that, with the tabulator behind it.
    length: usize,
}

/// Whether this line begins an entry.
pub fn begins_entry(line: &[u8]) -> bool {
    start(line).is_some()
}

fn start(line: &[u8]) -> Option<Start<'_>> {
    let time_length = if line.starts_with(b"\t\t") { 1 } else { stamp_length(line)? };
    let stamp = if time_length == 1 { None } else { stamp(&line[..time_length]) };
    let rest = &line[time_length + 1..];
    let digits_at = rest.iter().position(|byte| *byte != b' ')?;
    let digits = rest[digits_at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let thread = number(&rest[digits_at..digits_at + digits])?;
    let rest = rest[digits_at + digits..].strip_prefix(b" ")?;
    let length = rest.iter().take(COMMAND_MAX + 1).position(|byte| *byte == b'\t')?;
    let command = &rest[..length];
    let is_name = command.first()?.is_ascii_uppercase()
        && command.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_'));
    is_name.then(|| Start { stamp, thread, command, length: line.len() - rest.len() + length + 1 })
}

/// Reads all entries.
///
/// # Errors
/// An entry before the first time, or too much of something; with file and line.
pub fn read(mut text: Text<'_>) -> Result<Entries, Error> {
    let mut reader = Reader { entries: Entries::new(), time: None, threads: HashMap::new() };
    while !text.is_over() {
        if text.is_server_header(text.at) {
            text.skip_server_header();
        } else if let Some(start) = start(text.line_at(text.at)) {
            reader.entry(&mut text, &start)?;
        } else {
            if !text.line_at(text.at).trim_ascii().is_empty() {
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
    time: Option<Stamp>,
    threads: HashMap<u64, Thread>,
}

/// What is known of a connection.
#[derive(Clone, Copy, Default)]
struct Thread {
    schema: u16,
    /// Its last statement was EXECUTE, which the server logs once more as what it executes.
    executes: bool,
}

impl Reader {
    fn entry(&mut self, text: &mut Text<'_>, start: &Start<'_>) -> Result<(), Error> {
        let (line, at) = (text.line, text.at + start.length);
        self.time = start.stamp.or(self.time);
        let Some(stamp) = self.time else {
            return Err(
                text.error("this entry has no time, nor has any before it: is the beginning of the log missing?")
            );
        };
        let first = text.at;
        let mark = |at: usize| if at > first && begins_entry(text.line_at(at)) { Mark::WholeEntry } else { Mark::None };
        let cut = text.statement_end(at.min(text.after_line(first)), mark)?;
        let body = text.from(at)[..cut.end.saturating_sub(at)].trim_ascii_end();
        text.go_to(cut.end);
        let mut thread = self.threads.get(&start.thread).copied().unwrap_or_default();
        let what = self.what(start.command, body, cut.is_whole, at, &mut thread);
        match what {
            What::Connect => {
                thread = Thread { schema: self.entries.schema(&connected_to(body), text)?, executes: false }
            }
            _ if start.command == b"Init DB" => thread.schema = self.entries.schema(body, text)?,
            _ => {}
        }
        if what == What::Quit {
            self.threads.remove(&start.thread);
        } else {
            self.threads.insert(start.thread, thread);
        }
        let entry = Entry {
            line,
            thread: start.thread,
            stamp,
            moment: Moment::Start,
            duration_us: 0,
            schema: thread.schema,
            what,
        };
        self.entries.push(entry, text)
    }

    fn what(&mut self, command: &[u8], body: &[u8], is_whole: bool, at: usize, thread: &mut Thread) -> What {
        if command == b"Prepare" {
            return self.command(What::Other);
        }
        let is_repeated = std::mem::take(&mut thread.executes) && command == b"Execute";
        match command {
            b"Query" | b"Execute" if is_repeated => What::Other,
            b"Query" | b"Execute" if is_whole && !body.is_empty() => {
                thread.executes = body.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"EXECUTE"));
                What::Statement { at: at as u32, length: body.len() as u32 }
            }
            b"Query" | b"Execute" => {
                self.entries.unusable.cut_off += 1;
                What::Other
            }
            b"Connect" if body.starts_with(b"Access denied") => self.command(What::Other),
            b"Connect" => What::Connect,
            b"Quit" => What::Quit,
            b"Init DB" => What::Other,
            _ => self.command(What::Other),
        }
    }

    fn command(&mut self, what: What) -> What {
        self.entries.unusable.commands += 1;
        what
    }
}

/// The schema of `app@web1 on shop using TCP/IP`, or of `app@web1 on shop`.
fn connected_to(body: &[u8]) -> Vec<u8> {
    let name = behind(body, b" on ").unwrap_or_default();
    let end = name.windows(7).rposition(|part| part == b" using ").unwrap_or(name.len());
    let name = name[..end].trim_ascii();
    if name.starts_with(b"using ") { Vec::new() } else { name.to_vec() }
}
