//! The verb `slap`: mysqlslap's auto-generated load, with honest latency.
//!
//! Its flags are mysqlslap's, then ours. The schema a load runs on is made before and dropped after; no other's is
//! touched.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dbdyno_common::random::Random;
use strum::VariantArray as _;

use self::sql::{Columns, Key, ListEntry, Load, Operation, PerClient, Shape, TABLE, TABLE_COMMENT, Walk};
use crate::dialect::environment;
use crate::error::Error;
use crate::flags::{Action, Flag, Takes};
use crate::names::{self, checked_engine, quoted};
use crate::output::result::{self, RunResult};
use crate::protocol::session::Session;
use crate::run_options::RunOptions;
use crate::statements::{Kind, Statements};
use crate::table_options::{self, TableOptions};
use crate::tables::{self, Owner};
use crate::text::shown;
use crate::values::{Values, number};
use crate::verb::{Verb, phase};
use crate::workload::{Portion, ServerState, Stepwise, Workload};

mod sql;

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
    flags: FLAGS,
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
        let options = read(values)?;
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
            Source::Custom { query, .. } => query
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
        let mut add_line = |line: &str| text.extend([line, ";\n"]);
        match &options.source {
            Source::Generated { shape, .. } => add_line(&shape.create_table(engine, &options.table_format)),
            Source::Custom { create, .. } => {
                for statement in create {
                    add_line(&options.table_format.added_to(statement));
                }
            }
        }
        initial_inserts(options).for_each(|statement| add_line(&statement));
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

    fn engine_choice(&self) -> Option<&str> {
        self.options.engines.get(self.engine.load(Ordering::Relaxed)).map(String::as_str)
    }

    fn next_engine(&self) -> bool {
        self.engine.fetch_add(1, Ordering::Relaxed) + 1 < self.options.engines.len()
    }

    fn planned(&self, clients: usize) -> (Option<u64>, u64) {
        let (per_client, dropped) = self.options.per_client(clients, self.list().len());
        (per_client.queries.map(|queries| queries * clients as u64), dropped)
    }

    fn printed(&self) -> Option<String> {
        let engines = self.options.engines.iter().map(|name| Some(name.as_str()));
        let engines = engines.chain(self.options.engines.is_empty().then_some(None));
        self.options.only_print.then(|| engines.map(|engine| self.script(engine)).collect())
    }

    /// Makes schema, table and rows afresh.
    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        let options = &self.options;
        if matches!(&options.source, Source::Custom { create, .. } if create.is_empty()) {
            return enter(options, session);
        }
        self.cleanup(session)?;
        let made = make(options, session);
        // Refused, another process was faster; after any other error it may be ours.
        self.made.store(!matches!(made, Err(Error::Statement { .. })), Ordering::Relaxed);
        *begun = self.made.load(Ordering::Relaxed);
        made?;
        fill(options, self.engine_choice(), session)?;
        engine(options, self.engine_choice(), session).map(drop)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let options = &self.options;
        enter(options, session)?;
        let engine = engine(options, self.engine_choice(), session)?;
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys(options, session)?;
        options.pre_query.iter().try_for_each(|statement| session.execute(statement))?;
        options.pre_system.as_deref().map_or(Ok(()), shell)?;
        Ok(ServerState { engine })
    }

    fn after_run(&self, session: &mut Session) -> Result<(), Error> {
        self.options.post_query.iter().try_for_each(|statement| session.execute(statement))?;
        self.options.post_system.as_deref().map_or(Ok(()), shell)
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        if self.made.load(Ordering::Relaxed) { remove(&self.options, session) } else { clear(&self.options, session) }
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        if let Csv::File(path) = &self.options.csv {
            let written = open_csv(path)?.write_all(result::csv_line(runs).as_bytes());
            written.map_err(|error| Error::File(path.clone(), error))?;
        }
        Ok(match self.options.csv {
            Csv::Terminal => result::csv_line(runs),
            Csv::No | Csv::File(_) => result::block(runs),
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

/// Rows per INSERT and bytes per statement while the table is filled; any server takes these.
const ROWS_MAX: usize = 250;
const BYTES_MAX: usize = 512 << 10;

/// Drops the schema if it is there and may go.
///
/// # Errors
/// It is not ours.
fn clear(options: &Options, session: &mut Session) -> Result<(), Error> {
    let schema = &options.schema;
    match Owner::of_schema(session, schema, ["BASE TABLE", TABLE, TABLE_COMMENT])? {
        Owner::Absent => Ok(()),
        Owner::Other if !options.force => Err(Error::Usage(format!(
            "the schema {schema} exists and was not made by dbdyno, or holds more than that: name another with \
             --create-schema, or let it be dropped with --force"
        ))),
        Owner::Verb | Owner::Other => remove(options, session),
    }
}

/// Drops the schema, which this invocation made; of one that was lent only the table.
///
/// # Errors
/// The server refuses.
fn remove(options: &Options, session: &mut Session) -> Result<(), Error> {
    if tables::is_lent(session, &options.schema)? {
        return session.execute(&format!("DROP TABLE IF EXISTS {}.{TABLE}", quoted(&options.schema)));
    }
    session.execute(&format!("DROP SCHEMA IF EXISTS {}", quoted(&options.schema)))
}

/// Makes an empty schema, where none is; one that was lent is taken as it is.
///
/// # Errors
/// One is there.
fn make(options: &Options, session: &mut Session) -> Result<(), Error> {
    if tables::is_lent(session, &options.schema)? {
        return Ok(());
    }
    session.execute(&format!("CREATE SCHEMA {}", quoted(&options.schema)))
}

/// Goes into the schema and makes tables and rows there.
///
/// # Errors
/// The server refuses a statement.
fn fill(options: &Options, engine: Option<&str>, session: &mut Session) -> Result<(), Error> {
    enter(options, session)?;
    match &options.source {
        Source::Custom { create, .. } => {
            if let Some(engine) = engine {
                session.execute(&format!("SET default_storage_engine = {engine}"))?;
            }
            create.iter().try_for_each(|statement| session.execute(&options.table_format.added_to(statement)))
        }
        Source::Generated { shape, .. } => {
            session.execute(&shape.create_table(engine, &options.table_format))?;
            initial_inserts(options).try_for_each(|statement| session.execute(&statement))
        }
    }
}

/// Goes into the schema.
///
/// # Errors
/// It is not there.
fn enter(options: &Options, session: &mut Session) -> Result<(), Error> {
    session.execute(&format!("USE {}", quoted(&options.schema)))
}

/// The table's engine as the server reports it, after checking that the table fits the load.
///
/// # Errors
/// There is no such table, it has other columns, or another engine than asked for.
fn engine(options: &Options, engine_name: Option<&str>, session: &mut Session) -> Result<Option<String>, Error> {
    let Source::Generated { shape, .. } = &options.source else {
        return Ok(engine_name.map(str::to_owned));
    };
    let schema = &options.schema;
    let filter = format!("WHERE TABLE_SCHEMA = {} AND TABLE_NAME = '{TABLE}'", names::text(schema));
    let columns = session
        .values(&format!("SELECT COLUMN_NAME FROM information_schema.COLUMNS {filter} ORDER BY ORDINAL_POSITION"))?;
    if columns != shape.columns() {
        return Err(Error::Usage(format!(
            "{schema}.{TABLE} has the columns ({}), this load needs ({}): prepare it with the same flags",
            shown(&columns.join(", ")),
            shape.columns().join(", ")
        )));
    }
    let engine: Option<String> = session.value(&format!("SELECT ENGINE FROM information_schema.TABLES {filter}"))?;
    match (&engine, engine_name) {
        (Some(got), Some(engine_name)) if !got.eq_ignore_ascii_case(engine_name) => Err(Error::Failed(format!(
            "the server made {schema}.{TABLE} in {got} instead of {engine_name}",
            got = shown(got)
        ))),
        _ => Ok(engine),
    }
}

/// All keys of the table, if the load draws from them.
///
/// # Errors
/// There are none.
fn keys(options: &Options, session: &mut Session) -> Result<Arc<[String]>, Error> {
    if !draws_keys(&options.source) {
        return Ok(Arc::from([]));
    }
    let rows = session.query_long(&format!("SELECT id from {TABLE}"))?;
    let keys: Vec<String> = rows.into_iter().flatten().flatten().collect();
    if keys.is_empty() {
        return Err(Error::Usage(format!(
            "the table {TABLE} has no rows to draw keys from: raise --auto-generate-sql-write-number"
        )));
    }
    Ok(keys.into())
}

fn draws_keys(source: &Source) -> bool {
    match source {
        Source::Generated { load, shape, .. } => {
            shape.key != sql::Key::None && matches!(load, Load::Key | Load::Update | Load::Mixed)
        }
        Source::Custom { .. } => false,
    }
}

/// INSERTs of many rows each that fill the table; the rows are those of mysqlslap's single ones.
fn initial_inserts(options: &Options) -> impl Iterator<Item = String> + use<> {
    let (distinct, mut left) = match &options.source {
        Source::Generated { shape, unique_rows, rows, .. } => {
            let distinct = (*unique_rows).min(*rows);
            (shape.initial_rows(distinct, &mut Random::new(options.run.seed)), *rows)
        }
        Source::Custom { .. } => (Vec::new(), 0),
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut text = String::new();
        let mut count = 0;
        while left > 0 && count < ROWS_MAX && text.len() < BYTES_MAX {
            text.push_str(if count == 0 { "INSERT INTO t1 VALUES " } else { "," });
            text.push_str(&distinct[at]);
            at = (at + 1) % distinct.len();
            count += 1;
            left -= 1;
        }
        (count > 0).then_some(text)
    })
}

/// What the clients send.
#[derive(Debug, Clone)]
enum Source {
    /// Generated SQL.
    Generated {
        /// The load type.
        load: Load,
        /// The table.
        shape: Shape,
        /// Distinct statements less one.
        unique_queries: u64,
        /// Distinct initial rows.
        unique_rows: u64,
        /// Initial rows.
        rows: u64,
    },
    /// The user's.
    Custom {
        /// Statements that make the tables.
        create: Vec<String>,
        /// Statements of the load.
        query: Vec<String>,
    },
}

/// Where mysqlslap's CSV line goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Csv {
    /// Nowhere.
    No,
    /// Instead of the report.
    Terminal,
    /// Appended to a file.
    File(PathBuf),
}

/// How long a run lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// Queries of all clients together.
    Queries(u64),
    /// Queries of each client.
    PerClient(u64),
    /// Once through the list.
    Once,
    /// By time, or by queries of whichever client is free.
    Shared,
}

/// All options.
#[derive(Debug, Clone)]
#[allow(missing_docs, clippy::struct_excessive_bools)]
struct Options {
    pub source: Source,
    pub schema: String,
    pub action: Action,
    pub run: RunOptions,
    pub iterations: u32,
    /// Empty: the server's default.
    pub engines: Vec<String>,
    pub table_format: TableOptions,
    pub bound: Bound,
    pub commit_every: Option<u64>,
    pub detach_every: Option<u64>,
    pub pre_query: Vec<String>,
    pub post_query: Vec<String>,
    pub pre_system: Option<String>,
    pub post_system: Option<String>,
    pub no_drop: bool,
    pub force: bool,
    pub only_print: bool,
    pub csv: Csv,
}

/// Reads them.
///
/// # Errors
/// A value that is none, or two that contradict each other.
fn read(values: &Values<'_>) -> Result<Options, Error> {
    let every = |name| values.number(name, 0).map(|every| Some(every).filter(|every: &u64| *every > 0));
    let options = Options {
        action: phase(values)?,
        source: source(values)?,
        schema: names::schema(values, "create-schema", "mysqlslap")?,
        run: RunOptions::read(values)?,
        iterations: values.positive("iterations", 1)?.try_into().unwrap_or(u32::MAX),
        engines: engines(values)?,
        table_format: TableOptions::read(values)?,
        bound: bound(values)?,
        commit_every: every("commit")?,
        detach_every: every("detach")?,
        pre_query: values.statements("pre-query")?,
        post_query: values.statements("post-query")?,
        pre_system: values.text("pre-system").map(str::to_owned),
        post_system: values.text("post-system").map(str::to_owned),
        no_drop: values.has("no-drop"),
        force: values.has("force"),
        only_print: values.has("only-print"),
        csv: match (values.has("csv"), values.path("csv")) {
            (_, Some(path)) => Csv::File(path),
            (true, None) => Csv::Terminal,
            (false, None) => Csv::No,
        },
    };
    check(&options)?;
    Ok(options)
}

fn source(values: &Values<'_>) -> Result<Source, Error> {
    if !values.has("auto-generate-sql") {
        let query = values.statements("query")?;
        if query.is_empty() && phase(values)? != Action::Cleanup {
            return Err(Error::Usage("nothing to run: give -a (--auto-generate-sql) or --query".into()));
        }
        return Ok(Source::Custom { create: values.statements("create")?, query });
    }
    if values.has("query") || values.has("create") {
        return Err(Error::Usage(
            "--auto-generate-sql makes its own table and statements: leave out --query and \
             --create, or --auto-generate-sql"
                .into(),
        ));
    }
    let key = match (values.has("auto-generate-sql-add-autoincrement"), values.has("auto-generate-sql-guid-primary")) {
        (false, false) => Key::None,
        (true, false) => Key::Serial,
        (false, true) => Key::Guid,
        (true, true) => {
            return Err(Error::Usage(
                "--auto-generate-sql-add-autoincrement and --auto-generate-sql-guid-primary: \
                 choose one"
                    .into(),
            ));
        }
    };
    let shape = Shape {
        key,
        secondary: values.number("auto-generate-sql-secondary-indexes", 0)?,
        integers: columns(values, "number-int-cols")?,
        strings: columns(values, "number-char-cols")?,
    };
    let loads: Vec<(&str, Load)> = Load::VARIANTS.iter().map(|load| (load.into(), *load)).collect();
    let load = values.choice("auto-generate-sql-load-type", &loads, Load::Mixed)?;
    if load == Load::Key && key == Key::None {
        return Err(Error::Usage(
            "the key load needs a key: add --auto-generate-sql-add-autoincrement or \
             --auto-generate-sql-guid-primary"
                .into(),
        ));
    }
    if shape.integers.count + shape.strings.count == 0 {
        return Err(Error::Usage("a table without columns: raise --number-int-cols or --number-char-cols".into()));
    }
    Ok(Source::Generated {
        load,
        shape,
        unique_queries: values.positive("auto-generate-sql-unique-query-number", 10)?,
        unique_rows: values.positive("auto-generate-sql-unique-write-number", 10)?,
        rows: values.positive("auto-generate-sql-write-number", 100)? - 1,
    })
}

/// `3` or `3:1`, the latter with an index on each column.
fn columns(values: &Values<'_>, name: &str) -> Result<Columns, Error> {
    const COUNT_MAX: u32 = 1000;
    let text = values.text_or(name, "1");
    let (count, indexed) = text.split_once(':').unwrap_or((text, "0"));
    let count = number(name, Some(count))?.unwrap_or(1);
    let indexed = number::<u32>(name, Some(indexed))?.unwrap_or(0) > 0;
    if count > COUNT_MAX {
        return Err(Error::Usage(format!("--{name}={text}: at most {COUNT_MAX} columns")));
    }
    Ok(Columns { count, indexed })
}

fn engines(values: &Values<'_>) -> Result<Vec<String>, Error> {
    let text = values.text("engine").unwrap_or_default();
    let engines = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    engines.map(checked_engine).collect()
}

fn bound(values: &Values<'_>) -> Result<Bound, Error> {
    let queries = "number-of-queries";
    let per_client = "auto-generate-sql-execute-number";
    let bounds = [queries, per_client, "duration", "events"].map(|name| values.has(name));
    match bounds {
        [false, false, false, false] => Ok(Bound::Once),
        [true, false, false, false] => Ok(Bound::Queries(values.positive(queries, 1)?)),
        [false, true, false, false] => Ok(Bound::PerClient(values.positive(per_client, 1)?)),
        [false, false, _, _] => Ok(Bound::Shared),
        _ => {
            Err(Error::Usage(format!("--{queries}, --{per_client} and --duration or --events bound the run: give one")))
        }
    }
}

fn check(options: &Options) -> Result<(), Error> {
    let prepares_once = matches!(options.action, Action::Prepare | Action::Run);
    if prepares_once && options.engines.len() > 1 {
        return Err(Error::Usage("--phase=prepare and --phase=run work on one table: give one --engine".into()));
    }
    if let Bound::Queries(queries) = options.bound {
        let most = options.run.clients.iter().copied().max().unwrap_or(1);
        if queries < most as u64 {
            return Err(Error::Usage(format!("--number-of-queries={queries} leaves none for some of {most} clients")));
        }
    }
    Ok(())
}

impl Options {
    /// What each of `clients` says, given a list of `length` statements, and how many queries
    /// the even split leaves out.
    pub fn per_client(&self, clients: usize, length: usize) -> (PerClient, u64) {
        let clients = clients as u64;
        let (queries, dropped) = match self.bound {
            Bound::Queries(all) => (Some(all / clients), all % clients),
            Bound::PerClient(queries) => (Some(queries), 0),
            Bound::Once => (Some(length as u64), 0),
            Bound::Shared => (None, 0),
        };
        let per_client = PerClient { queries, commit_every: self.commit_every, detach_every: self.detach_every };
        (per_client, dropped)
    }

    /// Name of the load in every output.
    pub fn load_name(&self) -> &'static str {
        match &self.source {
            Source::Generated { load, .. } => load.into(),
            Source::Custom { .. } => "query",
        }
    }
}

/// The flags.
const FLAGS: &[Flag] = &[
    Flag::switch("auto-generate-sql", "generate table and statements").short('a'),
    Flag::switch("auto-generate-sql-add-autoincrement", "give the table a serial id"),
    Flag::value("auto-generate-sql-execute-number", "queries per client"),
    Flag::switch("auto-generate-sql-guid-primary", "give the table a UUID as primary key"),
    Flag::value("auto-generate-sql-load-type", "read, key, write, update or mixed"),
    Flag::value("auto-generate-sql-secondary-indexes", "unique UUID columns"),
    Flag::value("auto-generate-sql-unique-query-number", "distinct statements, less one"),
    Flag::value("auto-generate-sql-unique-write-number", "distinct initial rows"),
    Flag::value("auto-generate-sql-write-number", "initial rows, plus one"),
    Flag::value("commit", "COMMIT after this many statements, autocommit off"),
    Flag::value("concurrency", "clients, or a list, one run each: 10,50").short('c').same_as("clients"),
    Flag::value("create", "statements, or a file of them, that make the tables for --query"),
    Flag::value("create-schema", "schema"),
    Flag::value("detach", "a client reconnects after this many statements"),
    Flag::joined("csv", "mysqlslap's CSV line, to the terminal or appended to a file"),
    Flag::value("delimiter", "between statements of --create, --query, .. (newline)").short('F'),
    Flag::value("engine", "storage engine, or a list").short('e'),
    Flag::switch("force", "drop an existing schema that dbdyno did not make"),
    Flag::value("iterations", "repetitions, each on fresh tables").short('i'),
    Flag::switch("no-drop", "leave the schema"),
    Flag::value("number-char-cols", "string columns, 3:1 with an index each").short('x'),
    Flag::value("number-int-cols", "integer columns, 3:1 with an index each").short('y'),
    Flag::value("number-of-queries", "queries of all clients together"),
    Flag::switch("only-print", "print the statements, touch no server"),
    Flag::value("post-query", "statements, or a file, run after the load"),
    Flag::value("pre-query", "statements, or a file, run before the load"),
    Flag::value("post-system", "shell command run after the load"),
    Flag::value("pre-system", "shell command run before the load"),
    Flag::value("query", "statements, or a file of them, instead of --auto-generate-sql").short('q'),
    // Beyond mysqlslap.
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("phase", "all; prepare: only make tables; run: only the load; cleanup"),
    // Accepted, as nothing depends on them here.
    Flag::ignored("character-sets-dir", Takes::Value, "no character sets are loaded"),
    Flag::ignored("debug", Takes::Joined, "there is no debug trace").short('#'),
    Flag::ignored("debug-check", Takes::Nothing, "there is no debug trace"),
    Flag::ignored("debug-info", Takes::Nothing, "the report has the client's CPU").short('T'),
    Flag::ignored("default-auth", Takes::Value, "the server names the plugin"),
    Flag::ignored("default-character-set", Takes::Value, "the generated SQL is ASCII"),
    Flag::ignored("plugin-dir", Takes::Value, "plugins are built in"),
    Flag::ignored("print-defaults", Takes::Nothing, "see --help"),
    Flag::ignored("wait", Takes::Joined, "see --connect-timeout"),
    Flag::ignored("skip-secure-auth", Takes::Nothing, "old passwords are never used"),
    Flag::ignored("secure-auth", Takes::Nothing, "old passwords are never used"),
    // Not here.
    Flag::refused("sql-mode", Takes::Value, "give it to each connection: --init-command=\"SET sql_mode='...'\""),
    Flag::refused("enable-cleartext-plugin", Takes::Nothing, "passwords are never sent in clear text: leave it out"),
    Flag::refused("pipe", Takes::Nothing, "named pipes exist on Windows only: use --socket"),
    Flag::refused("shared-memory-base-name", Takes::Value, "exists on Windows only: use --socket"),
];

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::slap::VERB;
    use crate::verb::{self, Request};

    fn parsed(line: &str) -> Result<Options, Error> {
        let arguments = line.split_whitespace().map(OsString::from);
        let arguments = std::iter::once("--no-defaults".into()).chain(arguments);
        match verb::read(VERB.name, VERB.table(), 0, arguments, &mut Vec::new())? {
            Request::Load(command) => read(&command.values()),
            other => panic!("{other:?}"),
        }
    }

    fn mistake(line: &str) -> String {
        let error = parsed(line).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    #[test]
    fn a_line_of_mysqlslap_is_understood() {
        let options = parsed(
            "-a -c 10,50 -i 3 -e innodb,myisam --number-of-queries=1000 -x 2 -y 3:1 \
         --auto-generate-sql-load-type=write --auto-generate-sql-add-autoincrement -uroot",
        )
        .unwrap();
        assert_eq!(options.run.clients, [10, 50]);
        assert_eq!(options.engines, ["innodb", "myisam"]);
        assert_eq!(options.load_name(), "write");
        let Source::Generated { shape, rows, .. } = options.source else {
            panic!("not generated");
        };
        assert_eq!(rows, 99);
        assert_eq!((shape.integers.count, shape.integers.indexed), (3, true));
        assert_eq!((shape.strings.count, shape.strings.indexed), (2, false));
    }

    #[test]
    fn queries_are_split_evenly_and_the_rest_is_told() {
        let options = parsed("-a -c 3 --number-of-queries=10").unwrap();
        let (per_client, dropped) = options.per_client(3, 11);
        assert_eq!((per_client.queries, dropped), (Some(3), 1));
        let options = parsed("-a -c 3").unwrap();
        assert_eq!(options.per_client(3, 11).0.queries, Some(11));
    }

    #[test]
    fn mistakes_of_users_are_told() {
        for (line, expected) in [
            ("", "give -a (--auto-generate-sql) or --query"),
            ("-a --auto-generate-sql-load-type=key", "needs a key"),
            ("-a --auto-generate-sql-load-type=wirte", "Did you mean \"write\"?"),
            ("-a --concurency=3", "did you mean --concurrency?"),
            ("-a -c 0", "1 to 100000 each"),
            ("-a -c 5 --number-of-queries=3", "leaves none"),
            ("-a --number-of-queries=3 --duration=5", "give one"),
            ("-a -x0 -y0", "without columns"),
            ("-a --create-schema=mysql", "belongs to the server"),
            ("-a --engine=x;y", "not the name of an engine"),
            ("-a --detach=x", "--detach=x"),
            ("-a --query=x", "leave out"),
        ] {
            let text = mistake(line);
            assert!(text.contains(expected), "{line}: {text}");
        }
    }

    #[test]
    fn flags_without_effect_are_noted() {
        let mut notes = Vec::new();
        let line = ["-a", "--no-defaults", "--debug-info"].map(OsString::from);
        verb::read(VERB.name, VERB.table(), 0, line, &mut notes).unwrap();
        assert_eq!(notes, ["--debug-info is ignored: the report has the client's CPU"]);
    }
}
