//! What a script says, with everything in it bound: sections and statements, what a parameter's values are drawn from,
//! and constant values, as SQL and as values of a prepared statement.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_common::random::Random;

use crate::distribution::Sampler;
use crate::protocol::packet::Parameter;

/// A script, or several as one.
#[derive(Debug, Default)]
pub struct Script {
    /// Its file's name without folder and suffix.
    pub name: String,
    /// Run on each new connection.
    pub connect: Vec<Plain>,
    /// Run once by prepare.
    pub setup: Vec<Plain>,
    /// Run once by cleanup.
    pub cleanup: Vec<Plain>,
    /// What events are made of.
    pub blocks: Vec<Block>,
    /// Names of the constants that a command line may replace.
    pub constants: Vec<String>,
    /// Where the first backslash in a string stands: its meaning depends on sql_mode.
    pub backslash: Option<String>,
}

/// A statement that is sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// File, line and column.
    pub place: String,
    /// The statement, without its delimiter.
    pub sql: String,
}

/// A transaction, or whatever its user counts as one.
#[derive(Debug)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// How often it comes, compared with the others.
    pub weight: u64,
    /// What its parameters are drawn from.
    pub generators: Vec<Arc<Generator>>,
    /// At least one.
    pub statements: Vec<Template>,
}

/// A statement of a block.
#[derive(Debug)]
pub struct Template {
    /// File, line and column.
    pub place: String,
    /// Its name in every output.
    pub kind: String,
    /// Whether it counts as a query.
    pub is_query: bool,
    /// What it is made of.
    pub pieces: Vec<Piece>,
    /// How often it is sent in a row, each time with the next value of a list.
    pub times: usize,
    /// Which statement of the block to go back to when the server gave this one up: the one that began its transaction.
    pub retry_from: usize,
    /// It is a transaction of its own.
    pub is_alone: bool,
    /// It may make tables, so that those after it cannot be checked before.
    pub makes_tables: bool,
}

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// SQL as it is.
    Sql(String),
    /// A value that was drawn.
    Value(Place),
}

/// Where a statement finds a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Of the block's generators.
    pub slot: usize,
    /// What is added to its number.
    pub plus: i64,
    /// How far slot and sum go on each time that the statement is sent in a row.
    pub step: (usize, i64),
}

impl Place {
    /// The place at the statement's repetition `time`, from 0.
    pub fn at(self, time: usize) -> Self {
        let further = self.step.1.wrapping_mul(i64::try_from(time).unwrap_or(i64::MAX));
        let plus = self.plus.wrapping_add(further);
        Self { slot: self.slot + self.step.0 * time, plus, ..self }
    }
}

impl Script {
    /// Nothing yet, named after the file.
    pub fn named(file: &str) -> Self {
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        Self { name: stem.chars().take(40).map(safe).collect(), ..Self::default() }
    }

    /// All statements of all blocks.
    pub fn statements(&self) -> impl Iterator<Item = &Template> {
        self.blocks.iter().flat_map(|block| &block.statements)
    }

    /// This one behind the sections of a file that makes its tables.
    pub fn prepend(&mut self, setup: Self) {
        self.connect.splice(0..0, setup.connect);
        self.setup.splice(0..0, setup.setup);
        self.cleanup.splice(0..0, setup.cleanup);
        self.constants.splice(0..0, setup.constants);
        self.backslash = setup.backslash.or(self.backslash.take());
    }

    /// This one and another: sections are joined, blocks stand beside each other.
    pub fn join(&mut self, other: Self) {
        self.name = format!("{}+{}", self.name, other.name);
        self.connect.extend(other.connect);
        self.setup.extend(other.setup);
        self.cleanup.extend(other.cleanup);
        self.blocks.extend(other.blocks);
        self.constants.extend(other.constants);
        self.backslash = self.backslash.take().or(other.backslash);
    }
}

impl Template {
    /// As a server prepares it.
    pub fn with_marks(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Sql(sql) => sql.clone(),
            Piece::Value(_) => "?".into(),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// The parameters in their order.
    pub fn values(&self) -> impl Iterator<Item = Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(place) => Some(*place),
            Piece::Sql(_) => None,
        })
    }
}

/// Letters and digits: nothing that needs escaping.
pub const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Digits.
pub const DIGITS: &[u8] = b"0123456789";

/// What values are drawn from.
#[derive(Debug)]
pub enum Generator {
    /// Whole numbers of a distribution.
    Number(Sampler),
    /// Whole numbers one after the other, each given once.
    Sequence {
        /// The first.
        first: i64,
        /// How many numbers all clients of all runs have taken.
        count: AtomicU64,
    },
    /// A list.
    OneOf(OneOf),
    /// Random characters.
    Text {
        /// Shortest, in characters.
        least: u64,
        /// Longest.
        most: u64,
        /// The characters.
        alphabet: &'static [u8],
    },
    /// Characters of which each `#` is a random digit and each `@` a random letter.
    Pattern(Vec<u8>),
    /// A random UUID (version 4).
    Uuid,
}

/// Values with weights.
#[derive(Debug)]
pub struct OneOf {
    values: Vec<(Literal, String)>,
    /// Sums of the weights up to each.
    ends: Vec<u64>,
}

/// A value that was drawn; its generator knows how to read it. Kept, so that texts need no new memory.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    number: i64,
    /// In the list.
    place: usize,
    text: Vec<u8>,
}

impl OneOf {
    /// `None` if all weights are zero. All values but NULLs are numbers, or all are texts; whole
    /// numbers among others become such as they are, since a parameter keeps its type.
    pub fn new(choices: Vec<(Literal, u64)>) -> Option<Self> {
        let decimals = choices.iter().any(|(value, _)| matches!(value, Literal::Decimal(..)));
        let mut total = 0_u64;
        let mut one_of = Self { values: Vec::new(), ends: Vec::new() };
        for (value, weight) in choices {
            let sql = value.sql();
            let value = match value {
                Literal::Integer(number) if decimals => Literal::Decimal(sql.clone(), number as f64),
                value => value,
            };
            total = total.saturating_add(weight);
            one_of.values.push((value, sql));
            one_of.ends.push(total);
        }
        (total > 0).then_some(one_of)
    }

    fn draw(&self, random: &mut Random) -> usize {
        pick(&self.ends, random)
    }
}

/// A place in a list of which `ends` are the sums of the weights up to each.
#[inline]
pub fn pick(ends: &[u64], random: &mut Random) -> usize {
    let Some(total) = ends.last().filter(|_| ends.len() > 1) else { return 0 };
    let ticket = random.below(*total);
    ends.partition_point(|end| *end <= ticket)
}

impl Generator {
    /// Draws a value into `drawn`.
    pub fn draw(&self, random: &mut Random, drawn: &mut Drawn) {
        match self {
            Self::Number(sampler) => drawn.number = sampler.draw(random),
            Self::Sequence { first, count } => {
                drawn.number = first.wrapping_add_unsigned(count.fetch_add(1, Ordering::Relaxed));
            }
            Self::OneOf(one_of) => drawn.place = one_of.draw(random),
            Self::Text { least, most, alphabet } => {
                let length = if least == most { *least } else { least + random.below(most - least + 1) };
                fill(&mut drawn.text, length as usize, alphabet, random);
            }
            Self::Pattern(pattern) => fill_pattern(&mut drawn.text, pattern, random),
            Self::Uuid => uuid(&mut drawn.text, random),
        }
    }

    /// Whether its values are whole numbers, to which something may be added.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Sequence { .. })
    }

    /// Writes the value as SQL; `plus` is added to a number.
    pub fn write(&self, drawn: &Drawn, plus: i64, out: &mut Vec<u8>) {
        match self {
            Self::Number(_) | Self::Sequence { .. } => {
                out.extend_from_slice(itoa::Buffer::new().format(drawn.number.wrapping_add(plus)).as_bytes());
            }
            Self::OneOf(one_of) => out.extend_from_slice(one_of.values[drawn.place].1.as_bytes()),
            Self::Text { .. } | Self::Pattern(_) | Self::Uuid => {
                out.push(b'\'');
                out.extend_from_slice(&drawn.text);
                out.push(b'\'');
            }
        }
    }

    /// The value for a prepared statement; `plus` is added to a number.
    pub fn parameter<'a>(&'a self, drawn: &'a Drawn, plus: i64) -> Parameter<'a> {
        match self {
            Self::Number(_) | Self::Sequence { .. } => Parameter::Integer(drawn.number.wrapping_add(plus)),
            Self::OneOf(one_of) => one_of.values[drawn.place].0.parameter(),
            Self::Text { .. } | Self::Pattern(_) | Self::Uuid => Parameter::Text(&drawn.text),
        }
    }
}

fn fill(text: &mut Vec<u8>, length: usize, alphabet: &[u8], random: &mut Random) {
    const CHARACTERS_PER_DRAW: usize = 4;
    text.clear();
    text.reserve(length + CHARACTERS_PER_DRAW);
    while text.len() < length {
        let bits = random.bits();
        // 16 bits each: the most frequent character of 62 comes 0.1 % oftener than the rarest.
        for part in 0..CHARACTERS_PER_DRAW {
            let chance = (bits >> (16 * part)) as usize & 0xffff;
            text.push(alphabet[(chance * alphabet.len()) >> 16]);
        }
    }
    text.truncate(length);
}

/// Writes random characters into a pattern. One draw makes eleven: it is a fraction of 64 bits whose leading digits
/// come out by multiplication; 26^11 values are so few beside 2^64 that none is favoured measurably.
fn fill_pattern(text: &mut Vec<u8>, pattern: &[u8], random: &mut Random) {
    const CHARACTERS_PER_DRAW: usize = 11;
    text.clear();
    text.extend_from_slice(pattern);
    let (mut fraction, mut left) = (0_u64, 0);
    for character in text {
        let (first, count) = match *character {
            b'#' => (b'0', 10),
            b'@' => (b'a', 26),
            _ => continue,
        };
        if left == 0 {
            (fraction, left) = (random.bits(), CHARACTERS_PER_DRAW);
        }
        let scaled = u128::from(fraction) * count;
        *character = first + (scaled >> 64) as u8;
        fraction = scaled as u64;
        left -= 1;
    }
}

/// RFC 9562, version 4.
fn uuid(text: &mut Vec<u8>, random: &mut Random) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let high = random.bits() & !0xf000 | 0x4000;
    let low = random.bits() & !(0b11 << 62) | (0b10 << 62);
    let all = u128::from(high) << 64 | u128::from(low);
    text.clear();
    for digit in 0..32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            text.push(b'-');
        }
        text.push(HEX[(all >> (4 * (31 - digit))) as usize & 0xf]);
    }
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or exponent, as written.
    Decimal(String, f64),
    /// A string.
    Text(String),
}

impl Literal {
    /// A number as written in a script or on a command line.
    pub fn number(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Integer);
        }
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
        Some(Self::Decimal(text.into(), value))
    }

    /// As SQL has it. Without a backslash in it this fits every sql_mode.
    pub fn sql(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Integer(value) => value.to_string(),
            Self::Decimal(text, _) => text.clone(),
            Self::Text(text) => quoted(text),
        }
    }

    /// As a value of a prepared statement.
    pub fn parameter(&self) -> Parameter<'_> {
        match self {
            Self::Null => Parameter::Null,
            Self::Integer(value) => Parameter::Integer(*value),
            Self::Decimal(_, value) => Parameter::Double(*value),
            Self::Text(text) => Parameter::Text(text.as_bytes()),
        }
    }
}

/// A string as SQL has it where backslashes escape.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''").replace('\0', "\\0"))
}

/// The content of a quoted string of SQL, where backslashes escape.
pub fn unquoted(sql: &str) -> String {
    let quote = sql.chars().next().unwrap_or('\'');
    let inner = sql.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)).unwrap_or(sql);
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\' || c == quote) {
            ('\\', _) => match characters.next() {
                Some('0') => text.push('\0'),
                Some('b') => text.push('\u{8}'),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('Z') => text.push('\u{1a}'),
                // Only LIKE reads these, and there the backslash belongs to them.
                Some(wildcard @ ('%' | '_')) => text.extend(['\\', wildcard]),
                Some(other) => text.push(other),
                None => {}
            },
            // One of two quotes.
            (quote, true) => {
                characters.next();
                text.push(quote);
            }
            (other, false) => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distribution::Distribution;

    fn sql(generator: &Generator, random: &mut Random) -> String {
        let (mut drawn, mut out) = (Drawn::default(), Vec::new());
        generator.draw(random, &mut drawn);
        generator.write(&drawn, 0, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let generator = Generator::Number(Sampler::new(Distribution::ZIPFIAN, -3, 3));
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let value: i64 = sql(&generator, &mut random).parse().unwrap();
            assert!((-3..=3).contains(&value));
        }
    }

    #[test]
    fn a_sequence_gives_each_number_once() {
        let generator = Generator::Sequence { first: 7, count: AtomicU64::new(0) };
        let random = &mut Random::new(1);
        assert_eq!([sql(&generator, random), sql(&generator, random)], ["7", "8"]);
    }

    #[test]
    fn a_list_comes_out_by_weight() {
        let text = |text: &str| Literal::Text(text.into());
        let choices = vec![(text("a'b"), 7), (Literal::Null, 0), (text("c"), 3)];
        let generator = Generator::OneOf(OneOf::new(choices).unwrap());
        let mut random = Random::new(1);
        let drawn: Vec<String> = (0..10_000).map(|_| sql(&generator, &mut random)).collect();
        let count = |value: &str| drawn.iter().filter(|drawn| *drawn == value).count();
        assert!((6800..7200).contains(&count("'a''b'")));
        assert_eq!(count("NULL"), 0);
        assert_eq!(count("'a''b'") + count("'c'"), 10_000);
        assert!(OneOf::new(vec![(Literal::Null, 0)]).is_none());
    }

    #[test]
    fn a_list_of_numbers_keeps_one_type() {
        let choices = vec![(Literal::Integer(2), 1), (Literal::Decimal("2.5".into(), 2.5), 0)];
        let generator = Generator::OneOf(OneOf::new(choices).unwrap());
        assert_eq!(generator.parameter(&Drawn::default(), 0), Parameter::Double(2.0));
        assert_eq!(sql(&generator, &mut Random::new(1)), "2");
    }

    #[test]
    fn texts_have_their_length_and_alphabet() {
        let mut random = Random::new(1);
        let generator = Generator::Text { least: 3, most: 5, alphabet: DIGITS };
        let lengths: Vec<usize> = (0..100).map(|_| sql(&generator, &mut random).len() - 2).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&3), Some(&5)));
        let text = sql(&Generator::Text { least: 1001, most: 1001, alphabet: LETTERS }, &mut random);
        assert_eq!(text.len(), 1003);
        assert!(LETTERS.iter().all(|letter| text.as_bytes().contains(letter)));
    }

    #[test]
    fn a_pattern_keeps_its_other_characters() {
        let mut random = Random::new(1);
        let generator = Generator::Pattern(b"##-@@-####x".to_vec());
        let drawn: Vec<String> = (0..1000).map(|_| sql(&generator, &mut random)).collect();
        for text in &drawn {
            let text = text.trim_matches('\'').as_bytes();
            assert_eq!((text.len(), text[2], text[5], text[10]), (11, b'-', b'-', b'x'));
            assert!(text[..2].iter().chain(&text[6..10]).all(u8::is_ascii_digit));
            assert!(text[3..5].iter().all(u8::is_ascii_lowercase));
        }
        for digit in '0'..='9' {
            let share = drawn.iter().flat_map(|text| text.chars()).filter(|c| *c == digit).count();
            assert!((450..750).contains(&share), "{digit}: {share} of 6000");
        }
    }

    #[test]
    fn uuids_are_random_ones() {
        let mut random = Random::new(1);
        let (a, b) = (sql(&Generator::Uuid, &mut random), sql(&Generator::Uuid, &mut random));
        assert_ne!(a, b);
        for text in [a, b] {
            assert_eq!(text.len(), 38);
            assert_eq!(text.match_indices('-').map(|(at, _)| at - 1).collect::<Vec<_>>(), [8, 13, 18, 23]);
            assert_eq!(&text[15..16], "4");
            assert!("89ab".contains(&text[20..21]));
        }
    }

    #[test]
    fn numbers_are_whole_or_not() {
        assert_eq!(Literal::number("-9223372036854775808"), Some(Literal::Integer(i64::MIN)));
        assert_eq!(Literal::number("007"), Some(Literal::Integer(7)));
        assert_eq!(Literal::number("1.50").unwrap().sql(), "1.50");
        assert_eq!(Literal::number("-.5").unwrap().parameter(), Parameter::Double(-0.5));
        for wrong in ["", "-", "x", "0x1F", "9223372036854775808", "nan", "inf", "1e999", "--1", "1 "] {
            assert_eq!(Literal::number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn strings_are_escaped_as_mysql_does() {
        assert_eq!(unquoted(r"'it''s\n\\ \'a\' \% \q'"), "it's\n\\ 'a' \\% q");
        assert_eq!(unquoted(r#""say ""hi"" it's""#), r#"say "hi" it's"#);
        assert_eq!(quoted("it's \\ \0"), r"'it''s \\ \0'");
    }

    proptest! {
        #[test]
        fn a_string_survives_quoting(text in "['\"\\\\%_a\u{0}é]{0,12}|.{0,20}") {
            // A backslash before a wildcard stays one, whether it was written once or twice.
            prop_assume!(!text.contains("\\%") && !text.contains("\\_"));
            prop_assert_eq!(unquoted(&quoted(&text)), text);
        }
    }
}
