//! A file on the drive, and what is known of each of its pages.

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
pub(super) const PAGES_MOST: u64 = 1 << (6 * LEVELS as u64);

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
