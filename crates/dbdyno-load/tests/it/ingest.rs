//! `ingest` against a real MariaDB.
use crate::common::client::{self, over_socket};
use crate::common::{Server, expect, json, text};
use dbdyno_load::error::Error;
use dbdyno_load::ingest::VERB;
use dbdyno_load::protocol::session::Session;
use dbdyno_load::values::Values;
use dbdyno_load::workload::Stepwise;
use serde_json::Value;

fn connected(server: &Server) -> Session {
    client::session(&over_socket(&server.socket()))
}

type Flags<'a> = &'a [(&'static str, &'a str)];

fn ingest(flags: Flags<'_>) -> Box<dyn Stepwise> {
    let values = Values::new(flags.iter().map(|(name, value)| (*name, Some(*value))).collect());
    (VERB.workload)(&values, "").unwrap()
}

fn check(session: &mut Session, flags: Flags<'_>) -> Result<Option<String>, String> {
    ingest(flags).check(session).map(|state| state.engine).map_err(|error| error.to_string())
}

const SUMS: &str = "SELECT COUNT(*), MAX(id), MIN(LEAST(b1, b2, b3)), MAX(GREATEST(b1, b2, b3)), MIN(c) = REPEAT('1', 40) \
                    FROM dbdyno_ingest.ingest";

#[test]
fn the_table_is_that_of_the_report() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    for (engine, rows) in [("MyISAM", "20000"), ("InnoDB", "0")] {
        let flags = [("engine", engine), ("initial-rows", rows), ("value-range", "9")];
        ingest(&flags).prepare(&mut session, &mut false).unwrap();
        assert_eq!(check(&mut session, &flags), Ok(Some(engine.into())));
        if rows != "0" {
            assert_eq!(server.sql(SUMS).trim(), "20000\t20000\t0\t9\t1");
        }
        ingest(&flags).cleanup(&mut session).unwrap();
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_ingest"));
    }
}

#[test]
fn the_procedure_commits_as_often_as_asked() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    ingest(&[("engine", "InnoDB")]).prepare(&mut session, &mut false).unwrap();
    for (call, commits) in [("100, 1000, 1", 0), ("100, 1000, 30", 4), ("100, 1000, 50", 2), ("100, 1000, 100", 1)] {
        let before = server.counters(["Com_commit", "Handler_commit"]);
        session.execute(&format!("CALL dbdyno_ingest.ingest_rows({call})")).unwrap();
        let after = server.counters(["Com_commit", "Handler_commit"]);
        assert_eq!(after[0] - before[0], commits, "{call}");
        if commits == 0 {
            assert!(after[1] - before[1] >= 100);
        }
    }
    let sums = server.sql(SUMS);
    assert!(sums.starts_with("400\t400\t") && sums.trim().ends_with("\t1"), "{sums}");
}

#[test]
fn an_error_in_the_procedure_takes_back_what_did_not_commit() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    ingest(&[("engine", "InnoDB")]).prepare(&mut session, &mut false).unwrap();
    // The command line client would split it at its semicolon.
    session
        .execute(
            "CREATE TRIGGER dbdyno_ingest.t BEFORE INSERT ON dbdyno_ingest.ingest FOR EACH ROW \
             IF (SELECT COUNT(*) FROM dbdyno_ingest.ingest) >= 25 THEN SIGNAL SQLSTATE '45000'; END IF",
        )
        .unwrap();
    let failed = session.execute("CALL dbdyno_ingest.ingest_rows(100, 10, 10)").unwrap_err();
    assert!(matches!(&failed, Error::Statement { error, .. } if error.sqlstate == "45000"), "{failed}");
    session.execute("COMMIT").unwrap();
    assert!(server.sql(SUMS).starts_with("20\t"));
}

#[test]
fn a_table_that_does_not_fit_is_refused_with_the_remedy() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    let message = |session: &mut Session, flags: Flags<'_>| check(session, flags).unwrap_err();
    assert!(message(&mut session, &[]).contains("no table dbdyno_ingest.ingest"));
    ingest(&[("initial-rows", "10")]).prepare(&mut session, &mut false).unwrap();
    assert!(ingest(&[]).prepare(&mut session, &mut false).unwrap_err().to_string().contains("cleanup"));
    assert!(check(&mut session, &[]).is_ok());
    assert!(message(&mut session, &[("initial-rows", "11")]).contains("--initial-rows=11"));
    assert!(message(&mut session, &[("engine", "myisam")]).contains("InnoDB instead of myisam"));
    server.sql("DROP PROCEDURE dbdyno_ingest.ingest_rows");
    assert!(message(&mut session, &[]).contains("procedure ingest_rows"));
    assert!(check(&mut session, &[("mode", "statement")]).is_ok());
    server.sql("ALTER TABLE dbdyno_ingest.ingest DROP INDEX b2");
    assert!(message(&mut session, &[]).contains("has indexes on (b1, b3), this load needs (b1, b2, b3)"));
    ingest(&[]).cleanup(&mut session).unwrap();
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_ingest"));
}

#[test]
fn what_is_not_ours_stays() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    let there = [("schema", "precious")];
    server.sql("CREATE SCHEMA precious; CREATE PROCEDURE precious.ingest_rows() SELECT 1");
    let foreign = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Usage(text) if text.contains("not made by") && text.contains("--schema")));
    };
    foreign(ingest(&there).prepare(&mut session, &mut false));
    foreign(ingest(&there).cleanup(&mut session));
    assert_eq!(server.sql("SHOW TABLES IN precious"), "");
    server.sql("DROP PROCEDURE precious.ingest_rows; CREATE TABLE precious.ingest (a int)");
    foreign(ingest(&there).prepare(&mut session, &mut false));
    foreign(ingest(&there).check(&mut session).map(drop));
    foreign(ingest(&there).cleanup(&mut session));
    assert_eq!(server.sql("SHOW TABLES IN precious").trim(), "ingest");
    assert_eq!(
        server.sql("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'precious'").trim(),
        "0"
    );
    // A procedure of ours that lost its table is no hindrance.
    ingest(&[]).prepare(&mut session, &mut false).unwrap();
    server.sql("DROP TABLE dbdyno_ingest.ingest");
    ingest(&[]).prepare(&mut session, &mut false).unwrap();
    assert!(check(&mut session, &[]).is_ok());
}

/// Runs `line`; gives the result of its last run and what it said.
fn run(server: &Server, line: &str) -> (Value, String) {
    let path = server.file("r.json");
    let output = expect(server.load(&format!("ingest {line}")).arg("--json").arg(&path), 0);
    (json(&path)["runs"].as_array().unwrap().last().unwrap().clone(), text(&output.stdout))
}

fn rows(server: &Server) -> u64 {
    server.sql("SELECT COUNT(*) FROM dbdyno_ingest.ingest").trim().parse().unwrap()
}

#[test]
fn the_server_counts_what_we_count() {
    let Some(server) = Server::start() else { return };
    let names = ["Com_call_procedure", "Com_insert", "Com_begin", "Com_commit"];
    for engine in ["InnoDB", "MyISAM"] {
        expect(&mut server.load(&format!("ingest -e {engine} prepare")), 0);
        for clients in [1, 8] {
            for mode in ["auto", "disable"] {
                // Of 1003 rows: calls, inserts, transactions begun and committed, events. The procedure begins one and
                // goes on with COMMIT AND CHAIN.
                for (flags, counts, events) in [
                    ("--rows-per-call=100", [11, 1003, 0, 0], 11),
                    ("--rows-per-call=100 --rows-per-commit=50", [11, 1003, 11, 21], 11),
                    ("--mode=statement", [0, 1003, 0, 0], 1003),
                    ("--mode=statement --rows-per-insert=10", [0, 101, 0, 0], 101),
                    ("--mode=statement --rows-per-insert=10 --rows-per-commit=40", [0, 101, 26, 26], 26),
                ] {
                    let line = format!("-e {engine} {flags} -c {clients} --db-ps-mode={mode} --rows=1003 run");
                    let (before, rows_before) = (server.counters(names), rows(&server));
                    let (run, _) = run(&server, &line);
                    let after = server.counters(names);
                    assert_eq!([0, 1, 2, 3].map(|n| after[n] - before[n]), counts, "{line}");
                    assert_eq!(rows(&server) - rows_before, 1003, "{line}");
                    assert_eq!((&run["rows"], &run["engine"]), (&1003.into(), &engine.into()), "{line}");
                    assert_eq!(run["events"], events, "{line}");
                }
            }
        }
        expect(&mut server.load("ingest cleanup"), 0);
    }
}

#[test]
fn time_and_events_bound_a_run_too() {
    let Some(server) = Server::start() else { return };
    expect(&mut server.load("ingest prepare"), 0);
    for (flags, rows_per_event) in [("--rows-per-call=30", 30), ("--mode=statement --rows-per-insert=7", 7)] {
        for bound in ["--duration=150ms", "--events=40", "--rows=1000000000 --duration=150ms"] {
            for clients in [1, 8] {
                let before = rows(&server);
                let line = format!("{flags} -c {clients} {bound} --warmup=50ms run");
                let (run, _) = run(&server, &line);
                let queries = run["queries"].as_u64().unwrap();
                assert_eq!(run["rows"], queries * rows_per_event, "{line}");
                let all = queries + run["warmup_queries"].as_u64().unwrap();
                assert_eq!(rows(&server) - before, all * rows_per_event, "{line}");
                assert!(run["warmup_queries"].as_u64().unwrap() > 0, "{line}");
                if bound.starts_with("--events") {
                    assert_eq!(run["events"], 40, "{line}");
                }
            }
        }
    }
}

#[test]
fn events_are_all_said_though_some_clients_are_done_before() {
    let Some(server) = Server::start() else { return };
    for way in ["", "--io-threads=2"] {
        // 25 for each client.
        let (run, _) = run(&server, &format!("--rows=100 --rows-per-call=1 --events=97 -c 4 {way}"));
        assert_eq!((&run["events"], &run["rows"]), (&97.into(), &97.into()), "{way}");
    }
}

#[test]
fn a_line_is_printed_every_so_many_rows() {
    let Some(server) = Server::start() else { return };
    for threads in [1, 2] {
        let line = format!("--rows=1000 --rows-per-call=50 --report-rows=200 -c 4 --io-threads={threads}");
        let (_, printed) = run(&server, &line);
        let lines = printed.lines().filter(|line| line.contains(" rows after "));
        assert_eq!(lines.count(), 5, "{printed}");
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_ingest"));
    }
}

#[test]
fn deadlocked_transactions_are_rolled_back_and_tried_again() {
    let Some(server) = Server::start() else { return };
    expect(&mut server.load("ingest prepare"), 0);
    // Each row takes one of two locks, in any order.
    let mut session = connected(&server);
    for sql in [
        "CREATE TABLE dbdyno_ingest.locks (id int primary key, n int) ENGINE=InnoDB",
        "INSERT INTO dbdyno_ingest.locks VALUES (0, 0), (1, 0)",
        "CREATE TRIGGER dbdyno_ingest.t BEFORE INSERT ON dbdyno_ingest.ingest FOR EACH ROW \
         UPDATE dbdyno_ingest.locks SET n = n + 1 WHERE id = NEW.b1 % 2",
    ] {
        session.execute(sql).unwrap();
    }
    let line = "--mode=statement --rows-per-commit=5 --rows=1000 -c 8 --ignore-errors=1213 run";
    let (run, _) = run(&server, line);
    assert_eq!(rows(&server), 1000);
    assert_eq!(run["rows"], 1000);
    assert_eq!(run["events"], 200);
    assert_eq!(server.sql("SELECT SUM(n) FROM dbdyno_ingest.locks").trim(), "1000");
    let errors = run["errors"].as_array().unwrap();
    assert!(errors.iter().all(|error| error["code"] == 1213), "{errors:?}");
    let refused: u64 = errors.iter().map(|error| error["count"].as_u64().unwrap()).sum();
    assert!(refused > 0, "no deadlock came about");
    assert_eq!(run["operations"]["rollback"]["count"], refused);
}

#[test]
fn a_word_that_is_no_load_is_refused() {
    let Some(server) = Server::start() else { return };
    let stderr = text(&expect(&mut server.load("ingest procedure run"), 2).stderr);
    assert!(stderr.contains("--mode"), "{stderr}");
}
