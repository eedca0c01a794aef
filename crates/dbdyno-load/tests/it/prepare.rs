//! Preparing, interrupted, against a real MariaDB: nothing half done is left, for every verb.
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Server, text};
use rustix::process::{Pid, Signal, kill_process};

const SCRIPT: &str = "\
-- setup:
CREATE TABLE items (id INT PRIMARY KEY);
INSERT INTO items SELECT seq FROM seq_1_to_1000;
SELECT SLEEP(60);
-- name: look
SELECT 1;
";

/// Tables and schemas that are not the server's own.
fn made(server: &Server) -> String {
    server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN \
         ('mysql', 'sys', 'information_schema', 'performance_schema')",
    )
}

#[test]
fn an_interrupt_while_preparing_leaves_no_table() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE SCHEMA sbtest");
    let script = server.file("slow.sql");
    fs::write(&script, SCRIPT).unwrap();
    let script = format!("script {}", script.display());
    for line in [
        "smack select --rows=50000000",
        "oltp read_only --tables=2 --table-size=50000000 --clients=2",
        "ingest --initial-rows=50000000 --rows=1",
        &script,
    ] {
        for last in ["prepare", ""] {
            let mut command = server.load(&format!("{line} {last}"));
            let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let start = Instant::now();
            while made(&server).is_empty() {
                assert!(start.elapsed() < crate::common::PATIENCE, "{line}: nothing is made");
                sleep(Duration::from_millis(20));
            }
            sleep(Duration::from_millis(200));
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130), "{line}: {}", text(&output.stderr));
            assert_eq!(made(&server), "", "{line}: {}", text(&output.stderr));
        }
    }
}
