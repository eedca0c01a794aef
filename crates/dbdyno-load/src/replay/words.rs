//! What a logged statement does, as far as its words say.

use crate::statements::Kind;

use super::log::Quotes;

/// Whether and when a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Always: it reads, sets something of its session, or begins or ends a transaction.
    Reads,
    /// Where the log's writes are wanted.
    Writes,
    /// Never: `USE`, as the log has the default schema of each statement.
    Use,
    /// Never: it is about the connections, the settings or the life of the logged server.
    Administers,
    /// Never: it needs a file of the client's.
    LocalFile,
    /// Never: it has `?` in place of values.
    Placeholder,
}

/// Names of the kinds of statement; those of the first word of a statement, then what is left.
const QUERIES: [&str; 18] = [
    "select", "show", "describe", "explain", "with", "values", "insert", "update", "delete", "replace", "call", "do",
    "load", "create", "alter", "drop", "truncate", "other",
];
const APART: [&str; 7] = ["set", "begin", "start", "commit", "rollback", "savepoint", "use"];

/// The kind of a `USE` that the replay itself sends.
pub const USE: u16 = (QUERIES.len() + APART.len() - 1) as u16;

const OTHER: u16 = QUERIES.len() as u16 - 1;

/// Longest word that means something here.
const WORD_MAX: usize = 24;

/// Most words of a statement that are looked at: what comes later in a long one are values.
const ALL_MAX: usize = 100_000;

/// The kinds of statement.
pub fn kinds() -> Vec<Kind> {
    QUERIES.into_iter().map(Kind::query).chain(APART.into_iter().map(Kind::apart)).collect()
}

/// Kind and class of a statement.
pub fn classified(sql: &[u8]) -> (u16, Class) {
    let words = Words::of(sql);
    let first = words.all.first().map_or("", String::as_str);
    let known = QUERIES.into_iter().chain(APART).position(|name| name.eq_ignore_ascii_case(first));
    let kind = match first {
        "DESC" => 2,
        _ => known.and_then(|known| u16::try_from(known).ok()).unwrap_or(OTHER),
    };
    (kind, words.class())
}

/// The words of a statement in capitals, without those in strings and comments.
struct Words {
    all: Vec<String>,
    has_placeholder: bool,
}

impl Words {
    fn of(sql: &[u8]) -> Self {
        let mut words = Self { all: Vec::new(), has_placeholder: false };
        let (mut word, mut end) = (String::new(), 0);
        Quotes::new(true).pass(sql, |at, byte| {
            if at != end {
                words.take(&mut word);
            }
            end = at + 1;
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' if word.len() <= WORD_MAX => {
                    word.push(char::from(byte.to_ascii_uppercase()));
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | 0x80.. | b'$' => {}
                _ => words.take(&mut word),
            }
            words.has_placeholder |= byte == b'?';
        });
        words.take(&mut word);
        words
    }

    /// A word is over. Of numbers, as that of `/*!40101`, none means anything here.
    fn take(&mut self, word: &mut String) {
        let means = word.len() <= WORD_MAX && word.starts_with(|c: char| !c.is_ascii_digit());
        let text = std::mem::take(word);
        if means && self.all.len() < ALL_MAX {
            self.all.push(text);
        }
    }

    fn has(&self, any: &[&str]) -> bool {
        self.all.iter().any(|word| any.contains(&word.as_str()))
    }

    fn class(&self) -> Class {
        const CHANGES: [&str; 6] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "OUTFILE", "DUMPFILE"];
        const SERVERS: [&str; 4] = ["GLOBAL", "PERSIST", "PERSIST_ONLY", "PASSWORD"];
        const BEYOND: [&str; 6] =
            ["ROLE", "WRITE", "READ_ONLY", "TX_READ_ONLY", "TRANSACTION_READ_ONLY", "SQL_LOG_BIN"];
        let first = self.all.first().map_or("", String::as_str);
        let second = self.all.get(1).map_or("", String::as_str);
        let reads = match first {
            "SELECT" => !self.has(&["OUTFILE", "DUMPFILE"]) && !self.all.windows(2).any(|two| two == ["FOR", "UPDATE"]),
            "SHOW" | "DESC" | "DESCRIBE" | "EXPLAIN" | "VALUES" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
                true
            }
            "WITH" => !self.has(&CHANGES),
            "SET" => !self.has(&BEYOND),
            "BEGIN" => second != "NOT",
            "START" => second == "TRANSACTION" && !self.has(&["WRITE"]),
            _ => false,
        };
        match first {
            _ if self.has_placeholder => Class::Placeholder,
            "USE" => Class::Use,
            "SET" if self.has(&SERVERS) => Class::Administers,
            "KILL" | "SHUTDOWN" | "RESTART" | "FLUSH" | "RESET" | "PURGE" | "CHANGE" | "STOP" | "INSTALL"
            | "UNINSTALL" => Class::Administers,
            "LOAD" if self.has(&["LOCAL"]) => Class::LocalFile,
            _ if reads => Class::Reads,
            _ => Class::Writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(sql: &str) -> (String, Class) {
        let (kind, class) = classified(sql.as_bytes());
        (kinds()[usize::from(kind)].name.clone(), class)
    }

    #[test]
    fn reading_is_told_from_writing() {
        let reading = [
            "select 1",
            "/* hot */ (SELECT 'delete' FROM `update`) UNION SELECT 2",
            "SELECT a INTO @b FROM t",
            "SHOW TABLES",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "/*!40101 SET NAMES utf8 */",
            "SET @a = 1",
            "set session sql_mode = ''",
            "BEGIN",
            "start transaction read only",
            "COMMIT",
            "DESC t",
            "-- a comment\nSELECT 1",
            "SELECT '?', `?` /* ? */",
        ];
        for sql in reading {
            assert_eq!(kind(sql).1, Class::Reads, "{sql}");
        }
        let writing = [
            "INSERT INTO t VALUES (1)",
            "SELECT 1 INTO OUTFILE 'x'",
            "with a as (select 1) delete from t",
            "SELECT a FROM t FOR UPDATE",
            "SET SESSION TRANSACTION READ WRITE",
            "START TRANSACTION READ WRITE",
            "SET tx_read_only = 0",
            "start slave",
            "CALL p()",
            "BEGIN NOT ATOMIC DELETE FROM t; END",
            "LOCK TABLES t READ",
            "",
            "x",
            "DO SLEEP(1)",
            "ANALYZE TABLE t",
        ];
        for sql in writing {
            assert_eq!(kind(sql).1, Class::Writes, "{sql}");
        }
        assert_eq!(kind("USE shop").1, Class::Use);
        for sql in ["KILL 5", "SET GLOBAL a = 1", "SET @@global.a = 1", "set persist a = 1", "SHUTDOWN", "flush logs"] {
            assert_eq!(kind(sql).1, Class::Administers, "{sql}");
        }
        assert_eq!(kind("LOAD DATA LOCAL INFILE 'a' INTO TABLE t").1, Class::LocalFile);
        assert_eq!(kind("SELECT * FROM t WHERE a = ?").1, Class::Placeholder);
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
            ("", "other"),
        ] {
            assert_eq!(kind(sql).0, name);
        }
        assert_eq!(kinds()[usize::from(USE)].name, "use");
        assert!(!kinds()[usize::from(USE)].is_query && kinds()[usize::from(OTHER)].name == "other");
    }
}
