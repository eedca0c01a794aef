//! Sees on the server, before a run, that a script's statements can be sent.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::names;
use crate::protocol::session::Session;
use crate::text::shown;

use super::literal::quoted;
use super::model::{Script, Template};
use super::stage::{self, Destination};

/// ER_UNSUPPORTED_PS: this statement cannot be prepared.
const UNPREPARABLE: u16 = 1295;

/// ER_NO_SUCH_TABLE.
const NO_SUCH_TABLE: u16 = 1146;

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
    stage::enter(destination, session)?;
    for plain in &script.connect {
        session.execute(&plain.sql).map_err(|error| destination.at(&plain.place, error))?;
    }
    check_strings(script, session)?;
    let makes_tables = script.statements().any(|statement| statement.makes_tables);
    let mut checked = Checked { engine: engine(destination, session)?, ..Checked::default() };
    for statement in script.statements().filter(|statement| statement.is_query) {
        let sql = format!("PREPARE dbdyno_check FROM {}", quoted(&statement.with_marks()));
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
    let mode: String = session.value("SELECT @@SESSION.sql_mode")?.unwrap_or_default();
    match &script.backslash {
        Some(place) if mode.split(',').any(|one| one == "NO_BACKSLASH_ESCAPES") => Err(Error::Usage(format!(
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
        stage::RECORD
    ))?;
    if let Some(asked) = &destination.engine
        && let Some(other) = engines.iter().find(|engine| !engine.eq_ignore_ascii_case(asked))
    {
        let text = format!("the schema {} has a table in {}, not in {asked}", destination.schema, shown(other));
        return Err(Error::Failed(format!("{text}: prepare with --engine={asked}, or leave ENGINE out of the script")));
    }
    Ok(engines.first().filter(|_| engines.len() == 1).cloned())
}
