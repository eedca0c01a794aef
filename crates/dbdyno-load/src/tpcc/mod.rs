//! The verb `tpcc`: the transactions and tables of TPC-C, as the standard (revision 5.11) describes them.
//!
//! Data flows one way: flags ([`options`]) -> transactions, drawn at random ([`draw`]) -> their statements ([`transaction`], [`sql`])
//! -> the clients ([`terminals`]). [`schema`] and [`fill`] make the tables; [`consistency`] checks them.
//!
//! Cannot: be a TPC result.
#![allow(clippy::cast_possible_wrap, reason = "numbers of warehouses, rows and clients are far below 2^63")]

mod consistency;
mod draw;
mod fill;
mod options;
mod schema;
mod sql;
mod terminals;
mod transaction;

use std::fmt::Write as _;

use crate::dialect::TRANSACTION_RETRYABLE;
use crate::error::Error;
use crate::output::report;
use crate::output::result::RunResult;
use crate::protocol::session::Session;
use crate::run_options::Ignore;
use crate::statements::{Kind, Statements};
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

use consistency::{CHEAP, Condition, INITIAL, LASTING};
use options::Options;
use terminals::Terminals;

const ABOUT: &str = "\
The five transactions of TPC-C over its nine tables, about 100 MB a warehouse. The figure is new orders per minute. It is not a
TPC result and must not be called tpmC: nothing here was audited, and without --keying=on terminals neither key nor think.

An event is a transaction; each of the five has its own latencies. After a deadlock, a lock wait timeout or a row changed since
it was read (1213, 1205, 1020) a transaction is rolled back and sent again with the same values, and its latency runs on. One
New-Order in a hundred asks for an item that does not exist and is rolled back, as the standard wants it; it counts separately.

The data is checked against the standard's consistency conditions: 1 to 9, 11 and 12 after prepare, 1 to 3 before each run
and 1 to 9 and 12 after it. A condition that does not hold is named, with exit code 1.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "tpcc",
    about: ABOUT,
    flags: options::FLAGS,
    loads: &["tpcc"],
    word: None,
    has_phase_flag: false,
    workload: |values, _| Ok(Box::new(Tpcc { options: Options::read(values)? })),
    own: None,
};

/// The load with its options.
struct Tpcc {
    options: Options,
}

impl Tpcc {
    fn check_conditions(&self, session: &mut Session, conditions: &[&Condition], when: &str) -> Result<(), Error> {
        conditions.iter().try_for_each(|condition| condition.check(session, &self.options, when))
    }

    /// Sees that the tables hold as many warehouses as were asked for, all of them filled.
    fn check_scale(&self, session: &mut Session) -> Result<(), Error> {
        let Options { warehouses, tables, .. } = &self.options;
        let found: i64 = session.value("SELECT COUNT(*) FROM warehouse")?.unwrap_or(0);
        if found != *warehouses {
            return Err(tables[0].unfit(&format!("has {found} warehouses instead of --warehouses={warehouses}")));
        }
        // The indexes come last.
        let sql = format!(
            "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND INDEX_NAME IN \
             ('customer_name', 'orders_customer')",
            crate::names::text(&self.options.schema)
        );
        match session.value::<usize>(&sql)? {
            Some(found) if found == schema::INDEXES.len() => Ok(()),
            _ => Err(tables[0].unfit("comes from a prepare that was not finished")),
        }
    }
}

impl Workload for Tpcc {
    fn load(&self) -> &'static str {
        "tpcc"
    }

    fn schema(&self) -> &str {
        &self.options.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        sql::kinds()
    }

    fn prepared(&self) -> Vec<String> {
        sql::QUERIES.iter().map(|query| query.text.to_owned()).collect()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(Terminals::new(&self.options, portion)))
    }
}

impl Stepwise for Tpcc {
    fn clients(&self) -> Option<usize> {
        self.options.terminals()
    }

    fn ignored_errors(&self) -> Ignore {
        Ignore::Codes(TRANSACTION_RETRYABLE.into())
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        fill::prepare(session, &self.options, begun)?;
        self.check_conditions(session, LASTING, "after prepare")?;
        self.check_conditions(session, INITIAL, "after prepare")
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let mut found = ServerState::default();
        for (table, columns) in self.options.tables.iter().zip(schema::TABLES) {
            found = table.check(session, &columns.to_compare())?;
        }
        session.execute(&format!("USE {}", crate::names::quoted(&self.options.schema)))?;
        self.check_scale(session)?;
        self.check_conditions(session, CHEAP, "before the run")?;
        Ok(found)
    }

    fn after_run(&self, session: &mut Session) -> Result<(), Error> {
        self.check_conditions(session, LASTING, "after the run")
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        let mut text = String::new();
        for run in runs {
            let counted = run.kinds.iter().zip(&run.tally.kinds).find(|(kind, _)| kind.name == "new_order");
            let minute = counted.map_or(0.0, |(_, latencies)| run.per_second(latencies.count()) * 60.0);
            text.push_str(report::summary(run).trim_end());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n    {:<22} {minute:.1} per minute (not a TPC result)\n", "new orders");
        }
        Ok(text)
    }

    /// The table whose comment says whose the schema is goes last.
    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        self.options.tables.iter().rev().try_for_each(|table| table.drop(session))
    }
}
