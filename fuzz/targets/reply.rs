//! Replies in any pieces: never a panic, and the same reply as in one piece, whose error is short and fit to show.
#![no_main]

use dbdyno_fuzz::dialect;
use dbdyno_load::protocol::reply::{Reply, ReplyParser};
use dbdyno_load::text::CHARS_MAX;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
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
});
