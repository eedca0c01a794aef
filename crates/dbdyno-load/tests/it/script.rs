//! `script` against a real MariaDB.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Server, expect, json, text};
use serde_json::Value;

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
        let said = whole.refused(flags, 2);
        assert!(
            said.contains("the schema theirs holds the table items") && said.contains("nothing was done"),
            "{said}"
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
    let start = Instant::now();
    while !server.sql("SELECT INFO FROM information_schema.PROCESSLIST").contains("DO SLEEP(600)") {
        assert!(start.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(20));
    }
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
