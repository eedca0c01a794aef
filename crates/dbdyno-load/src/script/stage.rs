//! What a script needs on the server: made by prepare, looked at by check, dropped by cleanup.
//!
//! What prepare made is written down in a table of the schema, so that cleanup can tell it from
//! what others made there.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::names::{self, quoted};
use crate::protocol::session::Session;

use super::Place;
use super::model::{Plain, Script};
use super::words::{Deed, Words};

/// The table in which prepare writes down what it made.
pub const RECORD: &str = "dbdyno_script";

/// Something in a schema: what it is and its name.
type Object = (String, String);

/// The schema itself, in the record.
const SCHEMA: &str = "SCHEMA";

/// Runs the setup section and writes down what it made, for cleanup.
///
/// # Errors
/// It is prepared already, the setup would change what others made, or the server refuses.
pub fn prepare(script: &Script, place: &Place, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
    if script.setup.is_empty() {
        return Ok(());
    }
    let schema = place.schema.as_str();
    let mut stage = Stage { session, schema };
    let is_new = !stage.exists()?;
    let record = stage.record()?;
    let mut foreign = stage.objects()?;
    let left: Vec<&Object> = record.iter().filter(|object| foreign.contains(object)).collect();
    if let Some((_, name)) = left.first() {
        let text = format!("the schema {schema} is prepared already (it has {name}): run cleanup first");
        return Err(Error::Usage(text));
    }
    foreign.remove(&("BASE TABLE".into(), RECORD.into()));
    guard(&script.setup, schema, &foreign)?;
    if let Some(engine) = &place.engine {
        stage.session.execute(&format!("SET SESSION default_storage_engine = {engine}"))?;
    }
    *begun = true;
    if is_new {
        stage.session.execute(&format!("CREATE SCHEMA {}", quoted(schema)))?;
    }
    let made = stage.fill(script, is_new, &foreign);
    if made.is_err() {
        // The cleanup section may name what was not made yet.
        let _ = stage.drop_recorded();
    }
    made
}

/// Runs the cleanup section, then drops what is left of what prepare made.
///
/// # Errors
/// The cleanup would change what others made, or the server refuses.
pub fn cleanup(script: &Script, schema: &str, session: &mut Session) -> Result<(), Error> {
    let mut stage = Stage { session, schema };
    if !stage.exists()? {
        return Ok(());
    }
    // The connect section may have set this session otherwise.
    stage.session.execute("SET SESSION TRANSACTION READ WRITE")?;
    stage.session.execute("SET autocommit = 1")?;
    let record = stage.record()?;
    let mut foreign = stage.objects()?;
    foreign.retain(|object| !record.contains(object) && object.1 != RECORD);
    guard(&script.cleanup, schema, &foreign)?;
    stage.enter()?;
    script.cleanup.iter().try_for_each(|plain| stage.run(plain))?;
    stage.drop_recorded()
}

/// Sees that the schema is there and goes into it.
///
/// # Errors
/// It is not; says how to make it.
pub fn enter(schema: &str, session: &mut Session) -> Result<(), Error> {
    let mut stage = Stage { session, schema };
    if !stage.exists()? {
        let text = format!("there is no schema {schema}: run prepare, or name another with --schema");
        return Err(Error::Usage(text));
    }
    stage.enter()
}

/// An error of the server with where the statement stands.
pub fn at(place: &str, error: Error) -> Error {
    match error {
        Error::Statement { .. } => Error::Failed(format!("{place}: {error}")),
        other => other,
    }
}

/// Sees that `section` leaves alone what is not this script's.
fn guard(section: &[Plain], schema: &str, foreign: &BTreeSet<Object>) -> Result<(), Error> {
    for plain in section {
        let refuse = |what: &str| {
            let place = &plain.place;
            Err(Error::Usage(format!(
                "{place}: {what}: nothing was done; give the script a schema of its own with --schema"
            )))
        };
        match Words::of(&plain.sql).deed() {
            Deed::Nothing => {}
            Deed::Touches(touched) => {
                for (other, table) in touched {
                    if other.as_ref().is_some_and(|other| !other.eq_ignore_ascii_case(schema)) {
                        return refuse(&format!("this would change {table} outside of the schema {schema}"));
                    }
                    if foreign.iter().any(|(_, name)| name.eq_ignore_ascii_case(&table)) {
                        return refuse(&format!("{schema}.{table} was not made by this script's prepare"));
                    }
                }
            }
            Deed::Unknown | Deed::Leaves => {
                if let Some((_, name)) = foreign.first() {
                    return refuse(&format!("this may change what others have in the schema {schema}, such as {name}"));
                }
            }
        }
    }
    Ok(())
}

struct Stage<'a> {
    session: &'a mut Session,
    schema: &'a str,
}

impl Stage<'_> {
    fn exists(&mut self) -> Result<bool, Error> {
        names::schema_exists(self.session, self.schema)
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.session.execute(&format!("USE {}", quoted(self.schema)))
    }

    fn run(&mut self, plain: &Plain) -> Result<(), Error> {
        self.session.execute(&plain.sql).map_err(|error| at(&plain.place, error))
    }

    /// All that the schema holds.
    fn objects(&mut self) -> Result<BTreeSet<Object>, Error> {
        let holdings = names::holdings(self.session, self.schema)?;
        Ok(holdings.into_iter().map(|[kind, name, _]| (kind, name)).collect())
    }

    /// What an earlier prepare wrote down.
    fn record(&mut self) -> Result<BTreeSet<Object>, Error> {
        let table = ("BASE TABLE".to_owned(), RECORD.to_owned());
        if !self.objects()?.contains(&table) {
            return Ok(BTreeSet::new());
        }
        let rows = self.session.query(&format!("SELECT kind, name FROM {}.{RECORD}", quoted(self.schema)))?;
        let pair = |row: Vec<Option<String>>| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            (values.next().unwrap_or_default(), values.next().unwrap_or_default())
        };
        Ok(rows.into_iter().map(pair).collect())
    }

    fn write_down(&mut self, (kind, made): &Object) -> Result<(), Error> {
        let table = format!("{}.{RECORD}", quoted(self.schema));
        self.session.execute(&format!("REPLACE INTO {table} VALUES ({}, {})", names::text(kind), names::text(made)))
    }

    /// Runs the setup in a schema that has `foreign` in it.
    fn fill(&mut self, script: &Script, is_new: bool, foreign: &BTreeSet<Object>) -> Result<(), Error> {
        self.enter()?;
        self.session.execute(&format!(
            "CREATE TABLE IF NOT EXISTS {RECORD} (kind VARCHAR(64), name VARCHAR(64), PRIMARY KEY (kind, name)) \
             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT = 'dbdyno script: what prepare made and cleanup may drop'"
        ))?;
        let mut known = foreign.clone();
        known.insert(("BASE TABLE".into(), RECORD.into()));
        if is_new {
            self.write_down(&(SCHEMA.into(), self.schema.into()))?;
        }
        for plain in &script.setup {
            // Before it is made, so that a killed prepare leaves no table that nobody knows.
            if let Deed::Touches(touched) = Words::of(&plain.sql).deed() {
                for (_, table) in touched {
                    let object = ("BASE TABLE".to_owned(), table);
                    if !known.contains(&object) {
                        self.write_down(&object)?;
                    }
                }
            }
            self.run(plain)?;
            let word = plain.sql.split_whitespace().next().unwrap_or_default();
            // These make nothing, and there may be many.
            if ["INSERT", "REPLACE", "SET", "UPDATE"].iter().any(|plain| plain.eq_ignore_ascii_case(word)) {
                continue;
            }
            for object in self.objects()? {
                if known.insert(object.clone()) {
                    self.write_down(&object)?;
                }
            }
        }
        self.session.execute("COMMIT")
    }

    /// Drops what the record has, the record, and the schema if prepare made it and nothing is left
    /// in it.
    fn drop_recorded(&mut self) -> Result<(), Error> {
        let record = self.record()?;
        let objects = self.objects()?;
        let schema = quoted(self.schema);
        self.session.execute("SET foreign_key_checks = 0")?;
        for (kind, object) in record.intersection(&objects) {
            let what = match kind.as_str() {
                kind @ ("VIEW" | "SEQUENCE" | "PROCEDURE" | "FUNCTION" | "EVENT") => kind,
                _ => "TABLE",
            };
            self.session.execute(&format!("DROP {what} IF EXISTS {schema}.{}", quoted(object)))?;
        }
        self.session.execute("SET foreign_key_checks = 1")?;
        self.session.execute(&format!("DROP TABLE IF EXISTS {schema}.{RECORD}"))?;
        let is_ours = record.iter().any(|(kind, _)| kind == SCHEMA);
        if is_ours && self.objects()?.is_empty() {
            self.session.execute(&format!("DROP SCHEMA {schema}"))?;
        }
        Ok(())
    }
}
