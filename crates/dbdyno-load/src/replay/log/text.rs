//! The bytes of a log by lines, with the bounds on what is read of it; and where a place in SQL is: in a string, in a
//! comment, or outside of both, for any bytes.

use std::cell::Cell;

use crate::error::Error;

/// Longest line of what the server itself writes about a statement.
const HEADER_MAX: usize = 64 << 10;

/// Longest statement; servers take 64 MiB unless they are set otherwise, and a GiB at most. Tests need not make one.
const STATEMENT_MAX: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// How far a string that holds what looks like an entry is followed for its end.
const LOOK_AHEAD: usize = 1 << 20;

/// The same over all statements of a log: one made of nothing else must not take for ever.
const LOOK_AHEAD_ALL: usize = 1 << 30;

/// How a server begins a log, and goes on after FLUSH LOGS or a start: the end of the first of three lines, and the two
/// others.
const STARTED: &[u8] = b"started with:";
const PORT: &[u8] = b"tcp port:";
const COLUMNS: [&[u8]; 4] = [b"Time", b"Id", b"Command", b"Argument"];

/// What Amazon RDS writes in place of the rest of a long line.
const TRUNCATED: &[u8] = b"[Your log message was truncated]";

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

    /// Where in the log `part` of it begins.
    pub fn offset_of(&self, part: &[u8]) -> usize {
        part.as_ptr() as usize - self.bytes.as_ptr() as usize
    }

    /// All bytes from `at` on.
    pub fn from(&self, at: usize) -> &'a [u8] {
        &self.bytes[at..]
    }

    /// The end of what stands before `at`, as much as matters.
    pub fn before(&self, at: usize) -> &'a [u8] {
        &self.bytes[at.saturating_sub(HEADER_MAX)..at]
    }

    /// The line that begins at `at`, without its end, and without the zeros that a crash may leave before it; of a long
    /// one only the beginning.
    pub fn line_at(&self, at: usize) -> &'a [u8] {
        let rest = self.from(at);
        let rest = &rest[..rest.len().min(HEADER_MAX)];
        let line = rest.iter().position(|byte| *byte == b'\n').map_or(rest, |end| &rest[..end]);
        stripped(line)
    }

    /// Where what [`Self::line_at`] gives begins.
    pub fn after_zeros(&self, at: usize) -> usize {
        at + zeros(self.from(at))
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

    /// Goes over one line and gives it, of a long one the beginning.
    pub fn take_line(&mut self) -> &'a [u8] {
        let (line, end) = (self.line_at(self.at), self.after_line(self.at));
        (self.at, self.line) = (end, self.line.saturating_add(1));
        line
    }

    /// How many of the server's own lines begin at `at`: three, or what an editor or a crash has left of them.
    pub fn banner_lines(&self, at: usize) -> usize {
        self.banner_lines_from(at, self.line_at(at))
    }

    fn banner_lines_from(&self, at: usize, line: &[u8]) -> usize {
        // Nearly all lines are told by their first or last byte.
        let is_first = line.last() == Some(&b':') && line.ends_with(STARTED) && has(line, b", Version: ");
        let is_port = |line: &[u8]| line.get(..PORT.len()).is_some_and(|start| start.eq_ignore_ascii_case(PORT));
        let is_columns = |line: &[u8]| {
            line.first() == Some(&b'T')
                && line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).eq(COLUMNS)
        };
        let is_second = matches!(line.first(), Some(b'T' | b't')) && is_port(line);
        if !is_first && !is_second {
            return usize::from(is_columns(line));
        }
        let next_at = self.after_line(at);
        let next = self.line_at(next_at);
        match (is_first, is_port(next), is_columns(next)) {
            (true, true, _) if is_columns(self.line_at(self.after_line(next_at))) => 3,
            (true, true, _) | (_, _, true) => 2,
            _ => 0,
        }
    }

    /// Goes over `count` lines.
    pub fn skip_lines(&mut self, count: usize) {
        let end = (0..count).fold(self.at, |at, _| self.after_line(at));
        self.go_to(end);
    }

    /// Where the statement ends that begins at `start`: at the next entry by `mark`, of which the server's own lines
    /// are one.
    ///
    /// What looks like an entry may stand in a string of the statement; and a string may have no end, as a server logs
    /// statements with mistakes too. What stands in an open string is taken for a part of it if that string ends, and
    /// with it the statement, and it would itself not be a sound entry. A statement that is too long is not whole.
    pub fn statement_end(&self, start: usize, mark: impl Fn(usize, &[u8]) -> Mark) -> Cut {
        let (mut quotes, mut without_escapes) = (Quotes::new(true), Quotes::new(false));
        let mut at = start;
        loop {
            let (line, end) = self.line_and_end(at);
            let next_mark = self.mark_at(at, line, &mark);
            let is_too_long = at - start > STATEMENT_MAX;
            if next_mark == Mark::WholeEntry && (quotes.is_open() || is_too_long) {
                let cut = Cut { end: at, is_whole: !without_escapes.is_open() && !is_too_long };
                return if is_too_long { cut } else { self.after_string(at, quotes, &mark).unwrap_or(cut) };
            }
            if (next_mark != Mark::None && !quotes.is_open()) || at == self.bytes.len() {
                let is_cut = is_too_long || self.is_broken_off(start, at);
                return Cut { end: at, is_whole: !quotes.is_open() && !is_cut };
            }
            if !is_too_long {
                quotes.pass(&self.bytes[at..end], |_, _| ());
                without_escapes.pass(&self.bytes[at..end], |_, _| ());
            }
            at = end;
        }
    }

    /// Whether what ends at `end` ends in the middle: where a server died and another began to write, or where RDS left
    /// something out.
    fn is_broken_off(&self, start: usize, end: usize) -> bool {
        let last = self.before(end).trim_ascii_end();
        let last = &last[last.len().saturating_sub(end - start)..];
        last.ends_with(TRUNCATED) || last.ends_with(STARTED) && has(last, b", Version: ")
    }

    /// The end of the statement whose string is open at `doubtful`, by `quotes`; `None` if the string has no end.
    fn after_string(&self, doubtful: usize, mut quotes: Quotes, mark: &impl Fn(usize, &[u8]) -> Mark) -> Option<Cut> {
        let (mut at, mut was_closed, mut as_entry) = (doubtful, false, Quotes::new(true));
        while at < self.bytes.len() && at - doubtful <= LOOK_AHEAD && self.looked_ahead.get() < LOOK_AHEAD_ALL {
            let end = self.after_line(at);
            quotes.pass(&self.bytes[at..end], |_, _| was_closed = true);
            as_entry.pass(&self.bytes[at..end], |_, _| ());
            self.looked_ahead.set(self.looked_ahead.get() + end - at);
            at = end;
            let next_mark = self.mark_at(at, self.line_at(at), mark);
            let is_end = next_mark != Mark::None || at == self.bytes.len();
            if is_end && !quotes.is_open() {
                return Some(Cut { end: at, is_whole: true });
            }
            let is_sound =
                || !as_entry.is_open() && (!self.is_delimited || self.before(at).trim_ascii_end().ends_with(b";"));
            if next_mark == Mark::WholeEntry && was_closed && is_sound() {
                return None;
            }
        }
        None
    }

    fn mark_at(&self, at: usize, line: &[u8], mark: &impl Fn(usize, &[u8]) -> Mark) -> Mark {
        if at == self.bytes.len() {
            Mark::None
        } else if self.banner_lines_from(at, line) > 0 {
            Mark::WholeEntry
        } else {
            mark(at, line)
        }
    }

    /// The line that begins at `at`, without its end; and where the next one begins.
    fn line_and_end(&self, at: usize) -> (&'a [u8], usize) {
        let rest = self.from(at);
        let length = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..length.unwrap_or(rest.len()).min(HEADER_MAX)];
        (stripped(line), length.map_or(self.bytes.len(), |length| at + length + 1))
    }
}

fn stripped(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    &line[zeros(line)..]
}

fn zeros(line: &[u8]) -> usize {
    line.iter().take_while(|byte| **byte == 0).count()
}

/// Whether `part` stands anywhere in `line`.
pub fn has(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// Follows strings, quoted names and comments, a piece at a time. A piece ends with its line or with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotes {
    state: State,
    /// Whether a backslash escapes, as without the SQL mode NO_BACKSLASH_ESCAPES.
    escapes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    Quoted(u8),
    BlockComment,
}

impl Quotes {
    /// At the start of a statement.
    pub fn new(escapes: bool) -> Self {
        Self { state: State::Code, escapes }
    }

    /// Whether a string, a quoted name or a comment has no end yet.
    pub fn is_open(self) -> bool {
        self.state != State::Code
    }

    /// Goes over `bytes` and shows each that stands in no string and no comment, with its place.
    pub fn pass(&mut self, bytes: &[u8], mut code: impl FnMut(usize, u8)) {
        let mut at = 0;
        while let Some(byte) = bytes.get(at).copied() {
            at += match self.state {
                State::Quoted(_) if byte == b'\\' && self.escapes => 2,
                State::Quoted(quote) => {
                    // A doubled quote closes and opens again.
                    if byte == quote {
                        self.state = State::Code;
                    }
                    1
                }
                State::BlockComment if bytes[at..].starts_with(b"*/") => {
                    self.state = State::Code;
                    2
                }
                State::BlockComment => 1,
                State::Code => self.code(bytes, at, &mut code),
            };
        }
    }

    /// Takes what stands at `at`, outside of all, and gives how many bytes that is.
    fn code(&mut self, bytes: &[u8], at: usize, code: &mut impl FnMut(usize, u8)) -> usize {
        let rest = &bytes[at..];
        match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => {
                self.state = State::Quoted(quote);
                // No backslash escapes in a name.
                if quote == b'`' {
                    return self.name(rest);
                }
                1
            }
            b'#' => line(rest),
            // As the server: two dashes are a comment only with white space behind them.
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|byte| *byte <= b' ') => line(rest),
            b'/' if rest.starts_with(b"/*") && !rest.starts_with(b"/*!") && !rest.starts_with(b"/*M!") => {
                self.state = State::BlockComment;
                2
            }
            byte => {
                code(at, byte);
                1
            }
        }
    }

    fn name(&mut self, rest: &[u8]) -> usize {
        match rest[1..].iter().position(|byte| *byte == b'`') {
            Some(length) => {
                self.state = State::Code;
                length + 2
            }
            None => rest.len(),
        }
    }
}

/// Length of a comment that ends with its line.
fn line(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(text: &str, escapes: bool) -> bool {
        let mut quotes = Quotes::new(escapes);
        text.split_inclusive('\n').for_each(|line| quotes.pass(line.as_bytes(), |_, _| ()));
        quotes.is_open()
    }

    #[test]
    fn strings_names_and_comments_are_followed_over_lines() {
        for closed in [
            "'a;\n# Time:'",
            "'it''s'",
            r"'it\'s'",
            r#""\"" "#,
            "`a\\`",
            "-- it's\n",
            "# it's\n",
            "/* it's */",
            "1--'1'",
            "'a\\\n'",
        ] {
            assert!(!open(closed, true), "{closed}");
        }
        for still in ["'a", "'it's'", "`a", "/* x", "\"a'", r"'a\'"] {
            assert!(open(still, true), "{still}");
        }
        assert!(!open(r"'C:\'", false));
    }

    proptest! {
        #[test]
        fn code_is_shown_in_order_and_never_from_a_string(bytes: Vec<u8>, escapes: bool) {
            let mut places = Vec::new();
            Quotes::new(escapes).pass(&bytes, |at, byte| places.push((at, byte)));
            prop_assert!(places.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert!(places.iter().all(|(at, byte)| bytes[*at] == *byte && !b"'\"`#".contains(byte)));
        }
    }
}
