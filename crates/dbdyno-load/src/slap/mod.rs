//! The verb `slap`: mysqlslap's auto-generated load, with honest latency.

mod flags;
mod list;
mod load;
mod operation;
mod options;
mod sql;
mod stage;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::drive::End;
use crate::error::Error;
use crate::names::quoted;
use crate::output::files::Names;
use crate::output::result::{RunResult, write_json};
use crate::output::sinks::{Sinks, check_files, with_sinks};
use crate::output::{self, print, report};
use crate::run::{Plan, run};
use crate::run_options::Loop;
use crate::secret;
use crate::stop::Stop;
use crate::verb::exit_code;

use load::{Slap, statements};
use operation::Operation;
use options::{Csv, Options, Phase, Request, Source, parse};
use stage::{Stage, initial_inserts};

const ABOUT: &str = "\
usage: dbdyno slap [flags]

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
        output::note(&note);
    }
    match request {
        Request::Help => print(&format!("{ABOUT}{}", crate::flags::help(flags::TABLE))),
        Request::Version => print(&format!("dbdyno-load {}\n", env!("CARGO_PKG_VERSION"))),
        Request::Load(options) if options.only_print => only_print(&options),
        Request::Load(options) => return load(&options),
    }
    Ok(0)
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
        for clients in &options.run.clients {
            let list = statements(options);
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
    if matches!(options.phase, Phase::All | Phase::Run) {
        check_files(&options.run)?;
        if let Csv::File(path) = &options.csv {
            open_csv(path)?;
        }
    }
    let stop = Stop::on_signals()?;
    let mut stage = Stage::connect(options, &stop)?;
    match options.phase {
        Phase::Prepare => return prepare(options, stage),
        Phase::Cleanup => {
            stage::clear(options, &mut stage.session)?;
            return Ok(0);
        }
        Phase::All | Phase::Run => {}
    }
    let mut runs = Vec::new();
    let names = Names { kinds: Operation::ALL.into_iter().map(Operation::kind).collect(), phases: &[] };
    let outcome = with_sinks(&options.run, &names, |sinks| run_all(options, &mut stage, sinks, &stop, &mut runs))
        .and_then(|end| end);
    // What was measured is kept whatever happened.
    let in_haste = !matches!(outcome, Ok(End::Finished | End::Interrupted));
    let left = stage.leave(in_haste);
    if let Some(path) = &options.run.json {
        write_json(path, "slap", &runs)?;
    }
    match (outcome.and_then(|end| exit_code(&options.run, &runs, &end)), left) {
        (Ok(0), Err(left)) => Err(left),
        (outcome, Err(left)) => {
            output::note(&left.to_string());
            outcome
        }
        (outcome, Ok(())) => outcome,
    }
}

/// Makes the tables and leaves them, or nothing if that fails.
fn prepare(options: &Options, mut stage: Stage<'_>) -> Result<u8, Error> {
    let made = engines(options).into_iter().try_for_each(|engine| {
        stage.make(engine)?;
        stage::engine(options, engine, &mut stage.session).map(drop)
    });
    match made {
        Ok(()) => Ok(0),
        Err(error) => {
            if let Err(left) = stage.leave(true) {
                output::note(&left.to_string());
            }
            Err(error)
        }
    }
}

/// All engines, loops and numbers of clients; reports each group of iterations as it is done.
fn run_all(
    options: &Options,
    stage: &mut Stage<'_>,
    sinks: &mut Sinks<'_>,
    stop: &Stop,
    runs: &mut Vec<RunResult>,
) -> Result<End, Error> {
    for engine in engines(options) {
        for pace in &options.run.loops {
            for clients in &options.run.clients {
                let first = runs.len();
                let end = iterations(options, stage, (engine, *pace, *clients), sinks, stop, runs)?;
                tell(options, &runs[first..])?;
                if end != End::Finished {
                    return Ok(end);
                }
            }
        }
    }
    Ok(End::Finished)
}

fn iterations(
    options: &Options,
    stage: &mut Stage<'_>,
    (engine, pace, clients): (Option<&str>, Loop, usize),
    sinks: &mut Sinks<'_>,
    stop: &Stop,
    runs: &mut Vec<RunResult>,
) -> Result<End, Error> {
    for iteration in 1..=options.iterations {
        if options.phase == Phase::All {
            stage.make(engine)?;
        } else {
            stage::enter(options, &mut stage.session)?;
        }
        let (per_client, queries_dropped) = options.per_client(clients, statements(options).len());
        let plan = Plan {
            number: runs.len(),
            iteration,
            step: if options.phase == Phase::All { 0 } else { runs.len() as u64 },
            clients,
            pace,
            engine_asked: engine.map(str::to_owned),
            engine: stage::engine(options, engine, &mut stage.session)?,
            duration: options.run.duration,
            events: options.run.events,
            queries_planned: per_client.queries.map(|each| each * clients as u64),
            queries_dropped,
        };
        let keys = stage::keys(options, &mut stage.session)?;
        let (result, end) = one(options, stage, &Slap { options, keys, per_client }, &plan, sinks, stop)?;
        runs.push(result);
        if end != End::Finished {
            return Ok(end);
        }
    }
    Ok(End::Finished)
}

fn one(
    options: &Options,
    stage: &mut Stage<'_>,
    slap: &Slap<'_>,
    plan: &Plan,
    sinks: &mut Sinks<'_>,
    stop: &Stop,
) -> Result<(RunResult, End), Error> {
    for statement in &options.pre_query {
        stage.session.execute(statement)?;
    }
    options.pre_system.as_deref().map_or(Ok(()), shell)?;
    if options.run.verbose {
        output::say(&format!("run {}: {} clients", plan.number, plan.clients));
    }
    sinks.starting(plan.clients);
    let (result, end) = run(&options.run, &options.endpoint, slap, plan, sinks, stop)?;
    if end == End::Finished {
        for statement in &options.post_query {
            stage.session.execute(statement)?;
        }
        options.post_system.as_deref().map_or(Ok(()), shell)?;
    }
    Ok((result, end))
}

/// Runs a command of the user's, which needs no password of ours.
fn shell(command: &str) -> Result<(), Error> {
    let status = Command::new("/bin/sh").arg("-c").arg(command).env_remove(secret::VARIABLE).status();
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

fn tell(options: &Options, runs: &[RunResult]) -> Result<(), Error> {
    if let Csv::File(path) = &options.csv {
        let written = open_csv(path)?.write_all(report::csv_line(runs).as_bytes());
        written.map_err(|error| Error::File(path.clone(), error))?;
    }
    if options.run.silent {
        return Ok(());
    }
    match options.csv {
        Csv::Terminal => print(&report::csv_line(runs)),
        Csv::No | Csv::File(_) => print(&report::block(runs)),
    }
    Ok(())
}
