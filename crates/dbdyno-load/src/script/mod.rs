//! The verb `script`: a user's SQL file with parameters, transactions and weights.
//!
//! Data flows one way: text -> tokens ([`lexer`]) -> items ([`items`]) -> sections and bound
//! statements ([`parse`], [`block`], [`model`]) -> what is sent ([`plan`], [`talk`]). [`stage`] and
//! [`check`] deal with the server before and after.

mod block;
mod check;
mod definition;
mod generator;
mod items;
mod lexer;
mod literal;
mod model;
mod options;
mod parse;
mod plan;
mod stage;
mod talk;
mod words;

use std::sync::OnceLock;

use crate::error::Error;
use crate::flags::Flag;
use crate::protocol::session::Session;
use crate::statements::Statements;
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Found, Kind, Portion, Workload};

use check::Checked;
use model::Script;
use plan::Plan;
use talk::Talk;

const ABOUT: &str = "\
usage: dbdyno-load script FILE [flags] [prepare|run|cleanup]

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
    Flag::value("file", "the script, or several, each with a weight if it ends in @WEIGHT").short('f'),
    Flag::value("script", "").same_as("file"),
    Flag::value("weights", "of blocks, instead of the file's: buy=3,look=0"),
    Flag::value("set", "a constant of the file: rows=5000; once for each"),
    Flag::value("schema", "where its tables are (dbdyno_script)"),
    Flag::value("db-ps-mode", "prepared statements: auto or disable (auto)"),
];

/// The verb.
pub static VERB: Verb = Verb { name: "script", about: ABOUT, flags: FLAGS, loads: &[], workload };

/// A script with its options.
struct Load {
    script: Script,
    schema: String,
    prefers_prepared: bool,
    /// Made when the server was looked at, before the first run.
    plan: OnceLock<Plan>,
}

fn workload(values: &Values<'_>, file: &str) -> Result<Box<dyn Workload>, Error> {
    let prefers_prepared = values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?;
    let schema = values.text("schema").unwrap_or("dbdyno_script").to_owned();
    Ok(Box::new(Load { script: options::script(values, file)?, schema, prefers_prepared, plan: OnceLock::new() }))
}

impl Load {
    fn plan(&self, checked: &Checked) -> &Plan {
        self.plan.get_or_init(|| {
            Plan::new(&self.script, |statement| self.prefers_prepared && checked.preparable.contains(&statement.kind))
        })
    }
}

impl Workload for Load {
    fn verb(&self) -> &'static str {
        VERB.name
    }

    fn load(&self) -> &str {
        &self.script.name
    }

    fn schema(&self) -> &str {
        &self.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        plan::kinds(&self.script)
    }

    fn setup(&self) -> Vec<String> {
        self.script.connect.iter().map(|plain| plain.sql.clone()).collect()
    }

    fn prepared(&self) -> Vec<String> {
        self.plan(&Checked::default()).prepared.clone()
    }

    fn prepare(&self, session: &mut Session) -> Result<(), Error> {
        stage::prepare(&self.script, &self.schema, session)
    }

    fn check(&self, session: &mut Session) -> Result<Found, Error> {
        let checked = check::check(&self.script, &self.schema, session)?;
        self.plan(&checked);
        Ok(Found { engine: checked.engine })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        stage::cleanup(&self.script, &self.schema, session)
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(Talk::new(self.plan(&Checked::default()), portion)))
    }
}
