//! The SQL of `slap` on the wire against that of a real mysqlslap with the same flags, by the server's general log.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use common::{Server, expect};

const FLAGS: [&str; 7] = [
    "--auto-generate-sql-load-type=read -c 3 --number-of-queries=100",
    "--auto-generate-sql-load-type=key --auto-generate-sql-add-autoincrement -c 2 -i 2",
    "--auto-generate-sql-load-type=write --auto-generate-sql-guid-primary -x 3 -y 2 --number-of-queries=50",
    "--auto-generate-sql-load-type=update --auto-generate-sql-guid-primary --auto-generate-sql-secondary-indexes=2",
    "--auto-generate-sql-load-type=update --auto-generate-sql-execute-number=7 -c 2",
    "--auto-generate-sql-unique-query-number=4 --auto-generate-sql-add-autoincrement -c 2 --number-of-queries=30",
    "-c 3 --number-of-queries=50 --commit=4 -e innodb,myisam",
];

/// `text` with its literals replaced: S for strings, I for integers.
fn shape_of(text: &str) -> String {
    let mut without_strings = String::new();
    for (number, part) in text.split('\'').enumerate() {
        without_strings.push_str(if number % 2 == 0 { part } else { "S" });
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

/// How often each shape of statement is in `log`, but for the first connection, which prepares.
fn shapes(log: &str) -> BTreeMap<String, u32> {
    let lines: Vec<(u64, &str)> = log
        .lines()
        .filter_map(|line| {
            let (before, statement) = line.split_once(" Query\t")?;
            Some((before.split_whitespace().last()?.parse().ok()?, statement.trim_end_matches('\0')))
        })
        .collect();
    let first = lines.iter().map(|(connection, _)| *connection).min();
    let mut counts = BTreeMap::new();
    for (_, statement) in lines.iter().filter(|(connection, _)| Some(*connection) != first) {
        *counts.entry(shape_of(statement)).or_insert(0) += 1;
    }
    counts
}

#[test]
fn the_same_flags_give_the_same_statements() {
    if Command::new("mysqlslap").arg("--version").output().is_err() {
        eprintln!("skipped: mysqlslap is not installed");
        return;
    }
    let Some(server) = Server::start() else { return };
    for flags in FLAGS {
        let mut logs = Vec::new();
        for name in ["theirs", "ours"] {
            let mut command = server.slap(flags);
            if name == "theirs" {
                command = Command::new("mysqlslap");
                command.args(["--no-defaults", "-uroot", "-S"]).arg(server.socket());
                command.args(flags.split_whitespace());
            }
            let log = server.file(name);
            server.sql(&format!("SET GLOBAL general_log_file = '{}'; SET GLOBAL general_log = 1", log.display()));
            expect(command.arg("-a"), 0);
            server.sql("SET GLOBAL general_log = 0");
            logs.push(shapes(&String::from_utf8_lossy(&fs::read(&log).unwrap())));
            fs::remove_file(&log).unwrap();
        }
        assert!(!logs[0].is_empty(), "{flags}");
        assert_eq!(logs[0], logs[1], "{flags}");
    }
}
