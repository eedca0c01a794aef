//! The verb `slap`: mysqlslap's auto-generated load, with honest latency.

mod list;
mod options;
mod schema;
mod sql;

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::dialect::environment;
use crate::error::Error;
use crate::flags::Action;
use crate::names::quoted;
use crate::output::report;
use crate::output::result::RunResult;
use crate::protocol::session::Session;
use crate::statements::{Kind, Statements};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};
use dbdyno_common::random::Random;

use self::sql::Operation;
use list::{PerClient, Walk};
use options::{Csv, Options, Source};
use schema::initial_inserts;
use sql::ListEntry;

const ABOUT: &str = "\
Runs mysqlslap's auto-generated load against a MySQL or MariaDB server and measures it. The time
of a run goes from the release of all clients, which have connected before, to the last reply;
mysqlslap's own time includes connecting and disconnecting. The latency of a statement goes from
the time it was due to the last byte of its reply. Statements that the server refused are counted by
code, not timed. A run bounded by time starts no statement after its end and waits for those
in flight. The initial rows are loaded many per INSERT.
";

/// The verb.
pub static VERB: Verb = Verb {
    name: "slap",
    about: ABOUT,
    flags: options::FLAGS,
    loads: &[],
    word: None,
    has_phase_flag: true,
    workload: |values, _| Ok(Box::new(Slap::new(values)?)),
    own: None,
};

/// The load with its options.
struct Slap {
    options: Options,
    /// Index of the engine whose turn it is.
    engine: AtomicUsize,
    /// This invocation made the schema, so it may drop it.
    made: AtomicBool,
    /// Keys to draw from, as the last look at the table found them.
    keys: Mutex<Arc<[String]>>,
}

impl Slap {
    fn new(values: &Values<'_>) -> Result<Self, Error> {
        let options = options::read(values)?;
        if let (Csv::File(path), Action::All | Action::Run, false) = (&options.csv, options.action, options.only_print)
        {
            open_csv(path)?;
        }
        Ok(Self { options, engine: AtomicUsize::new(0), made: AtomicBool::new(false), keys: Mutex::new(Arc::from([])) })
    }

    /// The list that all clients walk.
    fn list(&self) -> Vec<ListEntry> {
        match &self.options.source {
            Source::Generated { load, shape, unique_queries, .. } => {
                // Other literals than the initial rows have.
                let mut random = Random::new(self.options.run.seed ^ u64::MAX);
                shape.statements(*load, *unique_queries, &mut random)
            }
            Source::Given { query, .. } => query
                .iter()
                .map(|text| ListEntry { operation: Operation::detect(text), text: text.clone(), keyed: false, rows: 0 })
                .collect(),
        }
    }

    /// The statements for one engine as they would be sent.
    fn script(&self, engine: Option<&str>) -> String {
        let options = &self.options;
        let schema = quoted(&options.schema);
        let mut text = format!("DROP SCHEMA IF EXISTS {schema};\nCREATE SCHEMA {schema};\nUSE {schema};\n");
        let mut each = |line: &str| text.extend([line, ";\n"]);
        match &options.source {
            Source::Generated { shape, .. } => each(&shape.create_table(engine, &options.table_format)),
            Source::Given { create, .. } => {
                for statement in create {
                    each(&options.table_format.added_to(statement));
                }
            }
        }
        initial_inserts(options).for_each(|statement| each(&statement));
        let list = self.list();
        for clients in &options.run.clients {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "-- {clients} clients, each:");
            let queries = options.per_client(*clients, list.len()).0.queries.unwrap_or(list.len() as u64);
            for statement in list.iter().cycle().take(queries as usize) {
                let key = if statement.keyed { "(a key)'" } else { "" };
                let _ = writeln!(text, "{}{key};", statement.text);
            }
        }
        text + &format!("DROP SCHEMA IF EXISTS {schema};\n")
    }
}

impl Workload for Slap {
    fn load(&self) -> &str {
        self.options.load_name()
    }

    fn schema(&self) -> &str {
        &self.options.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        Operation::kinds()
    }

    fn setup(&self) -> Vec<String> {
        self.options.commit_every.map(|_| "SET AUTOCOMMIT=0".to_owned()).into_iter().collect()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        let list = self.list();
        let (per_client, _) = self.options.per_client(portion.of, list.len());
        let queries = per_client.queries.filter(|_| !portion.warmup);
        let per_client = PerClient { queries, ..per_client };
        let keys = Arc::clone(&self.keys.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Box::new(Walk::new(&list, keys, portion.first, portion.clients, per_client, portion.seed)))
    }
}

impl Stepwise for Slap {
    /// By what mysqlslap's flags say, else by its list.
    fn is_bounded(&self) -> bool {
        true
    }

    fn is_made_anew(&self) -> bool {
        true
    }

    fn keeps_tables(&self) -> bool {
        self.options.no_drop
    }

    fn iterations(&self) -> u32 {
        self.options.iterations
    }

    fn engine_asked(&self) -> Option<&str> {
        self.options.engines.get(self.engine.load(Ordering::Relaxed)).map(String::as_str)
    }

    fn next_engine(&self) -> bool {
        self.engine.fetch_add(1, Ordering::Relaxed) + 1 < self.options.engines.len()
    }

    fn planned(&self, clients: usize) -> (Option<u64>, u64) {
        let (per_client, dropped) = self.options.per_client(clients, self.list().len());
        (per_client.queries.map(|each| each * clients as u64), dropped)
    }

    fn printed(&self) -> Option<String> {
        let engines = self.options.engines.iter().map(|name| Some(name.as_str()));
        let engines = engines.chain(self.options.engines.is_empty().then_some(None));
        self.options.only_print.then(|| engines.map(|engine| self.script(engine)).collect())
    }

    /// Makes schema, table and rows afresh.
    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        let options = &self.options;
        if matches!(&options.source, Source::Given { create, .. } if create.is_empty()) {
            return schema::enter(options, session);
        }
        self.cleanup(session)?;
        let made = schema::make(options, session);
        // Refused, another process was faster; after any other error it may be ours.
        self.made.store(!matches!(made, Err(Error::Statement { .. })), Ordering::Relaxed);
        *begun = self.made.load(Ordering::Relaxed);
        made?;
        schema::fill(options, self.engine_asked(), session)?;
        schema::engine(options, self.engine_asked(), session).map(drop)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let options = &self.options;
        schema::enter(options, session)?;
        let engine = schema::engine(options, self.engine_asked(), session)?;
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = schema::keys(options, session)?;
        options.pre_query.iter().try_for_each(|statement| session.execute(statement))?;
        options.pre_system.as_deref().map_or(Ok(()), shell)?;
        Ok(ServerState { engine })
    }

    fn after_run(&self, session: &mut Session) -> Result<(), Error> {
        self.options.post_query.iter().try_for_each(|statement| session.execute(statement))?;
        self.options.post_system.as_deref().map_or(Ok(()), shell)
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        if self.made.load(Ordering::Relaxed) {
            schema::remove(&self.options, session)
        } else {
            schema::clear(&self.options, session)
        }
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        if let Csv::File(path) = &self.options.csv {
            let written = open_csv(path)?.write_all(report::csv_line(runs).as_bytes());
            written.map_err(|error| Error::File(path.clone(), error))?;
        }
        Ok(match self.options.csv {
            Csv::Terminal => report::csv_line(runs),
            Csv::No | Csv::File(_) => report::block(runs),
        })
    }
}

/// Runs a command of the user's, which needs no password of ours.
fn shell(command: &str) -> Result<(), Error> {
    let status = Command::new("/bin/sh").arg("-c").arg(command).env_remove(environment::PASSWORD).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Failed(format!("the command {command:?} failed: {status}"))),
        Err(error) => Err(Error::Failed(format!("cannot run the command {command:?}: {error}"))),
    }
}

/// The file that mysqlslap's CSV lines are added to.
fn open_csv(path: &Path) -> Result<File, Error> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|error| Error::File(path.into(), error))
}
