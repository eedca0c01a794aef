//! The flags of `slap`: mysqlslap's, then ours.

use crate::flags::{Flag, Takes};

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::switch("auto-generate-sql", "generate table and statements").short('a'),
    Flag::switch("auto-generate-sql-add-autoincrement", "give the table a serial id"),
    Flag::value("auto-generate-sql-execute-number", "queries per client"),
    Flag::switch("auto-generate-sql-guid-primary", "give the table a UUID as primary key"),
    Flag::value("auto-generate-sql-load-type", "read, key, write, update or mixed"),
    Flag::value("auto-generate-sql-secondary-indexes", "unique UUID columns"),
    Flag::value("auto-generate-sql-unique-query-number", "distinct statements, less one"),
    Flag::value("auto-generate-sql-unique-write-number", "distinct initial rows"),
    Flag::value("auto-generate-sql-write-number", "initial rows, plus one"),
    Flag::value("commit", "COMMIT after this many statements, autocommit off"),
    Flag::value("concurrency", "clients, or a list, one run each: 10,50").short('c').same_as("clients"),
    Flag::value("create", "statements, or a file of them, that make the tables for --query"),
    Flag::value("create-schema", "schema"),
    Flag::value("detach", "a new connection after this many statements of a client"),
    Flag::joined("csv", "mysqlslap's CSV line, to the terminal or appended to a file"),
    Flag::value("delimiter", "between statements of --create, --query, .. (newline)").short('F'),
    Flag::value("engine", "storage engine, or a list").short('e'),
    Flag::switch("force", "drop an existing schema though it is not ours"),
    Flag::value("iterations", "repetitions, each on fresh tables").short('i'),
    Flag::switch("no-drop", "leave the schema"),
    Flag::value("number-char-cols", "string columns, 3:1 with an index each").short('x'),
    Flag::value("number-int-cols", "integer columns, 3:1 with an index each").short('y'),
    Flag::value("number-of-queries", "queries of all clients together"),
    Flag::switch("only-print", "print the statements, touch no server"),
    Flag::value("post-query", "statements, or a file, run after the load"),
    Flag::value("pre-query", "statements, or a file, run before the load"),
    Flag::value("post-system", "shell command run after the load"),
    Flag::value("pre-system", "shell command run before the load"),
    Flag::value("query", "statements, or a file of them, instead of --auto-generate-sql").short('q'),
    // Beyond mysqlslap.
    Flag::value("phase", "all; prepare: only make tables; run: only the load; cleanup"),
    // Accepted, as nothing depends on them here.
    Flag::ignored("character-sets-dir", Takes::Value, "no character sets are loaded"),
    Flag::ignored("debug", Takes::Joined, "there is no debug trace").short('#'),
    Flag::ignored("debug-check", Takes::Nothing, "there is no debug trace"),
    Flag::ignored("debug-info", Takes::Nothing, "the report has the client's CPU").short('T'),
    Flag::ignored("default-auth", Takes::Value, "the server names the plugin"),
    Flag::ignored("default-character-set", Takes::Value, "the generated SQL is ASCII"),
    Flag::ignored("plugin-dir", Takes::Value, "plugins are built in"),
    Flag::ignored("print-defaults", Takes::Nothing, "see --help"),
    Flag::ignored("wait", Takes::Joined, "see --connect-timeout"),
    Flag::ignored("skip-secure-auth", Takes::Nothing, "old passwords are never used"),
    Flag::ignored("secure-auth", Takes::Nothing, "old passwords are never used"),
    // Not here.
    Flag::refused("pipe", Takes::Nothing, "named pipes exist on Windows only: use --socket"),
    Flag::refused("shared-memory-base-name", Takes::Value, "exists on Windows only: use --socket"),
];
