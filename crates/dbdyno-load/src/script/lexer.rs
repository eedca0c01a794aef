//! SQL cut into tokens, as far as a script needs it: strings, comments and quoted names are whole,
//! so that nothing inside them is taken for a parameter, a delimiter or a keyword.

use crate::error::Error;

/// A script file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path as given.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// What is wrong in a script, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Offset in bytes.
    pub at: usize,
    /// What, and the remedy.
    pub text: String,
}

impl Mistake {
    /// At this offset.
    pub fn new(at: usize, text: impl Into<String>) -> Self {
        Self { at, text: text.into() }
    }
}

impl SourceFile {
    /// File, line and column of an offset; columns are characters, from 1.
    pub fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }

    /// A mistake as the user reads it.
    pub fn error(&self, mistake: &Mistake) -> Error {
        Error::Usage(format!("{}: {}", self.place(mistake.at), mistake.text))
    }
}

/// What a piece of a script is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// White space.
    Space,
    /// `-- ...` or `# ...`, without the line's end.
    LineComment,
    /// `/* ... */`.
    BlockComment,
    /// `/*! ... */`, `/*M! ... */` or `/*+ ... */`: the server reads what is in it.
    Executable,
    /// A string in single or double quotes.
    Quoted,
    /// A name in backticks.
    Backticked,
    /// A keyword, a name or a number.
    Word,
    /// `:name`.
    Parameter,
    /// Punctuation: one character, or `:=`, or a run of colons.
    Mark,
    /// What ends a statement.
    Delimiter,
}

/// A piece of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lexeme<'a> {
    /// What it is.
    pub token: Token,
    /// Its text.
    pub text: &'a str,
    /// Its offset in bytes.
    pub at: usize,
}

impl Lexeme<'_> {
    /// Whether it is this keyword.
    pub fn is_word(&self, word: &str) -> bool {
        self.token == Token::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this punctuation.
    pub fn is_mark(&self, mark: &str) -> bool {
        self.token == Token::Mark && self.text == mark
    }

    /// Whether the server skips it too.
    pub fn is_blank(&self) -> bool {
        matches!(self.token, Token::Space | Token::LineComment | Token::BlockComment)
    }
}

/// Cuts a script.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    delimiter: &'a str,
}

impl<'a> Lexer<'a> {
    /// From the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, delimiter: ";" }
    }

    /// What ends a statement now.
    pub fn delimiter(&self) -> &'a str {
        self.delimiter
    }

    /// Takes the rest of the line as the new delimiter.
    ///
    /// # Errors
    /// None is given, or one that could be part of a statement.
    pub fn change_delimiter(&mut self) -> Result<(), Mistake> {
        let line = self.text[self.at..].lines().next().unwrap_or_default();
        let delimiter = line.trim();
        let confusing = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_'\"`\\#:".contains(c);
        if delimiter.is_empty() || delimiter.contains(confusing) {
            return Err(Mistake::new(self.at, "DELIMITER takes one of // $$ | ; or other such marks"));
        }
        self.delimiter = delimiter;
        self.at += line.len();
        Ok(())
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// A string, quoted name or comment without an end.
    pub fn next(&mut self) -> Result<Option<Lexeme<'a>>, Mistake> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let (token, length) = self.measure(rest)?;
        let lexeme = Lexeme { token, text: &rest[..length], at: self.at };
        self.at += length;
        Ok(Some(lexeme))
    }

    /// Token and length in bytes of what `rest` starts with. Every end found is that of an ASCII
    /// character or of a run of all bytes above, so none cuts a character.
    fn measure(&self, rest: &str) -> Result<(Token, usize), Mistake> {
        let bytes = rest.as_bytes();
        let second = bytes.get(1).copied();
        if rest.starts_with(self.delimiter) {
            return Ok((Token::Delimiter, self.delimiter.len()));
        }
        Ok(match bytes[0] {
            first if is_space(first) => (Token::Space, run(bytes, is_space)),
            quote @ (b'\'' | b'"') => (Token::Quoted, self.quoted(bytes, quote, true, "this string")?),
            b'`' => (Token::Backticked, self.quoted(bytes, b'`', false, "this name")?),
            b'#' => (Token::LineComment, run(bytes, |byte| byte != b'\n')),
            // As the server: two dashes are a comment only with white space behind them.
            b'-' if second == Some(b'-') && bytes.get(2).is_none_or(|byte| *byte <= b' ') => {
                (Token::LineComment, run(bytes, |byte| byte != b'\n'))
            }
            b'/' if second == Some(b'*') => {
                let end = rest[2..].find("*/").ok_or_else(|| Mistake::new(self.at, "this comment has no */"))?;
                let executable = ["!", "M!", "+"].iter().any(|mark| rest[2..].starts_with(mark));
                (if executable { Token::Executable } else { Token::BlockComment }, end + 4)
            }
            b':' if second == Some(b'=') => (Token::Mark, 2),
            b':' if second.is_some_and(starts_name) => (Token::Parameter, 1 + run(&bytes[1..], in_name)),
            b':' => (Token::Mark, run(bytes, |byte| byte == b':')),
            first if in_word(first) => (Token::Word, self.word(bytes)),
            _ => (Token::Mark, 1),
        })
    }

    /// A delimiter such as `$$` may follow a word directly.
    fn word(&self, bytes: &[u8]) -> usize {
        let whole = run(bytes, in_word);
        (1..whole).find(|at| bytes[*at..].starts_with(self.delimiter.as_bytes())).unwrap_or(whole)
    }

    fn quoted(&self, bytes: &[u8], quote: u8, escapes: bool, what: &str) -> Result<usize, Mistake> {
        let mut at = 1;
        while let Some(byte) = bytes.get(at) {
            at += match *byte {
                b'\\' if escapes => 2,
                byte if byte == quote && bytes.get(at + 1) != Some(&quote) => return Ok(at + 1),
                byte if byte == quote => 2,
                _ => 1,
            };
        }
        Err(Mistake::new(self.at, format!("{what} has no closing {}", char::from(quote))))
    }
}

fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(*byte)).unwrap_or(bytes.len())
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Of a keyword, name or number; MySQL's names may have `$` and any character beyond ASCII.
pub fn in_word(byte: u8) -> bool {
    in_name(byte) || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Result<Vec<(Token, &str)>, Mistake> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        while let Some(lexeme) = lexer.next()? {
            tokens.push((lexeme.token, lexeme.text));
        }
        Ok(tokens)
    }

    fn parameters(text: &str) -> Vec<&str> {
        let parameters = all(text).unwrap().into_iter().filter(|(token, _)| *token == Token::Parameter);
        parameters.map(|(_, text)| text).collect()
    }

    #[test]
    fn parameters_stand_outside_of_strings_and_comments() {
        assert_eq!(parameters("id=:id AND b IN(:a,:b_2)"), [":id", ":a", ":b_2"]);
        let none = [
            "SELECT '10:30:00', TIME '1:mm'",
            r#"'it''s :a' "\":b" "#,
            "`a:b`",
            "@x := 1",
            "@x:=1",
            "a::b",
            "# :a\n-- :b\n/* :c */ /*+ :d */ /*!40101 :e */",
            "'\\\\' /* ':x' */",
        ];
        for sql in none {
            assert!(parameters(sql).is_empty(), "{sql}");
        }
        assert_eq!(parameters("@x:=:a"), [":a"]);
    }

    #[test]
    fn dashes_are_a_comment_only_before_white_space() {
        assert_eq!(all("1--1").unwrap().len(), 4);
        assert_eq!(all("1-- 1;\n").unwrap()[1], (Token::LineComment, "-- 1;"));
        assert_eq!(all("--").unwrap(), [(Token::LineComment, "--")]);
    }

    #[test]
    fn what_has_no_end_is_said_with_its_start() {
        for (text, at, what) in [("a 'b", 2, "closing '"), ("é `b", 3, "closing `"), ("/* x", 0, "*/"), ("'\\", 0, "'")]
        {
            let mistake = all(text).unwrap_err();
            assert_eq!(mistake.at, at, "{text}");
            assert!(mistake.text.contains(what), "{}", mistake.text);
        }
    }

    #[test]
    fn a_place_is_line_and_column_in_characters() {
        let source = SourceFile { name: "a.sql".into(), text: "é\nüx'".into() };
        assert_eq!(source.place(0), "a.sql:1:1");
        assert_eq!(source.place(source.text.find('x').unwrap()), "a.sql:2:2");
        assert_eq!(source.place(1000), "a.sql:2:4");
    }

    #[test]
    fn a_delimiter_is_made_of_marks() {
        let mut lexer = Lexer::new(" $$ \nEND$$");
        lexer.change_delimiter().unwrap();
        let pieces: Vec<Token> = std::iter::from_fn(|| lexer.next().unwrap()).map(|lexeme| lexeme.token).collect();
        assert_eq!(pieces, [Token::Space, Token::Word, Token::Delimiter]);
        for wrong in ["", "  ", "go", "a;", "'", ": "] {
            assert!(Lexer::new(wrong).change_delimiter().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_up_the_text(text in "[a-z:;'\"`\\\\*/#é \n-]{0,40}") {
            if let Ok(pieces) = all(&text) {
                let joined: String = pieces.iter().map(|(_, piece)| *piece).collect();
                prop_assert_eq!(joined, text);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = all(&text);
        }
    }
}
