//! Codes of errors that the servers send, or their own clients make up, and what they mean for a load.
//!
//! What a load ignores unless `--ignore-errors` says otherwise is in [`TRANSACTION_RETRYABLE`].

use crate::protocol::reply::SESSION_ENDED;

/// ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_CHECKREAD: the server gave a transaction up, and it may be tried again.
pub const TRANSACTION_RETRYABLE: [u16; 3] = [1213, 1205, 1020];

/// What a client's own library says when the connection goes (CR_SERVER_LOST).
pub const SERVER_LOST: u16 = 2013;

/// What stands for a reply that does not end (ER_NET_READ_INTERRUPTED: a timeout amid packets).
pub const REPLY_TIMEOUT: u16 = 1159;

/// ER_DBACCESS_DENIED.
pub const SCHEMA_DENIED: u16 = 1044;

/// ER_NO_SUCH_TABLE.
pub const NO_SUCH_TABLE: u16 = 1146;

/// ER_UNSUPPORTED_PS: this statement cannot be prepared.
pub const UNPREPARABLE: u16 = 1295;

/// ER_CON_COUNT.
pub const TOO_MANY_CONNECTIONS: u16 = 1040;

/// ER_BAD_DB.
pub const UNKNOWN_SCHEMA: u16 = 1049;

/// ER_SECURE_TRANSPORT_REQUIRED.
pub const TLS_DEMANDED: u16 = 3159;

/// Whether a session that `code` ends is lost, whichever side says so.
pub fn is_session_lost(code: u16) -> bool {
    SESSION_ENDED.contains(&code) || matches!(code, SERVER_LOST | REPLY_TIMEOUT)
}

/// Whether a login was refused: ER_DBACCESS_DENIED, ER_ACCESS_DENIED, ER_ACCESS_DENIED_NO_PASSWORD.
pub fn is_login_denied(code: u16) -> bool {
    matches!(code, SCHEMA_DENIED | 1045 | 1698)
}

/// Whether a right is missing: ER_DBACCESS_DENIED, ER_ACCESS_DENIED (for files of the server), ER_KILL_DENIED,
/// ER_TABLEACCESS_DENIED, ER_COLUMNACCESS_DENIED, ER_SPECIFIC_ACCESS_DENIED, ER_PROCACCESS_DENIED.
pub fn is_right_missing(code: u16) -> bool {
    matches!(code, SCHEMA_DENIED | 1045 | 1095 | 1142 | 1143 | 1227 | 1370)
}

/// What the server's commonest errors mean, for where its own message may quote a secret.
pub fn meaning(code: u16) -> Option<&'static str> {
    Some(match code {
        SCHEMA_DENIED => "access to the schema denied",
        1046 => "no default schema",
        1054 => "unknown column",
        1062 => "duplicate entry for a key",
        1064 => "a mistake in the syntax, or a word that this server does not know",
        1142 => "the command is denied on that table",
        NO_SUCH_TABLE => "no such table",
        1205 => "lock wait timeout",
        1213 => "deadlock",
        1227 => "a privilege is missing",
        1305 => "no such routine",
        1452 => "a foreign key fails",
        1792 => "a write in a transaction that only reads",
        SERVER_LOST => "the connection was lost",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_tried_again_ends_no_session() {
        assert!(TRANSACTION_RETRYABLE.iter().all(|code| !is_session_lost(*code) && meaning(1213).is_some()));
        assert!(SESSION_ENDED.into_iter().chain([SERVER_LOST, REPLY_TIMEOUT]).all(is_session_lost));
    }
}
