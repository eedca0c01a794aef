//! Where in SQL one is after some bytes: in a string, a comment, or outside of both. It takes any bytes.

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
    use super::*;
    use proptest::prelude::*;

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
