//! What is told of a run: files while it is under way, results and reports after.

use std::io::{Write as _, stdout};

pub mod files;
pub mod progress;
pub mod report;
pub mod result;
pub mod sinks;

/// Prints; a reader that went away (`| head`) is no failure.
pub fn print(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}
