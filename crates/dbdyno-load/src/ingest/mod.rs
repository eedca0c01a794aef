//! The verb `ingest`: rows streamed into one table with secondary indexes, by a stored procedure or by statements.

mod options;
mod writer;

use std::fmt::Write as _;

use dbdyno_common::random::Random;

use crate::error::Error;
use crate::names::{self, quoted};
use crate::protocol::session::Session;
use crate::statements::{Kind, Statements};
use crate::tables::Owner;
use crate::text::shown;
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

use self::writer::PROCEDURE;
use options::{FLAGS, Mode, Options};
use writer::Writer;

const ABOUT: &str = "\
Adds rows to a table with an AUTO_INCREMENT key, three random integers with an index each, and a varchar(100) of 40
characters. A run ends after --rows of all clients together, or by --duration or --events.

--mode=procedure: an event is a CALL of a stored procedure that adds --rows-per-call rows. Its latency is time in the
server alone, without the round trips, parsing and client's work on which single rows spend most of their time: divide it
by the rows, and do not compare it with the latency of a statement. Rows are counted when their CALL ends: --report-rows,
--series and --duration cannot be finer than that. A CALL must end within --stall-timeout. The server's RAND() makes the
values, so --seed has no effect on them.

--mode=statement: an event is an INSERT of --rows-per-insert rows, or with a greater --rows-per-commit a transaction of
such INSERTs; its latency includes all round trips. A refused transaction is rolled back and tried again, a refused
INSERT or CALL is not.

With --rows-per-commit=1, as in engines without transactions, every row of a CALL, or every INSERT, commits by itself and
with InnoDB waits for the log to be flushed. With more, a CALL commits after that many rows and at its end.

prepare always makes the procedure too, so that both modes can run on one table.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "ingest",
    about: ABOUT,
    flags: FLAGS,
    loads: &[],
    word: None,
    has_phase_flag: false,
    workload: make,
    own: None,
};

fn make(values: &Values<'_>, load: &str) -> Result<Box<dyn Stepwise>, Error> {
    if !load.is_empty() {
        return Err(Error::Usage(format!("ingest has no load {load:?}: see --mode")));
    }
    Ok(Box::new(Ingest { options: Options::read(values)? }))
}

/// The load with its options.
#[derive(Debug)]
struct Ingest {
    options: Options,
}

impl Ingest {
    fn procedure(&self, session: &mut Session) -> Result<Owner, Error> {
        let table = &self.options.table;
        let rows = session.query(&format!(
            "SELECT ROUTINE_COMMENT FROM information_schema.ROUTINES \
             WHERE ROUTINE_SCHEMA = {} AND ROUTINE_NAME = '{PROCEDURE}'",
            names::text(&table.schema)
        ))?;
        let comment = rows.into_iter().next().map(|row| row.into_iter().flatten().next().unwrap_or_default());
        Ok(Owner::by_comment(comment.as_deref(), &table.comment()))
    }

    fn foreign(&self) -> Error {
        Error::Usage(format!(
            "the procedure {}.{PROCEDURE} was not made by dbdyno ingest: name another schema with --schema",
            self.options.table.schema
        ))
    }

    fn drop_procedure(&self) -> String {
        format!("DROP PROCEDURE {}.{PROCEDURE}", quoted(&self.options.table.schema))
    }

    fn fill(&self, session: &mut Session) -> Result<(), Error> {
        let options = &self.options;
        let table = &options.table;
        let mut random = Random::new(options.seed);
        let text = String::from_utf8_lossy(writer::TEXT);
        table.fill(session, writer::COLUMNS, options.initial_rows, |sql| {
            let [b1, b2, b3] = [(); 3].map(|()| random.below(u64::from(options.value_range) + 1));
            // Writing to a string cannot fail.
            let _ = write!(sql, "({b1},{b2},{b3},'{text}')");
        })?;
        session.execute(&format!("ALTER TABLE {} {}", table.qualified(), writer::add_indexes()))
    }

    /// prepare adds the indexes last, so that a table without them was not finished.
    fn check_indexes(&self, session: &mut Session) -> Result<(), Error> {
        let table = &self.options.table;
        let rows = session.values(&format!(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS {} AND INDEX_NAME <> 'PRIMARY' ORDER BY COLUMN_NAME",
            table.filter()
        ))?;
        if rows != writer::INDEXED {
            return Err(table.unfit(&format!(
                "has indexes on ({}), this load needs ({})",
                shown(&rows.join(", ")),
                writer::INDEXED.join(", ")
            )));
        }
        Ok(())
    }

    fn check_rows(&self, session: &mut Session) -> Result<(), Error> {
        let table = &self.options.table;
        let last = session.value(&format!("SELECT COALESCE(MAX(id), 0) FROM {}", table.qualified()))?.unwrap_or(0_u64);
        if last < self.options.initial_rows {
            return Err(
                table.unfit(&format!("has at most {last} rows, but --initial-rows={}", self.options.initial_rows))
            );
        }
        Ok(())
    }
}

impl Workload for Ingest {
    fn load(&self) -> &str {
        match self.options.mode {
            Mode::Procedure => "procedure",
            Mode::Insert | Mode::Transaction => "statement",
        }
    }

    fn schema(&self) -> &str {
        &self.options.table.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        match self.options.mode {
            Mode::Procedure => vec![Kind::query("call")],
            Mode::Insert => vec![Kind::query("insert")],
            Mode::Transaction => {
                vec![Kind::query("insert"), Kind::apart("begin"), Kind::apart("commit"), Kind::apart("rollback")]
            }
        }
    }

    fn prepared(&self) -> Vec<String> {
        writer::prepared(&self.options)
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(Writer::new(&self.options, portion)))
    }
}

impl Stepwise for Ingest {
    fn is_bounded(&self) -> bool {
        self.options.rows.is_some()
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        let table = &self.options.table;
        let before = self.procedure(session)?;
        if before == Owner::Other {
            return Err(self.foreign());
        }
        table.make(session, writer::DEFINITION, begun)?;
        if before == Owner::Verb {
            // Left without its table.
            session.execute(&self.drop_procedure())?;
        }
        let create = writer::create_procedure(&quoted(&table.schema), &table.comment());
        session.execute(&create)?;
        self.fill(session)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let table = &self.options.table;
        let columns = table.check(session, &writer::FOUND.map(str::to_owned))?;
        self.check_indexes(session)?;
        self.check_rows(session)?;
        if self.options.mode == Mode::Procedure {
            match self.procedure(session)? {
                Owner::Verb => {}
                Owner::Other => return Err(self.foreign()),
                Owner::Absent => return Err(table.unfit(&format!("lacks the procedure {PROCEDURE} beside it"))),
            }
        }
        Ok(columns)
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        let table = &self.options.table;
        match self.procedure(session)? {
            Owner::Absent => {}
            Owner::Other => return Err(self.foreign()),
            Owner::Verb => session.execute(&self.drop_procedure())?,
        }
        table.drop(session)
    }
}
