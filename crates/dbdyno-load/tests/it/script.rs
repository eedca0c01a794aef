//! `script` against a real MariaDB, and what it may change there: its own schema, and nothing else, however a statement
//! puts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Server, expect, json, text, wait_until, waited_for};

/// A script in a file of the server's folder.
struct Script<'a> {
    server: &'a Server,
    path: PathBuf,
}

impl<'a> Script<'a> {
    fn new(server: &'a Server, name: &str, sql: &str) -> Self {
        let path = server.file(name);
        fs::write(&path, sql).unwrap();
        Self { server, path }
    }

    fn command(&self, flags: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbdyno-load"));
        command.arg("script").arg(&self.path).args(["--no-defaults", "-uroot", "-S"]).arg(self.server.socket());
        command.args(flags.split_whitespace());
        command
    }

    fn does(&self, flags: &str) {
        expect(&mut self.command(flags), 0);
    }

    /// The result of a run.
    fn result(&self, flags: &str) -> Value {
        let path = self.server.file("result.json");
        expect(self.command(flags).arg("run").arg("--json").arg(&path), 0);
        json(&path)["runs"][0].clone()
    }

    /// What a command that fails with this code says.
    fn refused(&self, flags: &str, code: i32) -> String {
        text(&expect(&mut self.command(flags), code).stderr)
    }
}

fn count(run: &Value, kind: &str) -> u64 {
    run["operations"][kind]["count"].as_u64().unwrap_or(0)
}

const COUNTED: &str = "\
:id = sequence()
:group = uniform(-5, 5)
-- setup:
CREATE TABLE rows_ (id INT PRIMARY KEY, g INT, t VARCHAR(50), d CHAR(9), o VARCHAR(30), u CHAR(36));
CREATE TABLE again (id INT PRIMARY KEY, g INT);
-- name: add  weight: 3
:text = text(10, 40)
:digits = digits(9)
:o = one_of('it''s \\\\ \"so\"\\n': 3, NULL: 1)
:uuid = uuid()
BEGIN;
INSERT INTO rows_ VALUES (:id, :group, :text, :digits, :o, :uuid);
INSERT INTO again VALUES (:id, :group);
COMMIT;
-- name: change
:row = zipf(1, 100)
UPDATE rows_ SET g = g WHERE id = :row;
";

#[test]
fn the_server_counts_what_we_count_and_values_are_in_their_range() {
    let Some(server) = Server::start() else { return };
    let script = Script::new(&server, "counted.sql", COUNTED);
    let names = ["Com_insert", "Com_update", "Com_begin", "Com_commit", "Com_rollback"];
    let counters = || server.counters(names);
    for mode in ["auto", "disable"] {
        script.does("prepare");
        let before = (counters(), server.counter("Com_stmt_execute"));
        let run = script.result(&format!("-c 4 --events=2000 --warmup=100ms --io-threads=2 --db-ps-mode={mode}"));
        let after = (counters(), server.counter("Com_stmt_execute"));
        assert_eq!(run["events"], 2000);
        let [inserts, updates, begins, commits, rollbacks] = [0, 1, 2, 3, 4].map(|n| after.0[n] - before.0[n]);
        let warm = run["warmup_queries"].as_u64().unwrap();
        let (adds, changes) = (count(&run, "add.begin"), count(&run, "change.update_rows_"));
        assert_eq!(adds + changes, 2000);
        assert!((1400..1600).contains(&adds), "{adds}");
        for kind in ["add.insert_rows_", "add.insert_again", "add.commit"] {
            assert_eq!(count(&run, kind), adds, "{kind}");
        }
        assert_eq!(run["queries"].as_u64().unwrap(), 2 * adds + changes);
        assert_eq!(inserts + updates, 2 * adds + changes + warm);
        assert_eq!((begins, inserts), (commits, 2 * commits));
        assert_eq!(rollbacks, 0);
        let prepared = if mode == "auto" { inserts + updates } else { 0 };
        assert_eq!(after.1 - before.1, prepared);
        check_rows(&server, inserts / 2);
        script.does("cleanup");
    }
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_script"));
}

/// The rows that so many events made.
fn check_rows(server: &Server, events: u64) {
    let ask = |sql: &str| server.sql(&format!("USE dbdyno_script; SELECT {sql}")).trim().to_owned();
    // A sequence leaves nothing out and gives nothing twice, over threads, warm-up and run.
    assert_eq!(ask("COUNT(*), MIN(id), MAX(id) FROM rows_"), format!("{events}\t1\t{events}"));
    assert_eq!(ask("COUNT(*) FROM rows_ JOIN again USING (id, g)"), events.to_string());
    assert_eq!(ask("MIN(g), MAX(g), COUNT(DISTINCT g) FROM rows_"), "-5\t5\t11");
    assert_eq!(ask("MIN(LENGTH(t)), MAX(LENGTH(t)) FROM rows_"), "10\t40");
    assert_eq!(
        ask("COUNT(*) FROM rows_ WHERE t REGEXP '^[a-zA-Z0-9]+$' AND d REGEXP '^[0-9]{9}$'"),
        events.to_string()
    );
    assert_eq!(ask("COUNT(DISTINCT u), MIN(LENGTH(u)) FROM rows_"), format!("{events}\t36"));
    let share: f64 = ask("AVG(o IS NULL) FROM rows_").parse().unwrap();
    assert!((0.2..0.3).contains(&share), "{share}");
    let quoted = r#"MIN(BINARY o = 'it''s \\ \"so\"\n')"#;
    assert_eq!(ask(&format!("COUNT(DISTINCT o), {quoted} FROM rows_")), "1\t1");
}

#[test]
fn deadlocks_are_tried_again_and_counted() {
    let Some(server) = Server::start() else { return };
    let script = Script::new(
        &server,
        "pairs.sql",
        "-- setup:\nCREATE TABLE c (id INT PRIMARY KEY, n INT NOT NULL);\nINSERT INTO c VALUES (1, 0), (2, 0), (3, 0);\n\
         -- name: pair\n:a = uniform(1, 3)\n:b = uniform(1, 3)\nBEGIN;\n-- as: a\nUPDATE c SET n = n + 1 WHERE id = :a;\n\
         -- as: b\nUPDATE c SET n = n + 1 WHERE id = :b;\nCOMMIT;",
    );
    script.does("prepare");
    let before = server.counter("Com_rollback");
    let run = script.result("-c 8 --events=3000 --ignore-errors=1213,1205");
    assert_eq!(run["events"], 3000);
    // Every event was done once, whatever it took.
    assert_eq!(server.sql("SELECT SUM(n) FROM dbdyno_script.c").trim(), "6000");
    assert_eq!(count(&run, "pair.commit"), 3000);
    let errors = run["errors"].as_array().unwrap();
    let deadlocks: u64 = errors.iter().map(|error| error["count"].as_u64().unwrap()).sum();
    assert!(deadlocks > 0 && errors.iter().all(|error| error["code"] == 1213), "{errors:?}");
    assert_eq!(count(&run, "pair.begin"), 3000 + deadlocks);
    assert_eq!(count(&run, "rollback"), deadlocks);
    assert_eq!(server.counter("Com_rollback") - before, deadlocks);
    // Another error is no reason to try again.
    let script = Script::new(
        &server,
        "twice.sql",
        "-- name: twice\n:n = uniform(1, 3)\nBEGIN;\nINSERT INTO c VALUES (:n, 0);\nUPDATE c SET n = 0 WHERE id = :n;\nCOMMIT;",
    );
    let run = script.result("--events=10 --ignore-errors=1062");
    assert_eq!((count(&run, "twice.insert_c"), count(&run, "twice.commit")), (0, 10));
    assert_eq!(run["errors"][0]["count"], 10);
}

#[test]
fn what_others_made_is_left_alone() {
    let Some(server) = Server::start() else { return };
    let made = "CREATE TABLE parent (id INT PRIMARY KEY);\nCREATE TABLE child (id INT, FOREIGN KEY (id) REFERENCES parent (id));\n\
                CREATE VIEW v AS SELECT 1;\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END;\n";
    let script = Script::new(&server, "own.sql", &format!("-- setup:\n{made}-- name: a\nCALL p();"));
    server.sql("CREATE DATABASE theirs; CREATE TABLE theirs.items (i INT)");
    let objects = |schema: &str| server.sql(&format!("SHOW TABLES IN {schema}")).split_whitespace().count();

    // A schema of its own comes and goes as a whole.
    script.does("--events=5");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_script"));

    // An empty schema that was there before stays, without what prepare made; what came later stays too.
    server.sql("CREATE DATABASE empty");
    script.does("prepare --schema=empty");
    assert_eq!(objects("empty"), 4);
    assert!(script.refused("prepare --schema=empty", 2).contains("is prepared already"));
    script.does("run --schema=empty --events=5");
    server.sql("CREATE TABLE empty.later (i INT)");
    script.does("cleanup --schema=empty");
    assert_eq!(server.sql("SHOW TABLES IN empty").trim(), "later");
    script.does("cleanup --schema=no_such");

    // A schema that holds something else is none of its own, whatever the login may do.
    let whole = Script::new(
        &server,
        "both.sql",
        &format!("-- setup:\n{made}-- cleanup:\nDROP TABLE items;\n-- name: a\nDO 1;"),
    );
    for flags in ["prepare --schema=theirs", "cleanup --schema=theirs", "prepare --schema=theirs --whole-server"] {
        let stderr = whole.refused(flags, 2);
        assert!(
            stderr.contains("the schema theirs holds the table items") && stderr.contains("nothing was done"),
            "{stderr}"
        );
    }
    assert_eq!(server.sql("SHOW TABLES IN theirs").trim(), "items");

    // A setup that fails leaves nothing behind, whether the schema was there or not.
    server.sql("DROP TABLE empty.later");
    let script = Script::new(&server, "fails.sql", &format!("-- setup:\n{made}SELECT nothing;\n-- name: a\nDO 1;"));
    for schema in ["empty", "new"] {
        let message = script.refused(&format!("prepare --schema={schema}"), 1);
        assert!(message.contains("fails.sql:6:1: ") && message.contains("1054"), "{message}");
    }
    assert_eq!(server.sql("SHOW TABLES IN empty").trim(), "");
    assert!(!server.sql("SHOW DATABASES").contains("new"));
}

#[test]
fn what_a_killed_prepare_made_goes_with_cleanup() {
    let Some(server) = Server::start() else { return };
    let script = Script::new(
        &server,
        "slow.sql",
        "-- setup:\nCREATE TABLE a (i INT);\nCREATE VIEW v AS SELECT i FROM a;\nDO SLEEP(600);\n-- name: a\nDO 1;",
    );
    let mut prepare = script.command("prepare").spawn().unwrap();
    let at_work = "SELECT INFO FROM information_schema.PROCESSLIST";
    wait_until("the setup", || server.sql(at_work).contains("DO SLEEP(600)"));
    prepare.kill().unwrap();
    prepare.wait().unwrap();
    assert!(script.refused("prepare", 2).contains("is prepared already"));
    script.does("cleanup");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_script"));
}

#[test]
fn mistakes_are_found_before_the_run() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE DATABASE ours; CREATE TABLE ours.t (a VARCHAR(20))");
    let refused = |sql: &str, flags: &str, code| {
        Script::new(&server, "m.sql", sql).refused(&format!("--schema=ours run --events=1 {flags}"), code)
    };
    assert!(
        refused("DO 1;\nSELECT b FROM t;", "", 1).contains("m.sql:2:1: the server refuses this statement: error 1054")
    );
    assert!(
        refused("-- setup:\nCREATE TABLE u (i int);\n-- name: a\nSELECT * FROM u;", "", 1)
            .contains("run prepare first")
    );
    assert!(refused("-- connect:\nSET SESSION nothing = 1;\n-- name: a\nDO 1;", "", 1).contains("m.sql:2:1: "));
    assert!(refused("DO :x;", "", 2).contains("m.sql:1:4: :x is not defined"));
    assert!(refused("DO 1;", "--schema=other", 2).contains("there is no schema other: run prepare"));

    // Strings mean what they say, or the run is refused.
    let mode = "-- connect:\nSET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES';\n-- name: a\n";
    let message = refused(&format!("{mode}INSERT INTO t VALUES ('a\\\\b');"), "", 2);
    assert!(message.contains("m.sql:4:23: a backslash"), "{message}");
    let sql = format!("{mode}:q = one_of('it''s')\nINSERT INTO t VALUES (:q);");
    Script::new(&server, "q.sql", &sql).does("--schema=ours run --events=1 --db-ps-mode=disable");
    assert_eq!(server.sql("SELECT * FROM ours.t").trim(), "it's");

    // What cannot be prepared goes as text; tables may come with the run.
    let sql = ":q = one_of('DO 1')\n:i = sequence()\nEXECUTE IMMEDIATE :q;\nCREATE TEMPORARY TABLE x (i INT);\n\
               INSERT INTO x VALUES (:i);\nDROP TEMPORARY TABLE x;";
    let run = Script::new(&server, "p.sql", sql).result("--schema=ours --events=3 -c 2");
    assert_eq!((count(&run, "p.execute"), count(&run, "p.insert_x")), (3, 3));
}

#[test]
fn the_examples_run() {
    let Some(server) = Server::start() else { return };
    let example = |name: &str| Script {
        server: &server,
        path: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/examples").join(name),
    };
    let shop = example("shop.sql");
    shop.does("prepare --set=items=500");
    assert_eq!(server.sql("SELECT COUNT(*), MAX(id) FROM dbdyno_script.items").trim(), "500\t500");
    let run = shop.result("-c 4 --events=1000 --set=items=500 --ignore-errors=1213 --weights=bundle=0");
    assert_eq!(run["load"], "shop");
    assert_eq!(count(&run, "bundle.begin"), 0);
    assert_eq!(server.sql("SELECT COUNT(*) FROM dbdyno_script.orders").trim(), count(&run, "buy.commit").to_string());
    shop.does("cleanup");
    // The connect section is run once on each connection, however many runs there are.
    let text = fs::read_to_string(example("visits.sql").path).unwrap();
    let text = format!("{text}\n-- connect:\nCREATE TEMPORARY TABLE mine (i INT);\n");
    let visits = Script::new(&server, "visits.sql", &text);
    visits.does("-c 1,2 --events=100 --engine=aria");
    visits.does("prepare");
    assert_eq!(visits.result("--events=1")["engine"], "InnoDB");
    assert!(visits.refused("run --engine=aria", 1).contains("has a table in InnoDB, not in aria"));
    visits.does("cleanup");
    assert!(visits.refused("prepare --engine=no_such", 1).contains("no_such"));
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_script"));
}

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
            let stderr = text(&expect(&mut script(&server, &whole, "--events=1"), 1).stderr);
            assert!(
                stderr.contains("way.sql:2:1: ") && stderr.contains("only its own schema dbdyno_script"),
                "{stderr}"
            );
            assert_eq!(state(&server), before, "{section}: {sql}");
        }
    }
    let whole = "-- setup:\nCREATE TABLE own (i INT);\n-- cleanup:\nEXECUTE IMMEDIATE 'DELETE FROM theirs.items';\n\
        -- name: a\nDO 1;\n";
    let stderr = text(&expect(&mut script(&server, whole, "--events=1"), 1).stderr);
    assert!(stderr.contains("way.sql:4:1: ") && stderr.contains("error 1142"), "{stderr}");
    expect(&mut script(&server, &whole.replace("DELETE FROM theirs.items", "DO 1"), "cleanup"), 0);
    assert_eq!(state(&server), before);
    // --init-command is the user's too.
    let mut command = script(&server, "-- name: a\nDO 1;\n", "--schema=theirs run --events=1");
    let stderr = text(&expect(command.arg("--init-command=SET GLOBAL max_connections = 77"), 1).stderr);
    assert!(stderr.contains("error 1227"), "{stderr}");
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
    let stderr = as_low(2);
    assert!(stderr.contains("GRANT CREATE USER ON *.* TO 'low'@...") && stderr.contains("--whole-server"), "{stderr}");
    server.sql("GRANT CREATE USER ON *.* TO low");
    let stderr = as_low(2);
    let remedy = "GRANT ALL PRIVILEGES ON `dbdyno\\_script`.* TO 'low'@... WITH GRANT OPTION";
    assert!(stderr.contains(remedy) && stderr.contains("error 1044"), "{stderr}");
    assert!(!server.sql("SELECT User FROM mysql.user").contains("dbdyno"));
    server.sql("GRANT GRANT OPTION ON `dbdyno\\_script`.* TO low");
    assert_eq!(as_low(0), "");
    assert!(!server.sql("SELECT User FROM mysql.user").contains("dbdyno"));
}

#[test]
fn a_server_that_gives_all_accounts_more_is_refused() {
    let Some(server) = with_theirs() else { return };
    let refused = |grant: &str, expected: &str, revoke: &str| {
        server.sql(grant);
        let mut command = script(&server, "-- name: a\nDO 1;\n", "--schema=theirs run --events=1");
        let words = text(&expect(&mut command, 2).stderr);
        assert!(words.contains(expected) && words.contains("--whole-server"), "{words}");
        assert!(!server.sql("SELECT User FROM mysql.user").contains("dbdyno"));
        server.sql(revoke);
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
    let stderr = text(&expect(&mut script(&server, sql, "run --events=1"), 1).stderr);
    assert!(stderr.contains("error 1142"), "{stderr}");
    assert_eq!(server.sql("SHOW TABLES IN dbdynoxscript").trim(), "items");
}

fn accounts(server: &Server) -> String {
    server.sql("SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'dbdyno\\_%'").trim().to_owned()
}

/// How many of the script's own clients are connected.
const TALKING: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'dbdyno\\_%'";

/// Waits until the script runs.
fn await_run(server: &Server, running: &mut Child) {
    wait_until("two connections", || {
        assert!(running.try_wait().unwrap().is_none());
        server.sql(TALKING).trim() == "2"
    });
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
    wait_until("a new connection", || {
        assert!(running.try_wait().unwrap().is_none());
        server.sql(TALKING).trim() != "0"
    });
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
    let stderr = text(&expect(&mut script(&server, sql, "run --events=1"), 2).stderr);
    assert!(stderr.contains("another dbdyno script works on the schema dbdyno_script"), "{stderr}");
    expect(&mut script(&server, sql, "run --events=1 --whole-server"), 0);
    assert_eq!(accounts(&server), "1");
    assert!(running.try_wait().unwrap().is_none());
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(accounts(&server), "1");
    expect(&mut script(&server, sql, "run --events=1"), 0);
    assert_eq!(accounts(&server), "0");
}
