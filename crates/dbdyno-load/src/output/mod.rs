//! What is written of a run: files during it, results and reports after.

use std::io::{ErrorKind, Write as _, stderr, stdout};

use crate::text::lines;

pub mod result;
pub mod sinks;

/// Prints. A reader that went away (`| head`) has had enough, which is no failure.
pub fn print(text: &str) {
    let mut out = stdout().lock();
    match out.write_all(lines(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => note(&format!("cannot print: {error}")),
        _ => {}
    }
}

/// Says something beside the results, in a line.
pub fn say(text: &str) {
    // There is nowhere to say that it failed.
    let _ = writeln!(stderr().lock(), "{}", lines(text));
}

/// Says what is not as one might expect, though the work goes on.
pub fn note(text: &str) {
    say(&format!("note: {text}"));
}
