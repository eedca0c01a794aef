//! General query logs of MySQL 5.0 to 9, MariaDB and Percona Server, with times of whole seconds or of microseconds.
//!
//! Where `>` is a tabulator, an entry begins in one of these ways:
//!
//! ```text
//! 261123 12:58:53>    6 Connect>app@web1 on shop using TCP/IP
//! >>    6 Query>SELECT 1
//! 2026-11-23T12:59:07.302048Z>    7 Query>SELECT 1
//! 2026-11-23T12:59:07.302048Z    7 Query>SELECT 1        the first of MySQL 5.7
//! 071123 12:58:53>      6 Query       SELECT 1           MySQL 5.0; and what a terminal shows of the others
//! ```

use crate::error::Error;

use super::entry::{By, Entries, Entry, Moment, Stamp, What, Within, behind, leading, number};
use super::text::{Mark, Text, has};

/// Longest name of a command.
const COMMAND_MAX: usize = 48;

/// Commands that stand without a tabulator, as blanks fill the column or nothing is behind them; the longer ones first.
pub const COMMANDS: [&[u8]; 26] = [
    b"Reset Connection",
    b"Reset connection",
    b"Register Replica",
    b"Register Slave",
    b"Connect Out",
    b"Binlog Dump",
    b"Change user",
    b"Processlist",
    b"Close stmt",
    b"Field List",
    b"Reset stmt",
    b"Set option",
    b"Statistics",
    b"Create DB",
    b"Long Data",
    b"Shutdown",
    b"Drop DB",
    b"Connect",
    b"Execute",
    b"Init DB",
    b"Prepare",
    b"Refresh",
    b"Debug",
    b"Query",
    b"Quit",
    b"Ping",
];

/// How a log's entries stand on their lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// A tabulator stands behind the command.
    Tabbed,
    /// Blanks do.
    Padded,
}

/// The start of an entry.
struct Start<'a> {
    /// Where the line has it; else it is that of the entry before.
    stamp: Option<Stamp>,
    thread: u64,
    command: &'a [u8],
    /// Length of all that, with the tabulator or the blanks behind it.
    length: usize,
}

/// How the entry stands that this line begins, if it begins one with something behind the command.
pub fn columns(line: &[u8]) -> Option<Columns> {
    let stands = |columns: &Columns| start(line, *columns).is_some_and(|start| start.length < line.len());
    [Columns::Tabbed, Columns::Padded].into_iter().find(stands)
}

fn start(line: &[u8], columns: Columns) -> Option<Start<'_>> {
    let (stamp, time_length) = match line {
        [b'0'..=b'9', ..] => leading(line).map(|(stamp, length)| (Some(stamp), length))?,
        [b'\t', b'\t', ..] => (None, 2),
        [b' ', b' ', b' ', b' ', ..] if columns == Columns::Padded => (None, 4),
        _ => return None,
    };
    let rest = &line[time_length..];
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let digits = rest[blanks..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let thread = number(&rest[blanks..blanks + digits])?;
    let rest = rest[blanks + digits..].strip_prefix(b" ")?;
    let (command, behind) = command(rest, columns, stamp.is_some())?;
    Some(Start { stamp, thread, command, length: line.len() - rest.len() + behind })
}

/// The command that `rest` begins with, and its length with what separates it from its argument.
fn command(rest: &[u8], columns: Columns, has_time: bool) -> Option<(&[u8], usize)> {
    let tab = rest.iter().take(COMMAND_MAX + 1).position(|byte| *byte == b'\t');
    if columns == Columns::Tabbed
        && let Some(length) = tab
    {
        let command = &rest[..length];
        // MySQL's newest commands begin with a small letter.
        let is_name = command.first().is_some_and(|first| first.is_ascii_uppercase() || has_time)
            && command.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_'))
            && !has(command, b"  ");
        return is_name.then_some((command, length + 1));
    }
    let command = COMMANDS.into_iter().find(|command| rest.starts_with(command))?;
    let behind = &rest[command.len()..];
    let blanks = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    // An editor may have taken the blanks at the end of the line away.
    let is_bare = blanks == behind.len();
    (is_bare || blanks > 0 && columns == Columns::Padded).then_some((command, command.len() + blanks))
}

/// Reads all entries.
///
/// # Errors
/// No time at all, or too much of something; with file and line.
pub fn read(text: &mut Text<'_>, columns: Columns) -> Result<Entries, Error> {
    let mut reader = Reader { entries: Entries::new(), time: None, columns };
    while !text.is_over() {
        let line = text.line_at(text.at);
        // A server that died may have begun the line on which the next one went on with its own.
        if let Some(start) = start(line, columns) {
            reader.entry(text, &start)?;
            continue;
        }
        let banner = text.banner_lines(text.at);
        if banner > 0 {
            text.skip_lines(banner);
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
    time: Option<Stamp>,
    columns: Columns,
}

impl Reader {
    fn entry(&mut self, text: &mut Text<'_>, start: &Start<'_>) -> Result<(), Error> {
        let (line, first) = (text.line, text.at);
        self.time = start.stamp.or(self.time);
        let after = text.after_line(first);
        let at = (text.after_zeros(first) + start.length).min(after);
        let columns = self.columns;
        let is_statement = matches!(start.command, b"Query" | b"Execute" | b"Bulk_execute");
        let (end, is_whole) = if is_statement || start.command == b"Prepare" {
            let mark = |at: usize, line: &[u8]| {
                if at >= after && begins_entry(line, columns) { Mark::WholeEntry } else { Mark::None }
            };
            let cut = text.statement_end(at, mark);
            (cut.end, cut.is_whole)
        } else {
            (after, true)
        };
        let body = text.from(at)[..end.saturating_sub(at)].trim_ascii_end();
        text.go_to(end);
        let (what, schema) = match meaning(start.command, body, &mut self.entries, text)? {
            (What::Statement { by, .. }, schema) => {
                let body = if by == By::Execute { without_number(body) } else { body };
                let at = text.offset_of(body) as u32;
                let is_usable = is_whole && !body.is_empty();
                (if is_usable { What::Statement { at, length: body.len() as u32, by } } else { What::CutOff }, schema)
            }
            other => other,
        };
        let stamp = self.time.unwrap_or(Stamp { us: 0, is_exact: false });
        let moment = Moment::Start;
        let entry = Entry { line, thread: start.thread, stamp, moment, duration_us: 0, schema, what };
        self.entries.push(entry, self.time, text)
    }
}

/// What a command with its argument is about; the place of a statement is not known here.
///
/// # Errors
/// There are too many schemas.
pub fn meaning(
    command: &[u8],
    argument: &[u8],
    entries: &mut Entries,
    text: &Text<'_>,
) -> Result<(What, Within), Error> {
    let statement = |by| What::Statement { at: 0, length: 0, by };
    Ok(match command {
        b"Query" => (statement(By::Client), Within::OfSession),
        b"Execute" | b"Bulk_execute" => (statement(By::Execute), Within::OfSession),
        b"Connect" | b"Change user" if argument.starts_with(b"Access denied") => (What::Command, Within::OfSession),
        b"Connect" => (What::Connect, Within::Schema(entries.schema(&connected_to(argument), text)?)),
        b"Change user" => (What::Renew, Within::Schema(entries.schema(&connected_to(argument), text)?)),
        b"Reset Connection" | b"Reset connection" => (What::Renew, Within::OfSession),
        b"Init DB" => (What::Enter, Within::Schema(entries.schema(argument, text)?)),
        b"Quit" => (What::Quit, Within::OfSession),
        _ => (What::Command, Within::OfSession),
    })
}

fn begins_entry(line: &[u8], columns: Columns) -> bool {
    matches!(line.first(), Some(b'0'..=b'9' | b'\t' | b' ')) && start(line, columns).is_some()
}

/// What is executed, behind the number of the prepared statement that MySQL 5.0 writes before it: `[1] SELECT 5`.
fn without_number(body: &[u8]) -> &[u8] {
    let Some(rest) = body.strip_prefix(b"[") else { return body };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match &rest[digits..] {
        [b']', b' ', statement @ ..] if digits > 0 => statement,
        _ => body,
    }
}

/// The schema of `app@web1 on shop using TCP/IP`, or of `app@web1 on shop`.
fn connected_to(body: &[u8]) -> Vec<u8> {
    let name = behind(body, b" on ").unwrap_or_default();
    let end = name.windows(7).rposition(|part| part == b" using ").unwrap_or(name.len());
    let name = name[..end].trim_ascii();
    if name.starts_with(b"using ") { Vec::new() } else { name.to_vec() }
}
