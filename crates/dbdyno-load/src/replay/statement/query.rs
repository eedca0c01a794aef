//! What the expressions of a statement do: to which functions, files and locks they come.

use super::class::Class;
use super::known::{BEFORE_PARENTHESIS, IN_COMMENT};
use super::tokens::{Capitals, Token, Tokens};

/// The servers' own schemas, in capitals: what is written there are users, rights, plugins and settings.
const SYSTEM: [&[u8]; 4] = [b"MYSQL", b"INFORMATION_SCHEMA", b"PERFORMANCE_SCHEMA", b"SYS"];

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

/// Whether a name is that of a schema of the server's own: what is written there are accounts, rights and settings.
pub fn is_servers_own(name: &[u8]) -> bool {
    SYSTEM.iter().any(|system| system.eq_ignore_ascii_case(name))
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
                is_of_system |= next == Token::Mark(b'.') && SYSTEM.contains(&word.bytes());
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
                is_of_system |= next == Token::Mark(b'.') && is_servers_own(name);
                if is_called && name.eq_ignore_ascii_case(b"LOAD_FILE") {
                    Class::ServerFile // servers know their own functions by quoted names, too
                } else if is_called && before != Before::Naming {
                    Class::Functions // as far as one can tell
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
