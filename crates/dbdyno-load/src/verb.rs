//! What all verbs but `slap` have in common: `dbdyno VERB [LOAD] [flags] [prepare|run|cleanup]`.

use std::ffi::OsString;
use std::time::Duration;

use crate::command::{self, Asked, Command};
use crate::drive::End;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::flags::{self, Flag, Group, Table, nearest};
use crate::output::files::Names;
use crate::output::result::{RunResult, write_json};
use crate::output::sinks::{Sinks, check_files, with_sinks};
use crate::output::{self, print, report};
use crate::protocol::session::Session;
use crate::run::{Plan, run};
use crate::run_options::{Loop, RunOptions};
use crate::stop::Stop;
use crate::values::Values;
use crate::workload::Stepwise;
use crate::{login, run_options};

/// Length of a run that nothing bounds; sysbench's.
const DURATION: Duration = Duration::from_secs(10);

/// Makes a workload of flags (under their canonical names) and the name of a load.
pub type Make = fn(&Values<'_>, &str) -> Result<Box<dyn Stepwise>, Error>;

/// A verb.
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// What it does, for `--help`: some prose.
    pub about: &'static str,
    /// Its own flags; those of [`crate::run_options`] and [`crate::login`] come with every verb.
    pub flags: &'static [Flag],
    /// Names of its loads, the word after the verb. Where there are none, that word may be anything.
    pub loads: &'static [&'static str],
    /// What that word stands for where there are no loads.
    pub word: Option<&'static str>,
    /// The workload that is asked for.
    pub workload: Make,
}

/// Which part of the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Prepare, run, and clean up after it.
    All,
    Prepare,
    Run,
    Cleanup,
}

const PARTS: [(&str, Part); 4] =
    [("all", Part::All), ("prepare", Part::Prepare), ("run", Part::Run), ("cleanup", Part::Cleanup)];

/// Runs a verb and gives its exit code.
///
/// # Errors
/// What kept it from measuring anything.
pub fn main(verb: &Verb, arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    // A table is made once per process.
    let own = Group { title: "Of this load", flags: verb.flags };
    let table: Table = Box::leak(Box::new([own, run_options::GROUP, login::GROUP]));
    let mut notes = Vec::new();
    let asked = command::read(verb.name, table, 2, arguments, &mut notes)?;
    for note in notes {
        output::note(&note);
    }
    match asked {
        Asked::Help => print(&format!("{}\n{}\n\n{}", usage(verb), verb.about.trim(), flags::help(table))),
        Asked::Version => print(&format!("dbdyno-load {}\n", env!("CARGO_PKG_VERSION"))),
        Asked::Load(command) => return work(verb, &command),
    }
    Ok(0)
}

fn work(verb: &Verb, command: &Command) -> Result<u8, Error> {
    let (load, part) = words(verb, command.words())?;
    let values = command.values();
    let workload = (verb.workload)(&values, load)?;
    let mut options = RunOptions::read(&values)?;
    if options.duration.is_none() && options.events.is_none() && !workload.is_bounded() {
        options.duration = Some(DURATION);
    }
    if !values.has("ignore-errors") {
        options.ignore = workload.ignored_errors();
    }
    if matches!(part, Part::All | Part::Run) {
        check_files(&options)?;
    }
    let endpoint = command.login.endpoint()?;
    let stop = Stop::on_signals()?;
    let mut session = Session::connect(&endpoint, None, &stop)?;
    // It sleeps through every run, however long.
    session.execute("SET SESSION wait_timeout = 31536000")?;
    let job = Job { options: &options, endpoint: &endpoint, workload: &*workload, stop: &stop };
    match part {
        Part::Prepare => job.prepare(session).map(|_| 0),
        Part::Cleanup => {
            job.say("cleanup");
            workload.cleanup(&mut session).map(|()| 0)
        }
        Part::Run => job.run_all(&mut session),
        Part::All => {
            let mut session = job.prepare(session)?;
            let done = job.run_all(&mut session);
            let cleaned = job.clean_up(session, done.is_err());
            match (done, cleaned) {
                (Ok(_), Err(error)) => Err(error),
                (done, cleaned) => {
                    note_left(cleaned);
                    done
                }
            }
        }
    }
}

/// Says what a failure left behind, beside the failure itself.
fn note_left(cleaned: Result<(), Error>) {
    if let Err(error) = cleaned {
        output::note(&format!("the tables are left behind: {error}"));
    }
}

fn usage(verb: &Verb) -> String {
    let loads = loads_once(verb);
    let word = match loads.as_slice() {
        [] => verb.word.map_or_else(String::new, |word| format!(" {word}")),
        [_] => String::new(),
        _ => " LOAD".into(),
    };
    let listed = if loads.len() > 1 { format!("loads: {}\n", loads.join(", ")) } else { String::new() };
    format!(
        "usage: dbdyno {}{word} [flags] [prepare|run|cleanup]\n{listed}\
         Without the last word: prepare, run, cleanup. A list of clients or rates is one run for each.\n\
         Exit: 0 done, 1 failed or statements refused, 2 a mistake in the flags, 130 interrupted.\n",
        verb.name
    )
}

/// The loads of a verb, each once: a name with the verb in front is another of the same load.
fn loads_once(verb: &Verb) -> Vec<&'static str> {
    let prefix = format!("{}_", verb.name);
    verb.loads.iter().copied().filter(|load| !load.starts_with(&prefix)).collect()
}

/// Load and part from the words of a command line.
fn words<'a>(verb: &Verb, words: &'a [String]) -> Result<(&'a str, Part), Error> {
    let part = |word: &str| PARTS.iter().find(|(name, _)| *name == word).map(|(_, part)| *part);
    let (load, part) = match words {
        [] => ("", Part::All),
        [only] => part(only).map_or((only.as_str(), Part::All), |part| ("", part)),
        [load, last, ..] => {
            let known = part(last);
            let known = known.ok_or_else(|| Error::Usage(format!("{last:?} is none of prepare, run and cleanup")))?;
            (load.as_str(), known)
        }
    };
    match (load, verb.loads) {
        (_, []) => Ok((load, part)),
        ("", [only]) => Ok((only, part)),
        ("", _) => Err(Error::Usage(format!(
            "which load? dbdyno {} LOAD [flags] [prepare|run|cleanup], with LOAD one of {}",
            verb.name,
            loads_once(verb).join(", ")
        ))),
        (load, loads) if loads.contains(&load) => Ok((load, part)),
        (load, loads) => {
            let near = nearest(load, loads.iter().copied());
            let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
            let all = loads_once(verb).join(", ");
            Err(Error::Usage(format!("{} has no load {load:?}{hint}; loads: {all}", verb.name)))
        }
    }
}

/// What the runs of an invocation have in common.
struct Job<'a> {
    options: &'a RunOptions,
    endpoint: &'a Endpoint,
    workload: &'a dyn Stepwise,
    stop: &'a Stop,
}

impl Job<'_> {
    fn say(&self, what: &str) {
        if self.options.verbose {
            output::say(what);
        }
    }

    /// Makes the tables, or nothing if that fails.
    fn prepare(&self, mut session: Session) -> Result<Session, Error> {
        self.say("prepare");
        let mut begun = false;
        match self.workload.prepare(&mut session, &mut begun) {
            Ok(()) => Ok(session),
            Err(error) => {
                if begun {
                    note_left(self.clean_up(session, true));
                }
                Err(error)
            }
        }
    }

    /// After a failure (`in_haste`) the server may be dead, and is not waited for as long.
    fn clean_up(&self, session: Session, in_haste: bool) -> Result<(), Error> {
        self.say("cleanup");
        let mut session = session.for_cleaning_up(self.endpoint)?;
        if in_haste {
            session.set_patience(self.endpoint.connect_timeout.min(self.endpoint.stall_timeout));
        }
        self.workload.cleanup(&mut session)
    }

    /// Runs every loop with every number of clients, and tells of each.
    fn run_all(&self, session: &mut Session) -> Result<u8, Error> {
        let names = Names { kinds: self.workload.kinds(), phases: self.workload.phases() };
        let mut runs = Vec::new();
        let outcome = with_sinks(self.options, &names, |sinks| self.run_each(session, sinks, &mut runs));
        // What was measured is kept whatever happened.
        if let Some(path) = &self.options.json {
            write_json(path, self.workload.verb(), &runs)?;
        }
        exit_code(self.options, &runs, &outcome??)
    }

    fn run_each(&self, session: &mut Session, sinks: &mut Sinks<'_>, runs: &mut Vec<RunResult>) -> Result<End, Error> {
        for pace in &self.options.loops {
            for clients in &self.options.clients {
                let engine = self.workload.check(session)?.engine;
                let plan = self.plan(runs.len(), *pace, *clients, engine);
                self.say(&format!("run {}: {clients} clients", plan.number));
                sinks.starting(*clients);
                let (result, end) = run(self.options, self.endpoint, self.workload, &plan, sinks, self.stop)?;
                if let Some(note) = result.io_note.as_ref().filter(|_| runs.is_empty()) {
                    output::note(note);
                }
                if !self.options.silent {
                    print(&report::summary(&result));
                }
                runs.push(result);
                if end != End::Finished {
                    return Ok(end);
                }
            }
        }
        Ok(End::Finished)
    }

    fn plan(&self, number: usize, pace: Loop, clients: usize, engine: Option<String>) -> Plan {
        Plan {
            number,
            iteration: 1,
            step: number as u64,
            clients,
            pace,
            engine_asked: None,
            engine,
            duration: self.options.duration,
            events: self.options.events,
            queries_planned: None,
            queries_dropped: 0,
        }
    }
}

/// The exit code of finished runs: 1 if the server refused what was not to be ignored.
///
/// # Errors
/// They ended early.
pub fn exit_code(options: &RunOptions, runs: &[RunResult], end: &End) -> Result<u8, Error> {
    match end {
        End::Interrupted => Err(Error::Interrupted),
        End::Aborted(cause) => Err(Error::Failed(cause.clone())),
        End::Finished => {
            // A lost connection counts unless it was to be replaced.
            let forgiven = |code| options.ignore.has(code) || !options.reconnect.is_zero() && LOST.contains(&code);
            let refused = runs.iter().flat_map(|run| &run.errors).any(|error| !forgiven(error.code));
            Ok(u8::from(refused))
        }
    }
}

/// Errors that end a session: shutdown, lost, killed, disconnected.
const LOST: [u16; 4] = [1053, 2013, 1927, 4031];

#[cfg(test)]
mod tests {
    use super::*;

    fn verb(loads: &'static [&'static str]) -> Verb {
        let workload = |_: &Values<'_>, _: &str| Err(Error::Interrupted);
        Verb { name: "oltp", about: "", flags: &[], loads, word: None, workload }
    }

    #[test]
    fn words_are_a_load_and_a_part() {
        let read = |loads, line: &str| {
            let given: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            words(&verb(loads), &given).map(|(load, part)| (load.to_owned(), part)).map_err(|error| error.to_string())
        };
        let two: &[&str] = &["read_only", "write_only"];
        assert_eq!(read(two, "read_only run"), Ok(("read_only".into(), Part::Run)));
        assert_eq!(read(two, "write_only"), Ok(("write_only".into(), Part::All)));
        assert!(read(two, "run").unwrap_err().contains("which load?"));
        assert!(read(two, "read_olny run").unwrap_err().contains("did you mean read_only?"));
        assert!(read(two, "read_only rnu").unwrap_err().contains("none of prepare"));
        assert_eq!(read(&["insert"], "cleanup"), Ok(("insert".into(), Part::Cleanup)));
        assert_eq!(read(&[], "shop.sql run"), Ok(("shop.sql".into(), Part::Run)));
        assert_eq!(read(&[], "prepare"), Ok((String::new(), Part::Prepare)));
    }
}
