//! Sessions and their protocol, plain and compressed, against a real MariaDB.

use std::thread::{self, sleep};
use std::time::Duration;

use dbdyno_load::endpoint::Endpoint;
use dbdyno_load::error::Error;
use dbdyno_load::protocol::packet::{PAYLOAD_MAX, Parameter};
use dbdyno_load::protocol::reply::Reply;

use crate::common::client::{execute, over_socket, over_tcp, refusal, secured, session, user};
use crate::common::fake_server::{FakeServer, Greeting};
use crate::common::{Server, expect, json};
use crate::tls::Certificates;

#[test]
fn prepared_statements_run() {
    let Some(server) = Server::start() else { return };
    let mut session = session(&over_socket(&server.socket()));
    session.prepare_all(&["SELECT 1, ?, 'a' UNION SELECT 2, ?, 'b'".into(), "DO 1".into()]).unwrap();
    session.prepare_all(&["BEGIN".into()]).unwrap();
    let mut connection = session.into_connection();
    assert_eq!(connection.prepared.len(), 3);
    for _ in 0..3 {
        let (reply, _) = execute(&mut connection, 0, &[Parameter::Integer(7), Parameter::Text(b"x")]);
        assert_eq!(reply, Reply { rows: 2, ..Reply::default() });
        assert_eq!(execute(&mut connection, 1, &[]).0, Reply::default());
    }
    assert!(execute(&mut connection, 2, &[]).0.in_transaction);
}

#[test]
fn a_statement_that_cannot_be_prepared_is_named() {
    let Some(server) = Server::start() else { return };
    let mut session = session(&over_socket(&server.socket()));
    let error = session.prepare_all(&["DO 1".into(), "SELECT nothing".into()]).unwrap_err();
    assert!(matches!(&error, Error::Statement { sql, .. } if sql == "SELECT nothing"), "{error}");
    session.execute("SET GLOBAL max_prepared_stmt_count = 2").unwrap();
    let error = session.prepare_all(&["DO 1".into(), "DO 2".into()]).unwrap_err().to_string();
    assert!(error.contains("max_prepared_stmt_count") && error.contains("prepares 2 on each"), "{error}");
    session.execute("DO 1").unwrap();
}

/// Bytes that the definition of a column takes at least: `def`, five names, the fixed part.
const DEFINITION_MIN: usize = 4 + 4 + 5 + 13;

#[test]
fn known_columns_are_not_sent_again() {
    let Some(server) = Server::start() else { return };
    server.sql(
        "CREATE SCHEMA test; CREATE TABLE test.t (a INT, b VARCHAR(20)); INSERT INTO test.t VALUES (1, 'x'), (2, 'y')",
    );
    let mut session = session(&over_socket(&server.socket()));
    session.prepare_all(&["SELECT a, b FROM test.t WHERE a >= ?".into()]).unwrap();
    // Text replies have them always.
    assert_eq!(session.query("SELECT a, b FROM test.t").unwrap().len(), 2);
    let mut connection = session.into_connection();
    // Per packet a header; the number of columns and whether they follow; rows of a zero, NULLs, an
    // integer and a string; the end.
    let expected = (4 + 2) + 2 * (4 + 2 + 4 + 2) + (4 + 7);
    for _ in 0..3 {
        let (reply, size) = execute(&mut connection, 0, &[Parameter::Integer(1)]);
        assert_eq!((reply.rows, size), (2, expected));
    }
    // Columns that have changed are sent again, once.
    server.sql("ALTER TABLE test.t MODIFY a BIGINT");
    let (reply, size) = execute(&mut connection, 0, &[Parameter::Integer(1)]);
    assert_eq!(reply.rows, 2);
    assert!(size > expected + 2 * DEFINITION_MIN, "{size}");
    let (reply, size) = execute(&mut connection, 0, &[Parameter::Integer(2)]);
    assert_eq!((reply.rows, size), (1, (4 + 2) + (4 + 2 + 8 + 2) + (4 + 7)));
}

#[test]
fn mariadbs_plugins_log_in() {
    // MariaDB's core package has no plugins; DBDYNO_TEST_PLUGINS may name a folder that has.
    let folder = std::env::var("DBDYNO_TEST_PLUGINS").map(|folder| format!("--plugin-dir={folder}"));
    let Some(server) = Server::start_with(&folder.into_iter().collect::<Vec<_>>()) else { return };
    server.sql("CREATE USER n IDENTIFIED VIA mysql_native_password USING PASSWORD('p')");
    let mut names = vec!["n"];
    if server.accepts("INSTALL SONAME 'auth_ed25519'") {
        server.sql("CREATE USER e IDENTIFIED VIA ed25519 USING PASSWORD('p')");
        names.push("e");
    } else {
        eprintln!("skipped in part: the server has no auth_ed25519");
    }
    for name in names {
        for way in [over_socket(&server.socket()), over_tcp(server.port)] {
            session(&user(way.clone(), name, "p"));
            assert!(refusal(&user(way, name, "q")).contains("1045"), "{name}");
        }
    }
    if rustix::process::getuid().is_root() {
        server.sql("ALTER USER root@localhost IDENTIFIED VIA unix_socket");
        session(&over_socket(&server.socket()));
        assert!(refusal(&over_tcp(server.port)).contains("check --user"));
    }
}

#[test]
fn payloads_of_any_size_go_both_ways() {
    /// Bytes of a command and of a statement around its literal, and of the length before a long value.
    const AROUND: usize = 1 + "SELECT LENGTH('')".len();
    const LENGTH: usize = 4;
    let Some(server) = Server::start() else { return };
    let mut session = session(&over_socket(&server.socket()));
    for size in [PAYLOAD_MAX - 1, PAYLOAD_MAX, PAYLOAD_MAX + 1, 2 * PAYLOAD_MAX, 40 << 20] {
        let literal = size - AROUND;
        let rows = session.query(&format!("SELECT LENGTH('{}')", "x".repeat(literal))).unwrap();
        assert_eq!(rows, [[Some(literal.to_string())]]);
        let value = size - LENGTH;
        let rows = session.query(&format!("SELECT REPEAT('x', {value})")).unwrap();
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(value));
    }
    session.prepare_all(&["SELECT ?".into()]).unwrap();
    let mut connection = session.into_connection();
    for size in [PAYLOAD_MAX - 20, PAYLOAD_MAX, 20 << 20] {
        let (reply, got) = execute(&mut connection, 0, &[Parameter::Text(&vec![b'x'; size])]);
        assert_eq!((reply.rows, reply.error), (1, None));
        assert!(got > size);
    }
}

#[test]
fn local_files_stay_here() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE SCHEMA test; CREATE TABLE test.t (a TEXT); SET GLOBAL local_infile = 1");
    let mut session = session(&over_socket(&server.socket()));
    let error = session.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE test.t").unwrap_err();
    assert!(matches!(error, Error::Statement { .. }), "{error}");
    assert_eq!(session.query("SELECT * FROM test.t").unwrap().len(), 0);
}

#[test]
fn a_server_that_ends_a_session_is_told_with_its_reason() {
    let Some(mut server) = Server::start() else { return };
    let lost = |outcome: Result<(), Error>| {
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("lost the connection") && message.contains("KILL, wait_timeout"), "{message}");
    };
    for way in [over_socket(&server.socket()), over_tcp(server.port)] {
        let mut idle = session(&way);
        idle.execute("SET wait_timeout = 1").unwrap();
        let mut busy = session(&way);
        let number = busy.query("SELECT CONNECTION_ID()").unwrap()[0][0].clone().unwrap();
        thread::scope(|scope| {
            let work = scope.spawn(|| busy.execute("SELECT SLEEP(20)"));
            sleep(Duration::from_millis(300));
            server.sql(&format!("KILL {number}"));
            lost(work.join().unwrap());
        });
        sleep(Duration::from_secs(2));
        lost(idle.execute("DO 1"));
    }
    let mut left = session(&over_socket(&server.socket()));
    server.sql("SHUTDOWN");
    server.process.wait().unwrap();
    lost(left.execute("DO 1"));
    let message = refusal(&over_socket(&server.socket()));
    assert!(message.contains("is the server running"), "{message}");
}

#[test]
fn statements_and_rows_of_every_length_pass_through() {
    let Some(files) = Certificates::new() else { return };
    let Some(server) = Server::start_with(&files.arguments("server")) else { return };
    let tls = secured(over_tcp(server.port), &[("ssl", "")]);
    for plain in [over_socket(&server.socket()), tls] {
        let mut session = session(&Endpoint { compressed: true, ..plain });
        assert_eq!(session.query("SHOW STATUS LIKE 'Compression'").unwrap()[0][1].as_deref(), Some("ON"));
        for length in [0, 1, 49, 51, 5000, 300_000, (1 << 24) + 10] {
            let sql = format!("SELECT LENGTH('{}'), REPEAT('ab', {}), 1", "x".repeat(length), length.min(40_000) / 2);
            let row = session.query(&sql).unwrap().remove(0);
            assert_eq!(row[0].as_deref(), Some(length.to_string().as_str()));
            assert_eq!(row[1].as_ref().map(String::len), Some(length.min(40_000) / 2 * 2));
        }
        // Random bytes, which do not shrink, over many packets of the server's.
        let rows = session.query("SELECT HEX(RANDOM_BYTES(400)) FROM mysql.help_topic LIMIT 500").unwrap();
        assert!(rows.len() == 500 && rows.iter().all(|row| row[0].as_ref().is_some_and(|text| text.len() == 800)));
        assert!(session.into_connection().compression.is_some());
    }
}

#[test]
fn a_load_counts_the_same() {
    let Some(server) = Server::start() else { return };
    let data = "--tables=2 --table-size=1000 --threads=3 --events=60";
    for (flags, io) in [("--mysql-compression=on", "io_uring"), ("--compress --db-ps-mode=disable", "epoll")] {
        let path = server.file("r.json");
        let line = format!("oltp read_write {data} {flags} --io={io}");
        let mut command = server.load(&line);
        let done = command.arg("--json").arg(&path).output().unwrap();
        if io == "io_uring" && !done.status.success() {
            continue; // this kernel refuses it
        }
        let run = &json(&path)["runs"][0];
        assert_eq!((&run["events"], &run["queries"]), (&60.into(), &1200.into()), "{line}");
    }
    expect(&mut server.slap("-a -C --concurrency=2 --number-of-queries=40"), 0);
}

#[test]
fn a_server_that_does_not_compress_is_named_with_the_remedy() {
    let fake = FakeServer::greeting(Greeting::Proper);
    let text = refusal(&Endpoint { compressed: true, ..over_socket(fake.socket()) });
    assert!(text.contains("does not compress") && text.contains("leave out --compress"), "{text}");
}
