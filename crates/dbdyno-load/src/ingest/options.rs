//! The flags of `ingest` as one checked value.

use crate::error::Error;
use crate::flags::Flag;
use crate::table_options;
use crate::tables::OwnTable;
use crate::values::Values;

/// Name of the table.
const TABLE: &str = "ingest";

/// Largest value of an indexed column, an INT.
const VALUE_MAX: u32 = i32::MAX as u32;

/// Rows of one event; [`crate::statements::Statement::rows`] holds them.
const EVENT_ROWS_MAX: u32 = 1_000_000_000;

/// Rows of one INSERT: a prepared one takes at most 65,535 parameters, four for each row.
const INSERT_ROWS_MAX: u32 = 10_000;

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::value("mode", "procedure: rows are made by CALLs; statement: by INSERTs"),
    Flag::value("rows", "rows that all clients add together, instead of a duration or a number of events"),
    Flag::value("report-rows", "print a line after this many rows; 0: never"),
    Flag::value("rows-per-call", "procedure: rows per CALL"),
    Flag::value("rows-per-insert", "statement: rows per INSERT"),
    Flag::value("rows-per-commit", "rows per transaction; 1: every INSERT commits by itself"),
    Flag::value("value-range", "greatest indexed value; the least is 0"),
    Flag::value("initial-rows", "rows that prepare adds"),
    Flag::value("db-ps-mode", "auto: prepared statements; disable: text"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("schema", "schema of the table"),
];

/// How rows are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By a stored procedure; an event is a CALL.
    Procedure,
    /// By INSERTs that commit by themselves; an event is an INSERT.
    Insert,
    /// By transactions of some INSERTs; an event is a transaction.
    Transaction,
}

/// All options.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Options {
    pub mode: Mode,
    pub table: OwnTable,
    /// Of a whole run; else something outside bounds it.
    pub rows: Option<u64>,
    pub rows_per_event: u32,
    pub rows_per_insert: u32,
    pub rows_per_commit: u32,
    pub value_range: u32,
    pub initial_rows: u64,
    /// Prepared statements are used.
    pub prepared: bool,
    /// Of the rows that prepare makes.
    pub seed: u64,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range, or two that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let by_call = values.choice("mode", &[("procedure", true), ("statement", false)], true)?;
        let rows_per_call = values.within("rows-per-call", 1000, 1..=EVENT_ROWS_MAX)?;
        let rows_per_insert = values.within("rows-per-insert", 1, 1..=INSERT_ROWS_MAX)?;
        let rows_per_commit = values.within("rows-per-commit", 1, 1..=EVENT_ROWS_MAX)?;
        let (mode, rows_per_event) = if by_call {
            (Mode::Procedure, rows_per_call)
        } else if rows_per_commit <= rows_per_insert {
            (Mode::Insert, rows_per_insert)
        } else {
            (Mode::Transaction, rows_per_commit)
        };
        if by_call && rows_per_commit > rows_per_call {
            return Err(Error::Usage(format!(
                "--rows-per-commit={rows_per_commit}: a CALL commits at its end, so give at most its \
                 --rows-per-call={rows_per_call}"
            )));
        }
        if mode == Mode::Transaction && rows_per_commit % rows_per_insert != 0 {
            return Err(Error::Usage(format!(
                "--rows-per-commit={rows_per_commit}: give a multiple of --rows-per-insert={rows_per_insert}"
            )));
        }
        Ok(Self {
            mode,
            table: OwnTable::read(values, "ingest", TABLE, "dbdyno_ingest")?,
            rows: values.text("rows").map(|_| values.positive("rows", 1)).transpose()?,
            rows_per_event,
            rows_per_insert,
            rows_per_commit,
            value_range: values.within("value-range", 100_000_000, 1..=VALUE_MAX)?,
            initial_rows: values.number("initial-rows", 0)?,
            prepared: values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?,
            seed: values.number("seed", 1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, &'static str)]) -> Result<Options, String> {
        Options::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_event_is_what_commits_or_calls() {
        let event = |flags: &[_]| read(flags).map(|options| (options.mode, options.rows_per_event));
        let statement = ("mode", "statement");
        assert_eq!(event(&[]), Ok((Mode::Procedure, 1000)));
        // A flag of the other mode says nothing, so that a study may vary the mode alone.
        assert_eq!(event(&[("rows-per-call", "7"), ("rows-per-insert", "5")]), Ok((Mode::Procedure, 7)));
        assert_eq!(event(&[statement]), Ok((Mode::Insert, 1)));
        assert_eq!(event(&[statement, ("rows-per-insert", "5"), ("rows-per-commit", "3")]), Ok((Mode::Insert, 5)));
        let both = [statement, ("rows-per-insert", "5"), ("rows-per-commit", "15")];
        assert_eq!(event(&both), Ok((Mode::Transaction, 15)));
    }

    #[test]
    fn contradictions_are_named() {
        let said = |flags: &[_]| read(flags).unwrap_err();
        let statement = ("mode", "statement");
        assert!(said(&[("rows-per-commit", "2000")]).contains("at most its --rows-per-call=1000"));
        assert!(said(&[statement, ("rows-per-insert", "4"), ("rows-per-commit", "6")]).contains("a multiple"));
        assert!(said(&[("value-range", "2147483648")]).contains("1 to 2147483647"));
        assert!(said(&[("rows", "0")]).contains("at least 1"));
    }
}
