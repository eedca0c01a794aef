//! What all verbs have in common: `dbdyno VERB [LOAD] [flags] [prepare|run|cleanup]`, its flags, words and login.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use dbdyno_common::similar::did_you_mean;

use crate::account::Account;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::flags::{self, ACTIONS, Action, Flag, Group, ParsedFlags, Table};
use crate::job::Job;
use crate::login::{self, LoginOptions};
use crate::output::sinks::check_files;
use crate::output::{self, print};
use crate::run_options::{self, RunOptions};
use crate::security;
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
    let asked = read(verb.name, table, if verb.has_phase_flag { 0 } else { 2 }, arguments, &mut notes)?;
    for note in notes {
        output::note(&note);
    }
    match asked {
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
         Exit: 0 done, 1 failed or statements refused, 2 a mistake in the flags, 130 interrupted.\n",
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
            Err(Error::Usage(format!("{} has no load {load:?}{hint}; loads: {all}", verb.name)))
        }
    }
}

/// A command line.
#[derive(Debug)]
pub struct Command {
    given: ParsedFlags,
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
        let flags = self.given.flags.iter();
        Values::new(flags.map(|(flag, value)| (flag.canonical(), value.as_deref())).collect())
    }

    /// What belongs to no flag.
    pub fn words(&self) -> &[String] {
        &self.given.words
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
    let given = flags::parse(table, words_max, arguments, notes)?;
    let has = |name: &str| given.flags.iter().any(|(flag, _)| flag.name == name);
    if has("help") {
        return Ok(Request::Help);
    }
    if has("version") {
        return Ok(Request::Version);
    }
    let mut login = LoginOptions::default();
    for (flag, value) in &given.flags {
        login.take(flag.canonical(), value.as_deref())?;
    }
    if let Some(password) = login.exposed_password() {
        return Err(security::restart_without(password, without_password(verb, &given)));
    }
    Ok(Request::Load(Command { given, login }))
}

/// The command line again, without the password.
fn without_password(verb: &str, given: &ParsedFlags) -> Vec<OsString> {
    let mut arguments = vec![verb.into(), "--password-from-env".into()];
    for (flag, value) in given.flags.iter().filter(|(flag, _)| flag.canonical() != "password") {
        arguments.push(match value {
            Some(value) => format!("--{}={value}", flag.name).into(),
            None => format!("--{}", flag.name).into(),
        });
    }
    arguments.extend(given.words.iter().map(OsString::from));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Flag, Group};

    fn verb(loads: &'static [&'static str]) -> Verb {
        let workload = |_: &Values<'_>, _: &str| Err(Error::Interrupted);
        Verb { name: "oltp", about: "", flags: &[], loads, word: None, has_phase_flag: false, workload, own: None }
    }

    #[test]
    fn words_are_a_load_and_a_part() {
        let read = |loads, line: &str| {
            let given: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            words(&verb(loads), &given)
                .map(|(load, action)| (load.to_owned(), action))
                .map_err(|error| error.to_string())
        };
        let two: &[&str] = &["read_only", "write_only"];
        assert_eq!(read(two, "read_only run"), Ok(("read_only".into(), Action::Run)));
        assert_eq!(read(two, "write_only"), Ok(("write_only".into(), Action::All)));
        assert_eq!(read(two, "oltp_read_only"), Ok(("read_only".into(), Action::All)));
        assert!(read(two, "run").unwrap_err().contains("which load?"));
        assert!(read(two, "read_olny run").unwrap_err().contains("did you mean read_only?"));
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
            let given = flags::parse(TABLE, 1, line, &mut Vec::new()).unwrap();
            assert_eq!(without_password("oltp", &given), ["oltp", "--password-from-env", "--all", "--user=me", "run"]);
        }
    }
}
