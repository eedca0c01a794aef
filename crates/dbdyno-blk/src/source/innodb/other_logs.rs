//! The binary log, and the filesystem's journal.

use std::collections::VecDeque;

/// The binary log.
#[derive(Debug, Default)]
pub(super) struct Binlog {
    /// Who commits now, the leader first, and who is next.
    pub group: Vec<u32>,
    pub queue: VecDeque<u32>,
    pub bytes: u64,
    pub flushed_bytes: u64,
    pub groups_unflushed: u32,
    /// Its group is in it, and the redo log is flushed once more.
    pub is_written: bool,
}

/// The filesystem's journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub bytes: u64,
    /// Who waits for the commit that runs, and for the next.
    pub members: Vec<u32>,
    pub waiting: Vec<u32>,
}
