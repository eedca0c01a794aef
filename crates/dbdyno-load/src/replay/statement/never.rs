//! What is never sent, found by single words and pairs of them, wherever they stand: for statements that hold others
//! (routines, events, blocks), and for those of which it depends on the server what of them it reads.

use super::class::Class;
use super::query;
use super::tokens::{Capitals, Token, Tokens};

/// Whatever these words are about, it is no part of a load; sorted.
const WORDS: &[&str] = &[
    "BACKUP",
    "BINLOG",
    "CLONE",
    "DUMPFILE",
    "FLUSH",
    "GLOBAL",
    "GRANT",
    "INFILE",
    "INSTALL",
    "KEY_BUFFER_SIZE",
    "KEY_CACHE_AGE_THRESHOLD",
    "KEY_CACHE_BLOCK_SIZE",
    "KEY_CACHE_DIVISION_LIMIT",
    "KEY_CACHE_FILE_HASH_SIZE",
    "KEY_CACHE_SEGMENTS",
    "KILL",
    "LOAD_FILE",
    "OUTFILE",
    "PERSIST",
    "PERSIST_ONLY",
    "PURGE",
    "RESTART",
    "REVOKE",
    "SHUTDOWN",
    "SONAME",
    "UNINSTALL",
];

/// Words that are about files of the server; sorted.
const FILES: &[&str] = &["DUMPFILE", "INFILE", "LOAD_FILE", "OUTFILE"];

/// What makes, changes or removes something; and of what it is no part of a load.
const CHANGES: [&[u8]; 6] = [b"CREATE", b"ALTER", b"DROP", b"RENAME", b"REPLACE", b"IMPORT"];
const SERVERS_OWN: [&[u8]; 8] =
    [b"USER", b"ROLE", b"SERVER", b"TABLESPACE", b"LOGFILE", b"INSTANCE", b"RESOURCE", b"UNDO"];

/// What begins, changes or ends the server's replication.
const STEERS: [&[u8]; 4] = [b"START", b"STOP", b"CHANGE", b"RESET"];
const REPLICATION: [&[u8]; 8] =
    [b"SLAVE", b"REPLICA", b"ALL", b"GROUP_REPLICATION", b"MASTER", b"REPLICATION", b"BINARY", b"QUERY"];

/// The class of a statement that holds others, by all its tokens.
pub fn class_of_body(mut tokens: Tokens<'_>) -> Class {
    let found = query::rest(tokens);
    let is_open = matches!(found.class, Class::CutOff | Class::Placeholder);
    let mut worst = if is_open { found.class } else { Class::Writes };
    if found.is_of_system {
        worst = Class::Administers;
    }
    let mut watch = Watch::default();
    loop {
        let class = match tokens.next() {
            Token::End => return worst,
            Token::Word(word) => watch.word(word),
            // Servers know their own functions by quoted names, too.
            Token::Name(name) | Token::Text(_, name) if name.eq_ignore_ascii_case(b"LOAD_FILE") => Class::ServerFile,
            // ``@@`hot`.size`` and ``@@`global`.size``: the server's, as far as one can tell.
            Token::Mark(b'@') => {
                let mut after = tokens;
                let is_quoted = after.skip(b'@') && matches!(after.peek(), Token::Name(_) | Token::Text(..));
                if is_quoted { Class::Administers } else { Class::Writes }
            }
            Token::Executable(_) | Token::Odd => Class::Odd,
            _ => Class::Writes,
        };
        worst = worst.max(class);
    }
}

/// The class of a statement by the words in its bytes alone, also those in strings and comments.
pub fn class_of_bytes(sql: &[u8]) -> Class {
    let mut watch = Watch::default();
    let words = sql.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    let mut worst = Class::Writes;
    for word in words.filter(|word| !word.is_empty()) {
        if query::is_servers_own(word) {
            worst = worst.max(Class::Administers);
        }
        worst = worst.max(watch.word(word));
        // A number may end right before a word.
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        worst = worst.max(watch.word(&word[digits..]));
        if let Some(exponent) = word[digits..].strip_prefix(b"e").or(word[digits..].strip_prefix(b"E")) {
            let digits = exponent.iter().take_while(|byte| byte.is_ascii_digit()).count();
            worst = worst.max(watch.word(&exponent[digits..]));
        }
    }
    worst
}

/// Whether a word about files of the server stands anywhere in the bytes, also in strings.
pub fn names_file(sql: &[u8]) -> bool {
    let words = sql.split(|byte| !(byte.is_ascii_alphabetic() || *byte == b'_'));
    words.into_iter().any(|word| Capitals::new(word).is_one_of(FILES))
}

/// Follows words in pairs.
#[derive(Default)]
struct Watch {
    changes: bool,
    steers: bool,
    sets: bool,
}

impl Watch {
    fn word(&mut self, word: &[u8]) -> Class {
        if word.is_empty() {
            return Class::Writes;
        }
        let capitals = Capitals::new(word);
        let word = capitals.bytes();
        let is_never = capitals.is_one_of(WORDS)
            || self.changes && SERVERS_OWN.contains(&word)
            || self.steers && REPLICATION.contains(&word)
            || self.sets && matches!(word, b"PASSWORD" | b"DEFAULT" | b"RESOURCE");
        let is_hidden = matches!(word, b"PREPARE" | b"IMMEDIATE");
        self.changes = CHANGES.contains(&word);
        self.steers = STEERS.contains(&word);
        self.sets = word == b"SET";
        if capitals.is_one_of(FILES) {
            Class::ServerFile
        } else if is_never {
            Class::Administers
        } else if is_hidden {
            Class::Hidden
        } else {
            Class::Writes
        }
    }
}
