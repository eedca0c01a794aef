//! Statements bound to what they name, and what a statement does as far as its first words say.

use std::sync::Arc;

use dbdyno_common::similar::nearest;

use super::definition::{Defined, Definition};
use super::generator::Generator;
use super::lexer::{Lexeme, Mistake, SourceFile, Token, in_word};
use super::model::{Block, Piece, Template};

/// A name that was written down.
#[derive(Debug, Clone)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub at: usize,
}

/// A statement as it was written.
#[derive(Debug)]
pub struct Written<'a> {
    /// Its pieces.
    pub lexemes: Vec<Lexeme<'a>>,
    /// The name given to it.
    pub name: Option<Name>,
}

/// A block while its file is read.
#[derive(Debug)]
pub struct Draft<'a> {
    /// Its name and where it begins.
    pub name: Name,
    /// How often it comes.
    pub weight: u64,
    /// Of its own parameters and constants.
    pub definitions: Vec<Definition>,
    /// In their order.
    pub statements: Vec<Written<'a>>,
}

impl Draft<'_> {
    /// An empty one.
    pub fn new(text: String, at: usize) -> Self {
        Self { name: Name { text, at }, weight: 1, definitions: Vec::new(), statements: Vec::new() }
    }

    /// The block with its statements bound to the definitions. Without `autocommit` every statement
    /// is in a transaction.
    ///
    /// # Errors
    /// No statement, one that cannot be bound, or a transaction without an end.
    pub fn finish(self, shared: &[Definition], source: &SourceFile, autocommit: bool) -> Result<Block, Mistake> {
        let Name { text: name, at } = self.name;
        if self.statements.is_empty() {
            return Err(Mistake::new(at, format!("the block {name} has no statements")));
        }
        let mut block = Block { name, weight: self.weight, generators: Vec::new(), statements: Vec::new() };
        let mut transaction = Transaction { began: None, retry_from: 0, autocommit };
        for written in &self.statements {
            let pieces = pieces(written, &self.definitions, shared, &mut block.generators)?;
            let words = Words::new(&written.lexemes);
            let first = written.lexemes[0];
            let retry_from = transaction.follow(block.statements.len(), first.at, words.turn())?;
            block.statements.push(Template {
                place: source.place(first.at),
                kind: kind(&block, written.name.as_ref(), &words)?,
                is_query: words.is_query(),
                pieces,
                retry_from,
                makes_tables: first.is_word("CREATE"),
            });
        }
        match transaction.began {
            Some(at) => Err(Mistake::new(at, "this transaction has no COMMIT or ROLLBACK in its block")),
            None => Ok(block),
        }
    }
}

/// A statement's pieces; `generators` are those of its block so far.
fn pieces(
    written: &Written<'_>,
    own: &[Definition],
    shared: &[Definition],
    generators: &mut Vec<Arc<Generator>>,
) -> Result<Vec<Piece>, Mistake> {
    if let Some(mark) = written.lexemes.iter().find(|lexeme| lexeme.is_mark("?")) {
        return Err(Mistake::new(mark.at, "? is not a parameter here: define :name = ... and write :name"));
    }
    let known = || own.iter().chain(shared);
    let mut lookup = |name: &str| {
        Some(match &known().find(|definition| definition.name == name)?.value {
            Defined::Constant(value) => Piece::Sql(value.sql()),
            Defined::Drawn(generator) => Piece::Value(place_of(generator, generators)),
        })
    };
    bind(&written.lexemes, &mut lookup, || known().map(|definition| definition.name.as_str()))
}

/// Follows the transactions through a block.
struct Transaction {
    /// Where the open one began.
    began: Option<usize>,
    retry_from: usize,
    autocommit: bool,
}

impl Transaction {
    /// The statement to go back to from statement `number`.
    fn follow(&mut self, number: usize, at: usize, turn: Turn) -> Result<usize, Mistake> {
        let single = self.autocommit && self.began.is_none();
        if single || turn == Turn::Begins {
            self.retry_from = number;
        }
        let retry_from = self.retry_from;
        match turn {
            Turn::Begins if self.began.is_some() => {
                return Err(Mistake::new(at, "a transaction is open here: end it with COMMIT first"));
            }
            Turn::Begins => self.began = Some(at),
            Turn::Ends => {
                self.began = None;
                self.retry_from = number + 1;
            }
            Turn::None => {}
        }
        Ok(retry_from)
    }
}

fn place_of(generator: &Arc<Generator>, generators: &mut Vec<Arc<Generator>>) -> usize {
    let known = generators.iter().position(|known| Arc::ptr_eq(known, generator));
    known.unwrap_or_else(|| {
        generators.push(Arc::clone(generator));
        generators.len() - 1
    })
}

/// The full name of the next statement of `block`.
fn kind(block: &Block, given: Option<&Name>, words: &Words<'_>) -> Result<String, Mistake> {
    let is_taken = |name: &str| block.statements.iter().any(|statement| statement.kind == name);
    if let Some(given) = given {
        let full = format!("{}.{}", block.name, given.text);
        return if is_taken(&full) {
            Err(Mistake::new(given.at, format!("another statement of this block is called {full}")))
        } else {
            Ok(full)
        };
    }
    let form = format!("{}.{}", block.name, words.short_form());
    if !is_taken(&form) {
        return Ok(form);
    }
    let numbers = 2..=block.statements.len() + 2;
    Ok(numbers.map(|number| format!("{form}_{number}")).find(|name| !is_taken(name)).unwrap_or(form))
}

/// A statement outside of blocks, with constants put in.
///
/// # Errors
/// A parameter that is not defined, or no constant.
pub fn plain_sql(lexemes: &[Lexeme<'_>], shared: &[Definition]) -> Result<String, Mistake> {
    let mut drawn = None;
    let mut lookup = |name: &str| {
        let found = shared.iter().find(|definition| definition.name == name)?;
        if let Defined::Constant(value) = &found.value {
            return Some(Piece::Sql(value.sql()));
        }
        drawn = Some(name.to_owned());
        Some(Piece::Value(0))
    };
    let names = || shared.iter().map(|definition| definition.name.as_str());
    let pieces = bind(lexemes, &mut lookup, names)?;
    let mut sql = String::new();
    for piece in pieces {
        match (piece, &drawn) {
            (Piece::Sql(text), _) => sql.push_str(&text),
            (Piece::Value(_), name) => {
                let name = name.as_deref().unwrap_or_default();
                let text = format!("this statement is run once, so :{name} must be a constant, such as :{name} = 1000");
                return Err(Mistake::new(lexemes[0].at, text));
            }
        }
    }
    Ok(sql)
}

/// Puts `lookup`'s pieces in place of parameters.
fn bind<'n, N: Iterator<Item = &'n str>>(
    lexemes: &[Lexeme<'_>],
    lookup: &mut dyn FnMut(&str) -> Option<Piece>,
    names: impl Fn() -> N,
) -> Result<Vec<Piece>, Mistake> {
    let mut pieces = vec![];
    let mut sql = String::new();
    for lexeme in lexemes {
        let bound = match lexeme.token {
            Token::Parameter => lookup(&lexeme.text[1..]),
            _ => Some(Piece::Sql(lexeme.text.into())),
        };
        let touches_word = lexeme.token == Token::Parameter && sql.bytes().last().is_some_and(in_word);
        if touches_word && bound.is_some() {
            // `LIMIT:n` must not become `LIMIT5`.
            sql.push(' ');
        }
        match bound {
            Some(Piece::Sql(text)) => sql.push_str(&text),
            Some(value) => {
                if !sql.is_empty() {
                    pieces.push(Piece::Sql(std::mem::take(&mut sql)));
                }
                pieces.push(value);
            }
            // A label of a stored program: `again:LOOP`.
            None if touches_word => sql.push_str(lexeme.text),
            None => {
                let name = &lexeme.text[1..];
                let hint = nearest(name, names()).map_or_else(String::new, |near| format!("did you mean :{near}? "));
                let text = format!(":{name} is not defined: {hint}Define it above as :{name} = uniform(1, 100)");
                return Err(Mistake::new(lexeme.at, text));
            }
        }
    }
    if !sql.is_empty() {
        pieces.push(Piece::Sql(sql));
    }
    Ok(pieces)
}

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
    use super::*;
    use crate::script::lexer::Lexer;

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
