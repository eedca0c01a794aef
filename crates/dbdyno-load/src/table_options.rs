//! What a user adds to CREATE TABLE behind the columns, in every verb that makes tables: options such as ROW_FORMAT,
//! and a PARTITION clause.
//!
//! It stays the end of that one statement: nothing in it can begin another, take rows from elsewhere, name a place or
//! another table, or change what a table of ours is known by. Whether the server has such an option, the server says.

use std::fmt;

use crate::error::Error;
use crate::replay::statement::tokens::{Token, Tokens, USUAL};
use crate::values::Values;

/// The flag, which every verb that makes tables has.
pub const FLAG: &str = "table-options";

/// Its help.
pub const HELP: &str =
    "text behind the columns of CREATE TABLE: ROW_FORMAT=DYNAMIC, PARTITION BY KEY (id) PARTITIONS 4";

/// Longest text, bytes.
const LENGTH_MAX: usize = 1000;

/// Words that would take rows from elsewhere, name a place or another table, or hide that a table is ours.
const REFUSED: [&str; 12] = [
    "AS",
    "COMMENT",
    "CONNECTION",
    "DIRECTORY",
    "ENGINE",
    "IGNORE",
    "LIKE",
    "REPLACE",
    "ROW",
    "SELECT",
    "TABLE",
    "UNION",
];

/// Punctuation that options and partitions need.
const MARKS: &[u8] = b"(),.=+-*/%<>";

/// Options, and a PARTITION clause, which must come last; both may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableOptions {
    options: String,
    partitions: String,
}

impl fmt::Display for TableOptions {
    /// As the end of a statement, with a blank before it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.options, &self.partitions];
        parts.iter().filter(|part| !part.is_empty()).try_for_each(|part| write!(out, " {part}"))
    }
}

impl TableOptions {
    /// Reads the flag.
    ///
    /// # Errors
    /// A text that could be more than the end of CREATE TABLE.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let text = values.text(FLAG).unwrap_or_default().trim();
        Self::parse(text).map_err(|why| Error::Usage(format!("--{FLAG}={text}: {why}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("is of {} bytes; at most {LENGTH_MAX} are allowed", text.len()));
        }
        if text.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
            return Err("may be of printable ASCII characters only".into());
        }
        if ["--", "#", "/*"].iter().any(|mark| text.contains(mark)) {
            return Err("may hold no comment".into());
        }
        let (mut depth, mut clause) = (0_u32, None);
        let mut tokens = Tokens::new(text.as_bytes(), USUAL);
        loop {
            let rest = text.len() - text[tokens.place()..].trim_start().len();
            match tokens.next() {
                Token::End => break,
                Token::Word(word) => {
                    let word = String::from_utf8_lossy(word).to_ascii_uppercase();
                    if REFUSED.contains(&word.as_str()) {
                        return Err(format!("may not hold {word}"));
                    }
                    if word == "PARTITION" && depth == 0 {
                        clause = clause.or(Some(rest));
                    }
                }
                Token::Mark(b'(') => depth += 1,
                Token::Mark(b')') if depth == 0 => return Err("closes a parenthesis that it does not open".into()),
                Token::Mark(b')') => depth -= 1,
                Token::Open => return Err("opens a quote that it does not close".into()),
                // A backslash is read by SQL modes.
                Token::Text(_, content) if !content.contains(&b'\\') => {}
                Token::Number | Token::Name(_) => {}
                Token::Mark(mark) if MARKS.contains(&mark) => {}
                _ => return Err("may hold words, numbers, texts in quotes and parentheses only, without ;".into()),
            }
        }
        if depth > 0 {
            return Err("opens a parenthesis that it does not close".into());
        }
        let (options, partitions) = text.split_at(clause.unwrap_or(text.len()));
        Ok(Self { options: options.trim().into(), partitions: partitions.trim().into() })
    }

    /// A user's own statement with these, if it makes a table from columns; else as it is.
    ///
    /// The options go before a PARTITION clause that it has. Where it sets one of them itself, its own comes last and
    /// counts no less: the caller reads back what came of it.
    pub fn added_to(&self, sql: &str) -> String {
        let Some(end) = end_of_options(sql) else { return sql.to_owned() };
        let (head, rest) = sql.split_at(end);
        // On lines of their own, as what is before may end in a comment.
        let line = |text: &str| if text.is_empty() { String::new() } else { format!("\n{text}") };
        format!("{head}{}{rest}{}", line(&self.options), line(&self.partitions))
    }
}

/// Where the options of a CREATE TABLE with columns of its own end: before its PARTITION clause, or at its end.
fn end_of_options(sql: &str) -> Option<usize> {
    let mut tokens = Tokens::new(sql.as_bytes(), USUAL);
    let mut words = Vec::new();
    // CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name: a temporary table is of no file that a load measures.
    while let Token::Word(word) = tokens.peek() {
        words.push(String::from_utf8_lossy(word).to_ascii_uppercase());
        tokens.next();
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if !matches!(words.as_slice(), ["CREATE", "TABLE", ..] | ["CREATE", "OR", "REPLACE", "TABLE", ..]) {
        return None;
    }
    let (mut depth, mut has_columns) = (0_u32, false);
    loop {
        let before = tokens.place();
        match tokens.next() {
            Token::Mark(b'(') => {
                if depth == 0
                    && !has_columns
                    && matches!(tokens.peek(), Token::Word(word) if word.eq_ignore_ascii_case(b"LIKE"))
                {
                    return None;
                }
                depth += 1;
            }
            Token::Mark(b')') => {
                depth = depth.checked_sub(1)?;
                has_columns |= depth == 0;
            }
            Token::Word(word) if depth == 0 => {
                if [&b"LIKE"[..], b"SELECT", b"AS"].iter().any(|other| word.eq_ignore_ascii_case(other)) {
                    return None;
                }
                if has_columns && word.eq_ignore_ascii_case(b"PARTITION") {
                    return Some(before);
                }
            }
            // A dump has a PARTITION clause in a comment that servers run.
            Token::Executable(_) if depth == 0 && has_columns => return Some(before),
            Token::Open | Token::Odd => return None,
            Token::End => return has_columns.then_some(sql.len()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        TableOptions::parse(text).map(|options| options.to_string())
    }

    #[test]
    fn options_and_partitions_are_the_end_of_a_statement() {
        assert_eq!(parsed("").unwrap(), "");
        assert_eq!(
            parsed("ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8").unwrap(),
            " ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"
        );
        assert_eq!(parsed("COMPRESSION='lz4'").unwrap(), " COMPRESSION='lz4'");
        let parts =
            TableOptions::parse("PAGE_COMPRESSED=1  PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (9))");
        let parts = parts.unwrap();
        assert_eq!(parts.options, "PAGE_COMPRESSED=1");
        assert_eq!(parts.partitions, "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (9))");
    }

    #[test]
    fn what_could_be_more_is_refused() {
        for (text, why) in [
            ("ROW_FORMAT=DYNAMIC; DROP TABLE t", "without ;"),
            ("AS SELECT 1", "AS"),
            ("ROW_FORMAT=DYNAMIC select * from mysql.user", "SELECT"),
            ("COMMENT='x'", "COMMENT"),
            ("DATA DIRECTORY='/root'", "DIRECTORY"),
            ("COMPRESSION='lz4", "quote"),
            ("PARTITION BY KEY (id", "parenthesis"),
            (") SELECT (1", "parenthesis"),
            ("ROW_FORMAT=DYNAMIC -- x", "comment"),
            ("/*! AS */", "comment"),
            ("COMPRESSION='a\\'", "quote"),
            ("ROW_FORMAT=\n1", "ASCII"),
            ("A=?", "without ;"),
        ] {
            assert!(parsed(text).unwrap_err().contains(why), "{text}");
        }
        assert!(parsed(&"A".repeat(1001)).unwrap_err().contains("1000"));
    }

    #[test]
    fn a_users_table_gets_them_before_its_partitions() {
        let options = TableOptions::parse("ROW_FORMAT=DYNAMIC").unwrap();
        for (sql, added) in [
            ("CREATE TABLE t (id INT)", "CREATE TABLE t (id INT)\nROW_FORMAT=DYNAMIC"),
            (
                "create or replace table if not exists a.`b` (id INT CHECK (id > 0)) ENGINE=InnoDB PARTITION BY KEY (id)",
                "create or replace table if not exists a.`b` (id INT CHECK (id > 0)) ENGINE=InnoDB\nROW_FORMAT=DYNAMIC PARTITION BY KEY (id)",
            ),
            ("CREATE TABLE t LIKE s", "CREATE TABLE t LIKE s"),
            ("CREATE TABLE t (LIKE s)", "CREATE TABLE t (LIKE s)"),
            ("CREATE TABLE t (id INT) SELECT 1", "CREATE TABLE t (id INT) SELECT 1"),
            ("CREATE TEMPORARY TABLE t (id INT)", "CREATE TEMPORARY TABLE t (id INT)"),
            ("CREATE INDEX i ON t (id)", "CREATE INDEX i ON t (id)"),
        ] {
            assert_eq!(options.added_to(sql), added);
        }
        let parts = TableOptions::parse("PARTITION BY KEY (id) PARTITIONS 4").unwrap();
        assert_eq!(
            parts.added_to("CREATE TABLE t (id INT)"),
            "CREATE TABLE t (id INT)\nPARTITION BY KEY (id) PARTITIONS 4"
        );
    }
}
