//! What a fit ends with, whatever it was made from.

use serde_json::{Value, json};

use super::drive_file::DriveFile;

/// A smaller device has too few tracks.
pub const SIZE_BYTES_MIN: u64 = 256 << 20;

pub fn gb(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

pub fn name_file(file: &mut DriveFile, title: String) {
    file.title = title;
    file.notes.push("Written by dbdyno disk fit. Intervals hold the figure with 95 %.".into());
}

/// A fit's result as it is printed, with how long the drive was looked at.
pub fn result(file: &DriveFile, checks: &[Value], elapsed_ns: u64, cut_short: &[&str]) -> Value {
    let seconds = elapsed_ns as f64 / 1e9;
    json!({
        "drive_file": file.text(), "figures": file.figures(), "checks": checks, "seconds": seconds,
        "cut_short": cut_short,
    })
}
