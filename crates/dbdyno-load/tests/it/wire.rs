//! The SQL of `slap` on the wire against that of a real mysqlslap with the same flags, by the server's general log.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Server, expect};

const KEYS: [&str; 3] = ["", "--auto-generate-sql-add-autoincrement", "--auto-generate-sql-guid-primary"];

const LOADS: [&str; 5] = ["read", "key", "write", "update", "mixed"];

/// Options that change what clients say, or how often, each tried with some load.
const OPTIONS: [&str; 12] = [
    "-c 3 --number-of-queries=100",
    "-c 2 -i 2",
    "-c 1,4 --number-of-queries=40",
    "-c 2 --auto-generate-sql-execute-number=7",
    "-c 2 --auto-generate-sql-unique-query-number=4 --number-of-queries=30",
    "-c 3 --auto-generate-sql-unique-query-number=25 --number-of-queries=30",
    // Two clients in transactions may meet in a deadlock, after which mysqlslap leaves its schema behind.
    "-c 1 --number-of-queries=50 --commit=4",
    "-c 1 --number-of-queries=21 --commit=10",
    "-x 3 -y 2 --number-of-queries=20",
    "-x 2:1 -y 3:1 --number-of-queries=20",
    "--auto-generate-sql-secondary-indexes=2 --number-of-queries=20",
    "-e innodb,myisam -c 2 --number-of-queries=20",
];

/// Options under which clients reconnect. mysqlslap counts anew with each pass through its list and forgets
/// AUTOCOMMIT=0; ours reconnects after as many statements as its manual says, and forgets nothing. So what is said is
/// compared, but not on which connection.
const DETACHING: [&str; 2] =
    ["-c 2 --number-of-queries=40 --detach=6", "-c 2 --number-of-queries=40 --detach=5 --commit=3"];

/// Options that shape the table alone.
const TABLES: [&str; 4] = [
    "",
    "-x 2:1 -y 3:1 --auto-generate-sql-secondary-indexes=2",
    "-x 0 -y 4",
    "-x 5 -y 0 --auto-generate-sql-write-number=21 --auto-generate-sql-unique-write-number=7",
];

/// A user's own statements.
const GIVEN: [&str; 3] = [
    "--create=CREATE TABLE t (a int);INSERT INTO t VALUES (1)|--query=SELECT a FROM t;INSERT INTO t VALUES (2)|-c 2|\
     --number-of-queries=10|--delimiter=;",
    "--query=SELECT 1;SELECT 'two';SELECT 3|--delimiter=;|-c 3|--pre-query=SELECT 0",
    "--query=SELECT 1|--pre-query=SELECT 'before'|--post-query=SELECT 'after'|--number-of-queries=6|-c 2|-i 2",
];

/// `text` with its literals replaced: I for integers, S for strings, with their length if that is more than a key's.
fn shape_of(text: &str) -> String {
    let mut without_strings = String::new();
    for (number, part) in text.split('\'').enumerate() {
        match part.len() {
            _ if number % 2 == 0 => without_strings.push_str(part),
            0..=36 => without_strings.push('S'),
            length => write!(without_strings, "S{length}").unwrap(),
        }
    }
    let mut shape = String::new();
    let mut in_word = false;
    for c in without_strings.chars() {
        let literal = c.is_ascii_digit() && !in_word;
        if !literal {
            shape.push(c);
        } else if !shape.ends_with('I') {
            shape.push('I');
        }
        in_word = c.is_ascii_alphabetic() || (in_word && c.is_ascii_digit());
    }
    shape
}

/// What each connection of `log` said, as shapes in its order; the lists sorted. The first connection, which prepares, is
/// left out.
fn said(log: &str) -> Vec<Vec<String>> {
    let mut connections = BTreeMap::<u64, Vec<String>>::new();
    for line in log.lines() {
        if let Some((before, statement)) = line.split_once(" Query\t").filter(|(_, said)| !said.contains("general_log"))
        {
            let connection = before.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap();
            connections.entry(connection).or_default().push(shape_of(statement.trim_end_matches('\0')));
        }
    }
    let mut said: Vec<_> = connections.into_values().skip(1).collect();
    said.sort();
    said
}

fn has_mysqlslap() -> bool {
    let has = Command::new("mysqlslap").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: mysqlslap is not installed");
    }
    has
}

fn mysqlslap(server: &Server) -> Command {
    let mut command = Command::new("mysqlslap");
    command.args(["--no-defaults", "-uroot", "-S"]).arg(server.socket());
    command
}

/// What the server logs of a command that ends well.
fn logged(server: &Server, command: &mut Command) -> Vec<Vec<String>> {
    let log = server.file("general");
    let _ = fs::remove_file(&log);
    server.sql(&format!("SET GLOBAL general_log_file = '{}'; SET GLOBAL general_log = 1", log.display()));
    expect(command, 0);
    server.sql("SET GLOBAL general_log = 0");
    said(&String::from_utf8_lossy(&fs::read(Path::new(&log)).unwrap()))
}

fn compare(server: &Server, flags: &[String]) {
    let theirs = logged(server, mysqlslap(server).args(flags));
    let ours = logged(server, server.slap("").args(flags));
    assert!(!theirs.is_empty(), "{flags:?}");
    assert_eq!(ours, theirs, "{flags:?}");
}

fn words(flags: &str) -> Vec<String> {
    flags.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_same_flags_give_the_same_statements() {
    let Some(server) = Server::start().filter(|_| has_mysqlslap()) else { return };
    for (number, options) in OPTIONS.iter().enumerate() {
        for (place, load) in LOADS.iter().enumerate() {
            // Not every pair with every key, but each key with each load and with each option.
            let key = KEYS[(number + place) % KEYS.len()];
            if *load != "key" || !key.is_empty() {
                compare(&server, &words(&format!("-a --auto-generate-sql-load-type={load} {key} {options}")));
            }
        }
    }
}

#[test]
fn clients_that_reconnect_say_the_same() {
    let Some(server) = Server::start().filter(|_| has_mysqlslap()) else { return };
    for options in DETACHING {
        for load in ["key", "write", "mixed"] {
            let flags = words(&format!("-a --auto-generate-sql-load-type={load} {} {options}", KEYS[1]));
            let all = |said: Vec<Vec<String>>| {
                let mut all: Vec<String> = said.concat();
                all.retain(|statement| !statement.contains("AUTOCOMMIT"));
                all.sort();
                all
            };
            let theirs = all(logged(&server, mysqlslap(&server).args(&flags)));
            assert!(!theirs.is_empty());
            assert_eq!(all(logged(&server, server.slap("").args(&flags))), theirs, "{flags:?}");
        }
    }
}

#[test]
fn a_users_own_statements_are_said_alike() {
    let Some(server) = Server::start().filter(|_| has_mysqlslap()) else { return };
    server.sql("CREATE SCHEMA own");
    for flags in GIVEN {
        let mut flags: Vec<String> = flags.split('|').map(str::to_owned).collect();
        if !flags.iter().any(|flag| flag.starts_with("--create=")) {
            flags.push("--create-schema=own".into());
        }
        compare(&server, &flags);
    }
}

#[test]
fn the_same_flags_give_the_same_table() {
    let Some(server) = Server::start().filter(|_| has_mysqlslap()) else { return };
    let rows = "SELECT COUNT(*), COUNT(DISTINCT CONCAT_WS(' ', ";
    for key in KEYS {
        for options in TABLES {
            let flags = words(&format!("-a --no-drop {key} {options}"));
            let mut tables = Vec::new();
            for command in [&mut mysqlslap(&server), &mut server.slap("--force")] {
                expect(command.args(&flags).args(["--auto-generate-sql-load-type=read", "-e", "innodb"]), 0);
                let columns = server.sql("SHOW COLUMNS FROM mysqlslap.t1");
                let names = columns.lines().map(|line| line.split('\t').next().unwrap());
                let own: Vec<&str> = names.filter(|name| name.contains("col")).collect();
                let definition = server.sql("SHOW CREATE TABLE mysqlslap.t1");
                let definition = definition.split(" COMMENT=").next().unwrap().trim_end().to_owned();
                tables.push((definition, server.sql(&format!("{rows}{})) FROM mysqlslap.t1", own.join(", ")))));
                server.sql("DROP SCHEMA mysqlslap");
            }
            assert_eq!(tables[1], tables[0], "{flags:?}");
        }
    }
}
