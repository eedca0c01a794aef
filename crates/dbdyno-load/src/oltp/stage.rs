//! sysbench's tables on the server: made, looked at, dropped; no other's is touched.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::names::{self, quoted};
use crate::owner;
use crate::protocol::session::Session;
use crate::text::shown;

use super::tables::Tables;

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
        if !owner::schema_exists(session, self.schema)? {
            return Err(self.missing(&format!("there is no schema {}", self.schema)));
        }
        session.execute(&format!("USE {}", quoted(self.schema)))
    }

    /// Makes the schema if there is none, and goes into it.
    ///
    /// # Errors
    /// The server refuses.
    pub fn enter_or_make(self, session: &mut Session) -> Result<(), Error> {
        if !owner::schema_exists(session, self.schema)? {
            session.execute(&format!("CREATE SCHEMA {}", quoted(self.schema)))?;
        }
        self.enter(session)
    }

    /// Sees that none of the tables is there yet.
    ///
    /// # Errors
    /// One is.
    pub fn check_absent(self, session: &mut Session) -> Result<(), Error> {
        match self.found(session)?.first_key_value() {
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
        if !owner::schema_exists(session, self.schema)? {
            return Ok(());
        }
        session.execute(&format!("USE {}", quoted(self.schema)))?;
        let found = self.found(session)?;
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
        let found = self.found(session)?;
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
    fn found(self, session: &mut Session) -> Result<BTreeMap<u32, Vec<String>>, Error> {
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
