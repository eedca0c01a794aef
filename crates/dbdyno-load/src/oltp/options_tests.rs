use super::*;
use crate::command::{self, Asked};
use crate::flags::{Group, Table};
use crate::run_options::{Loop, RunOptions};
use std::ffi::OsString;
use std::time::Duration;

static TABLE: Table =
    &[Group { title: "", flags: super::super::flags::FLAGS }, crate::run_options::GROUP, crate::login::GROUP];

/// The options of a line of sysbench's, `sysbench oltp_read_write ... run`, and the notes on it.
fn parsed(line: &str) -> Result<(Options, RunOptions, Vec<String>), String> {
    let mut notes = Vec::new();
    let words = ["--no-defaults"].into_iter().chain(line.split_whitespace()).map(OsString::from);
    let read = || -> Result<_, Error> {
        let Asked::Load(command) = command::read("oltp", TABLE, 2, words, &mut notes)? else {
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
    for (line, said) in [
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
        ("read_onyl", "no load of oltp"),
    ] {
        let text = parsed(line).map(|_| ()).unwrap_err();
        assert!(text.contains(said), "{line}: {text}");
    }
    parsed("read_only --db-driver=mysql --mysql-compression=off --validate=off --forced-shutdown=off").unwrap();
}
