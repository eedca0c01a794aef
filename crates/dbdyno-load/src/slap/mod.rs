//! The verb `slap`: mysqlslap's auto-generated load, with honest latency.

mod flags;
mod list;
mod options;
mod run;
mod sql;
mod stage;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Write as _, stdout};

use hdrhistogram::serialization::V2DeflateSerializer;

use crate::drive::End;
use crate::error::Error;
use crate::measure::IntervalSink;
use crate::output::files::{Files, HistogramLog, Series, create};
use crate::output::report;
use crate::output::result::{RunResult, write_json};
use crate::stop::Stop;

use options::{Csv, Options, Phase, Request, Source, parse};
use run::Which;
use stage::{Stage, initial_inserts, quoted};

const ABOUT: &str = "\
usage: dbdyno-load slap [flags]

Runs mysqlslap's auto-generated load against a MySQL or MariaDB server and measures it. The time
of a run goes from the release of all clients, which have connected before, to the last reply;
mysqlslap's own time includes connecting and disconnecting. Latency is that of a statement from
when it was due to the last byte of its reply. Statements that the server refused are counted by
code, not timed. A run bounded by time starts no statement after its end and waits for those
under way. The initial rows are loaded many per INSERT.

Exit: 0 done, 1 failed or statements refused, 2 a mistake in the flags, 130 interrupted.

";

/// Runs the verb and gives its exit code.
///
/// # Errors
/// What kept it from measuring anything.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let mut notes = Vec::new();
    let request = parse(arguments, &mut notes)?;
    for note in notes {
        eprintln!("note: {note}");
    }
    match request {
        Request::Help => print(&format!("{ABOUT}{}", crate::flags::help(flags::TABLE))),
        Request::Version => print(&format!("dbdyno-load {}\n", env!("CARGO_PKG_VERSION"))),
        Request::Load(options) if options.only_print => only_print(&options),
        Request::Load(options) => return load(&options),
    }
    Ok(0)
}

/// Prints; a reader that went away (`| head`) is no failure.
fn print(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

/// The statements without a server, as they would be sent.
fn only_print(options: &Options) {
    let schema = quoted(&options.schema);
    let each = |text: &str| print(&format!("{text};\n"));
    for engine in engines(options) {
        each(&format!("DROP SCHEMA IF EXISTS {schema}"));
        each(&format!("CREATE SCHEMA {schema}"));
        each(&format!("USE {schema}"));
        match &options.source {
            Source::Generated { shape, .. } => each(&shape.create_table(engine)),
            Source::Given { create, .. } => create.iter().for_each(|text| each(text)),
        }
        initial_inserts(options).for_each(|text| each(&text));
        for clients in &options.concurrency {
            let list = run::statements(options);
            let queries = options.per_client(*clients, list.len()).0.queries;
            print(&format!("-- {clients} clients, each:\n"));
            for statement in list.iter().cycle().take(queries.unwrap_or(list.len() as u64) as usize) {
                let key = if statement.keyed { "(a key)'" } else { "" };
                each(&format!("{}{key}", statement.text));
            }
        }
        each(&format!("DROP SCHEMA IF EXISTS {schema}"));
    }
}

fn engines(options: &Options) -> Vec<Option<&str>> {
    match options.engines.as_slice() {
        [] => vec![None],
        engines => engines.iter().map(|name| Some(name.as_str())).collect(),
    }
}

fn load(options: &Options) -> Result<u8, Error> {
    let stop = Stop::on_signals()?;
    let mut stage = Stage::connect(options, &stop)?;
    match options.phase {
        Phase::Prepare => return prepare(options, stage),
        Phase::Cleanup => {
            stage.clear()?;
            return Ok(0);
        }
        Phase::All | Phase::Run => {}
    }
    let mut log_file = options.hlog.as_deref().map(create).transpose()?;
    let mut serializer = V2DeflateSerializer::new();
    let file_error = |error| Error::Failed(format!("cannot write: {error}"));
    let log = log_file.as_mut().map(|file| HistogramLog::new(file, &mut serializer));
    let series = options.series.as_deref().map(create).transpose()?;
    let mut files = Files {
        series: series.map(Series::new).transpose().map_err(file_error)?,
        log: log.transpose().map_err(file_error)?,
    };
    let mut runs = Vec::new();
    let outcome = run_all(options, &mut stage, &mut files, &stop, &mut runs);
    // What was measured is kept whatever happened.
    let in_haste = !matches!(outcome, Ok(End::Finished | End::Interrupted));
    let left = stage.leave(in_haste);
    if let Some(path) = &options.json {
        write_json(path, "slap", &runs)?;
    }
    drop(files);
    if let Some(mut file) = log_file {
        file.flush().map_err(file_error)?;
    }
    match (outcome.and_then(|end| finish(&runs, &end)), left) {
        (Ok(0), Err(left)) => Err(left),
        (outcome, Err(left)) => {
            eprintln!("note: {left}");
            outcome
        }
        (outcome, Ok(())) => outcome,
    }
}

/// Makes the tables and leaves them, or nothing if that fails.
fn prepare(options: &Options, mut stage: Stage<'_>) -> Result<u8, Error> {
    let made = engines(options).into_iter().try_for_each(|engine| {
        stage.make(engine)?;
        stage.engine(engine).map(drop)
    });
    match made {
        Ok(()) => Ok(0),
        Err(error) => {
            if let Err(left) = stage.leave(true) {
                eprintln!("note: {left}");
            }
            Err(error)
        }
    }
}

fn finish(runs: &[RunResult], end: &End) -> Result<u8, Error> {
    match end {
        End::Interrupted => Err(Error::Interrupted),
        End::Aborted(cause) => Err(Error::Failed(cause.clone())),
        End::Finished => Ok(u8::from(runs.iter().any(|run| run.error_count() > 0))),
    }
}

/// All engines, numbers of clients and iterations; reports each group as it is done.
fn run_all(
    options: &Options,
    stage: &mut Stage<'_>,
    files: &mut dyn IntervalSink,
    stop: &Stop,
    runs: &mut Vec<RunResult>,
) -> Result<End, Error> {
    for engine_asked in engines(options) {
        for clients in &options.concurrency {
            let first = runs.len();
            let mut end = End::Finished;
            for iteration in 1..=options.iterations {
                if options.phase == Phase::All {
                    stage.make(engine_asked)?;
                } else {
                    stage.enter()?;
                }
                let engine = stage.engine(engine_asked)?;
                let which = Which { number: runs.len(), iteration, clients: *clients, engine_asked, engine };
                let result;
                (result, end) = one(options, stage, which, files, stop)?;
                runs.push(result);
                if end != End::Finished {
                    break;
                }
            }
            tell(options, &runs[first..])?;
            if end != End::Finished {
                return Ok(end);
            }
        }
    }
    Ok(End::Finished)
}

fn one(
    options: &Options,
    stage: &mut Stage<'_>,
    which: Which<'_>,
    files: &mut dyn IntervalSink,
    stop: &Stop,
) -> Result<(RunResult, End), Error> {
    let keys = stage.keys()?;
    for statement in &options.pre_query {
        stage.session.execute(statement)?;
    }
    if options.verbose {
        eprintln!("run {}: {} clients", which.number, which.clients);
    }
    let (result, end) = run::run(options, which, &keys, Some(files), stop)?;
    if end == End::Finished {
        for statement in &options.post_query {
            stage.session.execute(statement)?;
        }
    }
    Ok((result, end))
}

fn tell(options: &Options, runs: &[RunResult]) -> Result<(), Error> {
    if let Csv::File(path) = &options.csv {
        let failed = |error| Error::File(path.clone(), error);
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.map_err(failed)?;
        file.write_all(report::csv_line(runs).as_bytes()).map_err(failed)?;
    }
    if options.silent {
        return Ok(());
    }
    match options.csv {
        Csv::Terminal => print(&report::csv_line(runs)),
        Csv::No | Csv::File(_) => print(&report::block(runs)),
    }
    Ok(())
}
