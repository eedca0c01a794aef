//! What the loop does when a server refuses a statement, or a connection goes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Activity, Client, Engine};
use crate::clock::now_ns;
use crate::error::explained;
use crate::error::{Error, Slow};
use crate::protocol::connection::Connection;
use crate::protocol::patience::Passed;
use crate::protocol::reply::ServerError;
use crate::statements::{After, Statement};

/// What a client's own library says when the connection goes (CR_SERVER_LOST).
const SERVER_LOST: u16 = 2013;

/// What stands for a reply that does not end (ER_NET_READ_INTERRUPTED: a timeout amid packets).
const REPLY_TIMEOUT: u16 = 1159;

impl Engine<'_, '_> {
    #[cold]
    pub(super) fn refused(&mut self, number: usize, error: &ServerError, now: u64) -> Result<(), String> {
        let statement = self.clients[number].statement;
        let reworded = self.statements.reworded(number, error);
        let error = &reworded.map_or_else(|| error.clone(), |message| ServerError { message, ..error.clone() });
        self.recorder.refused(statement.kind, error);
        if error.ends_session() {
            if self.limits.reconnect_ns == 0 && self.limits.expects_loss {
                self.leave(number);
                return Ok(());
            }
            if self.limits.reconnect_ns == 0 {
                return Err(format!("the server ended the session of client {number}: error {error}"));
            }
            self.clients[number].activity = Activity::Disconnected { lost: true };
            self.disconnect(number, now);
            return Ok(());
        }
        if !self.limits.ignore.has(error.code) {
            let errors = self.shared.errors.fetch_add(1, Ordering::Relaxed) + 1;
            if errors > self.limits.errors_max {
                return Err(self.too_many(statement, error));
            }
        }
        let after = self.statements.refused(number, error.code);
        self.after(after, number, statement, now)
    }

    fn too_many(&self, statement: Statement, error: &ServerError) -> String {
        let kind = self.recorder.kind(statement.kind);
        match self.limits.errors_max {
            0 => format!("the server refused a statement, {kind}: error {error}"),
            most => format!("more than {most} refused statements; the last, {kind}: error {error}"),
        }
    }

    fn after(&mut self, after: After, number: usize, statement: Statement, now: u64) -> Result<(), String> {
        match after {
            After::GoOn => self.go_on(number, statement, now),
            // An event that fails for ever must end some time.
            After::StartOver if self.is_over(now) => self.free(number, now),
            After::StartOver => self.send_next(number, now),
        }
    }

    /// Gives up a client's connection and asks for another.
    pub(super) fn disconnect(&mut self, number: usize, now: u64) {
        self.wire.detach(number);
        self.clients[number].connected = false;
        self.request_reconnect(number, now);
    }

    pub(super) fn request_reconnect(&mut self, number: usize, now: u64) {
        self.clients[number].reconnecting = true;
        self.replacer.request(number, now + self.limits.reconnect_ns);
    }

    /// Takes connections for lost whose server began a reply and does not end it: a byte now and then is no silence.
    pub(super) fn drop_endless(&mut self, now: u64) -> Result<(), String> {
        let reply_ns = self.limits.reply_ns;
        let endless = |client: &Client| {
            client.activity == Activity::Busy && client.begun_ns > 0 && now.saturating_sub(client.begun_ns) >= reply_ns
        };
        let numbers: Vec<usize> = (0..self.clients.len()).filter(|number| endless(&self.clients[*number])).collect();
        numbers.into_iter().try_for_each(|number| {
            let (place, limit) = (self.replacer.place(), Duration::from_nanos(reply_ns));
            self.lost(number, &Error::Slow(Slow { place, passed: Passed::Reply, limit, sql: None }))
        })
    }

    #[cold]
    pub(super) fn lost(&mut self, number: usize, lost: &Error) -> Result<(), String> {
        if self.clients[number].activity == Activity::Finished {
            // No statement needs it; after a warm-up it is replaced when there is something to send.
            self.wire.detach(number);
            self.clients[number].connected = false;
            return Ok(());
        }
        let is_final = self.limits.reconnect_ns == 0;
        if is_final && !self.limits.expects_loss {
            return Err(match lost {
                Error::Slow(_) => format!("client {number}: {lost}"),
                _ => format!("client {number} {lost}"),
            });
        }
        let now = now_ns();
        if self.clients[number].activity == Activity::Busy {
            self.busy -= 1;
            let code = if matches!(lost, Error::Slow(_)) { REPLY_TIMEOUT } else { SERVER_LOST };
            let error = ServerError { code, sqlstate: "HY000".into(), message: lost.to_string() };
            self.recorder.refused(self.clients[number].statement.kind, &error);
            self.clients[number].activity = Activity::Disconnected { lost: true };
        }
        if is_final {
            self.leave(number);
        } else {
            self.disconnect(number, now);
        }
        Ok(())
    }

    /// The client's connection is lost for good, as was to be expected: the run ends with it.
    fn leave(&mut self, number: usize) {
        self.shared.end();
        self.wire.detach(number);
        self.clients[number].connected = false;
        // One that waits for an event is found where it waits.
        if !matches!(self.clients[number].activity, Activity::Idle | Activity::Pausing) {
            self.finish(number);
        }
    }

    /// A new connection, or the end of all hope.
    pub(super) fn replaced(
        &mut self,
        number: usize,
        outcome: Result<Connection, Error>,
        now: u64,
    ) -> Result<(), String> {
        self.clients[number].reconnecting = false;
        let connection = match outcome {
            Ok(connection) => connection,
            // The request to stop is looked at elsewhere; who is done needs no connection.
            Err(Error::Interrupted) => return Ok(()),
            Err(_) if self.clients[number].activity == Activity::Finished => return Ok(()),
            Err(error) => return Err(format!("client {number} got no new connection: {error}")),
        };
        let socket = self.clients[number].replace(connection);
        let attached = self.wire.attach(number, socket);
        attached.map_err(|errno| format!("client {number}: cannot watch its new connection: {}", explained(errno)))?;
        self.recorder.reconnected();
        match self.clients[number].activity {
            Activity::Disconnected { lost: true } => {
                let statement = self.clients[number].statement;
                let after = self.statements.reconnected(number);
                self.after(after, number, statement, now)
            }
            // By a log connections change between events.
            Activity::Disconnected { lost: false } if self.clients[number].event_ns.is_none() => self.free(number, now),
            Activity::Disconnected { lost: false } => self.send_next(number, now),
            _ => Ok(()),
        }
    }
}
