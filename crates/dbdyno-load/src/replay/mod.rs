//! The verb `replay-log`: the statements of a server's log, when its clients sent them. Here are its options, its
//! clients and its report.
//!
//! Data flows one way: a file -> statements with their starts ([`log`]) -> what is sent of them ([`statement`],
//! [`routines`], [`choice`]) -> sessions on connections ([`plan`]) -> the event loop, which asks [`ReplayClients`]. No
//! text of a statement goes into any output.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use self::log::{Form, Log, LoggedStatement};
use self::not_sent::Occurrences;
use self::plan::{Lane, Replay, Wish};
use self::setup::Setup;
use self::statement::USE;
use crate::account::Confined;
use crate::dialect;
use crate::error::Error;
use crate::flags::Flag;
use crate::names::{self, quoted};
use crate::output::note;
use crate::output::result::{RunResult, summary};
use crate::protocol::packet::RequestEncoder;
use crate::protocol::reply::ServerError;
use crate::protocol::session::Session;
use crate::run_options::{CLIENTS_MAX, Loop};
use crate::script::model::Script;
use crate::script::stage::{self, Destination, engine};
use crate::statements::{After, Due, Kind, Next, Part, Statement, Statements};
use crate::table_options::{self, TableOptions};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

pub mod log;
mod not_sent;
mod plan;
mod routines;
mod setup;
pub mod statement;

const ABOUT: &str = "\
Replays a slow query log or a general query log of MySQL, MariaDB or Percona Server: the statements of
each session on a connection of its own, in their order, at the times of the log.

  dbdyno replay-log slow.log --setup=dump.sql                   statements that read, at the log's speed
  dbdyno replay-log slow.log --setup=dump.sql --writes --speed=2   all statements in half the time

The content shows which log it is. A slow log has only what took longer than long_query_time: to log
all statements set that to 0. No text of a statement is shown or written anywhere.

";

const FLAGS: &[Flag] = &[
    Flag::value("file", "the log").short('f'),
    Flag::value("speed", "speed relative to the log, or a list, one run each; 0: each session as fast as it can"),
    Flag::switch("writes", "also send the statements that write"),
    Flag::value("setup", "SQL that makes the tables, such as a dump: run by prepare; cleanup drops what it made"),
    Flag::value("schema", "schema of the tables"),
    Flag::value("from-schema", "replay the statements of this schema of the log"),
    Flag::value("engine", "storage engine of tables whose CREATE TABLE names none (the server's)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::switch("whole-server", "use your own login, and send each statement to its own schema"),
    Flag::value("account", ""),
];

/// The verb.
pub static VERB: Verb = Verb {
    name: "replay-log",
    about: ABOUT,
    flags: FLAGS,
    loads: &[],
    word: Some("FILE"),
    has_phase_flag: false,
    workload,
    own: None,
};

/// A replay with its options.
struct Load(Options);

fn workload(values: &Values<'_>, file: &str) -> Result<Box<dyn Stepwise>, Error> {
    Ok(Box::new(Load(read(values, file)?)))
}

impl Workload for Load {
    fn load(&self) -> &str {
        &self.0.setup.name
    }

    fn schema(&self) -> &str {
        &self.0.destination.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        statement::kinds()
    }

    fn setup(&self) -> Vec<String> {
        // A statement does not show all that it does, as views have functions and tables have triggers; the server
        // knows.
        if self.0.writes { Vec::new() } else { vec!["SET SESSION TRANSACTION READ ONLY".into()] }
    }

    fn particulars(&self) -> Option<(&'static str, Value)> {
        Some(("log", self.0.replay.json()))
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(ReplayClients::new(&self.0.replay, portion)))
    }
}

impl Stepwise for Load {
    fn is_bounded(&self) -> bool {
        true
    }

    fn clients(&self) -> Option<usize> {
        Some(self.0.replay.shared().lanes.len())
    }

    fn loops(&self) -> Option<Vec<Loop>> {
        Some(self.0.speeds.iter().map(|speed| Loop::Logged { speed: *speed }).collect())
    }

    fn planned(&self, _clients: usize) -> (Option<u64>, u64) {
        (Some(self.0.replay.statements()), 0)
    }

    fn confined(&self) -> Option<&Confined> {
        self.0.destination.confined.as_ref()
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        if !self.0.setup_note.is_empty() {
            note(&self.0.setup_note);
        }
        stage::prepare(&self.0.setup, &self.0.destination, session, begun)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        stage::enter(&self.0.destination, session)?;
        self.0.replay.ask_server(session, &self.0.destination)?;
        if self.0.replay.wish.follows_schemas {
            self.0.replay.find_schemas(session)?;
        }
        Ok(ServerState { engine: engine(&self.0.destination, session)? })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        stage::cleanup(&self.0.setup, &self.0.destination, session)
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        Ok(self.0.replay.text(runs))
    }
}

/// Greatest speed.
const SPEED_MAX: f64 = 1e6;

/// What a log itself says, or what would change the data before it is replayed; and what to give instead.
const MEANINGLESS: [(&str, &str); 5] = [
    ("rate", "the log has the times of its statements: give --speed"),
    ("arrivals", "the log has the times of its statements: give --speed"),
    ("think-time", "the log has the pauses of its sessions: give --speed"),
    ("think-distribution", "the log has the pauses of its sessions: give --speed"),
    ("warmup", "a log is replayed from its start: run it once before, for example with --speed=0 run"),
];

/// A replay as it is asked for.
pub struct Options {
    /// The log.
    pub replay: Replay,
    /// Statements that write are sent as well.
    pub writes: bool,
    /// One run for each; 0: without waiting.
    pub speeds: Vec<f64>,
    /// What makes the tables.
    pub setup: Script,
    /// What is not run of its file; empty if all is.
    pub setup_note: String,
    /// Where they are.
    pub destination: Destination,
}

/// Reads the flags and the files.
///
/// # Errors
/// No file, one that cannot be read or is no log, or flags that mean nothing here.
pub fn read(values: &Values<'_>, file: &str) -> Result<Options, Error> {
    let speeds = values.list("speed", 1.0, 0.0, SPEED_MAX)?;
    let destination = destination(values)?;
    for (flag, instead) in MEANINGLESS {
        if values.has(flag) {
            return Err(Error::Usage(format!("--{flag} means nothing for a log: {instead}")));
        }
    }
    let path = Some(file).filter(|file| !file.is_empty()).or(values.text("file"));
    let Some(path) = path else {
        return Err(Error::Usage("which log? dbdyno replay-log FILE [flags] [prepare|run|cleanup]".into()));
    };
    if !file.is_empty() && values.has("file") {
        return Err(Error::Usage("one log at a time: give it as a word or by --file".into()));
    }
    let wish = Wish {
        writes: values.has("writes"),
        is_confined: !values.has("whole-server"),
        follows_schemas: values.has("whole-server") && !values.has("from-schema"),
        from_schema: values.text("from-schema").map(str::to_owned),
    };
    let (writes, is_confined) = (wish.writes, wish.is_confined);
    let name = Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned());
    let replay = Replay::new(name, path, Log::read(path)?, wish)?;
    let clients: usize = values.number("clients", CLIENTS_MAX)?;
    let needed = replay.shared().lanes.len();
    if needed > clients.min(CLIENTS_MAX) {
        let text = format!(
            "--clients={clients}: {path} has up to {needed} sessions at a time, each with a connection of its own"
        );
        return Err(Error::Usage(format!("{text}: give --clients={needed}, or replay a part of the log")));
    }
    let mut setup = values.text("setup").map_or_else(|| Ok(Setup::default()), |path| setup::read(path, is_confined))?;
    setup.script.name = Script::named(path).name;
    let (setup, setup_note) = (setup.script, setup.note);
    Ok(Options { replay, writes, speeds, setup, setup_note, destination })
}

/// Whose statements run where.
fn destination(values: &Values<'_>) -> Result<Destination, Error> {
    let schema = names::schema(values, "schema", "dbdyno_replay_log")?;
    let confined = Confined::new(&schema, values.text("account"))?;
    let confined = (!values.has("whole-server")).then_some(confined);
    Ok(Destination {
        schema,
        engine: names::engine(values)?,
        table_options: TableOptions::read(values)?,
        confined,
        is_secret: true,
    })
}

/// The clients of one thread.
pub struct ReplayClients<'a> {
    replay: &'a Replay,
    clients: Vec<Cursor<'a>>,
}

struct Cursor<'a> {
    lane: &'a Lane,
    /// Number of its next statement.
    next: usize,
    /// The session that its connection is.
    session: Option<u32>,
    /// The default schema of the connection, where the log's are followed.
    schema: u16,
}

impl<'a> ReplayClients<'a> {
    /// For the clients of `portion`.
    pub fn new(replay: &'a Replay, portion: Portion) -> Self {
        let lanes = replay.shared().lanes.iter().skip(portion.first).take(portion.clients);
        let clients = lanes.map(|lane| Cursor { lane, next: 0, session: None, schema: 0 }).collect();
        Self { replay, clients }
    }
}

impl Cursor<'_> {
    fn statement<'r>(&self, replay: &'r Replay) -> Option<&'r LoggedStatement> {
        self.lane.sent.get(self.next).map(|sent| &replay.log.statements[sent.number as usize])
    }

    /// The line of the statement in flight.
    fn line(&self, replay: &Replay) -> u32 {
        let in_flight = self.lane.sent.get(self.next.saturating_sub(1));
        in_flight.map_or(0, |sent| replay.log.statements[sent.number as usize].line)
    }
}

impl Statements for ReplayClients<'_> {
    fn due(&mut self, client: usize) -> Due {
        let cursor = &mut self.clients[client];
        let Some(statement) = cursor.statement(self.replay) else { return Due::Done };
        let before = cursor.session.replace(statement.session);
        if before.is_some_and(|before| before != statement.session) {
            cursor.schema = 0;
            return Due::Reconnect;
        }
        let after_us = u64::try_from(statement.start_us - self.replay.shared().first_us).unwrap_or(0);
        Due::At(after_us * 1000)
    }

    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let cursor = &mut self.clients[client];
        let Some(statement) = cursor.statement(self.replay) else { return Next::Done };
        if self.replay.wish.follows_schemas && statement.schema != 0 && cursor.schema != statement.schema {
            cursor.schema = statement.schema;
            let name = String::from_utf8_lossy(&self.replay.log.schemas[usize::from(statement.schema)]);
            encoder.query(&[b"USE ", quoted(&name).as_bytes()]);
            return Next::Send(Statement { kind: USE, part: Part::Apart, rows: 0, phase: 0 });
        }
        encoder.query(&[self.replay.log.sql(statement)]);
        let kind = cursor.lane.sent[cursor.next].kind;
        cursor.next += 1;
        Next::Send(Statement::alone(kind))
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.clients[client].schema = 0;
        After::GoOn
    }

    fn describe_error(&self, client: usize, error: &ServerError) -> Option<String> {
        let line = self.clients[client].line(self.replay);
        let meaning =
            dialect::error_codes::meaning(error.code).map_or_else(String::new, |meaning| format!("{meaning}; "));
        Some(format!("{meaning}first in line {line} of {}", self.replay.name))
    }
}

impl Replay {
    /// Which log it is, in words.
    fn form(&self) -> &'static str {
        match self.log.form {
            Form::Slow => "slow query log",
            Form::General => "general query log",
        }
    }

    /// How long the statements that are sent took to come, seconds.
    fn seconds(&self) -> f64 {
        let starts = self.shared().lanes.iter().flat_map(|lane| &lane.sent);
        let last = starts.map(|sent| self.log.statements[sent.number as usize].start_us).max();
        last.map_or(0.0, |last| (last - self.shared().first_us) as f64 / 1e6)
    }

    /// What is replayed, and what is not.
    pub fn json(&self) -> Value {
        let sum = self.log.sum();
        let odd = self.odd();
        let mut lines: Map<String, Value> =
            self.shared().not_sent.lines().map(|(key, lines)| (key.to_owned(), json!(lines))).collect();
        lines.extend(
            odd.iter().filter(|odd| odd.2.count > 0).map(|(key, _, met)| ((*key).to_owned(), json!(met.lines))),
        );
        let mut all = json!({
            "form": self.form(),
            "sha256": sum.sha256,
            "size_bytes": sum.bytes,
            "seconds": self.seconds(),
            "has_whole_seconds": self.log.has_whole_seconds,
            "entries": self.statements() + self.shared().not_sent.total(),
            "statements": self.statements(),
            "sessions": self.shared().sessions,
            "not_sent": self.shared().not_sent.json(),
            "out_of_order": self.log.out_of_order,
            "lines": lines,
        });
        for (key, _, met) in odd {
            all[key] = json!(met.count);
        }
        all
    }

    /// What was not taken as it stands: its key in JSON, its words, and how often and where it was met.
    fn odd(&self) -> [(&'static str, &'static str, &Occurrences); 6] {
        let odd = &self.log.odd;
        [
            ("stray_lines", "lines outside entries", &odd.stray),
            ("unknown_times", "unknown times", &odd.times),
            ("without_time", "before the first time", &odd.untimed),
            ("impossible_durations", "durations taken as 0", &odd.durations),
            ("clock_set_back", "clock set back", &self.log.set_back),
            ("unknown_calls", "calls of unknown text", &self.shared().unknown_calls),
        ]
    }

    /// Statements that are sent.
    pub fn statements(&self) -> u64 {
        self.shared().lanes.iter().map(|lane| lane.sent.len() as u64).sum()
    }

    /// The report on runs.
    pub fn text(&self, runs: &[RunResult]) -> String {
        let mut text: String = runs.iter().map(|run| summary(run).trim_end().to_owned() + "\n").collect();
        // Writing to a string cannot fail.
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "    {label:<22} {value}");
        };
        let times = if self.log.has_whole_seconds { ", times of whole seconds" } else { "" };
        let (statements, sessions, seconds) = (self.statements(), self.shared().sessions, self.seconds());
        line(
            "log",
            format!("{}{times}: {statements} statements of {sessions} sessions in {seconds:.1} s", self.form()),
        );
        line("not sent", self.shared().not_sent.in_words());
        if self.log.out_of_order > 0 {
            line("times out of order", format!("{}: taken from the entry before", self.log.out_of_order));
        }
        for (_, words, met) in self.odd() {
            if met.count > 0 {
                line(words, format!("{}, in {}", met.count, met.in_words()));
            }
        }
        text.push('\n');
        text
    }
}
