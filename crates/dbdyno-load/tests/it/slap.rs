//! `slap` against a real MariaDB.
use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Server, expect, json, slap, text, wait_until, waited_for};
use rustix::process::{Pid, Signal, kill_process};

const KEY: &str = "--auto-generate-sql-add-autoincrement";
const GUID: &str = "--auto-generate-sql-guid-primary --auto-generate-sql-secondary-indexes=2";

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the end; gives exit code and what was said.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let (code, said, _) = waited_for(&mut child);
    (code, said)
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
        let (code, said) = ended(child);
        assert_eq!(code, Some(1));
        let socket = server.socket();
        assert!(said.contains(&format!("lost the connection to socket {}", socket.display())), "{said}");
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
        let (code, said) = ended(child);
        signal(&server.process, Signal::CONT);
        assert_eq!(code, Some(1));
        assert!(said.contains("answered no client for 1 s"), "{said}");
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
        let (code, said) = ended(child);
        assert_eq!(code, Some(130), "{said}");
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
        let (code, said) = ended(child);
        assert_eq!(code, Some(130), "{said}");
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
    sleep(Duration::from_millis(700));
    let arguments = text(&fs::read(format!("/proc/{}/cmdline", child.id())).unwrap());
    assert!(arguments.contains("slap") && !arguments.contains("secret"), "{arguments}");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(!fs::read_to_string(&path).unwrap().contains("secret"));
    let mut wrong = slap();
    wrong.args(["--no-defaults", "-uu", "-a", "-S"]).arg(server.socket()).env("MYSQL_PWD", "no");
    let said = text(&expect(&mut wrong, 1).stderr);
    assert!(said.contains("1045") && said.contains("check --user, --password"), "{said}");
    assert_eq!(said.lines().count(), 1);
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
    let said = text(&expect(&mut server.slap("-a -c 1200"), 1).stderr);
    assert!(said.contains("1040") && said.contains("max_connections"), "{said}");
}

#[test]
fn without_a_server_one_line_tells_why() {
    let mut command = slap();
    let said = text(&expect(command.args(["--no-defaults", "-a", "-S/nonexistent/s"]), 1).stderr);
    assert!(said.contains("/nonexistent/s") && said.contains("errno 2"), "{said}");
    assert_eq!(said.lines().count(), 1);
    let said = text(&expect(slap().arg("--no-defaults"), 2).stderr);
    assert!(said.contains("--auto-generate-sql"), "{said}");
}
