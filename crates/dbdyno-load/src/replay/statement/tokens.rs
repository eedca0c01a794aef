//! SQL cut into tokens the way servers cut it, from bytes that may be anything.
//!
//! What a backslash in a string means depends on the SQL mode of the session, which a log does not show: so a statement
//! is read in every way that a server may read it ([`Reading`]), and the caller takes the worst. Anything else that
//! servers read differently is a [`Token::Odd`].

/// Most statements that hold another.
pub const DEPTH_MAX: u32 = 3;

/// What a backslash escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// In `'...'`: unless the SQL mode has NO_BACKSLASH_ESCAPES.
    in_text: bool,
    /// In `"..."`: unless that is a name, by ANSI_QUOTES.
    in_double: bool,
}

/// The usual SQL mode.
pub const USUAL: Reading = Reading { in_text: true, in_double: true };

/// All that a server may take a backslash for.
pub const READINGS: [Reading; 3] =
    [USUAL, Reading { in_text: true, in_double: false }, Reading { in_text: false, in_double: false }];

/// A piece of a statement. Comments are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword or a plain name, of ASCII letters, digits, `_` and `$`.
    Word(&'a [u8]),
    /// Digits, or `\N`.
    Number,
    /// Bytes beyond ASCII outside of quotes: part of a name or, in some character sets, a blank.
    Foreign,
    /// What stands between backticks.
    Name(&'a [u8]),
    /// What stands between quotes, which are `'` or `"`.
    Text(u8, &'a [u8]),
    /// One character of punctuation.
    Mark(u8),
    /// What stands in `/*! ... */` or `/*M! ... */`, without the version: some servers run it.
    Executable(&'a [u8]),
    /// What servers read in different ways.
    Odd,
    /// A string or a name without an end, or a backslash outside of both: every server refuses the statement.
    Open,
    /// Nothing more.
    End,
}

/// Punctuation that has the same meaning to all servers.
const MARKS: &[u8] = b"(),.*+-/%=<>!|&^~@;?:{}";

/// Most digits of the version in an executable comment.
const VERSION_DIGITS_MAX: usize = 6;

/// Where in a statement one is.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    sql: &'a [u8],
    at: usize,
    reading: Reading,
}

impl<'a> Tokens<'a> {
    /// From the start of `sql`.
    pub fn new(sql: &'a [u8], reading: Reading) -> Self {
        Self { sql, at: 0, reading }
    }

    /// Those of another text, read in the same way.
    pub fn of_text(&self, sql: &'a [u8]) -> Self {
        Self::new(sql, self.reading)
    }

    /// Offset of what comes next.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Offset of what stands behind the next token.
    pub fn behind_word(mut self) -> usize {
        self.next();
        self.at
    }

    /// The token that comes next, which stays.
    pub fn peek(mut self) -> Token<'a> {
        self.next()
    }

    /// Goes over `mark` if it comes next.
    pub fn skip(&mut self, mark: u8) -> bool {
        let mut after = *self;
        let is_there = after.next() == Token::Mark(mark);
        if is_there {
            *self = after;
        }
        is_there
    }

    /// Goes over the next token and gives it.
    pub fn next(&mut self) -> Token<'a> {
        loop {
            let rest = &self.sql[self.at..];
            let Some(first) = rest.first().copied() else { return Token::End };
            let second = rest.get(1).copied();
            let blank = match first {
                b' ' | b'\t'..=b'\r' => rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')),
                b'#' => rest.iter().position(|byte| *byte == b'\n'),
                // As the servers: two dashes are a comment only with white space or a control character behind them.
                b'-' if second == Some(b'-') && rest.get(2).is_none_or(|byte| *byte <= b' ' || *byte == 0x7f) => {
                    rest.iter().position(|byte| *byte == b'\n')
                }
                // A blank in some character sets, a name in others.
                b'-' if second == Some(b'-') && rest[2] >= 0x80 => {
                    self.at += 2;
                    return Token::Odd;
                }
                b'/' if second == Some(b'*') => match self.comment(rest) {
                    Ok(length) => Some(length),
                    Err(token) => return token,
                },
                _ => return self.token(rest, first),
            };
            self.at += blank.unwrap_or(rest.len());
        }
    }

    /// Length of a comment that servers skip; else what it is, which is gone over.
    fn comment(&mut self, rest: &'a [u8]) -> Result<usize, Token<'a>> {
        // A comment without an end is one to the end for some old servers, and a mistake for the others.
        let end = rest[2..].windows(2).position(|two| two == b"*/");
        let inner = &rest[2..end.map_or(rest.len(), |end| end + 2)];
        let length = end.map_or(rest.len(), |end| end + 4);
        let code = inner.strip_prefix(b"M!").or_else(|| inner.strip_prefix(b"!"));
        // Quotes in a hint may hold the end of a comment.
        let is_odd_hint = inner.first() == Some(&b'+') && inner.iter().any(|byte| b"'\"`".contains(byte));
        let Some(code) = code else {
            if !is_odd_hint {
                return Ok(length);
            }
            self.at += length;
            return Err(Token::Odd);
        };
        self.at += length;
        let digits = code.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if end.is_none() || digits > VERSION_DIGITS_MAX {
            return Err(Token::Odd);
        }
        Err(Token::Executable(&code[digits..]))
    }

    fn token(&mut self, rest: &'a [u8], first: u8) -> Token<'a> {
        let (token, length) = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(rest),
            b'0'..=b'9' => (Token::Number, number_length(rest)),
            b'$' => (Token::Odd, run(rest, in_word)),
            0x80.. => (Token::Foreign, run(rest, |byte| byte >= 0x80)),
            b'`' => quoted(rest, false, Token::Name),
            b'\'' => quoted(rest, self.reading.in_text, |text| Token::Text(b'\'', text)),
            b'"' => quoted(rest, self.reading.in_double, |text| Token::Text(b'"', text)),
            b'\\' if rest.get(1) == Some(&b'N') => (Token::Number, 2),
            b'\\' => (Token::Open, 1),
            mark if MARKS.contains(&mark) => (Token::Mark(mark), 1),
            _ => (Token::Odd, 1),
        };
        self.at += length;
        token
    }

    /// A word, or the exponent of a number that ends in a point: `1.e5`.
    fn word(&self, rest: &'a [u8]) -> (Token<'a>, usize) {
        let is_behind_point = self.at > 0 && self.sql[self.at - 1] == b'.';
        let exponent = if is_behind_point { exponent_length(rest) } else { 0 };
        if exponent > 0 {
            return (Token::Number, exponent);
        }
        let length = run(rest, in_word);
        (Token::Word(&rest[..length]), length)
    }
}

/// Length of digits, with the exponent that may end a number right before a word, as in `1e5into`.
fn number_length(rest: &[u8]) -> usize {
    let digits = run(rest, |byte| byte.is_ascii_digit());
    digits + exponent_length(&rest[digits..])
}

/// Length of `e5`; 0 where there is none.
fn exponent_length(rest: &[u8]) -> usize {
    match rest {
        [b'e' | b'E', digits @ ..] => match run(digits, |byte| byte.is_ascii_digit()) {
            0 => 0,
            length => length + 1,
        },
        _ => 0,
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(*byte)).unwrap_or(bytes.len())
}

fn quoted<'a>(rest: &'a [u8], escapes: bool, token: impl Fn(&'a [u8]) -> Token<'a>) -> (Token<'a>, usize) {
    let quote = rest[0];
    let mut at = 1;
    while let Some(length) =
        rest.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == quote || *byte == b'\\'))
    {
        at += length;
        at += match rest[at] {
            b'\\' if escapes => 2,
            b'\\' => 1,
            _ if rest.get(at + 1) == Some(&quote) => 2,
            _ => return (token(&rest[1..at]), at + 1),
        };
    }
    (Token::Open, rest.len())
}

/// A word in capitals; longer ones than any that means something are cut.
#[derive(Clone, Copy)]
pub struct Capitals {
    bytes: [u8; Self::LENGTH_MAX],
    length: usize,
}

impl Capitals {
    const LENGTH_MAX: usize = 40;

    /// The capitals of a word.
    pub fn new(word: &[u8]) -> Self {
        let mut bytes = [0; Self::LENGTH_MAX];
        let length = word.len().min(Self::LENGTH_MAX);
        for (to, from) in bytes.iter_mut().zip(word) {
            *to = from.to_ascii_uppercase();
        }
        Self { bytes, length }
    }

    /// The word.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether it is one of these, which are sorted.
    pub fn is_one_of(&self, words: &[&str]) -> bool {
        words.binary_search_by(|word| word.as_bytes().cmp(self.bytes())).is_ok()
    }
}

/// Whether a word is the next.
pub fn is_word(tokens: Tokens<'_>, word: &[u8]) -> bool {
    matches!(tokens.peek(), Token::Word(text) if text.eq_ignore_ascii_case(word))
}

/// Takes a word, if it is the next; whether it was.
pub fn skip_word(tokens: &mut Tokens<'_>, word: &[u8]) -> bool {
    let is_there = is_word(*tokens, word);
    if is_there {
        tokens.next();
    }
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(sql: &[u8], reading: Reading) -> Vec<Token<'_>> {
        let mut tokens = Tokens::new(sql, reading);
        std::iter::from_fn(|| Some(tokens.next()).filter(|token| *token != Token::End)).collect()
    }

    fn words(sql: &str) -> Vec<&str> {
        let word = |token| if let Token::Word(word) = token { std::str::from_utf8(word).ok() } else { None };
        all(sql.as_bytes(), USUAL).into_iter().filter_map(word).collect()
    }

    #[test]
    fn a_word_begins_where_the_servers_begin_one() {
        for (sql, expected) in [
            ("a/* b */c -- d\nk#f\ng--h", &["a", "c", "k", "g", "h"][..]),
            (r"1e5into 1.into .5into 1.e5into 1e+5into \Ninto", &["into"; 6]),
            ("into\u{a0}outfile", &["into", "outfile"]),
            ("'a' \"b\" `c` d", &["d"]),
            ("a-- b", &["a"]),
            ("a--\u{7f}b\nc", &["a", "c"]),
        ] {
            // The `e` of `1e+5` is a word to nobody, and does no harm.
            assert_eq!(words(sql).into_iter().filter(|word| *word != "e").collect::<Vec<_>>(), expected, "{sql}");
        }
    }

    #[test]
    fn what_servers_read_differently_is_odd() {
        for sql in ["$$a$$", "a /*!50000 b", "/*!1234567 a*/", "/*+ a('*/') */", "[a]", "1--\u{a0}", "a\0", "\u{1b}"] {
            assert!(all(sql.as_bytes(), USUAL).contains(&Token::Odd), "{sql}");
        }
        assert_eq!(all(b"/*!50000 a*//*M!100100b*/", USUAL), [Token::Executable(b" a"), Token::Executable(b"b")]);
    }

    #[test]
    fn a_string_ends_by_the_sql_mode() {
        let [usual, ansi, plain] = READINGS;
        assert_eq!(all(br"'a\' b", usual), [Token::Open]);
        assert_eq!(all(br"'a\' b", plain), [Token::Text(b'\'', br"a\"), Token::Word(b"b")]);
        assert_eq!(all(br#""a\" b"#, ansi), [Token::Text(b'"', br"a\"), Token::Word(b"b")]);
        assert_eq!(all(br"'a\' b", ansi), [Token::Open]);
        assert_eq!(all(br"a\", usual), [Token::Word(b"a"), Token::Open]);
        assert_eq!(all(b"'a''b'`c``d`", usual), [Token::Text(b'\'', b"a''b"), Token::Name(b"c``d")]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_gone_over_once(sql: Vec<u8>) {
            for reading in READINGS {
                prop_assert!(all(&sql, reading).len() <= sql.len());
            }
        }
    }
}
