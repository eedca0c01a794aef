//! The flags of `oltp`, under sysbench's names, and their checked values.

use super::event::{Counts, Event, Lists, Load};
use super::tables::{Tables, switch};
use crate::distribution::{Distribution, FLAGS as RANDOM};
use crate::error::Error;
use crate::flags::{Flag, Takes, joined};
use crate::names;
use crate::run_options::CLIENTS_MAX;
use crate::table_options;
use crate::values::Values;

/// All that shapes the load and its data.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as the flags")]
pub struct Options {
    pub load: Load,
    pub schema: String,
    pub tables: Tables,
    pub event: Event,
    pub lists: Lists,
    pub range_size: i64,
    pub distribution: Distribution,
    pub seed: u64,
    /// Statements are prepared on the server.
    pub prepared: bool,
    /// A client takes a new connection after so many events.
    pub reconnect_every: Option<u64>,
    /// Most connections of a run.
    pub clients: usize,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A load that is none, a value that is none, or flags of sysbench that cannot be honoured.
    pub fn read(values: &Values<'_>, load: &str) -> Result<Self, Error> {
        let load = Load::named(load).ok_or_else(|| Error::Usage(format!("there is no load {load}; see --help")))?;
        let counts = Counts::read(values)?;
        let event = Event::new(load, &counts);
        let event = event.ok_or_else(|| Error::Usage("all counts are 0: the clients have nothing to send".into()))?;
        let reconnect_every = values.number("reconnect-every", 0)?;
        refuse_unsupported(values)?;
        Ok(Self {
            load,
            schema: schema(values)?,
            tables: Tables::read(values)?,
            event,
            lists: counts.lists,
            range_size: i64::try_from(values.positive("range-size", 100)?).unwrap_or(i64::MAX),
            distribution: Distribution::parse(values, Distribution::SPECIAL)?,
            seed: values.number("seed", 1)?,
            prepared: values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?,
            reconnect_every: (reconnect_every > 0).then_some(reconnect_every),
            clients: values.list("clients", 1, 1, CLIENTS_MAX)?.into_iter().max().unwrap_or(1),
        })
    }

    /// Whether a run needs rows that are there before.
    pub fn needs_rows(&self) -> bool {
        self.load != Load::Insert
    }

    /// Whether new rows get ids of ours, which must not be taken.
    pub fn makes_ids(&self) -> bool {
        self.load == Load::Insert && !self.tables.auto_inc
    }
}

/// The schema of the tables.
///
/// # Errors
/// It is no name, or the server's own.
pub fn schema(values: &Values<'_>) -> Result<String, Error> {
    names::schema(values, "schema", "sbtest")
}

/// The flags.
pub const FLAGS: &[Flag] =
    &joined::<{ EVENT.len() + TABLES.len() + RANDOM.len() + SYSBENCH.len() }>(&[EVENT, TABLES, RANDOM, SYSBENCH]);

/// What shapes an event.
const EVENT: &[Flag] = &[
    Flag::value("point-selects", "SELECTs of one row per event"),
    Flag::joined("range-selects", "on or off: all range SELECTs"),
    Flag::value("range-size", "rows per range"),
    Flag::value("simple-ranges", "range SELECTs per event"),
    Flag::value("sum-ranges", "SELECT SUM() per event"),
    Flag::value("order-ranges", "SELECT ... ORDER BY per event"),
    Flag::value("distinct-ranges", "SELECT DISTINCT per event"),
    Flag::value("index-updates", "UPDATEs of the indexed column per event"),
    Flag::value("non-index-updates", "UPDATEs of another column per event"),
    Flag::value("delete-inserts", "DELETE and INSERT of the same row per event"),
    Flag::value("random-points", "select_random_points: values in its IN (...)"),
    Flag::value("number-of-ranges", "select_random_ranges: ranges per statement"),
    Flag::value("delta", "select_random_ranges: last value of a range less its first"),
    Flag::joined("skip-trx", "on or off: no BEGIN and COMMIT"),
    Flag::value("db-ps-mode", "prepared statements: auto or disable"),
    Flag::value("reconnect-every", "a client reconnects after this many events; 0: never"),
];

/// What shapes the tables.
pub const TABLES: &[Flag] = &[
    Flag::value("tables", "tables sbtest1, sbtest2, ..."),
    Flag::value("table-size", "rows per table"),
    Flag::joined("auto-inc", "on or off: the server assigns ids"),
    Flag::joined("secondary", "on or off: a secondary index on id instead of the primary key"),
    Flag::joined("create-secondary", "on or off: an index on k, made after the rows"),
    Flag::value("schema", "schema of the tables"),
    Flag::value("engine", "storage engine of the tables (innodb)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
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
    Flag::value("create-table-options", "").same_as(table_options::FLAG),
    Flag::value("mysql-table-options", "").same_as(table_options::FLAG),
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
    Flag::ignored("thread-stack-size", Takes::Value, "clients are not threads here"),
    Flag::ignored("thread-init-timeout", Takes::Value, "clients are not threads here: see --connect-timeout"),
    Flag::refused("report-checkpoints", Takes::Value, "there are no checkpoints: --series has a line per interval"),
    Flag::refused("config-file", Takes::Value, "give its flags on the command line"),
    Flag::refused("mysql-ssl-cipher", Takes::Value, "ciphers cannot be chosen"),
    Flag::refused("pgsql-host", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-port", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-user", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-password", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-db", Takes::Value, NO_PGSQL),
    Flag::refused("pgsql-variant", Takes::Value, NO_PGSQL),
];

const NO_PGSQL: &str = "only MySQL and MariaDB are supported";

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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::time::Duration;

    use super::*;
    use crate::flags::{Group, Table};
    use crate::run_options::{Loop, RunOptions};
    use crate::verb::{self, Request};

    static TABLE: Table = &[Group { title: "", flags: super::FLAGS }, crate::run_options::GROUP, crate::login::GROUP];

    /// The options of a line of sysbench's, `sysbench oltp_read_write ... run`, and the notes on it.
    fn parsed(line: &str) -> Result<(Options, RunOptions, Vec<String>), String> {
        let mut notes = Vec::new();
        let words = ["--no-defaults"].into_iter().chain(line.split_whitespace()).map(OsString::from);
        let read = || -> Result<_, Error> {
            let Request::Load(command) = verb::read("oltp", TABLE, 2, words, &mut notes)? else {
                panic!("{line}");
            };
            let values = command.values();
            Ok((Options::read(&values, &command.words()[0])?, RunOptions::read(&values)?))
        };
        read().map(|(options, run)| (options, run, notes)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_of_sysbench_is_understood() {
        let (options, run, notes) = parsed(
        "oltp_read_write --tables=8 --table_size=1000000 --threads=16 --time=300 --report-interval=1 --rate=100 \
         --db-driver=mysql --mysql-db=sb --mysql-user=me --mysql-socket=/s --db-ps-mode=disable --rand-type=uniform \
         --skip-trx --range_selects=off --mysql-ignore-errors=all --mysql-storage-engine=rocksdb --mysql-ssl=off --percentile=99 --histogram=on --rand-seed=7 run",
    )
    .unwrap();
        assert_eq!(options.load, Load::ReadWrite);
        assert_eq!((options.tables.count, options.tables.size, options.clients), (8, 1_000_000, 16));
        assert_eq!((options.schema.as_str(), options.prepared, options.seed), ("sb", false, 7));
        assert_eq!((options.distribution, options.tables.engine()), (Distribution::Uniform, "rocksdb"));
        assert_eq!(options.event.kinds, ["point_select", "update_index", "update_non_index", "delete", "insert"]);
        assert_eq!(run.duration, Some(Duration::from_secs(300)));
        assert_eq!(run.clients, [16]);
        assert!(matches!(run.loops[..], [Loop::Open { rate: 100.0, .. }]));
        assert!(run.ignore.has(1062));
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn defaults_are_sysbenchs() {
        let (options, ..) = parsed("read_only run").unwrap();
        assert_eq!((options.tables.count, options.tables.size, options.range_size), (1, 10_000, 100));
        assert_eq!((options.distribution, options.prepared), (Distribution::SPECIAL, true));
        assert_eq!(options.schema, "sbtest");
        assert_eq!(options.event.steps.len(), 16);
    }

    #[test]
    fn every_load_has_both_names() {
        for name in super::super::VERB.loads {
            let load = Load::named(name).unwrap();
            assert_eq!(<&str>::from(load), *name);
            assert_eq!(Load::named(&format!("oltp_{name}")), Some(load));
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_the_reason() {
        for (line, expected) in [
            ("read_only --db-driver=pgsql", "only MySQL and MariaDB"),
            ("read_only --pgsql-db=x", "only MySQL and MariaDB"),
            ("read_only --mysql-ssl-cipher=x", "cannot be chosen"),
            ("read_only --validate", "not validated"),
            ("read_only --forced-shutdown=5", "--stall-timeout"),
            ("read_only --report-checkpoints=5", "--series"),
            ("read_only --skip-trx=maybe", "use one of on, off"),
            ("read_only --db-ps-mode=off", "use one of auto, disable"),
            ("read_only --point-selects=100001", "0 to 100000"),
            ("read_only --point-selects=0 --range-selects=off --skip-trx", "nothing to send"),
            ("read_only --schema=mysql", "belongs to the server"),
            ("read_onyl", "there is no load read_onyl"),
        ] {
            let text = parsed(line).map(|_| ()).unwrap_err();
            assert!(text.contains(expected), "{line}: {text}");
        }
        parsed("read_only --db-driver=mysql --mysql-compression=off --validate=off --forced-shutdown=off").unwrap();
    }
}
