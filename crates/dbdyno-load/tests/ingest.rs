//! `ingest` against a real MariaDB.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;

use common::Server;
use dbdyno_load::error::Error;
use dbdyno_load::ingest::VERB;
use dbdyno_load::protocol::session::Session;
use dbdyno_load::values::Values;
use dbdyno_load::workload::Workload;

type Flags<'a> = &'a [(&'static str, &'a str)];

fn ingest(flags: Flags<'_>) -> Box<dyn Workload> {
    let values = Values(flags.iter().map(|(name, value)| (*name, Some(*value))).collect());
    (VERB.workload)(&values, "").unwrap()
}

fn check(session: &mut Session, flags: Flags<'_>) -> Result<Option<String>, String> {
    ingest(flags).check(session).map(|found| found.engine).map_err(|error| error.to_string())
}

const SUMS: &str = "SELECT COUNT(*), MAX(id), MIN(LEAST(b1, b2, b3)), MAX(GREATEST(b1, b2, b3)), MIN(c) = REPEAT('1', 40) \
                    FROM dbdyno_ingest.ingest";

#[test]
fn the_table_is_that_of_the_report() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    for (engine, rows) in [("MyISAM", "20000"), ("InnoDB", "0")] {
        let flags = [("engine", engine), ("initial-rows", rows), ("value-range", "9")];
        ingest(&flags).prepare(&mut session).unwrap();
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
    let mut session = server.session();
    ingest(&[("engine", "InnoDB")]).prepare(&mut session).unwrap();
    for (call, commits) in [("100, 1000, 1", 0), ("100, 1000, 30", 4), ("100, 1000, 50", 2), ("100, 1000, 100", 1)] {
        let before = [server.counter("Com_commit"), server.counter("Handler_commit")];
        session.execute(&format!("CALL dbdyno_ingest.ingest_rows({call})")).unwrap();
        let after = [server.counter("Com_commit"), server.counter("Handler_commit")];
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
    let mut session = server.session();
    ingest(&[("engine", "InnoDB")]).prepare(&mut session).unwrap();
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
    let mut session = server.session();
    let said = |session: &mut Session, flags: Flags<'_>| check(session, flags).unwrap_err();
    assert!(said(&mut session, &[]).contains("no table dbdyno_ingest.ingest"));
    ingest(&[("initial-rows", "10")]).prepare(&mut session).unwrap();
    assert!(ingest(&[]).prepare(&mut session).unwrap_err().to_string().contains("cleanup"));
    assert!(check(&mut session, &[]).is_ok());
    assert!(said(&mut session, &[("initial-rows", "11")]).contains("--initial-rows=11"));
    assert!(said(&mut session, &[("engine", "myisam")]).contains("InnoDB instead of myisam"));
    server.sql("DROP PROCEDURE dbdyno_ingest.ingest_rows");
    assert!(said(&mut session, &[]).contains("procedure ingest_rows"));
    assert!(check(&mut session, &[("mode", "statement")]).is_ok());
    server.sql("ALTER TABLE dbdyno_ingest.ingest DROP INDEX b2");
    assert!(said(&mut session, &[]).contains("has indexes on (b1, b3), this load needs (b1, b2, b3)"));
    ingest(&[]).cleanup(&mut session).unwrap();
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_ingest"));
}

#[test]
fn what_is_not_ours_stays() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    let there = [("schema", "precious")];
    server.sql("CREATE SCHEMA precious; CREATE PROCEDURE precious.ingest_rows() SELECT 1");
    let foreign = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Usage(text) if text.contains("not made by") && text.contains("--schema")));
    };
    foreign(ingest(&there).prepare(&mut session));
    foreign(ingest(&there).cleanup(&mut session));
    assert_eq!(server.sql("SHOW TABLES IN precious"), "");
    server.sql("DROP PROCEDURE precious.ingest_rows; CREATE TABLE precious.ingest (a int)");
    foreign(ingest(&there).prepare(&mut session));
    foreign(ingest(&there).check(&mut session).map(drop));
    foreign(ingest(&there).cleanup(&mut session));
    assert_eq!(server.sql("SHOW TABLES IN precious").trim(), "ingest");
    assert_eq!(
        server.sql("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'precious'").trim(),
        "0"
    );
    // A procedure of ours that lost its table is no hindrance.
    ingest(&[]).prepare(&mut session).unwrap();
    server.sql("DROP TABLE dbdyno_ingest.ingest");
    ingest(&[]).prepare(&mut session).unwrap();
    assert!(check(&mut session, &[]).is_ok());
}
