//! What all verbs have in common: `dbdyno VERB [LOAD] [flags] [prepare|run|cleanup]`, its flags, words and login,
//! and the work of an invocation: tables are made, runs measured and reported, tables dropped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use dbdyno_common::similar::did_you_mean;

use crate::account::{Account, Confined};
use crate::dialect::error_codes::is_session_lost;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event_loop::End;
use crate::flags::{self, ACTIONS, Action, Flag, Group, ParsedFlags, Table};
use crate::login::{self, LoginOptions};
use crate::output::result::{RunResult, write_json};
use crate::output::sinks::{Names, Sinks, check_files, with_sinks};
use crate::output::{self, print};
use crate::password;
use crate::protocol::session::Session;
use crate::run::run;
use crate::run_options::{self, Loop, Plan, RunOptions, Share};
use crate::stop::Stop;
use crate::values::Values;
use crate::workload::Stepwise;

/// Length of a run that nothing bounds; sysbench's.
const DURATION: Duration = Duration::from_secs(10);

/// Of `slap`: most of its flags shape generated statements.
const GENERATE: &str = "auto-generate-sql";

/// Makes a workload of flags (under their canonical names) and the name of a load.
pub type Make = fn(&Values<'_>, &str) -> Result<Box<dyn Stepwise>, Error>;

/// A part of the work that only one verb has, by its last word.
pub struct OwnAction {
    /// That word.
    pub word: &'static str,
    /// Does it and gives the exit code.
    pub work: fn(&Values<'_>, &Endpoint, &Stop) -> Result<u8, Error>,
}

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
    /// The part of the work is a flag, `--phase`, as mysqlslap's command line has no words.
    pub has_phase_flag: bool,
    /// The workload that is asked for.
    pub workload: Make,
    /// What it can do beside prepare, run and cleanup.
    pub own: Option<OwnAction>,
}

impl Verb {
    /// All its flags.
    pub fn table(&self) -> Table {
        // A table is made once per process.
        let own = Group { title: "This load", flags: self.flags };
        Box::leak(Box::new([own, run_options::GROUP, login::GROUP]))
    }

    /// The defaults of its flags, by reading a command line that has the switches without which they are not read.
    pub fn defaults(&self) -> BTreeMap<String, String> {
        let values =
            Values::new(self.flags.iter().filter(|flag| flag.name == GENERATE).map(|f| (f.name, None)).collect());
        let _ = RunOptions::read(&values);
        let _ = (self.workload)(&values, self.loads.first().unwrap_or(&""));
        values.defaults()
    }
}

/// What the flag `--phase` asks for.
///
/// # Errors
/// It is no part of the work.
pub fn phase(values: &Values<'_>) -> Result<Action, Error> {
    values.choice("phase", &ACTIONS, Action::All)
}

/// Runs a verb and gives its exit code.
///
/// # Errors
/// What kept it from measuring anything.
pub fn main(verb: &Verb, arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let table = verb.table();
    let mut notes = Vec::new();
    let request = read(verb.name, table, if verb.has_phase_flag { 0 } else { 2 }, arguments, &mut notes)?;
    for note in notes {
        output::note(&note);
    }
    match request {
        Request::Help => {
            print(&format!("{}\n{}\n\n{}", usage(verb), verb.about.trim(), flags::help(table, &verb.defaults())));
        }
        Request::Version => print(&format!("dbdyno-load {}\n", env!("CARGO_PKG_VERSION"))),
        Request::Load(command) => return work(verb, &command),
    }
    Ok(0)
}

fn work(verb: &Verb, command: &Command) -> Result<u8, Error> {
    let values = command.values();
    if let (Some(own), Some(last)) = (&verb.own, command.words().last())
        && last == own.word
    {
        return (own.work)(&values, &command.login.endpoint()?, &Stop::on_signals()?);
    }
    let (load, action) = if verb.has_phase_flag { ("", phase(&values)?) } else { words(verb, command.words())? };
    let workload = (verb.workload)(&values, load)?;
    if let Some(text) = workload.printed() {
        print(&text);
        return Ok(0);
    }
    let mut options = RunOptions::read(&values)?;
    // As with sysbench, --time=0 means until it is interrupted.
    if options.duration.is_none() && options.events.is_none() && !workload.is_bounded() && !values.has("duration") {
        options.duration = Some(DURATION);
    }
    if let Some(clients) = workload.clients() {
        options.clients = vec![clients];
    }
    if let Some(loops) = workload.loops() {
        options.loops = loops;
    }
    if !values.has("ignore-errors") {
        options.ignore = workload.ignored_errors();
    }
    if matches!(action, Action::All | Action::Run) {
        check_files(&options)?;
    }
    let endpoint = command.login.endpoint()?;
    let stop = Stop::on_signals()?;
    let job =
        |endpoint| Job { action, options: &options, endpoint, verb: verb.name, workload: &*workload, stop: &stop };
    let Some(confined) = workload.confined() else {
        return job(&endpoint).work();
    };
    let account = Account::make(&endpoint, confined, &stop)?;
    let done = job(account.endpoint()).work();
    match (done, account.remove()) {
        (Ok(_), Err(left)) => Err(left),
        (done, removed) => {
            if let Err(left) = removed {
                output::note(&left.to_string());
            }
            done
        }
    }
}

fn usage(verb: &Verb) -> String {
    let loads = verb.loads;
    let word = match loads {
        [] => verb.word.map_or_else(String::new, |word| format!(" {word}")),
        [_] => String::new(),
        _ => " LOAD".into(),
    };
    let listed = if loads.len() > 1 { format!("loads: {}\n", loads.join(", ")) } else { String::new() };
    let own = verb.own.as_ref().map_or_else(String::new, |own| format!("|{}", own.word));
    let words = format!(" [prepare|run|cleanup{own}]");
    let actions = if verb.has_phase_flag { ["", "--phase"] } else { [words.as_str(), "the last word"] };
    format!(
        "usage: dbdyno {}{word} [flags]{}\n{listed}\
         Without {}: prepare, run, cleanup. A list of clients or rates is one run for each.\n\
         Exit: 0 done, 1 failed or statements refused, 2 a mistake in flags or files, 130 interrupted.\n",
        verb.name, actions[0], actions[1]
    )
}

/// Load and action from the words of a command line.
fn words<'a>(verb: &Verb, words: &'a [String]) -> Result<(&'a str, Action), Error> {
    let action = |word: &str| ACTIONS.iter().find(|(name, _)| *name == word).map(|(_, action)| *action);
    let (load, action) = match words {
        [] => ("", Action::All),
        [only] => action(only).map_or((only.as_str(), Action::All), |action| ("", action)),
        [load, last, ..] => {
            let known = action(last);
            let known = known.ok_or_else(|| Error::Usage(format!("{last:?} is not prepare, run or cleanup")))?;
            (load.as_str(), known)
        }
    };
    // sysbench's name of a load has the verb in front.
    let plain = |load| str::strip_prefix(load, verb.name).and_then(|rest| rest.strip_prefix('_')).unwrap_or(load);
    match (load, verb.loads) {
        (_, []) => Ok((load, action)),
        ("", [only]) => Ok((only, action)),
        ("", _) => Err(Error::Usage(format!(
            "which load? dbdyno {} LOAD [flags] [prepare|run|cleanup], with LOAD one of {}",
            verb.name,
            verb.loads.join(", ")
        ))),
        (load, loads) if loads.contains(&plain(load)) => Ok((plain(load), action)),
        (load, loads) => {
            let hint = did_you_mean(load, loads.iter().copied());
            let all = verb.loads.join(", ");
            Err(Error::Usage(format!("{} has no load {load:?}; its loads are {all}{hint}", verb.name)))
        }
    }
}

/// A command line.
#[derive(Debug)]
pub struct Command {
    parsed: ParsedFlags,
    /// How the server is reached.
    pub login: LoginOptions,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// The help text.
    Help,
    /// The version.
    Version,
    /// Work.
    Load(Command),
}

impl Command {
    /// The flags that are not about the login.
    pub fn values(&self) -> Values<'_> {
        let flags = self.parsed.flags.iter();
        Values::new(flags.map(|(flag, value)| (flag.canonical(), value.as_deref())).collect())
    }

    /// What belongs to no flag.
    pub fn words(&self) -> &[String] {
        &self.parsed.words
    }
}

/// Reads the command line of `verb`; notes on what is ignored go to `notes`.
///
/// A password on it makes the process start over without.
///
/// # Errors
/// Anything wrong with it.
pub fn read(
    verb: &str,
    table: Table,
    words_max: usize,
    arguments: impl IntoIterator<Item = OsString>,
    notes: &mut Vec<String>,
) -> Result<Request, Error> {
    let parsed = flags::parse(table, words_max, arguments, notes)?;
    let has = |name: &str| parsed.flags.iter().any(|(flag, _)| flag.name == name);
    if has("help") {
        return Ok(Request::Help);
    }
    if has("version") {
        return Ok(Request::Version);
    }
    let mut login = LoginOptions::default();
    for (flag, value) in &parsed.flags {
        login.take(flag.canonical(), value.as_deref())?;
    }
    if let Some(password) = login.exposed_password() {
        return Err(password::restart_without(password, without_password(verb, &parsed)));
    }
    Ok(Request::Load(Command { parsed, login }))
}

/// The command line again, without the password.
fn without_password(verb: &str, parsed: &ParsedFlags) -> Vec<OsString> {
    let mut arguments = vec![verb.into(), "--password-from-env".into()];
    for (flag, value) in parsed.flags.iter().filter(|(flag, _)| flag.canonical() != "password") {
        arguments.push(match value {
            Some(value) => format!("--{}={value}", flag.name).into(),
            None => format!("--{}", flag.name).into(),
        });
    }
    arguments.extend(parsed.words.iter().map(OsString::from));
    arguments
}

/// What is to be done, and by which login.
pub struct Job<'a> {
    /// Which part of it.
    pub action: Action,
    /// How the load is offered and measured.
    pub options: &'a RunOptions,
    /// The server.
    pub endpoint: &'a Endpoint,
    /// The verb's name.
    pub verb: &'static str,
    /// The load.
    pub workload: &'a dyn Stepwise,
    /// Ctrl-C.
    pub stop: &'a Stop,
}

impl Job<'_> {
    /// Does it and gives the exit code.
    ///
    /// # Errors
    /// What kept it from being done.
    pub fn work(&self) -> Result<u8, Error> {
        let mut session = Session::connect(self.endpoint, None, self.stop)?;
        // It sleeps through every run, however long.
        session.execute("SET SESSION wait_timeout = 31536000")?;
        let mut begun = false;
        let done = self.act(&mut session, &mut begun);
        let stays = match self.action {
            Action::All => self.workload.keeps_tables(),
            Action::Prepare => done.is_ok(),
            Action::Run | Action::Cleanup => true,
        };
        if stays || !begun {
            session.quit();
            return done;
        }
        let after_failure = !matches!(done, Ok(_) | Err(Error::Interrupted));
        match (done, self.clean_up(session, after_failure)) {
            (Ok(_), Err(error)) => Err(error),
            (done, cleaned) => {
                if let Err(error) = cleaned {
                    output::note(&format!("the tables could not be dropped: {error}"));
                }
                done
            }
        }
    }

    /// `begun` is whether there may be something to clean up.
    fn act(&self, session: &mut Session, begun: &mut bool) -> Result<u8, Error> {
        match self.action {
            Action::Cleanup => {
                self.say("cleanup");
                self.workload.cleanup(session).map(|()| 0)
            }
            Action::Prepare => self.prepare(session, begun).map(|()| 0),
            Action::All if !self.workload.is_made_anew() => {
                self.prepare(session, begun)?;
                *begun = true;
                self.run_all(session, begun)
            }
            Action::All | Action::Run => self.run_all(session, begun),
        }
    }

    fn say(&self, what: &str) {
        if self.options.verbose {
            output::say(what);
        }
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        self.say("prepare");
        self.workload.prepare(session, begun)
    }

    /// After a failure the server may be dead, and is not waited for as long.
    fn clean_up(&self, session: Session, after_failure: bool) -> Result<(), Error> {
        self.say("cleanup");
        let mut session = session.for_cleaning_up(self.endpoint)?;
        if after_failure {
            session.wait_at_most(self.endpoint.connect_timeout.min(self.endpoint.stall_timeout));
        }
        self.workload.cleanup(&mut session)?;
        session.quit();
        Ok(())
    }

    /// Measures all runs and writes their results.
    fn run_all(&self, session: &mut Session, begun: &mut bool) -> Result<u8, Error> {
        let names = Names { kinds: self.workload.kinds(), phases: self.workload.phases() };
        let mut runs = Vec::new();
        let outcome = with_sinks(self.options, &names, |sinks| self.run_combinations(session, begun, sinks, &mut runs));
        // What was measured is kept whatever happened.
        if let Some(path) = &self.options.json {
            write_json(path, self.verb, runs.iter().map(RunResult::to_load_run).collect())?;
        }
        let done = self.exit_code(&runs, outcome??);
        done.map_err(|error| match (error, self.workload.confined()) {
            (Error::Failed(cause), Some(confined)) => Error::Failed(cause + &remedy(confined, &runs)),
            (error, _) => error,
        })
    }

    /// Every engine with every loop and every number of clients.
    fn run_combinations(
        &self,
        session: &mut Session,
        begun: &mut bool,
        sinks: &mut Sinks<'_>,
        runs: &mut Vec<RunResult>,
    ) -> Result<End, Error> {
        loop {
            for pace in &self.options.loops {
                for clients in &self.options.clients {
                    let first = runs.len();
                    let end = self.iterate((*pace, *clients), session, begun, sinks, runs)?;
                    let text = self.workload.report(&runs[first..])?;
                    if !self.options.silent {
                        print(&text);
                    }
                    if end != End::Finished {
                        return Ok(end);
                    }
                }
            }
            if !self.workload.next_engine() {
                return Ok(End::Finished);
            }
        }
    }

    fn iterate(
        &self,
        (pace, clients): (Loop, usize),
        session: &mut Session,
        begun: &mut bool,
        sinks: &mut Sinks<'_>,
        runs: &mut Vec<RunResult>,
    ) -> Result<End, Error> {
        for iteration in 1..=self.workload.iterations() {
            if self.makes_anew() {
                self.prepare(session, begun)?;
            }
            let engine = self.workload.check(session)?.engine;
            let plan = self.plan(runs.len(), iteration, pace, clients, engine)?;
            self.say(&format!("run {}: {} clients", plan.number, plan.clients));
            sinks.starting(plan.clients);
            let (result, end) = run(self.options, self.endpoint, self.workload, &plan, sinks, self.stop)?;
            if let Some(note) = result.io_note.as_ref().filter(|_| runs.is_empty()) {
                output::note(note);
            }
            runs.push(result);
            if end != End::Finished {
                return Ok(end);
            }
            self.workload.after_run(session)?;
        }
        Ok(End::Finished)
    }

    fn makes_anew(&self) -> bool {
        self.action == Action::All && self.workload.is_made_anew()
    }

    fn plan(
        &self,
        number: usize,
        iteration: u32,
        pace: Loop,
        clients_of_all: usize,
        engine: Option<String>,
    ) -> Result<Plan, Error> {
        let share = self.options.share;
        let (first_client, clients) = share.part(clients_of_all);
        if clients == 0 {
            let (text, of) = (share.text(), share.of);
            return Err(Error::Usage(format!(
                "--share={text}: {clients_of_all} clients cannot be divided among {of} processes"
            )));
        }
        // What the clients of other processes send is not known here.
        let planned = |all| if share == Share::ALL { all } else { (None, 0) };
        let (queries_planned, queries_dropped) = planned(self.workload.planned(clients));
        Ok(Plan {
            verb: self.verb,
            number,
            iteration,
            step: if self.makes_anew() { 0 } else { number as u64 },
            clients,
            share,
            first_client,
            clients_of_all,
            pace,
            engine_choice: self.workload.engine_choice().map(str::to_owned),
            engine,
            duration: self.options.duration,
            events: self.options.events.map(|events| share.part(events as usize).1 as u64),
            queries_planned,
            queries_dropped,
        })
    }

    /// The exit code of finished runs: 1 if the server refused what was not to be ignored.
    fn exit_code(&self, runs: &[RunResult], end: End) -> Result<u8, Error> {
        match end {
            End::Interrupted => Err(Error::Interrupted),
            End::Aborted(cause) => Err(Error::Failed(cause)),
            End::Finished => {
                let RunOptions { ignore, reconnect, .. } = self.options;
                // A lost connection counts unless it was to be replaced, or to be lost.
                let may_be_lost = !reconnect.is_zero() || self.workload.expects_loss();
                let forgiven = |code| ignore.has(code) || may_be_lost && is_session_lost(code);
                let refused = runs.iter().flat_map(|run| &run.errors).any(|error| !forgiven(error.code));
                Ok(u8::from(refused))
            }
        }
    }
}

/// What to do about rights that the runs lacked, if they did.
fn remedy(confined: &Confined, runs: &[RunResult]) -> String {
    let mut remedies = runs.iter().flat_map(|run| &run.errors).map(|error| confined.remedy(error.code));
    remedies.find(|remedy| !remedy.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verb(loads: &'static [&'static str]) -> Verb {
        let workload = |_: &Values<'_>, _: &str| Err(Error::Interrupted);
        Verb { name: "oltp", about: "", flags: &[], loads, word: None, has_phase_flag: false, workload, own: None }
    }

    #[test]
    fn words_are_a_load_and_a_part() {
        let read = |loads, line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            words(&verb(loads), &arguments)
                .map(|(load, action)| (load.to_owned(), action))
                .map_err(|error| error.to_string())
        };
        let two: &[&str] = &["read_only", "write_only"];
        assert_eq!(read(two, "read_only run"), Ok(("read_only".into(), Action::Run)));
        assert_eq!(read(two, "write_only"), Ok(("write_only".into(), Action::All)));
        assert_eq!(read(two, "oltp_read_only"), Ok(("read_only".into(), Action::All)));
        assert!(read(two, "run").unwrap_err().contains("which load?"));
        assert!(read(two, "read_olny run").unwrap_err().contains("Did you mean \"read_only\"?"));
        assert!(read(two, "read_only rnu").unwrap_err().contains("is not prepare, run or cleanup"));
        assert_eq!(read(&["insert"], "cleanup"), Ok(("insert".into(), Action::Cleanup)));
        assert_eq!(read(&[], "shop.sql run"), Ok(("shop.sql".into(), Action::Run)));
        assert_eq!(read(&[], "prepare"), Ok((String::new(), Action::Prepare)));
    }

    #[test]
    fn a_password_does_not_survive_on_the_command_line() {
        static TABLE: Table = &[
            Group {
                title: "",
                flags: &[Flag::switch("all", "").short('a'), Flag::value("mysql-password", "").same_as("password")],
            },
            crate::login::GROUP,
        ];
        for secret in ["-psecret", "--password=secret", "--mysql-password=secret"] {
            let line = ["-a", secret, "-u", "me", "run"].map(OsString::from);
            let parsed = flags::parse(TABLE, 1, line, &mut Vec::new()).unwrap();
            assert_eq!(without_password("oltp", &parsed), ["oltp", "--password-from-env", "--all", "--user=me", "run"]);
        }
    }
}
