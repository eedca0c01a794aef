//! What processes and kernel threads share: all pages of all files (which are in memory, dirty, on their way), and the
//! journal (what belongs to its transactions, and how far a commit is).

use std::collections::VecDeque;

use super::config::{Allocator, CacheConfig, File, JOURNAL_SECTORS, PAGE_BYTES, PAGE_SECTORS, Page, Rules, flag};
use crate::queue::{Bio, Direction};

/// What a thread does next.
pub(super) enum Next {
    Submit(crate::queue::Bio),
    Wait(Wait),
    Exit,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing.
    None,
    /// A request.
    Request,
    /// That another wakes it.
    Event,
    /// A time, or that another wakes it.
    Until(u64),
    /// The queue to be congested no more, but no longer than this time.
    Clear(u64),
    /// A page to arrive.
    Page(Page),
}

/// Pages written back, and how many a second that is, as the kernel estimates it.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    pub written: u64,
    since_ns: u64,
    written_then: u64,
    pages_per_s: f64,
}

/// How often it is estimated.
const ESTIMATE_NS: u64 = 200_000_000;
/// 100 MB/s, where nothing was written yet.
const PAGES_PER_S_AT_FIRST: f64 = 25_600.0;

impl Bandwidth {
    pub(super) fn pages_per_s(&mut self, now_ns: u64) -> f64 {
        if self.pages_per_s == 0.0 {
            self.pages_per_s = PAGES_PER_S_AT_FIRST;
        }
        let passed_ns = now_ns - self.since_ns;
        if passed_ns >= ESTIMATE_NS {
            let rate = (self.written - self.written_then) as f64 * 1e9 / passed_ns as f64;
            // A longer time counts more, up to the kernel's three seconds.
            let weight = (passed_ns as f64 / 3e9).min(1.0);
            self.pages_per_s += (rate - self.pages_per_s) * weight;
            (self.since_ns, self.written_then) = (now_ns, self.written);
        }
        self.pages_per_s.max(1.0)
    }
}

/// The machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub config: CacheConfig,
    pub rules: Rules,
    pub pages: Pages,
    pub journal: Journal,
    pub bandwidth: Bandwidth,
    /// The queue of the device takes no more of who does not wait.
    pub congested: bool,
    /// Pages that may be dirty or in writeback.
    pub limit: u64,
    /// Background writeback starts at this many dirty pages.
    pub background: u64,
    /// Writers have been over the limit.
    pub exceeded: bool,
    /// The background shall begin.
    pub wanted: bool,
    /// Threads that shall look again.
    pub wakes: Vec<u32>,
    /// Processes beside the kernel's threads, which come behind them: the journal's, and those of writeback.
    pub processes: u32,
}

impl Machine {
    pub(super) fn journal_thread(&self) -> u32 {
        self.processes
    }

    fn background_thread(&self) -> u32 {
        self.processes + 1
    }

    /// A file changes, by so many new pages.
    pub(super) fn begin_change(&mut self, now_ns: u64, file: u32, new_pages: u64) {
        self.start_transaction(now_ns);
        let is_changed = &mut self.pages.files[file as usize].is_changed;
        self.journal.begin(file, is_changed, new_pages);
    }

    fn start_transaction(&mut self, now_ns: u64) {
        if self.journal.started_ns.is_none() {
            self.journal.started_ns = Some(now_ns);
            self.wakes.push(self.journal_thread());
        }
    }

    /// A page belongs to the running transaction, and no more to the one that is committed.
    pub(super) fn file_page(&mut self, now_ns: u64, page: Page) {
        if self.rules.ordered {
            self.start_transaction(now_ns);
            self.pages.clear(page, self.journal.committing_flag());
            let own = flag::TRANSACTION[self.journal.running()];
            if !self.pages.is(page, own) {
                self.pages.set(page, own);
                self.journal.add(page);
            }
        }
    }

    /// The commit need not wait for a page any more.
    pub(super) fn forgo(&mut self, page: Page) {
        if self.pages.is(page, flag::AWAITED) {
            self.pages.clear(page, flag::AWAITED);
            self.journal_arrived(1);
        }
    }

    pub(super) fn journal_arrived(&mut self, count: u64) {
        self.journal.awaited -= count;
        if self.journal.awaited == 0 && count > 0 {
            self.wakes.push(self.journal_thread());
        }
    }

    pub(super) fn want_background(&mut self) {
        if !self.wanted {
            self.wanted = true;
            self.wakes.push(self.background_thread());
        }
    }
}

/// How far a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// At this place of the list of pages.
    Data(usize),
    DataArrives,
    /// So many blocks are left.
    Blocks(u32),
    BlocksArrive,
    CommitBlockArrives,
}

/// The journal.
#[derive(Debug)]
pub(super) struct Journal {
    /// Number of the running transaction.
    pub number: u64,
    /// Since when something belongs to it.
    pub started_ns: Option<u64>,
    /// The last one that is on the drive.
    pub committed: u64,
    /// The last one that a process waits for.
    pub requested: u64,
    /// Pages and blocks that the commit waits for.
    pub awaited: u64,
    /// Pages of both transactions in order of their first change.
    pub pages: [Vec<Page>; 2],
    /// What the running transaction changed beside data: files, and new pages.
    pub files: Vec<u32>,
    pub new_pages: u64,
    /// Blocks that the commit writes before the last.
    pub blocks: u32,
    pub phase: Phase,
    /// Pages that the commit has taken and not submitted yet, the last first.
    pub batch: Vec<Page>,
    start_sector: u64,
    at_sector: u64,
}

impl Journal {
    pub(super) fn new(start_sector: u64) -> Self {
        Self {
            number: 1,
            started_ns: None,
            committed: 0,
            requested: 0,
            awaited: 0,
            pages: Default::default(),
            files: Vec::new(),
            new_pages: 0,
            blocks: 0,
            phase: Phase::Idle,
            batch: Vec::new(),
            start_sector,
            at_sector: 0,
        }
    }

    /// Which of two the running transaction is.
    pub(super) fn running(&self) -> usize {
        self.number as usize % 2
    }

    /// The flag of pages that the commit has yet to look at.
    pub(super) fn committing_flag(&self) -> u8 {
        flag::TRANSACTION[1 - self.running()]
    }

    pub(super) fn add(&mut self, page: Page) {
        self.pages[self.number as usize % 2].push(page);
    }

    /// A file changes, by so many new pages.
    pub(super) fn begin(&mut self, file: u32, is_changed: &mut bool, new_pages: u64) {
        self.new_pages += new_pages;
        if !*is_changed {
            *is_changed = true;
            self.files.push(file);
        }
    }

    /// A write of so many blocks behind the last.
    pub(super) fn next_block(&mut self, blocks: u32) -> Bio {
        if self.at_sector + u64::from(blocks) * PAGE_SECTORS > JOURNAL_SECTORS {
            self.at_sector = 0;
        }
        let sector = self.start_sector + self.at_sector;
        self.at_sector += u64::from(blocks) * PAGE_SECTORS;
        self.awaited += 1;
        let token = encode(Purpose::Journal, Page { file: 0, page: 0 });
        Bio { token, ..Bio::new(0, Direction::Write, sector, blocks * PAGE_SECTORS as u32) }
    }
}

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
