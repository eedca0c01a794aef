//! `smack` against a real MariaDB.

use dbdyno_load::error::Error;
use dbdyno_load::protocol::session::Session;
use dbdyno_load::smack::VERB;
use dbdyno_load::values::Values;
use dbdyno_load::workload::Stepwise;
use serde_json::Value;

use crate::common::client::{self, over_socket};
use crate::common::{Server, drawn, expect, json, text};

fn connected(server: &Server) -> Session {
    client::session(&over_socket(&server.socket()))
}

type Flags<'a> = &'a [(&'static str, &'a str)];

fn smack(load: &str, flags: Flags<'_>) -> Box<dyn Stepwise> {
    let values = Values::new(flags.iter().map(|(name, value)| (*name, Some(*value))).collect());
    (VERB.workload)(&values, load).unwrap()
}

fn prepare(session: &mut Session, flags: Flags<'_>) {
    smack("select", flags).prepare(session, &mut false).unwrap();
}

fn check(session: &mut Session, load: &str, flags: Flags<'_>) -> Result<Option<String>, String> {
    smack(load, flags).check(session).map(|state| state.engine).map_err(|error| error.to_string())
}

#[test]
fn rows_are_prepared_as_asked() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    for (key, size) in [("integer", "LENGTH(data) + 8"), ("char", "LENGTH(data) + 25")] {
        let flags =
            [("rows", "3000"), ("row-size", "2000"), ("key", key), ("engine", "MyISAM"), ("compressible", "20")];
        prepare(&mut session, &flags);
        let sizes = format!("SELECT COUNT(*), COUNT(DISTINCT data), MIN({size}), MAX({size}) FROM dbdyno_smack.smack");
        assert_eq!(server.sql(&sizes).trim(), "3000\t3000\t2000\t2000");
        assert_eq!(check(&mut session, "select", &flags), Ok(Some("MyISAM".into())));
        let compressed =
            server.sql("SELECT ROUND(AVG(LENGTH(COMPRESS(data)) / LENGTH(data)), 1) FROM dbdyno_smack.smack");
        assert_eq!(compressed.trim(), "0.8");
        smack("select", &flags).cleanup(&mut session).unwrap();
        assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
    }
}

#[test]
fn rows_as_large_as_they_may_be_are_prepared() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    for key in ["integer", "char"] {
        let flags = [("rows", "40"), ("row-size", "65000"), ("key", key)];
        prepare(&mut session, &flags);
        assert_eq!(check(&mut session, "update", &flags), Ok(Some("InnoDB".into())));
        smack("select", &flags).cleanup(&mut session).unwrap();
    }
}

#[test]
fn a_table_that_does_not_fit_is_refused_with_the_remedy() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    let message = |session: &mut Session, load: &str, flags: Flags<'_>| check(session, load, flags).unwrap_err();
    let missing = message(&mut session, "select", &[]);
    assert!(missing.contains("no table dbdyno_smack.smack") && missing.contains("prepare"), "{missing}");
    prepare(&mut session, &[("rows", "1000")]);
    let ours = [("rows", "1000")];
    let again = smack("select", &ours).prepare(&mut session, &mut false).unwrap_err();
    assert!(
        matches!(&again, Error::Usage(text) if text.contains("exists already") && text.contains("cleanup")),
        "{again}"
    );
    for load in ["insert", "select", "update", "delete", "mixed"] {
        assert!(check(&mut session, load, &ours).is_ok());
        let other = message(&mut session, load, &[("rows", "1000"), ("row-size", "512")]);
        assert!(other.contains("data varbinary(1016)") && other.contains("data varbinary(504)"), "{other}");
        assert!(message(&mut session, load, &[("rows", "1000"), ("key", "char")]).contains("id char(25)"));
        let engine = message(&mut session, load, &[("rows", "1000"), ("engine", "myisam")]);
        assert!(engine.contains("InnoDB instead of myisam") && engine.contains("cleanup"), "{engine}");
    }
    assert!(message(&mut session, "select", &[("rows", "2000")]).contains("lacks 50 of 100 keys"));
    assert!(check(&mut session, "insert", &[("rows", "2000")]).is_ok());
    server.sql("DELETE FROM dbdyno_smack.smack WHERE id % 10 = 0");
    assert!(message(&mut session, "delete", &ours).contains("keys looked up between 1 and --rows=1000"));
}

#[test]
fn an_engine_that_is_not_there_leaves_nothing() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    let failed = smack("select", &[("engine", "rocket")]).prepare(&mut session, &mut false).unwrap_err();
    assert!(failed.to_string().contains("rocket"), "{failed}");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
    // A server that takes another engine instead, as old ones do.
    server.sql("SET GLOBAL sql_mode = ''");
    let mut session = connected(&server);
    let failed = smack("select", &[("engine", "rocket")]).prepare(&mut session, &mut false).unwrap_err();
    assert!(failed.to_string().contains("InnoDB instead of rocket"), "{failed}");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
}

#[test]
fn what_is_not_ours_stays() {
    let Some(server) = Server::start() else { return };
    let mut session = connected(&server);
    server.sql("CREATE SCHEMA precious; CREATE TABLE precious.smack (id bigint) COMMENT 'dbdyno smack, mine'");
    let there = [("schema", "precious"), ("rows", "10")];
    let foreign = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Usage(text) if text.contains("not made by") && text.contains("--schema")));
    };
    foreign(smack("select", &there).prepare(&mut session, &mut false));
    foreign(smack("select", &there).check(&mut session).map(drop));
    foreign(smack("select", &there).cleanup(&mut session));
    assert_eq!(server.sql("SHOW TABLES IN precious").trim(), "smack");
    // A schema that was there stays when our table goes, and so does one of ours that holds more by then.
    server.sql("DROP TABLE precious.smack");
    prepare(&mut session, &there);
    smack("select", &there).cleanup(&mut session).unwrap();
    assert!(server.sql("SHOW DATABASES").contains("precious"));
    prepare(&mut session, &[("rows", "10")]);
    server.sql("CREATE FUNCTION dbdyno_smack.one() RETURNS INT RETURN 1");
    smack("select", &[]).cleanup(&mut session).unwrap();
    assert_eq!(server.sql("SELECT dbdyno_smack.one()").trim(), "1");
    assert_eq!(server.sql("SHOW TABLES IN dbdyno_smack"), "");
    smack("select", &[]).cleanup(&mut session).unwrap();
}

/// Runs `line` and gives the runs of its result.
fn runs(server: &Server, line: &str) -> Vec<Value> {
    let path = server.file("r.json");
    expect(server.load(&format!("smack {line}")).arg("--json").arg(&path), 0);
    json(&path)["runs"].as_array().unwrap().clone()
}

fn count(run: &Value, kind: &str) -> u64 {
    run["operations"][kind]["count"].as_u64().unwrap_or(0)
}

const COUNTERS: [&str; 4] = ["Com_insert", "Com_select", "Com_update", "Com_delete"];

/// What a check before a run asks for.
const LOOKED_UP: u64 = 4;

#[test]
fn the_server_counts_what_we_count() {
    let Some(server) = Server::start() else { return };
    let tables = [("integer", "auto"), ("integer", "disable"), ("char", "auto")];
    for (key, mode) in drawn("the_server_counts", &tables, 1) {
        let table = format!("--rows=2000 --row-size=200 --key={key} --db-ps-mode={mode} -s");
        expect(&mut server.load(&format!("smack select {table} prepare")), 0);
        for load in ["insert", "select", "update", "mixed"] {
            for bound in ["-c 1 --events=501", "-c 8 --events=501", "-c 1 --duration=100ms", "-c 8 --duration=100ms"] {
                let what = format!("{load} {key} {mode} {bound}");
                let before = server.counters(COUNTERS);
                let run = runs(&server, &format!("{load} {table} {bound} --warmup=50ms run")).remove(0);
                let after = server.counters(COUNTERS);
                let [insert, select, update, _] = [0, 1, 2, 3].map(|n| after[n] - before[n]);
                let queries = run["queries"].as_u64().unwrap();
                let all = queries + run["warmup_queries"].as_u64().unwrap();
                assert_eq!(insert + select + update, all + LOOKED_UP, "{what}");
                if bound.contains("events") {
                    assert_eq!(queries, 501, "{what}");
                }
                assert!(queries > 0 && run["warmup_queries"].as_u64().unwrap() > 0, "{what}");
                assert_eq!(run["errors"].as_array().unwrap().len(), 0, "{what}: {run}");
                assert_eq!(run["rows"], if load == "insert" { queries } else { 0 }, "{what}");
                match load {
                    "insert" => assert_eq!((insert, count(&run, "insert")), (all, queries), "{what}"),
                    "select" => assert_eq!(count(&run, "select"), queries, "{what}"),
                    "update" => assert_eq!((update, count(&run, "update")), (all, queries), "{what}"),
                    _ => assert!(count(&run, "update").abs_diff(count(&run, "select")) <= 8, "{what}"),
                }
            }
        }
        expect(&mut server.load("smack select cleanup"), 0);
    }
}

#[test]
fn every_insert_adds_a_row_also_in_later_runs() {
    let Some(server) = Server::start() else { return };
    for key in ["integer", "char"] {
        for engine in ["InnoDB", "MyISAM"] {
            let table = format!("--rows=1000 --row-size=100 --key={key} -e {engine} -s");
            expect(&mut server.load(&format!("smack insert {table} prepare")), 0);
            let mut expected = 1000;
            for more in ["-c 1,8 --events=400", "-c 8 --io-threads=2 --duration=100ms --warmup=50ms"] {
                for run in runs(&server, &format!("insert {table} {more} run")) {
                    expected += run["queries"].as_u64().unwrap() + run["warmup_queries"].as_u64().unwrap();
                    assert_eq!(run["errors"].as_array().unwrap().len(), 0, "{key} {engine}");
                }
            }
            let rows = server.sql("SELECT COUNT(*), MIN(LENGTH(data)) = MAX(LENGTH(data)) FROM dbdyno_smack.smack");
            assert_eq!(rows.trim(), format!("{expected}\t1"), "{key} {engine}");
            expect(&mut server.load("smack insert cleanup"), 0);
        }
    }
}

#[test]
fn updates_and_selects_hit_and_deletes_tell_what_they_hit() {
    let Some(server) = Server::start() else { return };
    for mode in ["auto", "disable"] {
        for key in ["integer", "char"] {
            let table = format!("--rows=3000 --row-size=300 --key={key} --db-ps-mode={mode} -s");
            expect(&mut server.load(&format!("smack delete {table} prepare")), 0);
            let handled = |load: &str, counter: &str| {
                let before = server.counter(counter);
                let run = runs(&server, &format!("{load} {table} -c 8 --events=2000 run")).remove(0);
                (server.counter(counter) - before, run)
            };
            assert_eq!(handled("update", "Handler_update").0, 2000);
            // And what is looked up before.
            let (sent, _) = handled("select", "Rows_sent");
            assert!((2000..2010).contains(&sent), "{sent}");
            let (deleted, run) = handled("delete", "Handler_delete");
            assert_eq!((deleted, count(&run, "delete")), (count(&run, "delete"), deleted));
            assert_eq!(count(&run, "delete") + count(&run, "delete_gone"), 2000);
            // 3000 (1 - exp(-2/3)), give or take six standard deviations.
            assert!((1340..1580).contains(&deleted), "{deleted}");
            let left = server.sql("SELECT COUNT(*) FROM dbdyno_smack.smack");
            assert_eq!(left.trim(), (3000 - deleted).to_string());
            let message = text(&expect(&mut server.load(&format!("smack select {table} run")), 2).stderr);
            assert!(message.contains("100 keys looked up") && message.contains("cleanup"), "{message}");
            expect(&mut server.load("smack delete cleanup"), 0);
        }
    }
}

#[test]
fn deletes_go_on_where_the_run_before_ended() {
    let Some(server) = Server::start() else { return };
    expect(&mut server.load("smack delete --rows=3000 --row-size=64 -s prepare"), 0);
    let all = runs(&server, "delete --rows=3000 --row-size=64 -s -c 1,1,8 --events=1000 run");
    let deleted: Vec<u64> = all.iter().map(|run| count(run, "delete")).collect();
    let left = server.sql("SELECT COUNT(*) FROM dbdyno_smack.smack");
    assert_eq!(left.trim(), (3000 - deleted.iter().sum::<u64>()).to_string());
    // Each leaves exp(-1/3) of the rows that it finds: 850, 609 and 437 go, give or take.
    assert!((790..910).contains(&deleted[0]) && (540..680).contains(&deleted[1]), "{deleted:?}");
}

#[test]
fn the_same_seed_says_the_same() {
    let Some(server) = Server::start() else { return };
    let table = "--rows=500 --row-size=64 -s";
    let mut states = Vec::new();
    for seed in [1, 1, 2] {
        expect(&mut server.load(&format!("smack update {table} prepare")), 0);
        runs(&server, &format!("update {table} --events=300 --seed={seed} run"));
        states.push(server.sql("SELECT MD5(GROUP_CONCAT(MD5(data) ORDER BY id)) FROM dbdyno_smack.smack"));
        expect(&mut server.load("smack update cleanup"), 0);
    }
    assert_eq!(states[0], states[1]);
    assert_ne!(states[0], states[2]);
}

#[test]
fn without_a_last_word_all_is_done_and_nothing_left() {
    let Some(server) = Server::start() else { return };
    let stdout = text(&expect(&mut server.load("smack mixed --rows=500 --events=200 -c 2"), 0).stdout);
    assert!(stdout.contains("update") && stdout.contains("select"), "{stdout}");
    assert!(!server.sql("SHOW DATABASES").contains("dbdyno_smack"));
    let help = text(&expect(&mut server.load("smack --help"), 0).stdout);
    assert!(help.contains("delete_gone") && help.contains("--compressible"), "{help}");
}
