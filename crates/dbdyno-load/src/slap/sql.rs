//! The tables and statements of mysqlslap's auto-generated SQL.

use dbdyno_common::random::Random;
use strum::{IntoStaticStr, VariantArray};

use super::operation::Operation;

/// The generated table.
pub const TABLE: &str = "t1";

/// What keeps a schema of ours apart from others.
pub const TABLE_COMMENT: &str = "dbdyno slap";

/// Characters of a generated string.
const STRING_LENGTH: usize = 126;

/// mysqlslap's alphabet: it lacks U and V.
const ALPHABET: &[u8; 60] = b"0123456789ABCDEFGHIJKLMNOPQRSTWXYZabcdefghijklmnopqrstuvwxyz";

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Load {
    /// Whole-table SELECTs.
    Read,
    /// SELECTs by key.
    Key,
    /// INSERTs.
    Write,
    /// UPDATEs, by key if there is one.
    Update,
    /// INSERT, SELECT in turn.
    Mixed,
}

/// Columns of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// How many.
    pub count: u32,
    /// Whether each has an index.
    pub indexed: bool,
}

/// What identifies a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Nothing.
    None,
    /// `id serial`, which is unique, not primary.
    Serial,
    /// `id varchar(36) primary key`, a UUID.
    Guid,
}

/// Shape of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// What identifies a row.
    pub key: Key,
    /// Unique UUID columns.
    pub secondary: u32,
    /// Integers.
    pub integers: Columns,
    /// Strings.
    pub strings: Columns,
}

/// A statement of the list that all clients walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// Its kind.
    pub operation: Operation,
    /// Its text; if `keyed`, up to the key, which is followed by a quote.
    pub text: String,
    /// Whether it ends in a key chosen for each execution.
    pub keyed: bool,
    /// Rows that it adds; 0 for a user's own, where they are not counted.
    pub rows: u32,
}

impl Shape {
    /// Names of the columns that statements read and set, which leaves out keys.
    fn payload_columns(&self) -> impl Iterator<Item = String> + use<> {
        let strings = (1..=self.strings.count).map(|n| format!("charcol{n}"));
        (1..=self.integers.count).map(|n| format!("intcol{n}")).chain(strings)
    }

    /// Names of all columns, in order.
    pub fn columns(&self) -> Vec<String> {
        let id = (self.key != Key::None).then(|| "id".to_owned());
        let secondary = (0..self.secondary).map(|n| format!("id{n}"));
        id.into_iter().chain(secondary).chain(self.payload_columns()).collect()
    }

    /// CREATE TABLE. The comment is ours; mysqlslap has none.
    pub fn create_table(&self, engine: Option<&str>) -> String {
        let mut columns = Vec::new();
        match self.key {
            Key::None => {}
            Key::Serial => columns.push("id serial".to_owned()),
            Key::Guid => columns.push("id varchar(36) primary key".to_owned()),
        }
        columns.extend((0..self.secondary).map(|n| format!("id{n} varchar(36) unique key")));
        let mut payload = |name: &str, kind: &str, these: Columns| {
            for n in 1..=these.count {
                columns.push(format!("{name}{n} {kind}"));
                if these.indexed {
                    columns.push(format!("INDEX({name}{n})"));
                }
            }
        };
        payload("intcol", "INT(32)", self.integers);
        payload("charcol", "VARCHAR(128)", self.strings);
        let engine = engine.map_or_else(String::new, |name| format!(" Engine = {name}"));
        format!("CREATE TABLE `{TABLE}` ({}){engine} COMMENT = '{TABLE_COMMENT}'", columns.join(","))
    }

    /// One row in parentheses, as INSERT takes it.
    pub fn row(&self, random: &mut Random) -> String {
        let key = match self.key {
            Key::None => None,
            Key::Serial => Some("NULL".to_owned()),
            Key::Guid => Some("uuid()".to_owned()),
        };
        let secondary = (0..self.secondary).map(|_| "uuid()".to_owned());
        let values: Vec<String> = key.into_iter().chain(secondary).chain(self.values(random)).collect();
        format!("({})", values.join(","))
    }

    /// Literals for the payload columns.
    fn values(&self, random: &mut Random) -> Vec<String> {
        let mut values = Vec::new();
        for _ in 0..self.integers.count {
            // What an INT holds from 0.
            values.push((random.bits() >> 33).to_string());
        }
        for _ in 0..self.strings.count {
            values.push(format!("'{}'", string(random)));
        }
        values
    }

    fn insert(&self, random: &mut Random) -> ListEntry {
        ListEntry {
            operation: Operation::Insert,
            text: format!("INSERT INTO {TABLE} VALUES {}", self.row(random)),
            keyed: false,
            rows: 1,
        }
    }

    fn select(&self, keyed: bool) -> ListEntry {
        let columns: Vec<String> = self.payload_columns().collect();
        // Two spaces, as mysqlslap.
        let filter = if keyed { " WHERE id =  '" } else { "" };
        ListEntry {
            operation: Operation::Select,
            text: format!("SELECT {} FROM {TABLE}{filter}", columns.join(",")),
            keyed,
            rows: 0,
        }
    }

    fn update(&self, random: &mut Random) -> ListEntry {
        let keyed = self.key != Key::None;
        let values = self.values(random);
        let pairs: Vec<String> =
            self.payload_columns().zip(values).map(|(column, value)| format!("{column} = {value}")).collect();
        let filter = if keyed { " WHERE id =  '" } else { "" };
        ListEntry {
            operation: Operation::Update,
            text: format!("UPDATE {TABLE} SET {}{filter}", pairs.join(",")),
            keyed,
            rows: 0,
        }
    }

    /// The list of `unique` + 1 statements that every client walks from its top.
    pub fn statements(&self, load: Load, unique: u64, random: &mut Random) -> Vec<ListEntry> {
        (0..=unique)
            .map(|number| match load {
                Load::Read => self.select(false),
                Load::Key => self.select(true),
                Load::Write => self.insert(random),
                Load::Update => self.update(random),
                Load::Mixed if number % 2 == 0 => self.insert(random),
                Load::Mixed => self.select(self.key != Key::None),
            })
            .collect()
    }

    /// The distinct rows that the table is filled with, over and over.
    pub fn initial_rows(&self, unique: u64, random: &mut Random) -> Vec<String> {
        (0..unique).map(|_| self.row(random)).collect()
    }
}

fn string(random: &mut Random) -> String {
    let pick = |_| char::from(ALPHABET[random.below(ALPHABET.len() as u64) as usize]);
    (0..STRING_LENGTH).map(pick).collect()
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;
