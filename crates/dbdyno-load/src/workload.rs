//! The contract of a workload: what its clients send and what the server needs before.

use dbdyno_common::random::Random;

use crate::account::Confined;
use crate::error::Error;
use crate::output::result::{self, RunResult};
use crate::protocol::session::Session;
use crate::run_options::{Ignore, Loop};
use crate::statements::{Kind, Statements};

/// The clients that one thread serves in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// Number of the first of them among all.
    pub first: usize,
    /// How many they are.
    pub clients: usize,
    /// How many there are over all threads.
    pub of: usize,
    /// Of all random choices of this run; another one in the warm-up.
    pub seed: u64,
    /// Whether what they send is the warm-up, which counts nowhere and is bounded by time only.
    pub warmup: bool,
}

impl Portion {
    /// A generator for each of its clients: a client draws the same however the clients are shared out to threads.
    pub fn generators(&self) -> impl Iterator<Item = Random> + use<> {
        let mut seeds = Random::new(self.seed);
        std::iter::repeat_with(move || Random::new(seeds.bits())).skip(self.first).take(self.clients)
    }
}

/// What was found on the server before a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerState {
    /// Storage engine of the tables, as the server reports it.
    pub engine: Option<String>,
}

/// One load with all its options.
pub trait Workload: Sync {
    /// Its name among those of its verb: `read_write`, `insert`, ...
    fn load(&self) -> &str;

    /// The schema that clients start in.
    fn schema(&self) -> &str;

    /// Kinds of statement, by the index that [`crate::statements::Statement::kind`] gives.
    fn kinds(&self) -> Vec<Kind>;

    /// Names of the phases of a run, by [`crate::statements::Statement::phase`]; empty for none.
    fn phases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Statements run on each new connection.
    fn setup(&self) -> Vec<String> {
        Vec::new()
    }

    /// Statements prepared on each new connection, by the index that
    /// [`crate::protocol::packet::RequestEncoder::execute`] takes.
    fn prepared(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the server is to go away in the middle of a run: then its loss is the end of the load, and no failure.
    fn expects_loss(&self) -> bool {
        false
    }

    /// What only this load reports: a key of a run's result and its value.
    fn particulars(&self) -> Option<(&'static str, serde_json::Value)> {
        None
    }

    /// What the clients of one thread send in one run.
    ///
    /// # Errors
    /// Something it needs is missing.
    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error>;
}

/// A workload whose tables are made, looked at and dropped in steps of their own.
pub trait Stepwise: Workload {
    /// Whether its clients give [`crate::statements::Next::Done`] by themselves, so that a run needs
    /// no other bound.
    fn is_bounded(&self) -> bool {
        false
    }

    /// How many clients it has where that follows from its data.
    fn clients(&self) -> Option<usize> {
        None
    }

    /// Its own loops, one run for each, where it has any.
    fn loops(&self) -> Option<Vec<Loop>> {
        None
    }

    /// Errors that do not count where `--ignore-errors` is not given.
    fn ignored_errors(&self) -> Ignore {
        Ignore::Nothing
    }

    /// What its statements are confined to where they are the user's own: then all of it is done by a server account
    /// made for that.
    fn confined(&self) -> Option<&Confined> {
        None
    }

    /// Whether each run of an invocation gets tables of its own, made and filled just before.
    fn is_made_anew(&self) -> bool {
        false
    }

    /// Whether the tables stay at the end of an invocation that made them.
    fn keeps_tables(&self) -> bool {
        false
    }

    /// How often a run is repeated.
    fn iterations(&self) -> u32 {
        1
    }

    /// The storage engine of the runs to come, where there is a list of them.
    fn engine_choice(&self) -> Option<&str> {
        None
    }

    /// Goes on to the next storage engine; false if this was the last.
    fn next_engine(&self) -> bool {
        false
    }

    /// Queries that so many clients send in a run, if that is known, and how many an even split leaves out.
    fn planned(&self, _clients: usize) -> (Option<u64>, u64) {
        (None, 0)
    }

    /// What is printed instead of any work.
    fn printed(&self) -> Option<String> {
        None
    }

    /// Comes after each run that was finished.
    ///
    /// # Errors
    /// It failed.
    fn after_run(&self, _session: &mut Session) -> Result<(), Error> {
        Ok(())
    }

    /// What people read of the iterations of a run.
    ///
    /// # Errors
    /// A file of its own cannot be written.
    fn report(&self, runs: &[RunResult]) -> Result<String, Error> {
        Ok(runs.iter().map(result::summary).collect())
    }

    /// Makes the tables and fills them; sets `begun` before it makes the first, so that what a
    /// failure or an interruption leaves half done can be cleaned up.
    ///
    /// # Errors
    /// They are there already, or the server refuses.
    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error>;

    /// Sees that the tables are there and fit this load.
    ///
    /// # Errors
    /// They do not; says how to prepare them.
    fn check(&self, session: &mut Session) -> Result<ServerState, Error>;

    /// Drops the tables, and nothing that is not this workload's.
    ///
    /// # Errors
    /// The server refuses.
    fn cleanup(&self, session: &mut Session) -> Result<(), Error>;
}
