//! `replay-log` against a real MariaDB, by logs that it wrote itself.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Server, expect, json, text};

const DUMP: &str = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB;\n\
                    INSERT INTO t VALUES (1, 'one;'), (2, 'it''s two');\n";

/// What the logged sessions say. The words of it that may stand nowhere begin with `SECRET`.
const FIRST: &str = "SELECT v FROM t WHERE id = 1; SELECT 'SECRET1;\n# Time: 700101  0:16:40\n# User@Host: a[a] @ h []\n\
                     # Query_time: 1.0  Lock_time: 0.0\nDROP TABLE t;\n' AS v; \
                     INSERT INTO t VALUES (3, 'SECRET2\\\\'), (4, \"it's\"); SELECT SLEEP(0.3); UPDATE t SET v = 'x' WHERE id = 2";
const SECOND: &str = "BEGIN; SELECT COUNT(*) FROM t; DELETE FROM t WHERE id = 4; COMMIT; SELECT * FROM SECRET3";

/// A server with its slow and its general log.
fn logging() -> Option<(Server, [PathBuf; 2])> {
    let server = Server::start()?;
    server.sql(&format!("CREATE DATABASE shop; USE shop; {DUMP}"));
    let logs = [server.file("slow.log"), server.file("general.log")];
    let [slow, general] = logs.each_ref().map(|path| path.display().to_string());
    server.sql(&format!("SET GLOBAL slow_query_log_file = '{slow}'; SET GLOBAL general_log_file = '{general}'; SET GLOBAL long_query_time = 0"));
    server.sql("SET GLOBAL slow_query_log = 1; SET GLOBAL general_log = 1");
    say(&server, FIRST);
    sleep(Duration::from_millis(1200));
    say(&server, SECOND);
    // As logrotate has it done: the server writes its three lines again.
    server.sql("FLUSH LOGS; SELECT 5");
    server.sql("SET GLOBAL slow_query_log = 0; SET GLOBAL general_log = 0");
    Some((server, logs))
}

/// A session in the schema; its errors are part of the log.
fn say(server: &Server, sql: &str) {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "-uroot", "--force", "--comments", "shop", "-e", sql, "-S"]).arg(server.socket());
    command.output().unwrap();
}

fn replay(server: &Server, log: &Path, flags: &str) -> Command {
    let dump = server.file("dump.sql");
    fs::write(&dump, DUMP).unwrap();
    let mut command = server.load("replay-log");
    command.arg(log).arg("--setup").arg(dump).args(flags.split_whitespace());
    command
}

fn result(server: &Server, log: &Path, flags: &str) -> (Value, String) {
    let path = server.file("result.json");
    let series = server.file("series.csv");
    let mut command = replay(server, log, flags);
    command.arg("--json").arg(&path).arg("--series").arg(&series).arg("--hlog").arg(server.file("hlog"));
    let output = expect(&mut command, 0);
    let printed = text(&output.stdout) + &text(&output.stderr) + &fs::read_to_string(&path).unwrap();
    (json(&path)["runs"][0].clone(), printed)
}

fn count(run: &Value, kind: &str) -> u64 {
    run["operations"][kind]["count"].as_u64().unwrap_or(0)
}

#[test]
fn what_a_server_logged_is_said_again_and_shown_nowhere() {
    let Some((server, logs)) = logging() else { return };
    for log in logs {
        let name = log.file_name().unwrap().to_string_lossy().into_owned();
        let is_general = name.starts_with("general");
        expect(&mut replay(&server, &log, "prepare"), 0);
        let prepared = server.counters(["Com_insert", "Com_update", "Com_delete", "Com_drop_table"]);
        let (run, printed) = result(&server, &log, "--writes --ignore-errors=1146 run");
        let after = server.counters(["Com_insert", "Com_update", "Com_delete", "Com_drop_table"]);
        assert_eq!(after, [prepared[0] + 1, prepared[1] + 1, prepared[2] + 1, prepared[3]], "{name}");
        let rows = server.sql("SELECT id, HEX(v) FROM dbdyno_replay_log.t ORDER BY id");
        assert_eq!(
            rows.split_whitespace().collect::<Vec<_>>(),
            ["1", "6F6E653B", "2", "78", "3", "534543524554325C"],
            "{name}"
        );
        assert!((count(&run, "insert"), count(&run, "begin"), count(&run, "commit")) == (1, 1, 1), "{run}");
        // A slow log has no statement that the server could not parse or open.
        let errors: Vec<_> =
            run["errors"].as_array().unwrap().iter().map(|error| error["code"].as_u64().unwrap()).collect();
        assert!(errors.is_empty() && !is_general || errors == [1146], "{name} {errors:?}");
        assert!(!printed.contains("SECRET"), "{printed}");
        assert_eq!(run["log"]["form"], if is_general { "general query log" } else { "slow query log" });
        assert_eq!(run["log"]["not_sent"]["cut_off"], 0);
        assert_eq!(run["log"]["has_whole_seconds"], true);
        expect(&mut replay(&server, &log, "cleanup"), 0);
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_replay_log"));
    }
}

#[test]
fn times_are_those_of_the_log_and_shrink_with_the_speed() {
    let Some((server, [_, general])) = logging() else { return };
    let seconds = |speed: &str| {
        let (run, _) = result(&server, &general, &format!("--ignore-errors=1146 --speed={speed}"));
        assert_eq!(run["loop"]["kind"], "logged");
        (run["seconds_real"].as_f64().unwrap(), run["log"]["seconds"].as_f64().unwrap())
    };
    let (as_logged, log) = seconds("1");
    assert!((1.0..10.0).contains(&log), "{log}");
    assert!(as_logged >= log, "{as_logged} s for {log} s");
    let (quick, _) = seconds("4");
    assert!(quick >= log / 4.0 && quick < as_logged, "{quick} s for {log} s");
    let (at_once, _) = seconds("0");
    assert!(at_once < quick.max(1.0), "{at_once} s without waiting");
}

#[test]
fn the_server_is_the_guard_of_what_is_only_to_be_read() {
    let Some(server) = Server::start() else { return };
    server.sql(&format!("CREATE DATABASE theirs; USE theirs; {DUMP}DELIMITER //\nCREATE FUNCTION wipe() RETURNS INT BEGIN DELETE FROM theirs.t; RETURN 1; END//\n"));
    let log = server.file("general.log");
    let line = |sql: &str| format!("2026-11-23T12:59:07.302048Z\t    7 Query\t{sql}\n");
    let tables = || server.sql("SELECT COUNT(*) FROM theirs.t");
    server.sql("CREATE VIEW theirs.v AS SELECT theirs.wipe()");
    for sql in
        ["SELECT * FROM theirs.v", "SELECT 1 FROM theirs.t", "WITH a AS (SELECT 1) SELECT * FROM theirs.v JOIN a"]
    {
        fs::write(&log, line(sql)).unwrap();
        // The account of the replay reaches its own schema alone; the login reaches all, but its transactions only
        // read.
        let stderr = text(&expect(&mut replay(&server, &log, ""), 1).stderr);
        assert!(stderr.contains("first in line 1 of general.log") && !stderr.contains("theirs"), "{stderr}");
    }
    fs::write(&log, line("SELECT * FROM theirs.v")).unwrap();
    server.sql("CREATE DATABASE mine");
    let stderr = text(&expect(&mut replay(&server, &log, "--whole-server --schema=mine run"), 1).stderr);
    assert!(stderr.contains("1792"), "{stderr}");
    fs::write(&log, line("SELECT theirs.wipe()")).unwrap();
    let stderr = text(&expect(&mut replay(&server, &log, "--whole-server --schema=mine run"), 2).stderr);
    assert!(stderr.contains("(1 with functions that may do more than read): --writes"), "{stderr}");
    fs::write(&log, line("DELETE FROM theirs.t")).unwrap();
    let stderr = text(&expect(&mut replay(&server, &log, "--whole-server --schema=mine run"), 2).stderr);
    assert!(stderr.contains("nothing to send (1 writes): --writes also sends statements that write"), "{stderr}");
    assert_eq!(tables().trim(), "2");
    let (run, _) = result(&server, &log, "--whole-server --schema=mine --writes run");
    assert_eq!((count(&run, "delete"), tables().trim()), (1, "0"));
}

#[test]
fn no_log_ends_the_server_or_writes_a_file() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE DATABASE mine; CREATE TABLE mine.t (i INT)");
    let log = server.file("general.log");
    let file = |name: &str| server.file(name).display().to_string();
    let never = [
        "SET STATEMENT max_statement_time=10 FOR SHUTDOWN".to_owned(),
        "SET STATEMENT max_statement_time=10, lock_wait_timeout=1 FOR SET STATEMENT max_statement_time=10 FOR SHUTDOWN"
            .into(),
        "/*M!100000 SHUTDOWN */".into(),
        "/*!99999 ' */ /*!40000 SHUTDOWN */ /*!99999 ' */".into(),
        "EXECUTE IMMEDIATE 'SHUTDOWN'".into(),
        "EXECUTE IMMEDIATE CONCAT('SHUT', 'DOWN')".into(),
        "BEGIN NOT ATOMIC SHUTDOWN; END".into(),
        "SET NAMES utf8, GLOBAL max_connections = 55".into(),
        "SET @a = 1, @@global.max_connections = 55".into(),
        "INSERT INTO mysql.global_priv VALUES ('%', 'evil', '{}')".into(),
        format!("VALUES (1) INTO OUTFILE '{}'", file("out1")),
        format!("SET STATEMENT max_statement_time=10 FOR SELECT 1 INTO OUTFILE '{}'", file("out2")),
        format!("SELECT 1e5into outfile '{}'", file("out3")),
        format!("SELECT 1 /*!50000INTO OUTFILE '{}' */", file("out4")),
        format!("ANALYZE SELECT 1 INTO DUMPFILE '{}'", file("out5")),
        // By the SQL mode that the statement before it sets, this string ends earlier than it looks.
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'".into(),
        format!("SELECT '\\' INTO OUTFILE \"{}\" -- '", file("out6")),
        "SELECT 5".into(),
    ];
    let lines = never.iter().map(|sql| format!("2026-11-23T12:59:07.302048Z\t    7 Query\t{sql}\n"));
    fs::write(&log, lines.collect::<String>()).unwrap();
    let settings = || server.sql("SELECT @@max_connections, COUNT(*) FROM mysql.user WHERE user = 'evil'");
    let before = settings();
    for flags in ["", "--writes"] {
        let flags = format!("--whole-server --schema=mine --speed=0 --ignore-errors=all {flags} run");
        let (run, _) = result(&server, &log, &flags);
        assert_eq!((count(&run, "select"), count(&run, "set")), (1, 1), "{run}");
        assert_eq!(settings(), before, "{flags}");
    }
    let written: Vec<_> = (1..=6).filter(|number| server.file(&format!("out{number}")).exists()).collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn schemas_are_chosen_or_followed() {
    let Some(server) = Server::start() else { return };
    let log = server.file("general.log");
    let at = |rest: &str| format!("2026-11-23T12:59:07.302048Z\t    {rest}\n");
    let session = |thread, schema: &str| {
        at(&format!("{thread} Connect\ta@b on {schema} using Socket"))
            + &at(&format!("{thread} Query\tINSERT INTO t VALUES (9, DATABASE())"))
            + &at(&format!("{thread} Quit\t"))
    };
    fs::write(&log, [session(7, "shop"), session(8, "cr`m"), session(9, "shop")].concat()).unwrap();
    let stderr = text(&expect(&mut replay(&server, &log, "--writes"), 2).stderr);
    assert!(stderr.contains("in 2 schemas (shop: 2, cr`m: 1): choose one by --from-schema"), "{stderr}");
    let stderr = text(&expect(&mut replay(&server, &log, "--writes --from-schema=sho"), 2).stderr);
    assert!(stderr.contains("--from-schema=sho: ") && stderr.contains("shop: 2"), "{stderr}");
    let (run, _) = result(&server, &log, "--writes --from-schema=shop --ignore-errors=1062");
    assert_eq!(
        (count(&run, "insert"), &run["log"]["not_sent"]["other_schemas"], &run["clients"]),
        (1, &1.into(), &2.into())
    );
    let stderr = text(&expect(&mut replay(&server, &log, "--writes --from-schema=shop --clients=1"), 2).stderr);
    assert!(stderr.contains("--clients=1") && stderr.contains("give --clients=2"), "{stderr}");

    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT, v TEXT); CREATE DATABASE mine");
    let whole = "--writes --whole-server --schema=mine run";
    let stderr = text(&expect(&mut replay(&server, &log, whole), 2).stderr);
    assert!(stderr.contains("general.log:5: the server has no schema cr`m"), "{stderr}");
    server.sql("CREATE DATABASE `cr``m`; CREATE TABLE `cr``m`.t (id INT, v TEXT)");
    let (run, _) = result(&server, &log, whole);
    assert_eq!(count(&run, "insert"), 3);
    assert_eq!(
        server
            .sql("SELECT GROUP_CONCAT(v) FROM shop.t; SELECT v FROM `cr``m`.t")
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["shop,shop", "cr`m"]
    );
}

#[test]
fn sessions_have_connections_of_their_own() {
    let Some(server) = Server::start() else { return };
    let log = server.file("general.log");
    let at = |second: u32, rest: &str| format!("2026-11-23T12:59:{second:02}.302048Z\t    {rest}\n");
    let all = [
        at(7, "7 Query\tCREATE TEMPORARY TABLE mine (i INT)"),
        at(7, "8 Query\tCREATE TEMPORARY TABLE mine (i INT)"),
        at(8, "7 Query\tINSERT INTO mine VALUES (1)"),
        at(8, "7 Quit\t"),
        at(20, "9 Query\tCREATE TEMPORARY TABLE mine (i INT)"),
        at(21, "8 Query\tINSERT INTO mine VALUES (2)"),
        at(21, "9 Query\tINSERT INTO mine VALUES (3)"),
    ];
    fs::write(&log, all.concat()).unwrap();
    for speed in ["0", "100"] {
        let (run, _) = result(&server, &log, &format!("--writes --speed={speed} --io-threads=2"));
        // The third session has the first one's connection, anew.
        let numbers = ["clients", "events", "reconnects"].map(|name| run[name].as_u64().unwrap());
        assert_eq!((numbers, count(&run, "insert")), ([2, 6, 1], 3));
    }
    let stderr = text(&expect(&mut replay(&server, &log, "--warmup=1"), 2).stderr);
    assert!(stderr.contains("--warmup means nothing for a log"), "{stderr}");
}

#[test]
fn the_state_of_a_session_is_followed() {
    let Some(server) = Server::start() else { return };
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.item (i INT); CREATE DATABASE shop2; CREATE TABLE shop2.orders (i INT); \
         INSERT INTO shop2.orders VALUES (1)",
    );
    let log = server.file("general.log");
    let at = |rest: &str| format!("2026-11-23T12:59:07.302048Z\t    7 {rest}\n");
    let all = [
        at("Connect\ta@b on  using TCP/IP"),
        at("Query\tUSE `shop`"),
        at("Query\tSELECT COUNT(*) FROM item"),
        at("Query\tuse shop2; SELECT COUNT(*) FROM orders; SELECT 1"),
        at("Change user\ta@b on shop using TCP/IP"),
        at("Query\tSELECT COUNT(*) FROM item"),
        at("Query\tCREATE TEMPORARY TABLE mine SELECT 1"),
        at("Query\tSELECT * FROM mine"),
        at("Query\tPREPARE s FROM ..."),
        at("Query\tEXECUTE s"),
        at("Execute\tSELECT 3"),
        at("Query\tSET STATEMENT max_statement_time=5 FOR SELECT 4"),
        at("Query\tSET STATEMENT max_statement_time=5 FOR DELETE FROM item"),
        at("Quit\t"),
    ];
    fs::write(&log, all.concat()).unwrap();
    let (run, printed) = result(&server, &log, "--whole-server --schema=shop --speed=0 run");
    assert_eq!((count(&run, "select"), &run["clients"], &run["reconnects"]), (6, &1.into(), &1.into()), "{printed}");
    let not_sent = &run["log"]["not_sent"];
    let counts = ["writes", "unmade", "hidden", "sessions"].map(|reason| not_sent[reason].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 1, 5], "{not_sent}");
    assert_eq!((&run["log"]["entries"], &run["log"]["statements"]), (&16.into(), &6.into()));
    assert_eq!(run["log"]["lines"]["unmade"], serde_json::json!([8, 10]));
    // Of one schema alone.
    let (run, _) = result(&server, &log, "--from-schema=shop2 --schema=shop2 --speed=0 --whole-server run");
    assert_eq!(count(&run, "select"), 2);
}

#[test]
fn what_a_routine_wrote_is_written_once() {
    let Some(server) = Server::start() else { return };
    let made = "CREATE DATABASE shop; USE shop; CREATE TABLE cnt (id INT PRIMARY KEY, n INT); INSERT INTO cnt VALUES (1, 0); \
                CREATE PROCEDURE bump(IN k INT) UPDATE cnt SET n = n + 1 WHERE id = k";
    server.sql(made);
    let log = server.file("slow.log");
    // As a server writes it that logs what routines run.
    let path = log.display();
    server.sql(&format!(
        "SET GLOBAL slow_query_log_file = '{path}'; SET GLOBAL long_query_time = 0; SET GLOBAL slow_query_log = 1"
    ));
    server.sql("SET log_slow_disabled_statements = ''; USE shop; CALL bump(1); SELECT 5");
    server.sql("SET GLOBAL slow_query_log = 0; UPDATE shop.cnt SET n = 0");
    assert!(fs::read_to_string(&log).unwrap().contains("# Stored_routine: shop.bump"));
    let (run, printed) =
        result(&server, &log, "--whole-server --writes --schema=shop --speed=0 --ignore-errors=all run");
    assert_eq!((count(&run, "call"), server.sql("SELECT n FROM shop.cnt").trim()), (1, "1"), "{printed}");
    assert_eq!(run["log"]["not_sent"]["routines"], 1);
}

#[test]
fn a_dump_of_a_server_that_replicates_is_a_setup() {
    let Some(server) = Server::start() else { return };
    let log = server.file("general.log");
    fs::write(&log, "2026-11-23T12:59:07.302048Z\t    7 Query\tSELECT v FROM item\n").unwrap();
    let dump = server.file("dump.sql");
    let text = "SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;\nSET @@SESSION.SQL_LOG_BIN= 0;\n\
                SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '';\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;\nUSE `shop`;\n\
                CREATE TABLE t (v INT);\nINSERT INTO t VALUES (1);\n/*!50001 CREATE ALGORITHM=UNDEFINED */\n\
                /*!50013 DEFINER=`appowner`@`%` SQL SECURITY DEFINER */\n/*!50001 VIEW `item` AS select `t`.`v` AS `v` from `t` */;\n\
                SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;\n";
    fs::write(&dump, text).unwrap();
    let mut command = server.load("replay-log");
    let output = expect(command.arg(&log).arg("--setup").arg(&dump), 0);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in [
        "3 statements (first in line 2) about the binary log and replication",
        "2 statements (first in line 4) that make or enter a schema",
        "1 statement (first in line 8) with a DEFINER",
    ] {
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn a_mistake_in_a_dump_is_named_without_its_text() {
    let Some(server) = Server::start() else { return };
    let log = server.file("general.log");
    fs::write(&log, "2026-11-23T12:59:07.302048Z\t    7 Query\tSELECT 1\n").unwrap();
    let dump = server.file("wrong.sql");
    fs::write(&dump, "CREATE TABLE t (i INT);\nINSERT INTO t VALUES ('SECRET');\n").unwrap();
    let mut command = server.load("replay-log");
    let stderr = text(&expect(command.arg(&log).arg("--setup").arg(&dump), 1).stderr);
    assert!(
        stderr.contains("wrong.sql:2: the server refuses this statement: error 1366") && !stderr.contains("SECRET"),
        "{stderr}"
    );
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_replay_log"));
}

#[test]
fn what_routines_ran_of_a_general_log_is_written_once() {
    let Some(server) = Server::start() else { return };
    let made = "CREATE DATABASE shop; USE shop; CREATE TABLE cnt (id INT PRIMARY KEY, n INT); INSERT INTO cnt VALUES (1, 0); \
                CREATE TABLE aud (w VARCHAR(9));\nDELIMITER //\n\
                CREATE PROCEDURE bump() BEGIN UPDATE cnt SET n = n + 1; INSERT INTO aud VALUES ('bump'); END//\n\
                CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO aud VALUES ('f'); RETURN 1; END//\n\
                CREATE TRIGGER tr AFTER UPDATE ON cnt FOR EACH ROW INSERT INTO aud VALUES ('tr')//\nDELIMITER ;\n";
    server.sql(made);
    let log = server.file("general.log");
    server.sql(&format!("SET GLOBAL general_log_file = '{}'; SET GLOBAL general_log = 1", log.display()));
    // One that logs what procedures run; the last of the statements is the client's own.
    let calls = "SET log_disabled_statements = ''; CALL bump(); SELECT f(); UPDATE cnt SET n = n + 10; CALL bump(); \
                 UPDATE cnt SET n = n + 1";
    server.sql(&format!("USE shop; {calls}"));
    server.sql("SET GLOBAL general_log = 0");
    let rows = || server.sql("SELECT n FROM shop.cnt; SELECT w, COUNT(*) FROM shop.aud GROUP BY w ORDER BY w");
    let once = rows();
    assert_eq!(once.split_whitespace().collect::<Vec<_>>(), ["13", "bump", "2", "f", "1", "tr", "4"]);
    assert!(fs::read_to_string(&log).unwrap().matches("INSERT INTO aud").count() == 7);
    server.sql("UPDATE shop.cnt SET n = 0; DELETE FROM shop.aud");
    let (run, printed) = result(&server, &log, "--whole-server --writes --schema=shop --speed=0 run");
    assert_eq!(rows(), once, "{printed}");
    assert_eq!((run["log"]["not_sent"]["routines"].as_u64(), run["log"]["unknown_calls"].as_u64()), (Some(9), Some(0)));
}

#[test]
fn a_table_that_only_a_skipped_write_made_is_not_read() {
    let Some(server) = Server::start() else { return };
    let log = server.file("general.log");
    let line = |sql: &str| format!("2026-11-23T12:59:07.302048Z\t    7 Query\t{sql}\n");
    let text = line("CREATE TABLE IF NOT EXISTS t (id INT)")
        + &line("SELECT COUNT(*) FROM t")
        + &line("CREATE TABLE report AS SELECT 1 AS id")
        + &line("SELECT report.id FROM report")
        + &line("SELECT id AS report FROM t");
    fs::write(&log, text).unwrap();
    let (run, printed) = result(&server, &log, "");
    assert_eq!((count(&run, "select"), run["log"]["not_sent"]["unmade"].as_u64()), (2, Some(1)), "{printed}");
    assert_eq!(run["log"]["entries"], 5);
}
