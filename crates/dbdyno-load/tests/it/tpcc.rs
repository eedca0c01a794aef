//! `tpcc` against a real MariaDB.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use crate::common::client::{self, over_socket};
use crate::common::{Server, ended, expect, json, text, wait_until};
use dbdyno_load::tpcc::VERB;
use dbdyno_load::values::Values;
use dbdyno_load::workload::Stepwise;
use serde_json::Value;

const TABLES: [&str; 9] =
    ["warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "item", "stock"];

/// Room for all of a warehouse in memory and in the log; nothing is killed here, so no page is torn.
fn arguments() -> [String; 4] {
    ["buffer-pool-size=256M", "log-file-size=192M", "doublewrite=0", "lock-wait-timeout=1"]
        .map(|argument| format!("--innodb-{argument}"))
}

/// A server with the tables of one warehouse, which are made once.
fn prepared() -> Option<Server> {
    static DATA: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = || {
        let server = Server::start_with(&arguments())?;
        expect(&mut server.load("tpcc --seed=1 prepare"), 0);
        Some(server.kept("tpcc"))
    };
    Some(Server::start_on(DATA.get_or_init(made).as_ref()?, &arguments()))
}

fn tpcc() -> Box<dyn Stepwise> {
    (VERB.workload)(&Values::new(Vec::new()), "tpcc").unwrap()
}

fn run(server: &Server, line: &str) -> Value {
    let path = server.file("r.json");
    expect(server.load(&format!("tpcc -s {line} run")).arg("--json").arg(&path), 0);
    json(&path)["runs"][0].clone()
}

fn count(run: &Value, kind: &str) -> u64 {
    run["operations"][kind]["count"].as_u64().unwrap_or(0)
}

/// Rows of each table and a sum over all of them, whatever their order.
fn content(server: &Server) -> Vec<String> {
    let sum = |table: &&str| {
        let columns = server.sql(&format!(
            "SELECT GROUP_CONCAT(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'dbdyno_tpcc' AND \
             TABLE_NAME = '{table}'"
        ));
        server.sql(&format!("SELECT COUNT(*), SUM(CRC32(CONCAT_WS(',', {columns}))) FROM dbdyno_tpcc.{table}"))
    };
    TABLES.iter().map(sum).collect()
}

fn rows(server: &Server) -> u64 {
    let counts = TABLES.map(|table| format!("(SELECT COUNT(*) FROM dbdyno_tpcc.{table})"));
    server.sql(&format!("SELECT {}", counts.join(" + "))).trim().parse().unwrap()
}

#[test]
fn a_seed_repeats_its_rows_however_many_make_them() {
    let Some(server) = prepared() else { return };
    let mut contents = vec![content(&server)];
    for flags in ["--seed=1 -c 9", "--seed=2"] {
        expect(&mut server.load("tpcc cleanup"), 0);
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_tpcc"));
        expect(&mut server.load(&format!("tpcc {flags} prepare")), 0);
        contents.push(content(&server));
    }
    assert_eq!(contents[0], contents[1]);
    let counts: Vec<&str> = contents[0].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(counts[..6], ["1", "10", "30000", "30000", "30000", "9000"]);
    assert_eq!(counts[7..], ["100000", "100000"]);
    let lines: u32 = counts[6].parse().unwrap();
    assert!((298_000..302_000).contains(&lines), "{lines}");
    assert!(contents[0][..6].iter().zip(&contents[2]).filter(|(left, right)| left != right).count() >= 5);
}

/// What breaks each condition, and mends it again.
const BROKEN: [(u8, &str, &str); 10] = [
    (1, "UPDATE warehouse SET w_ytd = w_ytd + 0.01", "UPDATE warehouse SET w_ytd = w_ytd - 0.01"),
    (2, "UPDATE district SET d_next_o_id = d_next_o_id + 1", "UPDATE district SET d_next_o_id = d_next_o_id - 1"),
    (3, "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500", "INSERT INTO new_order VALUES (1, 4, 2500)"),
    (
        4,
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 9 AND o_id = 1",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 9 AND o_id = 1",
    ),
    (
        5,
        "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 9 AND o_id = 1",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 9 AND o_id = 1",
    ),
    (
        6,
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + IF(o_id = 1, 1, -1) WHERE o_d_id = 9 AND o_id IN (1, 2)",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - IF(o_id = 1, 1, -1) WHERE o_d_id = 9 AND o_id IN (1, 2)",
    ),
    (
        7,
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 9 AND ol_o_id = 1 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_d_id = 9 AND ol_o_id = 1 AND ol_number = 1",
    ),
    (
        8,
        "UPDATE warehouse SET w_ytd = w_ytd + 1; UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 3",
        "UPDATE warehouse SET w_ytd = w_ytd - 1; UPDATE district SET d_ytd = d_ytd - 1 WHERE d_id = 3",
    ),
    (
        9,
        "UPDATE district SET d_ytd = d_ytd + IF(d_id = 3, 1, -1) WHERE d_id IN (3, 4)",
        "UPDATE district SET d_ytd = d_ytd - IF(d_id = 3, 1, -1) WHERE d_id IN (3, 4)",
    ),
    (
        12,
        "UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_d_id = 2 AND c_id = 77",
        "UPDATE customer SET c_balance = c_balance - 0.01 WHERE c_d_id = 2 AND c_id = 77",
    ),
];

#[test]
fn a_load_keeps_the_conditions_and_each_that_is_broken_is_named() {
    let Some(server) = prepared() else { return };
    let before = rows(&server);
    let ran = run(&server, "-c 8 --io-threads=2 --events=900");
    assert_eq!(ran["events"], 900);
    let types = ["new_order", "new_order_rolled_back", "payment", "order_status", "delivery", "stock_level"];
    assert_eq!(types.iter().map(|kind| count(&ran, kind)).sum::<u64>(), 900);
    for (kind, low, high) in [("new_order", 335, 465), ("payment", 330, 450), ("delivery", 10, 65)] {
        assert!((low..high).contains(&count(&ran, kind)), "{kind}: {ran}");
    }
    assert_eq!(ran["latency_ns"]["count"], 900);
    let (added, deleted) = (ran["rows"].as_u64().unwrap(), count(&ran, "delete"));
    // Rows of what was rolled back, on purpose or after a wait for a lock, were counted as they were added or deleted.
    let again: u64 = ran["errors"].as_array().unwrap().iter().map(|error| error["count"].as_u64().unwrap()).sum();
    let (most, counted) = (17 * (again + count(&ran, "new_order_rolled_back")), before + added - deleted);
    assert!(
        rows(&server).abs_diff(counted) <= most,
        "{} rows, {counted} counted, {most} rolled back: {ran}",
        rows(&server)
    );

    let mut session = client::session(&over_socket(&server.socket()));
    let load = tpcc();
    load.check(&mut session).unwrap();
    for (number, damage, repair) in BROKEN {
        server.sql(&format!("USE dbdyno_tpcc; {damage}"));
        let message = load.after_run(&mut session).unwrap_err().to_string();
        assert!(
            message.contains(&format!("condition {number} (")) && message.contains("warehouse 1"),
            "{number}: {message}"
        );
        server.sql(&format!("USE dbdyno_tpcc; {repair}"));
    }
    // The first that is broken is named: what had not been mended would have been, instead of the next.
    load.after_run(&mut session).unwrap();
    server.sql("UPDATE dbdyno_tpcc.warehouse SET w_ytd = w_ytd + 1");
    let (code, stderr, _) = ended(&mut server.load("tpcc -s --events=1 run"));
    assert!(
        code == Some(1) && stderr.contains("condition 1 (W_YTD = sum(D_YTD)) does not hold before the run"),
        "{stderr}"
    );
}

#[test]
fn what_waits_for_a_lock_in_vain_is_sent_again() {
    let Some(server) = prepared() else { return };
    let lock = "BEGIN; UPDATE dbdyno_tpcc.warehouse SET w_ytd = w_ytd; SELECT SLEEP(6)";
    let path = server.file("r.json");
    let mut load = server.load("tpcc -s --mix=payment -c 3 --warmup=100ms --events=60 run");
    let mut locker = std::process::Command::new("mariadb");
    locker.args(["--no-defaults", "-uroot", "-e", lock, "-S"]).arg(server.socket()).stdout(Stdio::null());
    let mut locker = locker.spawn().unwrap();
    let sleeping = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
    while server.sql(sleeping).trim() == "0" {
        sleep(Duration::from_millis(20));
    }
    expect(load.arg("--json").arg(&path), 0);
    assert!(locker.wait().unwrap().success());
    let ran = json(&path)["runs"][0].clone();
    assert_eq!((ran["events"].as_u64(), ran["errors"][0]["code"].as_u64()), (Some(60), Some(1205)), "{ran}");
    // Its time runs on.
    assert!(ran["operations"]["payment"]["max"].as_u64().unwrap() > 1_000_000_000, "{ran}");
    assert_eq!(server.sql("SELECT COUNT(*) >= 30060 FROM dbdyno_tpcc.history").trim(), "1");

    let lost = server.load("tpcc -s -c 4 --reconnect=30s --rate=100 --duration=2 run").spawn();
    let ours = "FROM information_schema.PROCESSLIST WHERE DB = 'dbdyno_tpcc'";
    wait_until("a connection of each client", || server.sql(&format!("SELECT COUNT(*) >= 4 {ours}")).trim() == "1");
    server.answers(500);
    for id in server.sql(&format!("SELECT ID {ours}")).lines().take(2) {
        server.accepts(&format!("KILL {id}"));
    }
    assert!(lost.unwrap().wait().unwrap().success(), "the conditions hold after lost connections");
}

#[test]
fn terminals_key_and_think() {
    let Some(server) = prepared() else { return };
    let ran = run(&server, "--keying=on --duration=5");
    assert_eq!(ran["clients"], 10);
    // Each takes some 23 s for a transaction, of which none is in its latency.
    assert!(ran["events"].as_u64().unwrap() <= 15, "{ran}");
    if let Some(most) = ran["latency_ns"]["max"].as_u64() {
        assert!(most < 2_000_000_000, "{ran}");
    }
    let stdout = text(&expect(&mut server.load("tpcc --mix=new_order --rate=50 -c 4 --duration=1 run"), 0).stdout);
    assert!(
        stdout.contains("per minute (not a TPC result)") && stdout.contains("open loop") && !stdout.contains("payment"),
        "{stdout}"
    );
}

#[test]
fn what_is_not_ours_stays() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE SCHEMA shop; CREATE TABLE shop.orders (id INT)");
    let refused = |line: &str| {
        let (code, stderr, _) = ended(&mut server.load(&format!("tpcc --schema=shop {line}")));
        assert_eq!(code, Some(2), "{stderr}");
        stderr
    };
    let (code, stderr, _) = ended(&mut server.load("tpcc --schema=shop cleanup"));
    assert!(code == Some(2) && stderr.contains("shop.orders exists and was not made by dbdyno tpcc"), "{stderr}");
    assert!(refused("prepare").contains("shop.orders exists"));
    assert_eq!(server.sql("SHOW TABLES IN shop").trim(), "orders");
    assert!(refused("run").contains("there is no table shop.warehouse: make it"));
    assert!(refused("--mix=new_ordre run").contains("is not a transaction"));
}
