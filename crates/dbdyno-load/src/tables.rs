//! What verbs share that work on one table of their own: making it, knowing it again, filling and dropping it, and
//! never touching a table of others.
//!
//! A table of ours carries a comment, and nothing without it is ever dropped. The comment also says whether the schema
//! was made for the table, so that only such a schema goes with it, and only once it is empty.
//!
//! What a verb made carries its comment; a schema is the verb's while it holds nothing else. A schema that a study was
//! lent is used as it is and never dropped. Tables of sysbench's, which have no comment, are known by their names and
//! columns ([`crate::oltp`]), those of a script by the record of its prepare ([`crate::script`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::error::Error;
use crate::names::{self, quoted, text};
use crate::protocol::session::Session;
use crate::table_options::TableOptions;
use crate::text::shown;
use crate::values::Values;
use crate::workload::ServerState;

/// Bytes per statement while a table is filled; any server takes these.
const FILL_BYTES: usize = 512 << 10;

/// Ends the comment of a table whose schema was made for it.
const SCHEMA_TOO: &str = ", schema too";

/// A table of ours, there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTable {
    /// The verb it belongs to.
    pub verb: &'static str,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: &'static str,
    /// The storage engine asked for; else the server chooses.
    pub engine: Option<String>,
    /// What else CREATE TABLE ends in.
    pub options: TableOptions,
}

impl OwnTable {
    /// The table of a verb, from the flags `--schema`, `--engine` and `--table-options`.
    ///
    /// # Errors
    /// A name that cannot be one, or of a schema that is the server's; options that can't end a CREATE TABLE.
    pub fn read(values: &Values<'_>, verb: &'static str, name: &'static str, schema: &str) -> Result<Self, Error> {
        let (schema, engine) = (names::schema(values, "schema", schema)?, names::engine(values)?);
        Ok(Self { verb, schema, name, engine, options: TableOptions::read(values)? })
    }

    /// Schema and name, as SQL quotes them.
    pub fn qualified(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(self.name))
    }

    /// Schema and name, as a message shows them.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// What marks our table, plain ASCII without quotes; also the comment of what goes with it.
    pub fn comment(&self) -> String {
        format!("dbdyno {}", self.verb)
    }

    /// Sees that there is no such table.
    ///
    /// # Errors
    /// There is one.
    pub fn check_absent(&self, session: &mut Session) -> Result<(), Error> {
        match self.owner(session)? {
            Owner::Absent => Ok(()),
            Owner::Other => Err(self.foreign()),
            Owner::Verb => Err(Error::Usage(format!(
                "the table {} exists already: drop it with the last word cleanup, or use it with the last word run",
                self.shown()
            ))),
        }
    }

    /// Makes the table, and its schema if that is missing; takes back what it did if it fails.
    ///
    /// # Errors
    /// The table is there, the server refuses a statement or takes another engine than asked for.
    pub fn make(&self, session: &mut Session, columns: &str, begun: &mut bool) -> Result<(), Error> {
        self.check_absent(session)?;
        let schema_too = !schema_exists(session, &self.schema)?;
        if schema_too {
            session.execute(&format!("CREATE SCHEMA {}", quoted(&self.schema)))?;
        }
        let made = self.create(session, columns, schema_too);
        if made.is_err() {
            // What matters is why it failed.
            let _ = self.drop_schema_if(schema_too, session);
        }
        *begun = made.is_ok();
        made
    }

    fn create(&self, session: &mut Session, columns: &str, schema_too: bool) -> Result<(), Error> {
        let engine = self.engine.as_ref().map_or_else(String::new, |name| format!(" ENGINE = {name}"));
        let comment = self.comment() + if schema_too { SCHEMA_TOO } else { "" };
        session.execute(&format!(
            "CREATE TABLE {} ({columns}){engine} COMMENT = '{comment}'{}",
            self.qualified(),
            self.options
        ))?;
        let checked = self.check_engine(session);
        if checked.is_err() {
            let _ = session.execute(&format!("DROP TABLE {}", self.qualified()));
        }
        checked.map(drop)
    }

    /// Sees that the table is ours, and has these columns and the engine asked for. A column is written
    /// `name type`, or `name type(length)` for one of characters or bytes.
    ///
    /// # Errors
    /// It is not so.
    pub fn check(&self, session: &mut Session, columns: &[String]) -> Result<ServerState, Error> {
        match self.owner(session)? {
            Owner::Verb => {}
            Owner::Other => return Err(self.foreign()),
            Owner::Absent => {
                return Err(Error::Usage(format!(
                    "there is no table {}: make it with the same flags and the last word prepare",
                    self.shown()
                )));
            }
        }
        let engine = self.check_engine(session)?;
        let actual = self.columns(session)?;
        if actual != columns {
            return Err(self.unfit(&format!(
                "has the columns ({}), this load needs ({})",
                shown(&actual.join(", ")),
                columns.join(", ")
            )));
        }
        Ok(ServerState { engine: Some(engine) })
    }

    /// The error for a table of ours that this load can't use.
    pub fn unfit(&self, why: &str) -> Error {
        Error::Usage(format!(
            "the table {} {why}: drop it with the last word cleanup and make it anew with prepare, both with the same flags",
            self.shown()
        ))
    }

    /// Drops the table if it is there, and the schema if it was made for it and holds nothing else.
    ///
    /// # Errors
    /// The table is not ours, or the server refuses.
    pub fn drop(&self, session: &mut Session) -> Result<(), Error> {
        match self.owner(session)? {
            Owner::Absent => Ok(()),
            Owner::Other => Err(self.foreign()),
            Owner::Verb => {
                let comment = self.look_up(session, "TABLE_COMMENT")?;
                let schema_too = comment.is_some_and(|comment| comment.ends_with(SCHEMA_TOO));
                session.execute(&format!("DROP TABLE {}", self.qualified()))?;
                self.drop_schema_if(schema_too, session)
            }
        }
    }

    fn drop_schema_if(&self, ours: bool, session: &mut Session) -> Result<(), Error> {
        if !ours || !holdings(session, &self.schema)?.is_empty() {
            return Ok(());
        }
        session.execute(&format!("DROP SCHEMA IF EXISTS {}", quoted(&self.schema)))
    }

    fn owner(&self, session: &mut Session) -> Result<Owner, Error> {
        let comment = self.look_up(session, "TABLE_COMMENT")?;
        let comment = comment.as_deref().map(|comment| comment.strip_suffix(SCHEMA_TOO).unwrap_or(comment));
        Ok(Owner::by_comment(comment, &self.comment()))
    }

    /// The engine as the server reports it, if it is the one asked for.
    fn check_engine(&self, session: &mut Session) -> Result<String, Error> {
        let got = self.look_up(session, "ENGINE")?.unwrap_or_default();
        match &self.engine {
            Some(engine) if !got.eq_ignore_ascii_case(engine) => {
                Err(self.unfit(&format!("is in the engine {} instead of {engine}", shown(&got))))
            }
            _ => Ok(got),
        }
    }

    /// A column of information_schema.TABLES; `None` if there is no such table.
    fn look_up(&self, session: &mut Session, column: &str) -> Result<Option<String>, Error> {
        let rows = session.query(&format!("SELECT {column} FROM information_schema.TABLES {}", self.filter()))?;
        Ok(rows.into_iter().next().map(|row| row.into_iter().flatten().next().unwrap_or_default()))
    }

    fn columns(&self, session: &mut Session) -> Result<Vec<String>, Error> {
        // Not COLUMN_TYPE: some servers give integers a width in it, others none.
        let rows = session.query(&format!(
            "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS {} \
             ORDER BY ORDINAL_POSITION",
            self.filter()
        ))?;
        let shown = rows.into_iter().map(|row| match row.as_slice() {
            [Some(name), Some(kind), Some(length)] => format!("{name} {kind}({length})"),
            [Some(name), Some(kind), ..] => format!("{name} {kind}"),
            _ => String::new(),
        });
        Ok(shown.collect())
    }

    /// For the tables of information_schema.
    pub fn filter(&self) -> String {
        format!("WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}", names::text(&self.schema), names::text(self.name))
    }

    fn foreign(&self) -> Error {
        Error::Usage(format!(
            "the table {} exists and was not made by dbdyno {}: name another schema with --schema",
            self.shown(),
            self.verb
        ))
    }

    /// Adds `rows` rows, many per statement; `row` appends the parenthesised values of one.
    ///
    /// # Errors
    /// The server refuses, or a request to stop.
    pub fn fill(
        &self,
        session: &mut Session,
        columns: &str,
        rows: u64,
        mut row: impl FnMut(&mut String),
    ) -> Result<(), Error> {
        let head = format!("INSERT INTO {} ({columns}) VALUES ", self.qualified());
        let mut sql = head.clone();
        for left in (0..rows).rev() {
            if sql.len() > head.len() {
                sql.push(',');
            }
            row(&mut sql);
            if sql.len() >= FILL_BYTES || left == 0 {
                session.execute(&sql)?;
                sql.truncate(head.len());
            }
        }
        Ok(())
    }
}

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

/// The table by which a study marks a schema that it was lent, and how its comment begins. Such a schema is used as it
/// is, and never dropped.
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

/// Most connections that fill tables: more only wait for the server.
const SESSIONS_MAX: usize = 64;

/// Does the pieces of work 0 to `pieces` over `sessions` connections: `session` and others like it, which `enter` makes
/// ready. Each does the next piece when it is done with one.
///
/// # Errors
/// The server refuses; all connections stop at the end of their pieces then.
pub fn share_out(
    session: &mut Session,
    sessions: usize,
    pieces: u64,
    enter: impl Fn(&mut Session) -> Result<(), Error>,
    work: impl Fn(&mut Session, u64, &AtomicBool) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let more = (1..sessions.min(SESSIONS_MAX)).map(|_| {
        let mut session = session.another()?;
        enter(&mut session)?;
        Ok(session)
    });
    let mut more = more.collect::<Result<Vec<Session>, Error>>()?;
    let (has_failed, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let fill = |session: &mut Session| {
        while !has_failed.load(Ordering::Relaxed) {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                break;
            }
            work(session, piece, &has_failed).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    let outcome = thread::scope(|scope| {
        let all = std::iter::once(session).chain(&mut more);
        let fillers: Vec<_> = all.map(|session| scope.spawn(|| fill(session))).collect();
        let ends = fillers.into_iter().map(|filler| filler.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        // All are waited for before the first error is looked at.
        ends.collect::<Vec<_>>().into_iter().collect()
    });
    more.into_iter().for_each(Session::quit);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: Vec<(&'static str, Option<&str>)>) -> Result<OwnTable, String> {
        OwnTable::read(&Values::new(flags), "smack", "smack", "usual").map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_checked_and_quoted() {
        assert_eq!(read(Vec::new()).unwrap().qualified(), "`usual`.`smack`");
        assert_eq!(read(vec![("schema", Some("a`b"))]).unwrap().qualified(), "`a``b`.`smack`");
        assert!(read(vec![("schema", Some("MySQL"))]).is_err());
        assert!(read(vec![("engine", Some("x; DROP"))]).is_err());
    }
}
