//! What can go wrong, and the exit code it ends in. The server's own codes are in [`crate::dialect::error_codes`].

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use crate::protocol::patience::Exceeded;
use crate::protocol::reply::{ProtocolError, ServerError};
use crate::protocol::tls::TlsError;
use crate::text::printable;

/// Everything that ends a verb early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line or an option file is wrong.
    #[error("{0}")]
    Usage(String),
    /// Something else, in full.
    #[error("{0}")]
    Failed(String),
    /// The server refused the login.
    #[error("{0}")]
    Login(ServerError),
    /// The server refused a statement of ours.
    #[error("the server refused a statement: error {error}; statement: {}", shorten(.sql))]
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
    /// The server took longer than it may.
    #[error(transparent)]
    Slow(Slow),
    /// What came is not the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A file could not be read or written.
    #[error("{path}: {error}", path = .0.display(), error = in_words(.1))]
    File(PathBuf, std::io::Error),
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
}

/// A server took longer than it may.
#[derive(Debug, thiserror::Error)]
#[error("{place} {passed} {} s: {}{}", .limit.as_secs(), .passed.remedy(), statement(.sql.as_deref()))]
pub struct Slow {
    /// Where it is.
    pub place: String,
    /// What took too long.
    pub passed: Exceeded,
    /// How long it may take.
    pub limit: Duration,
    /// The statement that it was to answer.
    pub sql: Option<String>,
}

fn statement(sql: Option<&str>) -> String {
    sql.map_or_else(String::new, |sql| format!("; statement: {}", shorten(sql)))
}

impl Error {
    /// 1 failed, 2 the user's mistake, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::File(_, error) if is_mistake(error.kind()) => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

/// Whether another name, other rights or another file would do. A full or broken disk is no mistake of the user's.
fn is_mistake(kind: ErrorKind) -> bool {
    use ErrorKind::{
        AlreadyExists, FileTooLarge, InvalidData, InvalidFilename, IsADirectory, NotADirectory, NotFound,
        PermissionDenied, ReadOnlyFilesystem,
    };
    matches!(
        kind,
        AlreadyExists
            | FileTooLarge
            | InvalidData
            | InvalidFilename
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | ReadOnlyFilesystem
    )
}

/// What the system said of a file, without its number, which says no more to a person.
pub fn in_words(error: &std::io::Error) -> String {
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or_default().to_owned()
}

/// A statement short enough for a line of a terminal.
pub fn shorten(sql: &str) -> String {
    const CHARS_MAX: usize = 200;
    printable(sql.as_bytes(), sql.len(), CHARS_MAX)
}

/// An errno as `text (errno number)`.
pub fn explained(errno: Errno) -> String {
    errno.to_string().replace("(os error", "(errno")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_opened_is_the_users_mistake_and_a_full_disk_is_not() {
        let code = |errno: Errno| {
            let error = Error::File("load.sql".into(), errno.into());
            (error.exit_code(), error.to_string())
        };
        assert_eq!(code(Errno::NOENT), (2, "load.sql: No such file or directory".into()));
        for mistake in [Errno::ISDIR, Errno::ACCESS, Errno::NOTDIR, Errno::ROFS, Errno::NAMETOOLONG] {
            assert_eq!(code(mistake).0, 2, "{mistake}");
        }
        for failure in [Errno::NOSPC, Errno::IO, Errno::DQUOT, Errno::PIPE] {
            assert_eq!(code(failure).0, 1, "{failure}");
        }
    }
}
