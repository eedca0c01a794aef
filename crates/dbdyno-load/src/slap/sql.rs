//! The tables and statements of mysqlslap's auto-generated SQL, the kinds of statement that are counted apart, and the
//! clients' walk through the list of statements.

use std::sync::Arc;

use dbdyno_common::random::Random;
use strum::{IntoStaticStr, VariantArray, VariantNames};

use crate::protocol::packet::{self, RequestEncoder};
use crate::statements::{Kind, Next, Part, Statement, Statements};
use crate::table_options::TableOptions;

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
    pub fn create_table(&self, engine: Option<&str>, options: &TableOptions) -> String {
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
        format!("CREATE TABLE `{TABLE}` ({}){engine} COMMENT = '{TABLE_COMMENT}'{options}", columns.join(","))
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

/// The kinds of statement that are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Operation {
    /// INSERT or REPLACE.
    Insert,
    /// SELECT.
    Select,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// COMMIT; not one of the queries.
    Commit,
    /// Anything else.
    Other,
}

impl Operation {
    /// The kinds of all of them, by their number.
    pub fn kinds() -> Vec<Kind> {
        Self::VARIANTS
            .iter()
            .map(|name| if *name == "commit" { Kind::apart(name) } else { Kind::query(name) })
            .collect()
    }

    /// By the first word of `sql`.
    pub fn detect(sql: &str) -> Self {
        let word = sql.split_whitespace().next().unwrap_or_default();
        match word.to_ascii_lowercase().as_str() {
            "insert" | "replace" => Self::Insert,
            "select" => Self::Select,
            "update" => Self::Update,
            "delete" => Self::Delete,
            "commit" => Self::Commit,
            _ => Self::Other,
        }
    }
}

/// A statement ready to send.
#[derive(Debug, Clone)]
struct Encoded {
    operation: Operation,
    /// Whole packets, or for a keyed statement the text before the key.
    bytes: Vec<u8>,
    keyed: bool,
    rows: u32,
}

/// Where a client is.
#[derive(Debug, Clone)]
struct Cursor {
    at: usize,
    done: u64,
    uncommitted: u64,
    /// Statements on the connection.
    connected: u64,
    /// The last COMMIT was sent.
    ended: bool,
    random: Random,
}

/// How much each client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerClient {
    /// Statements; `None` for as many as time allows.
    pub queries: Option<u64>,
    /// COMMIT after this many, and at the end.
    pub commit_every: Option<u64>,
    /// A new connection after this many.
    pub detach_every: Option<u64>,
}

/// All clients walking one list, each from its top.
#[derive(Debug, Clone)]
pub struct Walk {
    list: Vec<Encoded>,
    commit: Vec<u8>,
    keys: Arc<[String]>,
    cursors: Vec<Cursor>,
    per_client: PerClient,
}

impl Walk {
    /// A walk of `clients` through `statements`, whose keys are drawn uniformly from `keys`.
    /// `first` of them are another thread's.
    pub fn new(
        statements: &[ListEntry],
        keys: Arc<[String]>,
        first: usize,
        clients: usize,
        per_client: PerClient,
        seed: u64,
    ) -> Self {
        let list = statements
            .iter()
            .map(|statement| Encoded {
                operation: statement.operation,
                keyed: statement.keyed,
                rows: statement.rows,
                bytes: if statement.keyed {
                    statement.text.clone().into_bytes()
                } else {
                    packet::query(statement.text.as_bytes())
                },
            })
            .collect();
        let mut seeds = Random::new(seed);
        let cursor =
            |seed| Cursor { at: 0, done: 0, uncommitted: 0, connected: 0, ended: false, random: Random::new(seed) };
        let cursors = (0..first + clients).map(|_| seeds.bits()).skip(first).map(cursor).collect();
        Self { list, commit: packet::query(b"COMMIT"), keys, cursors, per_client }
    }
}

impl Statements for Walk {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let cursor = &mut self.cursors[client];
        let over = self.per_client.queries.is_some_and(|end| cursor.done >= end);
        if let Some(every) = self.per_client.commit_every {
            // The last COMMIT comes though it may have nothing to do, as mysqlslap's.
            let due = cursor.uncommitted >= every;
            let last = over && !due && !std::mem::replace(&mut cursor.ended, true);
            if due || last {
                cursor.uncommitted = 0;
                encoder.packets(&self.commit);
                return Next::Send(Statement { part: Part::Apart, ..Statement::alone(Operation::Commit as u16) });
            }
        }
        if over || self.list.is_empty() {
            return Next::Done;
        }
        if self.per_client.detach_every.is_some_and(|every| cursor.connected >= every) {
            cursor.connected = 0;
            return Next::Reconnect;
        }
        let statement = &self.list[cursor.at];
        cursor.at = (cursor.at + 1) % self.list.len();
        cursor.done += 1;
        cursor.uncommitted += 1;
        cursor.connected += 1;
        if statement.keyed {
            let number = cursor.random.below(self.keys.len() as u64) as usize;
            encoder.query(&[&statement.bytes, self.keys[number].as_bytes(), b"'"]);
        } else {
            encoder.packets(&statement.bytes);
        }
        Next::Send(Statement { rows: statement.rows, ..Statement::alone(statement.operation as u16) })
    }
}

#[cfg(test)]
mod tests {
    use Operation::{Insert, Select};
    use proptest::prelude::*;

    use super::*;

    const ONE: Columns = Columns { count: 1, indexed: false };

    const PLAIN: Shape = Shape { key: Key::None, secondary: 0, integers: ONE, strings: ONE };

    /// `text` with every literal replaced, as one compares shapes of statements.
    fn shape_of(text: &str) -> String {
        let mut out = String::new();
        let mut parts = text.split('\'');
        out.push_str(parts.next().unwrap_or_default());
        while let (Some(_), Some(after)) = (parts.next(), parts.next()) {
            out.push('S');
            out.push_str(after);
        }
        let mut shape = String::new();
        let mut inside_word = false;
        for c in out.chars() {
            if c.is_ascii_digit() && !inside_word {
                if !shape.ends_with('I') {
                    shape.push('I');
                }
            } else {
                shape.push(c);
            }
            inside_word = c.is_ascii_alphabetic() || (inside_word && c.is_ascii_digit());
        }
        shape
    }

    fn list(shape: Shape, load: Load, unique: u64) -> Vec<ListEntry> {
        shape.statements(load, unique, &mut Random::new(1))
    }

    #[test]
    fn tables_have_mysqlslaps_columns_in_its_order() {
        let sql = |shape: Shape, engine| shape.create_table(engine, &TableOptions::default());
        assert_eq!(
            sql(PLAIN, None),
            "CREATE TABLE `t1` (intcol1 INT(32),charcol1 VARCHAR(128)) COMMENT = 'dbdyno slap'"
        );
        let serial = Shape {
            key: Key::Serial,
            integers: Columns { count: 2, indexed: true },
            strings: Columns { count: 2, indexed: false },
            ..PLAIN
        };
        assert_eq!(
            sql(serial, Some("innodb")),
            "CREATE TABLE `t1` (id serial,intcol1 INT(32),INDEX(intcol1),intcol2 INT(32),\
         INDEX(intcol2),charcol1 VARCHAR(128),charcol2 VARCHAR(128)) Engine = innodb \
         COMMENT = 'dbdyno slap'"
        );
        let guid = Shape { key: Key::Guid, secondary: 2, ..PLAIN };
        assert_eq!(
            sql(guid, None),
            "CREATE TABLE `t1` (id varchar(36) primary key,id0 varchar(36) unique key,\
         id1 varchar(36) unique key,intcol1 INT(32),charcol1 VARCHAR(128)) COMMENT = 'dbdyno slap'"
        );
        assert_eq!(guid.columns(), ["id", "id0", "id1", "intcol1", "charcol1"]);
    }

    #[test]
    fn statements_have_mysqlslaps_shape() {
        let serial = Shape { key: Key::Serial, ..PLAIN };
        let guid = Shape { key: Key::Guid, secondary: 1, ..PLAIN };
        let first = |shape, load| list(shape, load, 10).remove(0);
        let cases = [
            (PLAIN, Load::Write, "INSERT INTO t1 VALUES (I,S)"),
            (serial, Load::Write, "INSERT INTO t1 VALUES (NULL,I,S)"),
            (guid, Load::Write, "INSERT INTO t1 VALUES (uuid(),uuid(),I,S)"),
            (PLAIN, Load::Read, "SELECT intcol1,charcol1 FROM t1"),
            (PLAIN, Load::Update, "UPDATE t1 SET intcol1 = I,charcol1 = S"),
            (serial, Load::Read, "SELECT intcol1,charcol1 FROM t1"),
        ];
        for (shape, load, expected) in cases {
            assert_eq!(shape_of(&first(shape, load).text), expected);
        }
        let key = first(serial, Load::Key);
        assert_eq!(key.text, "SELECT intcol1,charcol1 FROM t1 WHERE id =  '");
        assert!(key.keyed);
        let update = first(serial, Load::Update);
        assert!(update.keyed && update.text.ends_with(" WHERE id =  '"));
    }

    #[test]
    fn lists_have_one_more_than_asked_and_mixed_alternates() {
        let kinds = |shape, load| -> Vec<(Operation, bool)> {
            let statements = list(shape, load, 3);
            statements.iter().map(|s| (s.operation, s.keyed)).collect()
        };
        let plain = [(Insert, false), (Select, false), (Insert, false), (Select, false)];
        assert_eq!(kinds(PLAIN, Load::Mixed), plain);
        let guid = Shape { key: Key::Guid, ..PLAIN };
        assert_eq!(kinds(guid, Load::Mixed)[1], (Select, true));
    }

    #[test]
    fn strings_are_126_characters_without_u_and_v() {
        let text = string(&mut Random::new(9));
        assert_eq!(text.len(), 126);
        assert!(!text.contains(['U', 'V']));
    }

    proptest! {
        #[test]
        fn a_row_has_a_value_for_every_column(
            integers in 0u32..9, strings in 0u32..9, secondary in 0u32..4, key in 0usize..3, seed: u64
        ) {
            let shape = Shape {
                key: [Key::None, Key::Serial, Key::Guid][key],
                secondary,
                integers: Columns { count: integers, indexed: true },
                strings: Columns { count: strings, indexed: false },
            };
            let columns = shape.columns();
            let row = shape.row(&mut Random::new(seed));
            let values = row.trim_matches(['(', ')']).split(',').filter(|v| !v.is_empty()).count();
            prop_assert_eq!(values, columns.len());
            prop_assert_eq!(&row, &shape.row(&mut Random::new(seed)));
            for column in &columns {
                let named = format!("{column} ");
                prop_assert!(shape.create_table(None, &TableOptions::default()).contains(&named));
            }
        }
    }

    #[test]
    fn operations_are_told_by_their_first_word() {
        assert_eq!(Operation::detect("  Replace into t"), Operation::Insert);
        assert_eq!(Operation::detect("call p()"), Operation::Other);
        let kinds = Operation::kinds();
        assert_eq!((kinds.len(), kinds[Operation::Delete as usize].name.as_str()), (6, "delete"));
        assert!(kinds.iter().all(|kind| kind.is_query == (kind.name != "commit")));
    }

    fn statement(operation: Operation, text: &str, keyed: bool) -> ListEntry {
        ListEntry { operation, text: text.into(), keyed, rows: u32::from(operation == Operation::Insert) }
    }

    fn sent_by(walk: &mut Walk, client: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut out = Vec::new();
        loop {
            match walk.next(client, &mut RequestEncoder::new(&mut out, &mut [])) {
                Next::Send(_) => all.push(String::from_utf8_lossy(&out[5..]).into_owned()),
                Next::Reconnect => all.push("(new)".into()),
                Next::Done => return all,
            }
        }
    }

    fn per_client(queries: u64) -> PerClient {
        PerClient { queries: Some(queries), commit_every: None, detach_every: None }
    }

    #[test]
    fn every_client_walks_from_the_top_and_round() {
        let list = [statement(Operation::Insert, "a", false), statement(Operation::Select, "b", false)];
        let mut walk = Walk::new(&list, Arc::from([]), 0, 2, per_client(3), 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "b", "a"]);
        assert_eq!(sent_by(&mut walk, 1), ["a", "b", "a"]);
    }

    #[test]
    fn commits_come_every_few_and_at_the_end() {
        let list = [statement(Operation::Insert, "a", false)];
        let commit = |queries| PerClient { commit_every: Some(2), ..per_client(queries) };
        let mut walk = Walk::new(&list, Arc::from([]), 0, 1, commit(3), 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "a", "COMMIT", "a", "COMMIT"]);
        let mut walk = Walk::new(&list, Arc::from([]), 0, 1, commit(2), 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "a", "COMMIT", "COMMIT"]);
    }

    #[test]
    fn connections_are_left_every_few() {
        let list = [statement(Operation::Insert, "a", false)];
        let detach = PerClient { detach_every: Some(2), ..per_client(5) };
        let mut walk = Walk::new(&list, Arc::from([]), 0, 1, detach, 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "a", "(new)", "a", "a", "(new)", "a"]);
    }

    #[test]
    fn threads_draw_other_keys() {
        let list = [statement(Operation::Select, "", true)];
        let keys: Arc<[String]> = (0..100).map(|key| key.to_string()).collect();
        let mut whole = Walk::new(&list, Arc::clone(&keys), 0, 2, per_client(20), 1);
        let mut second = Walk::new(&list, keys, 1, 1, per_client(20), 1);
        assert_ne!(sent_by(&mut whole, 0), sent_by(&mut whole.clone(), 1));
        assert_eq!(sent_by(&mut whole, 1), sent_by(&mut second, 0));
    }

    #[test]
    fn keys_are_quoted_and_all_drawn() {
        let list = [statement(Operation::Select, "k = '", true)];
        let keys = Arc::from(["1".to_owned(), "2".to_owned()]);
        let mut walk = Walk::new(&list, keys, 0, 1, per_client(100), 1);
        let mut all = sent_by(&mut walk, 0);
        all.sort();
        all.dedup();
        assert_eq!(all, ["k = '1'", "k = '2'"]);
    }
}
