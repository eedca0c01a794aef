//! Statements bound to what they name.

use std::sync::Arc;

use dbdyno_common::similar::nearest;

use super::definition::{Defined, Definition};
use super::generator::Generator;
use super::lexer::{Lexeme, Mistake, SourceFile, Token, in_word};
use super::model::{Block, Piece, Template};
use super::words::{Turn, Words};

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
        return Err(Mistake::new(mark.at, "? is no parameter here: define :name = ... and write :name"));
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
