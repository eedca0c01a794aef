//! The contract of a workload: what its clients say and what the server needs before.

use crate::error::Error;
use crate::protocol::session::Session;
use crate::run_options::Ignore;
use crate::statements::Statements;

/// A kind of statement that is counted and timed apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its name in every output: `select`, `update_index`, ...
    pub name: String,
    /// Whether it is one of the queries, as opposed to what goes with them (BEGIN, COMMIT).
    pub is_query: bool,
}

impl Kind {
    /// A kind that is a query.
    pub fn query(name: &str) -> Self {
        Self { name: name.into(), is_query: true }
    }

    /// A kind that is none.
    pub fn apart(name: &str) -> Self {
        Self { name: name.into(), is_query: false }
    }
}

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
    /// Whether what they say is the warm-up, which counts nowhere and is bounded by time only.
    pub warmup: bool,
}

/// What was found on the server before a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Storage engine of the tables, as the server reports it.
    pub engine: Option<String>,
}

/// One load with all its options.
pub trait Workload: Sync {
    /// The verb: `oltp`, `smack`, ...
    fn verb(&self) -> &'static str;

    /// Which load of the verb: `read_write`, `insert`, ...
    fn load(&self) -> &str;

    /// The schema that clients start in.
    fn schema(&self) -> &str;

    /// Kinds of statement, by the index that [`crate::statements::Said::kind`] gives.
    fn kinds(&self) -> Vec<Kind>;

    /// Names of the phases of a run, by [`crate::statements::Said::phase`]; empty for none.
    fn phases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Statements run on each new connection.
    fn setup(&self) -> Vec<String> {
        Vec::new()
    }

    /// Statements prepared on each new connection, by the index that
    /// [`crate::protocol::pen::Pen::execute`] takes.
    fn prepared(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the clients of one thread say in one run.
    ///
    /// # Errors
    /// Something it needs is missing.
    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error>;
}

/// A workload whose tables are made, looked at and dropped in steps of their own: that of every verb but `slap`, which
/// makes its tables anew for each run.
pub trait Stepwise: Workload {
    /// Whether its clients say [`crate::statements::Next::Done`] by themselves, so that a run needs
    /// no other bound.
    fn is_bounded(&self) -> bool {
        false
    }

    /// Errors that do not count where `--ignore-errors` is not given.
    fn ignored_errors(&self) -> Ignore {
        Ignore::Nothing
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
    fn check(&self, session: &mut Session) -> Result<Found, Error>;

    /// Drops the tables, and nothing that is not this workload's.
    ///
    /// # Errors
    /// The server refuses.
    fn cleanup(&self, session: &mut Session) -> Result<(), Error>;
}
