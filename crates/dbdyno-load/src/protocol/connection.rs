//! A logged-in connection as an event loop drives it.

use std::os::fd::OwnedFd;

use super::compression::Compression;
use super::encoder::Prepared;
use super::reply::ReplyParser;
use super::tls::Tls;

/// What [`super::session::Session::into_connection`] gives.
#[derive(Debug)]
pub struct Connection {
    /// A blocking socket with timeouts; the loop sets it as it likes.
    pub socket: OwnedFd,
    /// Finds the ends of the replies on it.
    pub parser: ReplyParser,
    /// Its prepared statements, in the order they were asked for.
    pub prepared: Vec<Prepared>,
    /// What seals and opens the bytes on the socket, if they are TLS records.
    pub tls: Option<Box<Tls>>,
    /// What inflates the packets in them, if they are compressed.
    pub compression: Option<Box<Compression>>,
}
