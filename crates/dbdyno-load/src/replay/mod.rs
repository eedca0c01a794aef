//! The verb `replay-log`: the statements of a server's log, when its clients sent them.
//!
//! Data flows one way: a file -> statements with their starts ([`log`]) -> what is sent of them ([`words`], [`choice`]) ->
//! sessions on connections ([`lanes`]) -> the event loop ([`clients`]). No text of a statement goes into any output.

mod choice;
mod clients;
mod lanes;
pub mod log;
mod options;
mod report;
mod setup;
mod words;

use serde_json::Value;

use crate::account::Confined;
use crate::error::Error;
use crate::flags::Flag;
use crate::names;
use crate::output::result::RunResult;
use crate::protocol::session::Session;
use crate::run_options::Loop;
use crate::script::check::engine;
use crate::script::model::Script;
use crate::script::stage::{self, Destination};
use crate::statements::{Kind, Statements};
use crate::verb::Verb;
use crate::workload::{Found, Portion, Stepwise, Workload};

use choice::NotSent;
use clients::ReplayClients;
use lanes::Lane;
use log::Log;

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
    workload: options::workload,
};

/// A log with what is sent of it.
pub struct Replay {
    /// The file's name, without its folder.
    name: String,
    log: Log,
    lanes: Vec<Lane>,
    not_sent: NotSent,
    /// Sessions of which something is sent.
    sessions: usize,
    /// Start of the first statement that is sent, microseconds since 1970.
    first_us: i64,
    /// Each statement runs in the schema that it was logged in.
    follows_schemas: bool,
}

/// A replay with its options.
struct Load {
    replay: Replay,
    writes: bool,
    speeds: Vec<f64>,
    setup: Script,
    destination: Destination,
}

impl Workload for Load {
    fn load(&self) -> &str {
        &self.setup.name
    }

    fn schema(&self) -> &str {
        &self.destination.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        words::kinds()
    }

    fn setup(&self) -> Vec<String> {
        // The words of a statement do not show all that it does, the server knows.
        if self.writes { Vec::new() } else { vec!["SET SESSION TRANSACTION READ ONLY".into()] }
    }

    fn particulars(&self) -> Option<(&'static str, Value)> {
        Some(("log", self.replay.json()))
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(ReplayClients::new(&self.replay, portion)))
    }
}

impl Stepwise for Load {
    fn is_bounded(&self) -> bool {
        true
    }

    fn clients(&self) -> Option<usize> {
        Some(self.replay.lanes.len())
    }

    fn loops(&self) -> Option<Vec<Loop>> {
        Some(self.speeds.iter().map(|speed| Loop::Logged { speed: *speed }).collect())
    }

    fn planned(&self, _clients: usize) -> (Option<u64>, u64) {
        (Some(self.replay.statements()), 0)
    }

    fn confined(&self) -> Option<&Confined> {
        self.destination.confined.as_ref()
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        stage::prepare(&self.setup, &self.destination, session, begun)
    }

    fn check(&self, session: &mut Session) -> Result<Found, Error> {
        stage::enter(&self.destination, session)?;
        if self.replay.follows_schemas {
            self.replay.find_schemas(session)?;
        }
        Ok(Found { engine: engine(&self.destination, session)? })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        stage::cleanup(&self.setup, &self.destination, session)
    }

    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        Ok(self.replay.text(runs))
    }
}

impl Replay {
    /// Sees that the server has the schemas that the log's statements were sent to.
    fn find_schemas(&self, session: &mut Session) -> Result<(), Error> {
        let there = session.values("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?;
        let sent = self.lanes.iter().flat_map(|lane| &lane.sent);
        let statements = sent.map(|sent| &self.log.statements[sent.number as usize]);
        let lacking = statements.filter(|one| one.schema != 0).find(|one| {
            let name = String::from_utf8_lossy(&self.log.schemas[usize::from(one.schema)]);
            !there.iter().any(|there| there.eq_ignore_ascii_case(&name))
        });
        let Some(lacking) = lacking else { return Ok(()) };
        let schema = crate::text::shown(&String::from_utf8_lossy(&self.log.schemas[usize::from(lacking.schema)]));
        Err(Error::Usage(format!(
            "{}:{}: the server has no schema {schema}, in which this statement ran: make it and its tables first",
            self.name, lacking.line
        )))
    }
}

/// Whose statements run where.
fn destination(values: &crate::values::Values<'_>) -> Result<Destination, Error> {
    let schema = names::schema(values, "schema", "dbdyno_replay_log")?;
    let confined = Confined::new(&schema, values.text("account"))?;
    let confined = (!values.has("whole-server")).then_some(confined);
    Ok(Destination { schema, engine: names::engine(values)?, confined, is_secret: true })
}
