//! What is to be done in one run of an invocation.

use std::time::Duration;

use crate::run_options::Loop;
use crate::share::Share;

/// What sets this run apart from the others of an invocation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The verb.
    pub verb: &'static str,
    /// From 0 over all.
    pub number: usize,
    /// From 1 for the same engine and number of clients.
    pub iteration: u32,
    /// How many runs there were on the same data before.
    pub step: u64,
    /// Connections of this process.
    pub clients: usize,
    /// The part of the load that is this process's.
    pub share: Share,
    /// Number of its first connection among those of all processes.
    pub first_client: usize,
    /// Connections of all processes.
    pub clients_of_all: usize,
    /// When the events of all processes start.
    pub pace: Loop,
    /// Storage engine as asked for.
    pub engine_asked: Option<String>,
    /// Storage engine as the server reports it.
    pub engine: Option<String>,
    /// No event starts after this time.
    pub duration: Option<Duration>,
    /// Events of all clients of this process together.
    pub events: Option<u64>,
    /// Queries that the workload means to send; `None` where only the bounds above hold.
    pub queries_planned: Option<u64>,
    /// Queries that an even split among the clients left out.
    pub queries_dropped: u64,
}
