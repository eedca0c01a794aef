//! The verb `tpcc`: the transactions and tables of TPC-C, as the standard (revision 5.11) describes them.
//!
//! Data flows one way: flags ([`options`]) -> transactions, drawn at random -> their statements ([`sql`]) -> the
//! clients ([`transaction`]). [`schema`] and [`fill`] make the tables.
//!
//! What is checked of the tables are the consistency conditions of clause 3.3.2 that can be looked at without an index
//! that the standard does not ask for: all of the twelve but the tenth, for which the history of each customer would
//! have to be found.
//!
//! Cannot: be a TPC result.
#![allow(clippy::cast_possible_wrap, reason = "numbers of warehouses, rows and clients are far below 2^63")]

use std::fmt::Write as _;

use self::options::Options;
use self::transaction::Terminals;
use crate::dialect::error_codes::TRANSACTION_RETRYABLE;
use crate::error::Error;
use crate::output::result::{self, RunResult};
use crate::protocol::session::Session;
use crate::run_options::Ignore;
use crate::statements::{Kind, Statements};
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

mod fill;
mod options;
mod schema;
mod sql;
mod transaction;

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
        let count: i64 = session.value("SELECT COUNT(*) FROM warehouse")?.unwrap_or(0);
        if count != *warehouses {
            return Err(tables[0].unfit(&format!("has {count} warehouses instead of --warehouses={warehouses}")));
        }
        // The indexes come last.
        let sql = format!(
            "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND INDEX_NAME IN \
             ('customer_name', 'orders_customer')",
            crate::names::text(&self.options.schema)
        );
        match session.value::<usize>(&sql)? {
            Some(count) if count == schema::INDEXES.len() => Ok(()),
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
        let mut state = ServerState::default();
        for (table, columns) in self.options.tables.iter().zip(schema::TABLES) {
            state = table.check(session, &columns.to_compare())?;
        }
        session.execute(&format!("USE {}", crate::names::quoted(&self.options.schema)))?;
        self.check_scale(session)?;
        self.check_conditions(session, CHEAP, "before the run")?;
        Ok(state)
    }

    fn after_run(&self, session: &mut Session) -> Result<(), Error> {
        self.check_conditions(session, LASTING, "after the run")
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        let mut text = String::new();
        for run in runs {
            let counted = run.kinds.iter().zip(&run.tally.kinds).find(|(kind, _)| kind.name == "new_order");
            let minute = counted.map_or(0.0, |(_, latencies)| run.per_second(latencies.count()) * 60.0);
            text.push_str(result::summary(run).trim_end());
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

/// A condition: a query gives a row for what breaks it, and says what that is.
struct Condition {
    /// Its number in the standard.
    number: u8,
    /// What must hold.
    rule: &'static str,
    /// `{w}` stands for a warehouse; with none, one query is for all.
    sql: &'static str,
}

const fn condition(number: u8, rule: &'static str, sql: &'static str) -> Condition {
    Condition { number, rule, sql }
}

const ONE: Condition = condition(
    1,
    "W_YTD = sum(D_YTD)",
    "SELECT CONCAT('warehouse ', w_id, ': ', w_ytd, ' is not ', total) FROM warehouse JOIN (SELECT d_w_id, SUM(d_ytd) AS \
     total FROM district GROUP BY d_w_id) AS sums ON d_w_id = w_id WHERE w_ytd <> total LIMIT 1",
);
const TWO: Condition = condition(
    2,
    "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
    "SELECT CONCAT('warehouse ', d_w_id, ', district ', d_id, ': ', d_next_o_id - 1, ', ', COALESCE(orders_max, 'none'), \
     ' and ', COALESCE(new_max, 'none')) FROM (SELECT d_w_id, d_id, d_next_o_id, \
     (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS orders_max, \
     (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS new_max FROM district) AS found \
     WHERE orders_max IS NULL OR d_next_o_id - 1 <> orders_max OR d_next_o_id - 1 <> new_max LIMIT 1",
);
const THREE: Condition = condition(
    3,
    "max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER",
    "SELECT CONCAT('warehouse ', no_w_id, ', district ', no_d_id, ': ', MIN(no_o_id), ' to ', MAX(no_o_id), ' in ', COUNT(*), \
     ' rows') FROM new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*) LIMIT 1",
);
const FOUR: Condition = condition(
    4,
    "sum(O_OL_CNT) = rows in ORDER-LINE",
    "SELECT CONCAT('warehouse ', o_w_id, ', district ', o_d_id, ': ', wanted, ' is not ', COALESCE(lines_found, 0)) FROM \
     (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS wanted FROM orders WHERE o_w_id = {w} GROUP BY o_w_id, o_d_id) AS a LEFT JOIN \
     (SELECT ol_w_id, ol_d_id, COUNT(*) AS lines_found FROM order_line WHERE ol_w_id = {w} GROUP BY ol_w_id, ol_d_id) AS b \
     ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE lines_found IS NULL OR wanted <> lines_found LIMIT 1",
);
const FIVE: Condition = condition(
    5,
    "O_CARRIER_ID is null where there is a row in NEW-ORDER, and only there",
    "SELECT CONCAT('warehouse ', o_w_id, ', district ', o_d_id, ', order ', o_id) FROM orders LEFT JOIN new_order ON \
     no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_w_id = {w} AND (o_carrier_id IS NULL) <> \
     (no_o_id IS NOT NULL) LIMIT 1",
);
const SIX: Condition = condition(
    6,
    "O_OL_CNT = rows in ORDER-LINE of the order",
    "SELECT CONCAT('warehouse ', o_w_id, ', district ', o_d_id, ', order ', o_id, ': ', o_ol_cnt, ' is not ', \
     COALESCE(lines_found, 0)) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS lines_found FROM order_line \
     WHERE ol_w_id = {w} GROUP BY ol_w_id, ol_d_id, ol_o_id) AS b ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
     WHERE o_w_id = {w} AND (lines_found IS NULL OR o_ol_cnt <> lines_found) LIMIT 1",
);
const SEVEN: Condition = condition(
    7,
    "OL_DELIVERY_D is null where O_CARRIER_ID is, and only there",
    "SELECT CONCAT('warehouse ', ol_w_id, ', district ', ol_d_id, ', order ', ol_o_id, ', line ', ol_number) FROM order_line \
     JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id WHERE ol_w_id = {w} AND \
     (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) LIMIT 1",
);
const EIGHT: Condition = condition(
    8,
    "W_YTD = sum(H_AMOUNT)",
    "SELECT CONCAT('warehouse ', w_id, ': ', w_ytd, ' is not ', COALESCE(total, 0)) FROM warehouse LEFT JOIN (SELECT h_w_id, \
     SUM(h_amount) AS total FROM history GROUP BY h_w_id) AS sums ON h_w_id = w_id WHERE total IS NULL OR w_ytd <> total LIMIT 1",
);
const NINE: Condition = condition(
    9,
    "D_YTD = sum(H_AMOUNT)",
    "SELECT CONCAT('warehouse ', d_w_id, ', district ', d_id, ': ', d_ytd, ' is not ', COALESCE(total, 0)) FROM district \
     LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) AS sums ON h_w_id = d_w_id \
     AND h_d_id = d_id WHERE total IS NULL OR d_ytd <> total LIMIT 1",
);
const ELEVEN: Condition = condition(
    11,
    "rows in ORDER - rows in NEW-ORDER = 2100",
    "SELECT CONCAT('warehouse ', o_w_id, ', district ', o_d_id, ': ', orders_found, ' - ', COALESCE(new_found, 0)) FROM \
     (SELECT o_w_id, o_d_id, COUNT(*) AS orders_found FROM orders GROUP BY o_w_id, o_d_id) AS a LEFT JOIN (SELECT no_w_id, \
     no_d_id, COUNT(*) AS new_found FROM new_order GROUP BY no_w_id, no_d_id) AS b ON no_w_id = o_w_id AND no_d_id = o_d_id \
     WHERE new_found IS NULL OR orders_found - new_found <> 2100 LIMIT 1",
);
const TWELVE: Condition = condition(
    12,
    "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of what was delivered",
    "SELECT CONCAT('warehouse ', c_w_id, ', district ', c_d_id, ', customer ', c_id, ': ', c_balance + c_ytd_payment, \
     ' is not ', COALESCE(total, 0)) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS total FROM orders \
     JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_w_id = {w} AND ol_delivery_d IS NOT \
     NULL GROUP BY o_w_id, o_d_id, o_c_id) AS sums ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_w_id = {w} \
     AND c_balance + c_ytd_payment <> COALESCE(total, 0) LIMIT 1",
);

/// Those that read little, so that a check leaves a server's memory as it was.
const CHEAP: &[&Condition] = &[&ONE, &TWO, &THREE];

/// Those that hold at all times.
const LASTING: &[&Condition] = &[&ONE, &TWO, &THREE, &FOUR, &FIVE, &SIX, &SEVEN, &EIGHT, &NINE, &TWELVE];

/// What holds until the first run.
const INITIAL: &[&Condition] = &[&ELEVEN];

impl Condition {
    /// Sees that it holds.
    ///
    /// # Errors
    /// It does not; names the condition and the first place where it is broken.
    pub fn check(&self, session: &mut Session, options: &Options, when: &str) -> Result<(), Error> {
        let warehouses = if self.sql.contains("{w}") { options.warehouses } else { 1 };
        for warehouse in 1..=warehouses {
            let sql = self.sql.replace("{w}", &warehouse.to_string());
            if let Some(violation) = session.values(&sql)?.into_iter().next() {
                let Self { number, rule, .. } = self;
                return Err(Error::Failed(format!(
                    "TPC-C's consistency condition {number} ({rule}) does not hold {when}: {violation}: see the \
                     server's error log, and make the tables anew with cleanup and prepare"
                )));
            }
        }
        Ok(())
    }
}
