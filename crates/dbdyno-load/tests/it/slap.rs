//! `slap` against a real MariaDB, and its SQL on the wire against that of a real mysqlslap with the same flags, by the
//! server's general log.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Server, expect, json, slap, text, wait_until, waited_for};

const KEY: &str = "--auto-generate-sql-add-autoincrement";
const GUID: &str = "--auto-generate-sql-guid-primary --auto-generate-sql-secondary-indexes=2";

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the end; gives the exit code and the messages on stderr.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let (code, stderr, _) = waited_for(&mut child);
    (code, stderr)
}

fn counters(server: &Server) -> [u64; 3] {
    server.counters(["Com_insert", "Com_select", "Com_update"])
}

#[test]
fn the_server_counts_what_we_count() {
    let Some(server) = Server::start() else { return };
    for load in ["read", "key", "write", "update", "mixed"] {
        for key in ["", KEY, GUID] {
            if load == "key" && key.is_empty() {
                continue;
            }
            let flags = format!("-a --auto-generate-sql-load-type={load} {key} -x 2 -y 2:1");
            expect(&mut server.slap(&format!("{flags} --phase=prepare")), 0);
            let before = counters(&server);
            let path = server.file("r.json");
            let mut command = server.slap(&format!("{flags} --phase=run -c 4 --number-of-queries=203 --warmup=20ms"));
            expect(command.arg("--json").arg(&path), 0);
            let after = counters(&server);
            let run = &json(&path)["runs"][0];
            assert_eq!(run["queries"], 200, "{load} {key}");
            assert_eq!(run["queries_planned"], 200);
            assert_eq!(run["queries_dropped"], 3);
            let warm = run["warmup_queries"].as_u64().unwrap();
            assert!(warm > 0);
            let ours: u64 = [0, 1, 2].map(|n| after[n] - before[n]).iter().sum();
            // Two look-ups of the table, and one of the keys if they are drawn.
            let drawn = !key.is_empty() && ["key", "update", "mixed"].contains(&load);
            assert_eq!(ours, 200 + warm + 2 + u64::from(drawn), "{load} {key}");
            let count = |name: &str| run["operations"][name]["count"].as_u64().unwrap_or(0);
            match load {
                "write" => assert_eq!(count("insert"), 200),
                "update" => assert_eq!(count("update"), 200),
                // 50 of a list of 11 that begins and ends with an INSERT.
                "mixed" => assert_eq!((count("insert"), count("select")), (4 * 27, 4 * 23)),
                _ => assert_eq!(count("select"), 200),
            }
        }
    }
    expect(&mut server.slap("--phase=cleanup"), 0);
    assert!(!server.sql("SHOW DATABASES").contains("mysqlslap"));
}

#[test]
fn rows_are_those_of_mysqlslap() {
    let Some(server) = Server::start() else { return };
    let flags = format!("-a --phase=prepare {KEY} --auto-generate-sql-write-number=1001");
    expect(&mut server.slap(&flags), 0);
    let rows = server.sql("SELECT COUNT(*), COUNT(DISTINCT charcol1), MIN(id), MAX(id) FROM mysqlslap.t1");
    assert_eq!(rows.trim(), "1000\t10\t1\t1000");
}

#[test]
fn iterations_and_lists_give_a_run_each_and_leave_nothing() {
    let Some(server) = Server::start() else { return };
    let path = server.file("r.json");
    let (series, log) = (server.file("s.csv"), server.file("h.hlog"));
    let mut command = server.slap("-a -c 1,3 -i 2 -e innodb,myisam --number-of-queries=30 --csv --interval=5ms");
    command.arg("--json").arg(&path).arg("--series").arg(&series).arg("--hlog").arg(&log);
    let output = expect(&mut command, 0);
    assert_eq!(text(&output.stdout).lines().count(), 4);
    assert!(text(&output.stdout).starts_with("innodb,mixed,"));
    let runs = json(&path)["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 8);
    assert_eq!(
        (&runs[7]["engine"], &runs[7]["clients"], &runs[7]["iteration"]),
        (&"MyISAM".into(), &3.into(), &2.into())
    );
    let rows = fs::read_to_string(series).unwrap();
    let queries: u64 = rows.lines().skip(1).map(|row| row.split(',').nth(4).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(queries, 8 * 30);
    assert!(fs::read_to_string(log).unwrap().contains("Tag=insert,"));
    assert!(!server.sql("SHOW DATABASES").contains("mysqlslap"));
    expect(&mut server.slap("-a -i 2 --no-drop --commit=3"), 0);
    assert!(server.sql("SHOW DATABASES").contains("mysqlslap"));
}

#[test]
fn a_schema_that_was_lent_to_a_study_stays_too() {
    let Some(server) = Server::start() else { return };
    let mark = "CREATE TABLE lent.dbdyno_run (nothing INT) COMMENT = 'dbdyno run 1'";
    server.sql(&format!("CREATE SCHEMA lent CHARACTER SET latin1; {mark}"));
    for _ in 0..2 {
        expect(&mut server.slap("-a --create-schema=lent --phase=prepare"), 0);
        assert!(server.sql("SHOW TABLES FROM lent").contains("t1"));
    }
    expect(&mut server.slap("-a --create-schema=lent --number-of-queries=10 --force"), 0);
    assert_eq!(server.sql("SHOW TABLES FROM lent").trim(), "dbdyno_run");
    assert!(server.sql("SHOW CREATE SCHEMA lent").contains("latin1"));
    server.sql("CREATE TABLE lent.precious (a int)");
    expect(&mut server.slap("-a --create-schema=lent"), 2);
    server.sql("DROP TABLE lent.dbdyno_run; CREATE TABLE lent.dbdyno_run (a int)");
    expect(&mut server.slap("-a --create-schema=lent"), 2);
    assert!(server.sql("SHOW TABLES FROM lent").contains("precious"));
}

#[test]
fn somebody_elses_schema_stays() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE SCHEMA precious; CREATE TABLE precious.t1 (a int)");
    let output = expect(&mut server.slap("-a --create-schema=precious"), 2);
    assert!(text(&output.stderr).contains("was not made by dbdyno"));
    assert_eq!(server.sql("SHOW TABLES FROM precious").trim(), "t1");
    expect(&mut server.slap("-a --create-schema=precious --force"), 0);
}

#[test]
fn refused_statements_are_counted_by_code() {
    let Some(server) = Server::start() else { return };
    let path = server.file("r.json");
    let mut command = server.slap("-c 2 --number-of-queries=20 --max-errors=100 --delimiter=;");
    command.arg("--create=CREATE TABLE t (a int primary key);INSERT INTO t VALUES (1)");
    command.arg("--query=INSERT INTO t VALUES (1);SELECT 1").arg("--json").arg(&path);
    expect(&mut command, 1);
    let run = &json(&path)["runs"][0];
    assert_eq!((&run["queries"], &run["aborted"]), (&10.into(), &serde_json::Value::Null));
    let error = &run["errors"][0];
    assert_eq!((&error["code"], &error["count"]), (&1062.into(), &10.into()));
    assert_eq!((&error["sqlstate"], &error["operation"]), (&"23000".into(), &"insert".into()));
    let mut command = server.slap("--query=nonsense --create-schema=test");
    server.sql("CREATE SCHEMA test");
    let output = expect(&mut command, 1);
    assert!(text(&output.stderr).contains("1064"), "{}", text(&output.stderr));
}

#[test]
fn statements_and_replies_beyond_a_packet_work() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE SCHEMA test; CREATE TABLE test.t (a LONGTEXT)");
    let (query, path) = (server.file("q.sql"), server.file("r.json"));
    let long = "x".repeat(17_000_000);
    fs::write(&query, format!("SELECT LENGTH('{long}')\nSELECT REPEAT('y', 17000000)\nSELECT 1")).unwrap();
    for clients in ["1", "3"] {
        let mut command = server.slap("--create-schema=test --number-of-queries=18 -s");
        command.arg("-q").arg(&query).args(["-c", clients]).arg("--json").arg(&path);
        expect(&mut command, 0);
        assert_eq!(json(&path)["runs"][0]["queries"], 18);
    }
}

#[test]
fn a_killed_server_ends_the_run_with_what_was_measured() {
    for clients in ["1", "8"] {
        let Some(mut server) = Server::start() else { return };
        let path = server.file("r.json");
        let mut command = server.slap("-a --duration=600 --auto-generate-sql-load-type=write");
        command.args(["-c", clients]).arg("--json").arg(&path).stderr(Stdio::piped()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        server.answers(1000);
        server.process.kill().unwrap();
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(1));
        let socket = server.socket();
        assert!(stderr.contains(&format!("lost the connection to socket {}", socket.display())), "{stderr}");
        let run = &json(&path)["runs"][0];
        assert!(run["queries"].as_u64().unwrap() > 0);
        assert!(run["aborted"].as_str().unwrap().contains("lost the connection"));
    }
}

#[test]
fn a_frozen_server_is_not_waited_for_forever() {
    for clients in ["1", "4"] {
        let Some(server) = Server::start() else { return };
        let mut command = server.slap("-a --duration=600 --stall-timeout=1");
        command.args(["-c", clients]).stderr(Stdio::piped()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        server.answers(1000);
        signal(&server.process, Signal::STOP);
        let (code, stderr) = ended(child);
        signal(&server.process, Signal::CONT);
        assert_eq!(code, Some(1));
        assert!(stderr.contains("answered no client for 1 s"), "{stderr}");
    }
}

#[test]
fn an_interrupt_keeps_the_result_and_drops_the_schema() {
    let Some(server) = Server::start() else { return };
    let path = server.file("r.json");
    for clients in ["1", "4"] {
        let mut command = server.slap("-a --duration=600 --auto-generate-sql-load-type=write");
        command.args(["-c", clients]).arg("--json").arg(&path).stderr(Stdio::piped()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        server.answers(1000);
        signal(&child, Signal::INT);
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(130), "{stderr}");
        assert!(json(&path)["runs"][0]["queries"].as_u64().unwrap() > 0);
        assert!(!server.sql("SHOW DATABASES").contains("mysqlslap"));
    }
}

#[test]
fn an_interrupt_while_preparing_leaves_nothing() {
    let Some(server) = Server::start() else { return };
    for phase in ["all", "prepare"] {
        let mut command = server.slap("-a --auto-generate-sql-write-number=100000000");
        let child = command.args(["--phase", phase]).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the schema", || server.sql("SHOW DATABASES").contains("mysqlslap"));
        signal(&child, Signal::TERM);
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(130), "{stderr}");
        assert!(!server.sql("SHOW DATABASES").contains("mysqlslap"));
    }
}

#[test]
fn a_password_is_seen_nowhere() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE USER u IDENTIFIED BY 'Xq7secret'; GRANT ALL ON *.* TO u");
    let path = server.file("r.json");
    let mut command = slap();
    command.args(["--no-defaults", "-h127.0.0.1", "-uu", "-pXq7secret", "-a", "--duration=1.5"]);
    command.arg(format!("-P{}", server.port)).arg("--json").arg(&path).stdout(Stdio::null());
    let child = command.spawn().unwrap();
    let arguments = || text(&fs::read(format!("/proc/{}/cmdline", child.id())).unwrap());
    wait_until("a command line without the password", || {
        let arguments = arguments();
        arguments.contains("slap") && !arguments.contains("secret")
    });
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(!fs::read_to_string(&path).unwrap().contains("secret"));
    let mut wrong = slap();
    wrong.args(["--no-defaults", "-uu", "-a", "-S"]).arg(server.socket()).env("MYSQL_PWD", "no");
    let stderr = text(&expect(&mut wrong, 1).stderr);
    assert!(stderr.contains("1045") && stderr.contains("check --user, --password"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn an_account_may_use_ed25519() {
    let Some(server) = Server::start() else { return };
    if !server.accepts("INSTALL SONAME 'auth_ed25519'") {
        eprintln!("skipped: this server's plugin auth_ed25519 is not installed");
        return;
    }
    server.sql("CREATE USER e IDENTIFIED VIA ed25519 USING PASSWORD('pw'); GRANT ALL ON *.* TO e");
    let mut command = slap();
    command.args(["--no-defaults", "-ue", "-a", "-S"]).arg(server.socket());
    expect(command.env("MYSQL_PWD", "pw"), 0);
}

#[test]
fn a_thousand_clients_work() {
    let Some(server) = Server::start() else { return };
    let path = server.file("r.json");
    let mut command = server.slap("-a -c 1000 --number-of-queries=3000 --auto-generate-sql-load-type=write");
    expect(command.arg("--json").arg(&path), 0);
    assert_eq!(json(&path)["runs"][0]["queries"], 3000);
    let stderr = text(&expect(&mut server.slap("-a -c 1200"), 1).stderr);
    assert!(stderr.contains("1040") && stderr.contains("max_connections"), "{stderr}");
}

#[test]
fn without_a_server_one_line_tells_why() {
    let mut command = slap();
    let stderr = text(&expect(command.args(["--no-defaults", "-a", "-S/nonexistent/s"]), 1).stderr);
    assert!(stderr.contains("/nonexistent/s") && stderr.contains("errno 2"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
    let stderr = text(&expect(slap().arg("--no-defaults"), 2).stderr);
    assert!(stderr.contains("--auto-generate-sql"), "{stderr}");
}

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

/// The statements of each connection of `log`, as shapes in its order; the lists sorted. The first connection, which
/// prepares, is left out.
fn parse_connections(log: &str) -> Vec<Vec<String>> {
    let mut connections = BTreeMap::<u64, Vec<String>>::new();
    for line in log.lines() {
        if let Some((before, statement)) =
            line.split_once(" Query\t").filter(|(_, statement)| !statement.contains("general_log"))
        {
            let connection = before.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap();
            connections.entry(connection).or_default().push(shape_of(statement.trim_end_matches('\0')));
        }
    }
    let mut shapes: Vec<_> = connections.into_values().skip(1).collect();
    shapes.sort();
    shapes
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
    parse_connections(&String::from_utf8_lossy(&fs::read(Path::new(&log)).unwrap()))
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
            let all = |lists: Vec<Vec<String>>| {
                let mut all: Vec<String> = lists.concat();
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
