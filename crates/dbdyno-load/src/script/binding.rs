//! Names bound to what they stand for: the right side of a definition (a constant, or a function that values are drawn
//! from), and the statements that use it; and what a statement does as far as its first words say.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dbdyno_common::similar::{did_you_mean, nearest};

use super::lexer::{Lexeme, Mistake, SourceFile, Token, in_word};
use super::model::{Block, DIGITS, Generator, LETTERS, Literal, OneOf, Piece, Place, Template, unquoted};
use crate::distribution::{Distribution, Sampler};

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
    /// The list of which each value is one statement.
    pub each: Option<Name>,
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
            let (pieces, times) = pieces(written, &self.definitions, shared, &mut block.generators)?;
            let words = Words::new(&written.lexemes);
            let first = written.lexemes[0];
            if let Some(each) = written.each.as_ref().filter(|_| !words.is_query()) {
                return Err(Mistake::new(each.at, "only a query can be sent for each value of a list"));
            }
            let is_alone = transaction.is_alone();
            let retry_from = transaction.follow(block.statements.len(), first.at, words.turn())?;
            block.statements.push(Template {
                place: source.place(first.at),
                kind: kind(&block, written.name.as_ref(), &words)?,
                is_query: words.is_query(),
                pieces,
                times,
                retry_from,
                is_alone,
                makes_tables: first.is_word("CREATE"),
            });
        }
        match transaction.began {
            Some(at) => Err(Mistake::new(at, "this transaction has no COMMIT or ROLLBACK in its block")),
            None => Ok(block),
        }
    }
}

/// A statement's pieces, and how often it is sent in a row; `generators` are those of its block so far.
fn pieces(
    written: &Written<'_>,
    own: &[Definition],
    shared: &[Definition],
    generators: &mut Vec<Arc<Generator>>,
) -> Result<(Vec<Piece>, usize), Mistake> {
    if let Some(mark) = written.lexemes.iter().find(|lexeme| lexeme.is_mark("?")) {
        return Err(Mistake::new(mark.at, "? is not a parameter here: define :name = ... and write :name"));
    }
    let known = || own.iter().chain(shared);
    let value_of = |name: &str| known().find(|definition| definition.name == name).map(|known| &known.value);
    let times = written.each.as_ref().map_or(Ok(1), |each| times(written, each, value_of(&each.text)))?;
    let mut lookup = |name: &str| {
        Some(match value_of(name)? {
            Defined::Constant(value) => vec![Piece::Sql(value.sql())],
            Defined::Drawn(values) => {
                let is_each = written.each.as_ref().is_some_and(|each| each.text == name);
                values.pieces(is_each, place_of(values, generators))
            }
        })
    };
    let pieces = bind(&written.lexemes, &mut lookup, || known().map(|definition| definition.name.as_str()))?;
    Ok((pieces, times))
}

/// How often a statement is sent that is there for each value of a list.
fn times(written: &Written<'_>, each: &Name, value: Option<&Defined>) -> Result<usize, Mistake> {
    let name = &each.text;
    let uses = |lexeme: &Lexeme<'_>| lexeme.token == Token::Parameter && &lexeme.text[1..] == name;
    match value {
        Some(Defined::Drawn(Values { count: Some(_), .. })) if !written.lexemes.iter().any(uses) => {
            Err(Mistake::new(each.at, format!("the statement below does not use :{name}")))
        }
        Some(Defined::Drawn(Values { count: Some(count), .. })) => Ok(*count),
        _ => {
            let remedy = format!(":{name} is no list: define it above as :{name} = list(10, uniform(1, 100))");
            Err(Mistake::new(each.at, remedy))
        }
    }
}

/// Follows the transactions through a block.
struct Transaction {
    /// Where the open one began.
    began: Option<usize>,
    retry_from: usize,
    autocommit: bool,
}

impl Transaction {
    /// Whether the next statement is a transaction of its own, unless it begins one.
    fn is_alone(&self) -> bool {
        self.autocommit && self.began.is_none()
    }

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

/// The slot of the first of these values; those of a list that is drawn one by one stand side by side.
fn place_of(values: &Values, generators: &mut Vec<Arc<Generator>>) -> usize {
    let known = generators.iter().position(|known| Arc::ptr_eq(known, &values.generator));
    known.unwrap_or_else(|| {
        generators.extend(std::iter::repeat_n(&values.generator, values.draws()).map(Arc::clone));
        generators.len() - values.draws()
    })
}

/// The full name of the next statement of `block`.
fn kind(block: &Block, name: Option<&Name>, words: &Words<'_>) -> Result<String, Mistake> {
    let is_taken = |name: &str| block.statements.iter().any(|statement| statement.kind == name);
    if let Some(name) = name {
        let full = format!("{}.{}", block.name, name.text);
        return if is_taken(&full) {
            Err(Mistake::new(name.at, format!("another statement of this block is called {full}")))
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
        let definition = shared.iter().find(|definition| definition.name == name)?;
        if let Defined::Constant(value) = &definition.value {
            return Some(vec![Piece::Sql(value.sql())]);
        }
        drawn = Some(name.to_owned());
        Some(vec![Piece::Value(Place::default())])
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
    lookup: &mut dyn FnMut(&str) -> Option<Vec<Piece>>,
    names: impl Fn() -> N,
) -> Result<Vec<Piece>, Mistake> {
    let mut pieces = vec![];
    let mut sql = String::new();
    for lexeme in lexemes {
        if lexeme.token != Token::Parameter {
            sql.push_str(lexeme.text);
            continue;
        }
        let bound = lookup(&lexeme.text[1..]);
        let touches_word = sql.bytes().last().is_some_and(in_word);
        if touches_word && bound.is_some() {
            // `LIMIT:n` must not become `LIMIT5`.
            sql.push(' ');
        }
        match bound {
            Some(bound) => {
                for piece in bound {
                    match piece {
                        Piece::Sql(text) => sql.push_str(&text),
                        Piece::Value(_) => {
                            if !sql.is_empty() {
                                pieces.push(Piece::Sql(std::mem::take(&mut sql)));
                            }
                            pieces.push(piece);
                        }
                    }
                }
            }
            // A label of a stored program: `again:LOOP`.
            None if touches_word => sql.push_str(lexeme.text),
            None => {
                let name = &lexeme.text[1..];
                let hint = nearest(name, names()).map_or_else(String::new, |near| format!(". Did you mean :{near}?"));
                let text = format!(":{name} is not defined; define it above as :{name} = uniform(1, 100){hint}");
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

/// Longest text, in characters: the server takes no longer packet by default.
const TEXT_MAX: i64 = 16 << 20;

/// The functions and how they are written.
const FUNCTIONS: [(&str, &str); 13] = [
    ("uniform", "uniform(low, high) with whole numbers, low <= high"),
    ("zipf", "zipf(low, high) or zipf(low, high, exponent from 0 to 100), low <= high"),
    ("gaussian", "gaussian(low, high) or gaussian(low, high, iterations from 1 to 1000), low <= high"),
    ("pareto", "pareto(low, high) or pareto(low, high, h between 0 and 1), low <= high"),
    ("special", "special(low, high) or special(low, high, percent of the range, percent of the draws), low <= high"),
    ("exponential", "exponential(low, high) or exponential(low, high, rate above 0, up to 100), low <= high"),
    ("sequence", "sequence() or sequence(first)"),
    ("one_of", "one_of('a', 'b', 'c') or one_of('a': 7, 'b': 3) with whole numbers as weights"),
    ("text", "text(characters) or text(least, most), up to 16777216"),
    ("digits", "digits(characters) or digits(least, most), up to 16777216"),
    ("pattern", "pattern('###-@@') with # for a digit and @ for a letter, without quotes and backslashes in it"),
    ("uuid", "uuid()"),
    ("list", "list(count, uniform(1, 100)), or list(count, :number) with a drawn :number; count from 1 to 10000"),
];

/// Most values of a list.
const LIST_MAX: i64 = 10_000;

/// A definition: in a block, or before all sections for all blocks of the file.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Without the colon.
    pub name: String,
    /// Where it stands.
    pub at: usize,
    /// What it gives.
    pub value: Defined,
}

/// What a definition gives; blocks share a generator, so that a sequence is one for all.
#[derive(Debug, Clone)]
pub enum Defined {
    /// The same everywhere.
    Constant(Literal),
    /// Other ones for each event.
    Drawn(Values),
}

/// What a parameter stands for: one value of a generator, or a list of them.
#[derive(Debug, Clone)]
pub struct Values {
    /// What they are drawn from.
    pub generator: Arc<Generator>,
    /// What is added to each.
    plus: i64,
    /// How many a list has.
    count: Option<usize>,
    /// The list is a number and those that follow it; else each is drawn.
    is_consecutive: bool,
}

impl Values {
    fn one(generator: Generator) -> Self {
        Self { generator: Arc::new(generator), plus: 0, count: None, is_consecutive: false }
    }

    /// How many values an event draws for it.
    fn draws(&self) -> usize {
        self.count.filter(|_| !self.is_consecutive).unwrap_or(1)
    }

    /// The values, of which the first stands in `slot`, as pieces of a statement, a list with commas; where the
    /// statement `is_each`, the first alone with the step to the next.
    fn pieces(&self, is_each: bool, slot: usize) -> Vec<Piece> {
        let step = if self.is_consecutive { (0, 1) } else { (1, 0) };
        let first = Place { slot, plus: self.plus, step };
        if is_each {
            return vec![Piece::Value(first)];
        }
        let mut pieces = Vec::new();
        for place in (0..self.count.unwrap_or(1)).map(|time| Place { step: (0, 0), ..first.at(time) }) {
            if !pieces.is_empty() {
                pieces.push(Piece::Sql(", ".into()));
            }
            pieces.push(Piece::Value(place));
        }
        pieces
    }
}

/// What was defined before, by its name.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<Defined>;

/// Reads the right side of the definition of `name`, which stands at `at`.
///
/// # Errors
/// Anything wrong with it, with how it is written.
pub fn read(name: &str, at: usize, lexemes: &[Lexeme<'_>], lookup: Lookup<'_>) -> Result<Defined, Mistake> {
    let mut reader = Reader { lexemes, next: 0, end: lexemes.last().map_or(at, |last| last.at), lookup };
    let Some(first) = lexemes.first() else {
        return Err(Mistake::new(at, format!(":{name} has no value: write :{name} = uniform(1, 100)")));
    };
    let is_call = lexemes.get(1).is_some_and(|second| second.is_mark("("));
    let is_sum = lexemes.get(1).is_some_and(|second| second.is_mark("+") || second.is_mark("-"));
    let value = match first.token {
        Token::Word if first.is_word("list") => Defined::Drawn(reader.list()?),
        Token::Word if is_call || FUNCTIONS.iter().any(|(known, _)| first.is_word(known)) => {
            Defined::Drawn(Values::one(reader.function()?))
        }
        Token::Parameter if is_sum => match reader.values_of(first) {
            Some(values) => Defined::Drawn(reader.sum(values)?),
            None => Defined::Constant(reader.literal()?),
        },
        _ => Defined::Constant(reader.literal()?),
    };
    match reader.take() {
        None => Ok(value),
        Some(more) => Err(Mistake::new(
            more.at,
            format!("{} is too much here: a value is one constant or one function; compute in SQL", more.text),
        )),
    }
}

struct Argument {
    at: usize,
    value: Literal,
    weight: Option<u64>,
}

struct Reader<'t, 'a> {
    lexemes: &'t [Lexeme<'a>],
    next: usize,
    /// Where the definition ends.
    end: usize,
    lookup: Lookup<'t>,
}

impl<'a> Reader<'_, 'a> {
    /// The values of a drawn parameter.
    fn values_of(&self, parameter: &Lexeme<'_>) -> Option<Values> {
        match (self.lookup)(&parameter.text[1..])? {
            Defined::Drawn(values) => Some(values),
            Defined::Constant(_) => None,
        }
    }

    /// `:number + 99` or `:number - 99`.
    fn sum(&mut self, values: Values) -> Result<Values, Mistake> {
        let at = self.lexemes[self.next].at;
        self.next += 1;
        let is_minus = self.take().is_some_and(|sign| sign.is_mark("-"));
        let Literal::Integer(number) = self.literal()? else {
            return Err(Mistake::new(at, "only a whole number can be added, such as :last = :first + 99"));
        };
        if !values.generator.is_number() {
            return Err(Mistake::new(at, "nothing can be added to this parameter: it is not a drawn whole number"));
        }
        let number = if is_minus { number.wrapping_neg() } else { number };
        Ok(Values { plus: values.plus.wrapping_add(number), ..values })
    }

    /// `list(count, function)` or `list(count, :number)`.
    fn list(&mut self) -> Result<Values, Mistake> {
        let at = self.lexemes[self.next].at;
        let wrong = || Mistake::new(at, format!("write {}", usage("list")));
        self.next += 1;
        if !self.take_mark("(") {
            return Err(wrong());
        }
        let count = match self.literal()? {
            Literal::Integer(count @ 1..=LIST_MAX) => count as usize,
            _ => return Err(wrong()),
        };
        if !self.take_mark(",") {
            return Err(wrong());
        }
        let Some(first) = self.lexemes.get(self.next).copied() else { return Err(wrong()) };
        let values = if first.token == Token::Parameter {
            self.next += 1;
            let number = self.values_of(&first).filter(|values| values.count.is_none() && values.generator.is_number());
            Values { count: Some(count), is_consecutive: true, ..number.ok_or_else(wrong)? }
        } else {
            Values { count: Some(count), ..Values::one(self.function()?) }
        };
        if self.take_mark(")") { Ok(values) } else { Err(wrong()) }
    }

    fn take(&mut self) -> Option<Lexeme<'a>> {
        let lexeme = self.lexemes.get(self.next).copied();
        self.next += 1;
        lexeme
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let is_mark = self.lexemes.get(self.next).is_some_and(|lexeme| lexeme.is_mark(mark));
        self.next += usize::from(is_mark);
        is_mark
    }

    fn literal(&mut self) -> Result<Literal, Mistake> {
        let Some(first) = self.take() else {
            return Err(Mistake::new(self.end, "a value is missing here"));
        };
        let none =
            |what: &str| Mistake::new(first.at, format!("{what}: give a number, a 'string', NULL or a function"));
        match first.token {
            Token::Quoted => Ok(Literal::Text(unquoted(first.text))),
            Token::Parameter => {
                let name = &first.text[1..];
                if let Some(Defined::Constant(value)) = (self.lookup)(name) {
                    return Ok(value);
                }
                let text = format!(":{name} is not a constant defined above, such as :{name} = 1000");
                Err(Mistake::new(first.at, text))
            }
            Token::Word if first.is_word("NULL") => Ok(Literal::Null),
            Token::Word | Token::Mark => {
                let text = self.number(first);
                Literal::number(&text).ok_or_else(|| none(&format!("{text} is not a value")))
            }
            _ => Err(none(&format!("{} is not a value", first.text))),
        }
    }

    /// The pieces of a number, which are in touch: `-`, `1`, `.`, `5e`, `-`, `3`.
    fn number(&mut self, first: Lexeme<'a>) -> String {
        let mut text = first.text.to_owned();
        let mut end = first.at + first.text.len();
        while let Some(next) = self.lexemes.get(self.next).filter(|next| next.at == end) {
            let sign = (next.is_mark("-") || next.is_mark("+")) && text.ends_with(['e', 'E']);
            if next.token != Token::Word && !next.is_mark(".") && !sign {
                break;
            }
            text.push_str(next.text);
            end += next.text.len();
            self.next += 1;
        }
        text
    }

    fn arguments(&mut self, name: &Lexeme<'_>) -> Result<Vec<Argument>, Mistake> {
        if !self.take_mark("(") {
            return Err(Mistake::new(name.at, format!("write {}", usage(name.text))));
        }
        let mut arguments = Vec::new();
        if self.take_mark(")") {
            return Ok(arguments);
        }
        loop {
            let at = self.lexemes.get(self.next).map_or(self.end, |lexeme| lexeme.at);
            let value = self.literal()?;
            let weight = if self.take_mark(":") { Some(self.weight()?) } else { None };
            arguments.push(Argument { at, value, weight });
            if self.take_mark(")") {
                return Ok(arguments);
            }
            if !self.take_mark(",") {
                let at = self.lexemes.get(self.next).map_or(self.end, |lexeme| lexeme.at);
                return Err(Mistake::new(at, format!("a , or ) is missing here: write {}", usage(name.text))));
            }
        }
    }

    fn weight(&mut self) -> Result<u64, Mistake> {
        let at = self.lexemes.get(self.next).map_or(self.end, |lexeme| lexeme.at);
        match self.literal()? {
            Literal::Integer(weight) => weight.try_into().ok(),
            _ => None,
        }
        .ok_or_else(|| Mistake::new(at, "a weight is a whole number from 0"))
    }

    fn function(&mut self) -> Result<Generator, Mistake> {
        let Some(name) = self.take() else {
            return Err(Mistake::new(self.end, "a function is missing here"));
        };
        let Some((known, usage)) = FUNCTIONS.iter().find(|(known, _)| name.is_word(known)) else {
            let names = FUNCTIONS.map(|(known, _)| known);
            let hint = did_you_mean(&name.text.to_ascii_lowercase(), names.into_iter());
            let text = format!("there is no function {}; there are {}{hint}", name.text, names.join(", "));
            return Err(Mistake::new(name.at, text));
        };
        if *known == "list" {
            return Err(Mistake::new(name.at, format!("write {usage}")));
        }
        let arguments = self.arguments(&name)?;
        if let Some(weighted) = arguments.iter().find(|argument| argument.weight.is_some() && *known != "one_of") {
            return Err(Mistake::new(weighted.at, "only the values of one_of have weights"));
        }
        match *known {
            "sequence" => sequence(&arguments),
            "one_of" => return one_of(name.at, arguments),
            "text" => text(&arguments, LETTERS),
            "digits" => text(&arguments, DIGITS),
            "pattern" => pattern(&arguments),
            "uuid" => arguments.is_empty().then_some(Generator::Uuid),
            range => numbers(range, &arguments),
        }
        .ok_or_else(|| Mistake::new(name.at, format!("write {usage}")))
    }
}

fn usage(name: &str) -> &'static str {
    FUNCTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("name(...)", |(_, usage)| usage)
}

fn integer(argument: &Argument) -> Option<i64> {
    match argument.value {
        Literal::Integer(value) => Some(value),
        _ => None,
    }
}

fn number(argument: &Argument) -> Option<f64> {
    match argument.value {
        Literal::Integer(value) => Some(value as f64),
        Literal::Decimal(_, value) => Some(value),
        _ => None,
    }
}

fn numbers(function: &str, arguments: &[Argument]) -> Option<Generator> {
    let [low, high, shape @ ..] = arguments else { return None };
    let (low, high) = (integer(low)?, integer(high)?);
    let distribution = match (function, shape) {
        ("uniform", []) => Distribution::Uniform,
        ("zipf", []) => Distribution::ZIPFIAN,
        ("zipf", [exponent]) => Distribution::Zipfian { exponent: number(exponent)? },
        ("gaussian", []) => Distribution::GAUSSIAN,
        ("gaussian", [iterations]) => Distribution::Gaussian { iterations: integer(iterations)?.try_into().ok()? },
        ("pareto", []) => Distribution::PARETO,
        ("pareto", [h]) => Distribution::Pareto { h: number(h)? },
        ("special", []) => Distribution::SPECIAL,
        ("special", [percent, hits]) => {
            Distribution::Special { iterations: 12, percent: number(percent)?, hits: number(hits)? }
        }
        ("exponential", []) => Distribution::EXPONENTIAL,
        ("exponential", [rate]) => Distribution::Exponential { rate: number(rate)? },
        _ => return None,
    };
    distribution.check().ok()?;
    (low <= high).then(|| Generator::Number(Sampler::new(distribution, low, high)))
}

fn sequence(arguments: &[Argument]) -> Option<Generator> {
    let first = match arguments {
        [] => 1,
        [first] => integer(first)?,
        _ => return None,
    };
    Some(Generator::Sequence { first, count: AtomicU64::new(0) })
}

fn text(arguments: &[Argument], alphabet: &'static [u8]) -> Option<Generator> {
    let (least, most) = match arguments {
        [both] => (integer(both)?, integer(both)?),
        [least, most] => (integer(least)?, integer(most)?),
        _ => return None,
    };
    let fits = 0 <= least && least <= most && most <= TEXT_MAX;
    fits.then_some(Generator::Text { least: least as u64, most: most as u64, alphabet })
}

fn pattern(arguments: &[Argument]) -> Option<Generator> {
    let [Argument { value: Literal::Text(text), .. }] = arguments else { return None };
    let is_short = i64::try_from(text.len()).is_ok_and(|length| length <= TEXT_MAX);
    let fits = is_short && !text.contains(['\'', '\\', '\0']);
    fits.then(|| Generator::Pattern(text.clone().into_bytes()))
}

fn one_of(at: usize, arguments: Vec<Argument>) -> Result<Generator, Mistake> {
    let is_text = |value: &Literal| matches!(value, Literal::Text(_));
    let mut kinds = arguments.iter().filter(|argument| argument.value != Literal::Null);
    if let Some(first) = kinds.next()
        && let Some(other) = kinds.find(|other| is_text(&other.value) != is_text(&first.value))
    {
        return Err(Mistake::new(other.at, "one_of has strings and numbers: a parameter has one type, quote all"));
    }
    let unweighted = arguments.iter().find(|argument| argument.weight.is_none());
    if let Some(argument) = unweighted.filter(|_| arguments.iter().any(|argument| argument.weight.is_some())) {
        return Err(Mistake::new(argument.at, "this value of one_of has no weight and others have: give all or none"));
    }
    let choices = arguments.into_iter().map(|argument| (argument.value, argument.weight.unwrap_or(1))).collect();
    let one_of = OneOf::new(choices).ok_or_else(|| Mistake::new(at, format!("write {}", usage("one_of"))))?;
    Ok(Generator::OneOf(one_of))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::script::lexer::{Item, Items, Lexer};

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

    fn value(text: &str) -> Result<Defined, String> {
        let text = format!(":x = {text}");
        let Ok(Some(Item::Definition { name, at, value })) = Items::new(&text).next() else {
            return Err("no definition".into());
        };
        let drawn = |text: &str| {
            let mut lexer = Lexer::new(text);
            let lexemes: Vec<_> = std::iter::from_fn(|| lexer.next().unwrap()).collect();
            read("known", 0, &lexemes, &|_| None).unwrap()
        };
        let known = |name: &str| match name {
            "rows" => Some(Defined::Constant(Literal::Integer(50))),
            "id" => Some(drawn("uniform(1,9)")),
            "ids" => Some(drawn("list(3,uniform(1,9))")),
            "word" => Some(drawn("text(3)")),
            _ => None,
        };
        read(name, at, &value, &known).map_err(|mistake| {
            assert!(text.is_char_boundary(mistake.at));
            format!("{}|{}", &text[mistake.at..], mistake.text)
        })
    }

    fn constant(text: &str) -> Literal {
        match value(text) {
            Ok(Defined::Constant(value)) => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn constants_are_numbers_strings_or_null() {
        assert_eq!(constant("-5"), Literal::Integer(-5));
        assert_eq!(constant("1.5e-3").sql(), "1.5e-3");
        assert_eq!(constant(".5;").sql(), ".5");
        assert_eq!(constant("'it''s'"), Literal::Text("it's".into()));
        assert_eq!(constant("null"), Literal::Null);
        assert_eq!(constant(":rows"), Literal::Integer(50));
    }

    #[test]
    fn all_functions_are_read() {
        let right = [
            "uniform(-5, 5)",
            "ZIPF(1, :rows)",
            "zipf(1, 9, 1.2)",
            "gaussian(1, 9)",
            "gaussian(1, 9, 3)",
            "pareto(1, 9)",
            "pareto(1, 9, .3)",
            "special(1, 9)",
            "special(1, 9, 5, 90.5)",
            "exponential(1, 9, 2)",
            "exponential(1,9)",
            "sequence()",
            "sequence(100)",
            "one_of('a', 'b')",
            "one_of(1: 0, NULL :2, 2.5:1)",
            "text(0)",
            "text(4, 40)",
            "digits(3)",
            "pattern('##-@')",
            "uuid()",
            "list(3, uuid())",
            "list(:rows, uniform(1, :rows))",
            "list(10, :id)",
            ":id + 99",
            ":id - :rows",
            ":ids + 1",
        ];
        for text in right {
            assert!(matches!(value(text), Ok(Defined::Drawn(_))), "{text}: {:?}", value(text));
        }
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_is() {
        let wrong = [
            ("uniform(5, 1)", "uniform(5, 1)|write uniform(low, high)"),
            ("uniform(1.5, 2)", "uniform(1.5, 2)|write uniform"),
            ("zipf(1, 9, 101)", "zipf(1, 9, 101)|write zipf"),
            ("uniform", "uniform|write uniform(low, high)"),
            ("uniforn(1, 2)", "uniforn(1, 2)|there is no function uniforn; there are uniform, "),
            ("now()", "now()|there is no function now; there are uniform, zipf"),
            ("uniform(1, 2", "2|a , or ) is missing"),
            ("uniform(1 2)", "2)|a , or ) is missing"),
            ("uniform(1, 2) * 3", "* 3|* is too much here"),
            ("uniform(1, 2: 3)", "2: 3)|only the values of one_of"),
            ("uniform(1, :other)", ":other)|:other is not a constant"),
            ("one_of()", "one_of()|write one_of"),
            ("one_of('a': 0)", "one_of('a': 0)|write one_of"),
            ("one_of('a', 1)", "1)|one_of has strings and numbers"),
            ("one_of('a': 1, 'b')", "'b')|this value of one_of has no weight"),
            ("one_of('a': x)", "x)|x is not a value"),
            ("one_of('a': 1.5)", "1.5)|a weight is a whole"),
            (":rows + 1", "+ 1|+ is too much here"),
            (":id", ":id|:id is not a constant"),
            (":id + 1.5", ":id + 1.5|only a whole number can be added"),
            (":id + :id", ":id|:id is not a constant"),
            (":word + 1", ":word + 1|nothing can be added"),
            ("list(0, uuid())", "list(0, uuid())|write list(count"),
            ("list(10001, uuid())", "list(10001, uuid())|write list(count"),
            ("list(3, :ids)", "list(3, :ids)|write list(count"),
            ("list(3, :word)", "list(3, :word)|write list(count"),
            ("list(3, list(3, uuid()))", "list(3, uuid()))|write list(count"),
            ("list(3", "list(3|write list(count"),
            ("list", "list|write list(count"),
            ("pattern(3)", "pattern(3)|write pattern"),
            ("pattern('a''b')", "pattern('a''b')|write pattern"),
            ("text(99999999)", "text(99999999)|write text"),
            ("text(5, 2)", "text(5, 2)|write text"),
            ("hello", "hello|hello is not a value"),
            ("99999999999999999999", "99999999999999999999|99999999999999999999 is not a value"),
            ("", ":x = |:x has no value"),
        ];
        for (text, expected) in wrong {
            let message = value(text).map(drop).unwrap_err();
            assert!(message.starts_with(expected), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(uniform|one_of|text|\\(|\\)|,|:|:rows|'a'|1|\\.|-|e| |é){0,12}") {
            let _ = value(&text);
        }
    }
}
