//! Sessions and their protocol against a real MariaDB.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;

use common::Server;
use common::client::{execute, over_socket, session};
use dbdyno_load::error::Error;
use dbdyno_load::protocol::pen::Parameter;
use dbdyno_load::protocol::reply::Reply;

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
