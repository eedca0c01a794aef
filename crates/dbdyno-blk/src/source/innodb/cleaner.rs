//! What the page cleaner is at.

/// What the page cleaner is at.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    pub busy: bool,
    /// Frames that are being written.
    pub batch: Vec<u32>,
    /// Pages of the flush list that this second has left.
    pub left: usize,
    /// The end of the LRU list is to be looked through.
    pub looks_at_lru: bool,
    pub seconds: u64,
    /// Pages of the last seconds, and the mean rate before them.
    pub flushed: usize,
    pub pages_per_s_mean: f64,
    /// What the checkpoint that is being written will be.
    pub checkpoint_lsn: u64,
    pub checkpoint_ns: u64,
}
