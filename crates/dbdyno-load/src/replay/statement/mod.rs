//! What a logged statement does: the one place that decides whether and when it may be sent.
//!
//! Without `--writes` the statements are sent that are *known* to read, with it those that are known to write as well;
//! what is not known is not sent. A log may come from anyone, so a statement is taken for the worst that any server may
//! take it for: [`tokens`] cuts it as the servers do, [`query`] looks at its expressions and at what no load may do,
//! [`set`] at its variables. [`session`] says what a statement leaves to those behind it.

use query::{Effect, rest};
use tokens::{Capitals, DEPTH_MAX, READINGS, Token, Tokens, USUAL, is_word, skip_word};

use crate::dialect::{is_system_schema, words};
use crate::statements::Kind;

mod definition;
mod query;
mod session;
pub(crate) mod tokens;

pub use self::query::Class;
pub use definition::{
    Body, Comparable, Definition, Makes, called_procedure, comparable, definition, is_block, is_only_of_routine,
};
pub use session::{Step, names_table, parts, step, used_schema};

/// Names of the kinds of statement; those of the first word of a statement, then what is left.
const QUERIES: [&str; 18] = [
    "select", "show", "describe", "explain", "with", "values", "insert", "update", "delete", "replace", "call", "do",
    "load", "create", "alter", "drop", "truncate", "other",
];
const APART: [&str; 7] = ["set", "begin", "start", "commit", "rollback", "savepoint", "use"];

/// The kind of a `USE` that the replay itself sends.
pub const USE: u16 = (QUERIES.len() + APART.len() - 1) as u16;

/// The kind of a `CALL`.
pub const CALL: u16 = 10;

/// The kind of a `CREATE`.
pub const CREATE: u16 = 13;

/// The kind of a `DROP`.
pub const DROP: u16 = 15;

/// The kind of a `BEGIN`.
pub const BEGIN: u16 = QUERIES.len() as u16 + 1;

/// The kind of a `ROLLBACK`.
pub const ROLLBACK: u16 = QUERIES.len() as u16 + 4;

/// The kind of a `SAVEPOINT`.
pub const SAVEPOINT: u16 = QUERIES.len() as u16 + 5;

/// The kind of statements that begin with another word, such as PREPARE.
pub const OTHER: u16 = QUERIES.len() as u16 - 1;

/// The kinds of statement.
pub fn kinds() -> Vec<Kind> {
    QUERIES.into_iter().map(Kind::query).chain(APART.into_iter().map(Kind::apart)).collect()
}

/// Kind and class of a statement.
pub fn classified(sql: &[u8]) -> (u16, Class) {
    (kind(Tokens::new(sql, USUAL)), class(sql))
}

/// By the first word, behind the `FOR` of `SET STATEMENT`.
fn kind(mut tokens: Tokens<'_>) -> u16 {
    for _ in 0..DEPTH_MAX {
        while tokens.skip(b'(') {}
        match tokens.next() {
            Token::Executable(code) => tokens = tokens.of_text(code),
            Token::Word(word) => {
                let is_set = word.eq_ignore_ascii_case(b"SET");
                if let Some((_, inner)) = behind_set_statement(tokens).filter(|_| is_set) {
                    tokens = inner;
                    continue;
                }
                if word.eq_ignore_ascii_case(b"DESC") {
                    return 2;
                }
                let mut names = QUERIES.into_iter().chain(APART);
                let known = names.position(|name| name.as_bytes().eq_ignore_ascii_case(word));
                return known.map_or(OTHER, |known| known as u16);
            }
            _ => return OTHER,
        }
    }
    OTHER
}

/// The worst of what a server may take the statement for, by its settings. What it refuses does nothing.
fn class(sql: &[u8]) -> Class {
    let usual = read(sql, Tokens::new(sql, USUAL));
    if !sql.contains(&b'\\') {
        return beyond_ascii(sql, usual);
    }
    let refused = |class: &Class| matches!(class, Class::CutOff | Class::Placeholder | Class::Several);
    let others =
        READINGS[1..].iter().map(|reading| read(sql, Tokens::new(sql, *reading))).filter(|class| !refused(class));
    let worst = match others.max() {
        Some(other) if usual == Class::CutOff => other,
        Some(other) => usual.max(other),
        None => usual,
    };
    beyond_ascii(sql, worst)
}

/// In some character sets a byte beyond ASCII takes the backslash or the backtick behind it with it, and a string ends
/// elsewhere.
fn beyond_ascii(sql: &[u8], class: Class) -> Class {
    let is_doubtful = || !sql.is_ascii() && sql.windows(2).any(|two| two[0] >= 0x80 && matches!(two[1], b'\\' | b'`'));
    if class < Class::ServerFile && is_doubtful() && query::names_file(sql) { Class::ServerFile } else { class }
}

/// The class in one way of reading.
fn read(sql: &[u8], tokens: Tokens<'_>) -> Class {
    match statement(tokens, 0) {
        Class::Odd => query::class_of_bytes(sql),
        class => class,
    }
}

fn statement(tokens: Tokens<'_>, depth: u32) -> Class {
    let (mut start, mut is_query) = (tokens, false);
    while start.skip(b'(') {
        is_query = true;
    }
    let mut behind = start;
    let word = match behind.next() {
        Token::Word(word) => Capitals::new(word),
        // A server that does not run it has nothing to run.
        Token::Executable(code) if is_over(behind) && !is_query && depth < DEPTH_MAX => {
            return statement(tokens.of_text(code), depth + 1);
        }
        Token::Executable(_) | Token::Odd | Token::Foreign => return Class::Odd.max(rest(start).class),
        Token::Open => return Class::CutOff,
        _ => return Class::Unknown,
    };
    match word.bytes() {
        b"SELECT" | b"VALUES" | b"TABLE" | b"WITH" => reads(rest(start)),
        _ if is_query => Class::Unknown,
        b"SHOW" => match behind.peek() {
            Token::Word(word) if Capitals::new(word).is_one_of(words::SHOWN) => reads(rest(behind)),
            Token::Executable(_) => reads(rest(behind)),
            _ => Class::Unknown,
        },
        b"EXPLAIN" | b"DESCRIBE" | b"DESC" => explained(behind, false),
        b"ANALYZE" => explained(behind, true),
        b"SET" => match behind_set_statement(behind) {
            Some((class, inner)) if depth < DEPTH_MAX => class.max(statement(inner, depth + 1)),
            Some(_) => Class::Unknown,
            None => query::class_of_set(behind),
        },
        b"BEGIN" => {
            skip_word(&mut behind, b"WORK");
            if is_over(behind) { Class::Reads } else { query::class_of_body(behind) }
        }
        b"START" if skip_word(&mut behind, b"TRANSACTION") => transaction(behind),
        b"COMMIT" | b"ROLLBACK" | b"SAVEPOINT" | b"RELEASE" => reads(rest(behind)),
        b"EXECUTE" if skip_word(&mut behind, b"IMMEDIATE") => class_of_prepared_text(behind, depth),
        b"USE" if rest(behind).class == Class::Several => Class::Several,
        b"USE" => Class::Use,
        b"LOCK" | b"UNLOCK" if !is_word(behind, b"TABLES") && !is_word(behind, b"TABLE") => Class::Administers,
        b"INSERT" | b"UPDATE" | b"DELETE" | b"REPLACE" | b"CALL" | b"DO" | b"TRUNCATE" | b"HANDLER" | b"OPTIMIZE"
        | b"CHECK" | b"CHECKSUM" | b"REPAIR" | b"CACHE" | b"HELP" | b"XA" | b"DEALLOCATE" | b"SIGNAL" | b"RESIGNAL"
        | b"GET" | b"LOCK" | b"UNLOCK" | b"EXECUTE" => writes(rest(behind)),
        b"LOAD" => loads(behind),
        b"PREPARE" => {
            behind.next();
            if skip_word(&mut behind, b"FROM") { class_of_prepared_text(behind, depth) } else { Class::Unknown }
        }
        b"CREATE" | b"ALTER" | b"DROP" | b"RENAME" => defines(behind),
        b"IF" | b"CASE" | b"LOOP" | b"WHILE" | b"REPEAT" | b"FOR" | b"DECLARE" => query::class_of_body(behind),
        b"KILL" | b"SHUTDOWN" | b"RESTART" | b"FLUSH" | b"RESET" | b"PURGE" | b"CHANGE" | b"START" | b"STOP"
        | b"INSTALL" | b"UNINSTALL" | b"GRANT" | b"REVOKE" | b"BACKUP" | b"BINLOG" | b"CLONE" | b"IMPORT" => {
            Class::Administers
        }
        _ => Class::Unknown,
    }
}

/// A query, which may yet write.
fn reads(effect: Effect) -> Class {
    if effect.class >= Class::Writes { writes(effect) } else { effect.class }
}

fn writes(effect: Effect) -> Class {
    match effect.class {
        Class::CutOff => Class::CutOff,
        _ if effect.is_of_system => Class::Administers,
        class => class.max(Class::Writes),
    }
}

/// START TRANSACTION, which may say that it only reads, but not that it writes.
fn transaction(tokens: Tokens<'_>) -> Class {
    let mut words = tokens;
    loop {
        match words.next() {
            Token::End => return reads(rest(tokens)),
            Token::Word(word) if word.eq_ignore_ascii_case(b"WRITE") => return writes(rest(tokens)),
            _ => {}
        }
    }
}

/// EXPLAIN, which may run what it explains, and functions in it; or DESCRIBE; or MariaDB's ANALYZE, which has two
/// meanings.
fn explained(mut tokens: Tokens<'_>, is_analyze: bool) -> Class {
    loop {
        if skip_word(&mut tokens, b"FORMAT") {
            tokens.skip(b'=');
            tokens.next();
        } else if skip_word(&mut tokens, b"INTO") {
            let is_variable = tokens.skip(b'@') && !tokens.skip(b'@');
            if !is_variable {
                return Class::Unknown;
            }
            tokens.next();
        } else if ![&b"ANALYZE"[..], b"EXTENDED", b"PARTITIONS"].iter().any(|word| skip_word(&mut tokens, word)) {
            break;
        }
    }
    let is_change = [&b"INSERT"[..], b"UPDATE", b"DELETE", b"REPLACE"].iter().any(|word| is_word(tokens, word));
    let is_query = tokens.peek() == Token::Mark(b'(')
        || [&b"SELECT"[..], b"WITH", b"VALUES", b"TABLE"].iter().any(|word| is_word(tokens, word));
    let is_of_tables = is_analyze && (!is_query || is_word(tokens, b"TABLE"));
    if is_change || is_of_tables { writes(rest(tokens)) } else { reads(rest(tokens)) }
}

/// LOAD DATA and LOAD XML, from a file; or LOAD INDEX.
fn loads(mut tokens: Tokens<'_>) -> Class {
    if is_word(tokens, b"INDEX") {
        return writes(rest(tokens));
    }
    let effect = rest(tokens);
    loop {
        match tokens.next() {
            Token::Word(word) if word.eq_ignore_ascii_case(b"LOCAL") => return Class::LocalFile.max(effect.class),
            Token::Word(word) if word.eq_ignore_ascii_case(b"INFILE") => break,
            Token::End => break,
            _ => {}
        }
    }
    Class::ServerFile.max(effect.class)
}

/// The text behind PREPARE ... FROM or EXECUTE IMMEDIATE, whose values may be `?`.
fn class_of_prepared_text(mut tokens: Tokens<'_>, depth: u32) -> Class {
    match tokens.next() {
        Token::Text(_, text) if is_over(tokens) || is_word(tokens, b"USING") => {
            if depth >= DEPTH_MAX || text.iter().any(|byte| b"\\'\"".contains(byte)) {
                return Class::Hidden;
            }
            match statement(tokens.of_text(text), depth + 1) {
                Class::Placeholder => Class::Writes,
                Class::Odd => Class::Hidden,
                class => class.max(Class::Writes),
            }
        }
        // `PREPARE s FROM ...`: MySQL leaves the text out.
        Token::Mark(b'.') | Token::End => Class::Unknown,
        Token::Open => Class::CutOff,
        _ => Class::Hidden,
    }
}

/// CREATE, ALTER, DROP and RENAME, by what they are about.
fn defines(mut tokens: Tokens<'_>) -> Class {
    let all = tokens;
    loop {
        let word = match tokens.next() {
            Token::Word(word) => word,
            Token::Executable(_) | Token::Odd => return Class::Odd.max(rest(all).class),
            Token::Open => return Class::CutOff,
            _ => return Class::Unknown,
        };
        match Capitals::new(word).bytes() {
            b"OR" | b"REPLACE" | b"TEMPORARY" | b"UNIQUE" | b"FULLTEXT" | b"SPATIAL" | b"ONLINE" | b"OFFLINE"
            | b"IGNORE" | b"AGGREGATE" | b"INVOKER" => {}
            b"SQL" => {
                tokens.next();
                tokens.next();
            }
            b"ALGORITHM" => {
                tokens.skip(b'=');
                tokens.next();
            }
            b"DEFINER" => {
                tokens.skip(b'=');
                tokens.next();
                if tokens.skip(b'@') {
                    tokens.next();
                }
                if tokens.skip(b'(') {
                    tokens.skip(b')');
                }
            }
            b"TABLE" | b"TABLES" => return writes(rest(all)).max(class_of_table_options(tokens)),
            b"INDEX" | b"VIEW" | b"SEQUENCE" | b"PREPARE" => return writes(rest(all)),
            b"DATABASE" | b"SCHEMA" => return class_of_schema(tokens).max(writes(rest(all))),
            b"PROCEDURE" | b"FUNCTION" | b"TRIGGER" | b"EVENT" | b"PACKAGE" => return query::class_of_body(all),
            b"USER" | b"ROLE" | b"SERVER" | b"TABLESPACE" | b"LOGFILE" | b"INSTANCE" | b"RESOURCE" | b"UNDO" => {
                return Class::Administers;
            }
            _ => return Class::Unknown,
        }
    }
}

/// Options of a table that are about files or other servers.
fn class_of_table_options(mut tokens: Tokens<'_>) -> Class {
    let (mut worst, mut may_be_directory) = (Class::Writes, false);
    loop {
        let token = tokens.next();
        let word = match token {
            Token::End => return worst,
            Token::Word(word) => Capitals::new(word),
            _ => {
                may_be_directory = false;
                continue;
            }
        };
        let has_value = matches!(tokens.peek(), Token::Mark(b'=') | Token::Text(..));
        worst = worst.max(match word.bytes() {
            b"DIRECTORY" if may_be_directory => Class::ServerFile,
            b"FILE_NAME" if has_value => Class::ServerFile,
            b"CONNECTION" if has_value => Class::Administers,
            _ => Class::Writes,
        });
        may_be_directory = matches!(word.bytes(), b"DATA" | b"INDEX");
    }
}

/// A schema, which may be one of the server's own.
fn class_of_schema(mut tokens: Tokens<'_>) -> Class {
    loop {
        match tokens.next() {
            Token::Word(word) if matches!(Capitals::new(word).bytes(), b"IF" | b"NOT" | b"EXISTS") => {}
            Token::Word(name) | Token::Name(name) | Token::Text(_, name) if is_system_schema(name) => {
                return Class::Administers;
            }
            _ => return Class::Writes,
        }
    }
}

/// What stands behind `STATEMENT ... FOR`, and what the values before it do.
fn behind_set_statement(mut tokens: Tokens<'_>) -> Option<(Class, Tokens<'_>)> {
    if skip_word(&mut tokens, b"STATEMENT") { query::split_statement(tokens) } else { None }
}

/// Whether nothing follows but what ends a statement.
fn is_over(mut tokens: Tokens<'_>) -> bool {
    tokens.skip(b';');
    tokens.next() == Token::End
}

#[cfg(test)]
mod tests {
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
            &[
                "",
                "x",
                "SELCT 1",
                "PREPARE s FROM ...",
                "foo: BEGIN END",
                "SHOW x",
                "-- a",
                "(SHUTDOWN)",
                "JUMP /*! */",
            ],
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

        /// Cut from statements that end a server or write a file, put together at random: what is sent without
        /// `--writes` has none of them.
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
}
