//! The flags of `smack` as one checked value, the loads with their statements, and the rows of the table: keys by number, and
//! contents that compress as far as the flags say.

use std::ops::RangeInclusive;

use dbdyno_common::random::Random;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

use crate::distribution::{Distribution, FLAGS as RANDOM, Sampler};
use crate::error::Error;
use crate::flags::{Flag, joined};
use crate::table_options;
use crate::tables::OwnTable;
use crate::values::Values;

/// Name of the table.
const TABLE: &str = "smack";

/// The server allows rows of 65,535 bytes, what it notes about them included.
const ROW_SIZES: RangeInclusive<usize> = 32..=65_000;

/// Every row takes a bit while DELETEs are counted.
const ROWS_MAX: i64 = 10_000_000_000;

/// The flags.
pub const FLAGS: &[Flag] = &joined::<{ OWN.len() + RANDOM.len() }>(&[OWN, RANDOM]);

const OWN: &[Flag] = &[
    Flag::value("rows", "rows in the table"),
    Flag::value("table-size", "").same_as("rows"),
    Flag::value("row-size", "bytes of a row, its key included: 32 to 65000"),
    Flag::value("key", "primary key: integer is a BIGINT, char a CHAR(25) as Super-Smack's user names"),
    Flag::value("compressible", "percent of a row's content that compresses away"),
    Flag::value("db-ps-mode", "auto: prepared statements; disable: text"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("schema", "schema of the table"),
];

/// All options.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Options {
    pub load: Load,
    pub table: OwnTable,
    pub rows: i64,
    pub row_size: usize,
    pub key: Key,
    pub compressible: u8,
    /// Of the keys 1 to `rows`.
    pub sampler: Sampler,
    /// Prepared statements are used.
    pub prepared: bool,
    /// Of the rows that prepare makes.
    pub seed: u64,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range.
    pub fn read(values: &Values<'_>, load: &str) -> Result<Self, Error> {
        let unknown = |_| Error::Usage(format!("smack has no load {load:?}; loads: {}", Load::NAMES.join(", ")));
        let load = load.parse().map_err(unknown)?;
        let rows = values.within("rows", 90_000, 1..=ROWS_MAX)?;
        let distribution = Distribution::parse(values, Distribution::Uniform)?;
        Ok(Self {
            load,
            table: OwnTable::read(values, "smack", TABLE, "dbdyno_smack")?,
            rows,
            row_size: values.within("row-size", 1024, ROW_SIZES)?,
            key: values.choice("key", &[("integer", Key::Integer), ("char", Key::Char)], Key::Integer)?,
            compressible: values.within("compressible", 50, 0..=100)?,
            sampler: Sampler::new(distribution, 1, rows),
            prepared: values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?,
            seed: values.number("seed", 1)?,
        })
    }

    /// Bytes of a row besides its key.
    pub fn content_size(&self) -> usize {
        self.row_size - self.key.bytes()
    }

    /// Content of rows.
    pub fn content(&self) -> Content {
        Content::new(self.content_size(), self.compressible)
    }

    /// The key with `number` as SQL takes it.
    pub fn key_literal(&self, number: i64) -> String {
        let mut key = Vec::new();
        self.key.write(number, true, &mut key);
        String::from_utf8_lossy(&key).into_owned()
    }
}

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Load {
    /// INSERTs of new keys.
    Insert,
    /// SELECTs.
    Select,
    /// UPDATEs.
    Update,
    /// DELETEs.
    Delete,
    /// UPDATE and SELECT in turn.
    Mixed,
}

/// One statement. The table is that of [`self`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Of a new row.
    Insert,
    /// Of all of a row.
    Select,
    /// Of all of a row but its key.
    Update,
    /// Of a row, there or not.
    Delete,
}

impl Load {
    /// Their names.
    pub const NAMES: &'static [&'static str] = <Self as VariantNames>::VARIANTS;

    /// Its statements: prepared ones are numbered in this order, and a client says them in turn.
    pub fn queries(self) -> &'static [Query] {
        match self {
            Self::Insert => &[Query::Insert],
            Self::Select => &[Query::Select],
            Self::Update => &[Query::Update],
            Self::Delete => &[Query::Delete],
            Self::Mixed => &[Query::Update, Query::Select],
        }
    }

    /// Kinds that are counted apart: one for each of [`Self::queries`], then that of a DELETE in vain.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Insert => &["insert"],
            Self::Select => &["select"],
            Self::Update => &["update"],
            Self::Delete => &["delete", "delete_gone"],
            Self::Mixed => &["update", "select"],
        }
    }
}

impl Query {
    /// As it is prepared.
    pub fn with_parameters(self) -> &'static str {
        match self {
            Self::Insert => "INSERT INTO smack (id, data) VALUES (?, ?)",
            Self::Select => "SELECT * FROM smack WHERE id = ?",
            Self::Update => "UPDATE smack SET data = ? WHERE id = ?",
            Self::Delete => "DELETE FROM smack WHERE id = ?",
        }
    }

    /// As a text with these literals; `content` is for between quotes.
    pub fn parts<'a>(self, key: &'a [u8], content: &'a [u8]) -> [&'a [u8]; 5] {
        match self {
            Self::Insert => [b"INSERT INTO smack (id, data) VALUES (", key, b", _binary'", content, b"')"],
            Self::Select => [b"SELECT * FROM smack WHERE id = ", key, b"", b"", b""],
            Self::Update => [b"UPDATE smack SET data = _binary'", content, b"' WHERE id = ", key, b""],
            Self::Delete => [b"DELETE FROM smack WHERE id = ", key, b"", b"", b""],
        }
    }
}

/// Letters in front of the number in a key of characters.
const LETTERS: usize = 12;

/// Type of the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// BIGINT: the number itself.
    Integer,
    /// CHAR(25): letters that depend on the number, then the number, as Super-Smack's gen-data makes user names.
    /// Neighbouring numbers are far apart in the index.
    Char,
}

impl Key {
    /// Bytes of a row that it takes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Integer => 8,
            Self::Char => 25,
        }
    }

    /// Its column as SQL defines it. The server's own character set might take more than a byte for a character.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Integer => "id BIGINT NOT NULL PRIMARY KEY",
            Self::Char => "id CHAR(25) CHARACTER SET latin1 NOT NULL PRIMARY KEY",
        }
    }

    /// Its column as the server reports it.
    pub fn column(self) -> &'static str {
        match self {
            Self::Integer => "id bigint",
            Self::Char => "id char(25)",
        }
    }

    /// Replaces `out` by the key with `number`; as a literal if it is to stand in a text.
    #[inline]
    pub fn write(self, number: i64, as_literal: bool, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Self::Integer => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            Self::Char if as_literal => {
                out.push(b'\'');
                put_name(number, out);
                out.push(b'\'');
            }
            Self::Char => put_name(number, out),
        }
    }
}

/// Appends `value` in base 36, with lower-case letters.
#[inline]
fn put_base36(mut value: u64, out: &mut Vec<u8>) {
    const LENGTH_MAX: usize = 13;
    let (mut digits, mut at) = ([b'0'; LENGTH_MAX], LENGTH_MAX);
    while value > 0 || at == LENGTH_MAX {
        at -= 1;
        digits[at] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
    out.extend_from_slice(&digits[at..]);
}

#[inline]
fn put_name(number: i64, out: &mut Vec<u8>) {
    let mut fraction = Random::new(number as u64).bits();
    for _ in 0..LETTERS {
        let scaled = u128::from(fraction) * 26;
        out.push(b'a' + (scaled >> 64) as u8);
        fraction = scaled as u64;
    }
    put_base36(number as u64, out);
}

/// What a row holds besides its key.
#[derive(Debug, Clone)]
pub struct Content {
    bytes: Vec<u8>,
    /// Bytes from the front that are random.
    random: usize,
}

impl Content {
    /// Appends `length` bytes. `compressible` percent of them are one byte repeated, which every compressor removes.
    pub fn new(length: usize, compressible: u8) -> Self {
        let random = length - length * usize::from(compressible) / 100;
        Self { bytes: vec![b'.'; length], random }
    }

    /// Draws it anew. It can stand between quotes as it is.
    #[inline]
    pub fn draw(&mut self, random: &mut Random) -> &[u8] {
        let fresh = &mut self.bytes[..self.random];
        // Whole words first: pieces of a length known ahead are written three times as fast.
        let mut pieces = fresh.chunks_exact_mut(8);
        for piece in &mut pieces {
            piece.copy_from_slice(&random.bits().to_le_bytes());
        }
        let rest = pieces.into_remainder();
        rest.copy_from_slice(&random.bits().to_le_bytes()[..rest.len()]);
        for byte in fresh {
            let special = matches!(byte, 0 | b'\'' | b'\\');
            *byte ^= u8::from(special) << 7;
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn read(flags: &[(&'static str, &'static str)], load: &str) -> Result<Options, String> {
        Options::read(&Values::of(flags), load).map_err(|error| error.to_string())
    }

    #[test]
    fn a_row_has_the_size_asked_for_whatever_its_key() {
        for (key, rest) in [("integer", 1016), ("char", 999)] {
            assert_eq!(read(&[("key", key)], "insert").unwrap().content_size(), rest);
        }
    }

    #[test]
    fn values_out_of_range_are_named_with_the_range() {
        let said = |name, value| read(&[(name, value)], "select").unwrap_err();
        assert!(said("row-size", "31").contains("--row-size=31: give 32 to 65000"));
        assert!(said("compressible", "101").contains("0 to 100"));
        assert!(said("rows", "0").contains("--rows=0"));
        assert!(said("rand-type", "zipf").contains("zipfian"));
        assert!(read(&[], "selekt").unwrap_err().contains("insert, select"));
    }

    #[test]
    fn names_and_kinds_fit_the_loads() {
        for (load, name) in <Load as VariantArray>::VARIANTS.iter().zip(<Load as VariantNames>::VARIANTS) {
            assert_eq!(<&str>::from(load), *name);
            assert!(load.kinds().len() >= load.queries().len());
        }
    }

    #[test]
    fn a_text_is_the_prepared_statement_with_its_values() {
        for query in [Query::Insert, Query::Select, Query::Update, Query::Delete] {
            let text = String::from_utf8(query.parts(b"?", b"?").concat()).unwrap();
            assert_eq!(text.replace("_binary'?'", "?"), query.with_parameters());
        }
    }

    fn key(key: Key, number: i64, as_literal: bool) -> String {
        let mut out = b"before".to_vec();
        key.write(number, as_literal, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_in_base_36() {
        for (value, text) in [(0, "0"), (35, "z"), (36, "10"), (u64::MAX, "3w5e11264sgsf")] {
            let mut out = b"x".to_vec();
            put_base36(value, &mut out);
            assert_eq!(out, format!("x{text}").into_bytes());
        }
    }

    #[test]
    fn keys_depend_on_their_number_alone() {
        assert_eq!(key(Key::Integer, 42, true), "42");
        assert_eq!(key(Key::Char, 42, false), key(Key::Char, 42, false));
        assert_eq!(key(Key::Char, 42, true), format!("'{}'", key(Key::Char, 42, false)));
        assert!(key(Key::Char, 42, false).ends_with("16"));
        assert_eq!(key(Key::Char, i64::MAX, false).len(), 25);
    }

    #[test]
    fn names_are_spread_over_the_whole_index() {
        let names: BTreeSet<String> = (1..=26_000).map(|number| key(Key::Char, number, false)).collect();
        assert_eq!(names.len(), 26_000);
        for place in [0, LETTERS - 1] {
            let mut letters = [0; 26];
            for name in &names {
                letters[usize::from(name.as_bytes()[place] - b'a')] += 1;
            }
            assert!(letters.iter().all(|count| (850..1150).contains(count)), "{letters:?}");
        }
    }

    #[test]
    fn content_is_random_as_far_as_asked() {
        for (percent, expected) in [(0, 1000), (50, 500), (33, 670), (100, 0)] {
            let mut content = Content::new(1000, percent);
            let mut random = Random::new(1);
            let first = content.draw(&mut random).to_vec();
            let second = content.draw(&mut random).to_vec();
            let same = first.iter().zip(&second).rev().take_while(|(one, other)| one == other && **one == b'.').count();
            assert!((1000 - same).abs_diff(expected) <= 2, "{percent}: {same}");
            let differ = first.iter().zip(&second).filter(|(one, other)| one != other).count();
            assert!(differ >= expected * 98 / 100, "{percent}: {differ}");
        }
    }

    #[test]
    fn all_bytes_but_three_are_used_alike() {
        let mut counts = [0; 256];
        let mut content = Content::new(253_000, 0);
        for byte in content.draw(&mut Random::new(5)) {
            counts[usize::from(*byte)] += 1;
        }
        for (byte, count) in counts.into_iter().enumerate() {
            match byte as u8 {
                0 | b'\'' | b'\\' => assert_eq!(count, 0),
                0x80 | 0xa7 | 0xdc => assert!((1700..2300).contains(&count), "{byte}: {count}"),
                _ => assert!((800..1200).contains(&count), "{byte}: {count}"),
            }
        }
    }

    proptest! {
        #[test]
        fn content_has_its_length(length in 0_usize..200, percent in 0_u8..=100, seed: u64) {
            let mut content = Content::new(length, percent);
            prop_assert_eq!(content.draw(&mut Random::new(seed)).len(), length);
        }
    }
}
