//! What `oltp` says against what a real sysbench says with the same flags, by the server's general log.
use std::fs;
use std::process::Command;

use crate::common::{Server, expect, json, text};

const DATA: &str = "--tables=2 --table-size=1000";

/// Loads with more than their defaults.
const LINES: [&str; 11] = [
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_delete",
    "oltp_insert",
    "oltp_read_write --skip-trx=on --range-selects=off --point-selects=3 --delete-inserts=2 --index-updates=0",
    "oltp_read_only --range-size=7 --sum-ranges=3 --order-ranges=0 --distinct-ranges=2",
    "oltp_update_index --index-updates=4",
];

/// Statements of ours that look at tables or make ready, which sysbench does not say.
const LOOKS: [&str; 8] =
    ["information_schema", "MAX(id)", "@@", "SET SESSION", "SET GLOBAL", "USE ", "SCHEMA", "dbdyno"];

/// A server with a schema, and a sysbench; `None` where one is missing.
fn ready() -> Option<Server> {
    if Command::new("sysbench").arg("--version").output().is_err() {
        eprintln!("skipped: sysbench is not installed");
        return None;
    }
    let server = Server::start()?;
    server.sql("CREATE SCHEMA sbtest");
    Some(server)
}

fn sysbench(server: &Server, line: &str) -> Command {
    let mut command = Command::new("sysbench");
    command.args(line.split_whitespace()).arg("--mysql-user=root");
    command.arg(format!("--mysql-socket={}", server.socket().display()));
    command
}

/// What a command says to the server, `Query`, `Execute` and `Prepare` alike, and what it prints.
fn said(server: &Server, command: &mut Command) -> (Vec<String>, String) {
    let path = server.file("general");
    server.sql(&format!("SET GLOBAL general_log_file = '{}'; SET GLOBAL general_log = 1", path.display()));
    let printed = text(&expect(command, 0).stdout);
    server.sql("SET GLOBAL general_log = 0");
    let log = text(&fs::read(&path).unwrap());
    fs::remove_file(&path).unwrap();
    let mut records: Vec<String> = Vec::new();
    for line in log.lines() {
        let kinds = [" Query\t", " Execute\t", " Prepare\t"];
        let begins = kinds.iter().find_map(|kind| Some((*kind, line.split_once(kind)?.1)));
        match (begins, records.last_mut()) {
            // What our question whether BEGIN is prepared makes the server write.
            (Some((" Prepare\t", "BEGIN")), Some(last)) if last.contains("dbdyno") => {}
            (Some((kind, statement)), _) => records.push(format!("{}{statement}", kind.trim_start())),
            // The rest of a statement of many lines.
            (None, Some(last)) if !line.contains('\t') => last.extend(["\n", line]),
            _ => {}
        }
    }
    records.retain(|record| !LOOKS.iter().any(|look| record.contains(look)));
    (records, printed)
}

/// A statement with its numbers replaced: D for 11 digits, I for others, whatever their sign.
fn shape(statement: &str) -> String {
    let mut shape = String::new();
    let mut digits = 0;
    for c in statement.replace("(-", "(").chars().chain(std::iter::once('\n')) {
        if c.is_ascii_digit() {
            digits += 1;
            continue;
        }
        match std::mem::take(&mut digits) {
            0 => {}
            11 => shape.push('D'),
            _ => shape.push('I'),
        }
        shape.push(c);
    }
    shape
}

fn shapes(records: &[String], prepared: bool) -> Vec<String> {
    let chosen = records.iter().filter(|record| record.starts_with("Prepare\t") == prepared);
    chosen.map(|record| shape(record)).collect()
}

#[test]
fn the_same_flags_give_the_same_statements() {
    let Some(server) = ready() else { return };
    expect(&mut sysbench(&server, &format!("oltp_read_write prepare {DATA}")), 0);
    let path = server.file("r.json");
    for mode in ["auto", "disable"] {
        for line in LINES {
            let flags = format!("{line} run {DATA} --events=40 --db-ps-mode={mode}");
            let (theirs, printed) = said(&server, &mut sysbench(&server, &flags));
            let (ours, _) = said(&server, server.load(&format!("oltp {flags}")).arg("--json").arg(&path));
            assert!(theirs.len() >= 40, "{flags}");
            assert_eq!(shapes(&theirs, false), shapes(&ours, false), "{flags}");
            let sorted = |records| {
                let mut prepared = shapes(records, true);
                prepared.sort();
                prepared
            };
            // sysbench prepares also what it never says.
            if !line.contains("=0") {
                assert_eq!(sorted(&theirs), sorted(&ours), "{flags}");
            }
            let total = printed.lines().find_map(|line| line.trim().strip_prefix("total:")).unwrap();
            assert_eq!(json(&path)["runs"][0]["queries"].to_string(), total.trim(), "{flags}");
        }
    }
}

#[test]
fn tables_are_prepared_with_the_same_statements() {
    let Some(server) = ready() else { return };
    for flags in [
        "--tables=2 --table-size=6000",
        "--table-size=10 --auto-inc=off --secondary=on --create-secondary=off --mysql-storage-engine=myisam",
    ] {
        let mut logs = Vec::new();
        for ours in [false, true] {
            let commands = ["prepare", "cleanup"].map(|part| {
                let line = format!("oltp_read_write {part} {flags}");
                if ours { server.load(&format!("oltp {line}")) } else { sysbench(&server, &line) }
            });
            let [mut prepare, mut cleanup] = commands;
            let (records, _) = said(&server, &mut prepare);
            expect(&mut cleanup, 0);
            // Of INSERTs, the head and the first row, the number of rows and the last one.
            let shapes = records.iter().map(|record| shape(record));
            let written = shapes.map(|record| match record.split_once("VALUES(") {
                Some((head, rows)) => {
                    let rows: Vec<&str> = rows.split("),(").collect();
                    format!("{head} {} {} {}", rows[0], rows.len() / 100, rows[rows.len() - 1])
                }
                None => record,
            });
            logs.push(written.collect::<Vec<String>>());
        }
        assert!(logs[0].len() >= 2, "{flags}");
        assert_eq!(logs[0], logs[1], "{flags}");
    }
}

/// Ids of point selects in a general log.
fn ids(records: &[String]) -> Vec<f64> {
    records.iter().map(|record| record.rsplit_once('=').unwrap().1.parse().unwrap()).collect()
}

/// Greatest difference of the empirical distribution functions of two samples (Kolmogorov and Smirnov).
fn distance(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let share = |sample: &[f64], x: f64| sample.partition_point(|y| *y <= x) as f64 / sample.len() as f64;
    a.iter().chain(&b).map(|x| (share(&a, *x) - share(&b, *x)).abs()).fold(0.0, f64::max)
}

#[test]
fn ids_are_spread_as_sysbench_spreads_them() {
    // As many as tell each choice from the next, which differ by a tenth and more.
    const EVENTS: usize = 5_000;
    let Some(server) = ready() else { return };
    let data = "--table-size=20000";
    expect(&mut server.load(&format!("oltp point_select prepare {data}")), 0);
    for choice in [
        "--rand-type=special",
        "--rand-type=uniform",
        "--rand-type=gaussian --rand-spec-iter=5",
        "--rand-type=pareto",
        "--rand-type=special --rand-spec-pct=20 --rand-spec-res=40",
    ] {
        let flags = format!("oltp_point_select run {data} {choice} --events={EVENTS} --db-ps-mode=disable");
        let theirs = ids(&said(&server, &mut sysbench(&server, &flags)).0);
        let ours = ids(&said(&server, &mut server.load(&format!("oltp {flags}"))).0);
        assert_eq!((theirs.len(), ours.len()), (EVENTS, EVENTS));
        // Exceeded once in a million times if both are drawn alike.
        let limit = (2e6_f64.ln() / EVENTS as f64).sqrt();
        let distance = distance(theirs, ours);
        assert!(distance < limit, "{choice}: {distance} >= {limit}");
    }
}
