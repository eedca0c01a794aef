//! The replay that a command line asks for.

use std::path::Path;

use super::choice::{Wish, choose};
use super::lanes::lanes;
use super::log::Log;
use super::plan::Replay;
use super::setup::{self, Setup};
use crate::account::Confined;
use crate::error::Error;
use crate::names;
use crate::run_options::CLIENTS_MAX;
use crate::script::model::Script;
use crate::script::stage::Destination;
use crate::values::Values;

/// Greatest speed.
const SPEED_MAX: f64 = 1e6;

/// What a log itself says, or what would change the data before it is replayed; and what to give instead.
const MEANINGLESS: [(&str, &str); 5] = [
    ("rate", "statements come when they came: give --speed"),
    ("arrivals", "statements come when they came: give --speed"),
    ("think-time", "sessions pause as they did: give --speed"),
    ("think-distribution", "sessions pause as they did: give --speed"),
    ("warmup", "a log is replayed from its start: run it once before, as with --speed=0 run"),
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
    /// What is passed over of its file; empty if nothing is.
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
    let replay = replay(path, &wish)?;
    let clients: usize = values.number("clients", CLIENTS_MAX)?;
    let needed = replay.lanes.len();
    if needed > clients.min(CLIENTS_MAX) {
        let text = format!(
            "--clients={clients}: {path} has up to {needed} sessions at a time, each with a connection of its own"
        );
        return Err(Error::Usage(format!("{text}: give --clients={needed}, or replay a part of the log")));
    }
    let mut setup =
        values.text("setup").map_or_else(|| Ok(Setup::default()), |path| setup::read(path, wish.is_confined))?;
    setup.script.name = Script::named(path).name;
    let (writes, setup, setup_note) = (wish.writes, setup.script, setup.note);
    Ok(Options { replay, writes, speeds, setup, setup_note, destination })
}

fn replay(path: &str, wish: &Wish) -> Result<Replay, Error> {
    let log = Log::read(path)?;
    let (sent, not_sent) = choose(&log, wish, path)?;
    let first_us = sent.iter().map(|sent| log.statements[sent.number as usize].start_us).min().unwrap_or(0);
    let mut sessions: Vec<u32> = sent.iter().map(|sent| log.statements[sent.number as usize].session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let lanes = lanes(&log, &sent);
    let name = Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned());
    let (sessions, follows_schemas) = (sessions.len(), wish.follows_schemas);
    Ok(Replay { name, log, lanes, not_sent, sessions, first_us, follows_schemas })
}

/// Whose statements run where.
fn destination(values: &Values<'_>) -> Result<Destination, Error> {
    let schema = names::schema(values, "schema", "dbdyno_replay_log")?;
    let confined = Confined::new(&schema, values.text("account"))?;
    let confined = (!values.has("whole-server")).then_some(confined);
    Ok(Destination { schema, engine: names::engine(values)?, confined, is_secret: true })
}
