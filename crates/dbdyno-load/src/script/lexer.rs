//! SQL cut into tokens, as far as a script needs it: strings, comments and quoted names are whole,
//! so that nothing inside them is taken for a parameter, a delimiter or a keyword.
//!
//! Tokens make the items of a script: lines that steer (`-- name: buy`), definitions (`:id = ...`) and
//! statements.

use dbdyno_common::similar::is_slip;

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

/// The words that steer, at the start of a comment on a line of its own.
const STEERING: [&str; 7] = ["setup", "cleanup", "connect", "name", "weight", "as", "for each"];

/// Shorter words are too near to others to be taken for slips.
const SLIP_MIN: usize = 4;

/// One item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// `-- word: value`.
    Steer {
        /// One of [`STEERING`].
        word: &'static str,
        /// What stands behind the colon.
        value: &'a str,
        /// Offset of the comment.
        at: usize,
        /// Offset of the value.
        value_at: usize,
    },
    /// `:name = value`.
    Definition {
        /// The name, without the colon.
        name: &'a str,
        /// Offset of it.
        at: usize,
        /// The value, without blanks.
        value: Vec<Lexeme<'a>>,
    },
    /// A statement without its delimiter, with nothing blank around it.
    Statement(Vec<Lexeme<'a>>),
}

/// Reads items.
pub struct Items<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// Whether comments may steer and names be defined, or all is SQL.
    is_script: bool,
}

impl<'a> Items<'a> {
    /// From the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, lexer: Lexer::new(text), is_script: true }
    }

    /// Of SQL that is no script, such as a dump: there are statements alone.
    pub fn plain(text: &'a str) -> Self {
        Self { is_script: false, ..Self::new(text) }
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// Text that cannot be cut, or a steering line where none can be.
    pub fn next(&mut self) -> Result<Option<Item<'a>>, Mistake> {
        while let Some(lexeme) = self.lexer.next()? {
            if lexeme.token == Token::LineComment && self.is_script {
                if let Some(item) = self.steering(lexeme)? {
                    return Ok(Some(item));
                }
            } else if lexeme.is_word("DELIMITER") {
                self.lexer.change_delimiter()?;
            } else if lexeme.token == Token::Parameter && self.is_script {
                return self.definition(lexeme).map(Some);
            } else if !lexeme.is_blank() && lexeme.token != Token::Delimiter {
                return self.statement(lexeme).map(Some);
            }
        }
        Ok(None)
    }

    /// The comment as a line that steers; `None` if it is only a comment.
    fn steering(&self, comment: Lexeme<'a>) -> Result<Option<Item<'a>>, Mistake> {
        let Some((key, value)) = comment.text.strip_prefix("--").and_then(|text| text.split_once(':')) else {
            return Ok(None);
        };
        let key = key.trim();
        let Some(word) = STEERING.into_iter().find(|word| word.eq_ignore_ascii_case(key)) else {
            return match STEERING
                .into_iter()
                .find(|word| word.len() >= SLIP_MIN && is_slip(&key.to_ascii_lowercase(), word))
            {
                Some(word) => Err(Mistake::new(
                    comment.at,
                    format!("did you mean `-- {word}:`? If this is only a comment, write it without the colon"),
                )),
                None => Ok(None),
            };
        };
        let line = self.text[..comment.at].rsplit('\n').next().unwrap_or_default();
        if !line.trim().is_empty() {
            return Err(Mistake::new(comment.at, format!("`-- {word}:` must stand on a line of its own")));
        }
        let value_at = comment.at + comment.text.len() - value.trim_start().len();
        Ok(Some(Item::Steer { word, value: value.trim(), at: comment.at, value_at }))
    }

    /// To the delimiter, or to the end of the line outside of parentheses.
    fn definition(&mut self, name: Lexeme<'a>) -> Result<Item<'a>, Mistake> {
        let mut value = Vec::new();
        let mut depth = 0_usize;
        while let Some(lexeme) = self.lexer.next()? {
            let ends_line = lexeme.text.contains('\n') || lexeme.token == Token::LineComment;
            if lexeme.token == Token::Delimiter || (ends_line && lexeme.is_blank() && depth == 0) {
                break;
            }
            match lexeme.text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !lexeme.is_blank() {
                value.push(lexeme);
            }
        }
        if value.first().is_none_or(|first| !first.is_mark("=")) {
            let remedy =
                format!("a parameter at the start of a line is defined there: {} = uniform(1, 100)", name.text);
            return Err(Mistake::new(name.at, remedy));
        }
        value.remove(0);
        Ok(Item::Definition { name: &name.text[1..], at: name.at, value })
    }

    fn statement(&mut self, first: Lexeme<'a>) -> Result<Item<'a>, Mistake> {
        let mut body = Body::default();
        let mut lexemes = vec![first];
        body.take(&first);
        while let Some(lexeme) = self.lexer.next()? {
            let inside = body.depth > 0 && self.lexer.delimiter() == ";";
            if lexeme.token == Token::Delimiter && !inside {
                trim(&mut lexemes);
                return Ok(Item::Statement(lexemes));
            }
            if lexeme.token == Token::LineComment
                && self.is_script
                && self.starts_line(lexeme)
                && let Some(Item::Steer { word, at, .. }) = self.steering(lexeme)?
            {
                let delimiter = self.lexer.delimiter();
                return Err(Mistake::new(at, format!("the statement before `-- {word}:` has no {delimiter}")));
            }
            body.take(&lexeme);
            lexemes.push(lexeme);
        }
        if body.depth > 0 && self.lexer.delimiter() == ";" {
            return Err(Mistake::new(first.at, "this statement has a BEGIN or CASE without END;"));
        }
        trim(&mut lexemes);
        Ok(Item::Statement(lexemes))
    }

    fn starts_line(&self, lexeme: Lexeme<'a>) -> bool {
        self.text[..lexeme.at].rsplit('\n').next().unwrap_or_default().trim().is_empty()
    }
}

fn trim(lexemes: &mut Vec<Lexeme<'_>>) {
    while lexemes.last().is_some_and(Lexeme::is_blank) {
        lexemes.pop();
    }
}

/// Follows BEGIN, CASE and END in the body of a stored program, where a `;` ends no statement.
#[derive(Default)]
struct Body {
    kind: Kind,
    depth: usize,
    after_end: bool,
}

#[derive(Default, PartialEq)]
enum Kind {
    #[default]
    Unknown,
    /// It began with CREATE: what is to be created comes soon.
    Create,
    /// It began with BEGIN: NOT ATOMIC may follow.
    Begin,
    Program,
    Plain,
}

impl Body {
    fn take(&mut self, lexeme: &Lexeme<'_>) {
        if lexeme.token != Token::Word {
            self.after_end &= lexeme.is_blank();
            return;
        }
        let word = lexeme.text.to_ascii_uppercase();
        let word = word.as_str();
        match self.kind {
            Kind::Unknown => {
                self.kind = match word {
                    "CREATE" => Kind::Create,
                    "BEGIN" => Kind::Begin,
                    _ => Kind::Plain,
                }
            }
            Kind::Begin if word == "NOT" => (self.kind, self.depth) = (Kind::Program, 1),
            Kind::Begin | Kind::Plain => self.kind = Kind::Plain,
            Kind::Create => match word {
                "PROCEDURE" | "FUNCTION" | "TRIGGER" | "EVENT" => self.kind = Kind::Program,
                "TABLE" | "VIEW" | "INDEX" | "DATABASE" | "SCHEMA" | "USER" | "SEQUENCE" => self.kind = Kind::Plain,
                _ => {}
            },
            Kind::Program => self.follow(word),
        }
    }

    fn follow(&mut self, word: &str) {
        let after_end = std::mem::take(&mut self.after_end);
        match word {
            "END" => {
                self.depth = self.depth.saturating_sub(1);
                self.after_end = true;
            }
            "CASE" if after_end => {}
            "BEGIN" | "CASE" => self.depth += 1,
            // Their starts were not counted, as IF and REPEAT are functions too.
            "IF" | "LOOP" | "WHILE" | "REPEAT" | "FOR" if after_end => self.depth += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        fn no_text_makes_the_tokens_panic(text: String) {
            let _ = all(&text);
        }
    }

    fn items(text: &str) -> Result<Vec<String>, Mistake> {
        let mut reader = Items::new(text);
        let mut items = Vec::new();
        while let Some(item) = reader.next()? {
            items.push(match item {
                Item::Steer { word, value, .. } => format!("{word}|{value}"),
                Item::Definition { name, value, .. } => {
                    format!("{name}={}", value.iter().map(|piece| piece.text).collect::<String>())
                }
                Item::Statement(pieces) => pieces.iter().map(|piece| piece.text).collect(),
            });
        }
        Ok(items)
    }

    fn refused(text: &str) -> String {
        items(text).unwrap_err().text
    }

    #[test]
    fn a_file_is_lines_that_steer_definitions_and_statements() {
        let text = "-- A shop.\n-- setup: run once\nCREATE TABLE t (a int); # done\n\n-- Name: buy  weight: 3\n\
                :id = zipf(1, 9) -- hot\n:b = one_of('x;',\n  'y'); BEGIN; ;\n/* both */ SELECT :id, ':x' -- why\n;\nCOMMIT";
        let expected = [
            "setup|run once",
            "CREATE TABLE t (a int)",
            "name|buy  weight: 3",
            "id=zipf(1,9)",
            "b=one_of('x;','y')",
            "BEGIN",
            "SELECT :id, ':x'",
            "COMMIT",
        ];
        assert_eq!(items(text).unwrap(), expected);
    }

    #[test]
    fn a_stored_program_needs_no_delimiter() {
        let programs = [
            "CREATE PROCEDURE p()\nBEGIN\n IF a THEN SET b = IF(1, 2, 3); END IF;\n WHILE 1 DO SET a = 2; END WHILE;\n\
         CASE a WHEN 1 THEN SET b = CASE c WHEN 1 THEN 2 END; END CASE;\n BEGIN SELECT 1; END;\nEND",
            "CREATE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON x FOR EACH ROW BEGIN SET NEW.a = 1; END",
            "create or replace function f() returns int begin return 1; end",
            "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
        ];
        for program in programs {
            assert_eq!(items(&format!("{program};\nSELECT 1;")).unwrap(), [program, "SELECT 1"]);
        }
        let plain = "CREATE TABLE event (begin datetime, end datetime);SELECT CASE 1 WHEN 1 THEN 2;BEGIN;COMMIT";
        assert_eq!(items(plain).unwrap().join(";"), plain);
        assert!(refused("CREATE PROCEDURE p() BEGIN SELECT 1;").contains("without END"));
    }

    #[test]
    fn delimiter_lines_work_as_in_the_mysql_client() {
        let text = "DELIMITER //\nCREATE TRIGGER t IF 1 THEN SET a = 1; END IF//\ndelimiter ;\nSELECT 1;";
        assert_eq!(items(text).unwrap(), ["CREATE TRIGGER t IF 1 THEN SET a = 1; END IF", "SELECT 1"]);
        assert!(refused("DELIMITER go\n").contains("DELIMITER takes"));
    }

    #[test]
    fn what_the_server_reads_in_a_comment_is_a_statement() {
        assert_eq!(items("/*!40101 SET NAMES utf8 */;\n/* no */;").unwrap(), ["/*!40101 SET NAMES utf8 */"]);
        assert_eq!(items("SELECT /*+ MAX_EXECUTION_TIME(5) */ 1;").unwrap(), ["SELECT /*+ MAX_EXECUTION_TIME(5) */ 1"]);
    }

    #[test]
    fn steering_lines_that_would_be_missed_are_refused() {
        assert!(refused("SELECT 1\n-- name: b\n").contains("before `-- name:` has no ;"));
        assert!(refused("SELECT 1; -- as: one\n").contains("line of its own"));
        for slip in ["nmae", "names", "nam", "nome", "Cleenup", "wieght"] {
            assert!(refused(&format!("-- {slip}: b")).contains("did you mean"), "{slip}");
        }
        for comment in ["note", "todo", "has", "a name", "sets", "step 1"] {
            assert_eq!(items(&format!("-- {comment}: b")).unwrap().len(), 0, "{comment}");
        }
    }

    #[test]
    fn a_definition_has_an_equals_sign() {
        assert!(refused(":id uniform(1, 2)\n").contains(":id = uniform"));
        assert!(refused(":id := 3\n").contains(":id = uniform"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(-- |name:|:a|=|\\(|\\)|;|'|\n|BEGIN|CREATE|PROCEDURE|END|IF|DELIMITER|//|é|.){0,30}") {
            let _ = items(&text);
        }

        #[test]
        fn statements_come_out_as_they_went_in(
            statements in prop::collection::vec("(SELECT|UPDATE|BEGIN) [a-z0-9_,.=<>+*() \n]{0,20}('[^'\\\\]{0,9}'|`[^`]{0,5}`|x|/\\*[^*/]*\\*/ 1)", 0..6),
            between in prop::sample::select(vec![";", ";\n", " ;\n-- so\n", ";\n\n# then\n", "; /* and */ "]),
        ) {
            let text = statements.join(between);
            prop_assert_eq!(items(&text).unwrap(), statements);
        }
    }
}
