//! `oltp`: sysbench's OLTP loads, with its tables, statements and flags. `prepare` fills several tables at once.
//!
//! Every statement counts as a query, BEGIN and COMMIT too, as in sysbench's `queries performed`. `insert` is never
//! prepared, as there.
//!
//! Cannot: PostgreSQL, sysbench's `prewarm` and Lua scripts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clients::{Clients, prepared};
use options::Options;
use strum::VariantNames as _;

use self::event::Load;
use self::tables::{BATCH_BYTES, Filler, Stage};
use crate::dialect;
use crate::error::Error;
use crate::protocol::session::Session;
use crate::run_options::Ignore;
use crate::statements::{Kind, Statements};
use crate::tables::share_out;
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

pub mod bulk;
mod clients;
mod event;
mod options;
mod tables;

const ABOUT: &str = "\
sysbench's OLTP loads on its tables sbtest1, sbtest2, ...; sysbench's own flags work, too.
sysbench's names of loads, such as oltp_read_write, mean the same. A run lasts 10 seconds unless --duration or --events says otherwise. prepare fills
as many tables at once as there are clients.

Statements are prepared, except those of insert, and counted as sysbench counts them: BEGIN and COMMIT are queries too. After
an error that is ignored (1213, 1020 and 1205 unless --ignore-errors says otherwise) the event starts over with other
values and its latency runs on; BEGIN then commits what a transaction had done before a lock wait timeout.

insert --auto-inc=off uses ids that no row has, provided that nothing else adds rows; prepare leaves its tables empty.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "oltp",
    about: ABOUT,
    flags: options::FLAGS,
    loads: Load::VARIANTS,
    word: None,
    has_phase_flag: false,
    workload: |values, load| Ok(Box::new(Oltp::new(values, load)?)),
    own: None,
};

/// A load of sysbench.
#[derive(Debug)]
pub struct Oltp {
    options: Options,
    /// The server prepares BEGIN and COMMIT; known after a check.
    prepares_transactions: AtomicBool,
    /// How many ids were made up so far, in the tables and by all runs.
    made_ids: AtomicU64,
}

impl Oltp {
    /// The load of that name.
    ///
    /// # Errors
    /// A flag that is wrong or cannot be honoured.
    pub fn new(values: &Values<'_>, load: &str) -> Result<Self, Error> {
        let options = Options::read(values, load)?;
        Ok(Self { options, prepares_transactions: AtomicBool::new(false), made_ids: AtomicU64::new(0) })
    }

    fn stage(&self) -> Stage<'_> {
        Stage { schema: &self.options.schema, tables: &self.options.tables }
    }

    fn prepares_transactions(&self) -> bool {
        self.prepares_transactions.load(Ordering::Relaxed)
    }

    /// Asks the server whether it prepares BEGIN.
    fn try_prepare_begin(session: &mut Session) -> Result<bool, Error> {
        match session.execute("PREPARE dbdyno FROM 'BEGIN'") {
            Ok(()) => session.execute("DEALLOCATE PREPARE dbdyno").map(|()| true),
            Err(Error::Statement { error, .. }) if error.code == dialect::error_codes::UNPREPARABLE => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Sees that the server takes the prepared statements of all clients.
    fn check_prepared(&self, session: &mut Session) -> Result<(), Error> {
        let per_client = Workload::prepared(self).len();
        let clients = self.options.clients;
        match session.value(dialect::PREPARED_MAX_SQL)? {
            Some(limit) if clients.saturating_mul(per_client) > limit => Err(Error::Usage(format!(
                "{clients} clients prepare {per_client} statements each, the server's max_prepared_stmt_count is \
                 {limit}: raise it, or give --db-ps-mode=disable"
            ))),
            _ => Ok(()),
        }
    }
}

impl Workload for Oltp {
    fn load(&self) -> &str {
        self.options.load.into()
    }

    fn schema(&self) -> &str {
        &self.options.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        self.options.event.kinds.iter().map(|name| Kind::query(name)).collect()
    }

    fn prepared(&self) -> Vec<String> {
        prepared(&self.options, self.prepares_transactions()).0
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        let (_, numbers) = prepared(&self.options, self.prepares_transactions());
        Ok(Box::new(Clients::new(&self.options, numbers, &self.made_ids, portion)))
    }
}

impl Stepwise for Oltp {
    /// Deadlock, row changed since it was read, lock wait timeout: sysbench's.
    fn ignored_errors(&self) -> Ignore {
        Ignore::Codes(dialect::error_codes::TRANSACTION_RETRYABLE.into())
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        self.stage().enter_or_make(session)?;
        self.stage().check_absent(session)?;
        *begun = true;
        fill(session, self.stage(), &self.options)?;
        self.stage().check(session).map(drop)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let engine = self.stage().check(session)?;
        if self.options.needs_rows() {
            self.stage().check_rows(session)?;
        }
        if self.options.makes_ids() {
            self.made_ids.store(self.stage().count_rows(session)?, Ordering::Relaxed);
        }
        if self.options.prepared {
            self.prepares_transactions.store(Self::try_prepare_begin(session)?, Ordering::Relaxed);
            self.check_prepared(session)?;
        }
        Ok(ServerState { engine })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        self.stage().clear(session)
    }
}

/// Makes all tables with their rows and indexes, over as many connections as the load has clients, a table over one at
/// a time. A load that makes up ids finds its tables empty, as rows would take them.
///
/// # Errors
/// The server refuses.
pub fn fill(session: &mut Session, stage: Stage<'_>, options: &Options) -> Result<(), Error> {
    let tables = options.tables.count;
    let sessions = options.clients.min(tables as usize);
    let enter = |session: &mut Session| stage.enter(session);
    share_out(session, sessions, tables.into(), enter, |session, table, has_failed| {
        fill_table(session, options, table as u32 + 1, has_failed)
    })
}

fn fill_table(session: &mut Session, options: &Options, number: u32, has_failed: &AtomicBool) -> Result<(), Error> {
    let tables = &options.tables;
    session.execute(&tables.create(number))?;
    if !options.makes_ids() {
        let mut filler = Filler::new(tables, number, options.distribution, options.seed, BATCH_BYTES);
        let mut statement = Vec::with_capacity(BATCH_BYTES);
        while !has_failed.load(Ordering::Relaxed) && filler.write(&mut statement) > 0 {
            session.execute(&String::from_utf8_lossy(&statement))?;
        }
    }
    tables.create_index(number).map_or(Ok(()), |index| session.execute_long(&index))
}
