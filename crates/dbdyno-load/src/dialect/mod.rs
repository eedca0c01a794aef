//! What is particular to MySQL and MariaDB beside the client protocol ([`crate::protocol`]): [`error_codes`], schemas
//! and variables of the server's own, places of sockets and option files, names in the environment, words of
//! statements.
//!
//! No other module spells these names. Two are apart, as their names are another program's: the load `slap` is called
//! what mysqlslap is called, and `oltp` takes flags under sysbench's names.

pub mod error_codes;
pub mod words;

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

/// Has a session read all that is committed and nothing else, whatever the server's own settings are; a server refuses
/// what it does not know.
pub const READ_WHOLE_SQL: [&str; 4] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION sql_select_limit = 18446744073709551615",
    "SET SESSION max_statement_time = 0",
    "SET SESSION max_execution_time = 0",
];

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
}
