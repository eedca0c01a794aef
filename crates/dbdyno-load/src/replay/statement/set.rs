//! What a SET does: to variables of the session, of the server, or to the statement behind it.

use super::query;
use super::query::Class;
use super::tokens::{Capitals, Token, Tokens};
use crate::dialect::words::{CHARACTER_SET_VARIABLES, CHARACTER_SETS, SESSION_VARIABLES};

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
            b"ROLE" => return Class::Writes.max(query::rest(after).class),
            b"PASSWORD" | b"DEFAULT" | b"RESOURCE" | b"GLOBAL" | b"PERSIST" | b"PERSIST_ONLY" => {
                return Class::Administers;
            }
            _ => {}
        }
    }
    let mut worst = query::rest(tokens).class;
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
    let found = query::rest(tokens).class;
    let mut words = tokens;
    loop {
        match words.next() {
            Token::End => return found,
            Token::Word(word) if word.eq_ignore_ascii_case(b"WRITE") => return found.max(Class::Writes),
            Token::Word(_) | Token::Mark(b',' | b';') => {}
            _ => return found.max(Class::Unknown),
        }
    }
}

fn is_word(token: Token<'_>, word: &[u8]) -> bool {
    matches!(token, Token::Word(found) if found.eq_ignore_ascii_case(word))
}
