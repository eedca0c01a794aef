//! Sessions and their protocol against a real MariaDB.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;

use std::time::Duration;

use common::Server;
use dbdyno_load::endpoint::{Address, Endpoint, Password};
use dbdyno_load::error::Error;
use dbdyno_load::protocol::connection::Connection;
use dbdyno_load::protocol::packet::reply_sequence;
use dbdyno_load::protocol::pen::{Parameter, Pen};
use dbdyno_load::protocol::reply::Reply;
use dbdyno_load::protocol::session::Session;
use dbdyno_load::stop::Stop;
use rustix::net::{RecvFlags, SendFlags, recv, send};

fn endpoint(server: &Server) -> Endpoint {
    Endpoint {
        address: Address::Socket(server.socket()),
        user: "root".into(),
        password: Password::default(),
        connect_timeout: Duration::from_secs(10),
        stall_timeout: Duration::from_secs(30),
        init_command: None,
    }
}

fn session(endpoint: &Endpoint) -> Session {
    Session::connect(endpoint, None, &Stop::default()).unwrap()
}

/// Executes statement `number` and gives its reply and how many bytes that took.
fn execute(connection: &mut Connection, number: usize, parameters: &[Parameter<'_>]) -> (Reply, usize) {
    let mut request = Vec::new();
    Pen::new(&mut request, &mut connection.prepared).execute(number, parameters);
    connection.parser.expect(reply_sequence(&request));
    assert_eq!(send(&connection.socket, &request, SendFlags::NOSIGNAL), Ok(request.len()));
    let mut size = 0;
    loop {
        let mut buffer = [0; 4096];
        let (got, _) = recv(&connection.socket, &mut buffer, RecvFlags::empty()).unwrap();
        size += got;
        if let Some(reply) = connection.parser.feed(&buffer[..got]).unwrap() {
            return (reply, size);
        }
    }
}

#[test]
fn prepared_statements_run() {
    let Some(server) = Server::start() else { return };
    let mut session = session(&endpoint(&server));
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
    let mut session = session(&endpoint(&server));
    let error = session.prepare_all(&["DO 1".into(), "SELECT nothing".into()]).unwrap_err();
    assert!(matches!(&error, Error::Statement { sql, .. } if sql == "SELECT nothing"), "{error}");
    session.execute("SET GLOBAL max_prepared_stmt_count = 2").unwrap();
    let error = session.prepare_all(&["DO 1".into(), "DO 2".into()]).unwrap_err().to_string();
    assert!(error.contains("max_prepared_stmt_count") && error.contains("prepares 2 on each"), "{error}");
    session.execute("DO 1").unwrap();
}
