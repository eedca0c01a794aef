//! What a statement does, as far as its first words say.

use super::lexer::{Lexeme, Token};

/// What a statement does to transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Begins one.
    Begins,
    /// Ends it.
    Ends,
    /// Neither.
    None,
}

/// The words and marks of a statement.
#[derive(Debug)]
pub struct Words<'t>(Vec<Lexeme<'t>>);

impl<'t> Words<'t> {
    /// Of a statement's pieces.
    pub fn new(lexemes: &[Lexeme<'t>]) -> Self {
        Self(lexemes.iter().copied().filter(|lexeme| !lexeme.is_blank()).collect())
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.0.get(at).is_some_and(|lexeme| lexeme.is_word(word))
    }

    fn any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    fn is_mark(&self, at: usize, mark: &str) -> bool {
        self.0.get(at).is_some_and(|lexeme| lexeme.is_mark(mark))
    }

    /// The place behind the first such word outside of parentheses.
    fn behind(&self, word: &str) -> Option<usize> {
        let mut depth = 0_i64;
        for (at, lexeme) in self.0.iter().enumerate() {
            match lexeme.text {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ if depth == 0 && lexeme.is_word(word) => return Some(at + 1),
                _ => {}
            }
        }
        None
    }

    fn skip(&self, mut at: usize, words: &[&str]) -> usize {
        while self.any(at, words) {
            at += 1;
        }
        at
    }

    /// The name at `at`, without its schema.
    fn name(&self, at: usize) -> Option<String> {
        let first = self.plain_name(at)?;
        if self.is_mark(at + 1, ".") { self.plain_name(at + 2) } else { Some(first) }
    }

    fn plain_name(&self, at: usize) -> Option<String> {
        let lexeme = self.0.get(at)?;
        match lexeme.token {
            Token::Word => Some(lexeme.text.into()),
            Token::Backticked => Some(lexeme.text[1..lexeme.text.len() - 1].replace("``", "`")),
            _ => None,
        }
    }

    /// What the statement does to transactions.
    pub fn turn(&self) -> Turn {
        let begins = self.is(0, "BEGIN") && !self.is(1, "NOT") || self.is(0, "START") && self.is(1, "TRANSACTION");
        let to_savepoint = self.any(1, &["TO"]) || self.is(1, "WORK") && self.is(2, "TO");
        if begins {
            Turn::Begins
        } else if self.is(0, "COMMIT") || self.is(0, "ROLLBACK") && !to_savepoint {
            Turn::Ends
        } else {
            Turn::None
        }
    }

    /// Whether it is a query, as opposed to what goes with queries.
    pub fn is_query(&self) -> bool {
        !self.any(0, &["BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET"])
    }

    /// A short form, such as `update_items`.
    pub fn short_form(&self) -> String {
        const LONGEST: usize = 40;
        let verb = match self.0.iter().find(|lexeme| lexeme.token == Token::Word) {
            Some(_) if self.turn() == Turn::Begins => "begin".into(),
            Some(word) => word.text.to_ascii_lowercase(),
            None => "statement".into(),
        };
        let table = self.table().unwrap_or_default();
        let text = if table.is_empty() { verb } else { format!("{verb}_{table}") };
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        text.chars().take(LONGEST).map(safe).collect()
    }

    /// The table that a statement is about.
    fn table(&self) -> Option<String> {
        const HOW: [&str; 6] = ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO"];
        let at = if self.any(0, &["INSERT", "REPLACE", "UPDATE"]) {
            self.skip(1, &HOW)
        } else if self.any(0, &["SELECT", "DELETE"]) {
            self.behind("FROM")?
        } else if self.any(0, &["TRUNCATE", "ALTER", "ANALYZE", "OPTIMIZE"]) {
            self.skip(1, &["TABLE", "ONLINE", "IGNORE", "LOCAL", "NO_WRITE_TO_BINLOG"])
        } else if self.is(0, "CALL") {
            1
        } else {
            return None;
        };
        self.name(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::Lexer;
    use super::*;

    fn words(sql: &str) -> Words<'_> {
        let mut lexer = Lexer::new(sql);
        let lexemes: Vec<_> = std::iter::from_fn(|| lexer.next().unwrap()).collect();
        Words::new(&lexemes)
    }

    #[test]
    fn short_forms_say_verb_and_table() {
        let forms = [
            ("SELECT stock, EXTRACT(YEAR FROM d) FROM items i WHERE 1", "select_items"),
            ("select 1", "select"),
            ("(SELECT a FROM t) UNION SELECT b FROM u", "select"),
            ("SELECT * FROM (SELECT 1) x", "select"),
            ("INSERT IGNORE INTO `shop`.`order``s` VALUES (1)", "insert_order_s"),
            ("REPLACE t SELECT 1", "replace_t"),
            ("UPDATE /* hot */ LOW_PRIORITY items SET a = 1", "update_items"),
            ("DELETE FROM logs WHERE 1", "delete_logs"),
            ("CALL buy(1)", "call_buy"),
            ("START TRANSACTION READ ONLY", "begin"),
            ("begin", "begin"),
            ("COMMIT", "commit"),
            ("WITH x AS (SELECT 1 FROM y) SELECT * FROM x", "with"),
            ("/*!50000 SELECT 1 */", "statement"),
        ];
        for (sql, form) in forms {
            assert_eq!(words(sql).short_form(), form, "{sql}");
        }
    }

    #[test]
    fn transactions_begin_and_end() {
        for (sql, turn) in [
            ("BEGIN", Turn::Begins),
            ("begin work", Turn::Begins),
            ("START TRANSACTION", Turn::Begins),
            ("START SLAVE", Turn::None),
            ("BEGIN NOT ATOMIC SELECT 1; END", Turn::None),
            ("COMMIT", Turn::Ends),
            ("ROLLBACK", Turn::Ends),
            ("ROLLBACK TO s", Turn::None),
            ("ROLLBACK WORK TO s", Turn::None),
        ] {
            assert_eq!(words(sql).turn(), turn, "{sql}");
        }
    }
}
