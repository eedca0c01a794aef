//! The load `ledger` and its verifier on a real server: what is planted in the tables is found, and nothing else ever
//! is.

use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::client::{over_socket, session};
use crate::common::{Server, drawn, ended, expect, json as read_json, text, wait_until};

const FAULTS: [&str; 6] = ["lost", "holes", "ghost", "torn", "wrong", "index_differences"];

fn prepared(flags: &str) -> Option<Server> {
    let server = Server::start_on_disk()?;
    expect(&mut server.load(&format!("ledger --accounts=200 {flags} prepare")), 0);
    Some(server)
}

fn run(server: &Server, flags: &str) {
    let ledger = server.file("ledger");
    expect(
        server.load(&format!("ledger --accounts=200 -s {flags} run")).arg(format!("--ledger={}", ledger.display())),
        0,
    );
}

fn verify(server: &Server, flags: &str) -> Value {
    let (ledger, result) = (server.file("ledger"), server.file("verified"));
    let mut command = server.load(&format!("ledger {flags} verify"));
    command.arg(format!("--ledger={}", ledger.display())).arg(format!("--json={}", result.display()));
    expect(&mut command, 0);
    read_json(&result)
}

/// The faults that were counted.
fn faults(verified: &Value) -> Vec<(&'static str, u64)> {
    let counted = FAULTS.into_iter().map(|name| (name, verified[name].as_u64().unwrap()));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// The keys of some transactions that are there.
fn keys(server: &Server, filter: &str) -> Vec<(u64, u64)> {
    let sql = format!("SELECT connection, sequence FROM dbdyno_ledger.ledger WHERE {filter} ORDER BY 1, 2");
    let answer = server.sql(&sql);
    let mut numbers = answer.split_whitespace().map(|number| number.parse().unwrap());
    std::iter::from_fn(|| Some((numbers.next()?, numbers.next()?))).collect()
}

#[test]
fn all_is_there_after_a_run_and_after_others() {
    for engine in drawn("all_is_there", &["InnoDB", "Aria", "MyISAM"], 1) {
        let Some(server) = prepared(&format!("--engine={engine}")) else { return };
        // Few accounts: transactions meet, and some are sent again.
        for _ in 0..2 {
            run(
                &server,
                &format!(
                    "--engine={engine} -c 8 --warmup=100ms --duration=500ms --parts=4 --blob-share=20 --ddl=on --io-threads=2"
                ),
            );
            let verified = verify(&server, &format!("--engine={engine}"));
            assert_eq!(faults(&verified), [], "{engine}: {verified}");
            assert_eq!((&verified["balance_off"], &verified["complete"]), (&json!(false), &json!(true)));
            assert_eq!(verified["acked"], verified["kept"]);
            let acked = verified["acked"].as_u64().unwrap();
            assert!(
                acked > 10 && verified["unknown"] == 0 && verified["refused"].as_u64().unwrap() <= 16,
                "{verified}"
            );
            assert!(verified["tables"].as_array().unwrap().iter().all(|table| table["ok"] == true), "{verified}");
        }
        expect(&mut server.load("ledger cleanup"), 0);
        assert!(!server.sql("SHOW SCHEMAS").contains("dbdyno_ledger"));
    }
}

#[test]
fn the_server_s_settings_hide_nothing_and_show_nothing_that_is_not_committed() {
    let Some(server) = prepared("") else { return };
    run(&server, "-c 2 --events=200");
    server.sql("SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SET GLOBAL sql_select_limit = 10");
    let mut open = session(&over_socket(&server.socket()));
    open.execute("BEGIN").unwrap();
    open.execute("INSERT INTO dbdyno_ledger.ledger (connection, sequence, tag, payload) VALUES (1, 100000, 1, 'x')")
        .unwrap();
    let verified = verify(&server, "");
    assert_eq!((faults(&verified), &verified["balance_off"]), (vec![], &json!(false)), "{verified}");
}

#[test]
fn what_is_planted_is_found() {
    let Some(server) = prepared("") else { return };
    run(&server, "-c 4 --events=2000 --blob-share=10");
    let count = |changes: &str, back: &str| {
        server.sql(&format!("USE dbdyno_ledger; {changes}"));
        let verified = verify(&server, "");
        server.sql(&format!("USE dbdyno_ledger; {back}"));
        (faults(&verified), verified)
    };
    let (connection, sequence) = keys(&server, "content IS NULL AND sequence = 7")[0];
    let here = format!("connection = {connection} AND sequence = {sequence}");
    let keep = |table: &str| format!("CREATE TABLE kept_{table} AS SELECT * FROM {table} WHERE {here};");
    let back = |table: &str| format!("REPLACE INTO {table} SELECT * FROM kept_{table}; DROP TABLE kept_{table};");

    let delete = |table: &str| format!("DELETE FROM {table} WHERE {here};");
    let (counts, verified) = count(
        &["ledger", "transfers"].map(|table| keep(table) + &delete(table)).concat(),
        &["ledger", "transfers"].map(back).concat(),
    );
    assert_eq!(counts, [("lost", 1), ("holes", 1)]);
    // Its accounts were changed.
    assert_eq!(verified["balance_off"], true);
    assert!(verified["oldest_lost_ack_ns"].as_u64().unwrap() > 0);
    let example = &verified["examples"][0];
    assert_eq!([&example["connection"], &example["sequence"]], [&json!(connection), &json!(sequence)]);

    for table in ["ledger", "transfers"] {
        let (counts, _) = count(&(keep(table) + &delete(table)), &back(table));
        assert_eq!(counts, [("torn", 1)], "{table}");
    }
    let (counts, _) = count(
        &(keep("ledger") + &format!("UPDATE ledger SET payload = REVERSE(payload) WHERE {here};")),
        &back("ledger"),
    );
    assert_eq!(counts, [("wrong", 1)]);
    let (blob, of) = keys(&server, "content IS NOT NULL")[0];
    let there = format!("WHERE connection = {blob} AND sequence = {of}");
    let first = server.sql(&format!("SELECT HEX(SUBSTR(content, 17000, 8)) FROM dbdyno_ledger.ledger {there}"));
    let change = |byte: &str| format!("UPDATE ledger SET content = INSERT(content, 17000, 8, {byte}) {there};");
    let (counts, _) = count(&change("'########'"), &change(&format!("x'{}'", first.trim())));
    assert_eq!(counts, [("wrong", 1)], "deep in a blob");

    let never = "INSERT INTO ledger VALUES (2, 999999, 5, 'never', NULL);";
    let (counts, _) = count(never, "DELETE FROM ledger WHERE sequence = 999999;");
    assert_eq!(counts, [("ghost", 1)]);
    let (counts, verified) = count(
        "UPDATE accounts SET balance = balance + 1 WHERE id = 9;",
        "UPDATE accounts SET balance = balance - 1 WHERE id = 9;",
    );
    assert!(counts.is_empty() && verified["balance_off"] == true, "{verified}");
    let moved = "UPDATE accounts SET balance = balance + IF(id = 9, 1, -1) WHERE id IN (9, 10);";
    let (_, verified) = count(moved, &moved.replace("1, -1", "-1, 1"));
    assert_eq!(verified["balance_off"], true, "the sum is right, the accounts are not");

    let (counts, verified) = count("", "");
    assert!(counts.is_empty() && verified["balance_off"] == false, "all was put back: {verified}");
}

#[test]
fn the_cut_decides() {
    let Some(server) = prepared("") else { return };
    run(&server, "-c 4 --events=1000");
    let before = verify(&server, "--cut-ns=1");
    // All of it was sent after such a cut.
    assert_eq!(before["acked"], 0);
    assert_eq!(before["ghost"], 1000);
    let amid = verify(&server, "--cut-ns=1 --cut-end-ns=18446744073709551615");
    assert_eq!((&amid["unknown"], faults(&amid)), (&json!(1000), vec![]));
    let (code, stderr, _) = ended(server.load("ledger --cut-ns=5 --cut-end-ns=4 verify").arg("--ledger=/nonexistent"));
    assert!(code == Some(2) && stderr.contains("--cut-end-ns=4 is before --cut-ns=5"), "{stderr}");
}

#[test]
fn tables_that_cannot_be_read_are_findings() {
    let Some(server) = prepared("--engine=MyISAM") else { return };
    run(&server, "-c 2 --events=500 --ddl=on");
    server
        .sql("USE dbdyno_ledger; DROP TABLE accounts; ALTER TABLE transfers CHANGE amount other BIGINT; FLUSH TABLES");
    let verified = verify(&server, "");
    assert_eq!((&verified["complete"], &verified["lost"]), (&json!(false), &json!(0)));
    let state = |name: &str| {
        let tables = verified["tables"].as_array().unwrap();
        tables.iter().find(|table| table["table"] == name).unwrap().clone()
    };
    assert_eq!((&state("ledger")["ok"], &state("accounts")["ok"]), (&json!(true), &json!(false)));
    assert!(state("accounts")["text"].as_str().unwrap().contains("doesn't exist"), "{verified}");
    assert!(state("transfers")["text"].as_str().unwrap().contains("amount"), "{verified}");
}

#[test]
fn the_file_of_another_run_is_refused() {
    let Some(server) = prepared("") else { return };
    run(&server, "-c 2 --events=50");
    let refused = |line: &str, path: &str| {
        let (code, stderr, _) = ended(server.load(&format!("ledger {line} verify")).arg(format!("--ledger={path}")));
        assert_eq!(code, Some(2), "{stderr}");
        stderr
    };
    let path = server.file("ledger").display().to_string();
    assert!(refused("--schema=other", &path).contains("belongs to the schema dbdyno_ledger, not to --schema=other"));
    assert!(refused("--engine=Aria", &path).contains("belongs to the engine InnoDB, not to --engine=Aria"));
    server.sql("UPDATE dbdyno_ledger.runs SET seed = '77'");
    assert!(
        refused("", &path)
            .contains("belongs to a run with --seed=1, but the tables in dbdyno_ledger to one with --seed=77")
    );
    assert!(refused("", "/etc/hostname").contains("is not a ledger"));
    let (code, stderr, _) = ended(&mut server.load("ledger verify"));
    assert!(code == Some(2) && stderr.contains("verify needs --ledger=FILE"), "{stderr}");
}

/// A load that runs until its server or itself is killed.
fn endless(server: &Server, flags: &str) -> Child {
    let begun = server.counter("Com_commit");
    let mut command = server.load(&format!("ledger --accounts=200 -s -c 8 --duration=600 {flags} run"));
    let load = command.arg(format!("--ledger={}", server.file("ledger").display())).spawn().unwrap();
    wait_until("commits", || server.counter("Com_commit") > begun + 2000);
    load
}

/// What is found after a load whose server was killed, with no flush of the log by the clock.
fn killed(flush: u32, flags: &str) -> Option<Value> {
    let mut server = prepared("")?;
    // The accounts are to be there whatever is lost of the load. While the setting is 0, FLUSH ENGINE LOGS does
    // nothing.
    server.sql(&format!(
        "SET GLOBAL innodb_flush_log_at_trx_commit = 1; FLUSH ENGINE LOGS; \
         SET GLOBAL innodb_flush_log_at_trx_commit = {flush}, GLOBAL innodb_flush_log_at_timeout = 2700"
    ));
    let mut load = endless(&server, &format!("--expect-loss {flags}"));
    server.kill();
    assert!(load.wait().unwrap().success(), "the loss was expected");
    server.start_again();
    Some(verify(&server, ""))
}

#[test]
fn a_killed_server_loses_nothing_it_has_flushed() {
    let Some(verified) = killed(1, "--ddl=on") else { return };
    assert_eq!((faults(&verified), &verified["balance_off"]), (vec![], &json!(false)), "{verified}");
}

#[test]
fn a_killed_server_loses_a_tail_of_what_it_has_not_flushed() {
    // Now and then nothing is lost: DDL flushes the log, as does the writing of pages, and may do so right before the
    // kill, where clients that a busy host keeps waiting commit nothing any more. So one loss must be seen, of a few
    // kills.
    let mut lost = 0;
    for flags in ["--ddl=on", "", "--ddl=on", "", ""] {
        let Some(verified) = killed(0, flags) else { return };
        let allowed = faults(&verified).iter().all(|(name, _)| *name == "lost");
        assert!(allowed && verified["balance_off"] == false, "{flags}: {verified}");
        lost = verified["lost"].as_u64().unwrap();
        if lost > 0 {
            break;
        }
    }
    assert!(lost > 0, "nothing was lost in five kills");
}

#[test]
fn a_loss_that_was_not_expected_is_a_failure() {
    let Some(mut server) = prepared("") else { return };
    let mut load = endless(&server, "");
    server.kill();
    assert_eq!(load.wait().unwrap().code(), Some(1));
}

#[test]
fn a_killed_load_leaves_a_file_of_which_nothing_false_is_concluded() {
    let Some(server) = prepared("") else { return };
    let mut load = endless(&server, "");
    load.kill().unwrap();
    load.wait().unwrap();
    // The server may still be at a last statement.
    wait_until("the end of the clients", || {
        server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'dbdyno_ledger'").trim() == "0"
    });
    let verified = verify(&server, "");
    assert_eq!((faults(&verified), &verified["balance_off"]), (vec![], &json!(false)), "{verified}");
}

#[test]
fn lost_connections_are_unknown_not_lost() {
    let Some(server) = prepared("") else { return };
    let mut load = endless(&server, "--reconnect=5s --ignore-errors=all --max-errors=1000");
    for _ in 0..5 {
        for id in server.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'dbdyno_ledger'").lines().take(3)
        {
            server.accepts(&format!("KILL {id}"));
        }
        sleep(Duration::from_millis(100));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&load), rustix::process::Signal::INT).unwrap();
    assert_eq!(load.wait().unwrap().code(), Some(130));
    let verified = verify(&server, "");
    assert_eq!((faults(&verified), &verified["balance_off"]), (vec![], &json!(false)), "{verified}");
    assert!(verified["refused"].as_u64().unwrap() + verified["unknown"].as_u64().unwrap() > 0, "{verified}");
}

#[test]
fn ddl_that_was_taken_back_is_found() {
    let Some(server) = prepared("") else { return };
    run(&server, "-c 2 --duration=1 --ddl=on");
    let names = server.sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'dbdyno_ledger' AND TABLE_NAME LIKE 'ddl%'");
    let table = names.lines().find(|name| *name != "ddl_parts").unwrap();
    server.sql(&format!(
        "USE dbdyno_ledger; RENAME TABLE {table} TO elsewhere; CREATE TABLE ddl_4000 (id INT) COMMENT = 'dbdyno ledger'"
    ));
    let verified = verify(&server, "");
    let counts = faults(&verified);
    assert!(verified["lost"].as_u64().unwrap() > 0 && verified["ghost"] == 1, "{verified}");
    assert!(counts.iter().all(|(name, _)| ["lost", "holes", "ghost"].contains(name)), "{verified}");
    server.sql(&format!("USE dbdyno_ledger; RENAME TABLE elsewhere TO {table}; DROP TABLE ddl_4000"));
    assert_eq!(faults(&verify(&server, "")), []);
}

#[test]
fn what_is_not_ours_stays() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE SCHEMA shop; CREATE TABLE shop.ledger (id INT)");
    let (code, stderr, _) = ended(&mut server.load("ledger --schema=shop prepare"));
    assert!(code == Some(2) && stderr.contains("shop.ledger exists and was not made by dbdyno ledger"), "{stderr}");
    assert_eq!(server.sql("SHOW TABLES IN shop").trim(), "ledger");
    let stdout = text(&expect(&mut server.load("ledger --help"), 0).stdout);
    assert!(stdout.contains("[prepare|run|cleanup|verify]"), "{stdout}");
}
