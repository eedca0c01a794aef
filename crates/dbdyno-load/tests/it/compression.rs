//! The compressed protocol against a real MariaDB.
use crate::common::certificates::Certificates;
use crate::common::client::{over_socket, over_tcp, refusal, secured, session};
use crate::common::fake_server::{FakeServer, Greeting};
use crate::common::{Server, expect, json};
use dbdyno_load::endpoint::Endpoint;

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
