//! What a fit ends with, whatever it was made from.

use serde_json::{Value, json};

use super::drive_file::DriveFile;
use super::host::Lateness;

/// A smaller device has too few tracks.
pub const SIZE_BYTES_MIN: u64 = 256 << 20;

pub fn gb(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

pub fn name_file(file: &mut DriveFile, title: String) {
    file.title = title;
    file.notes.push("Written by dbdyno disk fit. Intervals hold the figure with 95 %.".into());
}

/// What a fit comes to.
pub struct Outcome {
    pub file: DriveFile,
    pub checks: Vec<Value>,
    /// How long the drive was looked at.
    pub elapsed_ns: u64,
    pub cut_short: Vec<&'static str>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
    /// The shortest time that was to be measured, and its name.
    pub shortest: (&'static str, f64),
    /// How late the host wakes programs, where it was one that measured.
    pub late: Option<Lateness>,
}

impl Outcome {
    /// How late the host was while it measured.
    pub fn add_lateness(&mut self, late: &Lateness) {
        self.file.notes.push(late.said());
        self.notes.extend(late.warning(self.shortest.0, self.shortest.1));
        self.late = Some(late.clone());
    }

    /// As it is printed.
    pub fn json(&self) -> Value {
        json!({
            "drive_file": self.file.text(), "figures": self.file.figures(), "checks": self.checks,
            "seconds": self.elapsed_ns as f64 / 1e9, "cut_short": self.cut_short, "notes": self.notes,
            "host": self.late.as_ref().map(Lateness::json),
        })
    }
}
