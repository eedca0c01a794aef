//! The verb `replay-log`: the statements of a server's log, when its clients sent them.
//!
//! Data flows one way: a file -> statements with their starts ([`log`]) -> what is sent of them ([`statement`], [`choice`]) ->
//! sessions on connections ([`lanes`]) -> the event loop ([`clients`]). No text of a statement goes into any output.

mod choice;
mod clients;
mod lanes;
pub mod log;
mod not_sent;
mod options;
mod plan;
mod report;
mod setup;
pub mod statement;

use serde_json::Value;

use crate::account::Confined;
use crate::error::Error;
use crate::flags::Flag;
use crate::output::note;
use crate::output::result::RunResult;
use crate::protocol::session::Session;
use crate::run_options::Loop;
use crate::script::check::engine;
use crate::script::stage;
use crate::statements::{Kind, Statements};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Found, Portion, Stepwise, Workload};

use clients::ReplayClients;
use options::Options;

const ABOUT: &str = "\
Replays a slow query log or a general query log of MySQL, MariaDB or Percona Server: the statements of
each session on a connection of its own, in their order, each when it came by the log's times.

  dbdyno replay-log slow.log --setup=dump.sql                   what reads, as fast as it came
  dbdyno replay-log slow.log --setup=dump.sql --writes --speed=2   all of it in half the time

Which log it is, its content says. A slow log has what took longer than long_query_time: for all
statements set that to 0. No text of a statement is shown or written anywhere.

";

const FLAGS: &[Flag] = &[
    Flag::value("file", "the log").short('f'),
    Flag::value("speed", "times as fast as logged, or a list, one run each; 0: each session as fast as it can"),
    Flag::switch("writes", "send the statements that write, too"),
    Flag::value("setup", "SQL that makes the tables, such as a dump: run by prepare; cleanup drops what it made"),
    Flag::value("schema", "where the tables are"),
    Flag::value("from-schema", "replay the statements of this schema of the log"),
    Flag::value("engine", "storage engine of tables whose CREATE TABLE names none (the server's)").short('e'),
    Flag::switch("whole-server", "log in as you do, and send each statement to the schema that it was sent to"),
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
    Ok(Box::new(Load(options::read(values, file)?)))
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
        // A statement does not show all that it does, as views have functions and tables have triggers; the server knows.
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
        Some(self.0.replay.lanes.len())
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

    fn check(&self, session: &mut Session) -> Result<Found, Error> {
        stage::enter(&self.0.destination, session)?;
        if self.0.replay.follows_schemas {
            self.0.replay.find_schemas(session)?;
        }
        Ok(Found { engine: engine(&self.0.destination, session)? })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        stage::cleanup(&self.0.setup, &self.0.destination, session)
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        Ok(self.0.replay.text(runs))
    }
}
