//! What clients say: the contract between a workload and the event loop.

use crate::protocol::pen::Pen;

/// What the clients of one thread say, one statement at a time.
///
/// A client's statements form *events*: what a user would call a transaction. An event is what a
/// rate counts and what latency is told of; its statements are timed one by one as well.
pub trait Statements: Send {
    /// Writes the next statement of `client` (from 0 among those of this thread) with `pen` and
    /// tells what it is. Called again only when its reply is complete.
    fn next(&mut self, client: usize, pen: &mut Pen<'_>) -> Next;

    /// The server refused the statement under way with the error `code`, which does not end the run.
    fn refused(&mut self, client: usize, code: u16) -> After {
        let _ = (client, code);
        After::GoOn
    }

    /// The connection was lost with the statement under way, and there is a new one.
    fn reconnected(&mut self, client: usize) -> After {
        let _ = client;
        After::GoOn
    }
}

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The statement that was just written.
    Say(Said),
    /// Take a new connection, then ask again.
    Reconnect,
    /// Nothing more: the client has said all.
    Done,
}

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// Index into the workload's kinds.
    pub kind: u16,
    /// Its part in an event.
    pub part: Part,
    /// Rows that it adds to the tables, if it succeeds.
    pub rows: u32,
    /// Index into the workload's phases; 0 for a workload without.
    pub phase: u8,
}

impl Said {
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
    /// It says the same event again from its first statement; the event's time runs on.
    StartOver,
}
