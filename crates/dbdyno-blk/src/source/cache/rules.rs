//! Which rules of writeback a kernel has.

use super::config::{CacheConfig, Data, Filesystem};
use super::writeback::Writeback;
use crate::kernel::Kernel;

/// What holds of a kernel with a filesystem.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub writeback: Writeback,
    /// Pages of one bio at most.
    pub bio_pages: u32,
    /// A commit writes every page that was written to since the last; else, where it is ordered, new ones.
    pub orders_overwrites: bool,
    pub ordered: bool,
    /// Writes that a process waits for are marked as such.
    pub marks_sync: bool,
}

impl Rules {
    pub(super) fn new(kernel: &Kernel, config: &CacheConfig) -> Self {
        let writeback = Writeback::of(kernel);
        let is_large = writeback == Writeback::Paced && config.filesystem == Filesystem::Ext4;
        Self {
            writeback,
            bio_pages: if is_large { 256 } else { 1 },
            orders_overwrites: config.filesystem == Filesystem::Ext3,
            ordered: config.data == Data::Ordered,
            marks_sync: writeback != Writeback::Pdflush,
        }
    }
}
