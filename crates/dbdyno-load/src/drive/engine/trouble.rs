//! What the loop does when a server refuses a statement, or a connection goes.

use std::sync::atomic::Ordering;

use super::{Engine, State, Wire};
use crate::clock::now_ns;
use crate::endpoint::explained;
use crate::error::Error;
use crate::protocol::connection::Connection;
use crate::protocol::reply::ServerError;
use crate::statements::{After, Said};

/// What a client's own library says when the connection goes (CR_SERVER_LOST).
const SERVER_LOST: u16 = 2013;

impl<W: Wire> Engine<'_, '_, W> {
    #[cold]
    pub(super) fn refused(&mut self, number: usize, error: &ServerError, now: u64) -> Result<(), String> {
        let said = self.clients[number].said;
        self.recorder.refused(said.kind, error);
        if error.ends_session() {
            if self.limits.reconnect_ns == 0 {
                return Err(format!("the server ended the session of client {number}: error {error}"));
            }
            self.clients[number].state = State::Stranded { lost: true };
            self.part(number, now);
            return Ok(());
        }
        if !self.limits.ignore.has(error.code) {
            let errors = self.shared.errors.fetch_add(1, Ordering::Relaxed) + 1;
            if errors > self.limits.errors_max {
                return Err(self.too_many(said, error));
            }
        }
        let after = self.statements.refused(number, error.code);
        self.after(after, number, said, now)
    }

    fn too_many(&self, said: Said, error: &ServerError) -> String {
        let kind = self.recorder.kind(said.kind);
        match self.limits.errors_max {
            0 => format!("the server refused a statement, {kind}: error {error}"),
            most => format!("more than {most} refused statements; the last, {kind}: error {error}"),
        }
    }

    fn after(&mut self, after: After, number: usize, said: Said, now: u64) -> Result<(), String> {
        match after {
            After::GoOn => self.go_on(number, said, now),
            // An event that fails for ever must end some time.
            After::StartOver if self.is_over(now) => self.free(number, now),
            After::StartOver => self.say(number, now),
        }
    }

    /// Gives up a client's connection and asks for another.
    pub(super) fn part(&mut self, number: usize, now: u64) {
        self.wire.detach(number);
        self.clients[number].connected = false;
        self.wish(number, now);
    }

    pub(super) fn wish(&mut self, number: usize, now: u64) {
        self.clients[number].wished = true;
        self.replacer.wish(number, now + self.limits.reconnect_ns);
    }

    #[cold]
    pub(super) fn lost(&mut self, number: usize, lost: &Error) -> Result<(), String> {
        if self.clients[number].state == State::Finished {
            // Nobody misses it; after a warm-up it is replaced when there is something to say.
            self.wire.detach(number);
            self.clients[number].connected = false;
            return Ok(());
        }
        if self.limits.reconnect_ns == 0 {
            return Err(format!("client {number} {lost}"));
        }
        let now = now_ns();
        if self.clients[number].state == State::Busy {
            self.busy -= 1;
            let error = ServerError { code: SERVER_LOST, sqlstate: "HY000".into(), message: lost.to_string() };
            self.recorder.refused(self.clients[number].said.kind, &error);
            self.clients[number].state = State::Stranded { lost: true };
        }
        self.part(number, now);
        Ok(())
    }

    /// A new connection, or the end of all hope.
    pub(super) fn replaced(
        &mut self,
        number: usize,
        outcome: Result<Connection, Error>,
        now: u64,
    ) -> Result<(), String> {
        self.clients[number].wished = false;
        let connection = match outcome {
            Ok(connection) => connection,
            // The wish to stop is looked at elsewhere; who has said all needs no connection.
            Err(Error::Interrupted) => return Ok(()),
            Err(_) if self.clients[number].state == State::Finished => return Ok(()),
            Err(error) => return Err(format!("client {number} got no new connection: {error}")),
        };
        let socket = self.clients[number].replace(connection);
        let attached = self.wire.attach(number, socket);
        attached.map_err(|errno| format!("client {number}: cannot watch its new connection: {}", explained(errno)))?;
        self.recorder.reconnected();
        match self.clients[number].state {
            State::Stranded { lost: true } => {
                let said = self.clients[number].said;
                let after = self.statements.reconnected(number);
                self.after(after, number, said, now)
            }
            State::Stranded { lost: false } => self.say(number, now),
            _ => Ok(()),
        }
    }
}
