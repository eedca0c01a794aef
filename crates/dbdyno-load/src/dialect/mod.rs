//! What is particular to MySQL and MariaDB beside the client protocol ([`crate::protocol`]): codes of errors, schemas
//! and variables of the server's own, places of sockets and option files, names in the environment, words of
//! statements.
//!
//! No other module spells these names. Two are apart, as their names are another program's: the load `slap` is called
//! what mysqlslap is called, and `oltp` takes flags under sysbench's names.

pub mod words;

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

/// The servers' own schemas: what is written there are accounts, rights, plugins and settings.
const SYSTEM_SCHEMAS: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];

/// Whether a schema is the server's own.
pub fn is_system_schema(name: &[u8]) -> bool {
    SYSTEM_SCHEMAS.iter().any(|system| system.as_bytes().eq_ignore_ascii_case(name))
}

/// The condition that `column` names a schema of users.
pub fn is_user_schema_sql(column: &str) -> String {
    format!("{column} NOT IN ('{}')", SYSTEM_SCHEMAS.join("', '"))
}

/// Schemas that an old installation opens to every account, by rows of [`OPEN_BY`] without a user.
pub const OPEN_TO_ALL: [&str; 2] = ["test", "test_dbdyno"];
/// The table of rights on schemas.
pub const OPEN_BY: &str = "mysql.db";

/// The storage engine that CREATE TABLE names where nobody chose one.
pub const DEFAULT_ENGINE: &str = "innodb";

/// Asks for the longest packet that the server takes, in bytes.
pub const PACKET_BYTES_MAX_SQL: &str = "SELECT @@GLOBAL.max_allowed_packet";

/// Asks how many prepared statements the server holds for all sessions.
pub const PREPARED_MAX_SQL: &str = "SELECT @@GLOBAL.max_prepared_stmt_count";

/// Asks for the modes of the session.
pub const MODES_SQL: &str = "SELECT @@SESSION.sql_mode";

/// Whether a backslash in a string is a character like others in a session with these `modes`.
pub fn takes_backslashes_literally(modes: &str) -> bool {
    modes.split(',').any(|mode| mode == "NO_BACKSLASH_ESCAPES")
}

/// The condition that the server's events run.
pub const EVENTS_RUN_SQL: &str = "@@GLOBAL.event_scheduler = 'ON'";

/// What lines of a slow log have where its server stamps an entry when the statement starts, as MariaDB does, and not
/// when it ends.
pub const STAMPS_AT_START: &[u8] = b"QC_hit: ";

/// The port where none is given.
pub const PORT: u16 = 3306;

/// Where distributions put the server's socket.
pub const USUAL_SOCKETS: [&str; 4] =
    ["/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// The system's option files, in the order of reading.
pub const OPTION_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// Groups of option files that concern a load, as mysqlslap reads them, and ours.
pub const OPTION_GROUPS: [&str; 6] =
    ["client", "client-server", "client-mariadb", "mysqlslap", "mariadb-slap", "dbdyno"];

/// Groups of the login file that programs read without being told to.
pub const LOGIN_GROUPS: [&str; 3] = ["client", "mysqlslap", "dbdyno"];

/// The program that writes the login file.
pub const LOGIN_EDITOR: &str = "mysql_config_editor";

/// Names in the environment that the servers' own clients read, too.
pub mod environment {
    /// The password.
    pub const PASSWORD: &str = "MYSQL_PWD";
    /// The host.
    pub const HOST: &str = "MYSQL_HOST";
    /// The port.
    pub const PORT: &str = "MYSQL_TCP_PORT";
    /// The socket.
    pub const SOCKET: &str = "MYSQL_UNIX_PORT";
    /// The suffix of groups in option files.
    pub const GROUP_SUFFIX: &str = "MYSQL_GROUP_SUFFIX";
    /// The login file.
    pub const LOGIN_FILE: &str = "MYSQL_TEST_LOGIN_FILE";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_s_own_schemas_are_known_in_any_case() {
        assert!([&b"mysql"[..], b"MySQL", b"SYS"].into_iter().all(is_system_schema));
        assert!(!is_system_schema(b"mysql_") && !is_system_schema(b""));
        let sql = "t NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')";
        assert_eq!(is_user_schema_sql("t"), sql);
    }

    #[test]
    fn what_may_be_tried_again_ends_no_session() {
        assert!(TRANSACTION_RETRYABLE.iter().all(|code| !is_session_lost(*code) && meaning(1213).is_some()));
        assert!(SESSION_ENDED.into_iter().chain([SERVER_LOST, REPLY_TIMEOUT]).all(is_session_lost));
    }
}
