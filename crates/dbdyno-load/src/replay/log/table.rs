//! The log tables `mysql.slow_log` and `mysql.general_log` as files: those of the CSV engine, and what `SELECT ... INTO
//! OUTFILE`, a client with `--batch` and graphical clients write of them.
//!
//! A row is a line; its cells are separated by commas or tabs and may be quoted. Where no line names the columns they
//! are those of the server's own table, in its order.

use crate::error::Error;

use super::entry::{By, Entries, Entry, Moment, SECOND_US, What, Within, leading, number, seconds_us, stamp};
use super::general::{self, COMMANDS};
use super::slow::number_of_user;
use super::text::Text;

/// Most cells of a row.
const CELLS_MAX: usize = 64;

/// The columns of `general_log`.
const GENERAL: [&[u8]; 6] = [b"event_time", b"user_host", b"thread_id", b"server_id", b"command_type", b"argument"];

/// The columns of `slow_log`; MySQL 5.5 has not the last two, and MariaDB alone has the last.
const SLOW: [&[u8]; 13] = [
    b"start_time",
    b"user_host",
    b"query_time",
    b"lock_time",
    b"rows_sent",
    b"rows_examined",
    b"db",
    b"last_insert_id",
    b"insert_id",
    b"server_id",
    b"sql_text",
    b"thread_id",
    b"rows_affected",
];

/// How the rows of a table stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The table is `slow_log`.
    pub is_slow: bool,
    separator: u8,
    /// A line names the columns.
    has_heading: bool,
    /// A backslash escapes, also within quotes. Graphical clients double the quotes instead.
    escapes: bool,
}

/// The layout of a file in which this line is the first of a table, if it is.
pub fn layout(line: &[u8]) -> Option<Layout> {
    for separator in [b'\t', b','] {
        let mut layout = Layout { is_slow: false, separator, has_heading: true, escapes: separator == b'\t' };
        let row = layout.row(line);
        if is_heading(&row.cells, layout.is_slow) {
            return Some(layout);
        }
        layout.is_slow = true;
        if is_heading(&row.cells, layout.is_slow) {
            return Some(layout);
        }
        (layout.has_heading, layout.escapes) = (false, true);
        let row = layout.row(line);
        let cells = &row.cells;
        let is_number =
            |at: usize| cells.get(at).is_some_and(|cell| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit));
        if cells.len() < GENERAL.len() || stamp(&cells[0]).is_none() {
            continue;
        }
        if cells.len() == GENERAL.len() && is_number(2) && is_number(3) {
            return Some(Layout { is_slow: false, ..layout });
        }
        if (SLOW.len() - 2..=SLOW.len()).contains(&cells.len()) && clock_us(&cells[2]).is_some() && is_number(4) {
            return Some(layout);
        }
    }
    None
}

/// Whether the cells are the names of columns: the time and the statement are among them.
fn is_heading(cells: &[Vec<u8>], is_slow: bool) -> bool {
    let (time, sql) = if is_slow { (SLOW[0], SLOW[10]) } else { (GENERAL[0], GENERAL[5]) };
    [time, sql].iter().all(|name| cells.iter().any(|cell| cell.eq_ignore_ascii_case(name)))
}

/// Reads all rows; gives the entries and the texts that they are in, as the cells hold them with escapes.
///
/// # Errors
/// No time at all, or too much of something; with file and line.
pub fn read(text: &mut Text<'_>, layout: Layout) -> Result<(Entries, Vec<u8>), Error> {
    let all: &[&[u8]] = if layout.is_slow { &SLOW } else { &GENERAL };
    let mut reader = Reader {
        entries: Entries::new(),
        texts: Vec::new(),
        columns: all.iter().map(|name| name.to_vec()).collect(),
        layout,
    };
    while !text.is_over() {
        let rest = text.from(text.at);
        let row = layout.row(rest);
        let (line, end) = (text.line, text.at + row.length);
        reader.row(&row, line, text)?;
        text.go_to(end);
    }
    Ok((reader.entries, reader.texts))
}

/// The cells of a row, and its length with its end.
struct Row {
    cells: Vec<Vec<u8>>,
    length: usize,
    /// All quotes have their ends.
    is_whole: bool,
}

impl Layout {
    /// The row that `bytes` begin with; one of too many cells is not whole.
    fn row(self, bytes: &[u8]) -> Row {
        let (mut cells, mut cell, mut at) = (Vec::new(), Vec::new(), 0);
        let mut is_whole = true;
        loop {
            let is_quoted = cell.is_empty() && bytes.get(at) == Some(&b'"') && self.has_quotes();
            if is_quoted {
                match self.quoted(bytes, at + 1, &mut cell) {
                    Ok(end) => at = end,
                    Err(end) => (at, is_whole) = (end, false),
                }
            }
            let byte = bytes.get(at).copied();
            match byte {
                None | Some(b'\n') => {
                    if cell.last() == Some(&b'\r') && !is_quoted {
                        cell.pop();
                    }
                    cells.push(cell);
                    let length = if byte.is_none() { bytes.len() } else { at + 1 };
                    return Row { cells, length, is_whole };
                }
                Some(byte) if byte == self.separator => {
                    let full = std::mem::take(&mut cell);
                    if cells.len() < CELLS_MAX {
                        cells.push(full);
                    } else {
                        is_whole = false;
                    }
                    at += 1;
                }
                Some(b'\r') if is_quoted => at += 1,
                Some(b'\\') if self.escapes => {
                    at += 1;
                    if let Some(escaped) = bytes.get(at) {
                        cell.push(unescaped(*escaped));
                        at += 1;
                    }
                }
                Some(byte) => {
                    cell.push(byte);
                    at += 1;
                }
            }
        }
    }

    /// What a client writes with tabulators has no quotes around it.
    fn has_quotes(self) -> bool {
        self.separator != b'\t' || !self.has_heading
    }

    /// Reads what stands between quotes, to where they end; or to the line that begins another row, as they have no
    /// end.
    fn quoted(self, bytes: &[u8], start: usize, cell: &mut Vec<u8>) -> Result<usize, usize> {
        let mut at = start;
        while let Some(byte) = bytes.get(at).copied() {
            match byte {
                b'"' if bytes.get(at + 1) == Some(&b'"') => {
                    cell.push(b'"');
                    at += 2;
                }
                b'"' => return Ok(at + 1),
                b'\\' if self.escapes && at + 1 < bytes.len() => {
                    cell.push(unescaped(bytes[at + 1]));
                    at += 2;
                }
                b'\n' if self.begins_row(&bytes[at + 1..]) => return Err(at),
                byte => {
                    cell.push(byte);
                    at += 1;
                }
            }
        }
        Err(at)
    }

    fn begins_row(self, bytes: &[u8]) -> bool {
        let quotes = usize::from(bytes.first() == Some(&b'"'));
        leading(&bytes[quotes..bytes.len().min(64)])
            .is_some_and(|(_, length)| bytes.get(quotes + length + quotes) == Some(&self.separator))
    }
}

/// What a backslash makes of the byte behind it.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'0' => 0,
        b'Z' => 0x1a,
        byte => byte,
    }
}

struct Reader {
    entries: Entries,
    texts: Vec<u8>,
    columns: Vec<Vec<u8>>,
    layout: Layout,
}

impl Reader {
    fn row(&mut self, row: &Row, line: u32, text: &Text<'_>) -> Result<(), Error> {
        let all: &[&[u8]] = if self.layout.is_slow { &SLOW } else { &GENERAL };
        if is_heading(&row.cells, self.layout.is_slow) {
            self.columns = row.cells.iter().map(|cell| cell.to_ascii_lowercase()).collect();
            return Ok(());
        }
        let cell = |name: &[u8]| {
            let at = self.columns.iter().position(|column| column == name)?;
            row.cells.get(at).map(Vec::as_slice)
        };
        let Some(time) = cell(all[0]).and_then(stamp) else {
            if row.cells.iter().any(|cell| !cell.trim_ascii().is_empty()) {
                self.entries.odd.stray.at(line);
            }
            return Ok(());
        };
        let thread = cell(b"thread_id").and_then(number);
        let thread = thread.unwrap_or_else(|| number_of_user(cell(b"user_host").unwrap_or_default()));
        let sql = cell(if self.layout.is_slow { SLOW[10] } else { GENERAL[5] });
        let is_cut = !row.is_whole || sql.is_none();
        let sql = decode_hex(sql.unwrap_or_default());
        let command = cell(GENERAL[4]).map(<[u8]>::to_vec);
        let duration_us = cell(SLOW[2]).map(clock_us);
        let schema = cell(SLOW[6]).map(|name| if name == b"NULL" { b"" } else { name }.to_vec());
        // MySQL writes the time of the end in a column of that name.
        let moment = if !self.layout.is_slow || cell(SLOW[12]).is_some() { Moment::Start } else { Moment::End };
        let at = self.texts.len();
        let (what, schema) = if self.layout.is_slow {
            if duration_us == Some(None) {
                self.entries.odd.durations.at(line);
            }
            let schema = Within::Schema(self.entries.schema(&schema.unwrap_or_default(), text)?);
            match sql.trim_ascii() {
                b"Quit" => (What::Quit, schema),
                b"Change user" => (What::Renew, Within::Schema(0)),
                b"Reset Connection" | b"Reset connection" => (What::Renew, schema),
                command if COMMANDS.contains(&command) => (What::Command, schema),
                _ => (What::Statement { at: at as u32, length: 0, by: By::Client }, schema),
            }
        } else {
            general::meaning(command.as_deref().unwrap_or(b"Query"), &sql, &mut self.entries, text)?
        };
        let what = match what {
            What::Statement { by, .. } => {
                let sql = sql.trim_ascii_end();
                self.texts.extend_from_slice(sql);
                self.texts.push(b'\n');
                let is_usable = !is_cut && !sql.is_empty() && u32::try_from(self.texts.len()).is_ok();
                if is_usable { What::Statement { at: at as u32, length: sql.len() as u32, by } } else { What::CutOff }
            }
            what => what,
        };
        let duration_us = duration_us.flatten().unwrap_or(0);
        let entry = Entry { line, thread, stamp: time, moment, duration_us, schema, what };
        self.entries.push(entry, Some(time), text)
    }
}

/// A cell as text: clients show bytes as `0x53454C4543...` if they are told to.
fn decode_hex(cell: &[u8]) -> Vec<u8> {
    let digits = cell.strip_prefix(b"0x").filter(|digits| digits.len() >= 2 && digits.len().is_multiple_of(2));
    let byte = |two: &[u8]| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
    digits.and_then(|digits| digits.chunks(2).map(byte).collect()).unwrap_or_else(|| cell.to_vec())
}

/// A duration such as `00:00:01.234567`, microseconds.
fn clock_us(text: &[u8]) -> Option<i64> {
    let mut parts = text.split(|byte| *byte == b':');
    let (hours, minutes, seconds) = (number(parts.next()?)?, number(parts.next()?)?, seconds_us(parts.next()?)?);
    let is_clock = parts.next().is_none() && hours < 1000 && minutes < 60;
    let whole = if is_clock { i64::try_from(hours * 3600 + minutes * 60).ok()? } else { return None };
    Some(whole * SECOND_US + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_minutes_of_an_hour() {
        assert_eq!(clock_us(b"00:01:01.5"), Some(61_500_000));
        for none in ["00:99999999999999:00", "00:60:00", "1000:00:00", "00:01", "0:0:0:0"] {
            assert_eq!(clock_us(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_row_of_many_cells_is_one_row_that_is_not_whole() {
        let layout = Layout { is_slow: false, separator: b',', has_heading: false, escapes: true };
        let row = layout.row([",".repeat(100).as_bytes(), b"\\\nx\nnext"].concat().as_slice());
        assert_eq!((row.cells.len(), row.length, row.is_whole), (CELLS_MAX + 1, 104, false));
    }
}
