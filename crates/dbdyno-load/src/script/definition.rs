//! The right side of a definition: a constant, or a function that values are drawn from.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dbdyno_common::similar::nearest;

use super::generator::{DIGITS, Generator, LETTERS, Literal, OneOf, unquoted};
use super::lexer::{Lexeme, Mistake, Token};
use crate::distribution::{Distribution, Sampler};

/// Longest text, in characters: the server takes no longer packet by default.
const TEXT_MAX: i64 = 16 << 20;

/// The functions and how they are written.
const FUNCTIONS: [(&str, &str); 11] = [
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
    ("uuid", "uuid()"),
];

/// A definition: in a block, or before all sections for all blocks of the file.
#[derive(Debug)]
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
    /// Another one for each event.
    Drawn(Arc<Generator>),
}

/// A constant by its name.
pub type Constant<'a> = &'a dyn Fn(&str) -> Option<Literal>;

/// Reads the right side of the definition of `name`, which stands at `at`.
///
/// # Errors
/// Anything wrong with it, with how it is written.
pub fn read(name: &str, at: usize, lexemes: &[Lexeme<'_>], constant: Constant<'_>) -> Result<Defined, Mistake> {
    let mut reader = Reader { lexemes, next: 0, end: lexemes.last().map_or(at, |last| last.at), constant };
    let Some(first) = lexemes.first() else {
        return Err(Mistake::new(at, format!(":{name} has no value: write :{name} = uniform(1, 100)")));
    };
    let is_call = lexemes.get(1).is_some_and(|second| second.is_mark("("));
    let value = match first.token {
        Token::Word if is_call || FUNCTIONS.iter().any(|(known, _)| first.is_word(known)) => {
            Defined::Drawn(Arc::new(reader.function()?))
        }
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
    constant: Constant<'t>,
}

impl<'a> Reader<'_, 'a> {
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
                (self.constant)(name).ok_or_else(|| {
                    Mistake::new(first.at, format!(":{name} is not a constant defined above, such as :{name} = 1000"))
                })
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
            let hint = nearest(&name.text.to_ascii_lowercase(), names.into_iter())
                .map_or_else(String::new, |near| format!("did you mean {near}? "));
            let text = format!("there is no function {}: {hint}There are {}", name.text, names.join(", "));
            return Err(Mistake::new(name.at, text));
        };
        let arguments = self.arguments(&name)?;
        if let Some(weighted) = arguments.iter().find(|argument| argument.weight.is_some() && *known != "one_of") {
            return Err(Mistake::new(weighted.at, "only the values of one_of have weights"));
        }
        match *known {
            "sequence" => sequence(&arguments),
            "one_of" => return one_of(name.at, arguments),
            "text" => text(&arguments, LETTERS),
            "digits" => text(&arguments, DIGITS),
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
    Some(Generator::Sequence { first, given: AtomicU64::new(0) })
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
    use crate::script::items::{Item, Items};

    fn value(text: &str) -> Result<Defined, String> {
        let text = format!(":x = {text}");
        let Ok(Some(Item::Definition { name, at, value })) = Items::new(&text).next() else {
            return Err("no definition".into());
        };
        let constant = |name: &str| (name == "rows").then_some(Literal::Integer(50));
        read(name, at, &value, &constant).map_err(|mistake| {
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
            "uuid()",
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
            ("uniforn(1, 2)", "uniforn(1, 2)|there is no function uniforn: did you mean uniform?"),
            ("now()", "now()|there is no function now: There are uniform, zipf"),
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
