//! One connection of the loop and what is under way on it.

use std::os::fd::OwnedFd;

use crate::protocol::connection::Connection;
use crate::protocol::packet::reply_sequence;
use crate::protocol::pen::{Pen, Prepared};
use crate::protocol::reply::{ProtocolError, Reply, ReplyParser};
use crate::protocol::tls::{Tls, TlsError};
use crate::statements::{Part, Said};

/// What a client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for an event to be due.
    Idle,
    /// It thinks.
    Pausing,
    /// It waits for a reply.
    Busy,
    /// It has something to say and no connection; `lost` when the connection went with a
    /// statement under way.
    Stranded { lost: bool },
    /// It has said all.
    Finished,
}

/// Why what came is of no use.
#[derive(Debug)]
pub enum Unheard {
    /// It is not the protocol.
    Nonsense(ProtocolError),
    /// It ends the connection.
    Ended(TlsError),
}

/// A client.
pub struct Client {
    parser: ReplyParser,
    prepared: Vec<Prepared>,
    tls: Option<Box<Tls>>,
    /// What came over TLS, in the clear.
    plain: Vec<u8>,
    pub state: State,
    /// Whether there is a connection.
    pub connected: bool,
    /// Whether a new one is being made.
    pub wished: bool,
    /// The statement under way, and when it was meant to start.
    pub said: Said,
    pub said_ns: u64,
    /// When the event was meant to start that the client was told to say, if it was.
    pub event_ns: Option<u64>,
    /// A statement of that event was said.
    pub in_event: bool,
}

impl Client {
    /// A client and its socket, which goes to the wire.
    pub fn new(connection: Connection) -> (Self, OwnedFd) {
        let client = Self {
            parser: connection.parser,
            prepared: connection.prepared,
            tls: connection.tls,
            plain: Vec::new(),
            state: State::Idle,
            connected: true,
            wished: false,
            said: Said { kind: 0, part: Part::Apart, rows: 0, phase: 0 },
            said_ns: 0,
            event_ns: None,
            in_event: false,
        };
        (client, connection.socket)
    }

    /// Takes a new connection in place of the old one.
    pub fn replace(&mut self, connection: Connection) -> OwnedFd {
        (self.parser, self.prepared, self.tls) = (connection.parser, connection.prepared, connection.tls);
        self.connected = true;
        connection.socket
    }

    /// Whether a request may be written.
    pub fn is_ready(&self) -> bool {
        self.connected && self.state != State::Busy
    }

    /// Has a request written into `out`.
    #[inline]
    pub fn write<T>(&mut self, out: &mut Vec<u8>, say: impl FnOnce(&mut Pen<'_>) -> T) -> T {
        say(&mut Pen::new(out, &mut self.prepared))
    }

    /// Makes a request that was written ready to send, and this client for its reply.
    #[inline]
    pub fn seal(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.parser.expect(reply_sequence(out));
        match &mut self.tls {
            Some(tls) => tls.seal(out).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Takes bytes from the server; `Some` when they complete the reply.
    #[inline]
    pub fn hear(&mut self, bytes: &[u8]) -> Result<Option<Reply>, Unheard> {
        let clear = match &mut self.tls {
            None => bytes,
            Some(tls) => {
                self.plain.clear();
                tls.open(bytes, &mut self.plain).map_err(Unheard::Ended)?;
                &self.plain
            }
        };
        if self.state != State::Busy {
            // Unasked for: the server says goodbye, and the end of the connection follows.
            return Ok(None);
        }
        self.parser.feed(clear).map_err(Unheard::Nonsense)
    }
}
