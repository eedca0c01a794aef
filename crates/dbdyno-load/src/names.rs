//! Names of schemas, tables and engines: as the user gives them, and as SQL takes them.

use std::fmt::Write as _;

use crate::error::Error;
use crate::protocol::session::Session;
use crate::values::Values;

/// A name as SQL quotes it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A name as a text that SQL compares names with. It means the same in every `sql_mode` and character set of a session:
/// what is looked for must be what is dropped.
pub fn text(name: &str) -> String {
    let mut out = "_utf8mb4 x'".to_owned();
    for byte in name.bytes() {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out + "'"
}

/// The schema that the flag `flag` names, if it is given.
///
/// # Errors
/// It is no name, or the server's own.
pub fn schema(values: &Values<'_>, flag: &str, default: &str) -> Result<String, Error> {
    const SYSTEM: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];
    let schema = values.text(flag).unwrap_or(default);
    if schema.is_empty() || schema.chars().any(char::is_control) {
        return Err(Error::Usage(format!("--{flag}: not the name of a schema")));
    }
    if SYSTEM.contains(&schema.to_ascii_lowercase().as_str()) {
        return Err(Error::Usage(format!("--{flag}={schema} belongs to the server")));
    }
    Ok(schema.to_owned())
}

/// The storage engine that `--engine` names; `None` if it names none. It needs no quotes.
///
/// # Errors
/// It can't be the name of one.
pub fn engine(values: &Values<'_>) -> Result<Option<String>, Error> {
    values.text("engine").filter(|name| !name.is_empty()).map(checked_engine).transpose()
}

/// `name` if it can be the name of a storage engine.
///
/// # Errors
/// It can't.
pub fn checked_engine(name: &str) -> Result<String, Error> {
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(name.to_owned());
    }
    Err(Error::Usage(format!("--engine={name}: not the name of an engine")))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn given(flag: &'static str, value: &'static str) -> Values<'static> {
        Values(vec![(flag, Some(value))])
    }

    #[test]
    fn names_are_checked() {
        let named = |name| schema(&given("schema", name), "schema", "usual").map_err(|error| error.to_string());
        assert_eq!(named("a`b"), Ok("a`b".into()));
        assert_eq!(schema(&Values(Vec::new()), "schema", "usual").unwrap(), "usual");
        assert!(named("MySQL").unwrap_err().contains("--schema=MySQL belongs to the server"));
        assert!(named("").is_err() && named("a\nb").is_err());
        let of = |name| engine(&given("engine", name)).map_err(|error| error.to_string());
        assert_eq!((of("MyISAM"), of("")), (Ok(Some("MyISAM".into())), Ok(None)));
        assert!(of("x; DROP").unwrap_err().contains("--engine=x; DROP"));
    }

    #[test]
    fn quotes_hold_anything() {
        assert_eq!(quoted("a`b"), "`a``b`");
        assert_eq!(text("a'\\é"), "_utf8mb4 x'61275cc3a9'");
    }
}
