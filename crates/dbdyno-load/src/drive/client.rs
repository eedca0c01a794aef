//! One connection of the loop and what is in flight on it.

use std::os::fd::OwnedFd;

use crate::protocol::compression::Compression;
use crate::protocol::encoder::{Prepared, RequestEncoder};
use crate::protocol::packet::reply_sequence;
use crate::protocol::reply::{KeptRows, ProtocolError, Reply, ReplyParser};
use crate::protocol::session::Connection;
use crate::protocol::tls::{Tls, TlsError};
use crate::statements::{Part, Statement};

/// What a client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It waits for an event to be due.
    Idle,
    /// It thinks.
    Pausing,
    /// It waits for a reply.
    Busy,
    /// It has something to send and no connection; `lost` when the connection went with a
    /// statement in flight.
    Disconnected { lost: bool },
    /// It has sent all.
    Finished,
}

/// Why what came is no reply.
#[derive(Debug)]
pub enum ReplyError {
    /// It is not the protocol.
    NotProtocol(ProtocolError),
    /// It ends the connection.
    ConnectionEnded(TlsError),
}

/// A client.
pub struct Client {
    parser: ReplyParser,
    prepared: Vec<Prepared>,
    tls: Option<Box<Tls>>,
    compression: Option<Box<Compression>>,
    /// What came over TLS, in the clear.
    plain: Vec<u8>,
    /// What came compressed, inflated.
    inflated: Vec<u8>,
    pub activity: Activity,
    /// Whether there is a connection.
    pub connected: bool,
    /// Whether a new one is being made.
    pub reconnecting: bool,
    /// The statement in flight, and when it was meant to start.
    pub statement: Statement,
    pub intended_ns: u64,
    /// When the first bytes of its reply came, if the last have not; 0 without.
    pub begun_ns: u64,
    /// When the event was meant to start that was given to the client, if one was.
    pub event_ns: Option<u64>,
    /// A statement of that event was sent.
    pub in_event: bool,
}

impl Client {
    /// A client and its socket, which goes to the wire.
    pub fn new(connection: Connection) -> (Self, OwnedFd) {
        let client = Self {
            parser: connection.parser,
            prepared: connection.prepared,
            tls: connection.tls,
            compression: connection.compression,
            plain: Vec::new(),
            inflated: Vec::new(),
            activity: Activity::Idle,
            connected: true,
            reconnecting: false,
            statement: Statement { kind: 0, part: Part::Apart, rows: 0, phase: 0 },
            intended_ns: 0,
            begun_ns: 0,
            event_ns: None,
            in_event: false,
        };
        (client, connection.socket)
    }

    /// Takes a new connection in place of the old one.
    pub fn replace(&mut self, connection: Connection) -> OwnedFd {
        let keeps_rows = self.parser.kept_rows().is_some();
        (self.parser, self.prepared, self.tls) = (connection.parser, connection.prepared, connection.tls);
        self.compression = connection.compression;
        self.parser.keep_rows(keeps_rows);
        self.connected = true;
        connection.socket
    }

    /// Whether a request may be written.
    pub fn is_ready(&self) -> bool {
        self.connected && self.activity != Activity::Busy
    }

    /// Sets whether the rows of later replies are kept.
    pub fn keep_rows(&mut self, keep: bool) {
        self.parser.keep_rows(keep);
    }

    /// The rows of the last reply, if they are kept.
    #[inline]
    pub fn kept_rows(&self) -> Option<&KeptRows> {
        self.parser.kept_rows()
    }

    /// Has a request written into `out`.
    #[inline]
    pub fn write<T>(&mut self, out: &mut Vec<u8>, encode: impl FnOnce(&mut RequestEncoder<'_>) -> T) -> T {
        encode(&mut RequestEncoder::new(out, &mut self.prepared))
    }

    /// Makes a request that was written ready to send, and this client for its reply.
    #[inline]
    pub fn seal(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.parser.expect(reply_sequence(out));
        if self.compression.is_some() {
            Compression::seal(out);
        }
        match &mut self.tls {
            Some(tls) => tls.seal(out).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Takes bytes from the server; `Some` when they complete the reply.
    #[inline]
    pub fn on_bytes(&mut self, bytes: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let clear = match &mut self.tls {
            None => bytes,
            Some(tls) => {
                self.plain.clear();
                tls.open(bytes, &mut self.plain).map_err(ReplyError::ConnectionEnded)?;
                &self.plain
            }
        };
        let clear = match &mut self.compression {
            None => clear,
            Some(compression) => {
                self.inflated.clear();
                compression.open(clear, &mut self.inflated).map_err(ReplyError::NotProtocol)?;
                &self.inflated
            }
        };
        if self.activity != Activity::Busy {
            // Unasked for: the server says goodbye, and the end of the connection follows.
            return Ok(None);
        }
        self.parser.feed(clear).map_err(ReplyError::NotProtocol)
    }
}
