//! The schema a load runs on: made before, dropped after; no other's is touched.

use std::sync::Arc;

use dbdyno_common::random::Random;

use super::options::{Options, Source};
use super::sql::{Load, TABLE, TABLE_COMMENT};
use crate::error::Error;
use crate::names::{self, quoted};
use crate::protocol::session::Session;
use crate::tables::{self, Owner};
use crate::text::shown;

/// Rows per INSERT and bytes per statement while the table is filled; any server takes these.
const ROWS_MAX: usize = 250;
const BYTES_MAX: usize = 512 << 10;

/// Drops the schema if it is there and may go.
///
/// # Errors
/// It is not ours.
pub fn clear(options: &Options, session: &mut Session) -> Result<(), Error> {
    let schema = &options.schema;
    match Owner::of_schema(session, schema, ["BASE TABLE", TABLE, TABLE_COMMENT])? {
        Owner::Absent => Ok(()),
        Owner::Other if !options.force => Err(Error::Usage(format!(
            "the schema {schema} exists and was not made by dbdyno, or holds more than that: name another with \
             --create-schema, or let it be dropped with --force"
        ))),
        Owner::Verb | Owner::Other => remove(options, session),
    }
}

/// Drops the schema, which this invocation made; of one that was lent only the table.
///
/// # Errors
/// The server refuses.
pub fn remove(options: &Options, session: &mut Session) -> Result<(), Error> {
    if tables::is_lent(session, &options.schema)? {
        return session.execute(&format!("DROP TABLE IF EXISTS {}.{TABLE}", quoted(&options.schema)));
    }
    session.execute(&format!("DROP SCHEMA IF EXISTS {}", quoted(&options.schema)))
}

/// Makes an empty schema, where none is; one that was lent is taken as it is.
///
/// # Errors
/// One is there.
pub fn make(options: &Options, session: &mut Session) -> Result<(), Error> {
    if tables::is_lent(session, &options.schema)? {
        return Ok(());
    }
    session.execute(&format!("CREATE SCHEMA {}", quoted(&options.schema)))
}

/// Goes into the schema and makes tables and rows there.
///
/// # Errors
/// The server refuses a statement.
pub fn fill(options: &Options, engine: Option<&str>, session: &mut Session) -> Result<(), Error> {
    enter(options, session)?;
    match &options.source {
        Source::Given { create, .. } => {
            if let Some(engine) = engine {
                session.execute(&format!("SET default_storage_engine = {engine}"))?;
            }
            create.iter().try_for_each(|statement| session.execute(&options.table_format.added_to(statement)))
        }
        Source::Generated { shape, .. } => {
            session.execute(&shape.create_table(engine, &options.table_format))?;
            initial_inserts(options).try_for_each(|statement| session.execute(&statement))
        }
    }
}

/// Goes into the schema.
///
/// # Errors
/// It is not there.
pub fn enter(options: &Options, session: &mut Session) -> Result<(), Error> {
    session.execute(&format!("USE {}", quoted(&options.schema)))
}

/// The table's engine as the server reports it, after checking that the table fits the load.
///
/// # Errors
/// There is no such table, it has other columns, or another engine than asked for.
pub fn engine(options: &Options, asked: Option<&str>, session: &mut Session) -> Result<Option<String>, Error> {
    let Source::Generated { shape, .. } = &options.source else {
        return Ok(asked.map(str::to_owned));
    };
    let schema = &options.schema;
    let filter = format!("WHERE TABLE_SCHEMA = {} AND TABLE_NAME = '{TABLE}'", names::text(schema));
    let columns = session
        .values(&format!("SELECT COLUMN_NAME FROM information_schema.COLUMNS {filter} ORDER BY ORDINAL_POSITION"))?;
    if columns != shape.columns() {
        return Err(Error::Usage(format!(
            "{schema}.{TABLE} has the columns ({}), this load needs ({}): prepare it with the same flags",
            shown(&columns.join(", ")),
            shape.columns().join(", ")
        )));
    }
    let engine: Option<String> = session.value(&format!("SELECT ENGINE FROM information_schema.TABLES {filter}"))?;
    match (&engine, asked) {
        (Some(got), Some(asked)) if !got.eq_ignore_ascii_case(asked) => Err(Error::Failed(format!(
            "the server made {schema}.{TABLE} in {got} instead of {asked}",
            got = shown(got)
        ))),
        _ => Ok(engine),
    }
}

/// All keys of the table, if the load draws from them.
///
/// # Errors
/// There are none.
pub fn keys(options: &Options, session: &mut Session) -> Result<Arc<[String]>, Error> {
    if !draws_keys(&options.source) {
        return Ok(Arc::from([]));
    }
    let rows = session.query_long(&format!("SELECT id from {TABLE}"))?;
    let keys: Vec<String> = rows.into_iter().flatten().flatten().collect();
    if keys.is_empty() {
        return Err(Error::Usage(format!(
            "the table {TABLE} has no rows to draw keys from: raise --auto-generate-sql-write-number"
        )));
    }
    Ok(keys.into())
}

fn draws_keys(source: &Source) -> bool {
    match source {
        Source::Generated { load, shape, .. } => {
            shape.key != super::sql::Key::None && matches!(load, Load::Key | Load::Update | Load::Mixed)
        }
        Source::Given { .. } => false,
    }
}

/// INSERTs of many rows each that fill the table; the rows are those of mysqlslap's single ones.
pub fn initial_inserts(options: &Options) -> impl Iterator<Item = String> + use<> {
    let (distinct, mut left) = match &options.source {
        Source::Generated { shape, unique_rows, rows, .. } => {
            let distinct = (*unique_rows).min(*rows);
            (shape.initial_rows(distinct, &mut Random::new(options.run.seed)), *rows)
        }
        Source::Given { .. } => (Vec::new(), 0),
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut text = String::new();
        let mut count = 0;
        while left > 0 && count < ROWS_MAX && text.len() < BYTES_MAX {
            text.push_str(if count == 0 { "INSERT INTO t1 VALUES " } else { "," });
            text.push_str(&distinct[at]);
            at = (at + 1) % distinct.len();
            count += 1;
            left -= 1;
        }
        (count > 0).then_some(text)
    })
}
