//! The tables: the ledger, what its transactions transferred, the accounts, and the runs so far.

use crate::error::Error;
use crate::names::quoted;
use crate::protocol::session::Session;
use crate::tables::OwnTable;
use crate::values::Values;

use super::ddl::{PREFIX, partitioned};

/// What an account starts with.
pub const BALANCE: i64 = 1000;

/// A table's definition.
struct Definition {
    name: &'static str,
    columns: &'static str,
    /// As [`OwnTable::check`] compares them.
    compared: &'static [&'static str],
}

/// The index holds all that identifies a row, in every engine: so it is read without the table.
const DEFINITIONS: [Definition; 4] = [
    Definition {
        name: "runs",
        columns: "first_connection BIGINT NOT NULL, connections BIGINT NOT NULL, seed VARCHAR(20) NOT NULL, \
                  PRIMARY KEY (first_connection)",
        compared: &["first_connection bigint", "connections bigint", "seed varchar(20)"],
    },
    Definition {
        name: "ledger",
        columns: "connection BIGINT NOT NULL, sequence BIGINT NOT NULL, tag BIGINT NOT NULL, \
                  payload VARBINARY(7000) NOT NULL, content MEDIUMBLOB, PRIMARY KEY (connection, sequence), \
                  KEY by_tag (tag, connection, sequence)",
        compared: &[
            "connection bigint",
            "sequence bigint",
            "tag bigint",
            "payload varbinary(7000)",
            "content mediumblob(16777215)",
        ],
    },
    Definition {
        name: "transfers",
        columns: "connection BIGINT NOT NULL, sequence BIGINT NOT NULL, part BIGINT NOT NULL, account BIGINT NOT NULL, \
                  amount BIGINT NOT NULL, PRIMARY KEY (connection, sequence, part)",
        compared: &["connection bigint", "sequence bigint", "part bigint", "account bigint", "amount bigint"],
    },
    Definition {
        name: "accounts",
        columns: "id BIGINT NOT NULL, balance BIGINT NOT NULL, filler CHAR(120) NOT NULL, PRIMARY KEY (id)",
        compared: &["id bigint", "balance bigint", "filler char(120)"],
    },
];

/// One of our tables, by its name.
pub fn table(values: &Values<'_>, name: &'static str) -> Result<OwnTable, Error> {
    OwnTable::read(values, "ledger", name, "dbdyno_ledger")
}

/// The tables.
#[derive(Debug, Clone)]
pub struct Tables {
    /// In the order of the definitions; the first says whose the schema is.
    tables: Vec<OwnTable>,
}

impl Tables {
    /// From the flags.
    ///
    /// # Errors
    /// A name that can't be one.
    pub fn read(
        values: &Values<'_>,
        table: impl Fn(&Values<'_>, &'static str) -> Result<OwnTable, Error>,
    ) -> Result<Self, Error> {
        let tables = DEFINITIONS.iter().map(|definition| table(values, definition.name));
        Ok(Self { tables: tables.collect::<Result<_, _>>()? })
    }

    /// Their schema.
    pub fn schema(&self) -> &str {
        &self.tables[0].schema
    }

    /// Their names.
    pub fn names() -> impl Iterator<Item = &'static str> + use<> {
        DEFINITIONS.iter().map(|definition| definition.name)
    }

    /// Schema and name of a table, as SQL quotes them.
    pub fn qualified(&self, name: &str) -> String {
        format!("{}.{}", quoted(self.schema()), quoted(name))
    }

    /// Makes them and fills the accounts.
    ///
    /// # Errors
    /// One of them is there, or the server refuses.
    pub fn make(&self, session: &mut Session, accounts: u32, begun: &mut bool) -> Result<(), Error> {
        self.tables.iter().try_for_each(|table| table.check_absent(session))?;
        for (table, definition) in self.tables.iter().zip(&DEFINITIONS) {
            let made = table.make(session, definition.columns, &mut false);
            // Even one that failed may come after others.
            *begun |= made.is_ok();
            made?;
        }
        let (mut id, filler) = (0, "x".repeat(120));
        self.tables[3].fill(session, "id, balance, filler", accounts.into(), |row| {
            id += 1;
            // Plain parts: a formatted row would be most of the work.
            row.push('(');
            row.push_str(itoa::Buffer::new().format(id));
            row.push(',');
            row.push_str(itoa::Buffer::new().format(BALANCE));
            row.push_str(",'");
            row.push_str(&filler);
            row.push_str("')");
        })
    }

    /// Sees that they are there and fit; gives the engine.
    ///
    /// # Errors
    /// They do not; says how to make them.
    pub fn check(&self, session: &mut Session, accounts: u32) -> Result<String, Error> {
        let mut engine = None;
        for (table, definition) in self.tables.iter().zip(&DEFINITIONS) {
            let columns: Vec<String> = definition.compared.iter().map(|&column| column.to_owned()).collect();
            engine = table.check(session, &columns)?.engine;
        }
        let there: u32 = session.value(&format!("SELECT COUNT(*) FROM {}", self.qualified("accounts")))?.unwrap_or(0);
        if there != accounts {
            return Err(self.tables[3].unfit(&format!("has {there} accounts instead of --accounts={accounts}")));
        }
        Ok(engine.unwrap_or_default())
    }

    /// The tables of the DDL mix that are there.
    ///
    /// # Errors
    /// The server refuses.
    pub fn ddl_tables(&self, session: &mut Session) -> Result<Vec<String>, Error> {
        let comment = crate::names::text(&self.tables[0].comment());
        session.values(&format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_COMMENT = {comment} AND \
             LEFT(TABLE_NAME, {}) = {}",
            crate::names::text(self.schema()),
            PREFIX.len(),
            crate::names::text(PREFIX)
        ))
    }

    /// Makes ready for the DDL mix: drops what an earlier run left, and makes the table with partitions.
    ///
    /// # Errors
    /// The server refuses.
    pub fn make_ready_for_ddl(&self, session: &mut Session, engine: &str) -> Result<(), Error> {
        self.drop_ddl(session)?;
        session.execute(&partitioned(self.schema(), engine))
    }

    fn drop_ddl(&self, session: &mut Session) -> Result<(), Error> {
        let names = self.ddl_tables(session)?;
        names.iter().try_for_each(|name| session.execute(&format!("DROP TABLE {}", self.qualified(name))))
    }

    /// Drops them; the one that says whose the schema is goes last.
    ///
    /// # Errors
    /// One is not ours, or the server refuses.
    pub fn drop(&self, session: &mut Session) -> Result<(), Error> {
        self.drop_ddl(session)?;
        self.tables.iter().rev().try_for_each(|table| table.drop(session))
    }

    /// Whether an engine has transactions, by what the server says of it.
    ///
    /// # Errors
    /// The server refuses.
    pub fn is_transactional(session: &mut Session, engine: &str) -> Result<bool, Error> {
        let sql = format!(
            "SELECT TRANSACTIONS FROM information_schema.ENGINES WHERE ENGINE = {}",
            crate::names::text(engine)
        );
        Ok(session.value::<String>(&sql)?.is_some_and(|answer| answer.eq_ignore_ascii_case("yes")))
    }

    /// Takes the numbers of `connections` connections that no run on these tables has had, and says so in `runs`.
    ///
    /// # Errors
    /// The server refuses.
    pub fn take_connections(&self, session: &mut Session, connections: u32, seed: u64) -> Result<u32, Error> {
        let sql = format!(
            "SELECT GREATEST(COALESCE((SELECT MAX(first_connection + connections) FROM {}), 1), \
             COALESCE((SELECT MAX(connection) + 1 FROM {}), 1), COALESCE((SELECT MAX(connection) + 1 FROM {}), 1))",
            self.qualified("runs"),
            self.qualified("ledger"),
            self.qualified("transfers")
        );
        let first: u32 = session.value(&sql)?.unwrap_or(1);
        session.execute(&format!(
            "INSERT INTO {} (first_connection, connections, seed) VALUES ({first}, {connections}, '{seed}')",
            self.qualified("runs")
        ))?;
        Ok(first)
    }

    /// The seed of the run whose connections begin at `first`, if the server still knows it.
    ///
    /// # Errors
    /// The server refuses.
    pub fn seed_of(&self, session: &mut Session, first: u32) -> Result<Option<u64>, Error> {
        let runs = self.qualified("runs");
        session.value(&format!("SELECT seed FROM {runs} WHERE first_connection = {first}"))
    }
}
