//! The verb `smack`: Super-Smack's INSERT, SELECT, UPDATE and DELETE by primary key over rows of one size.
//!
//! Rows have keys by number, and contents that compress as far as the flags say. Which keys were drawn for DELETE is a
//! bit each, shared by all threads.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use dbdyno_common::random::Random;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

use crate::distribution::{Distribution, FLAGS as RANDOM, Sampler};
use crate::error::Error;
use crate::flags::{Flag, joined};
use crate::names::put_hex;
use crate::protocol::packet::{Parameter, RequestEncoder};
use crate::protocol::session::Session;
use crate::statements::{After, Kind, Next, Part, Statement, Statements};
use crate::table_options;
use crate::tables::OwnTable;
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

const ABOUT: &str = "\
Super-Smack's statements by primary key, over rows of one size. LOAD is insert, select, update, delete or mixed: UPDATE
and SELECT in turn, as Super-Smack's update-select. Every statement is an event and commits by itself.

The keys of prepared rows are the numbers 1 to --rows, or with --key=char names that are made of them: 12 letters and the
number in base 36. SELECT, UPDATE and DELETE draw theirs by --rand-type.

INSERT adds one row with a new key: the next number after all that there are, in ascending order over all clients; with
--key=char numbers go on from the server's clock in microseconds, as its names cannot be looked through quickly, and the
names scatter over the whole index. UPDATE writes all of the row anew, SELECT reads all of it.

DELETE draws with replacement: each statement counts, also one that finds its row gone. Those whose key was drawn before
in this invocation are counted and timed separately, as delete_gone; they show how much of a long run did no work.

A row is its key and random bytes, of which --compressible percent are one byte repeated. At 50 a row shrinks more than
English prose does with lz4, and less than with gzip.

Before a run, up to 100 keys from 1 to --rows are looked up, so that a load on other rows, or after too many DELETEs, is
refused; the rest of the table is not read.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "smack",
    about: ABOUT,
    flags: FLAGS,
    loads: Load::NAMES,
    word: None,
    has_phase_flag: false,
    workload: make,
    own: None,
};

fn make(values: &Values<'_>, load: &str) -> Result<Box<dyn Stepwise>, Error> {
    Ok(Box::new(Smack::new(Options::read(values, load)?)))
}

/// The load with its options.
#[derive(Debug)]
struct Smack {
    options: Options,
    /// Number of the next new key; 0 before [`Workload::check`].
    next: AtomicI64,
    /// Keys that were drawn for DELETE.
    gone: OnceLock<DeletedKeys>,
    /// Runs before this one, once [`Workload::check`] counted it.
    runs: AtomicU64,
}

impl Smack {
    fn new(options: Options) -> Self {
        Self { options, next: AtomicI64::new(0), gone: OnceLock::new(), runs: AtomicU64::new(u64::MAX) }
    }

    fn columns(&self) -> [String; 2] {
        [self.options.key.column().to_owned(), format!("data varbinary({})", self.options.content_size())]
    }

    /// Looks some keys up, evenly spread over all but those that this invocation deleted.
    fn check_keys(&self, session: &mut Session) -> Result<(), Error> {
        const SAMPLE: i64 = 100;
        let options = &self.options;
        let spread = |step| (options.rows - 1) * step / (SAMPLE - 1) + 1;
        let mut numbers: BTreeSet<i64> = (0..SAMPLE).map(spread).collect();
        if let Some(gone) = self.gone.get() {
            numbers.retain(|number| !gone.has(*number));
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = numbers.iter().map(|number| options.key_literal(*number)).collect();
        let table = options.table.qualified();
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({})", keys.join(","));
        let count: usize = number(session, &sql)?;
        if count < keys.len() {
            return Err(options.table.unfit(&format!(
                "lacks {} of {} keys looked up between 1 and --rows={}",
                keys.len() - count,
                keys.len(),
                options.rows
            )));
        }
        Ok(())
    }

    /// Finds the first number after all keys there are.
    fn find_next(&self, session: &mut Session) -> Result<(), Error> {
        let last = match self.options.key {
            Key::Integer => format!("SELECT COALESCE(MAX(id), 0) FROM {}", self.options.table.qualified()),
            Key::Char => "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)".into(),
        };
        let last = number::<i64>(session, &last)?.max(self.options.rows);
        // A run before in this invocation may have taken more.
        self.next.fetch_max(last + 1, Ordering::Relaxed);
        Ok(())
    }
}

/// The one number that `sql` asks for.
fn number<T: FromStr>(session: &mut Session, sql: &str) -> Result<T, Error> {
    let number = session.value(sql)?;
    number.ok_or_else(|| Error::Failed(format!("the server gave no number for {sql}")))
}

impl Workload for Smack {
    fn load(&self) -> &str {
        self.options.load.into()
    }

    fn schema(&self) -> &str {
        &self.options.table.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        self.options.load.kinds().iter().map(|name| Kind::query(name)).collect()
    }

    fn prepared(&self) -> Vec<String> {
        let queries = if self.options.prepared { self.options.load.queries() } else { &[] };
        queries.iter().map(|query| query.with_parameters().to_owned()).collect()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        if self.options.load == Load::Insert && self.next.load(Ordering::Relaxed) == 0 {
            return Err(Error::Failed("the first new key is not known: the table was not looked at".into()));
        }
        if self.options.load != Load::Delete {
            return Ok(Box::new(Smacker::new(&self.options, &self.next, None, portion)));
        }
        let gone = self.gone.get_or_init(|| DeletedKeys::new(self.options.rows));
        // A later run with the same seed would draw nothing but what is gone.
        let seed = portion.seed.wrapping_add(self.runs.load(Ordering::Relaxed));
        Ok(Box::new(Smacker::new(&self.options, &self.next, Some(gone), Portion { seed, ..portion })))
    }
}

impl Stepwise for Smack {
    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        let options = &self.options;
        let data = format!("data VARBINARY({}) NOT NULL", options.content_size());
        options.table.make(session, &format!("{}, {data}", options.key.definition()), begun)?;
        let mut content = options.content();
        let mut random = Random::new(options.seed);
        let mut number = 0;
        // Over one connection: rows lie in the order of their numbers, on every server and at every speed.
        options.table.fill(session, "id, data", options.rows as u64, |sql| {
            number += 1;
            sql.push('(');
            sql.push_str(&options.key_literal(number));
            sql.push(',');
            put_hex(content.draw(&mut random), sql);
            sql.push(')');
        })
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let columns = self.options.table.check(session, &self.columns())?;
        match self.options.load {
            Load::Insert => self.find_next(session)?,
            _ => self.check_keys(session)?,
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(columns)
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        self.options.table.drop(session)
    }
}

/// Name of the table.
const TABLE: &str = "smack";

/// The server allows rows of 65,535 bytes, what it notes about them included.
const ROW_SIZES: RangeInclusive<usize> = 32..=65_000;

/// Every row takes a bit while DELETEs are counted.
const ROWS_MAX: i64 = 10_000_000_000;

/// The flags.
const FLAGS: &[Flag] = &joined::<{ OWN.len() + RANDOM.len() }>(&[OWN, RANDOM]);

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
struct Options {
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
enum Load {
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
enum Query {
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
enum Key {
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
struct Content {
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

/// Follows those of the load's queries; see [`Load::kinds`].
const DELETE_GONE: usize = 1;

/// A client.
#[derive(Debug)]
struct Cursor {
    random: Random,
    /// Which of the load's queries comes next.
    turn: usize,
    /// The key that the statement in flight is the first to delete.
    deletes: Option<i64>,
}

/// The clients of one thread.
#[derive(Debug)]
struct Smacker<'a> {
    options: &'a Options,
    /// Number of the next new key, for all threads.
    next: &'a AtomicI64,
    /// For DELETEs only.
    gone: Option<&'a DeletedKeys>,
    clients: Vec<Cursor>,
    key: Vec<u8>,
    content: Content,
}

impl<'a> Smacker<'a> {
    /// Clients that take new keys from `next`.
    pub fn new(options: &'a Options, next: &'a AtomicI64, gone: Option<&'a DeletedKeys>, portion: Portion) -> Self {
        let clients = portion.generators().map(|random| Cursor { random, turn: 0, deletes: None }).collect();
        Self { options, next, gone, clients, key: Vec::new(), content: options.content() }
    }
}

impl Statements for Smacker<'_> {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let client = &mut self.clients[client];
        let options = self.options;
        let queries = options.load.queries();
        let turn = client.turn;
        client.turn = (turn + 1) % queries.len();
        let query = queries[turn];
        let number = match query {
            Query::Insert => self.next.fetch_add(1, Ordering::Relaxed),
            _ => options.sampler.draw(&mut client.random),
        };
        let content = match query {
            Query::Insert | Query::Update => self.content.draw(&mut client.random),
            Query::Select | Query::Delete => b"",
        };
        self.key.clear();
        if options.prepared {
            let key = match options.key {
                Key::Integer => Parameter::Integer(number),
                Key::Char => {
                    options.key.write(number, false, &mut self.key);
                    Parameter::Text(&self.key)
                }
            };
            match query {
                Query::Insert => encoder.execute(turn, &[key, Parameter::Text(content)]),
                Query::Update => encoder.execute(turn, &[Parameter::Text(content), key]),
                Query::Select | Query::Delete => encoder.execute(turn, &[key]),
            }
        } else {
            options.key.write(number, true, &mut self.key);
            encoder.query(&query.parts(&self.key, content));
        }
        let again = self.gone.is_some_and(|gone| gone.mark(number));
        client.deletes = self.gone.and((!again).then_some(number));
        let kind = if again { DELETE_GONE } else { turn };
        Next::Send(Statement { kind: kind as u16, part: Part::Last, rows: u32::from(query == Query::Insert), phase: 0 })
    }

    fn refused(&mut self, client: usize, _code: u16) -> After {
        if let (Some(gone), Some(key)) = (self.gone, self.clients[client].deletes) {
            gone.unmark(key);
        }
        After::GoOn
    }
}

/// The keys 1 to some last one.
#[derive(Debug)]
struct DeletedKeys(Vec<AtomicU64>);

impl DeletedKeys {
    /// None gone of the keys up to `last`.
    pub fn new(last: i64) -> Self {
        let words = last as usize / 64 + 1;
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Marks `key`; whether it was marked before.
    #[inline]
    pub fn mark(&self, key: i64) -> bool {
        let (word, bit) = self.place(key);
        word.fetch_or(bit, Ordering::Relaxed) & bit != 0
    }

    /// Whether `key` is marked.
    pub fn has(&self, key: i64) -> bool {
        let (word, bit) = self.place(key);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Takes the mark of `key` back.
    pub fn unmark(&self, key: i64) {
        let (word, bit) = self.place(key);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    fn place(&self, key: i64) -> (&AtomicU64, u64) {
        (&self.0[key as usize / 64], 1 << (key % 64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::packet::Prepared;

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
        let message = |name, value| read(&[(name, value)], "select").unwrap_err();
        assert!(message("row-size", "31").contains("--row-size=31: give 32 to 65000"));
        assert!(message("compressible", "101").contains("0 to 100"));
        assert!(message("rows", "0").contains("--rows=0"));
        assert!(message("rand-type", "zipf").contains("zipfian"));
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
            let same =
                first.iter().zip(&second).rev().take_while(|(left, right)| left == right && **left == b'.').count();
            assert!((1000 - same).abs_diff(expected) <= 2, "{percent}: {same}");
            let differ = first.iter().zip(&second).filter(|(left, right)| left != right).count();
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

    const PREPARED: usize = 2;

    fn options(load: &str, flags: &[(&'static str, &'static str)]) -> Options {
        Options::read(&Values::of(flags), load).unwrap()
    }

    fn portion(first: usize, clients: usize) -> Portion {
        Portion { first, clients, of: 8, seed: 1, warmup: false }
    }

    /// The next statement and its bytes behind the header.
    fn say(smacker: &mut Smacker<'_>, client: usize, parameters: u16) -> (Statement, Vec<u8>) {
        let mut out = Vec::new();
        let mut prepared = [Prepared { id: 9, parameters, bound: true }; PREPARED];
        match smacker.next(client, &mut RequestEncoder::new(&mut out, &mut prepared)) {
            Next::Send(statement) => (statement, out.split_off(4)),
            other => panic!("{other:?}"),
        }
    }

    fn text(smacker: &mut Smacker<'_>, client: usize) -> (Statement, String) {
        let (statement, bytes) = say(smacker, client, 0);
        assert_eq!(bytes[0], 3);
        (statement, String::from_utf8_lossy(&bytes[1..]).into_owned())
    }

    const TEXT: (&str, &str) = ("db-ps-mode", "disable");

    #[test]
    fn texts_have_their_values_in_place() {
        let next = AtomicI64::new(90_001);
        let small = [TEXT, ("row-size", "32"), ("compressible", "100")];
        let filler = ".".repeat(24);
        let insert = options("insert", &small);
        let (statement, sql) = text(&mut Smacker::new(&insert, &next, None, portion(0, 1)), 0);
        assert_eq!(sql, format!("INSERT INTO smack (id, data) VALUES (90001, _binary'{filler}')"));
        assert_eq!((statement.kind, statement.rows, statement.part), (0, 1, Part::Last));
        let flags = [TEXT, ("row-size", "32"), ("compressible", "100"), ("rows", "1")];
        let mixed = options("mixed", &flags);
        let mut smacker = Smacker::new(&mixed, &next, None, portion(0, 1));
        for _ in 0..2 {
            let (statement, sql) = text(&mut smacker, 0);
            assert_eq!((statement.kind, sql), (0, format!("UPDATE smack SET data = _binary'{filler}' WHERE id = 1")));
            let (statement, sql) = text(&mut smacker, 0);
            assert_eq!((statement.kind, sql), (1, "SELECT * FROM smack WHERE id = 1".into()));
            assert_eq!(statement.rows, 0);
        }
        let named = options("delete", &[TEXT, ("key", "char"), ("rows", "1")]);
        let (_, sql) = text(&mut Smacker::new(&named, &next, None, portion(0, 1)), 0);
        assert_eq!(sql, format!("DELETE FROM smack WHERE id = {}", named.key_literal(1)));
    }

    #[test]
    fn prepared_ones_carry_the_values_alone() {
        let next = AtomicI64::new(5);
        let insert = options("insert", &[("row-size", "32"), ("compressible", "100")]);
        let (_, bytes) = say(&mut Smacker::new(&insert, &next, None, portion(0, 1)), 0, 2);
        assert!(bytes.ends_with(&[&5_i64.to_le_bytes()[..], &[24], &[b'.'; 24]].concat()));
        let update = options("update", &[("row-size", "64"), ("compressible", "100"), ("rows", "1"), ("key", "char")]);
        let (_, bytes) = say(&mut Smacker::new(&update, &next, None, portion(0, 1)), 0, 2);
        let name = update.key_literal(1).replace('\'', "");
        assert_eq!(bytes[0], 0x17);
        assert!(bytes.ends_with(&[&[39][..], &[b'.'; 39], &[name.len() as u8], name.as_bytes()].concat()));
    }

    #[test]
    fn new_keys_ascend_and_no_two_clients_share_one() {
        let insert = options("insert", &[TEXT, ("row-size", "32")]);
        let next = AtomicI64::new(90_001);
        let mut threads = [portion(0, 2), portion(2, 3)].map(|portion| Smacker::new(&insert, &next, None, portion));
        let key = |sql: String| sql.split(['(', ',']).nth(3).unwrap().parse::<i64>().unwrap();
        let mut keys = Vec::new();
        for turn in 0..300 {
            let thread = turn % 2;
            keys.push(key(text(&mut threads[thread], turn % (2 + thread)).1));
        }
        assert_eq!(keys, (90_001..90_301).collect::<Vec<_>>());
    }

    fn draws(smacker: &mut Smacker<'_>, client: usize, count: usize) -> Vec<u64> {
        (0..count).map(|_| text(smacker, client).1.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn keys_are_drawn_from_all_rows_by_the_distribution_asked_for() {
        let next = AtomicI64::new(0);
        let uniform = options("select", &[TEXT, ("rows", "100")]);
        let mut counts = [0; 101];
        let mut smacker = Smacker::new(&uniform, &next, None, portion(0, 1));
        for key in draws(&mut smacker, 0, 20_000) {
            counts[key as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (120..290).contains(count)), "{counts:?}");
        let zipfian = options("select", &[TEXT, ("rows", "100"), ("rand-type", "zipfian")]);
        let keys = draws(&mut Smacker::new(&zipfian, &next, None, portion(0, 1)), 0, 20_000);
        assert!(keys.iter().all(|key| (1..=100).contains(key)));
        assert!(keys.iter().filter(|key| **key == 1).count() > 1500);
    }

    #[test]
    fn a_client_says_the_same_in_whatever_thread_it_is() {
        let next = AtomicI64::new(0);
        let select = options("select", &[TEXT]);
        let all: Vec<_> = {
            let mut smacker = Smacker::new(&select, &next, None, portion(0, 5));
            (0..5).map(|client| draws(&mut smacker, client, 20)).collect()
        };
        let second = draws(&mut Smacker::new(&select, &next, None, portion(3, 2)), 0, 20);
        assert_eq!(second, all[3]);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 5);
    }

    #[test]
    fn deletes_in_vain_are_told_apart() {
        let next = AtomicI64::new(0);
        let delete = options("delete", &[TEXT, ("rows", "50")]);
        let gone = DeletedKeys::new(50);
        let mut smacker = Smacker::new(&delete, &next, Some(&gone), portion(0, 1));
        let mut seen = BTreeSet::new();
        for _ in 0..1000 {
            let (statement, sql) = text(&mut smacker, 0);
            assert_eq!(statement.kind, u16::from(!seen.insert(sql)));
        }
        assert_eq!(seen.len(), 50);
    }

    #[test]
    fn a_refused_delete_leaves_its_key() {
        let next = AtomicI64::new(0);
        let delete = options("delete", &[TEXT, ("rows", "1")]);
        let gone = DeletedKeys::new(1);
        let mut smacker = Smacker::new(&delete, &next, Some(&gone), portion(0, 1));
        let mut kind = || {
            let (statement, _) = text(&mut smacker, 0);
            let after = smacker.refused(0, 1213);
            (statement.kind, after)
        };
        assert_eq!([kind(), kind()], [(0, After::GoOn); 2]);
        assert_eq!(text(&mut smacker, 0).0.kind, 0);
        assert_eq!(text(&mut smacker, 0).0.kind, 1);
        smacker.refused(0, 1213);
        assert_eq!(text(&mut smacker, 0).0.kind, 1);
    }

    #[test]
    fn each_key_has_a_mark_of_its_own() {
        let gone = DeletedKeys::new(128);
        assert!((1..=128).all(|key| !gone.mark(key)));
        assert!((1..=128).all(|key| gone.has(key) && gone.mark(key)));
        gone.unmark(64);
        assert!(!gone.has(64));
        assert!(!gone.mark(64) && gone.mark(63) && gone.mark(65));
    }
}
