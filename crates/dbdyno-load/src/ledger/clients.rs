//! The clients of one thread: each sends one transaction after the other, and what came of it is noted.
//!
//! A transaction is `invoked` just before its COMMIT is written to the socket, and `acked` when the OK was read: a time that is
//! early in the first case and late in the second makes a verdict milder, never harder. Where the engine has no
//! transactions, the row's INSERT takes the place of COMMIT.

use std::ops::Range;
use std::sync::Arc;

use crate::clock::now_ns;
use crate::protocol::encoder::RequestEncoder;
use crate::protocol::kept_rows::KeptRows;
use crate::statements::{After, Next, Part, Statement, Statements};

use super::content::{Content, Key, PARTS_MAX, Part as Transferred};
use super::cuts::Cuts;
use super::ddl::{Runner, Running};
use super::log::Pen;
use super::record::{End, Line, Record};
use super::sql::{self, Writer};

/// Errors after which a transaction can succeed when it is sent again: deadlock, lock wait timeout, and a row changed since
/// the snapshot was taken (MariaDB). Each says that it did not happen.
pub const GIVEN_UP: [u16; 3] = [1213, 1205, 1020];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Rollback,
    Begin,
    Row,
    Transfers,
    Accounts,
    Commit,
}

/// The clients.
pub struct Clients<'a> {
    content: &'a Content,
    transactional: bool,
    pen: Option<Pen>,
    cuts: Option<Arc<Cuts>>,
    /// Begins with the first transaction.
    ddl: Option<Runner>,
    running: Option<Running>,
    writer: Writer,
    each: Vec<Client>,
}

struct Client {
    key: Key,
    step: Step,
    /// What was sent last.
    sent: Step,
    /// When that was sent which decides, if it was and no answer came.
    invoke_ns: Option<u64>,
    /// The fate of the transaction is noted.
    is_noted: bool,
    transfer: [Transferred; PARTS_MAX],
}

impl<'a> Clients<'a> {
    /// Connections from `first` on.
    pub fn new(
        content: &'a Content,
        transactional: bool,
        connections: Range<u32>,
        (pen, cuts, ddl): (Option<Pen>, Option<Arc<Cuts>>, Option<Runner>),
    ) -> Self {
        // A warm-up may have left a transaction open, which BEGIN would commit.
        let client = |connection| Client {
            key: Key { connection, sequence: 0 },
            step: Step::Rollback,
            sent: Step::Rollback,
            invoke_ns: None,
            is_noted: true,
            transfer: [Transferred::default(); PARTS_MAX],
        };
        let each = connections.map(client).collect();
        Self { content, transactional, pen, cuts, ddl, running: None, writer: Writer::default(), each }
    }

    /// The statement that decides over a transaction.
    fn deciding(&self) -> Step {
        if self.transactional { Step::Commit } else { Step::Row }
    }

    fn first(&self) -> Step {
        if self.transactional { Step::Begin } else { Step::Row }
    }

    /// What came of a client's transaction.
    fn note(&mut self, client: usize, end: End) {
        let client = &mut self.each[client];
        let invoke_ns = client.invoke_ns.take().unwrap_or(0);
        client.is_noted = true;
        if let Some(pen) = &mut self.pen {
            pen.write(Line::Transaction(Record { key: client.key, invoke_ns, end }));
        }
    }

    /// The acknowledgement was read; a cut that follows on it is taken before anything else is.
    fn acked(&mut self, client: usize) -> Result<(), String> {
        let now_ns = now_ns();
        self.note(client, End::Acked(now_ns));
        self.cuts.as_ref().map_or(Ok(()), |cuts| cuts.acked(now_ns))
    }

    /// The transaction is over without an acknowledgement.
    fn give_up(&mut self, client: usize) {
        if self.each[client].is_noted {
            return;
        }
        let end = if self.each[client].invoke_ns.is_some() { End::Unanswered } else { End::Unsent };
        self.note(client, end);
    }
}

impl Statements for Clients<'_> {
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        if let Some(ddl) = self.ddl.take() {
            // A thread that can't be had is a run without DDL, of which there is no record either.
            self.running = ddl.start().ok();
        }
        let (first, deciding, transactional) = (self.first(), self.deciding(), self.transactional);
        let Self { content, writer, each, .. } = self;
        let client = &mut each[client];
        if client.step == first && client.is_noted {
            client.key.sequence += 1;
            client.is_noted = false;
            content.transfer(client.key, &mut client.transfer);
        }
        client.sent = client.step;
        let (key, parts) = (client.key, &client.transfer[..content.parts]);
        let (statement, step) = match client.step {
            Step::Rollback => (sql::rollback(encoder), first),
            Step::Begin => (sql::begin(encoder), Step::Row),
            Step::Row => (writer.row(content, key, encoder), Step::Transfers),
            Step::Transfers => (sql::transfers(key, parts, encoder), Step::Accounts),
            Step::Accounts if transactional => (sql::accounts(parts, Part::Inner, encoder), Step::Commit),
            Step::Accounts => (sql::accounts(parts, Part::Last, encoder), first),
            Step::Commit => (sql::commit(encoder), first),
        };
        client.step = step;
        if client.sent == deciding {
            client.invoke_ns = Some(now_ns());
        }
        Next::Send(statement)
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn answered(&mut self, client: usize, _: Statement, _: &KeptRows) -> Result<(), String> {
        if self.each[client].sent == self.deciding() {
            return self.acked(client);
        }
        Ok(())
    }

    fn refused(&mut self, client: usize, code: u16) -> After {
        let sent = self.each[client].sent;
        if sent == Step::Rollback {
            return After::GoOn;
        }
        self.each[client].step = if self.transactional { Step::Rollback } else { self.first() };
        if sent == self.deciding() {
            if GIVEN_UP.contains(&code) {
                // It did not happen, and is sent again.
                self.each[client].invoke_ns = None;
            } else {
                // An INSERT that is refused did not happen; of a COMMIT that is not sure.
                self.note(client, if self.transactional { End::Unanswered } else { End::Refused });
            }
        } else if !GIVEN_UP.contains(&code) {
            // What else is refused would be refused again.
            self.give_up(client);
        }
        After::StartOver
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.give_up(client);
        self.each[client].step = self.first();
        After::StartOver
    }
}

impl Drop for Clients<'_> {
    /// What was open at the end of the run.
    fn drop(&mut self) {
        self.running = None;
        (0..self.each.len()).for_each(|client| self.give_up(client));
    }
}
