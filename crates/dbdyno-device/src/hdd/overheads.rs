//! What commands cost beside the arm and the transfer, by what came before.

use serde::Deserialize;

use crate::contract::Kind;
use crate::limits::within;

/// `[hdd.overheads]` of a drive file. Pairs are for a command after a read and for one after a write.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "they are fields of the drive file, which have their unit in the name")]
pub(crate) struct OverheadSpec {
    /// Until the transfer of a read from the cache begins, ms.
    pub read_hit_ms: (f64, f64),
    /// Until the arm begins to move for a read, ms.
    pub read_miss_ms: (f64, f64),
    /// Until the transfer of a write into the cache begins, ms.
    pub write_hit_ms: (f64, f64),
    /// Until the arm begins to move for a write that must reach the medium, ms.
    pub write_miss_ms: (f64, f64),
    /// From the end of a read's transfer to its completion, ms.
    #[serde(default)]
    pub read_completion_ms: f64,
    /// From the end of a write to its completion, ms.
    #[serde(default)]
    pub write_completion_ms: f64,
    /// From what the watermark waits for to the beginning of the transfer, ms.
    #[serde(default)]
    pub reconnect_ms: f64,
    /// From the time the arm begins to move for a write to the beginning of its transfer, ms.
    #[serde(default)]
    pub write_data_ms: f64,
}

impl OverheadSpec {
    pub(super) fn check(&self) -> Result<(), String> {
        let pair = |name, (after_read, after_write)| [(name, after_read), (name, after_write)];
        let pairs = [
            pair("read_hit_ms", self.read_hit_ms),
            pair("read_miss_ms", self.read_miss_ms),
            pair("write_hit_ms", self.write_hit_ms),
            pair("write_miss_ms", self.write_miss_ms),
        ];
        let single = [
            ("read_completion_ms", self.read_completion_ms),
            ("write_completion_ms", self.write_completion_ms),
            ("reconnect_ms", self.reconnect_ms),
            ("write_data_ms", self.write_data_ms),
        ];
        within(&(0.0..=1e6), &[pairs.as_flattened(), &single].concat())
    }
}

/// The same in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overheads {
    read_hit: (u64, u64),
    read_miss: (u64, u64),
    write_hit: (u64, u64),
    write_miss: (u64, u64),
    read_completion: u64,
    write_completion: u64,
    pub reconnect: u64,
    pub write_data: u64,
}

impl Overheads {
    /// Those of the drive file, or `overhead_ms` for all that needs no arm.
    pub(super) fn new(given: Option<&OverheadSpec>, overhead_ms: f64) -> Self {
        let ns = |ms: f64| (ms * 1e6) as u64;
        let both = |(after_read, after_write)| (ns(after_read), ns(after_write));
        let hit = (ns(overhead_ms), ns(overhead_ms));
        match given {
            Some(given) => Self {
                read_hit: both(given.read_hit_ms),
                read_miss: both(given.read_miss_ms),
                write_hit: both(given.write_hit_ms),
                write_miss: both(given.write_miss_ms),
                read_completion: ns(given.read_completion_ms),
                write_completion: ns(given.write_completion_ms),
                reconnect: ns(given.reconnect_ms),
                write_data: ns(given.write_data_ms),
            },
            None => Self {
                read_hit: hit,
                read_miss: (0, 0),
                write_hit: hit,
                write_miss: (0, 0),
                read_completion: 0,
                write_completion: 0,
                reconnect: 0,
                write_data: 0,
            },
        }
    }

    /// Before the transfer of a command that needs no arm.
    pub(super) fn hit_ns(&self, kind: Kind, after_write: bool) -> u64 {
        let pair = if kind == Kind::Write { self.write_hit } else { self.read_hit };
        if after_write { pair.1 } else { pair.0 }
    }

    /// Before the arm moves for a command.
    pub(super) fn miss_ns(&self, kind: Kind, after_write: bool) -> u64 {
        let pair = if kind == Kind::Write { self.write_miss } else { self.read_miss };
        if after_write { pair.1 } else { pair.0 }
    }

    /// At the end of a command.
    pub(super) fn completion_ns(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read => self.read_completion,
            Kind::Write => self.write_completion,
            Kind::Flush | Kind::Discard => 0,
        }
    }

    /// The least at the end of a read or a write.
    pub(super) fn least_completion_ns(&self) -> u64 {
        self.read_completion.min(self.write_completion)
    }
}
