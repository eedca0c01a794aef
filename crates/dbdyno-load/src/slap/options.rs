//! The flags of `slap` as one checked value.

use std::path::PathBuf;

use strum::VariantArray as _;

use crate::error::Error;
use crate::flags::Action;
use crate::names::{self, checked_engine};
use crate::run_options::RunOptions;
use crate::values::{Values, number};
use crate::verb::phase;

use super::list::PerClient;
use super::sql::{Columns, Key, Load, Shape};

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

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
