//! The flags of `slap` (mysqlslap's, then ours) as one checked value.

use std::path::PathBuf;

use strum::VariantArray as _;

use super::list::PerClient;
use super::sql::{Columns, Key, Load, Shape};
use crate::error::Error;
use crate::flags::{Action, Flag, Takes};
use crate::names::{self, checked_engine};
use crate::run_options::RunOptions;
use crate::table_options::{self, TableOptions};
use crate::values::{Values, number};
use crate::verb::phase;

/// What the clients send.
#[derive(Debug, Clone)]
pub enum Source {
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
    Given {
        /// Statements that make the tables.
        create: Vec<String>,
        /// Statements of the load.
        query: Vec<String>,
    },
}

/// Where mysqlslap's CSV line goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Csv {
    /// Nowhere.
    No,
    /// Instead of the report.
    Terminal,
    /// Appended to a file.
    File(PathBuf),
}

/// How long a run lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
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
pub struct Options {
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
pub fn read(values: &Values<'_>) -> Result<Options, Error> {
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
        return Ok(Source::Given { create: values.statements("create")?, query });
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
    let each = "auto-generate-sql-execute-number";
    let given = [queries, each, "duration", "events"].map(|name| values.has(name));
    match given {
        [false, false, false, false] => Ok(Bound::Once),
        [true, false, false, false] => Ok(Bound::Queries(values.positive(queries, 1)?)),
        [false, true, false, false] => Ok(Bound::PerClient(values.positive(each, 1)?)),
        [false, false, _, _] => Ok(Bound::Shared),
        _ => Err(Error::Usage(format!("--{queries}, --{each} and --duration or --events bound the run: give one"))),
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
            Bound::PerClient(each) => (Some(each), 0),
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
            Source::Given { .. } => "query",
        }
    }
}

/// The flags.
pub const FLAGS: &[Flag] = &[
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
        for (line, said) in [
            ("", "give -a (--auto-generate-sql) or --query"),
            ("-a --auto-generate-sql-load-type=key", "needs a key"),
            ("-a --auto-generate-sql-load-type=wirte", "did you mean write?"),
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
            assert!(text.contains(said), "{line}: {text}");
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
