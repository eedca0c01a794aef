//! The redo log: how far it is, and who waits for it.

use std::collections::VecDeque;

/// A log begins here, as 0 stands for no change.
const FIRST_LSN: u64 = 8192;

/// The redo log: positions in bytes since it was made.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it ends.
    pub lsn: u64,
    pub flushed_lsn: u64,
    pub checkpoint_lsn: u64,
    /// Ages at which pages are flushed at all speed, and at which changes wait for it.
    pub urgent_bytes: u64,
    pub full_bytes: u64,
    /// Who writes it, and how far.
    pub leader: Option<(u32, u64)>,
    /// Who waits for which position to be safe.
    pub waiters: VecDeque<(u32, u64)>,
}

impl Log {
    pub fn new(bytes: u64) -> Self {
        // InnoDB keeps a tenth, and a tenth of the rest, and looks at seven eighths and fifteen sixteenths of what is left.
        let most = bytes / 10 * 9 / 10 * 9;
        Self {
            lsn: FIRST_LSN,
            flushed_lsn: FIRST_LSN,
            checkpoint_lsn: FIRST_LSN,
            urgent_bytes: most - most / 8,
            full_bytes: most - most / 16,
            leader: None,
            waiters: VecDeque::new(),
        }
    }

    /// Log that a crash would have to be recovered from, bytes.
    pub fn age(&self) -> u64 {
        self.lsn - self.checkpoint_lsn
    }

    pub fn is_full(&self) -> bool {
        self.age() >= self.full_bytes
    }

    /// Adds a change: from where to where it is.
    pub fn append(&mut self, bytes: u32) -> (u64, u64) {
        let from = self.lsn;
        self.lsn += u64::from(bytes);
        (from, self.lsn)
    }
}
