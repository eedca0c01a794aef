//! The SQL that makes the tables which a log is replayed on, such as a dump.
//!
//! mysqldump and mariadb-dump also write statements about the dumped server: its binary log, its replication, and the
//! accounts with whose rights views and routines act. These are not run, and a note says so.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use dbdyno_common::bounded;

use super::statement::{Class, classified, used_schema};
use crate::error::Error;
use crate::names::quoted;
use crate::script::lexer::{Item, Items, Lexeme, SourceFile, Token};
use crate::script::model::{Plain, Script};

/// Largest file: its statements are held in memory.
const SIZE_MAX: u64 = 1 << 30;

/// What the SQL of a setup comes to.
#[derive(Default)]
pub struct Setup {
    /// A script that has a setup section alone.
    pub script: Script,
    /// What is not run; empty if all is.
    pub note: String,
}

/// Reads the file. Where it is confined to one schema, statements that make and enter that schema, or are about the
/// server, are left out.
///
/// # Errors
/// It cannot be read or cut into statements, or has tables of several schemas; with file and line.
pub fn read(path: &str, is_confined: bool) -> Result<Setup, Error> {
    let bytes = bounded::read(Path::new(path), SIZE_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            Error::Usage(format!("{path} has more than {} MiB: load it with the mariadb client before", SIZE_MAX >> 20))
        }
        _ => Error::File(path.into(), error),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        Error::Usage(format!(
            "{path}:{line}: this is not UTF-8: dump with --hex-blob, or load it with the mariadb client before"
        ))
    })?;
    let source = SourceFile { name: path.into(), text };
    let mut script = Script::named(path);
    let mut left_out = LeftOut::default();
    script.setup = statements(&source, is_confined, &mut left_out)?;
    Ok(Setup { script, note: left_out.note(path) })
}

/// What is not run of a dump: how often, and in which line first.
#[derive(Default)]
struct LeftOut {
    of_replication: (u64, u64),
    of_server: (u64, u64),
    definers: (u64, u64),
    of_schema: (u64, u64),
    schema: Option<Vec<u8>>,
}

impl LeftOut {
    fn note(&self, path: &str) -> String {
        let mut text = String::new();
        for ((count, line), what) in [
            (self.of_replication, "about the binary log and replication of the dumped server not run"),
            (self.of_server, "about accounts and settings of the server not run"),
            (self.of_schema, "that make or enter a schema not run: the tables are made in --schema"),
            (self.definers, "with a DEFINER, which is the account of the replay instead"),
        ] {
            if count > 0 {
                let separator = if text.is_empty() { "" } else { "; " };
                let statements = if count == 1 { "statement" } else { "statements" };
                // Writing to a string cannot fail.
                let _ = write!(text, "{separator}{count} {statements} (first in line {line}) {what}");
            }
        }
        if text.is_empty() { text } else { format!("{path}: {text}") }
    }
}

fn count(met: &mut (u64, u64), line: u64) {
    if met.0 == 0 {
        met.1 = line;
    }
    met.0 += 1;
}

fn statements(source: &SourceFile, is_confined: bool, left_out: &mut LeftOut) -> Result<Vec<Plain>, Error> {
    let (mut items, mut all) = (Items::plain(&source.text), Vec::new());
    let (mut counted_to, mut line) = (0, 1);
    while let Some(item) = items.next().map_err(|mistake| source.error(&mistake))? {
        let Item::Statement(lexemes) = item else { continue };
        let (first, last) = (lexemes[0], lexemes[lexemes.len() - 1]);
        line += source.text[counted_to..first.at].matches('\n').count() as u64;
        counted_to = first.at;
        let sql = &source.text[first.at..last.at + last.text.len()];
        match purpose(&lexemes, sql) {
            Purpose::Replication => count(&mut left_out.of_replication, line),
            Purpose::Server if is_confined => count(&mut left_out.of_server, line),
            Purpose::Schema(name) if is_confined => {
                let named = left_out.schema.get_or_insert_with(|| name.clone());
                if !named.eq_ignore_ascii_case(&name) {
                    let [schema, other] = [&*named, &name].map(|name| quoted(&String::from_utf8_lossy(name)));
                    return Err(Error::Usage(format!(
                        "{}:{line}: the dump has the schemas {schema} and {other}: dump the one that is replayed, \
                         or load it before and replay with --whole-server",
                        source.name
                    )));
                }
                count(&mut left_out.of_schema, line);
            }
            _ => {
                let without = without_definer(&lexemes, sql);
                if without.is_some() {
                    count(&mut left_out.definers, line);
                }
                let place = format!("{}:{line}", source.name);
                all.push(Plain { place, sql: without.unwrap_or_else(|| sql.to_owned()) });
            }
        }
    }
    Ok(all)
}

/// What a statement of a dump is about.
enum Purpose {
    /// What the tables hold.
    Tables,
    /// The schema of this name.
    Schema(Vec<u8>),
    /// The binary log and the replication of the server that was dumped.
    Replication,
    /// The server.
    Server,
}

fn purpose(lexemes: &[Lexeme<'_>], sql: &str) -> Purpose {
    let code =
        sql.trim_start_matches("/*M!").trim_start_matches("/*!").trim_start_matches(|c: char| c.is_ascii_digit());
    let first = code.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    let capitals = || sql.to_ascii_uppercase();
    match first.as_str() {
        "USE" => used_schema(sql.as_bytes()).map_or(Purpose::Tables, Purpose::Schema),
        "CREATE" | "DROP" | "ALTER" => match made_schema(lexemes) {
            Some(name) => Purpose::Schema(name),
            None => Purpose::Tables,
        },
        "SET" if classified(sql.as_bytes()).1 == Class::Administers => {
            let is_of_replication = ["SQL_LOG_BIN", "GTID_"].iter().any(|name| capitals().contains(name));
            if is_of_replication { Purpose::Replication } else { Purpose::Server }
        }
        "CHANGE" | "START" | "STOP" | "RESET" if classified(sql.as_bytes()).1 == Class::Administers => {
            Purpose::Replication
        }
        "GRANT" | "REVOKE" | "FLUSH" => Purpose::Server,
        _ => Purpose::Tables,
    }
}

/// The schema of `CREATE DATABASE /*!32312 IF NOT EXISTS*/ shop ...`, or of DROP and ALTER.
fn made_schema(lexemes: &[Lexeme<'_>]) -> Option<Vec<u8>> {
    let mut words = lexemes.iter().filter(|lexeme| !lexeme.is_blank());
    words.next()?;
    let is_schema = words.next().is_some_and(|word| word.is_word("DATABASE") || word.is_word("SCHEMA"));
    let is_name = |lexeme: &&Lexeme<'_>| {
        lexeme.token == Token::Backticked
            || lexeme.token == Token::Word && !["IF", "NOT", "EXISTS"].iter().any(|word| lexeme.is_word(word))
    };
    let name = words.find(is_name).filter(|_| is_schema)?.text;
    used_schema(format!("USE {name}").as_bytes())
}

/// The statement without its `DEFINER=...`, so that the account that runs it is the definer; `None` if it has none.
fn without_definer(lexemes: &[Lexeme<'_>], sql: &str) -> Option<String> {
    let is_create =
        |lexeme: &Lexeme<'_>| lexeme.is_word("CREATE") || lexeme.is_word("ALTER") || lexeme.token == Token::Executable;
    if !is_create(lexemes.first()?) {
        return None;
    }
    let base = lexemes[0].at;
    // It stands before what is made, so behind few words, in a comment that some servers run or outside of it.
    for lexeme in lexemes.iter().filter(|lexeme| !lexeme.is_blank()).take(DEFINER_WITHIN) {
        let at = match lexeme.token {
            Token::Executable => find_word(lexeme.text, "DEFINER").map(|at| lexeme.at - base + at),
            Token::Word if lexeme.is_word("DEFINER") => Some(lexeme.at - base),
            _ => None,
        };
        if let Some(at) = at
            && let Some(length) = definer_length(&sql[at..])
        {
            return Some(format!("{}{}", &sql[..at], &sql[at + length..]));
        }
        if ["TABLE", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "VIEW", "PACKAGE"]
            .iter()
            .any(|word| lexeme.is_word(word))
        {
            break;
        }
    }
    None
}

/// How many words there are at most up to the end of a DEFINER.
const DEFINER_WITHIN: usize = 16;

/// Where a word stands by itself, followed by `=`.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let capitals = text.to_ascii_uppercase();
    let at = capitals.find(word)?;
    let is_apart = text[..at].ends_with(|c: char| !c.is_alphanumeric() && c != '_' || c.is_ascii_digit());
    (is_apart && text[at + word.len()..].trim_start().starts_with('=')).then_some(at)
}

/// Length of ``DEFINER=`user`@`host` ``, of `DEFINER = user@localhost`, of `DEFINER=CURRENT_USER()` and their like.
fn definer_length(text: &str) -> Option<usize> {
    let mut rest = text["DEFINER".len()..].trim_start().strip_prefix('=')?.trim_start();
    rest = behind_name(rest)?;
    if let Some(host) = rest.trim_start().strip_prefix('@') {
        rest = behind_name(host.trim_start())?;
    } else if let Some(parenthesis) = rest.trim_start().strip_prefix('(') {
        rest = parenthesis.trim_start().strip_prefix(')')?;
    }
    Some(text.len() - rest.len())
}

fn behind_name(text: &str) -> Option<&str> {
    let Some(quote) = text.chars().next().filter(|first| "`'\"".contains(*first)) else {
        let end = text.find(|c: char| !(c.is_alphanumeric() || "_.-%$:".contains(c))).unwrap_or(text.len());
        return (end > 0).then(|| &text[end..]);
    };
    let mut at = 1;
    loop {
        at += text[at..].find(quote)? + 1;
        // A doubled quote is a part of the name.
        if !text[at..].starts_with(quote) {
            return Some(&text[at..]);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, is_confined: bool) -> Result<(Vec<Plain>, String), Error> {
        let mut left_out = LeftOut::default();
        let source = SourceFile { name: "d.sql".into(), text: text.into() };
        let all = statements(&source, is_confined, &mut left_out)?;
        Ok((all, left_out.note("d.sql")))
    }

    fn texts(text: &str, is_confined: bool) -> Vec<String> {
        read_text(text, is_confined).unwrap().0.into_iter().map(|plain| plain.sql).collect()
    }

    #[test]
    fn what_is_about_the_dumped_server_is_not_run() {
        let text = "SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;\nSET @@SESSION.SQL_LOG_BIN= 0;\n\
                    SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'a-b:1-7';\nSET GLOBAL gtid_slave_pos='0-1-2';\n\
                    /*!50606 SET @@GLOBAL.INNODB_STATS_AUTO_RECALC=OFF */;\nCHANGE MASTER TO MASTER_LOG_FILE='a', MASTER_LOG_POS=4;\n\
                    FLUSH PRIVILEGES;\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n\
                    USE `shop`;\nCREATE TABLE t (i INT);\nINSERT INTO t VALUES ('GTID_PURGED');\n\
                    SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;\n";
        let made = ["CREATE TABLE t (i INT)", "INSERT INTO t VALUES ('GTID_PURGED')"];
        assert_eq!(texts(text, true)[1..], made);
        assert_eq!(texts(text, true)[0], "SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN");
        // A login of one's own may do all but what would change what the server replicates.
        assert_eq!(texts(text, false).len(), 7);
        let note = read_text(text, true).unwrap().1;
        assert!(note.contains("5 statements (first in line 2) about the binary log and replication"), "{note}");
        assert!(note.contains("2 statements (first in line 5) about accounts and settings"), "{note}");
        assert!(note.contains("2 statements (first in line 8) that make or enter a schema"), "{note}");
        assert_eq!(read_text("CREATE TABLE t (i INT);", true).unwrap().1, "");
        let two = read_text("USE a;\nCREATE TABLE t (i INT);\nUSE `b`;\n", true).map(|_| ()).unwrap_err().to_string();
        assert!(two.contains("d.sql:3: the dump has the schemas `a` and `b`"), "{two}");
        assert_eq!(texts("USE a;\nUSE `b`;\n", false).len(), 2);
    }

    #[test]
    fn the_account_that_runs_the_setup_is_the_definer() {
        for (text, without) in [
            (
                "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`app``o`@`%` SQL SECURITY DEFINER */\n/*!50001 VIEW v AS select 1 */;",
                "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013  SQL SECURITY DEFINER */\n/*!50001 VIEW v AS select 1 */",
            ),
            (
                "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET @a = 1 */;",
                "/*!50003 CREATE*/ /*!50017 */ /*!50003 TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET @a = 1 */",
            ),
            ("CREATE DEFINER=`root`@`localhost` PROCEDURE `p`()\nSELECT 1;", "CREATE  PROCEDURE `p`()\nSELECT 1"),
            (
                "CREATE OR REPLACE DEFINER = app@10.0.0.% FUNCTION f() RETURNS INT RETURN 1;",
                "CREATE OR REPLACE  FUNCTION f() RETURNS INT RETURN 1",
            ),
            ("CREATE DEFINER=CURRENT_USER() VIEW v AS SELECT 1;", "CREATE  VIEW v AS SELECT 1"),
            (
                "/*!50106 CREATE*/ /*!50117 DEFINER='a'@'b'*/ /*!50106 EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1 */;",
                "/*!50106 CREATE*/ /*!50117 */ /*!50106 EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1 */",
            ),
        ] {
            assert_eq!(texts(text, true), [without]);
        }
        for kept in [
            "CREATE TABLE t (definer INT DEFAULT 1)",
            "INSERT INTO t VALUES ('DEFINER=`a`@`b`')",
            "CREATE VIEW v AS SELECT definer=a FROM t",
        ] {
            assert_eq!(texts(&format!("{kept};"), true), [kept]);
        }
    }

    #[test]
    fn a_dump_is_cut_into_its_statements() {
        let text = "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19\n-- Host: h    Database: shop\n-- name: it's no script\n\
                    /*!40101 SET NAMES utf8mb4 */;\nINSERT INTO t VALUES (1,'a;\\'b'),\n(2,':x ?');\nDELIMITER ;;\nCREATE TRIGGER a \
                    BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; END ;;\nDELIMITER ;\n-- Dump completed on 2026-11-23\n";
        let statements = read_text(text, true).unwrap().0;
        let pairs: Vec<(&str, &str)> =
            statements.iter().map(|plain| (plain.place.as_str(), plain.sql.as_str())).collect();
        assert_eq!(pairs[1], ("d.sql:6", "INSERT INTO t VALUES (1,'a;\\'b'),\n(2,':x ?')"));
        assert!(pairs[2].0 == "d.sql:9" && pairs[2].1.ends_with("SET @a = 1; END"), "{pairs:?}");
        assert!(pairs[0].0 == "d.sql:1" && pairs[0].1.ends_with("SET NAMES utf8mb4 */"), "{pairs:?}");
        assert_eq!(pairs.len(), 3);
    }
}
