//! sysbench's tables: their SQL, and how they are made, checked and dropped on the server. No other table is touched.
//!
//! Their rows are as sysbench makes them, but fast: one thread writes gigabytes of INSERTs per second.

use std::collections::BTreeMap;

use dbdyno_common::random::Random;

use crate::dialect::DEFAULT_ENGINE;
use crate::distribution::{Distribution, Sampler};
use crate::error::Error;
use crate::names::{self, quoted};
use crate::protocol::session::Session;
use crate::table_options::TableOptions;
use crate::tables;
use crate::text::shown;
use crate::values::Values;

/// Most tables, and the greatest size of one: ids and their ranges stay within 64 bits.
const COUNT_MAX: u32 = 1_000_000;
const SIZE_MAX: i64 = 1 << 60;

/// Which tables there are and how they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// How many: sbtest1, sbtest2, ...
    pub count: u32,
    /// Rows in each.
    pub size: i64,
    /// The server makes ids.
    pub auto_inc: bool,
    /// The id has a secondary index instead of the primary key.
    pub secondary: bool,
    /// There is an index on `k`.
    pub create_secondary: bool,
    /// Storage engine, if one was asked for.
    pub engine: Option<String>,
    /// What else CREATE TABLE ends in.
    pub options: TableOptions,
}

/// A switch of sysbench: on, off, true, false, 1 or 0; alone it is on.
///
/// # Errors
/// Anything else.
pub fn switch(values: &Values<'_>, name: &str, default: bool) -> Result<bool, Error> {
    const WORDS: [(&str, bool); 6] =
        [("on", true), ("off", false), ("true", true), ("false", false), ("1", true), ("0", false)];
    let default = default || (values.has(name) && values.text(name).is_none());
    values.choice(name, &WORDS, default)
}

impl Tables {
    /// Reads the flags [`super::options::TABLES`].
    ///
    /// # Errors
    /// A value that is none or out of range.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        Ok(Self {
            count: values.within("tables", 1, 1..=COUNT_MAX)?,
            size: values.within("table-size", 10_000, 1..=SIZE_MAX)?,
            auto_inc: switch(values, "auto-inc", true)?,
            secondary: switch(values, "secondary", false)?,
            create_secondary: switch(values, "create-secondary", true)?,
            engine: names::engine(values)?,
            options: TableOptions::read(values)?,
        })
    }

    /// The engine that CREATE TABLE names.
    pub fn engine(&self) -> &str {
        self.engine.as_deref().unwrap_or(DEFAULT_ENGINE)
    }

    /// Numbers of the tables.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.count
    }

    /// Type of ids and keys: sysbench's own, unless there are more rows than it holds.
    fn integer(&self) -> &'static str {
        if self.size > i64::from(i32::MAX) { "BIGINT" } else { "INTEGER" }
    }

    /// CREATE TABLE.
    pub fn create(&self, number: u32) -> String {
        let integer = self.integer();
        let auto_inc = if self.auto_inc { " AUTO_INCREMENT" } else { "" };
        let key = if self.secondary { "KEY xid" } else { "PRIMARY KEY" };
        let (engine, options) = (self.engine(), self.options.to_string());
        let options = options.trim_start();
        format!(
            "CREATE TABLE sbtest{number}(\n  id {integer} NOT NULL{auto_inc},\n  k {integer} DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) \
             /*! ENGINE = {engine} */ {options}"
        )
    }

    /// A multi-row INSERT up to its first row.
    pub fn insert_head(&self, number: u32) -> String {
        let id = if self.auto_inc { "" } else { "id, " };
        format!("INSERT INTO sbtest{number}({id}k, c, pad) VALUES")
    }

    /// CREATE INDEX for after the rows; `None` if there is to be none.
    pub fn create_index(&self, number: u32) -> Option<String> {
        self.create_secondary.then(|| format!("CREATE INDEX k_{number} ON sbtest{number}(k)"))
    }
}

/// The tables of a load in their schema.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// Their schema.
    pub schema: &'a str,
    /// How they are made.
    pub tables: &'a Tables,
}

impl Stage<'_> {
    /// Goes into the schema.
    ///
    /// # Errors
    /// There is none; says how to get it.
    pub fn enter(self, session: &mut Session) -> Result<(), Error> {
        if !tables::schema_exists(session, self.schema)? {
            return Err(self.missing(&format!("there is no schema {}", self.schema)));
        }
        session.execute(&format!("USE {}", quoted(self.schema)))
    }

    /// Makes the schema if there is none, and goes into it.
    ///
    /// # Errors
    /// The server refuses.
    pub fn enter_or_make(self, session: &mut Session) -> Result<(), Error> {
        if !tables::schema_exists(session, self.schema)? {
            session.execute(&format!("CREATE SCHEMA {}", quoted(self.schema)))?;
        }
        self.enter(session)
    }

    /// Sees that none of the tables is there yet.
    ///
    /// # Errors
    /// One is.
    pub fn check_absent(self, session: &mut Session) -> Result<(), Error> {
        match self.list(session)?.first_key_value() {
            None => Ok(()),
            Some((number, _)) => Err(Error::Usage(format!(
                "the table {}.sbtest{number} exists: drop it with the same flags and `cleanup`",
                self.schema
            ))),
        }
    }

    /// Drops the tables that are there.
    ///
    /// # Errors
    /// One of them has other columns than sysbench's: then none is dropped.
    pub fn clear(self, session: &mut Session) -> Result<(), Error> {
        if !tables::schema_exists(session, self.schema)? {
            return Ok(());
        }
        session.execute(&format!("USE {}", quoted(self.schema)))?;
        let columns_by_number = self.list(session)?;
        for (number, columns) in &columns_by_number {
            self.check_columns(*number, columns)?;
        }
        for number in columns_by_number.keys() {
            session.execute(&format!("DROP TABLE sbtest{number}"))?;
        }
        Ok(())
    }

    /// Sees that all tables are there with sysbench's columns, and gives their engine as the server reports it.
    ///
    /// # Errors
    /// One is missing or different, or of another engine than was asked for.
    pub fn check(self, session: &mut Session) -> Result<Option<String>, Error> {
        self.enter(session)?;
        let columns_by_number = self.list(session)?;
        for number in self.tables.numbers() {
            match columns_by_number.get(&number) {
                None => return Err(self.missing(&format!("there is no table {}.sbtest{number}", self.schema))),
                Some(columns) => self.check_columns(number, columns)?,
            }
        }
        self.engine(session)
    }

    /// Sees by their greatest ids that the tables have about as many rows as asked for: at least nine tenths, as
    /// earlier loads may have deleted some.
    ///
    /// # Errors
    /// One has fewer.
    pub fn check_rows(self, session: &mut Session) -> Result<(), Error> {
        let size = self.tables.size;
        for number in self.tables.numbers() {
            let greatest: i64 = session.value(&format!("SELECT MAX(id) FROM sbtest{number}"))?.unwrap_or(0);
            if greatest < size - size / 10 {
                return Err(Error::Usage(format!(
                    "the ids of {}.sbtest{number} end at {greatest}: lower --table-size={size}, or make the tables anew \
                     with `cleanup` and `prepare`",
                    self.schema
                )));
            }
        }
        Ok(())
    }

    /// Rows of all tables together, counted one by one.
    ///
    /// # Errors
    /// The server refuses.
    pub fn count_rows(self, session: &mut Session) -> Result<u64, Error> {
        let mut total = 0;
        for number in self.tables.numbers() {
            total += session.value::<u64>(&format!("SELECT COUNT(*) FROM sbtest{number}"))?.unwrap_or(0);
        }
        Ok(total)
    }

    /// The engine that tables will have, as the server spells it.
    ///
    /// # Errors
    /// It has none of that name.
    pub fn offered_engine(self, session: &mut Session) -> Result<String, Error> {
        let name = self.tables.engine();
        let engine = session.value(&format!(
            "SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT') AND ENGINE = '{name}'"
        ))?;
        engine.ok_or_else(|| Error::Usage(format!("--engine={name}: this server does not have it")))
    }

    fn missing(self, what: &str) -> Error {
        let Tables { count, size, .. } = self.tables;
        Error::Usage(format!("{what}: prepare it first, with --tables={count} --table-size={size} and `prepare`"))
    }

    /// Columns of those of the tables that exist, by number: `id int`, `k int`, ...
    fn list(self, session: &mut Session) -> Result<BTreeMap<u32, Vec<String>>, Error> {
        let rows = session.query(&format!(
            "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = {} AND TABLE_NAME LIKE 'sbtest%' ORDER BY TABLE_NAME, ORDINAL_POSITION",
            names::text(self.schema)
        ))?;
        let mut columns_by_number: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for row in rows {
            let [Some(table), Some(column), Some(kind)] = row.as_slice() else { continue };
            let Some(number) = self.number_of(table) else { continue };
            columns_by_number.entry(number).or_default().push(format!("{column} {}", without_width(kind)));
        }
        Ok(columns_by_number)
    }

    /// The number of the table of that name, if it is one of ours.
    fn number_of(self, table: &str) -> Option<u32> {
        let digits = table.strip_prefix("sbtest").filter(|digits| !digits.starts_with(['0', '+']))?;
        digits.parse().ok().filter(|number| (1..=self.tables.count).contains(number))
    }

    fn check_columns(self, number: u32, columns: &[String]) -> Result<(), Error> {
        let columns = columns.join(", ");
        if columns.replace("bigint", "int") == "id int, k int, c char(120), pad char(60)" {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}.sbtest{number} is not one of sysbench's tables: it has the columns ({}); name another --schema",
            self.schema,
            shown(&columns)
        )))
    }

    fn engine(self, session: &mut Session) -> Result<Option<String>, Error> {
        let rows = session.query(&format!(
            "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME LIKE 'sbtest%'",
            names::text(self.schema)
        ))?;
        let mut engines: Vec<String> = Vec::new();
        for row in rows {
            if let [Some(table), Some(engine)] = row.as_slice()
                && self.number_of(table).is_some()
                && !engines.contains(engine)
            {
                engines.push(engine.clone());
            }
        }
        let engines = shown(&engines.join(", "));
        match &self.tables.engine {
            Some(engine) if !engine.eq_ignore_ascii_case(&engines) => {
                Err(Error::Failed(format!("the tables of {} are in {engines} instead of {engine}", self.schema)))
            }
            _ => Ok(Some(engines).filter(|engines| !engines.is_empty())),
        }
    }
}

/// `int(11)` as `int`: servers differ in what they show of it, and it means nothing.
fn without_width(kind: &str) -> &str {
    match kind.split_once('(') {
        Some((name @ ("int" | "bigint"), _)) => name,
        _ => kind,
    }
}

/// Bytes of a statement that fills a table, as sysbench's.
pub const BATCH_BYTES: usize = 512 << 10;

/// Least bytes of such a statement: a head and a row always fit.
pub const BATCH_BYTES_MIN: usize = 1 << 10;

/// Characters of the two texts of a row.
const C_LENGTH: usize = 119;
const PAD_LENGTH: usize = 59;

/// No row is longer: two integers of 20 characters, both texts, and what stands between.
const ROW_BYTES_MAX: usize = 2 * 20 + C_LENGTH + PAD_LENGTH + 16;

/// Digits of a group; between groups stands a dash.
const GROUP: usize = 11;

/// `00`, `01`, ... `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The two texts of a row, made anew in place.
#[derive(Debug, Clone)]
pub struct Texts {
    /// Ten groups of 11 digits.
    pub c: [u8; C_LENGTH],
    /// Five groups of 11 digits.
    pub pad: [u8; PAD_LENGTH],
}

impl Texts {
    /// Texts without digits yet.
    pub fn blank() -> Self {
        Self { c: [b'-'; C_LENGTH], pad: [b'-'; PAD_LENGTH] }
    }

    /// A new `c`.
    #[inline]
    pub fn renew_c(&mut self, random: &mut Random) {
        renew(&mut self.c, random);
    }

    /// A new `pad`.
    #[inline]
    pub fn renew_pad(&mut self, random: &mut Random) {
        renew(&mut self.pad, random);
    }
}

/// Writes random digits into every group of `text`. One draw makes a group: it is a fraction of 64 bits whose leading
/// decimal digits come out by multiplication. 10^11 values are so few beside 2^64 that no digit is favoured measurably.
#[inline]
fn renew(text: &mut [u8], random: &mut Random) {
    for group in text.chunks_mut(GROUP + 1) {
        let mut fraction = random.bits();
        let mut leading = |base: u128| {
            let product = u128::from(fraction) * base;
            fraction = product as u64;
            (product >> 64) as usize
        };
        for pair in group[..GROUP - 1].chunks_exact_mut(2) {
            pair.copy_from_slice(&PAIRS[leading(100)]);
        }
        group[GROUP - 1] = b'0' + leading(10) as u8;
    }
}

/// Writes the INSERTs that fill one table.
#[derive(Debug, Clone)]
pub struct Filler {
    head: Vec<u8>,
    next_id: i64,
    last_id: i64,
    auto_inc: bool,
    batch_bytes: usize,
    random: Random,
    keys: Sampler,
    texts: Texts,
}

impl Filler {
    /// Fills table `number` with statements of at most `batch_bytes`. The same seed gives the same rows, whoever fills
    /// the table; keys `k` are drawn as ids are.
    pub fn new(tables: &Tables, number: u32, distribution: Distribution, seed: u64, batch_bytes: usize) -> Self {
        let table_seed = Random::new(seed).bits() ^ Random::new(number.into()).bits();
        Self {
            head: tables.insert_head(number).into_bytes(),
            next_id: 1,
            last_id: tables.size,
            auto_inc: tables.auto_inc,
            batch_bytes: batch_bytes.max(BATCH_BYTES_MIN),
            random: Random::new(table_seed),
            keys: Sampler::new(distribution, 1, tables.size),
            texts: Texts::blank(),
        }
    }

    /// Replaces what `out` holds with the next statement, and gives its rows; 0 when the table is full.
    pub fn write(&mut self, out: &mut Vec<u8>) -> u32 {
        out.clear();
        let mut rows = 0;
        while self.next_id <= self.last_id && (rows == 0 || out.len() + ROW_BYTES_MAX <= self.batch_bytes) {
            out.extend_from_slice(if rows == 0 { &self.head } else { b"," });
            self.write_row(out);
            self.next_id += 1;
            rows += 1;
        }
        rows
    }

    #[inline]
    fn write_row(&mut self, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        out.push(b'(');
        if !self.auto_inc {
            out.extend_from_slice(buffer.format(self.next_id).as_bytes());
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(buffer.format(self.keys.draw(&mut self.random)).as_bytes());
        self.texts.renew_c(&mut self.random);
        self.texts.renew_pad(&mut self.random);
        out.extend_from_slice(b", '");
        out.extend_from_slice(&self.texts.c);
        out.extend_from_slice(b"', '");
        out.extend_from_slice(&self.texts.pad);
        out.extend_from_slice(b"')");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, Option<&'static str>)]) -> Result<Tables, String> {
        Tables::read(&Values::new(flags.to_vec())).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_are_sysbenchs() {
        let tables = read(&[]).unwrap();
        let expected = "CREATE TABLE sbtest2(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
                    c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) \
                    /*! ENGINE = innodb */ ";
        assert_eq!(tables.create(2), expected);
        assert_eq!(tables.create_index(2).as_deref(), Some("CREATE INDEX k_2 ON sbtest2(k)"));
        let other = [
            ("auto-inc", Some("off")),
            ("secondary", None),
            ("create-secondary", Some("false")),
            ("engine", Some("MyISAM")),
            ("table-options", Some("ROW_FORMAT=COMPRESSED")),
        ];
        let tables = read(&other).unwrap();
        let text = tables.create(1);
        assert!(text.contains("id INTEGER NOT NULL,\n") && text.contains("  KEY xid (id)\n"), "{text}");
        assert!(text.ends_with("/*! ENGINE = MyISAM */ ROW_FORMAT=COMPRESSED"), "{text}");
        assert_eq!(tables.create_index(1), None);
    }

    #[test]
    fn ids_beyond_32_bits_have_room() {
        let of_size = |size| read(&[("table-size", Some(size))]).unwrap().create(1);
        assert!(of_size("2147483647").contains("id INTEGER"));
        assert!(of_size("2147483648").contains("id BIGINT") && of_size("2147483648").contains("k BIGINT"));
    }

    #[test]
    fn mistakes_name_their_flag() {
        for (flag, value) in
            [("tables", "0"), ("table-size", "0"), ("table-size", "x"), ("auto-inc", "maybe"), ("engine", "a b")]
        {
            let text = read(&[(flag, Some(value))]).unwrap_err();
            assert!(text.starts_with(&format!("--{flag}={value}")), "{text}");
        }
    }

    fn tables(flags: &[(&'static str, &'static str)]) -> Tables {
        Tables::read(&Values::of(flags)).unwrap()
    }

    fn filled(tables: &Tables, seed: u64, batch_bytes: usize) -> (Vec<String>, u32) {
        let mut filler = Filler::new(tables, 1, Distribution::Uniform, seed, batch_bytes);
        let (mut statements, mut rows) = (Vec::new(), 0);
        let mut out = Vec::new();
        loop {
            match filler.write(&mut out) {
                0 => return (statements, rows),
                more => rows += more,
            }
            statements.push(String::from_utf8(out.clone()).unwrap());
        }
    }

    #[test]
    fn a_row_has_sysbenchs_shape() {
        let shape = |flags: &[_]| {
            let (statements, _) = filled(&tables(flags), 1, BATCH_BYTES);
            statements[0].chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect::<String>()
        };
        let c = ["###########"; 10].join("-");
        let pad = ["###########"; 5].join("-");
        let row = format!("'{c}', '{pad}'");
        let two = [("table-size", "2")];
        assert_eq!(shape(&two), format!("INSERT INTO sbtest#(k, c, pad) VALUES(#, {row}),(#, {row})"));
        let own_ids = [("table-size", "1"), ("auto-inc", "off")];
        assert_eq!(shape(&own_ids), format!("INSERT INTO sbtest#(id, k, c, pad) VALUES(#, #, {row})"));
    }

    #[test]
    fn statements_are_filled_to_their_limit_and_hold_every_row_once() {
        let tables = tables(&[("table-size", "20000"), ("auto-inc", "off")]);
        for limit in [BATCH_BYTES_MIN, 100_000, BATCH_BYTES] {
            let (statements, rows) = filled(&tables, 1, limit);
            assert_eq!(rows, 20_000);
            let ids = statements.iter().flat_map(|s| s.split('(').skip(2));
            let ids: Vec<i64> = ids.map(|row| row.split(',').next().unwrap().parse().unwrap()).collect();
            assert!(ids.into_iter().eq(1..=20_000));
            let (last, full) = statements.split_last().unwrap();
            assert!(last.len() <= limit);
            assert!(full.iter().all(|s| s.len() <= limit && s.len() + 2 * ROW_BYTES_MAX > limit));
        }
    }

    #[test]
    fn a_seed_repeats_its_rows_and_tables_differ() {
        let tables = tables(&[("table-size", "50")]);
        assert_eq!(filled(&tables, 3, BATCH_BYTES), filled(&tables, 3, BATCH_BYTES));
        assert_ne!(filled(&tables, 3, BATCH_BYTES), filled(&tables, 4, BATCH_BYTES));
        let row_of = |number| {
            let mut out = Vec::new();
            Filler::new(&tables, number, Distribution::Uniform, 3, BATCH_BYTES).write(&mut out);
            String::from_utf8(out).unwrap().split_once("VALUES").unwrap().1.to_owned()
        };
        assert_ne!(row_of(1), row_of(2));
    }

    #[test]
    fn digits_are_uniform_in_every_place() {
        let mut counts = BTreeMap::new();
        let (mut texts, mut random) = (Texts::blank(), Random::new(5));
        for _ in 0..10_000 {
            texts.renew_c(&mut random);
            for (place, digit) in texts.c[..GROUP].iter().enumerate() {
                *counts.entry((place, *digit)).or_insert(0_u32) += 1;
            }
        }
        assert_eq!(counts.len(), GROUP * 10);
        // Within five standard deviations of 1000.
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
