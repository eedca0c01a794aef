//! Memory, filesystem and files as a user describes them, the rules of writeback that a kernel's version adds, and what
//! is known of each page of a file.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::kernel::Kernel;

/// What is wrong with a page cache, or with what runs on it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{field} = {value} {problem}")]
pub struct CacheError {
    /// Its field.
    pub field: &'static str,
    /// What was given.
    pub value: String,
    /// What must hold.
    pub problem: &'static str,
}

/// Refuses what does not hold.
#[allow(clippy::needless_pass_by_value)] // a number, or a word
pub(crate) fn unless(
    holds: bool,
    field: &'static str,
    value: impl ToString,
    problem: &'static str,
) -> Result<(), CacheError> {
    if holds { Ok(()) } else { Err(CacheError { field, value: value.to_string(), problem }) }
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

/// Bytes of a page of the cache, and of a block of the filesystem.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Sectors of it.
pub(super) const PAGE_SECTORS: u64 = PAGE_BYTES / 512;

/// A block group: ext3 and ext4 begin each with bitmaps and inodes.
const GROUP_SECTORS: u64 = (128 << 20) / 512;
const GROUP_HEAD_SECTORS: u64 = (2 << 20) / 512;
/// The journal, in the first group.
pub(super) const JOURNAL_SECTORS: u64 = (32 << 20) / 512;

/// What is known of a page; each a bit.
pub(super) mod flag {
    /// What it holds is newer than what was last submitted.
    pub const CHANGED: u8 = 1;
    /// It is on its way to the drive.
    pub const IN_FLIGHT: u8 = 2;
    /// It belongs to the transaction of even number, or of odd number.
    pub const TRANSACTION: [u8; 2] = [4, 8];
    /// The commit waits for it.
    pub const AWAITED: u8 = 16;
    /// It is in memory.
    pub const RESIDENT: u8 = 32;
    /// It was used since the clock last passed.
    pub const USED: u8 = 64;
    /// Writeback sent it; else a commit, or a process for itself.
    pub const WRITEBACK: u8 = 128;
}

/// A page of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Page {
    /// Number of the file, from 0.
    pub file: u32,
    /// Number of the page in it, from 0.
    pub page: u32,
}

/// Where the next piece of a file goes: one behind the other, in block groups.
#[derive(Debug)]
pub(super) struct Allocator {
    start_sector: u64,
    next_sector: u64,
    extent_sectors: u64,
    gap_sectors: u64,
}

impl Allocator {
    pub(super) fn new(offset_bytes: u64, extent_bytes: u64, gap_bytes: u64) -> Self {
        let start_sector = offset_bytes / 512;
        Self {
            start_sector,
            next_sector: start_sector + GROUP_HEAD_SECTORS + JOURNAL_SECTORS,
            extent_sectors: extent_bytes / 512,
            gap_sectors: gap_bytes / 512,
        }
    }

    pub(super) fn journal_sector(&self) -> u64 {
        self.start_sector + GROUP_HEAD_SECTORS
    }

    pub(super) fn end_bytes(&self) -> u64 {
        self.next_sector * 512
    }

    fn allocate(&mut self) -> u64 {
        let in_group = (self.next_sector - self.start_sector) % GROUP_SECTORS;
        if in_group < GROUP_HEAD_SECTORS {
            self.next_sector += GROUP_HEAD_SECTORS - in_group;
        } else if in_group + self.extent_sectors > GROUP_SECTORS {
            self.next_sector += GROUP_SECTORS - in_group + GROUP_HEAD_SECTORS;
        }
        let start_sector = self.next_sector;
        self.next_sector += self.extent_sectors + self.gap_sectors;
        start_sector
    }
}

/// One file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub flags: Vec<u8>,
    /// Pages that writeback has to look at: those written to since it last did, though a commit may have written them.
    pub dirty: PageSet,
    /// Since when it is dirty.
    pub dirtied_ns: u64,
    /// Where background writeback goes on.
    pub writeback_from: u32,
    /// It waits for its turn to be written back.
    pub is_listed: bool,
    /// Pages on their way to the drive.
    pub in_flight: u64,
    /// The journal knows of its change in the running transaction.
    pub is_changed: bool,
    extents: Vec<u64>,
    extent_pages: u32,
}

impl File {
    pub(super) fn new(extent_bytes: u64) -> Self {
        Self { extent_pages: (extent_bytes / PAGE_BYTES) as u32, ..Self::default() }
    }

    pub(super) fn pages(&self) -> u32 {
        self.flags.len() as u32
    }

    /// Makes the file this long, at least.
    pub(super) fn grow(&mut self, pages: u32, allocator: &mut Allocator) {
        if self.flags.len() < pages as usize {
            self.flags.resize(pages as usize, 0);
        }
        while self.extents.len() as u32 * self.extent_pages < pages {
            self.extents.push(allocator.allocate());
        }
    }

    /// Where a page lies.
    pub(super) fn sector(&self, page: u32) -> u64 {
        let extent = self.extents[(page / self.extent_pages) as usize];
        extent + u64::from(page % self.extent_pages) * PAGE_SECTORS
    }

    /// How many pages lie in one piece of the disk, beginning with this one.
    pub(super) fn pages_in_piece(&self, page: u32) -> u32 {
        let mut end = page / self.extent_pages + 1;
        let sectors = u64::from(self.extent_pages) * PAGE_SECTORS;
        while self.extents.get(end as usize).is_some_and(|next| *next == self.extents[end as usize - 1] + sectors) {
            end += 1;
        }
        end * self.extent_pages - page
    }
}

/// Levels of words: the lowest has a bit a page, each other a bit for every word beneath that is not 0.
const LEVELS: usize = 5;
/// Pages that there is room for.
const PAGES_MOST: u64 = 1 << (6 * LEVELS as u64);

/// Pages of a file, in order. Millions cost a bit each, and finding the next one a few words.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    levels: [Vec<u64>; LEVELS],
    count: u64,
}

impl PageSet {
    /// It has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it has a page.
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.levels[0].get(page as usize / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Adds a page; whether it is new.
    #[inline]
    pub fn insert(&mut self, page: u32) -> bool {
        if self.contains(page) {
            return false;
        }
        let mut at = page as usize;
        for level in &mut self.levels {
            if level.len() <= at / 64 {
                level.resize(at / 64 + 1, 0);
            }
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                break;
            }
            at /= 64;
        }
        self.count += 1;
        true
    }

    /// Takes a page out; whether it was there.
    #[inline]
    pub fn remove(&mut self, page: u32) -> bool {
        if !self.contains(page) {
            return false;
        }
        let mut at = page as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        self.count -= 1;
        true
    }

    /// The first page of the set at or after `page`.
    pub fn next_from(&self, page: u32) -> Option<u32> {
        let mut at = page as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / 64)? & (!0 << (at % 64));
            if word != 0 {
                return Some(self.lowest_beneath(height, at / 64 * 64 + word.trailing_zeros() as usize));
            }
            at = at / 64 + 1;
        }
        None
    }

    fn lowest_beneath(&self, height: usize, mut at: usize) -> u32 {
        for level in self.levels[..height].iter().rev() {
            at = at * 64 + level[at].trailing_zeros() as usize;
        }
        at as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(changes in prop::collection::vec((any::<bool>(), prop_oneof![0..300_u32, 0..20_000_000_u32]), 0..300)) {
            let (mut set, mut expected) = (PageSet::default(), BTreeSet::new());
            for (adds, page) in changes {
                if adds {
                    prop_assert_eq!(set.insert(page), expected.insert(page));
                } else {
                    prop_assert_eq!(set.remove(page), expected.remove(&page));
                }
                prop_assert_eq!(set.count, expected.len() as u64);
                for from in [0, page.saturating_sub(1), page, page + 1] {
                    prop_assert_eq!(set.next_from(from), expected.range(from..).next().copied());
                }
            }
        }
    }
}
