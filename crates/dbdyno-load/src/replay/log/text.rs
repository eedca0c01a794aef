//! The bytes of a log by lines, with the bounds on what is read of it.

use std::cell::Cell;

use crate::error::Error;

use super::quotes::Quotes;

/// Longest line of what the server itself writes about a statement.
const HEADER_MAX: usize = 64 << 10;

/// Longest statement; servers take 64 MiB unless they are set otherwise, and a GiB at most.
const STATEMENT_MAX: usize = 64 << 20;

/// How far a string that holds what looks like an entry is followed for its end.
const LOOK_AHEAD: usize = 1 << 20;

/// The same over all statements of a log: one made of nothing else must not take for ever.
const LOOK_AHEAD_ALL: usize = 1 << 30;

/// How a server begins a log, and goes on after FLUSH LOGS or a start: three lines.
const STARTED: &[u8] = b"started with:";

/// What comes at the start of a line within a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The statement goes on.
    None,
    /// Another entry, where a statement may end before it.
    Entry,
    /// Another entry by all that there is of it, wherever it stands.
    WholeEntry,
}

/// Where a statement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Offset of what follows.
    pub end: usize,
    /// Whether all strings and comments in it have an end.
    pub is_whole: bool,
}

/// A log's bytes, and where in them the reader is.
pub struct Text<'a> {
    name: &'a str,
    bytes: &'a [u8],
    /// Offset of the next line.
    pub at: usize,
    /// Number of that line, from 1.
    pub line: u32,
    /// Whether the server writes `;` behind each statement.
    pub is_delimited: bool,
    /// How far has been looked ahead so far.
    looked_ahead: Cell<usize>,
}

impl<'a> Text<'a> {
    /// From the start.
    pub fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self { name, bytes, at: 0, line: 1, is_delimited: false, looked_ahead: Cell::new(0) }
    }

    /// A mistake in the line that comes next. It must not quote a statement.
    pub fn error(&self, what: &str) -> Error {
        Error::Usage(format!("{}:{}: {what}", self.name, self.line))
    }

    /// Whether there is no further line.
    pub fn is_over(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// All bytes from `at` on.
    pub fn from(&self, at: usize) -> &'a [u8] {
        &self.bytes[at..]
    }

    /// The end of what stands before `at`, as much as matters.
    pub fn before(&self, at: usize) -> &'a [u8] {
        &self.bytes[at.saturating_sub(HEADER_MAX)..at]
    }

    /// The line that begins at `at`, without its end; of a long one only the beginning.
    pub fn line_at(&self, at: usize) -> &'a [u8] {
        let rest = self.from(at);
        let rest = &rest[..rest.len().min(HEADER_MAX)];
        let line = rest.iter().position(|byte| *byte == b'\n').map_or(rest, |end| &rest[..end]);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Where the line after the one at `at` begins.
    pub fn after_line(&self, at: usize) -> usize {
        self.from(at).iter().position(|byte| *byte == b'\n').map_or(self.bytes.len(), |end| at + end + 1)
    }

    /// Goes to `end`, which is the start of a line.
    pub fn go_to(&mut self, end: usize) {
        let newlines = self.bytes[self.at..end].iter().map(|byte| u32::from(*byte == b'\n')).sum::<u32>();
        self.line = self.line.saturating_add(newlines);
        self.at = end;
    }

    /// Goes over one line and gives it.
    ///
    /// # Errors
    /// It is longer than any that a server writes.
    pub fn take_line(&mut self) -> Result<&'a [u8], Error> {
        let (line, end) = (self.line_at(self.at), self.after_line(self.at));
        if end - self.at > HEADER_MAX {
            return Err(self.error(&format!(
                "a line of more than {} KiB outside of a statement: this is no log of a server",
                HEADER_MAX >> 10
            )));
        }
        (self.at, self.line) = (end, self.line.saturating_add(1));
        Ok(line)
    }

    /// Whether the server's own three lines begin at `at`.
    pub fn is_server_header(&self, at: usize) -> bool {
        let line = self.line_at(at);
        let has_version = || line.windows(11).any(|part| part == b", Version: ");
        line.ends_with(STARTED) && has_version() && {
            let second = self.line_at(self.after_line(at));
            second.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"Tcp port:"))
        }
    }

    /// Goes over the server's own lines.
    pub fn skip_server_header(&mut self) {
        let end = (0..3).fold(self.at, |at, _| self.after_line(at));
        self.go_to(end);
    }

    /// Where the statement ends that begins at `start`: at the next entry by `mark`, of which the server's own lines are one.
    ///
    /// What looks like an entry may stand in a string of the statement; and a string may have no end, as a server logs
    /// statements with mistakes too. What stands in an open string is taken for a part of it if that string ends, and
    /// with it the statement, and it would itself not be a sound entry.
    ///
    /// # Errors
    /// It is too long.
    pub fn statement_end(&self, start: usize, mark: impl Fn(usize) -> Mark) -> Result<Cut, Error> {
        let (mut quotes, mut without_escapes) = (Quotes::new(true), Quotes::new(false));
        let mut at = start;
        loop {
            let found = self.mark_at(start, at, &mark);
            if found == Mark::WholeEntry && quotes.is_open() {
                let cut = Cut { end: at, is_whole: !without_escapes.is_open() };
                return Ok(self.after_string(at, quotes, &mark).unwrap_or(cut));
            }
            if (found != Mark::None && !quotes.is_open()) || at == self.bytes.len() {
                return Ok(Cut { end: at, is_whole: !quotes.is_open() });
            }
            if at - start > STATEMENT_MAX {
                return Err(self.error(&format!("a statement of more than {} MiB: leave it out", STATEMENT_MAX >> 20)));
            }
            let end = self.after_line(at);
            quotes.pass(&self.bytes[at..end], |_, _| ());
            without_escapes.pass(&self.bytes[at..end], |_, _| ());
            at = end;
        }
    }

    /// The end of the statement whose string is open at `doubtful`, by `quotes`; `None` if the string has no end.
    fn after_string(&self, doubtful: usize, mut quotes: Quotes, mark: &impl Fn(usize) -> Mark) -> Option<Cut> {
        let (mut at, mut was_closed, mut as_entry) = (doubtful, false, Quotes::new(true));
        while at < self.bytes.len() && at - doubtful <= LOOK_AHEAD && self.looked_ahead.get() < LOOK_AHEAD_ALL {
            let end = self.after_line(at);
            quotes.pass(&self.bytes[at..end], |_, _| was_closed = true);
            as_entry.pass(&self.bytes[at..end], |_, _| ());
            self.looked_ahead.set(self.looked_ahead.get() + end - at);
            at = end;
            let found = self.mark_at(doubtful, at, mark);
            let is_end = found != Mark::None || at == self.bytes.len();
            if is_end && !quotes.is_open() {
                return Some(Cut { end: at, is_whole: true });
            }
            let is_sound =
                || !as_entry.is_open() && (!self.is_delimited || self.before(at).trim_ascii_end().ends_with(b";"));
            if found == Mark::WholeEntry && was_closed && is_sound() {
                return None;
            }
        }
        None
    }

    fn mark_at(&self, start: usize, at: usize, mark: &impl Fn(usize) -> Mark) -> Mark {
        if at == start || at == self.bytes.len() {
            Mark::None
        } else if self.is_server_header(at) {
            Mark::WholeEntry
        } else {
            mark(at)
        }
    }
}
