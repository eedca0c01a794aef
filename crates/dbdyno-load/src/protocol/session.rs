//! A blocking session: logs in, runs the few statements around a load, and then hands its socket
//! to the event loop.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::auth::{AuthError, Dialogue, Login, Step};
use super::packet::{self, HEADER_SIZE, PAYLOAD_MAX, decode_header, take_string};
use super::reply::{ProtocolError, ReplyParser};
use crate::endpoint::{Endpoint, POLL};
use crate::error::Error;
use crate::stop::Stop;

/// Longest payload a session takes, in bytes: what it asks for is short.
const PAYLOAD_LIMIT: usize = 64 << 20;

/// The rows of a result as the text protocol gives them; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// A logged-in connection.
#[derive(Debug)]
pub struct Session {
    socket: OwnedFd,
    deprecate_eof: bool,
    server_version: String,
    connection_id: u32,
    /// A statement was sent whose reply was not read to its end.
    in_reply: bool,
    sequence: u8,
    patience: Duration,
    stop: Option<Stop>,
    received: Vec<u8>,
    taken: usize,
    place: String,
}

impl Session {
    /// Connects to `endpoint`, starting in `schema`, and runs its initial command.
    ///
    /// # Errors
    /// One line that names the place, the code and the remedy.
    pub fn connect(endpoint: &Endpoint, schema: Option<&str>, stop: &Stop) -> Result<Self, Error> {
        let mut session = Self {
            socket: endpoint.dial()?,
            deprecate_eof: false,
            server_version: String::new(),
            connection_id: 0,
            in_reply: false,
            sequence: 0,
            patience: endpoint.connect_timeout,
            stop: Some(stop.clone()),
            received: Vec::new(),
            taken: 0,
            place: endpoint.place(),
        };
        session.log_in(endpoint, schema).map_err(|error| endpoint.explain(error))?;
        session.patience = endpoint.stall_timeout;
        if let Some(command) = &endpoint.init_command {
            session.execute(command)?;
        }
        Ok(session)
    }

    fn log_in(&mut self, endpoint: &Endpoint, schema: Option<&str>) -> Result<(), Error> {
        let login = Login {
            user: &endpoint.user,
            password: endpoint.password.reveal(),
            schema,
            private: endpoint.is_private(),
        };
        let payload = self.read_payload()?;
        let (mut dialogue, greeting, answer) = Dialogue::start(login, &payload)?;
        self.deprecate_eof = greeting.deprecate_eof;
        self.server_version = greeting.server_version;
        self.connection_id = greeting.connection_id;
        self.write_payload(&answer)?;
        loop {
            let payload = self.read_payload()?;
            match dialogue.packet(&payload)? {
                Step::Send(answer) => self.write_payload(&answer)?,
                Step::Read => {}
                Step::Done => return Ok(()),
            }
        }
    }

    /// Version text of the server.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// A session for cleaning up, which a wish to stop no longer interrupts. It is this one, unless
    /// that was left in the middle of a statement, which is killed then.
    ///
    /// # Errors
    /// The server cannot be reached any more.
    pub fn for_cleaning_up(mut self, endpoint: &Endpoint) -> Result<Self, Error> {
        Stop::next_ends_process();
        if self.in_reply {
            let mut fresh = Self::connect(endpoint, None, &Stop::default())?;
            // It may have ended by itself, which is an error here.
            let _ = fresh.execute(&format!("KILL {}", self.connection_id));
            return Ok(fresh);
        }
        self.stop = None;
        Ok(self)
    }

    /// How long the server may say nothing to this session.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Runs `sql` and drops its rows.
    ///
    /// # Errors
    /// The server's error, with the statement.
    pub fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.query(sql).map(drop)
    }

    /// Runs `sql` and gives its rows.
    ///
    /// # Errors
    /// The server's error, with the statement; a wish to stop, in which case it is not run.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        if self.stop.as_ref().is_some_and(Stop::asked) {
            return Err(Error::Interrupted);
        }
        let request = packet::query(sql.as_bytes());
        self.in_reply = true;
        self.write(&request)?;
        self.sequence = packet::reply_sequence(&request);
        self.result(sql)
    }

    /// Gives the socket to an event loop, with a parser for the replies on it.
    pub fn into_parts(self) -> (OwnedFd, ReplyParser) {
        (self.socket, ReplyParser::new(self.deprecate_eof))
    }

    /// Ends the session politely; the server no longer counts it as aborted.
    pub fn quit(self) {
        let _ = send(&self.socket, &packet::quit(), SendFlags::NOSIGNAL);
    }

    /// Reads one reply: a [`ReplyParser`] finds its end, here only the rows are taken out.
    fn result(&mut self, sql: &str) -> Result<Rows, Error> {
        let mut parser = ReplyParser::new(self.deprecate_eof);
        parser.expect(self.sequence);
        let mut rows = Vec::new();
        let mut framed = Vec::new();
        loop {
            let first = self.sequence;
            let payload = self.read_payload()?;
            framed.clear();
            packet::encode(first, &payload, &mut framed);
            let before = parser.rows();
            let done = parser.feed(&framed)?;
            if parser.rows() > before {
                rows.push(row(&payload)?);
            }
            if let Some(reply) = done {
                self.in_reply = false;
                let sql = sql.to_owned();
                return match reply.error {
                    Some(error) => Err(Error::Statement { sql, error }),
                    None => Ok(rows),
                };
            }
        }
    }

    fn write_payload(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut out = Vec::new();
        packet::encode(self.sequence, payload, &mut out);
        self.sequence = self.sequence.wrapping_add(1);
        self.write(&out)
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let mut silence = Duration::ZERO;
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(errno) => self.wait_on(errno, &mut silence)?,
            }
        }
        Ok(())
    }

    /// One payload, put together from its packets.
    fn read_payload(&mut self) -> Result<Vec<u8>, Error> {
        let mut payload = Vec::new();
        loop {
            self.fill(HEADER_SIZE)?;
            let header = &self.received[self.taken..self.taken + HEADER_SIZE];
            let header = <[u8; HEADER_SIZE]>::try_from(header).map_err(|_| ProtocolError("a header cut short"))?;
            let (length, sequence) = decode_header(header);
            self.taken += HEADER_SIZE;
            if payload.len() + length > PAYLOAD_LIMIT {
                return Err(ProtocolError("a packet that is too long").into());
            }
            self.fill(length)?;
            payload.extend_from_slice(&self.received[self.taken..self.taken + length]);
            self.taken += length;
            self.sequence = sequence.wrapping_add(1);
            if length < PAYLOAD_MAX {
                return Ok(payload);
            }
        }
    }

    /// Reads until `wanted` bytes are there that were not taken.
    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        let mut silence = Duration::ZERO;
        let mut buffer = [0; 16 << 10];
        if self.received.len() - self.taken < wanted {
            self.received.drain(..self.taken);
            self.taken = 0;
        }
        while self.received.len() - self.taken < wanted {
            match recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Error::Lost(self.place.clone(), Errno::CONNRESET)),
                Ok((got, _)) => self.received.extend_from_slice(&buffer[..got]),
                Err(errno) => self.wait_on(errno, &mut silence)?,
            }
        }
        Ok(())
    }

    /// The socket gives up after [`POLL`], so that stop and patience are looked at that often.
    fn wait_on(&self, errno: Errno, silence: &mut Duration) -> Result<(), Error> {
        match errno {
            Errno::AGAIN => *silence += POLL,
            Errno::INTR => {}
            errno => return Err(Error::Lost(self.place.clone(), errno)),
        }
        if self.stop.as_ref().is_some_and(Stop::asked) {
            return Err(Error::Interrupted);
        }
        if *silence >= self.patience {
            return Err(Error::Silent(self.place.clone(), *silence));
        }
        Ok(())
    }
}

fn row(mut payload: &[u8]) -> Result<Vec<Option<String>>, ProtocolError> {
    let mut values = Vec::new();
    while !payload.is_empty() {
        let value = take_string(&mut payload).ok_or(ProtocolError("a row cut short"))?;
        values.push(value.map(|text| String::from_utf8_lossy(text).into_owned()));
    }
    Ok(values)
}

impl From<AuthError> for Error {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Server(error) => Self::Login(error),
            AuthError::Refused(why) => Self::Failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_nulls() {
        assert_eq!(row(b"\x01a\xfb\x00").unwrap(), [Some("a".into()), None, Some(String::new())]);
        assert!(row(b"\x05a").is_err());
    }
}
