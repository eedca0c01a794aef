//! Which rules of writeback a kernel has.

use super::config::{CacheConfig, Data, Filesystem};
use crate::kernel::Kernel;

/// How dirty pages come to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writeback {
    /// pdflush, which never waits for a request, and writers that write themselves (to 2.6.31).
    Pdflush,
    /// A flusher thread for the device, which waits for requests, and writers that write themselves (to 3.1).
    Flusher,
    /// A flusher thread, and writers that sleep (from 3.2).
    Paced,
}

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

impl Writeback {
    /// What a kernel has.
    pub fn of(kernel: &Kernel) -> Self {
        match kernel.name {
            "2.6.9" | "2.6.18" => Self::Pdflush,
            "2.6.32" => Self::Flusher,
            _ => Self::Paced,
        }
    }
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
