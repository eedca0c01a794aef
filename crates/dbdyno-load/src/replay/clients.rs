//! What the clients send: the statements of their sessions.

use crate::names::quoted;
use crate::protocol::encoder::RequestEncoder;
use crate::protocol::reply::ServerError;
use crate::statements::{After, Due, Next, Part, Statement, Statements};
use crate::workload::Portion;

use super::lanes::Lane;
use super::log::Logged;
use super::plan::Replay;
use super::statement::USE;

/// What the server's commonest errors mean; its own message may quote the statement.
const MEANINGS: [(u16, &str); 14] = [
    (1044, "access to the schema denied"),
    (1046, "no default schema"),
    (1054, "unknown column"),
    (1062, "duplicate entry for a key"),
    (1064, "a mistake in the syntax, or a word that this server does not know"),
    (1142, "the command is denied on that table"),
    (1146, "no such table"),
    (1205, "lock wait timeout"),
    (1213, "deadlock"),
    (1227, "a privilege is missing"),
    (1305, "no such routine"),
    (1452, "a foreign key fails"),
    (1792, "a write in a transaction that only reads"),
    (2013, "the connection was lost"),
];

/// The clients of one thread.
pub struct ReplayClients<'a> {
    replay: &'a Replay,
    clients: Vec<Cursor<'a>>,
}

struct Cursor<'a> {
    lane: &'a Lane,
    /// Number of its next statement.
    next: usize,
    /// The session that its connection is.
    session: Option<u32>,
    /// The default schema of the connection, where the log's are followed.
    schema: u16,
}

impl<'a> ReplayClients<'a> {
    /// For the clients of `portion`.
    pub fn new(replay: &'a Replay, portion: Portion) -> Self {
        let lanes = replay.lanes.iter().skip(portion.first).take(portion.clients);
        let clients = lanes.map(|lane| Cursor { lane, next: 0, session: None, schema: 0 }).collect();
        Self { replay, clients }
    }
}

impl Cursor<'_> {
    fn statement<'r>(&self, replay: &'r Replay) -> Option<&'r Logged> {
        self.lane.sent.get(self.next).map(|sent| &replay.log.statements[sent.number as usize])
    }

    /// The line of the statement in flight.
    fn line(&self, replay: &Replay) -> u32 {
        let in_flight = self.lane.sent.get(self.next.saturating_sub(1));
        in_flight.map_or(0, |sent| replay.log.statements[sent.number as usize].line)
    }
}

impl Statements for ReplayClients<'_> {
    fn due(&mut self, client: usize) -> Due {
        let cursor = &mut self.clients[client];
        let Some(statement) = cursor.statement(self.replay) else { return Due::Done };
        let before = cursor.session.replace(statement.session);
        if before.is_some_and(|before| before != statement.session) {
            cursor.schema = 0;
            return Due::Reconnect;
        }
        let after_us = u64::try_from(statement.start_us - self.replay.first_us).unwrap_or(0);
        Due::At(after_us * 1000)
    }

    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let cursor = &mut self.clients[client];
        let Some(statement) = cursor.statement(self.replay) else { return Next::Done };
        if self.replay.follows_schemas && statement.schema != 0 && cursor.schema != statement.schema {
            cursor.schema = statement.schema;
            let name = String::from_utf8_lossy(&self.replay.log.schemas[usize::from(statement.schema)]);
            encoder.query(&[b"USE ", quoted(&name).as_bytes()]);
            return Next::Send(Statement { kind: USE, part: Part::Apart, rows: 0, phase: 0 });
        }
        encoder.query(&[self.replay.log.sql(statement)]);
        let kind = cursor.lane.sent[cursor.next].kind;
        cursor.next += 1;
        Next::Send(Statement::alone(kind))
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.clients[client].schema = 0;
        After::GoOn
    }

    fn reworded(&self, client: usize, error: &ServerError) -> Option<String> {
        let line = self.clients[client].line(self.replay);
        let meaning = MEANINGS.iter().find(|(code, _)| *code == error.code);
        let meaning = meaning.map_or_else(String::new, |(_, meaning)| format!("{meaning}; "));
        Some(format!("{meaning}first in line {line} of {}", self.replay.name))
    }
}
