//! What a script needs on the server: made by prepare, looked at before a run, dropped by cleanup.
//!
//! Prepare asks for a schema of the script's own: a new one, or one that is empty. What it made there is written down
//! in a table of the schema, so that cleanup leaves what came later.

use std::collections::BTreeSet;

use super::model::{self, Plain, Script, Template};
use crate::account::Confined;
use crate::dialect;
use crate::dialect::error_codes::{NO_SUCH_TABLE, UNPREPARABLE};
use crate::error::{Error, Slow};
use crate::names::{self, quoted};
use crate::protocol::session::Session;
use crate::table_options::TableOptions;
use crate::tables;
use crate::text::shown;

/// Where a script's tables are.
pub struct Destination {
    /// Their schema.
    pub schema: String,
    /// Storage engine that was asked for.
    pub engine: Option<String>,
    /// What is added to each CREATE TABLE of the setup.
    pub table_options: TableOptions,
    /// What the server lets its statements change, unless that is the whole server.
    pub confined: Option<Confined>,
    /// Whether its statements may hold what must not be shown: then of an error there is the code.
    pub is_secret: bool,
}

impl Destination {
    /// An error of the server, with where the statement stands.
    pub fn at(&self, place: &str, error: Error) -> Error {
        match error {
            Error::Statement { error: refusal, .. } if self.is_secret => {
                let (code, remedy) = (refusal.code, self.remedy(refusal.code));
                Error::Failed(format!(
                    "{place}: the server refuses this statement: error {code} ({}){remedy}",
                    refusal.sqlstate
                ))
            }
            Error::Slow(slow) if self.is_secret => Error::Slow(Slow { sql: None, ..slow }),
            Error::Statement { error: ref refusal, .. } => {
                Error::Failed(format!("{place}: {error}{}", self.remedy(refusal.code)))
            }
            other => other,
        }
    }

    /// What to do about the server's error `code`, where rights are the question.
    pub fn remedy(&self, code: u16) -> String {
        self.confined.as_ref().map_or_else(String::new, |confined| confined.remedy(code))
    }
}

/// The table in which prepare writes down what it made.
pub const RECORD: &str = "dbdyno_script";

/// Something in a schema: what it is and its name.
type Object = (String, String);

/// The schema itself, in the record.
const SCHEMA: &str = "SCHEMA";

/// In the record as long as prepare is not done: as the schema was empty, all that it holds is prepare's.
const BEGUN: &str = "BEGUN";

/// Runs the setup section and writes down what it made, for cleanup.
///
/// # Errors
/// It is prepared already, the schema holds something else, or the server refuses.
pub fn prepare(
    script: &Script,
    destination: &Destination,
    session: &mut Session,
    begun: &mut bool,
) -> Result<(), Error> {
    if script.setup.is_empty() {
        return Ok(());
    }
    let schema = destination.schema.as_str();
    let mut stage = Stage { session, destination };
    let is_new = !stage.exists()?;
    let (record, objects) = (stage.record()?, stage.objects()?);
    if let Some((_, name)) = objects.iter().find(|object| is_made(&record, object)) {
        let text = format!("the schema {schema} is prepared already (it has {name}): run cleanup first");
        return Err(Error::Usage(text));
    }
    if let Some((kind, name)) = objects.first() {
        return Err(not_its_own(schema, kind, name));
    }
    if let Some(engine) = &destination.engine {
        stage.session.execute(&format!("SET SESSION default_storage_engine = {engine}"))?;
    }
    *begun = true;
    if is_new {
        stage.session.execute(&format!("CREATE SCHEMA {}", quoted(schema)))?;
    }
    let made = stage.fill(script, is_new);
    if made.is_err() {
        // The cleanup section may name what was not made yet.
        let _ = stage.drop_recorded();
    }
    made
}

/// Runs the cleanup section, then drops what is left of what prepare made.
///
/// # Errors
/// There is a cleanup section and the schema is not the script's own, or the server refuses.
pub fn cleanup(script: &Script, destination: &Destination, session: &mut Session) -> Result<(), Error> {
    let mut stage = Stage { session, destination };
    if !stage.exists()? {
        return Ok(());
    }
    // The connect section may have set this session otherwise.
    stage.session.execute("SET SESSION TRANSACTION READ WRITE")?;
    stage.session.execute("SET autocommit = 1")?;
    if !script.cleanup.is_empty() {
        if stage.record()?.is_empty()
            && let Some((kind, name)) = stage.objects()?.first()
        {
            return Err(not_its_own(&destination.schema, kind, name));
        }
        stage.enter()?;
        script.cleanup.iter().try_for_each(|plain| stage.run(plain))?;
    }
    stage.drop_recorded()
}

/// Sees that the schema is there and goes into it.
///
/// # Errors
/// It is not; says how to make it.
pub fn enter(destination: &Destination, session: &mut Session) -> Result<(), Error> {
    let mut stage = Stage { session, destination };
    if !stage.exists()? {
        let text = format!("there is no schema {}: run prepare, or name another with --schema", destination.schema);
        return Err(Error::Usage(text));
    }
    stage.enter()
}

fn not_its_own(schema: &str, kind: &str, name: &str) -> Error {
    let kind = kind.to_ascii_lowercase().replace("base ", "");
    Error::Usage(format!(
        "the schema {schema} holds the {kind} {name}, which this script's prepare did not make: nothing was done; give \
         the script a schema of its own with --schema"
    ))
}

/// Whether prepare made it.
fn is_made(record: &BTreeSet<Object>, object: &Object) -> bool {
    record.contains(object) || record.iter().any(|(kind, _)| kind == BEGUN)
}

struct Stage<'a> {
    session: &'a mut Session,
    destination: &'a Destination,
}

impl Stage<'_> {
    fn exists(&mut self) -> Result<bool, Error> {
        tables::schema_exists(self.session, &self.destination.schema)
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.session.execute(&format!("USE {}", quoted(&self.destination.schema)))
    }

    fn run(&mut self, plain: &Plain) -> Result<(), Error> {
        self.session.execute(&plain.sql).map_err(|error| self.destination.at(&plain.place, error))
    }

    /// The record's name, as SQL quotes it.
    fn table(&self) -> String {
        format!("{}.{RECORD}", quoted(&self.destination.schema))
    }

    fn holdings(&mut self) -> Result<BTreeSet<Object>, Error> {
        let holdings = tables::holdings(self.session, &self.destination.schema)?;
        Ok(holdings.into_iter().map(|[kind, name, _]| (kind, name)).collect())
    }

    /// All that the schema holds but the record.
    fn objects(&mut self) -> Result<BTreeSet<Object>, Error> {
        let mut objects = self.holdings()?;
        objects.retain(|(_, name)| name != RECORD);
        Ok(objects)
    }

    /// What an earlier prepare wrote down.
    fn record(&mut self) -> Result<BTreeSet<Object>, Error> {
        if !self.holdings()?.contains(&("BASE TABLE".to_owned(), RECORD.to_owned())) {
            return Ok(BTreeSet::new());
        }
        let rows = self.session.query(&format!("SELECT kind, name FROM {}", self.table()))?;
        let pair = |row: Vec<Option<String>>| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            (values.next().unwrap_or_default(), values.next().unwrap_or_default())
        };
        Ok(rows.into_iter().map(pair).collect())
    }

    fn write_down(&mut self, kind: &str, made: &str) -> Result<(), Error> {
        let table = self.table();
        self.session.execute(&format!("REPLACE INTO {table} VALUES ({}, {})", names::text(kind), names::text(made)))
    }

    /// Runs the setup in an empty schema.
    fn fill(&mut self, script: &Script, is_new: bool) -> Result<(), Error> {
        self.enter()?;
        self.session.execute(&format!(
            "CREATE TABLE IF NOT EXISTS {} (kind VARCHAR(64), name VARCHAR(64), PRIMARY KEY (kind, name)) \
             CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT = 'dbdyno script: what prepare made and cleanup may drop'",
            self.table()
        ))?;
        self.write_down(BEGUN, "")?;
        if is_new {
            self.write_down(SCHEMA, &self.destination.schema)?;
        }
        for plain in &script.setup {
            let sql = self.destination.table_options.added_to(&plain.sql);
            self.session.execute(&sql).map_err(|error| self.destination.at(&plain.place, error))?;
        }
        for (kind, name) in self.objects()? {
            self.write_down(&kind, &name)?;
        }
        let table = self.table();
        self.session.execute(&format!("DELETE FROM {table} WHERE kind = '{BEGUN}'"))?;
        self.session.execute("COMMIT")
    }

    /// Drops what the record has, the record, and the schema if prepare made it and nothing is left
    /// in it.
    fn drop_recorded(&mut self) -> Result<(), Error> {
        let record = self.record()?;
        let schema = quoted(&self.destination.schema);
        self.session.execute("SET foreign_key_checks = 0")?;
        for object in self.objects()?.iter().filter(|object| is_made(&record, object)) {
            let what = match object.0.as_str() {
                kind @ ("VIEW" | "SEQUENCE" | "PROCEDURE" | "FUNCTION" | "EVENT") => kind,
                _ => "TABLE",
            };
            self.session.execute(&format!("DROP {what} IF EXISTS {schema}.{}", quoted(&object.1)))?;
        }
        self.session.execute("SET foreign_key_checks = 1")?;
        self.session.execute(&format!("DROP TABLE IF EXISTS {}", self.table()))?;
        let is_ours = record.iter().any(|(kind, _)| kind == SCHEMA);
        if is_ours && self.objects()?.is_empty() {
            self.session.execute(&format!("DROP SCHEMA {schema}"))?;
        }
        Ok(())
    }
}

/// What a look at the server found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Kinds of the statements that the server prepares.
    pub preparable: BTreeSet<String>,
    /// Storage engine of the schema's tables, if it is one.
    pub engine: Option<String>,
}

/// Has the server prepare every query once, which finds mistakes in them with their place.
///
/// # Errors
/// The schema, a table or a column is missing, a statement is wrong, or strings mean something else
/// on this server.
pub fn check(script: &Script, destination: &Destination, session: &mut Session) -> Result<Checked, Error> {
    enter(destination, session)?;
    for plain in &script.connect {
        session.execute(&plain.sql).map_err(|error| destination.at(&plain.place, error))?;
    }
    check_strings(script, session)?;
    let makes_tables = script.statements().any(|statement| statement.makes_tables);
    let mut checked = Checked { engine: engine(destination, session)?, ..Checked::default() };
    for statement in script.statements().filter(|statement| statement.is_query) {
        let sql = format!("PREPARE dbdyno_check FROM {}", model::quoted(&statement.with_marks()));
        match session.execute(&sql) {
            Ok(()) => {
                checked.preparable.insert(statement.kind.clone());
                session.execute("DEALLOCATE PREPARE dbdyno_check")?;
            }
            Err(Error::Statement { error, .. }) if error.code == UNPREPARABLE => {}
            // It may come with the run.
            Err(Error::Statement { error, .. }) if error.code == NO_SUCH_TABLE && makes_tables => {}
            Err(error) => return Err(explained(statement, script, destination, error)),
        }
    }
    Ok(checked)
}

fn explained(statement: &Template, script: &Script, destination: &Destination, error: Error) -> Error {
    match error {
        Error::Statement { error, .. } => {
            let prepare = error.code == NO_SUCH_TABLE && !script.setup.is_empty();
            let remedy = if prepare { ": run prepare first".into() } else { destination.remedy(error.code) };
            Error::Failed(format!("{}: the server refuses this statement: error {error}{remedy}", statement.place))
        }
        other => other,
    }
}

/// Backslashes escape in the strings of a script, and so they must for the server.
fn check_strings(script: &Script, session: &mut Session) -> Result<(), Error> {
    let modes: String = session.value(dialect::MODES_SQL)?.unwrap_or_default();
    let is_literal = dialect::takes_backslashes_literally(&modes);
    match &script.backslash {
        Some(place) if is_literal => Err(Error::Usage(format!(
            "{place}: a backslash in a string, but the server's sql_mode has NO_BACKSLASH_ESCAPES: leave the \
             backslash out, or set sql_mode in a section `-- connect:`"
        ))),
        _ => Ok(()),
    }
}

/// The storage engine of the schema's tables, if it is one.
///
/// # Errors
/// It is another than was asked for.
pub fn engine(destination: &Destination, session: &mut Session) -> Result<Option<String>, Error> {
    let engines = session.values(&format!(
        "SELECT DISTINCT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = 'BASE TABLE' \
         AND TABLE_NAME <> '{}'",
        names::text(&destination.schema),
        RECORD
    ))?;
    if let Some(engine_name) = &destination.engine
        && let Some(other) = engines.iter().find(|engine| !engine.eq_ignore_ascii_case(engine_name))
    {
        let text = format!("the schema {} has a table in {}, not in {engine_name}", destination.schema, shown(other));
        return Err(Error::Failed(format!(
            "{text}: prepare with --engine={engine_name}, or leave ENGINE out of the script"
        )));
    }
    Ok(engines.first().filter(|_| engines.len() == 1).cloned())
}
