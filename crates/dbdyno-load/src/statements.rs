//! What clients send: the contract between a workload and the event loop.

use crate::protocol::packet::RequestEncoder;
use crate::protocol::reply::{KeptRows, ServerError};

/// What the clients of one thread send, one statement at a time.
///
/// A client's statements form *events*: what a user would call a transaction. An event is what a
/// rate counts and latency is measured of; its statements are timed one by one as well.
pub trait Statements: Send {
    /// Writes the next statement of `client` (from 0 among those of this thread) with `encoder` and
    /// describes it. Called again only when its reply is complete.
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next;

    /// The server refused the statement in flight with the error `code`, which does not end the run.
    fn refused(&mut self, client: usize, code: u16) -> After {
        let _ = (client, code);
        After::GoOn
    }

    /// Of a log: what `client` does next and when. What is given is not asked for again.
    fn due(&mut self, client: usize) -> Due {
        let _ = client;
        Due::Done
    }

    /// What is said of an error of the statement in flight in place of the server's message, where that must not be
    /// shown.
    fn describe_error(&self, client: usize, error: &ServerError) -> Option<String> {
        let _ = (client, error);
        None
    }

    /// The connection was lost with the statement in flight, and there is a new one.
    fn reconnected(&mut self, client: usize) -> After {
        let _ = client;
        After::GoOn
    }

    /// Whether replies are shown to [`Self::answered`]; else nothing of their rows is kept.
    fn reads_rows(&self) -> bool {
        false
    }

    /// The server answered `statement`, which was in flight, with these rows.
    ///
    /// # Errors
    /// They can't be true of the tables: the run is given up for this cause.
    fn answered(&mut self, client: usize, statement: Statement, rows: &KeptRows) -> Result<(), String> {
        let _ = (client, statement, rows);
        Ok(())
    }

    /// The kind that the event of `client`, which has just ended, counts as beside its statements.
    fn event_kind(&self, client: usize) -> Option<u16> {
        let _ = client;
        None
    }

    /// Closed loop: the pause of `client` before its next event, ns, where it is not the loop's own.
    fn pause_ns(&mut self, client: usize) -> Option<u64> {
        let _ = client;
        None
    }
}

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The statement that was just written.
    Send(Statement),
    /// Take a new connection, then ask again.
    Reconnect,
    /// Nothing more: the client is done.
    Done,
}

/// What a client does by a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// An event, so long after the start of the log, ns.
    At(u64),
    /// It takes a new connection, then is asked again.
    Reconnect,
    /// Nothing more.
    Done,
}

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// Index into the workload's kinds.
    pub kind: u16,
    /// Its part in an event.
    pub part: Part,
    /// Rows that it adds to the tables, if it succeeds.
    pub rows: u32,
    /// Index into the workload's phases; 0 for a workload without.
    pub phase: u8,
}

impl Statement {
    /// A statement that is an event of its own.
    pub fn alone(kind: u16) -> Self {
        Self { kind, part: Part::Last, rows: 0, phase: 0 }
    }
}

/// Where in an event a statement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// More follow; the event begins with the first after an end.
    Inner,
    /// The event ends with its reply.
    Last,
    /// Outside of events, such as mysqlslap's COMMIT every few statements.
    Apart,
}

/// What a client does after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It goes on with the next statement; a failed [`Part::Last`] ends its event.
    GoOn,
    /// It sends the same event again from its first statement; the event's time runs on.
    StartOver,
}

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
