//! What is told of a run: files while it is under way, results and reports after.

use std::io::{ErrorKind, Write as _, stdout};

pub mod files;
pub mod progress;
pub mod relay;
pub mod report;
pub mod result;
pub mod sinks;

/// Prints. A reader that went away (`| head`) has had enough, which is no failure.
pub fn print(text: &str) {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => eprintln!("note: cannot print: {error}"),
        _ => {}
    }
}
