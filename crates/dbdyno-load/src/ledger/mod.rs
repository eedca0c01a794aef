//! The verb `ledger`: transactions that are all known afterwards, and a verifier that says what is left of them.
//!
//! Data flows one way: what a transaction holds ([`content`]) -> the clients and their statements ([`clients`]) -> the
//! outcome of each ([`record`]). After a crash [`verify`] reads the tables into a [`book`]; [`verdict`], which is pure,
//! says what was lost, and what is there that must not be.
#![allow(clippy::cast_possible_wrap, reason = "numbers of connections, transactions and accounts are far below 2^63")]

use std::sync::{Arc, Mutex, PoisonError};

use clients::Clients;
use options::Options;
use record::Header;
use schema::Tables;

use self::clients::Runner;
use self::options::Cuts;
use self::record::{Log, Pen};
use crate::dialect::error_codes::TRANSACTION_RETRYABLE;
use crate::error::Error;
use crate::names::quoted;
use crate::protocol::session::Session;
use crate::run_options::Ignore;
use crate::statements::{Kind, Statements};
use crate::values::Values;
use crate::verb::{OwnAction, Verb};
use crate::workload::{Portion, ServerState, Stepwise, Workload};

mod book;
mod clients;
mod ddl;
mod options;
mod record;
mod schema;
mod verdict;
mod verify;

const ABOUT: &str = "\
Transactions of which every one is known afterwards, and, by the last word verify, what a crash has left of them.

A transaction is numbered on its connection. It adds a row to the table ledger, moves amounts between --parts accounts and
says in the table transfers what it moved; all that it holds follows from --seed and its number. --ledger=FILE keeps when
its COMMIT was sent and when the acknowledgement was read. After a deadlock, a lock wait timeout or a row changed since it
was read (1213, 1205, 1020) it is rolled back and sent again with the same values. On an engine without transactions, the
INSERT into ledger is what is kept and counted. --ddl=on adds a connection that makes, alters, renames, truncates and drops
tables of its own; its statements are in no figure of the load.

verify reads all tables of a server that was started again after a crash, by the primary key and by the index, and counts
what was acknowledged and is gone, or is there and must not be. Its exit code is 0 whatever it finds: see --json.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "ledger",
    about: ABOUT,
    flags: options::FLAGS,
    loads: &["ledger"],
    word: None,
    has_phase_flag: false,
    workload: make,
    own: Some(OwnAction { word: "verify", work: verify::verify }),
};

fn make(values: &Values<'_>, _: &str) -> Result<Box<dyn Stepwise>, Error> {
    Ok(Box::new(Ledger { options: Options::read(values)?, run: Mutex::default() }))
}

/// The load with its options.
struct Ledger {
    options: Options,
    /// Of the run to come, or that goes on.
    run: Mutex<Run>,
}

/// What a run's clients need to know.
#[derive(Default)]
struct Run {
    transactional: bool,
    first_connection: u32,
    log: Option<Arc<Log>>,
    cuts: Option<Arc<Cuts>>,
    /// Until the first client of the run has begun.
    ddl: Option<Runner>,
}

impl Ledger {
    fn run(&self) -> std::sync::MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What sends DDL.
    fn ddl(
        &self,
        session: &mut Session,
        engine: &str,
        log: Option<&Arc<Log>>,
        cuts: Option<&Arc<Cuts>>,
    ) -> Result<Runner, Error> {
        let tables = &self.options.tables;
        tables.make_ready_for_ddl(session, engine)?;
        Ok(Runner::new(session.another()?, (tables.schema(), engine), log, cuts))
    }

    /// Begins a run's file.
    fn begin(&self, session: &mut Session, engine: &str) -> Result<Run, Error> {
        let Options { tables, content, clients, .. } = &self.options;
        // As many for a warm-up.
        let connections = 2 * *clients as u32;
        let transactional = Tables::is_transactional(session, engine)?;
        let first_connection = tables.take_connections(session, connections, content.seed)?;
        let header = Header {
            version: Header::current(),
            schema: tables.schema().into(),
            engine: engine.into(),
            transactional,
            first_connection,
            connections,
            content: content.clone(),
            ddl: self.options.ddl,
        };
        let log = self.options.ledger.as_deref().map(|path| Log::begin(path, &header)).transpose()?;
        let cuts = self.options.cuts.as_ref().map(|cuts| Cuts::connect(cuts).map(Arc::new)).transpose()?;
        let ddl = self.options.ddl.then(|| self.ddl(session, engine, log.as_ref(), cuts.as_ref())).transpose()?;
        Ok(Run { transactional, first_connection, log, cuts, ddl })
    }
}

impl Workload for Ledger {
    fn load(&self) -> &'static str {
        "ledger"
    }

    fn schema(&self) -> &str {
        self.options.tables.schema()
    }

    fn expects_loss(&self) -> bool {
        self.options.expects_loss
    }

    fn kinds(&self) -> Vec<Kind> {
        clients::kinds()
    }

    fn prepared(&self) -> Vec<String> {
        clients::prepared(self.options.content.parts)
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        let mut run = self.run();
        let of_run = if portion.warmup { 0 } else { portion.of as u32 };
        let first = run.first_connection + of_run + portion.first as u32;
        let pen = run.log.as_ref().map(Pen::new);
        let connections = first..first + portion.clients as u32;
        let cuts = run.cuts.clone().filter(|_| !portion.warmup);
        let ddl = if portion.warmup || portion.first > 0 { None } else { run.ddl.take() };
        Ok(Box::new(Clients::new(&self.options.content, run.transactional, connections, (pen, cuts, ddl))))
    }
}

impl Stepwise for Ledger {
    fn ignored_errors(&self) -> Ignore {
        Ignore::Codes(TRANSACTION_RETRYABLE.into())
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        self.options.tables.make(session, self.options.content.accounts, begun)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let engine = self.options.tables.check(session, self.options.content.accounts)?;
        session.execute(&format!("USE {}", quoted(self.options.tables.schema())))?;
        *self.run() = self.begin(session, &engine)?;
        Ok(ServerState { engine: Some(engine) })
    }

    fn after_run(&self, _: &mut Session) -> Result<(), Error> {
        let trouble = self.run().log.as_ref().and_then(|log| log.trouble());
        match (trouble, &self.options.ledger) {
            (Some(error), Some(path)) => Err(Error::File(path.clone(), error)),
            _ => Ok(()),
        }
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        self.options.tables.drop(session)
    }
}
