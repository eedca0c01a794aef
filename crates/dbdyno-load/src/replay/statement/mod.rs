//! What a logged statement does: the one place that decides whether and when it may be sent.
//!
//! Without `--writes` the statements are sent that are *known* to read, with it those that are known to write as well; what is not
//! known is not sent. A log may come from anyone, so a statement is taken for the worst that any server may take it for:
//! [`tokens`] cuts it as the servers do, [`query`] looks at its expressions and at what no load may do,
//! [`set`] at its variables. [`session`] says what a statement leaves to those behind it.

mod definition;
mod query;
mod session;
mod set;
pub(crate) mod tokens;

use crate::dialect::{is_system_schema, words};
use crate::statements::Kind;

pub use self::query::Class;
pub use definition::{
    Body, Comparable, Definition, Makes, called_procedure, comparable, definition, is_block, is_only_of_routine,
};
use query::{Effect, rest};
pub use session::{Step, names_table, parts, step, used_schema};
use tokens::{Capitals, DEPTH_MAX, READINGS, Token, Tokens, USUAL, is_word, skip_word};

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

/// In some character sets a byte beyond ASCII takes the backslash or the backtick behind it with it, and a string ends elsewhere.
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
            None => set::class_of_set(behind),
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
fn reads(found: Effect) -> Class {
    if found.class >= Class::Writes { writes(found) } else { found.class }
}

fn writes(found: Effect) -> Class {
    match found.class {
        Class::CutOff => Class::CutOff,
        _ if found.is_of_system => Class::Administers,
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

/// EXPLAIN, which may run what it explains, and functions in it; or DESCRIBE; or MariaDB's ANALYZE, which has two meanings.
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
    let found = rest(tokens);
    loop {
        match tokens.next() {
            Token::Word(word) if word.eq_ignore_ascii_case(b"LOCAL") => return Class::LocalFile.max(found.class),
            Token::Word(word) if word.eq_ignore_ascii_case(b"INFILE") => break,
            Token::End => break,
            _ => {}
        }
    }
    Class::ServerFile.max(found.class)
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
        let is_given = matches!(tokens.peek(), Token::Mark(b'=') | Token::Text(..));
        worst = worst.max(match word.bytes() {
            b"DIRECTORY" if may_be_directory => Class::ServerFile,
            b"FILE_NAME" if is_given => Class::ServerFile,
            b"CONNECTION" if is_given => Class::Administers,
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
    if skip_word(&mut tokens, b"STATEMENT") { set::split_statement(tokens) } else { None }
}

/// Whether nothing follows but what ends a statement.
fn is_over(mut tokens: Tokens<'_>) -> bool {
    tokens.skip(b';');
    tokens.next() == Token::End
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
