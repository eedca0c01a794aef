//! Other people's schemas under odd names: every verb works in the one that it is given, and leaves what it did not
//! make.
use std::fs;
use std::process::Command;

use crate::common::{Server, expect, text};

/// Names that SQL, a comparison or a file system might take for something else.
const NAMES: [&str; 5] = ["a`b.c", "it's 100% \"so\"", r"back\slash", "sch\u{e9}ma_\u{540d}", "_b%"];

const SCRIPT: &str = "\
-- setup:
CREATE TABLE items (id INT PRIMARY KEY);
INSERT INTO items VALUES (1), (2);
-- name: look
SELECT id FROM items WHERE id = 1;
";

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Schemas and what they hold, but for the server's own.
fn all(server: &Server) -> String {
    server.sql(
        "SELECT SCHEMA_NAME, '' FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN \
         ('mysql', 'sys', 'information_schema', 'performance_schema') \
         UNION SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN \
         ('mysql', 'sys', 'information_schema', 'performance_schema') \
         UNION SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN \
         ('mysql', 'sys')",
    )
}

/// How many verbs there are beside `script`.
const VERBS: usize = 4;

/// Every verb in a schema of this name.
fn verbs(server: &Server, script: &str, schema: &str) -> Vec<Command> {
    let lines = [
        "smack select --rows=10 --events=5",
        "oltp point_select --table-size=10 --events=5",
        "ingest --initial-rows=5 --rows=20 --rows-per-call=10",
        "bulk --table-size=10",
        script,
    ];
    lines
        .iter()
        .map(|line| {
            let mut command = server.load(line);
            command.arg(format!("--schema={schema}"));
            command
        })
        .collect()
}

#[test]
fn whatever_its_name_a_schema_keeps_what_others_made() {
    for mode in ["", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES"] {
        let Some(server) = Server::start_with(&[format!("--sql-mode={mode}")]) else { return };
        let path = server.file("look.sql");
        fs::write(&path, SCRIPT).unwrap();
        let script = format!("script --events=5 {}", path.display());
        for name in NAMES {
            let schema = quoted(name);
            server.sql(&format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.precious (i INT)"));
            let before = all(&server);
            for (number, mut command) in verbs(&server, &script, name).into_iter().enumerate() {
                // The last is the script, which wants a schema of its own.
                expect(&mut command, if number == VERBS { 2 } else { 0 });
                assert_eq!(all(&server), before, "{mode} {command:?}");
            }
            let mut slap = server.slap("-a");
            let output = expect(slap.arg(format!("--create-schema={name}")), 2);
            assert!(text(&output.stderr).contains("--force"), "{}", text(&output.stderr));
            assert_eq!(all(&server), before, "{mode} {name}");
            server.sql(&format!("DROP SCHEMA {schema}"));
            expect(server.load(&script).arg(format!("--schema={name}")), 0);
            server.sql(&format!("CREATE SCHEMA {schema}"));
            expect(server.load(&script).arg(format!("--schema={name}")), 0);
            assert_eq!(all(&server).lines().count(), 1, "{mode} {name}");
            server.sql(&format!("DROP SCHEMA {schema}"));
            expect(server.slap("-a").arg(format!("--create-schema={name}")), 0);
            assert_eq!(all(&server), "", "{mode} {name}");
        }
    }
}

#[test]
fn a_schema_of_ours_with_something_of_others_stays() {
    let Some(server) = Server::start() else { return };
    for made in [
        "CREATE PROCEDURE mysqlslap.theirs() SELECT 1",
        "CREATE EVENT mysqlslap.theirs ON SCHEDULE EVERY 1 YEAR DO SELECT 1",
        "CREATE VIEW mysqlslap.theirs AS SELECT 1",
        "CREATE TABLE mysqlslap.theirs (i INT)",
    ] {
        expect(&mut server.slap("-a --phase=prepare"), 0);
        server.sql(made);
        for flags in ["-a", "-a --phase=cleanup", "-a --phase=prepare"] {
            expect(&mut server.slap(flags), 2);
        }
        let count = server.sql("SELECT COUNT(*) FROM mysqlslap.t1");
        assert_eq!(count.trim(), "99", "{made}");
        expect(&mut server.slap("-a --force"), 0);
        assert_eq!(all(&server), "", "{made}");
    }
}

#[test]
fn the_servers_own_schemas_are_refused() {
    let Some(server) = Server::start() else { return };
    let path = server.file("look.sql");
    fs::write(&path, SCRIPT).unwrap();
    let script = format!("script {}", path.display());
    for schema in ["mysql", "Information_Schema", "sys"] {
        for mut command in verbs(&server, &script, schema) {
            let output = expect(&mut command, 2);
            assert!(text(&output.stderr).contains("belongs to the server"), "{}", text(&output.stderr));
        }
    }
}
