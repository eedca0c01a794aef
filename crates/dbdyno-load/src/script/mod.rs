//! The verb `script`: a user's SQL file with parameters, transactions and weights.
//!
//! Data flows one way: text -> tokens ([`lexer`]) -> items ([`items`]) -> sections and bound
//! statements ([`parse`], [`block`], [`model`]) -> what is sent ([`clients`]). [`stage`] deals
//! with the server before and after.

mod block;
mod clients;
mod definition;
mod generator;
pub(crate) mod items;
pub(crate) mod lexer;
pub(crate) mod model;
mod options;
mod parse;
pub(crate) mod stage;

use std::sync::OnceLock;

use crate::account::Confined;
use crate::error::Error;
use crate::flags::Flag;
use crate::names;
use crate::protocol::session::Session;
use crate::statements::{Kind, Statements};
use crate::table_options::{self, TableOptions};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

use self::clients::Plan;
use self::stage::Checked;
use clients::ScriptClients;
use model::{Script, Template};
use stage::Destination;

const ABOUT: &str = "\
Runs the transactions of an SQL file, which has parameters, weights and the statements that make
and drop its tables:

  -- setup:
  CREATE TABLE items (id INT PRIMARY KEY, stock INT);
  INSERT INTO items SELECT seq, 100 FROM seq_1_to_1000;
  -- name: buy  weight: 3
  :id = zipf(1, 1000)
  BEGIN;
  SELECT stock FROM items WHERE id = :id;
  UPDATE items SET stock = stock - 1 WHERE id = :id;
  COMMIT;
  -- name: look  weight: 7
  :id = uniform(1, 1000)
  SELECT stock FROM items WHERE id = :id;

A value is drawn once per event and is one of uniform, zipf, gaussian, pareto, special, exponential
(low, high), sequence(), one_of('a', 'b'), text(40), digits(9), uuid(). See docs/script.md.

";

const FLAGS: &[Flag] = &[
    Flag::value("file", "the script, or several; FILE@WEIGHT gives one a weight").short('f'),
    Flag::value("script", "").same_as("file"),
    Flag::value("weights", "weights of blocks instead of the file's: buy=3,look=0"),
    Flag::value("set", "constants of the file: rows=5000,note=none"),
    Flag::value("schema", "schema of its tables"),
    Flag::value("engine", "storage engine of tables whose CREATE TABLE names none (the server's)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::switch("whole-server", "use your own login with all its rights instead of an account made for the script"),
    Flag::value("account", ""),
    Flag::value("db-ps-mode", "prepared statements: auto or disable"),
];

/// The verb.
pub static VERB: Verb = Verb {
    name: "script",
    about: ABOUT,
    flags: FLAGS,
    loads: &[],
    word: Some("FILE"),
    has_phase_flag: false,
    workload,
    own: None,
};

/// A script with its options.
struct Load {
    script: Script,
    destination: Destination,
    prefers_prepared: bool,
    /// Made when the server was looked at, before the first run.
    ready: OnceLock<Ready>,
}

/// What the runs of a command have in common.
struct Ready {
    plan: Plan,
    engine: Option<String>,
}

fn workload(values: &Values<'_>, file: &str) -> Result<Box<dyn Stepwise>, Error> {
    let schema = names::schema(values, "schema", "dbdyno_script")?;
    let confined = Confined::new(&schema, values.text("account"))?;
    let confined = (!values.has("whole-server")).then_some(confined);
    let prefers_prepared = values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?;
    Ok(Box::new(Load {
        script: options::script(values, file)?,
        destination: Destination {
            schema,
            engine: names::engine(values)?,
            table_options: TableOptions::read(values)?,
            confined,
            is_secret: false,
        },
        prefers_prepared,
        ready: OnceLock::new(),
    }))
}

impl Load {
    fn ready(&self, checked: Checked) -> &Ready {
        self.ready.get_or_init(|| {
            let is_prepared =
                |statement: &Template| self.prefers_prepared && checked.preparable.contains(&statement.kind);
            Ready { plan: Plan::new(&self.script, is_prepared), engine: checked.engine }
        })
    }
}

impl Workload for Load {
    fn load(&self) -> &str {
        &self.script.name
    }

    fn schema(&self) -> &str {
        &self.destination.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        clients::kinds(&self.script)
    }

    fn setup(&self) -> Vec<String> {
        self.script.connect.iter().map(|plain| plain.sql.clone()).collect()
    }

    fn prepared(&self) -> Vec<String> {
        self.ready(Checked::default()).plan.prepared.clone()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(ScriptClients::new(&self.ready(Checked::default()).plan, portion)))
    }
}

impl Stepwise for Load {
    fn confined(&self) -> Option<&Confined> {
        self.destination.confined.as_ref()
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        stage::prepare(&self.script, &self.destination, session, begun)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        // Before each run, but the connect section may not bear to be run twice on one connection.
        let ready = match self.ready.get() {
            Some(ready) => ready,
            None => self.ready(stage::check(&self.script, &self.destination, session)?),
        };
        Ok(ServerState { engine: ready.engine.clone() })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        stage::cleanup(&self.script, &self.destination, session)
    }
}
