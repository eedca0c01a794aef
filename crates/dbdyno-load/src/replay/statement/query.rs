//! The classes of statements, and what the expressions of a statement do: which functions, files and locks they reach.
//!
//! Some is never sent, found by single words and pairs of them, wherever they stand: in statements that hold others
//! (routines, events, blocks), and in those of which servers read different parts.
//!
//! Also what a SET does: to variables of the session, of the server, or to the statement behind it.

use super::tokens::{Capitals, Token, Tokens};
use crate::dialect::is_system_schema;
use crate::dialect::words::{
    BEFORE_PARENTHESIS, CHARACTER_SET_VARIABLES, CHARACTER_SETS, IN_COMMENT, SESSION_VARIABLES,
};

/// Whether and when a statement is sent; the later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Always: it reads, sets something of its session, or begins or ends a transaction.
    Reads,
    /// Where the log's writes are wanted: it calls a function that is not known to do no more than read.
    Functions,
    /// Where the log's writes are wanted.
    Writes,
    /// Where the log's writes are wanted and the server itself confines them: what it runs, the log does not show.
    Hidden,
    /// Never: it is several statements.
    Several,
    /// How it is read depends on the server; the words that it has, in any order, say then what it is.
    Odd,
    /// Never: it has `?` in place of values.
    Placeholder,
    /// Never: `USE`, as the log has the default schema of each statement.
    Use,
    /// Never: it needs a file of the client's.
    LocalFile,
    /// Never: it reads or writes a file of the server's.
    ServerFile,
    /// Never: it is of no kind that is known.
    Unknown,
    /// Never: it is about connections, accounts, settings, replication or the life of the logged server.
    Administers,
    /// Never: it has no end, or every server refuses it.
    CutOff,
}

/// What tokens do that were gone over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// The worst of all.
    pub class: Class,
    /// Something of a schema of the server's own is named.
    pub is_of_system: bool,
}

/// What a token before says of the one behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A point or bytes beyond ASCII: the word is a part of a name.
    PartOfName,
    /// AS, WITH or RECURSIVE: the word is a name that the statement gives.
    Naming,
    /// VALUE, as in NEXT VALUE FOR.
    Value,
    /// FOR, as in FOR SHARE.
    For,
}

/// Goes to the statement's end, and over one `;` that may stand there.
pub fn rest(mut tokens: Tokens<'_>) -> Effect {
    let (mut class, mut is_of_system, mut before) = (Class::Reads, false, Before::Nothing);
    let mut next = tokens.next();
    loop {
        let (token, behind) = (next, tokens);
        next = tokens.next();
        let is_called = next == Token::Mark(b'(');
        let of_token = match token {
            Token::End => return Effect { class, is_of_system },
            Token::Word(word) => {
                let word = Capitals::new(word);
                is_of_system |= next == Token::Mark(b'.') && is_system_schema(word.bytes());
                class = class.max(class_of_word(&word, before, next, behind));
                before = match word.bytes() {
                    b"AS" | b"WITH" | b"RECURSIVE" => Before::Naming,
                    b"VALUE" => Before::Value,
                    b"FOR" => Before::For,
                    _ => Before::Nothing,
                };
                continue;
            }
            Token::Name(name) | Token::Text(_, name) => {
                is_of_system |= next == Token::Mark(b'.') && is_system_schema(name);
                if is_called && name.eq_ignore_ascii_case(b"LOAD_FILE") {
                    Class::ServerFile // servers know their own functions by quoted names, too
                } else if is_called && before != Before::Naming {
                    Class::Functions // nothing shows that it is none
                } else {
                    Class::Reads
                }
            }
            Token::Foreign | Token::Mark(b'.') => {
                before = Before::PartOfName;
                if is_called {
                    class = class.max(Class::Functions);
                }
                continue;
            }
            Token::Executable(code) => class_of_comment(code),
            Token::Mark(b'?') => Class::Placeholder,
            Token::Mark(b';') if next != Token::End => Class::Several,
            Token::Number | Token::Mark(_) => Class::Reads,
            Token::Odd => Class::Odd,
            Token::Open => Class::CutOff,
        };
        before = Before::Nothing;
        class = class.max(of_token);
    }
}

/// What a word does; `after` is where the tokens behind it begin.
fn class_of_word(word: &Capitals, before: Before, next: Token<'_>, after: Tokens<'_>) -> Class {
    let is_called = next == Token::Mark(b'(');
    match word.bytes() {
        b"OUTFILE" | b"DUMPFILE" => Class::ServerFile,
        b"LOAD_FILE" if is_called => Class::ServerFile,
        b"INTO" => {
            let mut tokens = after;
            let is_variable = tokens.skip(b'@') && !tokens.skip(b'@');
            if is_variable { Class::Reads } else { Class::Writes }
        }
        b"UPDATE" | b"DELETE" | b"LOCK" => Class::Writes,
        b"INSERT" | b"REPLACE" if !is_called => Class::Writes,
        b"SHARE" if before == Before::For => Class::Writes,
        b"FOR" if before == Before::Value => Class::Functions,
        b"NEXTVAL" | b"SETVAL" | b"LASTVAL" | b"CURRVAL" => Class::Functions,
        _ if !is_called || before == Before::Naming => Class::Reads,
        _ if before != Before::PartOfName && word.is_one_of(BEFORE_PARENTHESIS) => Class::Reads,
        _ => Class::Functions,
    }
}

/// What a comment does that some servers run, within a statement: nothing, if these words alone are in it.
fn class_of_comment(code: &[u8]) -> Class {
    let mut tokens = Tokens::new(code, super::tokens::USUAL);
    loop {
        match tokens.next() {
            Token::End => return Class::Reads,
            Token::Word(word) if Capitals::new(word).is_one_of(IN_COMMENT) => {}
            _ => return Class::Odd,
        }
    }
}

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
    let effect = rest(tokens);
    let is_open = matches!(effect.class, Class::CutOff | Class::Placeholder);
    let mut worst = if is_open { effect.class } else { Class::Writes };
    if effect.is_of_system {
        worst = Class::Administers;
    }
    let mut watch = Watch::default();
    loop {
        let class = match tokens.next() {
            Token::End => return worst,
            Token::Word(word) => watch.word(word),
            // Servers know their own functions by quoted names, too.
            Token::Name(name) | Token::Text(_, name) if name.eq_ignore_ascii_case(b"LOAD_FILE") => Class::ServerFile,
            // ``@@`hot`.size`` and ``@@`global`.size``: which may be the server's.
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
        if is_system_schema(word) {
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

/// How variables begin that a session may set for itself and that yet are about replication, logs and debugging.
const BEYOND_SESSION: [&[u8]; 14] = [
    b"BINLOG_",
    b"DEBUG",
    b"GENERAL_LOG",
    b"GTID_",
    b"LOG_",
    b"PSEUDO_",
    b"REPLICATION_",
    b"SERVER_ID",
    b"SKIP_REPLICATION",
    b"SLOW_QUERY_LOG",
    b"SQL_BIN_",
    b"SQL_LOG_",
    b"SYSTEM_VERSIONING_INSERT",
    b"WSREP_",
];

/// The class of `SET ...`, whose first token comes next.
pub fn class_of_set(mut tokens: Tokens<'_>) -> Class {
    let mut after = tokens;
    if let Token::Word(word) = after.next() {
        match Capitals::new(word).bytes() {
            b"TRANSACTION" => return transaction(after),
            b"SESSION" | b"LOCAL" if is_word(after.peek(), b"TRANSACTION") => {
                after.next();
                return transaction(after);
            }
            // Rights of this session alone, which a login may use.
            b"ROLE" => return Class::Writes.max(rest(after).class),
            b"PASSWORD" | b"DEFAULT" | b"RESOURCE" | b"GLOBAL" | b"PERSIST" | b"PERSIST_ONLY" => {
                return Class::Administers;
            }
            _ => {}
        }
    }
    let mut worst = rest(tokens).class;
    loop {
        worst = worst.max(assignment(&mut tokens));
        match skip_value(&mut tokens) {
            Stop::Comma => {}
            Stop::End => return worst,
            Stop::For => return Class::Administers,
        }
    }
}

/// What `SET STATEMENT a = 1 FOR ...` does by its assignments, with the statement behind it; `None` if there is none.
pub fn split_statement(mut tokens: Tokens<'_>) -> Option<(Class, Tokens<'_>)> {
    let mut worst = Class::Reads;
    loop {
        let value = tokens;
        worst = worst.max(assignment(&mut tokens));
        match skip_value(&mut tokens) {
            Stop::Comma => {}
            // What stands in the values is looked at with the statement.
            Stop::For => return Some((worst.max(functions_between(value, tokens)), tokens)),
            Stop::End => return None,
        }
    }
}

/// What the values do that stand before `end`.
fn functions_between(mut tokens: Tokens<'_>, end: Tokens<'_>) -> Class {
    while tokens.place() < end.place() {
        if tokens.next() == Token::Mark(b'(') {
            return Class::Functions;
        }
    }
    Class::Reads
}

/// What ends a value.
enum Stop {
    Comma,
    For,
    End,
}

/// Goes over a value to what stands behind it, outside of parentheses.
fn skip_value(tokens: &mut Tokens<'_>) -> Stop {
    let mut depth = 0_u32;
    loop {
        match tokens.next() {
            Token::End => return Stop::End,
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') => depth = depth.saturating_sub(1),
            Token::Mark(b',') if depth == 0 => return Stop::Comma,
            Token::Word(word) if depth == 0 && word.eq_ignore_ascii_case(b"FOR") => return Stop::For,
            _ => {}
        }
    }
}

/// What setting the variable does that comes next, which is gone over up to its value.
fn assignment(tokens: &mut Tokens<'_>) -> Class {
    let mut first = tokens.next();
    if first == Token::Mark(b'@') {
        if !tokens.skip(b'@') {
            // A variable of the user's, whose name may have points and quotes.
            return match tokens.next() {
                Token::Word(_) | Token::Name(_) | Token::Text(..) | Token::Foreign | Token::Number => Class::Reads,
                _ => Class::Unknown,
            };
        }
        first = tokens.next();
        if is_word(first, b"SESSION") || is_word(first, b"LOCAL") {
            if !tokens.skip(b'.') {
                return Class::Administers;
            }
            first = tokens.next();
        }
    } else if is_word(first, b"SESSION") || is_word(first, b"LOCAL") {
        first = tokens.next();
        if first == Token::Mark(b'@') {
            return Class::Administers;
        }
    }
    let Token::Word(name) = first else { return Class::Administers };
    let is_names = is_word(first, b"NAMES") || is_word(first, b"CHARSET");
    if is_names || is_word(first, b"CHARACTER") && is_word(tokens.peek(), b"SET") {
        if !is_names {
            tokens.next();
        }
        tokens.skip(b'=');
        return character_set(*tokens);
    }
    // `hot.key_buffer_size` is the server's, and so is a scope that is none of the session's.
    let is_assigned = tokens.skip(b'=') || tokens.skip(b':') && tokens.skip(b'=');
    if !is_assigned {
        return Class::Administers;
    }
    let name = Capitals::new(name);
    if name.is_one_of(SESSION_VARIABLES) {
        Class::Reads
    } else if name.is_one_of(CHARACTER_SET_VARIABLES) {
        character_set(*tokens)
    } else if name.bytes() == b"PASSWORD" || BEYOND_SESSION.iter().any(|start| name.bytes().starts_with(start)) {
        Class::Administers
    } else {
        Class::Writes
    }
}

/// The character set that comes next, as text or as a word: `utf8mb4 COLLATE utf8mb4_bin`.
fn character_set(mut tokens: Tokens<'_>) -> Class {
    let is_known = is_known_character_set(tokens.next());
    let is_all = match tokens.peek() {
        Token::End | Token::Mark(b',' | b';') => true,
        token => is_word(token, b"COLLATE"),
    };
    if is_known && is_all { Class::Reads } else { Class::Writes }
}

fn is_known_character_set(token: Token<'_>) -> bool {
    match token {
        Token::Word(name) | Token::Text(_, name) => Capitals::new(name).is_one_of(CHARACTER_SETS),
        _ => false,
    }
}

/// How isolated transactions are; not that they may write.
fn transaction(tokens: Tokens<'_>) -> Class {
    let class = rest(tokens).class;
    let mut words = tokens;
    loop {
        match words.next() {
            Token::End => return class,
            Token::Word(word) if word.eq_ignore_ascii_case(b"WRITE") => return class.max(Class::Writes),
            Token::Word(_) | Token::Mark(b',' | b';') => {}
            _ => return class.max(Class::Unknown),
        }
    }
}

fn is_word(token: Token<'_>, word: &[u8]) -> bool {
    matches!(token, Token::Word(text) if text.eq_ignore_ascii_case(word))
}
