//! What `script` may change on a real MariaDB: its own schema, and nothing else, however a statement puts it.
use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Server, expect, text, waited_for};
use rustix::process::{Pid, Signal, kill_process};

/// What belongs to others: rows, a routine that drops them, a function that deletes them.
const THEIRS: &str = "CREATE DATABASE theirs; USE theirs; CREATE TABLE items (i INT PRIMARY KEY);
    INSERT INTO items VALUES (1), (2), (3); CREATE TABLE more (i INT); INSERT INTO more VALUES (1);
    CREATE PROCEDURE wipe() DELETE FROM theirs.items;
    CREATE FUNCTION taken() RETURNS INT RETURN (SELECT MAX(i) FROM theirs.items);";

fn with_theirs() -> Option<Server> {
    let server = Server::start()?;
    server.sql(THEIRS);
    Some(server)
}

fn script(server: &Server, sql: &str, flags: &str) -> Command {
    let path = server.file("way.sql");
    fs::write(&path, sql).unwrap();
    let mut command = server.load("script");
    command.arg(path).args(flags.split_whitespace());
    command
}

/// All that a script must leave as it was.
fn state(server: &Server) -> String {
    let accounts = "SELECT User, Host FROM mysql.user ORDER BY 1, 2; SELECT User, Db FROM mysql.db ORDER BY 1, 2;";
    let things = "SHOW DATABASES; CHECKSUM TABLE theirs.items, theirs.more; SHOW TABLES IN theirs; \
        SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN ('sys', 'mysql');";
    let variables = "SHOW GLOBAL VARIABLES WHERE Variable_name NOT IN ('gtid_binlog_pos', 'gtid_current_pos');";
    server.sql(&format!("{accounts} {things} {variables}"))
}

/// Statements that would change something outside of the schema, and the server's error.
const BLOCKS: [(&str, u16); 31] = [
    ("DELETE FROM theirs.items", 1142),
    ("INSERT INTO theirs.items VALUES (9)", 1142),
    ("REPLACE INTO theirs.items VALUES (1)", 1142),
    ("UPDATE theirs.items SET i = i + 10", 1142),
    ("DROP TABLE theirs.items", 1142),
    ("TRUNCATE theirs.items", 1142),
    ("ALTER TABLE theirs.items ADD j INT", 1142),
    ("RENAME TABLE own TO theirs.own", 1142),
    ("CREATE TABLE theirs.x (i INT)", 1142),
    ("DROP DATABASE theirs", 1044),
    ("CREATE DATABASE others", 1044),
    ("USE theirs", 1044),
    ("LOCK TABLES theirs.items WRITE", 1044),
    ("EXECUTE IMMEDIATE 'DELETE FROM theirs.items'", 1142),
    ("BEGIN NOT ATOMIC DELETE FROM theirs.items; END", 1142),
    ("CALL wipe()", 1142),
    ("CALL theirs.wipe()", 1370),
    ("SELECT wiping()", 1142),
    ("SELECT theirs.taken()", 1370),
    ("INSERT INTO triggering VALUES (1)", 1142),
    ("CREATE OR REPLACE VIEW v AS SELECT * FROM theirs.items", 1142),
    ("DELETE a FROM theirs.items a JOIN own ON a.i = own.i", 1142),
    ("UPDATE own JOIN theirs.items a ON a.i = own.i SET a.i = 7", 1142),
    ("LOAD DATA INFILE '/etc/hostname' INTO TABLE theirs.items", 1142),
    ("LOAD DATA INFILE '/etc/hostname' INTO TABLE own", 1045),
    ("SELECT 1 INTO OUTFILE '/tmp/dbdyno-script-account'", 1227),
    ("SET GLOBAL max_connections = 77", 1227),
    ("SET GLOBAL innodb_flush_log_at_trx_commit = 0", 1227),
    ("GRANT ALL ON theirs.* TO CURRENT_USER", 1044),
    ("SET PASSWORD FOR root@localhost = PASSWORD('x')", 1044),
    ("CREATE DEFINER = root@localhost PROCEDURE root() DELETE FROM theirs.items", 1227),
];

const SETUP: &str = "-- setup:
CREATE TABLE own (i INT);
INSERT INTO own VALUES (1);
CREATE TABLE triggering (i INT);
CREATE PROCEDURE wipe() DELETE FROM theirs.items;
DELIMITER //
CREATE FUNCTION wiping() RETURNS INT BEGIN DELETE FROM theirs.items; RETURN 1; END//
DELIMITER ;
CREATE TRIGGER t AFTER INSERT ON triggering FOR EACH ROW DELETE FROM theirs.items;
";

#[test]
fn the_server_refuses_what_a_block_would_change_elsewhere() {
    let Some(server) = with_theirs() else { return };
    let before = state(&server);
    for (sql, code) in BLOCKS {
        let whole = format!("{SETUP}-- name: a\n{sql};\n");
        let message = text(&expect(&mut script(&server, &whole, "--events=1"), 1).stderr);
        assert!(message.contains(&format!("error {code}")), "{sql}: {message}");
        assert!(
            message.contains("the script's account may change only its own schema dbdyno_script"),
            "{sql}: {message}"
        );
        assert_eq!(state(&server), before, "{sql}");
    }
    // The same sent as prepared statements, with a value.
    let whole = format!("{SETUP}-- name: a\n:i = uniform(1, 3)\nDELETE FROM theirs.items WHERE i = :i;\n");
    expect(&mut script(&server, &whole, "--events=1"), 1);
    assert_eq!(state(&server), before);
}

#[test]
fn the_server_refuses_it_in_every_section() {
    let Some(server) = with_theirs() else { return };
    let before = state(&server);
    for section in ["setup", "connect"] {
        for sql in ["SET GLOBAL max_connections = 77", "EXECUTE IMMEDIATE 'DROP TABLE theirs.items'"] {
            let whole = format!("-- {section}:\n{sql};\n-- setup:\nDO 1;\n-- name: a\nDO 1;\n");
            let said = text(&expect(&mut script(&server, &whole, "--events=1"), 1).stderr);
            assert!(said.contains("way.sql:2:1: ") && said.contains("only its own schema dbdyno_script"), "{said}");
            assert_eq!(state(&server), before, "{section}: {sql}");
        }
    }
    let whole = "-- setup:\nCREATE TABLE own (i INT);\n-- cleanup:\nEXECUTE IMMEDIATE 'DELETE FROM theirs.items';\n\
        -- name: a\nDO 1;\n";
    let said = text(&expect(&mut script(&server, whole, "--events=1"), 1).stderr);
    assert!(said.contains("way.sql:4:1: ") && said.contains("error 1142"), "{said}");
    expect(&mut script(&server, &whole.replace("DELETE FROM theirs.items", "DO 1"), "cleanup"), 0);
    assert_eq!(state(&server), before);
    // --init-command is the user's too.
    let mut command = script(&server, "-- name: a\nDO 1;\n", "--schema=theirs run --events=1");
    let said = text(&expect(command.arg("--init-command=SET GLOBAL max_connections = 77"), 1).stderr);
    assert!(said.contains("error 1227"), "{said}");
    assert_eq!(state(&server), before);
}

#[test]
fn the_whole_server_is_changed_only_where_that_is_said() {
    let Some(server) = with_theirs() else { return };
    let sql = "-- setup:\nCREATE TABLE own (i INT);\n-- name: a\nDELETE FROM theirs.items;\n";
    expect(&mut script(&server, sql, "--events=1 --whole-server"), 0);
    assert_eq!(server.sql("SELECT COUNT(*) FROM theirs.items").trim(), "0");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_script"));
}

#[test]
fn without_the_rights_to_make_an_account_nothing_is_run() {
    let Some(server) = with_theirs() else { return };
    server.sql("CREATE USER low IDENTIFIED BY 'x'; GRANT ALL ON `dbdyno\\_script`.* TO low");
    let as_low = |code| {
        let mut command = script(&server, "-- setup:\nCREATE TABLE own (i INT);\n-- name: a\nDO 1;\n", "--events=5");
        text(&expect(command.arg("-ulow").env("MYSQL_PWD", "x"), code).stderr)
    };
    let said = as_low(2);
    assert!(said.contains("GRANT CREATE USER ON *.* TO 'low'@...") && said.contains("--whole-server"), "{said}");
    server.sql("GRANT CREATE USER ON *.* TO low");
    let said = as_low(2);
    let remedy = "GRANT ALL PRIVILEGES ON `dbdyno\\_script`.* TO 'low'@... WITH GRANT OPTION";
    assert!(said.contains(remedy) && said.contains("error 1044"), "{said}");
    assert!(!server.sql("SELECT User FROM mysql.user").contains("dbdyno"));
    server.sql("GRANT GRANT OPTION ON `dbdyno\\_script`.* TO low");
    assert_eq!(as_low(0), "");
    assert!(!server.sql("SELECT User FROM mysql.user").contains("dbdyno"));
}

#[test]
fn a_server_that_gives_all_accounts_more_is_refused() {
    let Some(server) = with_theirs() else { return };
    let refused = |given: &str, said: &str, taken: &str| {
        server.sql(given);
        let mut command = script(&server, "-- name: a\nDO 1;\n", "--schema=theirs run --events=1");
        let words = text(&expect(&mut command, 2).stderr);
        assert!(words.contains(said) && words.contains("--whole-server"), "{words}");
        assert!(!server.sql("SELECT User FROM mysql.user").contains("dbdyno"));
        server.sql(taken);
    };
    refused("GRANT SUPER ON *.* TO PUBLIC", "GRANT SUPER ON *.* TO PUBLIC", "REVOKE SUPER ON *.* FROM PUBLIC");
    refused(
        "GRANT SELECT ON other.* TO PUBLIC",
        "GRANT SELECT ON `other`.* TO PUBLIC",
        "REVOKE SELECT ON other.* FROM PUBLIC",
    );
    let rows = "INSERT INTO mysql.db (Host, Db, User, Insert_priv) VALUES ('%', 'test', '', 'Y'), ('%', 'test\\\\_%', '', 'Y'), \
        ('%', 'wide', '', 'Y'); FLUSH PRIVILEGES;";
    refused(
        rows,
        "schemas called test, by rows of mysql.db",
        "DELETE FROM mysql.db WHERE Db = 'test'; FLUSH PRIVILEGES",
    );
    refused("DO 1", "schemas called test_dbdyno", "DELETE FROM mysql.db WHERE Db LIKE 'test%'; FLUSH PRIVILEGES");
    refused("CREATE DATABASE wide", "rights on the schema wide", "DROP DATABASE wide");
    let mut command = script(&server, "-- name: a\nDO 1;\n", "--schema=theirs run --events=1");
    expect(&mut command, 0);
}

#[test]
fn names_that_only_look_alike_are_out_of_reach() {
    let Some(server) = with_theirs() else { return };
    server.sql("CREATE DATABASE dbdynoxscript; CREATE TABLE dbdynoxscript.items (i INT)");
    let sql = "-- name: a\nDROP TABLE dbdynoxscript.items;\n";
    server.sql("CREATE DATABASE dbdyno_script");
    let said = text(&expect(&mut script(&server, sql, "run --events=1"), 1).stderr);
    assert!(said.contains("error 1142"), "{said}");
    assert_eq!(server.sql("SHOW TABLES IN dbdynoxscript").trim(), "items");
}

fn accounts(server: &Server) -> String {
    server.sql("SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'dbdyno\\_%'").trim().to_owned()
}

/// Waits until the script runs.
fn await_run(server: &Server, running: &mut Child) {
    let start = Instant::now();
    let talking = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'dbdyno\\_%'";
    while server.sql(talking).trim() != "2" {
        assert!(start.elapsed() < Duration::from_secs(60) && running.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_run_drops_its_account() {
    let Some(server) = Server::start() else { return };
    let sql = "-- setup:\nCREATE TABLE own (i INT);\n-- name: a\nDO SLEEP(.01);\n";
    for signal in [Signal::INT, Signal::TERM] {
        let mut running = script(&server, sql, "--duration=600").spawn().unwrap();
        await_run(&server, &mut running);
        kill_process(Pid::from_child(&running), signal).unwrap();
        assert_eq!(waited_for(&mut running).0, Some(130));
        assert_eq!(accounts(&server), "0");
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_script"));
    }
}

#[test]
fn a_server_that_was_started_again_loses_the_account_at_the_end() {
    let Some(mut server) = Server::start() else { return };
    server.sql("CREATE DATABASE dbdyno_script");
    let sql = "-- name: a\nDO SLEEP(.01);\n";
    let mut running = script(&server, sql, "run --duration=600 --reconnect=60s").spawn().unwrap();
    await_run(&server, &mut running);
    server.kill();
    server.start_again();
    let start = Instant::now();
    let talking = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'dbdyno\\_%'";
    while server.sql(talking).trim() == "0" {
        assert!(start.elapsed() < Duration::from_secs(60) && running.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    assert_eq!(waited_for(&mut running).0, Some(130));
    assert_eq!(accounts(&server), "0");
}

#[test]
fn an_account_that_a_killed_run_left_goes_with_the_next_one() {
    let Some(server) = with_theirs() else { return };
    server.sql("CREATE DATABASE dbdyno_script");
    let sql = "-- name: a\nDO SLEEP(.01);\n";
    let mut running = script(&server, sql, "run --duration=600").spawn().unwrap();
    await_run(&server, &mut running);
    // Another one beside it would take its account away.
    let said = text(&expect(&mut script(&server, sql, "run --events=1"), 2).stderr);
    assert!(said.contains("another dbdyno script works on the schema dbdyno_script"), "{said}");
    expect(&mut script(&server, sql, "run --events=1 --whole-server"), 0);
    assert_eq!(accounts(&server), "1");
    assert!(running.try_wait().unwrap().is_none());
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(accounts(&server), "1");
    expect(&mut script(&server, sql, "run --events=1"), 0);
    assert_eq!(accounts(&server), "0");
}
