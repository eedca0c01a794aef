//! The schema a load runs on: made before, dropped after, and never somebody else's.

use std::sync::Arc;

use crate::error::Error;
use crate::names::{self, quoted};
use crate::protocol::session::Session;
use crate::random::Random;
use crate::stop::Stop;

use super::options::{Options, Source};
use super::sql::{Load, TABLE, TABLE_COMMENT};

/// Rows per INSERT and bytes per statement while the table is filled; any server takes these.
const ROWS_MAX: usize = 250;
const BYTES_MAX: usize = 512 << 10;

/// Whether there is such a schema, and whether it holds nothing but a table of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Ours,
    Foreign,
}

fn found(options: &Options, session: &mut Session) -> Result<Found, Error> {
    if !names::schema_exists(session, &options.schema)? {
        return Ok(Found::Nothing);
    }
    let ours = ["BASE TABLE", TABLE, TABLE_COMMENT];
    let lent = names::is_lent(session, &options.schema)?;
    Ok(match names::holdings(session, &options.schema)?.as_slice() {
        [] if lent => Found::Nothing,
        [only] if *only == ours => Found::Ours,
        _ => Found::Foreign,
    })
}

/// Drops the schema if it is there and may go.
///
/// # Errors
/// It is not ours.
pub fn clear(options: &Options, session: &mut Session) -> Result<(), Error> {
    let schema = &options.schema;
    match found(options, session)? {
        Found::Nothing => Ok(()),
        Found::Foreign if !options.force => Err(Error::Usage(format!(
            "the schema {schema} exists and was not made by dbdyno, or holds more than that: name another with \
             --create-schema, or let it be dropped with --force"
        ))),
        Found::Ours | Found::Foreign => drop_schema(options, session),
    }
}

/// Drops the schema, which this invocation made; of one that was lent only the table.
///
/// # Errors
/// The server refuses.
pub fn drop_schema(options: &Options, session: &mut Session) -> Result<(), Error> {
    if names::is_lent(session, &options.schema)? {
        return session.execute(&format!("DROP TABLE IF EXISTS {}.{TABLE}", quoted(&options.schema)));
    }
    session.execute(&format!("DROP SCHEMA IF EXISTS {}", quoted(&options.schema)))
}

/// Makes an empty schema, where none is; one that was lent is taken as it is.
///
/// # Errors
/// One is there.
pub fn make_schema(options: &Options, session: &mut Session) -> Result<(), Error> {
    if names::is_lent(session, &options.schema)? {
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
            create.iter().try_for_each(|statement| session.execute(statement))
        }
        Source::Generated { shape, .. } => {
            session.execute(&shape.create_table(engine))?;
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
        .query(&format!("SELECT COLUMN_NAME FROM information_schema.COLUMNS {filter} ORDER BY ORDINAL_POSITION"))?;
    let columns: Vec<String> = columns.into_iter().flatten().flatten().collect();
    if columns != shape.columns() {
        return Err(Error::Usage(format!(
            "{schema}.{TABLE} has the columns ({}), this load needs ({}): prepare it with the same flags",
            columns.join(", "),
            shape.columns().join(", ")
        )));
    }
    let engines = session.query(&format!("SELECT ENGINE FROM information_schema.TABLES {filter}"))?;
    let engine = engines.into_iter().flatten().flatten().next();
    match (&engine, asked) {
        (Some(got), Some(asked)) if !got.eq_ignore_ascii_case(asked) => {
            Err(Error::Failed(format!("the server made {schema}.{TABLE} in {got} instead of {asked}")))
        }
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

/// The schema of a load, over the control connection.
pub struct Stage<'a> {
    options: &'a Options,
    /// The control connection.
    pub session: Session,
    /// This invocation made the schema, so it may drop it.
    made: bool,
}

impl<'a> Stage<'a> {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn connect(options: &'a Options, stop: &Stop) -> Result<Self, Error> {
        let mut session = Session::connect(&options.endpoint, None, stop)?;
        // It sleeps through every run, however long.
        session.execute("SET SESSION wait_timeout = 31536000")?;
        Ok(Self { options, session, made: false })
    }

    /// Makes schema, table and rows afresh.
    ///
    /// # Errors
    /// The schema is not ours, or the server refuses a statement.
    pub fn make(&mut self, engine: Option<&str>) -> Result<(), Error> {
        let options = self.options;
        if matches!(&options.source, Source::Given { create, .. } if create.is_empty()) {
            return enter(options, &mut self.session);
        }
        if self.made {
            drop_schema(options, &mut self.session)?;
        } else {
            clear(options, &mut self.session)?;
        }
        let made = make_schema(options, &mut self.session);
        // Refused, it is somebody's who was faster; after any other error it may be ours.
        self.made = !matches!(made, Err(Error::Statement { .. }));
        made?;
        fill(options, engine, &mut self.session)
    }

    /// Drops the schema if this invocation made it and it is not to stay. After a failure
    /// (`in_haste`) the server may be dead, and is not waited for as long.
    ///
    /// # Errors
    /// The schema is still there.
    pub fn leave(mut self, in_haste: bool) -> Result<(), Error> {
        if !self.made || self.options.no_drop {
            self.session.quit();
            return Ok(());
        }
        let left = |error| Error::Failed(format!("the schema {} is left behind: {error}", self.options.schema));
        let endpoint = &self.options.endpoint;
        self.session = self.session.for_cleaning_up(endpoint).map_err(left)?;
        if in_haste {
            self.session.set_patience(endpoint.connect_timeout.min(endpoint.stall_timeout));
        }
        drop_schema(self.options, &mut self.session).map_err(left)?;
        self.session.quit();
        Ok(())
    }
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
