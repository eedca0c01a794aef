//! The flags of `slap`: mysqlslap's, then ours.

use crate::flags::{Flag, Takes, Use};
use crate::login;

const fn of(name: &'static str, short: Option<char>, takes: Takes, help: &'static str) -> Flag {
    Flag { name, short, takes, used: Use::Honoured, help }
}

const fn value(name: &'static str, help: &'static str) -> Flag {
    of(name, None, Takes::Value, help)
}

const fn switch(name: &'static str, help: &'static str) -> Flag {
    of(name, None, Takes::Nothing, help)
}

const fn ignored(name: &'static str, takes: Takes, why: &'static str) -> Flag {
    Flag { name, short: None, takes, used: Use::Ignored(why), help: "" }
}

const fn refused(name: &'static str, takes: Takes, why: &'static str) -> Flag {
    Flag { name, short: None, takes, used: Use::Refused(why), help: "" }
}

const fn short(name: char, flag: Flag) -> Flag {
    Flag { short: Some(name), ..flag }
}

/// Said of TLS flags.
const NO_TLS: &str = "TLS is not supported yet: use a unix socket, or TCP without TLS";

const OWN: [Flag; OWN_COUNT] = [
    of("auto-generate-sql", Some('a'), Takes::Nothing, "generate table and statements"),
    switch("auto-generate-sql-add-autoincrement", "give the table a serial id"),
    value("auto-generate-sql-execute-number", "queries per client"),
    switch("auto-generate-sql-guid-primary", "give the table a UUID as primary key"),
    value("auto-generate-sql-load-type", "read, key, write, update or mixed (mixed)"),
    value("auto-generate-sql-secondary-indexes", "unique UUID columns (0)"),
    value("auto-generate-sql-unique-query-number", "distinct statements, less one (10)"),
    value("auto-generate-sql-unique-write-number", "distinct initial rows (10)"),
    value("auto-generate-sql-write-number", "initial rows, plus one (100)"),
    value("commit", "COMMIT after this many statements, autocommit off"),
    of("concurrency", Some('c'), Takes::Value, "clients, or a list: 10,50 (1)"),
    value("create", "statements, or a file of them, that make the tables for --query"),
    value("create-schema", "schema (mysqlslap)"),
    of("csv", None, Takes::Joined, "mysqlslap's CSV line, to the terminal or appended to a file"),
    of("delimiter", Some('F'), Takes::Value, "between statements of --create, --query, .. (newline)"),
    of("engine", Some('e'), Takes::Value, "storage engine, or a list"),
    switch("force", "drop an existing schema though it is not ours"),
    of("help", Some('?'), Takes::Nothing, "this text"),
    of("iterations", Some('i'), Takes::Value, "repetitions, each on fresh tables (1)"),
    switch("no-drop", "leave the schema"),
    of("number-char-cols", Some('x'), Takes::Value, "string columns, 3:1 with an index each (1)"),
    of("number-int-cols", Some('y'), Takes::Value, "integer columns, 3:1 with an index each (1)"),
    value("number-of-queries", "queries of all clients together"),
    switch("only-print", "print the statements, touch no server"),
    value("post-query", "statements, or a file, run after the load"),
    value("pre-query", "statements, or a file, run before the load"),
    of("query", Some('q'), Takes::Value, "statements, or a file of them, instead of --auto-generate-sql"),
    of("silent", Some('s'), Takes::Nothing, "print nothing"),
    of("verbose", Some('v'), Takes::Nothing, "say what is done"),
    of("version", Some('V'), Takes::Nothing, "version"),
    // Beyond mysqlslap.
    value("phase", "all; prepare: only make tables; run: only the load; cleanup (all)"),
    value("warmup", "milliseconds of the same load before measuring (0)"),
    value("duration", "milliseconds, instead of a number of queries"),
    value("seed", "of all random choices (1)"),
    value("interval", "milliseconds per line of series and log (1000)"),
    value("json", "write the result here"),
    value("series", "write a CSV line per interval here"),
    value("hlog", "write an HdrHistogram log here, a tag per operation"),
    value("max-errors", "refused statements after which the run is given up (0)"),
    // Accepted, as nothing depends on them here.
    ignored("character-sets-dir", Takes::Value, "no character sets are loaded"),
    short('#', ignored("debug", Takes::Joined, "there is no debug trace")),
    ignored("debug-check", Takes::Nothing, "there is no debug trace"),
    short('T', ignored("debug-info", Takes::Nothing, "there is no debug trace")),
    ignored("default-auth", Takes::Value, "the server names the plugin"),
    ignored("default-character-set", Takes::Value, "the generated SQL is ASCII"),
    ignored("plugin-dir", Takes::Value, "plugins are built in"),
    ignored("print-defaults", Takes::Nothing, "see --help"),
    ignored("skip-ssl", Takes::Nothing, "connections are plain anyway"),
    ignored("ssl-mode", Takes::Value, "connections are plain"),
    ignored("wait", Takes::Joined, "see --connect-timeout"),
    ignored("skip-secure-auth", Takes::Nothing, "old passwords are never used"),
    ignored("secure-auth", Takes::Nothing, "old passwords are never used"),
    // Not here.
    short('C', refused("compress", Takes::Nothing, "compression is not supported")),
    refused("detach", Takes::Value, "reconnecting within a run is not supported yet"),
    refused("pipe", Takes::Nothing, "named pipes exist on Windows only: use --socket"),
    refused("post-system", Takes::Value, "run the command after this one instead"),
    refused("pre-system", Takes::Value, "run the command before this one instead"),
    refused("shared-memory-base-name", Takes::Value, "exists on Windows only: use --socket"),
    refused("ssl", Takes::Nothing, NO_TLS),
    refused("ssl-ca", Takes::Value, NO_TLS),
    refused("ssl-capath", Takes::Value, NO_TLS),
    refused("ssl-cert", Takes::Value, NO_TLS),
    refused("ssl-cipher", Takes::Value, NO_TLS),
    refused("ssl-key", Takes::Value, NO_TLS),
    refused("ssl-verify-server-cert", Takes::Nothing, NO_TLS),
    refused("tls-version", Takes::Value, NO_TLS),
];

/// All flags of the verb.
pub static TABLE: [Flag; OWN_COUNT + LOGIN_COUNT] = joined();

const OWN_COUNT: usize = 66;
const LOGIN_COUNT: usize = login::FLAGS.len();

const fn joined() -> [Flag; OWN_COUNT + LOGIN_COUNT] {
    let mut all = [login::FLAGS[0]; OWN_COUNT + LOGIN_COUNT];
    let mut at = 0;
    while at < OWN_COUNT {
        all[at] = OWN[at];
        at += 1;
    }
    while at < OWN_COUNT + LOGIN_COUNT {
        all[at] = login::FLAGS[at - OWN_COUNT];
        at += 1;
    }
    all
}
