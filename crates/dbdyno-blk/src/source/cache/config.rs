//! Memory and filesystem as a user describes them, and the rules of writeback that a kernel's version adds.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::file::{PAGE_BYTES, PAGES_MOST};
use crate::kernel::Kernel;

/// What is wrong with a page cache, or with what runs on it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{field} = {given} {problem}")]
pub struct CacheError {
    /// Its field.
    pub field: &'static str,
    /// What was given.
    pub given: String,
    /// What must hold.
    pub problem: &'static str,
}

/// Refuses what does not hold.
#[allow(clippy::needless_pass_by_value)] // a number, or a word
pub(crate) fn unless(
    holds: bool,
    field: &'static str,
    given: impl ToString,
    problem: &'static str,
) -> Result<(), CacheError> {
    if holds { Ok(()) } else { Err(CacheError { field, given: given.to_string(), problem }) }
}

/// A filesystem, by what its commits write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// In its ordered mode a commit writes every page that was written to.
    Ext3,
    /// In its ordered mode a commit writes new pages only.
    Ext4,
}

/// `data=` of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Data is on the drive before the commit that belongs to it.
    Ordered,
    /// Commits wait for no data.
    Writeback,
}

/// Memory, its limits, and the filesystem on the drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// As much of it is mapped by processes: the page cache has the rest.
    pub mapped_bytes: u64,
    /// Processors; how often a writer looks at the limits depends on them.
    pub processors: u32,
    /// `vm.dirty_ratio`; unset: the kernel's (40 to 2.6.29, then 20).
    pub dirty_percent: Option<u32>,
    /// `vm.dirty_background_ratio`.
    pub dirty_background_percent: u32,
    /// `vm.dirty_expire_centisecs`: how long a file is dirty until it is written back.
    pub dirty_expire_ms: u64,
    /// `vm.dirty_writeback_centisecs`: how often is looked for such files.
    pub dirty_writeback_ms: u64,
    /// What holds the files.
    pub filesystem: Filesystem,
    /// `data=` of the mount.
    pub data: Data,
    /// `commit=` of the mount.
    pub commit_ms: u64,
    /// `barrier=` of the mount: a commit block asks for flushes.
    pub barrier: bool,
    /// A write to a page that is being written waits for it (3.0 to 3.8, and drives that checksum).
    pub stable_pages: bool,
    /// Where the filesystem begins on the drive.
    pub offset_bytes: u64,
    /// How much of a file lies in one piece, where several grow at once.
    pub extent_bytes: u64,
    /// What lies between two pieces: other files, and free space.
    pub gap_bytes: u64,
    /// CPU time of a read or write of a page that is in the cache.
    pub page_cpu_ns: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            memory_bytes: 8 << 30,
            mapped_bytes: 1 << 30,
            processors: 8,
            dirty_percent: None,
            dirty_background_percent: 10,
            dirty_expire_ms: 30_000,
            dirty_writeback_ms: 5000,
            filesystem: Filesystem::Ext4,
            data: Data::Ordered,
            commit_ms: 5000,
            barrier: true,
            stable_pages: false,
            offset_bytes: 0,
            extent_bytes: 4 << 20,
            gap_bytes: 0,
            page_cpu_ns: 1000,
        }
    }
}

impl CacheConfig {
    /// Refuses numbers that the model cannot work with, naming the first.
    pub(super) fn check(&self, kernel: &Kernel) -> Result<(), CacheError> {
        let (memory, mapped, extent) = (self.memory_bytes, self.mapped_bytes, self.extent_bytes);
        let memory_most = PAGES_MOST * PAGE_BYTES;
        unless((1 << 24..=memory_most).contains(&memory), "memory_bytes", memory, "is not between 16 MiB and 4 TiB")?;
        unless(
            mapped <= memory - (1 << 22),
            "mapped_bytes",
            mapped,
            "leaves less than 4 MiB of memory_bytes to the cache",
        )?;
        unless((1..=4096).contains(&self.processors), "processors", self.processors, "is not between 1 and 4096")?;
        let percent = self.dirty_percent.unwrap_or(20);
        unless((1..=100).contains(&percent), "dirty_percent", percent, "is not between 1 and 100")?;
        let background = self.dirty_background_percent;
        unless((1..=100).contains(&background), "dirty_background_percent", background, "is not between 1 and 100")?;
        for (field, ms) in [
            ("dirty_expire_ms", self.dirty_expire_ms),
            ("dirty_writeback_ms", self.dirty_writeback_ms),
            ("commit_ms", self.commit_ms),
        ] {
            unless((10..=86_400_000).contains(&ms), field, ms, "is not between 10 and 86400000")?;
        }
        for (field, bytes) in [("offset_bytes", self.offset_bytes), ("gap_bytes", self.gap_bytes)] {
            unless(bytes.is_multiple_of(PAGE_BYTES), field, bytes, "is not a multiple of 4096")?;
        }
        let whole = extent > 0 && extent.is_multiple_of(PAGE_BYTES);
        unless(whole, "extent_bytes", extent, "is not a positive multiple of 4096")?;
        unless(self.page_cpu_ns > 0, "page_cpu_ns", 0, "is not above 0: writes that take no time would never end")?;
        let has_ext3 = self.filesystem != Filesystem::Ext3 || !matches!(kernel.name, "4.4" | "6.x");
        unless(has_ext3, "filesystem", "ext3", "exists in kernels up to 4.2; later ones mount it as ext4")
    }

    /// Pages that the page cache has room for.
    pub(super) fn cache_pages(&self) -> u64 {
        (self.memory_bytes - self.mapped_bytes) / PAGE_BYTES
    }

    /// How many pages may be dirty, and at how many background writeback starts. To 2.6.29 both are shares of the whole
    /// memory, and mapped pages lower the first; later both are shares of what the cache may use.
    pub(super) fn dirty_limits(&self, writeback: Writeback) -> (u64, u64) {
        if writeback == Writeback::Pdflush {
            let unmapped = 100 - self.mapped_bytes * 100 / self.memory_bytes;
            let percent = u64::from(self.dirty_percent.unwrap_or(40)).min(unmapped / 2).max(5);
            let background = u64::from(self.dirty_background_percent);
            let background = if background >= percent { percent / 2 } else { background };
            let pages = self.memory_bytes / PAGE_BYTES;
            return (pages * percent / 100, pages * background / 100);
        }
        let pages = self.cache_pages();
        let limit = pages * u64::from(self.dirty_percent.unwrap_or(20)) / 100;
        let background = pages * u64::from(self.dirty_background_percent) / 100;
        (limit, if background >= limit { limit / 2 } else { background })
    }

    /// Pages that a process writes before it looks at the limits.
    pub(super) fn check_pages(&self) -> u64 {
        (self.memory_bytes / PAGE_BYTES / (32 * u64::from(self.processors))).clamp(16, 1024)
    }
}

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

impl Writeback {
    /// What a kernel has.
    pub fn in_kernel(kernel: &Kernel) -> Self {
        match kernel.name {
            "2.6.9" | "2.6.18" => Self::Pdflush,
            "2.6.32" => Self::Flusher,
            _ => Self::Paced,
        }
    }
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

impl Rules {
    pub(super) fn new(kernel: &Kernel, config: &CacheConfig) -> Self {
        let writeback = Writeback::in_kernel(kernel);
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
