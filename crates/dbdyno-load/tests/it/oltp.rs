//! `oltp` and `bulk` against a real MariaDB, and what `oltp` says against what a real sysbench says with the same
//! flags, by the server's general log.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Server, expect, json, text, wait_until};

/// Runs a line to its end and gives the result of its only run.
fn measured(server: &Server, line: &str) -> Value {
    let path = server.file("r.json");
    expect(server.load(line).arg("--json").arg(&path), 0);
    json(&path)["runs"][0].clone()
}

/// What the server's refusal says.
fn refused(server: &Server, line: &str) -> String {
    text(&expect(&mut server.load(line), 2).stderr)
}

fn count(run: &Value, kind: &str) -> u64 {
    run["operations"][kind]["count"].as_u64().unwrap_or(0)
}

#[test]
fn the_server_counts_what_we_count() {
    let Some(server) = Server::start() else { return };
    let names = ["Com_select", "Com_update", "Com_delete", "Com_insert", "Com_begin", "Com_commit"];
    let data = "--tables=3 --table-size=2000";
    expect(&mut server.load(&format!("oltp read_write prepare {data} --threads=2")), 0);
    // Of the checks before a run.
    let looks = 2 + 1 + 3 + 1;
    for mode in ["auto", "disable"] {
        for (load, queries, counts_per_event) in [
            ("oltp_read_only", 16, [14, 0, 0, 0, 1, 1]),
            ("read_write", 20, [14, 2, 1, 1, 1, 1]),
            ("write_only", 6, [0, 2, 1, 1, 1, 1]),
            ("point_select", 1, [1, 0, 0, 0, 0, 0]),
            ("update_index", 1, [0, 1, 0, 0, 0, 0]),
            ("update_non_index", 1, [0, 1, 0, 0, 0, 0]),
            ("select_random_points", 1, [1, 0, 0, 0, 0, 0]),
            ("select_random_ranges", 1, [1, 0, 0, 0, 0, 0]),
            ("delete", 1, [0, 0, 1, 0, 0, 0]),
            ("insert", 1, [0, 0, 0, 1, 0, 0]),
        ] {
            let before = server.counters(names);
            let run = measured(&server, &format!("oltp {load} run {data} --events=100 --db-ps-mode={mode}"));
            let after = server.counters(names);
            let counts: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
            assert_eq!(run["events"], 100, "{load} {mode}");
            assert_eq!(run["queries"], 100 * queries, "{load} {mode}");
            assert_eq!(
                counts[1..],
                counts_per_event[1..].iter().map(|count| 100 * count).collect::<Vec<u64>>(),
                "{load} {mode}"
            );
            assert!((counts[0] - 100 * counts_per_event[0]) <= looks, "{load} {mode}: {counts:?}");
            assert_eq!(run["rows"], 100 * counts_per_event[3], "{load} {mode}");
            assert_eq!(count(&run, "begin") + count(&run, "commit"), 200 * counts_per_event[4], "{load} {mode}");
        }
    }
    expect(&mut server.load(&format!("oltp insert cleanup {data}")), 0);
    assert_eq!(server.sql("SHOW TABLES FROM sbtest").trim(), "");
}

#[test]
fn deadlocks_lose_no_statement_and_end_no_run() {
    let Some(server) = Server::start() else { return };
    let data = "--tables=1 --table-size=50 --rand-type=uniform";
    expect(&mut server.load(&format!("oltp write_only prepare {data}")), 0);
    let names = ["Com_update", "Com_delete", "Com_insert", "Com_begin", "Com_commit"];
    let before = server.counters(names);
    let run = measured(&server, &format!("oltp write_only run {data} --threads=16 --events=1000 --index-updates=5"));
    let statements: u64 = server.counters(names).iter().zip(before).map(|(after, before)| after - before).sum();
    let errors = run["errors"].as_array().unwrap();
    let refused: u64 = errors.iter().map(|error| error["count"].as_u64().unwrap()).sum();
    assert!(errors.iter().all(|error| error["code"] == 1213) && refused > 0, "{errors:?}");
    assert_eq!(run["events"], 1000);
    assert_eq!(count(&run, "commit"), 1000);
    assert_eq!(run["queries"].as_u64().unwrap() + refused, statements);
}

#[test]
fn tables_are_filled_alike_over_any_number_of_connections() {
    let Some(server) = Server::start() else { return };
    let sums = |schema: &str| {
        let tables = [1, 2, 3].map(|n| format!("{schema}.sbtest{n}")).join(", ");
        server.sql(&format!("CHECKSUM TABLE {tables}")).replace(schema, "")
    };
    for (schema, threads) in [("one", 1), ("three", 3), ("nine", 9)] {
        let line = format!("oltp read_only prepare --tables=3 --table-size=5000 --schema={schema} --threads={threads}");
        expect(&mut server.load(&line), 0);
    }
    assert_eq!(sums("one"), sums("three"));
    assert_eq!(sums("one"), sums("nine"));
    let shape = "SELECT COUNT(*), MIN(id), MAX(id), MIN(k) > 0, MAX(k) <= 5000, MIN(c REGEXP '^([0-9]{11}-){9}[0-9]{11}$'), \
                 MIN(pad REGEXP '^([0-9]{11}-){4}[0-9]{11}$'), COUNT(DISTINCT c), COUNT(DISTINCT pad) FROM one.sbtest2";
    assert_eq!(server.sql(shape).trim(), "5000\t1\t5000\t1\t1\t1\t1\t5000\t5000");
    assert!(server.sql("SHOW CREATE TABLE one.sbtest3").contains("KEY `k_3` (`k`)"));
}

#[test]
fn what_does_not_fit_is_refused_with_the_remedy() {
    let Some(server) = Server::start() else { return };
    let data = "--tables=2 --table-size=1000";
    assert!(refused(&server, &format!("oltp read_only run {data}")).contains("there is no schema sbtest: prepare it"));
    expect(&mut server.load(&format!("oltp read_only prepare {data}")), 0);
    for (line, expected) in [
        (format!("oltp read_only prepare {data}"), "sbtest1 exists: drop it with the same flags and `cleanup`"),
        ("oltp read_only run --tables=3 --table-size=1000".into(), "no table sbtest.sbtest3: prepare it first"),
        ("oltp read_only run --tables=2 --table-size=9000".into(), "end at 1000: lower --table-size=9000"),
        (format!("oltp read_only run {data} --threads=2000"), "max_prepared_stmt_count is 16382"),
        (format!("bulk run {data}"), "sbtest1 exists"),
        (format!("bulk prepare {data} --schema=new --batch-bytes=2048 --rand-type=no"), "--rand-type=no: use one of"),
    ] {
        let text = refused(&server, &line);
        assert!(text.contains(expected), "{line}: {text}");
    }
    let wrong_engine = format!("oltp read_only run {data} --mysql-storage-engine=MyISAM");
    assert!(text(&expect(&mut server.load(&wrong_engine), 1).stderr).contains("in InnoDB instead of MyISAM"));
    server.sql("CREATE TABLE sbtest.sbtest3 (a int)");
    assert!(refused(&server, "oltp read_only cleanup --tables=3").contains("not one of sysbench's tables"));
    assert_eq!(server.sql("SHOW TABLES FROM sbtest").lines().count(), 3, "none was dropped");
    expect(&mut server.load("oltp read_only cleanup --tables=2"), 0);
    assert_eq!(server.sql("SHOW TABLES FROM sbtest").trim(), "sbtest3");
}

#[test]
fn a_row_that_is_locked_holds_its_event_up_and_does_not_end_the_run() {
    let Some(server) = Server::start() else { return };
    expect(&mut server.load("oltp update_index prepare --table-size=1"), 0);
    server.sql("SET GLOBAL innodb_lock_wait_timeout = 1");
    let mut holder = Command::new("mariadb");
    holder.args(["--no-defaults", "-uroot", "-e"]);
    holder.arg("BEGIN; UPDATE sbtest.sbtest1 SET k = 0; SELECT SLEEP(6); COMMIT").arg("-S").arg(server.socket());
    let mut holder = holder.stdout(Stdio::null()).spawn().unwrap();
    let at_work = "SELECT INFO FROM information_schema.PROCESSLIST";
    wait_until("the lock", || server.sql(at_work).contains("SELECT SLEEP"));
    let run = measured(&server, "oltp update_index run --table-size=1 --events=3 --time=30");
    assert!(holder.wait().unwrap().success());
    assert_eq!((&run["events"], &run["queries"]), (&3.into(), &3.into()));
    let error = &run["errors"][0];
    assert_eq!((&error["code"], &error["operation"]), (&1205.into(), &"update_index".into()));
    assert!(error["count"].as_u64().unwrap() >= 1);
    // The event that was refused runs on until it succeeds.
    assert!(run["latency_ns"]["max"].as_u64().unwrap() > 1_500_000_000, "{run}");
}

#[test]
fn ids_of_inserts_never_meet() {
    let Some(server) = Server::start() else { return };
    let data = "--tables=2 --auto-inc=off";
    expect(&mut server.load(&format!("oltp insert prepare {data}")), 0);
    assert_eq!(server.sql("SELECT COUNT(*) FROM sbtest.sbtest1").trim(), "0");
    let line = format!("oltp insert run {data} --threads=3,5 --io-threads=2 --events=500 --warmup=100ms");
    for _ in 0..2 {
        expect(&mut server.load(&line), 0);
    }
    let rows = server.sql(
        "SELECT SUM(n) FROM (SELECT COUNT(*) n FROM sbtest.sbtest1 UNION ALL SELECT COUNT(*) FROM sbtest.sbtest2) t",
    );
    assert!(rows.trim().parse::<u64>().unwrap() >= 2000, "{rows}");
}

#[test]
fn connections_are_renewed_as_often_as_asked() {
    let Some(server) = Server::start() else { return };
    expect(&mut server.load("oltp point_select prepare --table-size=100"), 0);
    let before = server.counter("Connections");
    let run = measured(&server, "oltp point_select run --table-size=100 --events=100 --threads=2 --reconnect-every=10");
    assert_eq!(run["events"], 100);
    let renewed = run["reconnects"].as_u64().unwrap();
    assert!((8..=10).contains(&renewed), "{renewed}");
    // Ours: two clients and what looks at the tables; the counting itself connects as well.
    assert_eq!(server.counter("Connections") - before, renewed + 2 + 1 + 1);
}

#[test]
fn bulk_makes_what_prepare_makes_and_counts_each_statement_once() {
    let Some(server) = Server::start() else { return };
    let data = "--tables=3 --table-size=10000";
    expect(&mut server.load(&format!("oltp read_only prepare {data} --schema=prepared")), 0);
    expect(&mut server.load(&format!("bulk prepare {data}")), 0);
    let run = measured(&server, &format!("bulk run {data} --threads=1"));
    assert_eq!((&run["rows"], &run["engine"]), (&30_000.into(), &"InnoDB".into()));
    assert_eq!((count(&run, "create_table"), count(&run, "create_index")), (3, 3));
    assert_eq!((&run["queries"], &run["events"]), (&count(&run, "insert").into(), &run["queries"]));
    let phases = run["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["create", "load", "index"]);
    // One client is never at two statements.
    let total = ["create_table", "insert", "create_index"].map(|kind| {
        let operation = &run["operations"][kind];
        operation["count"].as_f64().unwrap() * operation["mean"].as_f64().unwrap()
    });
    let seconds = total.iter().sum::<f64>() / 1e9;
    assert!(seconds <= run["seconds_real"].as_f64().unwrap() * 1.01, "{run}");
    for number in 1..=3 {
        let sum = |schema| server.sql(&format!("CHECKSUM TABLE {schema}.sbtest{number}"));
        let [ours, theirs] =
            ["sbtest", "prepared"].map(|schema| sum(schema).split('\t').next_back().map(str::to_owned));
        assert_eq!(ours, theirs);
    }
    assert!(server.sql("SHOW CREATE TABLE sbtest.sbtest3").contains("KEY `k_3` (`k`)"));
    expect(&mut server.load(&format!("bulk cleanup {data}")), 0);
    let run = measured(&server, &format!("bulk {data} --threads=4 --io-threads=2"));
    assert_eq!(run["rows"], 30_000);
    assert_eq!(server.sql("SHOW TABLES FROM sbtest").trim(), "");
}

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

/// The statements that a command sends to the server, by `Query`, `Execute` or `Prepare`, and its output.
fn record_statements(server: &Server, command: &mut Command) -> (Vec<String>, String) {
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
            let (theirs, printed) = record_statements(&server, &mut sysbench(&server, &flags));
            let (ours, _) = record_statements(&server, server.load(&format!("oltp {flags}")).arg("--json").arg(&path));
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
            let (records, _) = record_statements(&server, &mut prepare);
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
        let theirs = ids(&record_statements(&server, &mut sysbench(&server, &flags)).0);
        let ours = ids(&record_statements(&server, &mut server.load(&format!("oltp {flags}"))).0);
        assert_eq!((theirs.len(), ours.len()), (EVENTS, EVENTS));
        // Exceeded once in a million times if both are drawn alike.
        let limit = (2e6_f64.ln() / EVENTS as f64).sqrt();
        let distance = distance(theirs, ours);
        assert!(distance < limit, "{choice}: {distance} >= {limit}");
    }
}
