//! fio's I/O logs, `write_iolog`: version 2 (no times; waits in milliseconds) and 3 (microseconds since the start).

use super::columns::short;
use super::record::{Findings, Record};
use super::units::{scaled, sectors_of};
use crate::queue::Direction;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Two,
    Three,
}

/// Where the log is.
#[derive(Debug, Clone)]
pub struct IoLog {
    version: Version,
    now_ns: u64,
}

impl IoLog {
    pub fn new(version: Version) -> Self {
        Self { version, now_ns: 0 }
    }

    /// The request of a line; `None` where it is none.
    pub fn record(&mut self, line: &str, findings: &mut Findings) -> Option<Record> {
        let mut words = line.split_ascii_whitespace();
        if self.version == Version::Three {
            let Some(at_ns) = words.next().and_then(|word| scaled(word, 1000)) else {
                findings.damage("does not begin with a time");
                return None;
            };
            self.now_ns = at_ns;
        }
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            findings.damage("lacks a file or an action");
            return None;
        };
        let device = findings.device(file);
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let direction = match action {
            "read" => Direction::Read,
            "write" | "sync" | "datasync" => Direction::Write,
            "add" | "open" | "close" => return None,
            "wait" => {
                // Milliseconds since the job's start, not since the line before.
                self.now_ns = number().map_or(self.now_ns, |wait| wait.saturating_mul(1_000_000));
                return None;
            }
            other => {
                findings.pass_over(&short(other));
                return None;
            }
        };
        let flush = action.ends_with("sync");
        let place = match (flush, number(), number()) {
            (true, ..) => Some((0, 0)),
            (false, Some(offset), Some(size)) => sectors_of(offset, size),
            _ => None,
        };
        let Some((start_sector, sectors)) = place else {
            findings.damage("has no offset and length that a device can have");
            return None;
        };
        let record = Record::new(self.now_ns, direction, start_sector, sectors);
        Some(Record { device, flush, sync: record.sync || flush, ..record })
    }
}
