//! What is checked of each parser of the load generator: it gives a value or its own error, and these hold.

use std::sync::LazyLock;

use dbdyno_common::option_file::{Entry, lines};
use dbdyno_load::protocol::auth::ServerKey;
use dbdyno_load::protocol::auth::{Channel, Dialogue, Login, Step};
use dbdyno_load::protocol::reply::{Dialect, Reply, ReplyParser};
use dbdyno_load::protocol::session::PrepareParser;
use dbdyno_load::replay::log::Log;
use dbdyno_load::replay::statement::{Class, classified};
use dbdyno_load::text::CHARS_MAX;

static KEY: LazyLock<Option<ServerKey>> =
    LazyLock::new(|| ServerKey::parse(include_bytes!("../../crates/dbdyno-load/tests/keys/rsa-1024.pub.pem")));

/// Long enough that no fuzzer writes it by chance.
const PASSWORD: &str = "a password that is not to be seen";

/// The dialect that a first byte chooses.
fn dialect(byte: u8) -> Dialect {
    match byte % 3 {
        0 => Dialect::Eof,
        1 => Dialect::Ok,
        _ => Dialect::CachedMetadata,
    }
}

/// Payloads, each behind its length in two bytes; the last may be cut short.
fn payloads(mut data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let ([low, high], rest) = data.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        Some(payload)
    })
}

/// Replies in any pieces: the same reply as in one piece, whose error is short and fit to show.
///
/// # Panics
/// Something of that does not hold.
pub fn reply(data: &[u8]) {
    let [first, size, bytes @ ..] = data else { return };
    let mut whole = ReplyParser::new(dialect(*first));
    let expected = whole.feed(bytes);
    if let Ok(Some(Reply { error: Some(error), .. })) = &expected {
        assert!(error.message.chars().count() < 2 * CHARS_MAX && !error.to_string().chars().any(char::is_control));
    }
    let mut parser = ReplyParser::new(dialect(*first));
    let mut outcome = Ok(None);
    for piece in bytes.chunks(usize::from(*size).max(1)) {
        if !matches!(outcome, Ok(None)) {
            // A reply is complete before the last piece only if something is behind it.
            assert!(expected.is_err());
            return;
        }
        outcome = parser.feed(piece);
    }
    assert_eq!(outcome, expected);
}

/// A greeting and what follows it until the login is complete: the password is never said in the clear.
///
/// # Panics
/// It is.
pub fn login(data: &[u8]) {
    let [how, rest @ ..] = data else { return };
    let login = Login {
        user: "user",
        password: PASSWORD,
        schema: (how & 1 != 0).then_some("schema"),
        channel: Channel::Open,
        server_key: KEY.as_ref().filter(|_| how & 2 != 0),
        may_ask_for_key: how & 4 != 0,
        compressed: how & 16 != 0,
    };
    let mut heard = payloads(rest);
    let Some(Ok((mut dialogue, _))) = heard.next().map(|greeting| Dialogue::start(login, greeting)) else { return };
    let sealed = how & 8 != 0;
    if sealed {
        dialogue.request_tls(Channel::Sealed);
    }
    let Ok(response) = dialogue.response() else { return };
    let safe = |said: &[u8]| sealed || !said.windows(PASSWORD.len()).any(|text| text == PASSWORD.as_bytes());
    assert!(safe(&response));
    for payload in heard {
        match dialogue.packet(payload) {
            Ok(Step::Send(said)) => assert!(safe(&said)),
            Ok(Step::Read) => {}
            Ok(Step::Done) | Err(_) => return,
        }
    }
}

/// The answer to a statement to prepare.
pub fn prepare(data: &[u8]) {
    let [first, rest @ ..] = data else { return };
    let mut parser = PrepareParser::new(dialect(*first));
    for payload in payloads(rest) {
        if !matches!(parser.packet(payload, payload.len()), Ok(None)) {
            return;
        }
    }
}

/// Option files: names are not empty, and values are of one line.
///
/// # Panics
/// Something of that does not hold.
pub fn option_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for line in lines(text) {
        if let Entry::Option(name, _) = line.entry {
            assert!(!name.is_empty() && !name.contains('\n'));
        }
    }
}

/// Slow and general query logs: what each statement refers to is there.
///
/// # Panics
/// It is not.
pub fn replay_log(data: &[u8]) {
    let Ok(log) = Log::parse("a.log", data.to_vec()) else { return };
    for statement in &log.statements {
        assert!(!log.sql(statement).is_empty());
        assert!((statement.session as usize) < log.sessions.len());
        assert!((statement.schema as usize) < log.schemas.len());
        assert!(statement.duration_us >= 0);
        classified(log.sql(statement));
    }
}

/// Statements: what is sent of a log without its writes is a query, or begins with one of few words.
///
/// # Panics
/// Something of that does not hold.
pub fn statement(data: &[u8]) {
    let (_, class) = classified(data);
    // A blank behind a statement means nothing.
    assert_eq!(classified(&[data, b"\n"].concat()).1, class);
    let holds = |word: &str| {
        let mut words = data.split(|byte| !byte.is_ascii_alphanumeric());
        words.any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    };
    if class == Class::Reads {
        let begins = [
            "SELECT",
            "SHOW",
            "DESC",
            "DESCRIBE",
            "EXPLAIN",
            "ANALYZE",
            "WITH",
            "VALUES",
            "TABLE",
            "SET",
            "BEGIN",
            "START",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT",
            "RELEASE",
        ];
        assert!(begins.into_iter().any(holds));
    }
}
