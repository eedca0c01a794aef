//! Whose a schema, a table or a routine is: the one rule by which something on a server may be changed or dropped.
//!
//! What a verb made carries its comment; a schema is the verb's while it holds nothing else. A schema that a study was lent
//! is used as it is and never dropped. Tables of sysbench's, which have no comment, are known by their names and columns
//! ([`crate::oltp`]), those of a script by the record of its prepare ([`crate::script`]).

use crate::error::Error;
use crate::names::text;
use crate::protocol::session::Session;

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It is not there.
    Absent,
    /// The verb that asks.
    Verb,
    /// Anyone else.
    Other,
}

impl Owner {
    /// Of what has this comment, if it is there; `ours` is the verb's own.
    pub fn by_comment(comment: Option<&str>, ours: &str) -> Self {
        match comment {
            None => Self::Absent,
            Some(comment) if comment == ours => Self::Verb,
            Some(_) => Self::Other,
        }
    }

    /// Of a schema that is the verb's if it holds one object alone, `ours`: its kind, name and comment.
    ///
    /// # Errors
    /// The server refuses.
    pub fn of_schema(session: &mut Session, schema: &str, ours: [&str; 3]) -> Result<Self, Error> {
        if !schema_exists(session, schema)? {
            return Ok(Self::Absent);
        }
        let lent = is_lent(session, schema)?;
        Ok(match holdings(session, schema)?.as_slice() {
            [] if lent => Self::Absent,
            [only] if *only == ours => Self::Verb,
            _ => Self::Other,
        })
    }
}

/// Whether there is such a schema.
///
/// # Errors
/// The server refuses.
pub fn schema_exists(session: &mut Session, schema: &str) -> Result<bool, Error> {
    let sql = format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}", text(schema));
    Ok(!session.query(&sql)?.is_empty())
}

/// The table by which a study marks a schema that it was lent, and how its comment begins. Such a schema is used as it is,
/// and never dropped.
const MARK: [&str; 2] = ["dbdyno_run", "dbdyno run "];

/// Which table is the mark, in SQL.
fn mark() -> String {
    let [name, comment] = MARK;
    format!("(TABLE_NAME = '{name}' AND TABLE_COMMENT LIKE '{comment}%')")
}

/// Whether a study was lent the schema.
///
/// # Errors
/// The server refuses.
pub fn is_lent(session: &mut Session, schema: &str) -> Result<bool, Error> {
    let (schema, mark) = (text(schema), mark());
    let sql = format!("SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND {mark}");
    Ok(!session.query(&sql)?.is_empty())
}

/// What a schema holds: kind, name and comment of everything but the mark of a study. Triggers come and go with their
/// tables.
///
/// # Errors
/// The server refuses.
pub fn holdings(session: &mut Session, schema: &str) -> Result<Vec<[String; 3]>, Error> {
    let (schema, mark) = (text(schema), mark());
    let rows = session.query(&format!(
        "SELECT TABLE_TYPE, TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} \
         AND NOT {mark} UNION ALL SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_COMMENT FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = {schema} \
         UNION ALL SELECT 'EVENT', EVENT_NAME, EVENT_COMMENT FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {schema}"
    ))?;
    let three = |row: Vec<Option<String>>| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        [(); 3].map(|()| values.next().unwrap_or_default())
    };
    Ok(rows.into_iter().map(three).collect())
}
