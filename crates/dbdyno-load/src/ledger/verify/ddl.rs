//! What is left of the tables of the DDL mix.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::protocol::reply::ProtocolError;

use super::super::record::{Header, Record};
use super::super::schema::Tables;
use super::super::verdict::{Cut, Finding};
use super::scan::{Inspection, number, text};
use crate::ledger::ddl::{
    DdlVerdict, IDS, Object, Observed, PARTITIONED, PARTITIONS, PREFIX, ROWS, State, Step, initial_name,
    judge_statements, renamed, stray,
};

/// The rows of a table or a partition.
#[derive(Debug, Clone, Copy)]
struct Rows {
    count: u64,
    least: u64,
    most: u64,
}

impl Rows {
    /// As a state; part of a statement's rows can be there where the engine has no transactions.
    fn state(self, transactional: bool) -> State {
        let Self { count, least, most } = self;
        match count {
            0 => State::Empty,
            ROWS if least == most => State::Full(least),
            _ if !transactional => State::Empty,
            _ => State::Strange(format!(
                "{count} rows are there instead of {ROWS} or none, with values {least} to {most}"
            )),
        }
    }
}

/// What can be seen of the tables.
#[derive(Default)]
struct Sight {
    seen: Observed,
    /// Tables whose rows can't be read.
    unreadable: BTreeSet<u64>,
    strays: Vec<Finding>,
}

/// Looks at all of them.
///
/// # Errors
/// A request to stop.
pub fn judge(
    header: &Header,
    tables: &Tables,
    records: &[Record],
    cut: Cut,
    inspection: &mut Inspection,
) -> Result<DdlVerdict, Error> {
    let Some(columns) = columns(tables, inspection)? else { return Ok(DdlVerdict::default()) };
    columns.keys().try_for_each(|name| inspection.check(name))?;
    let mut sight = Sight::default();
    sight.partitions(header, tables, columns.contains_key(PARTITIONED), inspection)?;
    let rounds: BTreeSet<u64> =
        records.iter().filter_map(|record| Step::from_number(record.key.sequence).makes()).collect();
    for (name, count) in columns.iter().filter(|(name, _)| *name != PARTITIONED) {
        match round_of(name).filter(|round| rounds.contains(round)) {
            Some(round) => sight.table((name, *count, round), header, tables, inspection)?,
            None => sight.strays.push(stray(format!("(CREATE TABLE {name}) was never sent"))),
        }
    }
    let Sight { seen, unreadable, strays } = sight;
    let mut judged = judge_statements(records, cut, |object| match object {
        Object::Table(round) if !unreadable.contains(&round) => {
            Some(seen.get(&object).cloned().unwrap_or(State::Absent))
        }
        // Of a table that is not there no rows are looked for.
        _ => seen.get(&object).cloned(),
    });
    judged.findings.extend(strays);
    Ok(judged)
}

impl Sight {
    fn partitions(
        &mut self,
        header: &Header,
        tables: &Tables,
        is_there: bool,
        inspection: &mut Inspection,
    ) -> Result<(), Error> {
        let rows = if is_there { partitions(tables, inspection)? } else { None };
        for partition in 0..PARTITIONS {
            let state = match &rows {
                Some(rows) => rows.get(&partition).map_or(State::Empty, |rows| rows.state(header.transactional)),
                // It could not be read.
                None if is_there => continue,
                None => State::Strange(format!("the table {PARTITIONED} is not there")),
            };
            self.seen.insert(Object::Partition(partition), state);
        }
        Ok(())
    }

    /// A table of this name, with so many columns, of this round.
    fn table(
        &mut self,
        (name, columns, round): (&str, u64, u64),
        header: &Header,
        tables: &Tables,
        inspection: &mut Inspection,
    ) -> Result<(), Error> {
        let state = table_state(name, columns, round);
        let is_strange = matches!(state, State::Strange(_));
        if self.seen.insert(Object::Table(round), state).is_some() {
            let twice = State::Strange("it is there under both names".into());
            self.seen.insert(Object::Table(round), twice);
        }
        if is_strange {
            return Ok(());
        }
        match rows_of(tables, name, inspection)? {
            Some(rows) => _ = self.seen.insert(Object::Rows(round), rows.state(header.transactional)),
            None => _ = self.unreadable.insert(round),
        }
        Ok(())
    }
}

/// Names of the tables, and how many columns each has; `None` if that can't be read.
fn columns(tables: &Tables, inspection: &mut Inspection) -> Result<Option<BTreeMap<String, u64>>, Error> {
    let mut columns = BTreeMap::new();
    let sql = format!(
        "SELECT TABLE_NAME, COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND \
         LEFT(TABLE_NAME, {}) = {} GROUP BY TABLE_NAME",
        crate::names::text(tables.schema()),
        PREFIX.len(),
        crate::names::text(PREFIX)
    );
    let listed = inspection.rows("ddl", &sql, |mut row| {
        let name = text(&mut row)?.map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        columns.insert(name, number(&mut row)? as u64);
        Ok(())
    })?;
    Ok(listed.then_some(columns))
}

/// A table by its name and its columns.
fn table_state(name: &str, columns: u64, round: u64) -> State {
    match (columns, name == initial_name(round)) {
        (3, true) => State::Made,
        (4, true) => State::Altered,
        (4, false) => State::Renamed,
        _ => State::Strange(format!("the table {name} has {columns} columns")),
    }
}

/// The round whose table has this name.
fn round_of(name: &str) -> Option<u64> {
    let round = name.strip_prefix(PREFIX)?.split('_').next()?.parse().ok()?;
    (initial_name(round) == name || renamed(round) == name).then_some(round)
}

fn rows_of(tables: &Tables, name: &str, inspection: &mut Inspection) -> Result<Option<Rows>, Error> {
    let sql =
        format!("SELECT COUNT(*), COALESCE(MIN(value), 0), COALESCE(MAX(value), 0) FROM {}", tables.qualified(name));
    let mut rows = None;
    let read = inspection.rows(name, &sql, |mut row| {
        rows = Some(counted(&mut row)?);
        Ok(())
    })?;
    Ok(rows.filter(|_| read))
}

fn partitions(tables: &Tables, inspection: &mut Inspection) -> Result<Option<BTreeMap<u64, Rows>>, Error> {
    let sql = format!(
        "SELECT id DIV {IDS}, COUNT(*), MIN(value), MAX(value) FROM {} GROUP BY 1",
        tables.qualified(PARTITIONED)
    );
    let mut partitions = BTreeMap::new();
    let read = inspection.rows(PARTITIONED, &sql, |mut row| {
        let partition = number(&mut row)? as u64;
        partitions.insert(partition, counted(&mut row)?);
        Ok(())
    })?;
    Ok(read.then_some(partitions))
}

fn counted(row: &mut &[u8]) -> Result<Rows, ProtocolError> {
    let [count, least, most] = [number(row)?, number(row)?, number(row)?].map(|number| number as u64);
    Ok(Rows { count, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_their_names() {
        assert_eq!([round_of("ddl_12"), round_of("ddl_7_renamed"), round_of("ddl_parts")], [Some(12), Some(7), None]);
        assert_eq!([round_of("ddl_07"), round_of("ddl_7_other"), round_of("other")], [None; 3]);
        assert_eq!(table_state("ddl_1", 4, 1), State::Altered);
        assert!(matches!(table_state("ddl_1_renamed", 3, 1), State::Strange(_)));
    }

    #[test]
    fn half_a_statement_is_strange_only_with_transactions() {
        let rows = Rows { count: 7, least: 1, most: 1 };
        assert_eq!(rows.state(false), State::Empty);
        assert!(matches!(rows.state(true), State::Strange(_)));
        assert_eq!(Rows { count: ROWS, ..rows }.state(true), State::Full(1));
    }
}
