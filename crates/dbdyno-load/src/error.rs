//! What can go wrong, and the exit code it ends in.

use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use crate::endpoint::explained;
use crate::protocol::reply::{ProtocolError, ServerError};
use crate::protocol::tls::TlsError;

/// Everything that ends a verb early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line or an option file is wrong.
    #[error("{0}")]
    Usage(String),
    /// Something else, told in full.
    #[error("{0}")]
    Failed(String),
    /// The server refused the login.
    #[error("{0}")]
    Login(ServerError),
    /// The server refused a statement of ours.
    #[error("the server refused a statement: error {error}\n  statement: {}", shorten(.sql))]
    Statement {
        /// The statement.
        sql: String,
        /// The server's answer.
        error: ServerError,
    },
    /// The connection ended.
    #[error(
        "lost the connection to {0}: {why}: did the server stop, or end it (KILL, wait_timeout)? see its error log",
        why = explained(*.1)
    )]
    Lost(String, Errno),
    /// TLS broke, or was closed.
    #[error("lost the TLS connection to {0}: {1}: {remedy}", remedy = .1.remedy())]
    Tls(String, TlsError),
    /// The server says nothing.
    #[error("{0} did not answer for {seconds} s: see the server's error log and processlist", seconds = .1.as_secs())]
    Silent(String, Duration),
    /// What came is not the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A file could not be read or written.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    File(PathBuf, std::io::Error),
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// 1 failed, 2 the user's mistake, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

/// A statement short enough for a line of a terminal.
fn shorten(sql: &str) -> String {
    const LENGTH_MAX: usize = 200;
    let mut text: String = sql.chars().filter(|c| !c.is_control()).collect();
    if text.chars().count() > LENGTH_MAX {
        text = text.chars().take(LENGTH_MAX).collect();
        text.push_str(" ...");
    }
    text
}
