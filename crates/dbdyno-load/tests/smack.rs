//! `smack` against a real MariaDB.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;

use common::Server;
use dbdyno_load::error::Error;
use dbdyno_load::protocol::session::Session;
use dbdyno_load::smack::VERB;
use dbdyno_load::values::Values;
use dbdyno_load::workload::Workload;

type Flags<'a> = &'a [(&'static str, &'a str)];

fn smack(load: &str, flags: Flags<'_>) -> Box<dyn Workload> {
    let values = Values(flags.iter().map(|(name, value)| (*name, Some(*value))).collect());
    (VERB.workload)(&values, load).unwrap()
}

fn prepare(session: &mut Session, flags: Flags<'_>) {
    smack("select", flags).prepare(session).unwrap();
}

fn check(session: &mut Session, load: &str, flags: Flags<'_>) -> Result<Option<String>, String> {
    smack(load, flags).check(session).map(|found| found.engine).map_err(|error| error.to_string())
}

#[test]
fn rows_are_prepared_as_asked() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    for (key, size) in [("integer", "LENGTH(data) + 8"), ("char", "LENGTH(data) + 25")] {
        let flags =
            [("rows", "3000"), ("row-size", "2000"), ("key", key), ("engine", "MyISAM"), ("compressible", "20")];
        prepare(&mut session, &flags);
        let sizes = format!("SELECT COUNT(*), COUNT(DISTINCT data), MIN({size}), MAX({size}) FROM dbdyno_smack.smack");
        assert_eq!(server.sql(&sizes).trim(), "3000\t3000\t2000\t2000");
        assert_eq!(check(&mut session, "select", &flags), Ok(Some("MyISAM".into())));
        let compressed =
            server.sql("SELECT ROUND(AVG(LENGTH(COMPRESS(data)) / LENGTH(data)), 1) FROM dbdyno_smack.smack");
        assert_eq!(compressed.trim(), "0.8");
        smack("select", &flags).cleanup(&mut session).unwrap();
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
    }
}

#[test]
fn rows_as_large_as_they_may_be_are_prepared() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    for key in ["integer", "char"] {
        let flags = [("rows", "40"), ("row-size", "65000"), ("key", key)];
        prepare(&mut session, &flags);
        assert_eq!(check(&mut session, "update", &flags), Ok(Some("InnoDB".into())));
        smack("select", &flags).cleanup(&mut session).unwrap();
    }
}

#[test]
fn a_table_that_does_not_fit_is_refused_with_the_remedy() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    let said = |session: &mut Session, load: &str, flags: Flags<'_>| check(session, load, flags).unwrap_err();
    let missing = said(&mut session, "select", &[]);
    assert!(missing.contains("no table dbdyno_smack.smack") && missing.contains("prepare"), "{missing}");
    prepare(&mut session, &[("rows", "1000")]);
    let ours = [("rows", "1000")];
    let again = smack("select", &ours).prepare(&mut session).unwrap_err();
    assert!(
        matches!(&again, Error::Usage(text) if text.contains("there already") && text.contains("cleanup")),
        "{again}"
    );
    for load in ["insert", "select", "update", "delete", "mixed"] {
        assert!(check(&mut session, load, &ours).is_ok());
        let other = said(&mut session, load, &[("rows", "1000"), ("row-size", "512")]);
        assert!(other.contains("data varbinary(1016)") && other.contains("data varbinary(504)"), "{other}");
        assert!(said(&mut session, load, &[("rows", "1000"), ("key", "char")]).contains("id char(25)"));
        let engine = said(&mut session, load, &[("rows", "1000"), ("engine", "myisam")]);
        assert!(engine.contains("InnoDB instead of myisam") && engine.contains("cleanup"), "{engine}");
    }
    assert!(said(&mut session, "select", &[("rows", "2000")]).contains("lacks 50 of 100 keys"));
    assert!(check(&mut session, "insert", &[("rows", "2000")]).is_ok());
    server.sql("DELETE FROM dbdyno_smack.smack WHERE id % 10 = 0");
    assert!(said(&mut session, "delete", &ours).contains("keys looked up between 1 and --rows=1000"));
}

#[test]
fn an_engine_that_is_not_there_leaves_nothing() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    let failed = smack("select", &[("engine", "rocket")]).prepare(&mut session).unwrap_err();
    assert!(failed.to_string().contains("rocket"), "{failed}");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
    // A server that takes another engine instead, as old ones do.
    server.sql("SET GLOBAL sql_mode = ''");
    let mut session = server.session();
    let failed = smack("select", &[("engine", "rocket")]).prepare(&mut session).unwrap_err();
    assert!(failed.to_string().contains("InnoDB instead of rocket"), "{failed}");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
}

#[test]
fn what_is_not_ours_stays() {
    let Some(server) = Server::start() else { return };
    let mut session = server.session();
    server.sql("CREATE SCHEMA precious; CREATE TABLE precious.smack (id bigint) COMMENT 'dbdyno smack, mine'");
    let there = [("schema", "precious"), ("rows", "10")];
    let foreign = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Usage(text) if text.contains("not made by") && text.contains("--schema")));
    };
    foreign(smack("select", &there).prepare(&mut session));
    foreign(smack("select", &there).check(&mut session).map(drop));
    foreign(smack("select", &there).cleanup(&mut session));
    assert_eq!(server.sql("SHOW TABLES IN precious").trim(), "smack");
    // A schema that was there stays when our table goes, and so does one of ours that holds more by then.
    server.sql("DROP TABLE precious.smack");
    prepare(&mut session, &there);
    smack("select", &there).cleanup(&mut session).unwrap();
    assert!(server.sql("SHOW DATABASES").contains("precious"));
    prepare(&mut session, &[("rows", "10")]);
    server.sql("CREATE FUNCTION dbdyno_smack.one() RETURNS INT RETURN 1");
    smack("select", &[]).cleanup(&mut session).unwrap();
    assert_eq!(server.sql("SELECT dbdyno_smack.one()").trim(), "1");
    assert_eq!(server.sql("SHOW TABLES IN dbdyno_smack"), "");
    smack("select", &[]).cleanup(&mut session).unwrap();
}
