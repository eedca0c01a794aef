//! All pages of all files: which are in memory, dirty, on their way.

use std::collections::VecDeque;

use super::config::CacheConfig;
use super::file::{Allocator, File, PAGE_BYTES, PAGE_SECTORS, Page, flag};
use crate::queue::{Bio, Direction};

/// Pages that the clock looks at, at most, to find one that can go.
const CLOCK_STEPS: u32 = 4096;

/// What a bio of the cache is for; two bits of its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Writeback,
    /// A commit, or a process that writes a page because it must wait for it.
    Buffer,
    Journal,
    Read,
}

/// What a bio's token says.
pub(super) fn decode(token: u64) -> (Purpose, Page) {
    let purpose = [Purpose::Writeback, Purpose::Buffer, Purpose::Journal, Purpose::Read][(token >> 62) as usize];
    (purpose, Page { file: (token >> 32) as u32 & 0x3fff_ffff, page: token as u32 })
}

pub(super) fn encode(purpose: Purpose, page: Page) -> u64 {
    (purpose as u64) << 62 | u64::from(page.file) << 32 | u64::from(page.page)
}

/// The page cache.
#[derive(Debug)]
pub(super) struct Pages {
    pub files: Vec<File>,
    pub allocator: Allocator,
    extent_bytes: u64,
    /// Files that wait to be written back, the one that has waited longest first.
    pub turn: VecDeque<u32>,
    /// Pages that writeback has to look at.
    pub dirty: u64,
    /// Pages that writeback has sent.
    pub in_writeback: u64,
    resident: u64,
    room: u64,
    /// Where the clock stands.
    hand: Page,
}

impl Pages {
    pub(super) fn new(config: &CacheConfig) -> Self {
        Self {
            files: Vec::new(),
            allocator: Allocator::new(config.offset_bytes, config.extent_bytes, config.gap_bytes),
            extent_bytes: config.extent_bytes,
            turn: VecDeque::new(),
            dirty: 0,
            in_writeback: 0,
            resident: 0,
            room: config.cache_pages(),
            hand: Page { file: 0, page: 0 },
        }
    }

    pub(super) fn add_file(&mut self) -> u32 {
        self.files.push(File::new(self.extent_bytes));
        self.files.len() as u32 - 1
    }

    pub(super) fn grow(&mut self, file: u32, pages: u32) {
        self.files[file as usize].grow(pages, &mut self.allocator);
    }

    #[inline]
    pub(super) fn flags(&self, page: Page) -> u8 {
        self.files[page.file as usize].flags[page.page as usize]
    }

    #[inline]
    pub(super) fn is(&self, page: Page, flags: u8) -> bool {
        self.flags(page) & flags != 0
    }

    #[inline]
    pub(super) fn set(&mut self, page: Page, flags: u8) {
        self.files[page.file as usize].flags[page.page as usize] |= flags;
    }

    #[inline]
    pub(super) fn clear(&mut self, page: Page, flags: u8) {
        self.files[page.file as usize].flags[page.page as usize] &= !flags;
    }

    /// A process used a page, which thereby is in memory.
    pub(super) fn touch(&mut self, page: Page) {
        if !self.is(page, flag::RESIDENT) {
            self.resident += 1;
            if self.resident > self.room {
                self.evict();
            }
        }
        self.set(page, flag::RESIDENT | flag::USED);
    }

    /// A process wrote to a page.
    pub(super) fn change(&mut self, now_ns: u64, page: Page) {
        self.touch(page);
        self.set(page, flag::CHANGED);
        let file = &mut self.files[page.file as usize];
        if file.dirty.insert(page.page) {
            self.dirty += 1;
        }
        if !file.is_listed {
            file.is_listed = true;
            file.dirtied_ns = now_ns;
            self.turn.push_back(page.file);
        }
    }

    /// Writeback need not look at a page any more.
    pub(super) fn clean(&mut self, page: Page) {
        if self.files[page.file as usize].dirty.remove(page.page) {
            self.dirty -= 1;
        }
    }

    /// Sends pages that lie in one piece to the drive.
    pub(super) fn send(&mut self, purpose: Purpose, first: Page, pages: u32) -> Bio {
        let mut flags = flag::IN_FLIGHT;
        if purpose == Purpose::Writeback {
            flags |= flag::WRITEBACK;
            self.in_writeback += u64::from(pages);
        }
        let file = &mut self.files[first.file as usize];
        file.in_flight += u64::from(pages);
        for page in &mut file.flags[first.page as usize..(first.page + pages) as usize] {
            *page = *page & !flag::CHANGED | flags;
        }
        self.bio(Direction::Write, purpose, first, pages)
    }

    pub(super) fn bio(&self, direction: Direction, purpose: Purpose, first: Page, pages: u32) -> Bio {
        let sector = self.files[first.file as usize].sector(first.page);
        Bio { token: encode(purpose, first), ..Bio::new(0, direction, sector, pages * PAGE_SECTORS as u32) }
    }

    /// Writes of pages have ended; how many of them the commit waited for.
    pub(super) fn arrived(&mut self, purpose: Purpose, first: Page, pages: u32) -> u64 {
        if purpose == Purpose::Writeback {
            self.in_writeback -= u64::from(pages);
        }
        let file = &mut self.files[first.file as usize];
        file.in_flight -= u64::from(pages);
        let mut awaited = 0;
        for page in &mut file.flags[first.page as usize..(first.page + pages) as usize] {
            awaited += u64::from(*page & flag::AWAITED != 0);
            *page &= !(flag::IN_FLIGHT | flag::WRITEBACK | flag::AWAITED);
        }
        awaited
    }

    /// Puts the pages of a file into memory, from the first, as many as there is room for.
    pub(super) fn preload(&mut self, file: u32) {
        for page in 0..self.files[file as usize].pages() {
            if self.resident == self.room {
                return;
            }
            self.touch(Page { file, page });
        }
    }

    pub(super) fn bytes(&self, file: u32) -> u64 {
        u64::from(self.files[file as usize].pages()) * PAGE_BYTES
    }

    /// Lets go of a clean page that was not used since the clock last passed it.
    fn evict(&mut self) {
        for _ in 0..CLOCK_STEPS {
            let Page { file, page } = self.hand;
            let here = &mut self.files[file as usize];
            if page >= here.pages() {
                self.hand = Page { file: (file + 1) % self.files.len() as u32, page: 0 };
                continue;
            }
            self.hand.page += 1;
            let flags = &mut here.flags[page as usize];
            if *flags & flag::RESIDENT == 0 || *flags & (flag::CHANGED | flag::IN_FLIGHT) != 0 {
                continue;
            }
            if *flags & flag::USED == 0 && !here.dirty.contains(page) {
                *flags &= !flag::RESIDENT;
                self.resident -= 1;
                return;
            }
            *flags &= !flag::USED;
        }
    }
}
