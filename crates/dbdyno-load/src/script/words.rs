//! What a statement does, as far as its first words tell.

use super::lexer::{Lexeme, Lexer, Token};

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

/// What a statement does to what a schema holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Nothing.
    Nothing,
    /// It makes, fills, changes or drops these; a name with its schema if that was given.
    Touches(Vec<(Option<String>, String)>),
    /// Goes to another schema, or makes or drops one.
    Leaves,
    /// That cannot be told.
    Unknown,
}

/// The words and marks of a statement.
#[derive(Debug)]
pub struct Words<'t>(Vec<Lexeme<'t>>);

impl<'t> Words<'t> {
    /// Of a statement's pieces.
    pub fn new(lexemes: &[Lexeme<'t>]) -> Self {
        Self(lexemes.iter().copied().filter(|lexeme| !lexeme.is_blank()).collect())
    }

    /// Of a statement.
    pub fn of(sql: &'t str) -> Self {
        let mut lexer = Lexer::new(sql);
        let mut words = Vec::new();
        while let Ok(Some(lexeme)) = lexer.next() {
            words.push(lexeme);
        }
        Self::new(&words)
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

    /// The name at `at` with its schema, and the place behind it.
    fn name(&self, at: usize) -> Option<((Option<String>, String), usize)> {
        let first = self.plain_name(at)?;
        if self.is_mark(at + 1, ".") {
            let second = self.plain_name(at + 2)?;
            return Some(((Some(first), second), at + 3));
        }
        Some(((None, first), at + 1))
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
        let table = self.table().map(|((_, table), _)| table).unwrap_or_default();
        let text = if table.is_empty() { verb } else { format!("{verb}_{table}") };
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        text.chars().take(LONGEST).map(safe).collect()
    }

    /// The table that a statement is about, and the place behind its name.
    fn table(&self) -> Option<((Option<String>, String), usize)> {
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

    /// What the statement does to what a schema holds.
    pub fn deed(&self) -> Deed {
        const SCHEMA: [&str; 2] = ["DATABASE", "SCHEMA"];
        if self.is(0, "USE") || self.any(0, &["CREATE", "DROP", "ALTER"]) && self.any(1, &SCHEMA) {
            return Deed::Leaves;
        }
        if self.any(0, &["SELECT", "DO", "SHOW", "SET"]) || self.turn() != Turn::None {
            return Deed::Nothing;
        }
        let touched = if self.is(0, "CREATE") {
            self.created().map(|name| vec![name])
        } else if self.is(0, "DROP") {
            self.dropped()
        } else if self.any(0, &["UPDATE", "DELETE"]) {
            // A comma or a join makes it a change of more than one table.
            self.table()
                .filter(|(_, end)| !self.is_mark(*end, ",") && self.behind("JOIN").is_none())
                .map(|found| vec![found.0])
        } else if self.is(0, "CALL") {
            None
        } else {
            self.table().map(|found| vec![found.0])
        };
        touched.map_or(Deed::Unknown, Deed::Touches)
    }

    /// The name of what CREATE makes, or of the table that an index or trigger is made on.
    fn created(&self) -> Option<(Option<String>, String)> {
        let made = ["TABLE", "VIEW", "PROCEDURE", "FUNCTION", "SEQUENCE", "EVENT", "INDEX", "TRIGGER"];
        let at = (1..self.0.len()).find(|at| self.any(*at, &made))?;
        if self.any(at, &["INDEX", "TRIGGER"]) {
            return Some(self.name(self.behind("ON")?)?.0);
        }
        Some(self.name(self.skip(at + 1, &["IF", "NOT", "EXISTS"]))?.0)
    }

    /// The names in `DROP TABLE IF EXISTS a, b`.
    fn dropped(&self) -> Option<Vec<(Option<String>, String)>> {
        let dropped = ["TABLE", "TABLES", "VIEW", "PROCEDURE", "FUNCTION", "SEQUENCE", "EVENT"];
        let at = self.skip(1, &["TEMPORARY"]);
        if self.any(at, &["INDEX"]) {
            return Some(vec![self.name(self.behind("ON")?)?.0]);
        }
        if !self.any(at, &dropped) {
            return None;
        }
        let mut names = Vec::new();
        let mut at = self.skip(at + 1, &["IF", "EXISTS"]);
        loop {
            let (name, end) = self.name(at)?;
            names.push(name);
            if !self.is_mark(end, ",") {
                return Some(names);
            }
            at = end + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Words::of(sql).short_form(), form, "{sql}");
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
            assert_eq!(Words::of(sql).turn(), turn, "{sql}");
        }
    }

    #[test]
    fn deeds_name_what_they_touch() {
        let touched = [
            ("CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS a (i int)", "a"),
            ("CREATE DEFINER=`x`@`y` TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET NEW.i = 1", "a"),
            ("CREATE UNIQUE INDEX i ON a (i)", "a"),
            ("DROP TABLE IF EXISTS a, `s`.b", "a s.b"),
            ("DROP INDEX i ON a", "a"),
            ("INSERT INTO a VALUES (1)", "a"),
            ("DELETE FROM a", "a"),
            ("UPDATE a SET i = 1", "a"),
            ("TRUNCATE TABLE a", "a"),
            ("ALTER TABLE s.a ADD INDEX (i)", "s.a"),
        ];
        for (sql, expected) in touched {
            let Deed::Touches(names) = Words::of(sql).deed() else { panic!("{sql}") };
            let said = |(schema, name): (Option<String>, String)| match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name,
            };
            assert_eq!(names.into_iter().map(said).collect::<Vec<_>>().join(" "), expected, "{sql}");
        }
        for sql in ["USE x", "DROP DATABASE x", "CREATE SCHEMA x"] {
            assert_eq!(Words::of(sql).deed(), Deed::Leaves, "{sql}");
        }
        for sql in ["SET autocommit = 0", "SELECT 1", "COMMIT"] {
            assert_eq!(Words::of(sql).deed(), Deed::Nothing, "{sql}");
        }
        for sql in ["UPDATE a, b SET a.i = b.i", "DELETE a FROM a JOIN b", "CALL p()", "GRANT ALL ON a TO b", ""] {
            assert_eq!(Words::of(sql).deed(), Deed::Unknown, "{sql}");
        }
    }
}
