use proptest::prelude::*;

use super::*;

fn class_of(sql: &str) -> Class {
    classified(sql.as_bytes()).1
}

fn all_are(class: Class, statements: &[&str]) {
    for sql in statements {
        assert_eq!(class_of(sql), class, "{sql}");
    }
}

#[test]
fn what_reads_is_known() {
    all_are(
        Class::Reads,
        &[
            "select 1",
            "/* hot */ (SELECT 'delete' FROM `update`) UNION SELECT 2",
            "SELECT a INTO @b FROM t",
            "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`;",
            "SELECT /*+ MAX_EXECUTION_TIME(1000) */ COUNT(*), IF(a IN (1, 2), \"x\", 'it''s') FROM t WHERE b IN (SELECT c FROM u)",
            "SELECT 'it\\'s', REPLACE(a, '\\\\', ''), INSERT(a, 1, 2, 'b'), \\N FROM t",
            "SELECT été FROM t AS d WHERE d.x BETWEEN 1e5 AND .5 AND MATCH (a) AGAINST ('b' IN BOOLEAN MODE)",
            "SELECT CAST(a AS DECIMAL(10, 2)), SUBSTRING(a FROM 1 FOR 2) FROM t USE INDEX (i) FOR SYSTEM_TIME AS OF NOW()",
            "SHOW TABLES",
            "SHOW /*!50002 FULL*/ TABLES LIKE 'a'",
            "SHOW CREATE TABLE mysql.user",
            "SHOW COUNT(*) WARNINGS",
            "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT * FROM a",
            "VALUES (1), (2)",
            "TABLE t ORDER BY a LIMIT 1",
            "EXPLAIN SELECT 1",
            "EXPLAIN FORMAT=JSON SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
            "ANALYZE FORMAT=JSON SELECT 1",
            "EXPLAIN FOR CONNECTION 5",
            "DESC t",
            "DESCRIBE t 'a%'",
            "EXPLAIN shutdown",
            "/*!40101 SET NAMES utf8 */",
            "set names 'utf8mb4' collate 'utf8mb4_bin'",
            "SET CHARACTER SET latin1",
            "SET @a = 1, @`b` := 'c', @@session.sql_mode = ''",
            "set session sql_mode = ''",
            "SET autocommit=0, time_zone = '+00:00'",
            "SET NAMES utf8, sql_mode = ''",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET TRANSACTION READ ONLY",
            "SET character_set_results = utf8",
            "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
            "BEGIN",
            "begin work;",
            "start transaction read only",
            "START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */",
            "COMMIT",
            "ROLLBACK TO SAVEPOINT a",
            "ROLLBACK AND CHAIN",
            "SAVEPOINT `a b`",
            "RELEASE SAVEPOINT a",
            "-- a comment\nSELECT 1",
            "SELECT '?', `?` /* ? */",
            "SELECT * FROM mysql.user",
        ],
    );
}

#[test]
fn functions_that_may_do_more_than_read_are_told() {
    all_are(
        Class::Functions,
        &[
            "SELECT SLEEP(1)",
            "SELECT GET_LOCK('a', 1)",
            "SELECT RELEASE_ALL_LOCKS ()",
            "SELECT BENCHMARK(1e9, MD5('a'))",
            "SELECT MASTER_POS_WAIT('a', 1)",
            "SELECT NEXTVAL(s)",
            "SELECT NEXT VALUE FOR s",
            "SELECT s.nextval",
            "SELECT LASTVAL(s)",
            "SELECT f()",
            "SELECT shop.sum(1)",
            "SELECT shop . sum (1)",
            "SELECT `f`(1)",
            "SELECT \"f\"(1)",
            "SELECT /* a */ f /* b */ (1)",
            "SELECT été(1)",
            "SELECT ésum(1)",
            "SELECT 1e5f(1)",
            "SELECT 1.f(1)",
            "SHOW TABLES WHERE f(1)",
            "SET @a = f()",
            "EXPLAIN SELECT f()",
            "SET sql_mode = f()",
            "SET STATEMENT max_statement_time = f() FOR SELECT 1",
            "DESC t f()",
            "SELECT \u{a0}sleep(1)",
            "WITH a AS (SELECT f()) SELECT 1",
            "VALUES (f())",
            "SELECT * FROM t PROCEDURE ANALYSE(1)",
            "(SELECT f())",
            "SELECT '\\'', f()",
            "ANALYZE SELECT f()",
            "/*!50000 SELECT f() */",
            "SELECT \\Nf(1)",
        ],
    );
}

#[test]
fn what_writes_is_told() {
    all_are(
        Class::Writes,
        &[
            "INSERT INTO t VALUES (1)",
            "with a as (select 1) delete from t",
            "WITH a AS (SELECT 1) UPDATE t SET b = 1",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t FOR SHARE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT 1 INTO a",
            "SELECT 1 INTO @@b",
            "(SELECT 1 FROM t FOR /* a */ UPDATE)",
            "SELECT a FROM t FOR#\nUPDATE",
            "SET SESSION TRANSACTION READ WRITE",
            "START TRANSACTION READ WRITE",
            "SET tx_read_only = 0",
            "SET @@session.transaction_read_only = 0",
            "SET STATEMENT tx_read_only = 0 FOR SELECT 1",
            "SET STATEMENT max_statement_time = 1 FOR DELETE FROM t",
            "SET NAMES gbk",
            "SET NAMES DEFAULT",
            "SET character_set_client = @a",
            "SET character_set_client = CONCAT('g', 'bk')",
            "CALL p()",
            "BEGIN NOT ATOMIC DELETE FROM t; END",
            "LOCK TABLES t READ",
            "DO SLEEP(1)",
            "ANALYZE TABLE t",
            "EXPLAIN DELETE FROM t",
            "EXPLAIN ANALYZE UPDATE t SET a = 1",
            "ANALYZE DELETE FROM t",
            "DESC ANALYZE DELETE FROM t",
            "TRUNCATE t",
            "HANDLER t OPEN",
            "XA START 'a'",
            "CREATE TABLE t (kill_it INT, directory INT, `connection` INT)",
            "CREATE DEFINER=`a`@`b` VIEW v AS SELECT 1",
            "CREATE OR REPLACE DEFINER = CURRENT_USER() SQL SECURITY INVOKER VIEW v AS SELECT 1",
            "CREATE PROCEDURE p() BEGIN SET @a = 1; DELETE FROM t; END",
            "PREPARE s FROM 'SELECT ? FROM t'",
            "EXECUTE s USING @a",
            "EXECUTE IMMEDIATE 'DELETE FROM t'",
            "LOAD INDEX INTO CACHE t",
            "DROP DATABASE shop",
            "DROP PREPARE s",
            "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 'it''s' */",
            "/*!40000 ALTER TABLE `t` DISABLE KEYS */",
            "SELECT 1 /*!50000 + 1 */",
            "SELECT $$a",
            "INSERT INTO t VALUES ('it\\'s ok? it\\'s \\\\')",
            "SELECT 1 \u{1}",
        ],
    );
}

const ADMINISTERS: &[&str] = &[
    "KILL 5",
    "SHUTDOWN",
    "flush logs",
    "RESTART",
    "RESET QUERY CACHE",
    "PURGE BINARY LOGS TO 'a'",
    "CHANGE MASTER TO MASTER_HOST='a'",
    "start slave",
    "STOP REPLICA",
    "INSTALL SONAME 'a'",
    "UNINSTALL PLUGIN a",
    "GRANT ALL ON *.* TO a",
    "REVOKE a FROM b",
    "BACKUP LOCK t",
    "BINLOG 'a'",
    "CLONE LOCAL DATA DIRECTORY = '/a'",
    "IMPORT TABLE FROM 'a'",
    "LOCK INSTANCE FOR BACKUP",
    "UNLOCK INSTANCE",
    "CREATE USER a",
    "CREATE OR REPLACE USER a",
    "ALTER USER a IDENTIFIED BY 'b'",
    "DROP ROLE a",
    "RENAME USER a TO b",
    "CREATE SERVER a FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'b')",
    "ALTER INSTANCE ROTATE INNODB MASTER KEY",
    "CREATE TABLESPACE a",
    "SET GLOBAL a = 1",
    "SET @@global.a = 1",
    "set persist a = 1",
    "SET /*! */ GLOBAL a = 1",
    "SET @a = 1, GLOBAL b = 1",
    "SET `GLOBAL`.a = 1",
    "SET @@`global`.a = 1",
    "SET @@hot.key_buffer_size = 1",
    "SET hot.key_buffer_size = 1",
    "SET NAMES utf8, GLOBAL a = 1",
    "SET PASSWORD = 'a'",
    "SET /* a */ PASSWORD FOR a = 'b'",
    "SET @a = 1, PASSWORD = 'b'",
    "SET DEFAULT ROLE a TO b",
    "SET SESSION debug_dbug = 'd'",
    "SET sql_log_bin = 0",
    "SET SESSION general_log = 1",
    "SET gtid_domain_id = 5",
    "SET server_id = 7",
    "SET binlog_format = 'STATEMENT'",
    "SET SESSION AUTHORIZATION a",
    "SET STATEMENT max_statement_time = 10 FOR SHUTDOWN",
    "SET STATEMENT a = 1, b = (2) FOR KILL 5",
    "SET STATEMENT gtid_domain_id = 1 FOR SELECT 1",
    "SET STATEMENT a = 1 FOR SET STATEMENT a = 1 FOR SET GLOBAL a = 1",
    "/*!50000 SHUTDOWN */",
    "/*M!100000 KILL 5 */",
    "/*!50000 SET */ GLOBAL a = 1",
    "SET /*!40000 GLOBAL */ a = 1",
    "/*!99999 ' */ /*!40000 SHUTDOWN */ /*!99999 ' */",
    "PREPARE s FROM 'SHUTDOWN'",
    "EXECUTE IMMEDIATE 'KILL 5'",
    "EXECUTE IMMEDIATE '/*! SHUTDOWN */'",
    "BEGIN NOT ATOMIC KILL 5; END",
    "IF 1 THEN SHUTDOWN; END IF",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO SET GLOBAL a = 1",
    "CREATE PROCEDURE p() BEGIN CREATE USER a; END",
    "CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW SET @@`global`.`a` = 1",
    "CREATE FUNCTION f RETURNS STRING SONAME 'a.so'",
    "CREATE /*!50003 FUNCTION f RETURNS STRING SONAME 'a.so' */",
    "INSERT INTO mysql.user VALUES (1)",
    "UPDATE `mysql` . `global_priv` SET a = 1",
    "UPDATE performance_schema.setup_consumers SET enabled = 'YES'",
    "CALL sys.ps_setup_enable_instrument('')",
    "DROP DATABASE IF EXISTS mysql",
    "TRUNCATE TABLE \"mysql\".user",
    "DELETE FROM t USING t, mysql.user",
    "CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION='mysql://a'",
    "CREATE TABLE mysql.a (b INT)",
    "SELECT 1 FROM mysql.user FOR UPDATE",
    "WITH a AS (SELECT 1) DELETE FROM mysql.user",
];

const SERVER_FILE: &[&str] = &[
    "SELECT `load_file`('/etc/passwd')",
    "SELECT \"Load_File\" ('/etc/passwd')",
    "CREATE FUNCTION f() RETURNS TEXT RETURN `LOAD_FILE`('/etc/passwd')",
    "SELECT 1 INTO OUTFILE 'x'",
    "VALUES (1) INTO OUTFILE 'x'",
    "SELECT 1 INTO DUMPFILE 'x'",
    "(SELECT 1) INTO OUTFILE 'x'",
    "TABLE t INTO OUTFILE 'x'",
    "WITH q AS (SELECT 1) SELECT * FROM q INTO OUTFILE 'x'",
    "SELECT 1 /*! INTO OUTFILE 'x' */",
    "SELECT 1 /*M!100000 INTO OUTFILE 'x' */",
    "SET STATEMENT max_statement_time = 10 FOR SELECT 'x' INTO OUTFILE 'x'",
    "SELECT LOAD_FILE('x')",
    "SELECT load_file /* */ ('x')",
    "SELECT 1e5into outfile 'x'",
    "SELECT 1.into outfile 'x'",
    "SELECT .5into outfile 'x'",
    "SELECT 1.e5into outfile 'x'",
    "SELECT \\Ninto outfile 'x'",
    "SELECT 1 INTO\u{a0}OUTFILE 'x'",
    "SELECT '\\' INTO OUTFILE \"x\" -- '",
    "SELECT \"\\\" INTO OUTFILE 'x' -- \"",
    "SELECT 'é\\' INTO OUTFILE \\'x'",
    "SELECT `é\\` INTO OUTFILE 'x'",
    "EXPLAIN SELECT 1 INTO OUTFILE 'x'",
    "ANALYZE SELECT 1 INTO OUTFILE 'x'",
    "LOAD DATA INFILE 'x' INTO TABLE t",
    "LOAD XML INFILE 'x' INTO TABLE t",
    "LOAD DATA /*!40000 LOW_PRIORITY */ INFILE 'x' INTO TABLE t",
    "INSERT INTO t SELECT LOAD_FILE('x')",
    "BEGIN NOT ATOMIC SELECT 1 INTO OUTFILE 'x'; END",
    "CREATE TABLE t (a INT) DATA DIRECTORY='/x'",
    "CREATE TABLE t (a INT) ENGINE=CONNECT FILE_NAME='x'",
    "EXECUTE IMMEDIATE \"SELECT 1 INTO OUTFILE x\"",
    "CREATE PROCEDURE p() SELECT 1 INTO DUMPFILE 'x'",
    "/*!50000 SELECT 1 */ INTO OUTFILE 'x'",
    "CREATE VIEW v AS SELECT LOAD_FILE('x')",
    "SET @a = LOAD_FILE('x')",
    "DO LOAD_FILE('x')",
];

#[test]
fn what_is_never_sent_is_told() {
    all_are(Class::Administers, ADMINISTERS);
    all_are(Class::ServerFile, SERVER_FILE);
    all_are(
        Class::LocalFile,
        &["LOAD DATA LOCAL INFILE 'a' INTO TABLE t", "LOAD DATA CONCURRENT /* a */ LOCAL INFILE 'a' INTO TABLE t"],
    );
    all_are(
        Class::Hidden,
        &[
            "PREPARE s FROM @a",
            "EXECUTE IMMEDIATE @a",
            "EXECUTE IMMEDIATE CONCAT('SHUT', 'DOWN')",
            "PREPARE s FROM 'SELECT ''a'''",
            "PREPARE s FROM 'SHUTDOWN\\''",
            "CREATE PROCEDURE p() BEGIN PREPARE s FROM @a; EXECUTE s; END",
            "BEGIN NOT ATOMIC EXECUTE IMMEDIATE @a; END",
        ],
    );
    all_are(Class::Several, &["SELECT 1; SELECT 2", "SELECT 1; SHUTDOWN", "USE a; SELECT 1", "COMMIT; KILL 1"]);
    all_are(
        Class::Unknown,
        &["", "x", "SELCT 1", "PREPARE s FROM ...", "foo: BEGIN END", "SHOW x", "-- a", "(SHUTDOWN)", "JUMP /*! */"],
    );
    all_are(Class::Placeholder, &["SELECT * FROM t WHERE a = ?", "INSERT INTO t VALUES (?)"]);
    all_are(Class::Use, &["USE shop", "use `a`;"]);
    all_are(Class::CutOff, &["SELECT 'a", "SELECT `a", "INSERT INTO t VALUES (\"", "SELECT a\\"]);
}

#[test]
fn kinds_are_the_first_words() {
    for (sql, name) in [
        ("select 1", "select"),
        ("desc t", "describe"),
        ("Update t SET a=1", "update"),
        ("GRANT x", "other"),
        ("begin", "begin"),
        ("set a=1", "set"),
        ("SET STATEMENT a = 1 FOR select 1", "select"),
        ("/*!50003 CREATE*/ /*!50003 TRIGGER */", "create"),
        ("((SELECT 1))", "select"),
        ("", "other"),
    ] {
        assert_eq!(kinds()[usize::from(classified(sql.as_bytes()).0)].name, name, "{sql}");
    }
    let names = [USE, CALL, CREATE, DROP, ROLLBACK, SAVEPOINT].map(|kind| kinds()[usize::from(kind)].name.clone());
    assert_eq!(names, ["use", "call", "create", "drop", "rollback", "savepoint"]);
    assert!(!kinds()[usize::from(USE)].is_query && kinds()[usize::from(OTHER)].name == "other");
}

/// What stands between two words, of blanks and comments.
fn blank() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![" ", "\n", "\t", "/**/", " /* ' */ ", "#'\n", "-- \"\n", "\u{b}", "/*+ a */"])
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        classified(&bytes);
    }

    /// Cut from statements that end a server or write a file, put together at random: what is sent without `--writes` has none of them.
    #[test]
    fn nothing_that_writes_a_file_is_taken_for_reading(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "SELECT", "1", "'a'", "'", "\"", "`", "\\", "\\'", "/*!", "/*!50000", "/*M!", "*/", "/*", "--", "#", "\n", "INTO", "1e5into", "OUTFILE", "'x'",
            "SHUTDOWN", "SET", "STATEMENT", "a=1", "FOR", "KILL", ";", "(", ")", ",", "WITH", "AS", "DELETE", "EXPLAIN", "é", "UPDATE", "f", "@", "=",
        ]), 0..12),
        glue in prop::collection::vec(blank(), 12),
    ) {
        let sql: String = pieces.iter().zip(&glue).flat_map(|(piece, glue)| [*piece, *glue]).collect();
        if class_of(&sql) == Class::Reads {
            // Outside of strings, names and comments that no server runs, by the plainest of readings.
            let code = code_of(&sql);
            for word in ["OUTFILE", "DELETE"] {
                prop_assert!(!code.contains(word), "{sql:?} {code:?}");
            }
            // Elsewhere these are names.
            for word in ["SHUTDOWN", "KILL"] {
                prop_assert!(!code.trim_start().starts_with(word), "{sql:?} {code:?}");
            }
        }
    }

    #[test]
    fn comments_and_case_hide_nothing(glue in prop::collection::vec(blank(), 8), lower: bool) {
        for (words, class) in [
            (&["SET", "STATEMENT", "a", "=", "1", "FOR", "SHUTDOWN"][..], Class::Administers),
            (&["VALUES", "(", "1", ")", "INTO", "OUTFILE", "'x'"], Class::ServerFile),
            (&["SELECT", "1", "FROM", "t", "FOR", "UPDATE"], Class::Writes),
            (&["SELECT", "f", "(", ")"], Class::Functions),
            (&["SET", "@", "@", "GLOBAL", ".", "a", "=", "1"], Class::Administers),
        ] {
            let sql: String = words.iter().zip(&glue).flat_map(|(word, glue)| [*word, *glue]).collect();
            let sql = if lower { sql.to_lowercase() } else { sql };
            prop_assert_eq!(class_of(&sql), class, "{:?}", sql);
        }
    }
}

/// What is left without strings, names and comments, in the usual SQL mode.
fn code_of(sql: &str) -> String {
    let (mut code, mut rest) = (String::new(), sql);
    while let Some(first) = rest.chars().next() {
        let until = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
        let is_run = rest.starts_with("/*!") || rest.starts_with("/*M!");
        let length = match first {
            '\'' | '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|c: char| {
                    let is_end = c == first && !escaped;
                    escaped = c == '\\' && !escaped;
                    is_end
                });
                end.map_or(rest.len(), |end| end + 2)
            }
            '`' => until("`", 1),
            '#' => until("\n", 1),
            '-' if rest.starts_with("--") && rest[2..].starts_with(|c: char| c <= ' ') => until("\n", 1),
            '/' if rest.starts_with("/*") && !is_run => until("*/", 2),
            _ => {
                code.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    code
}
