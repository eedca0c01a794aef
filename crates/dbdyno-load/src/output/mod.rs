//! What is told of a run: files while it is under way, results and reports after.

use std::borrow::Cow;
use std::io::{ErrorKind, Write as _, stderr, stdout};

pub mod files;
pub mod progress;
pub mod relay;
pub mod report;
pub mod result;
pub mod sinks;

/// Prints. A reader that went away (`| head`) has had enough, which is no failure.
pub fn print(text: &str) {
    let mut out = stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => note(&format!("cannot print: {error}")),
        _ => {}
    }
}

/// Says something beside the results, in a line.
pub fn say(text: &str) {
    // There is nowhere to say that it failed.
    let _ = writeln!(stderr().lock(), "{}", printable(text));
}

/// Says what is not as one might expect, though the work goes on.
pub fn note(text: &str) {
    say(&format!("note: {text}"));
}

/// A text without what a terminal would obey: names and messages come from servers.
fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    if text.chars().all(is_plain) {
        return text.into();
    }
    text.chars().map(|c| if is_plain(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing_but_text() {
        assert_eq!(printable("a\n\tb \u{e9}"), "a\n\tb \u{e9}");
        assert_eq!(printable("a\u{1b}[31mred\u{9b}2J\u{7f}\r"), "a\u{fffd}[31mred\u{fffd}2J\u{fffd}\u{fffd}");
    }
}
