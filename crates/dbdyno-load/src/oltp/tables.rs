//! sysbench's tables: their SQL, and how they are made, checked and dropped on the server. No other table is touched.

use std::collections::BTreeMap;

use crate::dialect::DEFAULT_ENGINE;
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
        let found = self.list(session)?;
        for (number, columns) in &found {
            self.check_columns(*number, columns)?;
        }
        for number in found.keys() {
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
        let found = self.list(session)?;
        for number in self.tables.numbers() {
            match found.get(&number) {
                None => return Err(self.missing(&format!("there is no table {}.sbtest{number}", self.schema))),
                Some(columns) => self.check_columns(number, columns)?,
            }
        }
        self.engine(session)
    }

    /// Sees by their greatest ids that the tables have about as many rows as asked for: at least nine tenths, as earlier
    /// loads may have deleted some.
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
        let asked = self.tables.engine();
        let engine = session.value(&format!(
            "SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT') AND ENGINE = '{asked}'"
        ))?;
        engine.ok_or_else(|| Error::Usage(format!("--engine={asked}: this server does not have it")))
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
        let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for row in rows {
            let [Some(table), Some(column), Some(kind)] = row.as_slice() else { continue };
            let Some(number) = self.number_of(table) else { continue };
            found.entry(number).or_default().push(format!("{column} {}", without_width(kind)));
        }
        Ok(found)
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
            Some(asked) if !asked.eq_ignore_ascii_case(&engines) => {
                Err(Error::Failed(format!("the tables of {} are in {engines} instead of {asked}", self.schema)))
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
}
