//! The flags of `oltp`, under sysbench's names.

use crate::distribution::FLAGS as RANDOM;
use crate::error::Error;
use crate::flags::{Flag, Takes, joined};
use crate::values::Values;

use super::tables::switch;

/// The flags.
pub const FLAGS: &[Flag] =
    &joined::<{ EVENT.len() + TABLES.len() + RANDOM.len() + SYSBENCH.len() }>(&[EVENT, TABLES, RANDOM, SYSBENCH]);

/// What shapes an event.
const EVENT: &[Flag] = &[
    Flag::value("point-selects", "SELECTs of one row per event"),
    Flag::joined("range-selects", "on or off: all range SELECTs"),
    Flag::value("range-size", "rows of a range"),
    Flag::value("simple-ranges", "range SELECTs per event"),
    Flag::value("sum-ranges", "SELECT SUM() per event"),
    Flag::value("order-ranges", "SELECT ... ORDER BY per event"),
    Flag::value("distinct-ranges", "SELECT DISTINCT per event"),
    Flag::value("index-updates", "UPDATEs of the indexed column per event"),
    Flag::value("non-index-updates", "UPDATEs of another column per event"),
    Flag::value("delete-inserts", "DELETE and INSERT of the same row per event"),
    Flag::value("random-points", "of select_random_points: values in its IN (...)"),
    Flag::value("number-of-ranges", "of select_random_ranges: ranges of its statement"),
    Flag::value("delta", "of select_random_ranges: how far a range goes from its first value"),
    Flag::joined("skip-trx", "on or off: no BEGIN and COMMIT"),
    Flag::value("db-ps-mode", "prepared statements: auto or disable"),
    Flag::value("reconnect-every", "a client takes a new connection after so many events; 0: never"),
];

/// What shapes the tables.
pub const TABLES: &[Flag] = &[
    Flag::value("tables", "tables sbtest1, sbtest2, ..."),
    Flag::value("table-size", "rows per table"),
    Flag::joined("auto-inc", "on or off: the server makes ids"),
    Flag::joined("secondary", "on or off: a secondary index on id instead of the primary key"),
    Flag::joined("create-secondary", "on or off: an index on k, made after the rows"),
    Flag::value("schema", "schema of the tables"),
    Flag::value("engine", "storage engine of the tables (innodb)").short('e'),
    Flag::value("mysql-table-options", "what else CREATE TABLE ends in"),
];

/// sysbench's names for what every verb has, and its flags that change nothing here or cannot be honoured.
pub const SYSBENCH: &[Flag] = &[
    Flag::value("threads", "").same_as("clients"),
    Flag::value("num-threads", "").same_as("clients"),
    Flag::value("time", "").same_as("duration"),
    Flag::value("max-time", "").same_as("duration"),
    Flag::value("max-requests", "").same_as("events"),
    Flag::value("tx-rate", "").same_as("rate"),
    Flag::value("warmup-time", "").same_as("warmup"),
    Flag::value("rand-seed", "").same_as("seed"),
    Flag::value("mysql-ignore-errors", "").same_as("ignore-errors"),
    Flag::value("mysql-db", "").same_as("schema"),
    Flag::value("mysql-storage-engine", "").same_as("engine"),
    Flag::value("create-table-options", "").same_as("mysql-table-options"),
    Flag::value("mysql-host", "").same_as("host"),
    Flag::value("mysql-port", "").same_as("port"),
    Flag::value("mysql-socket", "").same_as("socket"),
    Flag::value("mysql-user", "").same_as("user"),
    Flag::value("mysql-password", "").same_as("password"),
    Flag::joined("mysql-ssl", "").same_as("ssl"),
    Flag::value("mysql-ssl-ca", "").same_as("ssl-ca"),
    Flag::value("mysql-ssl-cert", "").same_as("ssl-cert"),
    Flag::value("mysql-ssl-key", "").same_as("ssl-key"),
    Flag::joined("mysql-compression", "").same_as("compress"),
    Flag::value("mysql-compression-algorithms", "").same_as("compression-algorithms"),
    // Whether these can be honoured depends on their values: refuse_unsupported.
    Flag::value("db-driver", ""),
    Flag::value("forced-shutdown", ""),
    Flag::joined("validate", ""),
    Flag::joined("debug", ""),
    Flag::joined("db-debug", ""),
    Flag::joined("mysql-debug", ""),
    Flag::joined("mysql-dry-run", ""),
    Flag::ignored("percentile", Takes::Value, "p50, p95, p99 and max are shown, and --hlog has them all"),
    Flag::ignored("histogram", Takes::Joined, "--hlog writes one"),
    Flag::ignored("verbosity", Takes::Value, "see --silent and --verbose"),
    Flag::ignored("thread-stack-size", Takes::Value, "clients are no threads here"),
    Flag::refused("report-checkpoints", Takes::Value, "there are no checkpoints: --series has a line per interval"),
    Flag::refused("config-file", Takes::Value, "give the flags themselves"),
    Flag::refused("mysql-ssl-cipher", Takes::Value, "ciphers cannot be chosen"),
    Flag::refused("pgsql-host", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-port", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-user", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-password", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-db", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-variant", Takes::Value, NO_PGSQL),
];

const NO_PGSQL: &str = "only MySQL and MariaDB are spoken to";

/// Switches of sysbench that may only be off, and why.
const ONLY_OFF: [(&str, &str); 5] = [
    ("validate", "results are not validated"),
    ("debug", "there is no debug trace"),
    ("db-debug", "there is no debug trace"),
    ("mysql-debug", "there is no debug trace"),
    ("mysql-dry-run", "without a server there is nothing to measure"),
];

/// Refuses values of sysbench's flags that cannot be honoured.
///
/// # Errors
/// There is one; says why.
pub fn refuse_unsupported(values: &Values<'_>) -> Result<(), Error> {
    for (name, why) in ONLY_OFF {
        if switch(values, name, false)? {
            return Err(Error::Usage(format!("--{name}=on: {why}; leave it out")));
        }
    }
    match values.text("db-driver") {
        None | Some("mysql") => {}
        Some(other) => return Err(Error::Usage(format!("--db-driver={other}: {NO_PGSQL}"))),
    }
    match values.text("forced-shutdown") {
        None | Some("off") => Ok(()),
        Some(other) => Err(Error::Usage(format!(
            "--forced-shutdown={other}: a run ends on time; a server that does not answer is given up after --stall-timeout"
        ))),
    }
}
